"""Choices as plans at the load that each carries: the given rate, or the best batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.api.context import Context
from chipwise.parallel.layout import Layout
from chipwise.predict.service import Loads
from chipwise.report.assemble import Fleet
from chipwise.report.records import PlanRecord
from chipwise.search.choose import Choice
from chipwise.search.evaluate import Evaluated
from chipwise.search.space import Group
from chipwise.search.targets import Caution, held, meets
from chipwise.units import Array
from chipwise.workload.workload import Workload

__all__ = ["operate"]

STEPS, ROUNDS = 9, 4
"""Loads tried between two batches of the grid, and how often: to 1/4096 of their distance."""


def operate(context: Context, choices: Sequence[Choice]) -> list[PlanRecord]:
    """Plans of choices of one group: all replicas but the spare ones share the given rate, or run full."""
    if not choices:
        return []
    e, w = choices[0].evaluated, context.workload
    rows = np.array([c.index for c in choices])
    columns = (np.asarray(e.group.layout.part(x))[rows] for x in ("tp", "pp", "dp", "ep"))
    group = Group(e.group.deployments, e.group.which[rows], Layout(*columns))
    carrying = np.array([float(c.carrying) for c in choices])
    engines = replace(e.engines_at(rows), replicas=carrying)
    if choices[0].prompt_workers:
        workers = np.array([float(c.prompt_workers) for c in choices])
        engines = replace(engines, prompt_servers=(workers * engines.ranks * engines.stages)[:, None])
    loads = context.loads(group, engines, e.rates[1].service)
    if w.task == "local":
        found = loads.closed(np.ones((len(choices), 1)))
    elif w.task == "serve" and w.rate_per_s is not None:
        found = loads.open(np.full((len(choices), 1), w.rate_per_s))
    else:
        caution = context.caution(e.group.deployments).take(group.which)
        found = loads.at(_most(e, choices, loads, w, caution)[:, None])
    largest = [float(e.prediction.requests_per_s[c.index, c.point]) for c in choices]
    fleets = [
        Fleet(c.carrying, c.spare, c.prompt_workers, most) for c, most in zip(choices, largest, strict=True)
    ]
    return context.records(group, loads, found, fleets, rate_per_s=w.rate_per_s)


def _most(e: Evaluated, choices: Sequence[Choice], loads: Loads, w: Workload, caution: Caution) -> Array:
    """The load of every choice at which throughput is highest within memory and targets [N]: at the batch of the grid
    that was found best, or between it and the next. Targets hold cautiously wherever they did at that batch."""
    sure = np.array([c.sure for c in choices])
    caution = Caution(*(np.where(sure, x, 1.0) for x in (caution.first, caution.further, caution.whole)))
    rows, points = (np.array([getattr(c, name) for c in choices]) for name in ("index", "point"))
    load = e.prediction.load
    low = load[rows, points]
    if choices[0].prompt_workers:  # as many as keep up at the batch of the grid
        return np.asarray(low)
    high = load[rows, np.minimum(points + 1, load.shape[1] - 1)]
    high = np.where(np.isfinite(high), high, low)
    best = np.array([c.tokens_per_s for c in choices]) * loads.engines.replicas
    which = np.arange(len(rows))
    for _ in range(ROUNDS):
        tried = low[:, None] * (high / low)[:, None] ** np.linspace(0.0, 1.0, STEPS)
        found = loads.at(tried)
        good = meets(*held(loads, found, w), w, caution)
        good &= (found.resident <= loads.engines.limit[:, None]) & (found.budget_share <= 1.0)
        good &= found.tokens_per_s >= best[:, None] * (1.0 - 1e-9)
        good[:, 0] = True
        # up to the first load that is too much
        last = np.argmin(np.concatenate([good, np.zeros((len(rows), 1), dtype=bool)], axis=1), axis=1) - 1
        low, high = tried[which, last], tried[which, np.minimum(last + 1, STEPS - 1)]
        best = np.maximum(best, found.tokens_per_s[which, last])
    return np.asarray(low)
