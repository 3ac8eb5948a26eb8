"""What scales a deployment by the policy that a simulation of the plan's log or day found: KEDA, which knows requests
in flight and the clock, and Dynamo's planner, which knows the share of the cache in use."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.predict.events.scaling import EVERY_S
from chipwise.report.launch.bench import verification
from chipwise.report.launch.command import comment
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.kubernetes import kubernetes
from chipwise.report.launch.markup import Yaml, yaml
from chipwise.report.launch.spec import ServeSpec, Spec
from chipwise.report.simulated import FollowingRecord

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


DAY_MIN = 24 * 60
"""minutes: of a day. Exact: 24 hours."""


def _policy(spec: Spec, tool: Tool) -> tuple[ServeSpec, FollowingRecord]:
    """A server and its policy. Raises `UsageError` where a plan has none."""
    if not isinstance(spec, ServeSpec):
        raise UsageError(f"{tool.name} scales servers, this plan trains")
    if spec.scaling is None:
        raise UsageError(
            "this plan has no scaling policy",
            "plan with --log requests.csv or --day 2,2,1,4,9,10,8,5, where more than one replica is needed and fewer "
            "do at times",
        )
    return spec, spec.scaling


def _by_the_clock(policy: FollowingRecord) -> list[Yaml]:
    """A trigger for each stretch of a day with more replicas than the fewest: from when they have to be asked for."""
    slices = len(policy.clock)
    starts = [i for i in range(slices) if policy.clock[i] != policy.clock[i - 1]]
    found: list[Yaml] = []
    for start, end in zip(starts, [*starts[1:], *starts[:1]], strict=True):
        if policy.clock[start] == policy.least:
            continue
        ahead = -(-round(policy.start_s + policy.every_s) // 60)
        at = {"start": DAY_MIN * start // slices - ahead, "end": DAY_MIN * end // slices}
        times = {name: f"{m % 60} {m // 60 % 24} * * *" for name, m in at.items()}
        wanted = {"timezone": "Etc/UTC", **times, "desiredReplicas": f"{policy.clock[start]}"}
        found.append({"type": "cron", "metadata": wanted})
    return found


def keda(spec: Spec) -> tuple[LaunchFile, ...]:
    """The files of a Kubernetes deployment, and what scales it."""
    tool = get_tool("keda")
    spec, policy = _policy(spec, tool)
    if spec.runtime not in GAUGES:
        raise UsageError(f"no gauges of requests in flight of {spec.runtime} are known", "plan with --runtime vllm")
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
                            "policies": [{"type": "Pods", "value": policy.most, "periodSeconds": round(EVERY_S)}],
                        },
                        "scaleDown": {"stabilizationWindowSeconds": round(policy.hold_s)},
                    }
                }
            },
            "triggers": [
                *_by_the_clock(policy),
                {
                    "type": "prometheus",
                    "metadata": {
                        "serverAddress": PROMETHEUS,
                        "query": " + ".join(f"sum({gauge})" for gauge in GAUGES[spec.runtime]),
                        "threshold": f"{policy.target:g}",
                    },
                },
            ],
        },
    }
    notes = (
        f"simulated: {policy.words}",
        *policy.evidence,
        *(
            (
                "timezone is that of the day's hours, whose first slice starts at midnight; the threshold of requests "
                "in flight is the most that were simulated, for days that are not as was said",
            )
            if policy.clock
            else ()
        ),
        f"serverAddress is that of your Prometheus, which must scrape the gauges of {spec.runtime}"
        + SHOWN.get(spec.runtime, ""),
        f"Kubernetes looks every {EVERY_S:g} s (--horizontal-pod-autoscaler-sync-period), the policy every "
        f"{policy.every_s:g} s",
    )
    return (deployment, LaunchFile("scaledobject.yaml", comment(spec, tool, notes) + yaml(document, tool)), verify)


def planner(spec: Spec) -> tuple[LaunchFile, ...]:
    """The configuration of Dynamo's planner, which follows the cache in use: that of the requests in flight at which
    the policy starts one more. Raises `UsageError` for a policy of the clock, which it has not."""
    tool = get_tool("dynamo-planner")
    spec, policy = _policy(spec, tool)
    if policy.clock:
        raise UsageError(f"{tool.name} follows no clock, as this policy of a day does", "plan with --log requests.csv")
    if spec.runtime not in tool.runtimes or not spec.cache_tokens:
        raise UsageError(f"{tool.name} does not scale {spec.runtime} by its cache", "plan with --runtime vllm")
    each = spec.prompt_tokens + spec.output_tokens / 2.0
    up = 100.0 * policy.target * each / spec.cache_tokens
    if up > 100.0:
        what = f"{policy.target:g} requests in flight need more than the cache of a replica"
        raise UsageError(f"{what}, which {tool.name} counts in shares of", "launch it --for keda")
    document: Yaml = {
        "environment": "kubernetes",
        "backend": spec.runtime,
        "mode": "agg",
        "optimization_target": "load",
        "enable_load_scaling": True,
        "enable_throughput_scaling": False,
        "pre_deployment_sweeping_mode": "none",
        "min_endpoint": policy.least,
        "max_gpu_budget": policy.most * spec.machine.devices,
        "decode_engine_num_gpu": spec.machine.devices,
        "load_adjustment_interval_seconds": round(policy.every_s),
        "decode_scale_up_kv_rate": float(f"{up:.4g}"),
        "decode_scale_down_kv_rate": float(f"{up * (policy.most - 1) / policy.most:.4g}"),
    }
    notes = (
        f"simulated: {policy.words}",
        *policy.evidence,
        f"decode_scale_up_kv_rate: {policy.target:g} requests of {each:,.0f} tokens, half of the answer written, of "
        f"the {spec.cache_tokens:,} tokens of a replica's cache",
        f"not simulated: it starts one replica at each look, and stops one without waiting {policy.hold_s:g} s",
        "to start it in a DynamoGraphDeployment: python -m dynamo.planner --config planner.yaml; the workers are those "
        "of chipwise launch --for dynamo",
    )
    return (
        LaunchFile("planner.yaml", comment(spec, tool, notes) + yaml(document, tool)),
        verification(spec, whole=True),
    )
