"""Choices as plans at the load that each carries: the given rate, or the best batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.api.context import Context
from chipwise.parallel.layout import Layout
from chipwise.report.plan_assemble import Fleet
from chipwise.report.records import PlanRecord
from chipwise.search.choose import Choice
from chipwise.search.space import Group

__all__ = ["operate"]


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
        p = e.prediction
        found = loads.at(np.array([[float(p.load[c.index, c.point])] for c in choices]))
    largest = [float(e.prediction.requests_per_s[c.index, c.point]) for c in choices]
    fleets = [
        Fleet(c.carrying, c.spare, c.prompt_workers, most) for c, most in zip(choices, largest, strict=True)
    ]
    return context.records(group, loads, found, fleets)
