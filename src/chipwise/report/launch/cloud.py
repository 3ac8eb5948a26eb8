"""Machines to rent: SkyPilot and Terraform around the command of an engine or trainer."""

from __future__ import annotations

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.bench import PORT, verification
from chipwise.report.launch.command import asked_for, comment, script
from chipwise.report.launch.engines import serve_command
from chipwise.report.launch.facts import MEASURED
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.markup import Heredoc, Own, Raw, Yaml, hcl, yaml
from chipwise.report.launch.spec import ServeSpec, Spec, TrainSpec
from chipwise.report.launch.starting import engine_of, install, settings, start, trained_with
from chipwise.report.launch.training import train_command, train_notes, trainer

VISIBLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES"}
REGIONS = {"aws": "us-east-1", "gcp": "us-central1"}
DISK_GB = 500
BASH = "#!/usr/bin/env bash\n"

Block = tuple[str, dict[str, object]]
"""A block of Terraform: its head, and what stands in it."""


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
            **({"setup": setup} if (setup := install(spec)) else {}),
            "run": _hosts(start(spec)) if machine.hosts > 1 else start(spec),
        }
        first = LaunchFile("task.yaml", comment(spec, tool) + yaml(task, tool))
        return (first, verification(spec))
    name, notes = trained_with(spec)
    runs = [(file, train_command(spec, name, n)) for file, n in (("task", spec.steps), ("verify", MEASURED))]
    return tuple(
        LaunchFile(
            f"{file}.yaml", comment(spec, tool, notes) + yaml({**task, **_asked(command), "run": _hosts(command)}, tool)
        )
        for file, command in runs
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
        command = f"{install(spec)}{_replicas(spec, min(each, spec.replicas))}"
        by_hand = LaunchFile("serve.sh", script(spec, get_tool(engine_of(spec)), start(spec)), script=True)
        check = verification(spec)
    else:
        count, command = machine.hosts, train_command(spec, trainer(spec)[0], spec.steps)
        by_hand, check = _trained(spec, "train.sh", spec.steps), _trained(spec, "verify.sh", MEASURED)
    # a host of several must be told its rank and the first one's address, a trainer where data are: that is for
    # whoever starts them
    command = command if machine.hosts == 1 and not asked_for(command) else ""
    area = region if region not in ("", "all", "any") else REGIONS[provider]
    render = _aws if provider == "aws" else _google
    inside = (f"no rule opens port {PORT} to the outside: run verify.sh on the machine",)
    text = comment(spec, tool, inside if isinstance(spec, ServeSpec) else ()) + hcl(
        render(kind, area, count, command), tool
    )
    files = (LaunchFile("main.tf", text), check)
    return files if command else (*files, by_hand)


def _each(spec: ServeSpec, devices: int) -> int:
    """Replicas that one machine holds; of chips whose devices cannot be told apart by a variable, one."""
    return max(1, devices // spec.machine.devices) if spec.machine.vendor in VISIBLE else 1


def _replicas(spec: ServeSpec, count: int) -> str:
    """The command of one replica, or those of several on devices and ports of their own."""
    if count == 1:
        return start(spec)
    n, name = spec.machine.devices, VISIBLE[spec.machine.vendor]
    parts = [
        f"{name}={','.join(str(d) for d in range(i * n, (i + 1) * n))} "
        + str(serve_command(spec, engine_of(spec), PORT + i))
        for i in range(count)
    ]
    return settings(spec) + " &\n".join(parts) + " &\nwait"


def _asked(command: str) -> dict[str, Yaml]:
    """Variables that SkyPilot asks for, because they are empty."""
    names = asked_for(command)
    return {"envs": Own(dict.fromkeys(names, ""))} if names else {}


def _trained(spec: TrainSpec, file: str, steps: int) -> LaunchFile:
    """The script that every host of a training run starts, with NODE_RANK and HEAD_ADDRESS set."""
    name, left = trainer(spec)
    notes = (*left, *train_notes(spec, name))
    return LaunchFile(file, script(spec, get_tool(name), train_command(spec, name, steps), notes=notes), script=True)


def _hosts(command: str) -> str:
    """SkyPilot's names of rank and first host."""
    head = 'export NODE_RANK="$SKYPILOT_NODE_RANK"\nexport HEAD_ADDRESS="$(echo "$SKYPILOT_NODE_IPS" | head -n1)"\n'
    return head + command


def _aws(kind: str, region: str, count: int, start: str) -> list[Block]:
    """Instances of AWS that run `start` when they come up."""
    return [
        *_provider("aws", "6.0", region),
        (
            'resource "aws_instance" "chipwise"',
            {
                "count": count,
                "ami": Raw("var.image"),
                "instance_type": kind,
                **({"user_data": Heredoc(BASH + start)} if start else {}),
                "root_block_device": {"volume_size": DISK_GB},
                "tags": Raw('{ Name = "chipwise-${count.index}" }'),
            },
        ),
    ]


def _google(kind: str, region: str, count: int, start: str) -> list[Block]:
    """Instances of Google Cloud that run `start` whenever they come up."""
    return [
        *_provider("google", "7.0", region),
        (
            'resource "google_compute_instance" "chipwise"',
            {
                "count": count,
                "name": Raw('"chipwise-${count.index}"'),
                "machine_type": kind,
                "zone": f"{region}-a",
                "boot_disk": {"initialize_params": {"image": Raw("var.image"), "size": DISK_GB}},
                "network_interface": {"network": "default"},
                "scheduling": {"on_host_maintenance": "TERMINATE"},
                **({"metadata_startup_script": Heredoc(BASH + start)} if start else {}),
            },
        ),
    ]


def _provider(name: str, version: str, region: str) -> list[Block]:
    """Which provider, in which version, where; and the image, which the user names."""
    needed = f'{{ source = "hashicorp/{name}", version = "~> {version}" }}'
    return [
        ("terraform", {"required_providers": {name: Raw(needed)}}),
        ('variable "image"', {}),
        (f'provider "{name}"', {"region": region}),
    ]
