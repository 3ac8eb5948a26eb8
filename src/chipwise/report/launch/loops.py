"""Reinforcement learning: a loop that samples and trains, through verl or NeMo RL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from chipwise.catalog.tools import Tool, get_tool
from chipwise.catalog.trainer import learning_of
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env, script
from chipwise.report.launch.facts import told
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.spec import LoopSpec

SAMPLERS = ("vllm", "sglang", "trtllm")
"""Engines that verl samples with, by their names here and there."""
ENTRY = "python3 -m verl.trainer.main_ppo"
NEMO = "uv run examples/run_{loop}.py"
NEMO_CONFIGS = {"grpo": "grpo_math_1B", "distillation": "distillation_math"}
"""The settings that NeMo RL begins with, by its loop; behind the name where Megatron trains: `_megatron`."""
PORT = 6379  # of Ray's head
RANK = 16  # of adapters, as the plan has them
REWARDS = "rewards"  # what is learned, by the table of learning rates
MEASURED = 3  # steps of the run that verifies a prediction
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
BLOCKS = "fp8_block"
"""What NeMo RL's engines quantise weights to as they take them, where fp8 is asked (docs.nvidia.com/nemo/rl, fp8)."""


def verl(spec: LoopSpec) -> tuple[LaunchFile, ...]:
    """A script for every host, and the same loop for a few steps. Raises `UsageError` for chips, software or a number
    format that verl has no setting for here, and for hosts that are shared between sampling and training apart."""
    _checked(spec, get_tool("verl"), SAMPLERS, (*DTYPES, "fp8"))
    if spec.teacher:
        raise UsageError("verl learns from no teacher here", "launch it --for nemo-rl")
    mini = max(spec.prompts // spec.updates, 1) * spec.samples
    if mini % spec.layout.dp:
        raise UsageError(
            f"verl shares {mini} answers of a step of the optimiser evenly, not among {spec.layout.dp} ranks",
            f"plan with --layout dp=N that divides {mini}, or another --prompts",
        )
    note = "to verify the plan: timing_s/step of its log; rewards are a function of your own (reward.*)"
    return _scripts(spec, get_tool("verl"), _command, [note])


def nemo_rl(spec: LoopSpec) -> tuple[LaunchFile, ...]:
    """The same through NeMo RL, in a checkout of it. Raises `UsageError` for chips, software, an algorithm or a number
    format that it has no setting for here, and for hosts that are shared between sampling and training apart."""
    tool = get_tool("nemo-rl")
    _checked(spec, tool, ("vllm",), (*DTYPES, "fp8", BLOCKS))
    if spec.critic:
        raise UsageError(f"{tool.name} trains no critic here", "plan with --algorithm grpo, or --for verl")
    if spec.method == "lora" and spec.layout.sharding != "fsdp":
        raise UsageError(f"{tool.name} trains adapters under FSDP here", "plan with --trainer pytorch-fsdp")
    if spec.layout.vp > 1:
        raise UsageError(f"{tool.name} has no virtual stages here", "plan with --layout schedule=1f1b, or --for verl")
    notes = [
        "in a checkout of github.com/NVIDIA-NeMo/RL; to verify the plan: Total step time of its log",
        "each line of TRAIN_FILES has input and output, by which answers are graded (env.math)",
    ]
    if spec.teacher:
        notes.append("the teacher is spread over devices as the file of --config says (teacher.*)")
    return _scripts(spec, tool, _nemo_command, notes)


def _scripts(
    spec: LoopSpec, tool: Tool, command: Callable[[LoopSpec, int], Command], notes: list[str]
) -> tuple[LaunchFile, ...]:
    """The loop, and a few steps of it, with what comes first on several hosts."""
    hosts = -(-(spec.train_devices + spec.sample_devices) // spec.machine.per_host)
    ray = ""
    if hosts > 1:
        notes.append(f"on each of {hosts} hosts, the first with NODE_RANK=0")
        ray = _joined(hosts * spec.machine.per_host)
    files = {"train.sh": spec.steps, "verify.sh": min(MEASURED, spec.steps)}
    return tuple(
        LaunchFile(name, script(spec, tool, f"{ray}{command(spec, steps)}", notes=notes), script=True)
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


def _checked(spec: LoopSpec, tool: Tool, samplers: Sequence[str], formats: Sequence[str]) -> None:
    if spec.machine.vendor not in tool.vendors:
        raise UsageError(
            f"{tool.name} does not run on {spec.machine.chip} here", f"plan on chips of {', '.join(tool.vendors)}"
        )
    if spec.runtime not in samplers:
        raise UsageError(
            f"{tool.name} does not sample with {spec.runtime}", f"plan with --runtime {' or '.join(samplers)}"
        )
    if spec.precision not in DTYPES or spec.rollout_precision not in formats:
        raise UsageError(
            f"{tool.name} does not train in {spec.precision} and sample in {spec.rollout_precision} here",
            "plan with --precision bf16 and --rollout-precision bf16 or fp8",
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
        "packed": -(-layout.micro_batch * (spec.longest_prompt + spec.longest) // layout.cp),
        "critic": spec.critic,
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
        "selective": layout.recompute == "selective",
        "first": spec.outer[0],
        "last": spec.outer[1],
        "engine": spec.runtime,
        "samples": spec.samples,
        "engine_tp": spec.tp,
        "engine_pp": spec.pp,
        "fp8": spec.rollout_precision in ("fp8", BLOCKS),
        "apart": bool(spec.sample_devices),
        "sampling_hosts": -(-spec.sample_devices // per_host),
        "sampling_devices": min(spec.sample_devices, per_host),
        "hosts": -(-spec.train_devices // per_host),
        "devices": train,
        "steps": steps,
    }
    return told(Command.of("verl", ENTRY), facts)


def _nemo_command(spec: LoopSpec, steps: int) -> Command:
    per_host, layout = spec.machine.per_host, spec.layout
    megatron, loop = layout.sharding != "fsdp", "distillation" if spec.teacher else "grpo"
    whole = spec.train_devices + spec.sample_devices
    facts = {
        "prompts": spec.prompts,
        "samples": spec.samples,
        "steps": steps,
        "teacher": spec.teacher,
        "apart": bool(spec.sample_devices),
        "reference": spec.reference,
        "model": spec.model,
        "batch": max(spec.prompts // spec.updates, 1) * spec.samples,
        "micro_batch": layout.micro_batch,
        "length": spec.longest_prompt + spec.longest,
        "dtype": DTYPES[spec.precision],
        "megatron": megatron,
        "pytorch": str(not megatron).lower(),
        "recomputed": str(layout.recompute != "none").lower(),
        "tp": layout.tp,
        "pp": layout.pp,
        "cp": layout.cp,
        "ep": layout.ep,
        "sequence": str(layout.tp > 1).lower(),
        "first": spec.outer[0],
        "last": spec.outer[1],
        "adapters": RANK if spec.method == "lora" else 0,
        "longest": spec.longest,
        "engine_tp": spec.tp,
        "engine_pp": spec.pp,
        "fp8": spec.rollout_precision in ("fp8", BLOCKS),
        "sampling_hosts": -(-spec.sample_devices // per_host),
        "sampling_devices": min(spec.sample_devices, per_host),
        "keeps": str(steps > MEASURED).lower(),
        "rate": learning_of(spec.method, inf, REWARDS).rate,
        "data": Env("TRAIN_FILES", "JSON lines with prompts"),
        "all_hosts": -(-whole // per_host),
        "of_host": min(whole, per_host),
    }
    config = f"examples/configs/{NEMO_CONFIGS[loop]}{'_megatron' if megatron else ''}.yaml"
    command = Command.of("nemo-rl", NEMO.format(loop=loop)).option("--config", config)
    return told(command, facts)
