"""Reinforcement learning: a loop that samples and trains, through verl."""

from __future__ import annotations

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env, script
from chipwise.report.launch.facts import told
from chipwise.report.launch.spec import LaunchFile, LoopSpec

SAMPLERS = ("vllm", "sglang", "trtllm")
"""Engines that verl samples with, by their names here and there."""
ENTRY = "python3 -m verl.trainer.main_ppo"
PORT = 6379  # of Ray's head
RANK = 16  # of adapters, as the plan has them
MEASURED = 3  # steps of the run that verifies a prediction
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}


def verl(spec: LoopSpec) -> tuple[LaunchFile, ...]:
    """A script for every host, and the same loop for a few steps. Raises `UsageError` for chips, software or a number
    format that verl has no setting for here, and for hosts that are shared between sampling and training apart."""
    tool = get_tool("verl")
    _checked(spec)
    hosts = -(-(spec.train_devices + spec.sample_devices) // spec.machine.per_host)
    notes = ["to verify the plan: timing_s/step of its log; rewards are a function of your own (reward.*)"]
    ray = ""
    if hosts > 1:
        notes.append(f"on each of {hosts} hosts, the first with NODE_RANK=0")
        ray = _joined(hosts * spec.machine.per_host)
    files = {"train.sh": spec.steps, "verify.sh": min(MEASURED, spec.steps)}
    return tuple(
        LaunchFile(name, script(spec, tool, f"{ray}{_command(spec, steps)}", notes=notes), script=True)
        for name, steps in files.items()
    )


def _joined(devices: int) -> str:
    """What comes first on each of several hosts: those behind the first join it and stay until they are stopped, and
    it waits for all devices."""
    head = Env("HEAD_ADDRESS", "address of the first host", then=f":{PORT}")
    wait = "do sleep 5; done"
    return (
        f'if [ "${{NODE_RANK:?}}" != 0 ]; then\n'
        f"  until ray start --address={head}; {wait}\n"
        f"  exec sleep infinity\nfi\n"
        f"ray start --head --port={PORT}\n"
        f'until ray status | grep -q "/{devices}.0 GPU"; {wait}\n\n'
    )


def _checked(spec: LoopSpec) -> None:
    tool = get_tool("verl")
    if spec.machine.vendor not in tool.vendors:
        raise UsageError(
            f"{tool.name} does not run on {spec.machine.chip} here",
            f"plan on chips of {', '.join(tool.vendors)}",
        )
    if spec.runtime not in SAMPLERS:
        raise UsageError(
            f"{tool.name} does not sample with {spec.runtime}", f"plan with --runtime {' or '.join(SAMPLERS)}"
        )
    if spec.precision not in DTYPES or spec.rollout_precision not in (*DTYPES, "fp8"):
        raise UsageError(
            f"{tool.name} does not train in {spec.precision} and sample in {spec.rollout_precision} here",
            "plan with --precision bf16 and --rollout-precision bf16 or fp8",
        )
    mini = max(spec.prompts // spec.updates, 1) * spec.samples
    shared = spec.layout.dp * spec.layout.micro_batch
    if mini % shared:
        raise UsageError(
            f"{tool.name} shares {mini} answers of a step of the optimiser evenly, not among {spec.layout.dp} ranks "
            f"by {spec.layout.micro_batch}",
            f"plan with --layout dp=N that divides {mini}, or another --prompts",
        )
    split = [n for n in (spec.train_devices, spec.sample_devices) if n and n % spec.machine.per_host]
    if spec.sample_devices and split:
        raise UsageError(
            f"{tool.name} gives whole hosts to sampling and to training",
            "plan with more --counts, --train-share 50%, or --placement together",
        )


def _command(spec: LoopSpec, steps: int) -> Command:
    per_host, layout = spec.machine.per_host, spec.layout
    train = min(spec.train_devices, per_host)
    facts = {
        "megatron": layout.sharding != "fsdp",
        "estimator": "gae" if spec.critic else "grpo",
        "data": Env("TRAIN_FILES", "parquet with prompts"),
        "held": Env("VAL_FILES", "parquet to test on"),
        "prompts": spec.prompts,
        "prompt_tokens": spec.longest_prompt,
        "longest": spec.longest,
        "model": spec.model,
        "adapters": RANK if spec.method == "lora" else 0,
        "mini": max(spec.prompts // spec.updates, 1),
        "micro_batch": layout.micro_batch,
        "reference": spec.reference,
        "dtype": DTYPES[spec.precision],
        "tp": layout.tp,
        "pp": layout.pp,
        "vp": layout.vp if layout.vp > 1 else 0,
        "cp": layout.cp,
        "ep": layout.ep,
        "shards": layout.shard_ranks,
        "parked": not spec.sample_devices,
        "recomputed": layout.recompute != "none",
        "engine": spec.runtime,
        "samples": spec.samples,
        "engine_tp": spec.tp,
        "engine_pp": spec.pp,
        "fp8": spec.rollout_precision == "fp8",
        "apart": bool(spec.sample_devices),
        "sampling_hosts": -(-spec.sample_devices // per_host),
        "sampling_devices": min(spec.sample_devices, per_host),
        "hosts": -(-spec.train_devices // per_host),
        "devices": train,
        "steps": steps,
    }
    return told(Command.of("verl", ENTRY), facts)
