"""KEDA: a deployment that follows the load, by the policy that a simulation of the plan's log found."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.predict.events.scaling import EVERY_S
from chipwise.report.launch.command import comment
from chipwise.report.launch.kubernetes import kubernetes
from chipwise.report.launch.markup import Yaml, yaml
from chipwise.report.launch.spec import LaunchFile, ServeSpec, Spec

GAUGES: Mapping[str, tuple[str, str]] = {
    "vllm": ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    "sglang": ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    "trtllm": ("trtllm_num_requests_running", "trtllm_num_requests_waiting"),
}
"""Gauges of requests that run and that wait, by runtime. Source: llm-d, metrics that its scheduler reads."""
SHOWN: Mapping[str, str] = {
    "sglang": "; it shows them with --enable-metrics in its command",
    "trtllm": "; it shows them under /prometheus/metrics",
}
PROMETHEUS = "http://prometheus.monitoring.svc:9090"


def keda(spec: Spec) -> tuple[LaunchFile, ...]:
    """The files of a Kubernetes deployment, and what scales it."""
    tool = get_tool("keda")
    if not isinstance(spec, ServeSpec):
        raise UsageError(f"{tool.name} scales servers, this plan trains")
    if spec.scaling is None:
        raise UsageError(
            "this plan has no scaling policy",
            "plan with --log requests.csv, where more than one replica is needed and fewer do at times",
        )
    if spec.runtime not in GAUGES:
        raise UsageError(
            f"no gauges of requests in flight of {spec.runtime} are known", "plan with --runtime vllm"
        )
    policy = spec.scaling
    deployment, verify = kubernetes(spec)
    document: Yaml = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "chipwise"},
        "spec": {
            "scaleTargetRef": {"name": "chipwise"},
            "minReplicaCount": policy.least,
            "maxReplicaCount": policy.most,
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "behavior": {
                        "scaleUp": {
                            "stabilizationWindowSeconds": 0,
                            "policies": [
                                {"type": "Pods", "value": policy.most, "periodSeconds": round(EVERY_S)}
                            ],
                        },
                        "scaleDown": {"stabilizationWindowSeconds": round(policy.hold_s)},
                    }
                }
            },
            "triggers": [
                {
                    "type": "prometheus",
                    "metadata": {
                        "serverAddress": PROMETHEUS,
                        "query": " + ".join(f"sum({gauge})" for gauge in GAUGES[spec.runtime]),
                        "threshold": f"{policy.target:g}",
                    },
                }
            ],
        },
    }
    notes = (
        f"simulated: {policy.words}",
        f"serverAddress is that of your Prometheus, which must scrape the gauges of {spec.runtime}"
        + SHOWN.get(spec.runtime, ""),
        f"Kubernetes looks every {EVERY_S:g} s (--horizontal-pod-autoscaler-sync-period), the policy every "
        f"{policy.every_s:g} s",
    )
    return (
        deployment,
        LaunchFile("scaledobject.yaml", comment(spec, tool, notes) + yaml(document, tool)),
        verify,
    )
