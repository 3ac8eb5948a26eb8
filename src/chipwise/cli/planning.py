"""plan, fit, estimate, explain, compare; train, which plan --task train|finetune is too, and rl."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.parts import JobOptions, TrainOptions
from chipwise.api.requests.planning import (
    CompareRequest,
    EstimateRequest,
    ExplainRequest,
    FitRequest,
    PlanOptions,
    PlanRequest,
)
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.cli.options import SavedOutput, refuse, taking
from chipwise.errors import UsageError
from chipwise.report.training import kept

# Training is read here to be pointed to where it is answered.
EveryTask = Literal["serve", "batch", "local", "train", "finetune"]
Served = Annotated[EveryTask, Parameter(show_choices=False)]
Planned = Annotated[
    EveryTask, Parameter(help="serve many users, batch for throughput, local for one user, train or finetune")
]
Target = Annotated[str | None, Parameter(show=False)]


@taking(PlanRequest, TrainOptions, task=Planned)
def plan(
    given: dict[str, Any],
    *,
    all_: Annotated[bool, Parameter(name="--all", help="show every chip that has a plan")] = False,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """Rank chips, counts and layouts for a workload: time, throughput, cost and bottleneck."""
    if given["task"] in ("train", "finetune"):
        plan_training(given, output, everything=all_)
        return
    refuse(given, TrainOptions, tuple(JobOptions.__dataclass_fields__), given["task"])
    names = PlanRequest.__dataclass_fields__
    request = PlanRequest(**{name: value for name, value in given.items() if name in names})
    _show_plans("plan", request, output, everything=all_)


@taking(CompareRequest, task=Served)
def compare(
    given: dict[str, Any],
    *,
    all_: Annotated[bool, Parameter(name="--all", help="show all that is known of each plan")] = False,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """The best plan of each of some chips, side by side."""
    _no_training(given["task"], f"--chips {given['chips']}")
    _show_plans("compare", CompareRequest(**given), output, everything=all_)


@taking(EstimateRequest, task=Served)
def estimate(
    given: dict[str, Any],
    *,
    ttft: Target = None,
    tpot: Target = None,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """One plan in full: its times, what they are made of, its memory."""
    _placed(given, ttft=ttft, tpot=tpot)
    request = EstimateRequest(**given)
    report = output.of("estimate", request)
    output.show(report.tables(command_line("plan", request.planned())), report)


@taking(ExplainRequest, task=Served)
def explain(
    given: dict[str, Any],
    *,
    ttft: Target = None,
    tpot: Target = None,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """The bottleneck of a plan and what would help: shares of time, elasticities, memory by kind."""
    _placed(given, ttft=ttft, tpot=tpot)
    report = output.of("explain", ExplainRequest(**given))
    output.show(report.tables(), report)


@taking(FitRequest)
def fit(given: dict[str, Any], *, output: SavedOutput = SavedOutput()) -> None:  # noqa: B008
    """Does it fit: memory by kind on every chip, smallest count, largest batch and context, what would help."""
    report = output.of("fit", FitRequest(**given))
    output.show(report.tables(everything=True), report)


def _show_plans(verb: str, request: PlanRequest, output: SavedOutput, *, everything: bool) -> None:
    report = output.of(verb, request)
    command = command_line("explain", request.explained(report.plans[0]))
    output.show(report.tables(command, everything=everything), report)


def _no_training(task: str, where: str) -> None:
    """Training is planned alone. Raises `UsageError` with what shows it."""
    if task in ("train", "finetune"):
        raise UsageError(
            f"--task {task} is answered by plan", f"plan --task {task} {where} shows it, one layout in full"
        )


def _placed(given: dict[str, Any], **targets: str | None) -> None:
    """Raises `UsageError` for what says nothing about one given plan: a target, and training."""
    _no_training(given["task"], f"--chips {given['chip']} --counts {given['count'] or 8}")
    for name, value in targets.items():
        if value is not None:
            raise UsageError(
                f"one given plan takes --concurrency or --rate, not --{name}, which is a target",
                "plan takes targets",
                field=name,
            )


SHARED = tuple(name for name in PlanOptions.__dataclass_fields__ if name in TrainRequest.__dataclass_fields__)


@taking(TrainRequest)
def train(
    given: dict[str, Any],
    *,
    all_: Annotated[bool, Parameter(name="--all", help="show every chip that has a plan")] = False,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """Rank chips, counts and layouts for a training run: step time, days, cost, goodput and bottleneck."""
    _show(TrainRequest(**given), output, everything=all_)


@taking(RlRequest)
def rl(given: dict[str, Any], *, output: SavedOutput = SavedOutput()) -> None:  # noqa: B008
    """Reinforcement learning on one fleet: sampling answers, scoring, training and handing weights over, together or
    apart: time of a step, days, cost and bottleneck."""
    report = output.of("rl", RlRequest(**given))
    output.show(report.tables(), report)


def plan_training(given: dict[str, Any], output: SavedOutput, *, everything: bool) -> None:
    """The same for `plan --task train` and `finetune`."""
    refuse(given, PlanOptions, SHARED, given["task"])
    names = TrainRequest.__dataclass_fields__
    request = TrainRequest(**{name: value for name, value in given.items() if name in names})
    _show(request, output, everything=everything)


def _show(request: TrainRequest, output: SavedOutput, *, everything: bool) -> None:
    report = output.of("train", request)
    first = report.plans[0]
    owned = bool(request.have)
    alone = about(
        request,
        TrainRequest,
        layout=kept(first.layout),
        have=f"{first.chips}x{first.chip}" if owned else None,
        chips=None if owned else first.chip,
        counts=None if owned else str(first.chips),
        trainer=first.stack if first.instead_of else request.trainer,
        confidence=None,
        deadline=None,
        max_usd=None,
        max_usd_per_h=None,
        max_chips=None,
        curves=False,
    )
    command = f"{command_line('plan', alone)}{' --task train' if request.task == 'train' else ''}"
    shown = report.tables(command, everything=everything)
    if output.format == "csv":
        # one table to a file: with curves CSV holds them alone
        shown = shown[-1:] if report.scaling else shown[:1]
    output.show(shown, report)
