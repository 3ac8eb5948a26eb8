"""Choices as plans at the load that each carries: the batch where the given rate is met, or the best one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.api.context import MARGIN, Context
from chipwise.parallel.layout import Layout
from chipwise.predict.inference import in_flight
from chipwise.report.plan_assemble import Fleet
from chipwise.report.records import PlanRecord
from chipwise.search.choose import Choice
from chipwise.search.pools import Workers
from chipwise.search.space import Group
from chipwise.units import Array

__all__ = ["operate"]

CARRIED = 1e-3  # of a rate: what a plan may miss it by
FINER = 9


def operate(context: Context, choices: Sequence[Choice]) -> list[PlanRecord]:
    """Plans of choices of one group, priced together without interpolation: all replicas but the spare ones share
    the given rate, or run full."""
    if not choices:
        return []
    e, w = choices[0].evaluated, context.workload
    rows = np.array([c.index for c in choices])
    columns = (np.asarray(e.group.layout.part(x))[rows] for x in ("tp", "pp", "dp", "ep"))
    group = Group(e.group.deployments, e.group.which[rows], Layout(*columns))
    loaded = w.rate_per_s is not None and w.task == "serve"
    spans = [_span(c, w.rate_per_s / c.carrying if loaded and w.rate_per_s else None) for c in choices]
    between = np.array([np.linspace(low, high, FINER if loaded else 1) for low, high in spans])
    batches = np.concatenate(
        [between[:, :1] * (1.0 - MARGIN), between, between[:, -1:] * (1.0 + MARGIN)], axis=1
    )
    layout = group.layouts(trailing=1)
    workers = None
    if choices[0].prompt_workers:
        workers = Workers(*(np.array([[float(n)] for n in counts]) for counts in _pools(choices)))
    micro = batches / (in_flight(w, layout.pp) * layout.dp)
    prediction = context.at_batches(group, micro, workers, e.rates)
    best = np.ones(len(choices), dtype=int)
    if loaded:
        # kernels step where a tile is full, so that rates need not rise all along
        rates = np.array([[(w.rate_per_s or 0.0) / c.carrying * (1.0 - CARRIED)] for c in choices])
        enough = prediction.requests_per_s[:, 1:-1] >= rates
        best = 1 + np.where(enough.any(axis=1), np.argmax(enough, axis=1), FINER - 1)
    largest = [float(e.prediction.requests_per_s[c.index, c.point]) for c in choices]
    fleets = [
        Fleet(c.carrying, c.spare, c.prompt_workers, most) for c, most in zip(choices, largest, strict=True)
    ]
    return context.records(group, prediction, best.tolist(), fleets)


def _pools(choices: Sequence[Choice]) -> tuple[list[int], list[int]]:
    return [c.prompt_workers for c in choices], [c.carrying for c in choices]


def _span(choice: Choice, rate: float | None) -> tuple[float, float]:
    """Decoding sequences of a replica between which a rate is first carried; the chosen batch without one."""
    p, i = choice.evaluated.prediction, choice.index
    best = float(p.batch[i, choice.point])
    if rate is None:
        return best, best
    rates: Array = p.requests_per_s[i, : choice.point + 1]
    carrying = rates >= rate * (1.0 - 1e-9)
    at = int(np.argmax(carrying)) if carrying.any() else choice.point
    ends = slice(max(at - 1, 0), at + 1)
    return float(np.interp(rate, rates[ends], p.batch[i, ends])), float(p.batch[i, at])
