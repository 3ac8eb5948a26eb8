"""Kubernetes: a deployment with its service, or an indexed job, around the command of an engine or trainer."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.bench import PORT, verification
from chipwise.report.launch.command import asked_for, comment
from chipwise.report.launch.facts import MEASURED
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.markup import Yaml, yaml
from chipwise.report.launch.spec import ServeSpec, Spec, TrainSpec
from chipwise.report.launch.starting import engine_of, start, trained_with
from chipwise.report.launch.training import train_command

IMAGES = {
    ("vllm", "nvidia"): "vllm/vllm-openai:v{}",
    ("vllm", "amd"): "vllm/vllm-openai-rocm:v{}",
    ("sglang", "nvidia"): "lmsysorg/sglang:v{}",
    ("trtllm", "nvidia"): "nvcr.io/nvidia/tensorrt-llm/release:{}.0",
}
# Labels that NVIDIA's GPU feature discovery gives nodes: the product as nvidia-smi names it, spaces as dashes.
PRODUCTS = {
    "h100-sxm5-80gb": "NVIDIA-H100-80GB-HBM3",
    "h200-sxm-141gb": "NVIDIA-H200",
    "a100-sxm4-80gb": "NVIDIA-A100-SXM4-80GB",
    "a100-sxm4-40gb": "NVIDIA-A100-SXM4-40GB",
    "l40s": "NVIDIA-L40S",
    "l4": "NVIDIA-L4",
    "t4": "Tesla-T4",
}
SECRET = "hf-token"
TRAINERS = {"nvidia": "nvcr.io/nvidia/pytorch:25.10-py3"}


def kubernetes(spec: Spec) -> tuple[LaunchFile, ...]:
    """A deployment with its service, or an indexed job."""
    tool, machine = get_tool("kubernetes"), spec.machine
    if machine.vendor not in tool.chips:
        raise UsageError(f"no device plugin for {machine.chip} is known", f"known: {', '.join(tool.chips.values())}")
    device = {tool.chips[machine.vendor]: machine.devices_of_host}
    if isinstance(spec, ServeSpec):
        if machine.hosts > 1:
            raise UsageError(
                f"a replica takes {machine.hosts} hosts, a Deployment's pod has one", "plan with --max-chips"
            )
        return (
            LaunchFile("deployment.yaml", comment(spec, tool, _cluster(spec)) + _served(spec, tool, device)),
            verification(spec),
        )
    if machine.vendor not in TRAINERS:
        raise UsageError(f"no image of a trainer for {machine.chip} is known")
    trained_by, notes = trained_with(spec)
    return tuple(
        LaunchFile(
            f"{name}.yaml",
            comment(spec, tool, (*notes, *_cluster(spec)))
            + _job(spec, tool, device, name, train_command(spec, trained_by, steps)),
        )
        for name, steps in (("job", spec.steps), ("verify", MEASURED))
    )


def _served(spec: ServeSpec, tool: Tool, device: Mapping[str, Yaml]) -> str:
    engine = engine_of(spec)
    image = IMAGES.get((spec.runtime, spec.machine.vendor))
    if image is None or spec.machine.cpu:
        raise UsageError(f"no image of {spec.runtime} for {spec.machine.chip} is known")
    labels: Yaml = {"app": "chipwise"}
    container: Yaml = {
        "name": "server",
        "image": image.format(get_tool(engine).version),
        "command": ["bash", "-c"],
        "args": [start(spec)],
        "env": [_token()],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}},
        "resources": {"limits": device},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    pod: Yaml = {
        **_placed(spec),
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    deployment: Yaml = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chipwise"},
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service: Yaml = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chipwise"},
        "spec": {"selector": labels, "ports": [{"port": PORT, "targetPort": PORT}]},
    }
    return yaml(deployment, tool) + "---\n" + yaml(service, tool)


def _cluster(spec: Spec) -> tuple[str, ...]:
    """What the cluster must bring."""
    token = f"a gated model needs a token: kubectl create secret generic {SECRET} --from-literal=token=..."
    if spec.machine.chip in PRODUCTS:
        return (token, "nodeSelector is a label of NVIDIA's GPU feature discovery: without it, name your own label")
    return (token, f"add a nodeSelector where the cluster has other accelerators than {spec.machine.chip}")


def _token() -> Yaml:
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "token", "optional": True}}}


def _placed(spec: Spec) -> dict[str, Yaml]:
    product = PRODUCTS.get(spec.machine.chip)
    return {"nodeSelector": {"nvidia.com/gpu.product": product}} if product else {}


def _job(spec: TrainSpec, tool: Tool, device: Mapping[str, Yaml], name: str, command: str) -> str:
    labels: Yaml = {"app": f"chipwise-{name}"}
    first = f"chipwise-{name}-0.chipwise-{name}"
    shell = f'export NODE_RANK="$JOB_COMPLETION_INDEX" HEAD_ADDRESS="{first}"\n{command}'
    container: Yaml = {
        "name": "trainer",
        "image": TRAINERS[spec.machine.vendor],
        "command": ["bash", "-c"],
        "args": [shell],
        "env": [_token(), *({"name": n, "value": ""} for n in asked_for(command))],
        "resources": {"limits": device},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    pod: Yaml = {
        "restartPolicy": "Never",
        "subdomain": f"chipwise-{name}",
        **_placed(spec),
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    hosts = spec.machine.hosts
    job: Yaml = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"chipwise-{name}"},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": hosts,
            "completions": hosts,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service: Yaml = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"chipwise-{name}"},
        "spec": {"clusterIP": "None", "selector": labels},
    }
    return yaml(job, tool) + "---\n" + yaml(service, tool)
