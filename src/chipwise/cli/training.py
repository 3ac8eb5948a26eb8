"""plan --task train|finetune: the answer."""

from __future__ import annotations

import sys

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
    from chipwise.report.train_view import scaling_view, train_view

    refuse(options, PlanOptions, SHARED, task)
    given = {name: getattr(options, name) for name in SHARED if getattr(options, name) is not None}
    request = TrainRequest(model=model, task=task, **given, **vars(training))  # type: ignore[arg-type]
    report = output.of("train_plan", request)
    tables = [train_view(report, everything=everything)]
    if report.scaling:
        tables.append(scaling_view(report))
    render(tables, report, output.format, sys.stdout)
