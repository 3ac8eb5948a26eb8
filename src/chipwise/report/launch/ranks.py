"""torchrun: one process per device, and what keeps a plan from a trainer."""

from __future__ import annotations

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env
from chipwise.report.launch.facts import facts_of, told
from chipwise.report.launch.spec import TrainSpec

SCHEDULES = {
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "gpipe": "GPipe",
    "zero-bubble": "InterleavedZeroBubble",
    "zb-v": "ZBVZeroBubble",
}  # of pipelines, as PyTorch calls them


def ranks(spec: TrainSpec, program: str = "torchrun") -> Command:
    """`torchrun`, or a program that takes its options, on every host of the plan."""
    return told(Command.of("torchrun", program), facts_of(spec))


def own_program(spec: TrainSpec, steps: int) -> str:
    """A program of the user's own under torchrun."""
    return f"export STEPS={steps:d}\n{ranks(spec)} \\\n  {Env('PROGRAM', 'the training program')}"


def startable(spec: TrainSpec, target: str) -> None:
    """Raises `UsageError` where a trainer does not run on the plan's chips, trains other weights, or is not told here
    what waits in host memory."""
    tool = get_tool(target)
    if spec.stash > 0 and not tool.stashes:
        raise UsageError(
            f"{tool.name} is not configured here to keep activations in host memory", "plan with --layout stash=0"
        )
    if spec.machine.vendor not in tool.vendors or spec.machine.cpu:
        raise UsageError(
            f"{tool.name} does not run on {spec.machine.chip}", f"it runs on chips of {', '.join(tool.vendors)}"
        )
    _taught(spec, tool)
    if "random" not in tool.weights and not spec.tuned:
        raise UsageError(
            f"{tool.name} trains published weights, the plan starts from random ones", "plan with --task finetune"
        )
    if spec.tuned and target != "torchrun" and "published" not in tool.weights:
        what = "all weights" if spec.tuned == "full" else f"{spec.tuned} adapters"
        raise UsageError(
            f"the plan trains {what} of a published model, {tool.name} starts from random weights here"
            + (f": {tool.untuned}" if tool.untuned else ""),
            "plan with --task train",
        )


def _taught(spec: TrainSpec, tool: Tool) -> None:
    """Raises `UsageError` for an objective that the tool is not told here."""
    if spec.objective not in tool.objectives and tool.id != "torchrun":
        raise UsageError(
            f"{tool.name} is configured here to train for {', '.join(tool.objectives)}, not for {spec.objective}"
        )


def uneven(spec: TrainSpec, parts: int) -> UsageError:
    """The refusal of layers that do not divide."""
    layers = spec.network.layers
    legal = [str(n) for n in range(2, layers + 1) if layers % n == 0 and n < parts]
    return UsageError(
        f"{layers} layers cannot be cut evenly into {parts} parts",
        f"keep a pp of --layout that divides them: {', '.join(legal)}" if legal else "plan with --layout pp=1",
    )


def in_memory(spec: TrainSpec, target: str) -> None:
    """Raises `UsageError` for an optimiser in host memory, which the tool is not told here."""
    if spec.offload > 0:
        raise UsageError(
            f"{get_tool(target).name} is not configured here to keep the optimiser in host memory",
            "plan with --layout offload=0",
        )


def known_optimizer(spec: TrainSpec, target: str) -> str:
    """What the tool calls the optimiser of a plan, by default its own. Raises `UsageError` for one that it is not told
    here."""
    tool = get_tool(target)
    known = tool.optimizers or {"adamw": ""}
    if spec.optimizer not in ("", *known):
        raise UsageError(
            f"{tool.name} is not configured here for optimizer={spec.optimizer}, only for {', '.join(known)}",
            f"plan with --memory optimizer={next(iter(known))}",
        )
    return known[spec.optimizer or next(iter(known))]


def known_precision(spec: TrainSpec, target: str, known: tuple[str, ...]) -> None:
    """Raises `UsageError` for products that the tool is not told here."""
    if spec.precision not in known:
        raise UsageError(
            f"{get_tool(target).name} is not configured here to train in {spec.precision}",
            f"plan with --precision {known[0]}",
        )


def known_model(spec: TrainSpec, tool: Tool) -> tuple[str, ...]:
    """The tool's own names of a model. Raises `UsageError` where it has none."""
    if spec.model not in tool.models:
        raise UsageError(
            f"{tool.name} has no configuration of {spec.model} in the table of options",
            f"it has {', '.join(tool.models)}",
        )
    return tool.models[spec.model]
