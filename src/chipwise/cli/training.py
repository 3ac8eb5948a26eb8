"""train, which plan --task train|finetune is too, and rl."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.planning import PlanOptions
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.cli.options import SavedOutput, refuse, taking
from chipwise.report.training import kept

SHARED = tuple(name for name in PlanOptions.__dataclass_fields__ if name in TrainRequest.__dataclass_fields__)


@taking(TrainRequest)
def train(
    given: dict[str, Any],
    *,
    all_: Annotated[bool, Parameter(name="--all", help="show every chip that has a plan")] = False,
    output: SavedOutput = SavedOutput(),  # noqa: B008
) -> None:
    """Rank chips, counts and layouts for a training run: step time, days, cost, goodput, and what bounds it."""
    _show(TrainRequest(**given), output, everything=all_)


@taking(RlRequest)
def rl(given: dict[str, Any], *, output: SavedOutput = SavedOutput()) -> None:  # noqa: B008
    """Reinforcement learning on one fleet: sampling answers, scoring, training and handing weights over, together or
    apart: time of a step, days, cost, and what bounds it."""
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
    alone = about(
        request, TrainRequest, chips=first.chip, counts=str(first.chips), layout=kept(first.layout), have=None,
        trainer=first.stack if first.instead_of else request.trainer, confidence=None,
        deadline=None, max_usd=None, max_usd_per_h=None, max_chips=None, curves=False,
    )  # fmt: skip
    command = f"{command_line('plan', alone)}{' --task train' if request.task == 'train' else ''}"
    shown = report.tables(command, everything=everything)
    if output.format == "csv":
        # one table to a file: with curves CSV holds them alone
        shown = shown[-1:] if report.scaling else shown[:1]
    output.show(shown, report)
