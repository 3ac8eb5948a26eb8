"""Training: torchrun alone, Megatron-LM, torchtitan, MaxText; other frameworks; of published weights the tools that
tune. Each with a short run whose measured step is held against the prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env, log_check, script
from chipwise.report.launch.facts import MEASURED, run_facts, told, unsaid
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.frameworks import FRAMEWORKS, framework_notes
from chipwise.report.launch.megatron import megatron_command, megatron_notes
from chipwise.report.launch.ranks import (
    SCHEDULES,
    in_memory,
    known_model,
    known_optimizer,
    known_precision,
    own_program,
    ranks,
    startable,
    uneven,
)
from chipwise.report.launch.spec import TrainSpec
from chipwise.report.launch.tuning import TUNERS, tuning_notes

ZERO = ("zero-1", "zero-2")  # weights are whole on every rank
FLOAT8 = ("llama3_405b",)  # configurations of torchtitan whose products are 8-bit


def torchrun(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """One process per device; the program and its own options are the user's."""
    return _pair(spec, "torchrun")


def megatron(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """`pretrain_gpt.py` under torchrun; random tokens where only the step is measured."""
    return _pair(spec, "megatron")


def torchtitan(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """`torchtitan.train` under torchrun, for the models of its registries."""
    return _pair(spec, "torchtitan")


def maxtext(spec: TrainSpec) -> tuple[LaunchFile, ...]:
    """MaxText on a slice, or on GPUs under JAX."""
    return _pair(spec, "maxtext")


def tuned(tool: str) -> Callable[[TrainSpec], tuple[LaunchFile, ...]]:
    """The files of a tool that trains published weights on."""
    return lambda spec: _pair(spec, tool)


def trainer(spec: TrainSpec) -> tuple[str, tuple[str, ...]]:
    """The trainer that wrappers start: MaxText on TPUs, elsewhere the first of Megatron-LM, torchtitan (of published
    weights TRL, Megatron-LM) and a program of the user's own that the plan can be told; and why those before it
    cannot. Raises `UsageError` without one."""
    ready = ("trl", "megatron") if spec.tuned else ("megatron", "torchtitan")
    names = ("maxtext",) if spec.machine.vendor == "google" else (*ready, "torchrun")
    left: list[UsageError] = []
    for name in names:
        try:
            train_command(spec, name, spec.steps)
        except UsageError as error:
            left.append(error)
        else:
            return name, tuple(f"not by {get_tool(n).name}: {e.what}" for n, e in zip(names, left, strict=False))
    raise left[0]


def train_command(spec: TrainSpec, target: str, steps: int) -> str:
    """The command of one host. Raises `UsageError` for what the tool cannot be told."""
    startable(spec, target)
    return COMMANDS[target](spec, steps)


def train_notes(spec: TrainSpec, target: str) -> tuple[str, ...]:
    """What the user of a trainer must know."""
    if target == "torchrun":
        what = {"": "", "full": f"trains all weights of {spec.model}, "}
        tuned = what.get(spec.tuned, f"trains {spec.tuned} adapters on the weights of {spec.model}, ")
        return (f"the program is yours: it {tuned}lays the model out as the title says and stops after STEPS steps",)
    if target == "megatron":
        return megatron_notes(spec)
    if target in TUNERS:
        return tuning_notes(spec, target)
    if target in FRAMEWORKS:
        return framework_notes(spec, target)
    share = f"the plan runs {spec.recomputed:.0%} of the layers again, {get_tool(target).name} can only do all: slower"
    notes = (share,) if 0.0 < spec.recomputed < 1.0 else ()
    if target == "maxtext" and not spec.recomputed and not spec.selective:
        notes = ("the plan runs nothing again, MaxText at least attention cores and element-wise work: slower",)
    if target == "maxtext":
        notes = (*notes, "started in MaxText's repository; DATA_PATH is a data set of Hugging Face with a text column")
    if target == "torchtitan":
        first = "the registry's configuration streams tokens from allenai/c4 and reads the tokenizer in ./assets/hf"
        return (first, *notes)
    return notes


def _torchtitan(spec: TrainSpec, steps: int) -> str:
    tool = get_tool("torchtitan")
    if spec.model not in tool.models:
        raise UsageError(
            f"{tool.name} {tool.version} has no configuration of {spec.model}", f"it has {', '.join(tool.models)}"
        )
    module, config = tool.models[spec.model]
    in_memory(spec, "torchtitan")
    known_precision(spec, "torchtitan", ("fp8",) if config in FLOAT8 else ("bf16",))
    known_optimizer(spec, "torchtitan")
    bits = spec.optimizer == "adamw-bf16"
    parts = spec.pp * spec.vp
    chunk = -(-spec.network.layers // parts)
    if spec.vp > 1 and -(-spec.network.layers // chunk) != parts:
        raise uneven(spec, parts)
    # without its optimiser cut up zero-1 would not fit: weights are cut as well, and kept whole once gathered
    cut = 1 if spec.sharding == "none" else min(spec.shard_ranks, spec.dp)
    if spec.dp % cut:
        raise _off_mesh(spec, cut, tool)
    facts = run_facts(spec, steps) | {
        "module": module,
        "config": config,
        "rank_batch": spec.global_batch // spec.dp,
        "copies": spec.dp // cut,
        "cut": cut,
        "whole": spec.sharding in ZERO,
        "named_schedule": SCHEDULES.get(spec.schedule),
        "chunk": chunk,
        "narrow": bits and not spec.master,
        "states_of_16_bits": bits and spec.master,
    }
    return f"{ranks(spec)} \\\n  {told(Command(tool, '-m torchtitan.train'), facts)}"


def _maxtext(spec: TrainSpec, steps: int) -> str:
    tool = get_tool("maxtext")
    (name,) = known_model(spec, tool)
    in_memory(spec, "maxtext")
    known_precision(spec, "maxtext", ("bf16", "fp8"))
    known_optimizer(spec, "maxtext")
    if spec.schedule in ("zero-bubble", "zb-v"):
        raise UsageError(f"{spec.schedule} is no schedule of {tool.name}", "plan with --layout schedule=1f1b")
    devices, micro = spec.machine.devices, spec.micro_batch * spec.dp
    passes, chunks = max(spec.global_batch // micro, 1), spec.pp * spec.vp
    if spec.network.layers % chunks:
        raise uneven(spec, chunks)
    if spec.pp > 1 and passes % spec.pp:
        raise UsageError(
            f"{tool.name} runs a multiple of {spec.pp} micro-batches through {spec.pp} stages, the plan has {passes}",
            "keep another pp of --layout",
        )
    # stages work off all micro-batches of a step, without them one runs
    at_once = passes if spec.pp > 1 else 1
    fsdp, replicas = _data_axes(spec)
    facts = run_facts(spec, steps) | {
        "name": name,
        "logs": Env("OUTPUT", "where logs go"),
        "device_batch": micro * at_once / devices,
        "summed": passes // at_once,
        "fsdp": fsdp,
        "replicas": replicas,
        "layers_of_part": spec.network.layers // chunks,
        "whole": spec.sharding in ZERO,
        "remat": _remat(spec),
    }
    return str(told(Command(tool, "python -m maxtext.trainers.pre_train.train src/maxtext/configs/base.yml"), facts))


def _remat(spec: TrainSpec) -> str:
    """MaxText's name of what is run again; its "none" runs all again, as "full" does (a checkpoint around each layer
    without a policy), so that the least is "minimal": only products are saved."""
    if spec.recomputed:
        return "custom" if spec.stash else "full"
    return "minimal_offloaded" if spec.stash else "minimal"


def _data_axes(spec: TrainSpec) -> tuple[int, int]:
    """Lengths of MaxText's axes `fsdp` and `data`. All axes multiply to the devices, `expert` too: replicas that share
    experts stand on it, and weights beside the experts are cut over it as over `fsdp` (its
    `expert_shard_attention_option`). Raises `UsageError` for ranks that make no such mesh."""
    if spec.dp % spec.ep:
        raise UsageError(
            f"experts over {spec.ep} ranks are an axis of MaxText's mesh next to tp and cp, the plan has dp {spec.dp}",
            "keep an ep of --layout that divides its dp",
        )
    cut = min(spec.shard_ranks, spec.dp) if spec.sharding == "fsdp" else 1
    fsdp, left = max(cut // spec.ep, 1), spec.dp // spec.ep
    if left % fsdp:
        raise _off_mesh(spec, cut, get_tool("maxtext"))
    return fsdp, left // fsdp


def _off_mesh(spec: TrainSpec, cut: int, tool: Tool) -> UsageError:
    """The refusal of weights cut over ranks that are no whole part of the replicas."""
    return UsageError(
        f"weights over {cut} of {spec.dp} replicas make no axis of {tool.name}'s mesh",
        "keep a shard of --layout that divides its dp",
    )


def _pair(spec: TrainSpec, target: str) -> tuple[LaunchFile, ...]:
    """The script of every host; a short run whose logged step time is the prediction's check."""
    tool, notes = get_tool(target), train_notes(spec, target)
    if left := unsaid(spec, target):
        notes = (*notes, f"the plan has {', '.join(left)}: set it yourself, no option of {tool.name} here does")
    train, verify = (train_command(spec, target, steps) for steps in (spec.steps, MEASURED))
    files = {"train.sh": (train,), "verify.sh": _measured(spec, tool, verify)}
    return tuple(
        LaunchFile(name, script(spec, tool, *commands, notes=notes), script=True) for name, commands in files.items()
    )


def _measured(spec: TrainSpec, tool: Tool, command: str) -> tuple[str, ...]:
    """The short run, and the program that reads the time of a step off its log where that says it."""
    if not tool.logged:
        return (command,)
    check = log_check(tool, spec.passes, steps=MEASURED, warm=MEASURED // 3)
    return (f"{command} 2>&1 | tee verify.log", check)


COMMANDS: Mapping[str, Callable[[TrainSpec, int], str]] = {
    "torchrun": own_program,
    "megatron": megatron_command,
    "torchtitan": _torchtitan,
    "maxtext": _maxtext,
    **TUNERS,
    **FRAMEWORKS,
}
