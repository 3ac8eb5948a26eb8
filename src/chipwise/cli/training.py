"""plan --task train|finetune: options, and the answer."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.catalog.pricing import Pricing
from chipwise.cli.options import pairs, split, whole
from chipwise.errors import UsageError
from chipwise.report.table import Format, render
from chipwise.units import parse_quantity

__all__ = ["Training", "plan_training"]


@Parameter(name="*")
@dataclass(frozen=True)
class Training:
    """What is trained; used with --task train and finetune."""

    tokens: Annotated[str, Parameter(help="training: tokens in all, as in 15T")] = "1T"
    seq: Annotated[str, Parameter(help="training: tokens of a sequence")] = "4096"
    global_batch: Annotated[
        int, whole("training: sequences of a step; 0: 4 M tokens, fine-tuning 0.25 M")
    ] = 0
    counts: Annotated[str | None, Parameter(help="training: chips to try, as in 64,256")] = None
    deadline: Annotated[str | None, Parameter(help="training: at most so long, as in 30d")] = None
    max_usd: Annotated[float | None, Parameter(help="training: at most so many dollars")] = None
    layout: Annotated[str | None, Parameter(help="training: degrees to keep, as in tp=8,pp=4")] = None
    curves: Annotated[bool, Parameter(help="training: weak and strong scaling too")] = False


def plan_training(
    model: str,
    task: str,
    chips: str | None,
    precision: str | None,
    changes: dict[str, str],
    training: Training,
    pricing: Pricing,
    form: Format,
    *,
    everything: bool,
) -> None:
    """Rank chips, counts and layouts for a training run, and print them."""
    from chipwise.api.train import train_plan
    from chipwise.report.train_view import scaling_view, train_view

    arguments: dict[str, Any] = {
        "task": task,
        "changes": changes,
        "pricing": pricing,
        "curves": training.curves,
    }
    if chips:
        arguments["chips"] = split(chips)
    if precision:
        arguments["precision"] = precision
    if training.max_usd is not None and not training.max_usd > 0:
        raise UsageError(f"--max-usd {training.max_usd:g} is out of range", "more than 0")
    deadline = training.deadline
    degrees = pairs(training.layout, "--layout")
    kept = {name: int(parse_quantity(text, "", name, low=1, high=1e6)) for name, text in degrees.items()}
    report = train_plan(
        model,
        tokens=parse_quantity(training.tokens, "", "--tokens", low=1, high=1e18),
        seq=int(parse_quantity(training.seq, "", "--seq", low=1, high=1e8)),
        global_batch=training.global_batch,
        counts=tuple(int(parse_quantity(c, "", "--counts", low=1, high=1e6)) for c in split(training.counts)),
        deadline_days=None
        if deadline is None
        else parse_quantity(deadline, "s", "--deadline", low=1.0) / 86400.0,
        max_usd=training.max_usd,
        layout=kept,
        **arguments,
    )
    tables = [train_view(report, everything=everything)]
    if report.scaling:
        tables.append(scaling_view(report))
    render(tables, report, form, sys.stdout)
