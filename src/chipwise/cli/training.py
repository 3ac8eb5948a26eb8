"""plan --task train|finetune: the answer."""

from __future__ import annotations

import sys

from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.parts import TrainOptions
from chipwise.api.requests.planning import PlanOptions
from chipwise.api.requests.training import TrainRequest
from chipwise.cli.options import Answer, refuse
from chipwise.report.table import render

__all__ = ["plan_training"]

SHARED = (
    "chips", "have", "max_chips", "max_usd_per_h", "precision", "set_", "price", "provider", "region", "owning",
    "parameters",
)  # fmt: skip


def plan_training(
    model: str, task: str, options: PlanOptions, training: TrainOptions, output: Answer, *, everything: bool
) -> None:
    """Rank chips, counts and layouts for a training run, and print them."""
    from chipwise.report.tables import tables
    from chipwise.report.training import kept

    refuse(options, PlanOptions, SHARED, task)
    given = {name: getattr(options, name) for name in SHARED if getattr(options, name) is not None}
    request = TrainRequest(model=model, task=task, **given, **vars(training))  # type: ignore[arg-type]
    report = output.of("train_plan", request)
    first = report.plans[0]
    alone = about(
        request, TrainRequest, chips=first.chip, counts=str(first.chips), layout=kept(first.layout), have=None,
        deadline=None, max_usd=None, max_usd_per_h=None, max_chips=None, curves=False,
    )  # fmt: skip
    command = f"{command_line('plan', alone)}{' --task train' if task == 'train' else ''}"
    shown = tables(report, command, everything=everything)
    if output.format == "csv":
        # one table to a file: with curves CSV holds them alone
        shown = shown[-1:] if report.scaling else shown[:1]
    render(shown, report, output.format, sys.stdout)
