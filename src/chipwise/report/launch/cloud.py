"""Where to run it: SkyPilot, Kubernetes, Terraform around the command of an engine or trainer."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.bench import PORT, client, verify
from chipwise.report.launch.command import asked_for, comment, script
from chipwise.report.launch.engines import serve_command, trtllm_settings
from chipwise.report.launch.machines import aws, google
from chipwise.report.launch.markup import Own, Yaml, hcl, yaml
from chipwise.report.launch.ranks import MEASURED
from chipwise.report.launch.spec import LaunchFile, ServeSpec, Spec, TrainSpec
from chipwise.report.launch.training import train_command, train_notes, trainer

__all__ = ["kubernetes", "skypilot", "terraform"]

ENGINES = {"sglang": "sglang", "trtllm": "trtllm", "neuronx": "neuronx"}
INSTALLS = {
    "vllm": "pip install vllm=={}\n",
    "vllm-tpu": "pip install vllm-tpu=={}\n",
    "sglang": 'pip install "sglang[all]=={}"\n',
    "trtllm": "pip install tensorrt-llm~={}\n",
}
ROCM = "pip install vllm=={} --extra-index-url https://wheels.vllm.ai/rocm/\n"
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
VISIBLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES"}
REGIONS = {"aws": "us-east-1", "gcp": "us-central1"}


def skypilot(spec: Spec) -> tuple[LaunchFile, ...]:
    """A task: replicas behind one address, or a run on several hosts."""
    tool, machine = get_tool("skypilot"), spec.machine
    if machine.chip not in tool.chips:
        raise UsageError(
            f"SkyPilot {tool.version} has no name for {machine.chip} here", f"known: {', '.join(tool.chips)}"
        )
    resources: dict[str, Yaml] = {"accelerators": f"{tool.chips[machine.chip]}:{machine.devices_of_host}"}
    task: dict[str, Yaml] = {"name": "chipwise", "resources": resources}
    if machine.hosts > 1:
        task["num_nodes"] = machine.hosts
    if isinstance(spec, ServeSpec):
        resources["ports"] = PORT
        task |= {
            "service": {"readiness_probe": "/health", "replicas": spec.replicas},
            **({"setup": install} if (install := _install(spec)) else {}),
            "run": _hosts(_start(spec)) if machine.hosts > 1 else _start(spec),
        }
        first = LaunchFile("task.yaml", comment(spec, tool) + yaml(task, tool))
        return (first, _check(spec))
    name, notes = _trainer(spec)
    runs = [(file, train_command(spec, name, n)) for file, n in (("task", spec.steps), ("verify", MEASURED))]
    return tuple(
        LaunchFile(
            f"{file}.yaml",
            comment(spec, tool, notes) + yaml({**task, **_asked(command), "run": _hosts(command)}, tool),
        )
        for file, command in runs
    )


def kubernetes(spec: Spec) -> tuple[LaunchFile, ...]:
    """A deployment with its service, or an indexed job."""
    tool, machine = get_tool("kubernetes"), spec.machine
    if machine.vendor not in tool.chips:
        raise UsageError(
            f"no device plugin for {machine.chip} is known", f"known: {', '.join(tool.chips.values())}"
        )
    device = {tool.chips[machine.vendor]: machine.devices_of_host}
    if isinstance(spec, ServeSpec):
        if machine.hosts > 1:
            raise UsageError(
                f"a replica takes {machine.hosts} hosts, a Deployment's pod has one",
                "plan with --max-chips",
            )
        return (
            LaunchFile("deployment.yaml", comment(spec, tool, _cluster(spec)) + _served(spec, tool, device)),
            _check(spec),
        )
    if machine.vendor not in TRAINERS:
        raise UsageError(f"no image of a trainer for {machine.chip} is known")
    trained_by, notes = _trainer(spec)
    return tuple(
        LaunchFile(
            f"{name}.yaml",
            comment(spec, tool, (*notes, *_cluster(spec)))
            + _job(spec, tool, device, name, train_command(spec, trained_by, steps)),
        )
        for name, steps in (("job", spec.steps), ("verify", MEASURED))
    )


def terraform(spec: Spec) -> tuple[LaunchFile, ...]:
    """Machines of one provider that start the command when they come up."""
    tool, machine = get_tool("terraform"), spec.machine
    if machine.vendor == "google":
        raise UsageError(f"{machine.chip} is rented as TPU VMs or nodes of GKE, no google_compute_instance")
    found = next((i for p in ("aws", "gcp") for i in machine.instances if i[0] == p), None)
    if found is None:
        have = ", ".join(sorted({i[0] for i in machine.instances})) or "none"
        raise UsageError(
            f"no AWS or Google machine with {machine.devices_of_host}x {machine.chip} is in the offers",
            f"offers are from: {have}",
        )
    provider, kind, region, devices = found
    if isinstance(spec, ServeSpec):
        each = _each(spec, devices)
        count = machine.hosts * -(-spec.replicas // each)
        command = f"{_install(spec)}{_replicas(spec, min(each, spec.replicas))}"
        by_hand = LaunchFile("serve.sh", script(spec, get_tool(_engine(spec)), _start(spec)), script=True)
        check = _check(spec)
    else:
        count, command = machine.hosts, train_command(spec, trainer(spec)[0], spec.steps)
        by_hand, check = _trained(spec, "train.sh", spec.steps), _trained(spec, "verify.sh", MEASURED)
    # a host of several must be told its rank and the first one's address, a trainer where data are: that is for
    # whoever starts them
    command = command if machine.hosts == 1 and not asked_for(command) else ""
    area = region if region not in ("", "all", "any") else REGIONS[provider]
    render = aws if provider == "aws" else google
    inside = (f"no rule opens port {PORT} to the outside: run verify.sh on the machine",)
    text = comment(spec, tool, inside if isinstance(spec, ServeSpec) else ()) + hcl(
        render(kind, area, count, command), tool
    )
    files = (LaunchFile("main.tf", text), check)
    return files if command else (*files, by_hand)


def _engine(spec: ServeSpec) -> str:
    engine = ENGINES.get(spec.runtime, "vllm")
    if spec.runtime not in get_tool(engine).runtimes:
        raise UsageError(f"{spec.runtime} is not started by these files", "plan with --runtime vllm")
    return engine


def _install(spec: ServeSpec) -> str:
    """The command that installs the runtime, "" where the image of the machine must hold it."""
    rocm = spec.runtime == "vllm" and spec.machine.vendor == "amd"
    line = ROCM if rocm else INSTALLS.get(spec.runtime, "")
    return line.format(get_tool(_engine(spec)).version)


def _start(spec: ServeSpec) -> str:
    """What a shell runs to start one replica."""
    return _settings(spec) + str(serve_command(spec, _engine(spec)))


def _settings(spec: ServeSpec) -> str:
    """The settings file that the engine reads, written by the shell; "" where it reads none."""
    if _engine(spec) != "trtllm":
        return ""
    if spec.machine.hosts > 1:
        raise UsageError(f"a replica takes {spec.machine.hosts} hosts, which TensorRT-LLM joins by MPI")
    return f"cat > trtllm.yaml <<'END'\n{trtllm_settings(spec)}END\n"


def _each(spec: ServeSpec, devices: int) -> int:
    """Replicas that one machine holds; of chips whose devices cannot be told apart by a variable, one."""
    return max(1, devices // spec.machine.devices) if spec.machine.vendor in VISIBLE else 1


def _replicas(spec: ServeSpec, count: int) -> str:
    """The command of one replica, or those of several on devices and ports of their own."""
    command = str(serve_command(spec, _engine(spec)))
    if count == 1:
        return _start(spec)
    n, name = spec.machine.devices, VISIBLE[spec.machine.vendor]
    parts = [
        f"{name}={','.join(str(d) for d in range(i * n, (i + 1) * n))} "
        + command.replace(f"--port {PORT}", f"--port {PORT + i}")
        for i in range(count)
    ]
    return _settings(spec) + " &\n".join(parts) + " &\nwait"


def _check(spec: ServeSpec) -> LaunchFile:
    return LaunchFile(
        "verify.sh", script(spec, get_tool("vllm"), verify(spec), notes=client(spec)), script=True
    )


def _trainer(spec: TrainSpec) -> tuple[str, tuple[str, ...]]:
    """The trainer that a wrapper starts, and what its user must know."""
    name, left = trainer(spec)
    return name, (
        f"trained with {get_tool(name).name} {get_tool(name).version}",
        *left,
        *train_notes(spec, name),
    )


def _asked(command: str) -> dict[str, Yaml]:
    """Variables that SkyPilot asks for, because they are empty."""
    names = asked_for(command)
    return {"envs": Own(dict.fromkeys(names, ""))} if names else {}


def _trained(spec: TrainSpec, file: str, steps: int) -> LaunchFile:
    """The script that every host of a training run starts, with NODE_RANK and HEAD_ADDRESS set."""
    name, left = trainer(spec)
    notes = (*left, *train_notes(spec, name))
    return LaunchFile(
        file, script(spec, get_tool(name), train_command(spec, name, steps), notes=notes), script=True
    )


def _hosts(command: str) -> str:
    """SkyPilot's names of rank and first host."""
    head = 'export NODE_RANK="$SKYPILOT_NODE_RANK"\nexport HEAD_ADDRESS="$(echo "$SKYPILOT_NODE_IPS" | head -n1)"\n'
    return head + command


def _served(spec: ServeSpec, tool: Tool, device: Mapping[str, Yaml]) -> str:
    engine = _engine(spec)
    image = IMAGES.get((spec.runtime, spec.machine.vendor))
    if image is None or spec.machine.cpu:
        raise UsageError(f"no image of {spec.runtime} for {spec.machine.chip} is known")
    labels: Yaml = {"app": "chipwise"}
    container: Yaml = {
        "name": "server",
        "image": image.format(get_tool(engine).version),
        "command": ["bash", "-c"],
        "args": [_start(spec)],
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
        return (
            token,
            "nodeSelector is a label of NVIDIA's GPU feature discovery: without it, name your own label",
        )
    return (token, f"add a nodeSelector where the cluster has other accelerators than {spec.machine.chip}")


def _token() -> Yaml:
    return {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "token", "optional": True}},
    }


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
