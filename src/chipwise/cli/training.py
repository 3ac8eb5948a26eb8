"""plan --task train|finetune: the answer."""

from __future__ import annotations

import sys
from typing import Any

from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.planning import PlanOptions
from chipwise.api.requests.training import TrainRequest
from chipwise.cli.options import Answer, refuse
from chipwise.report.table import render

__all__ = ["plan_training"]

SHARED = (
    "chips", "have", "max_chips", "max_usd_per_h", "precision", "set_", "price", "provider", "region", "owning",
    "parameters",
)  # fmt: skip


def plan_training(given: dict[str, Any], output: Answer, *, everything: bool) -> None:
    """Rank chips, counts and layouts for a training run, and print them."""
    from chipwise.report.train_notes import kept
    from chipwise.report.train_view import layout_views, scaling_view, train_view

    task = given["task"]
    refuse(given, PlanOptions, SHARED, task)
    names = TrainRequest.__dataclass_fields__
    request = TrainRequest(**{name: value for name, value in given.items() if name in names})
    report = output.of("train_plan", request)
    first = report.plans[0]
    alone = about(
        request, TrainRequest, chips=first.chip, counts=str(first.chips), layout=kept(first.layout), have=None,
        deadline=None, max_usd=None, max_usd_per_h=None, max_chips=None, curves=False,
    )  # fmt: skip
    command = f"{command_line('plan', alone)}{' --task train' if task == 'train' else ''}"
    several = len(report.plans) > 1
    tables = [train_view(report, command if several else "", everything=everything)]
    tables += [] if several else layout_views(first)
    if report.scaling:
        # one table to a file: with curves CSV holds them alone
        tables = [scaling_view(report)] if output.format == "csv" else [*tables, scaling_view(report)]
    elif output.format == "csv":
        tables = tables[:1]
    render(tables, report, output.format, sys.stdout)
