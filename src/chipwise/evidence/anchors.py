"""Anchors: measured rows of the user's own that correct the prediction of rows of the same deployment.

A deployment is an architecture at a precision on a chip under a stack. What a prediction misses is mostly one
factor per deployment on every pass (kernel choice), so that one measured row removes most of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.units import Array

__all__ = ["Anchors", "Corrections", "Run", "corrections"]

# Variance of log(measured / predicted) within a deployment over that between deployments: (0.06 / 0.15)^2 for
# time per token; times to the first token differ as much within as between.
OWN_NOISE = 0.16
FIRST_NOISE = 1.0
OTHER_LAYOUT = 0.4  # worth of an anchor with another layout
OCTAVES = 3.0  # of concurrency, prompt or output, over which an anchor loses e of its worth


@dataclass(frozen=True)
class Run:
    """What ran: `deployment` is what must be the same for a row to correct another, `layout` and `load` (concurrency,
    prompt and output tokens) say how near it is."""

    id: str
    deployment: Hashable
    layout: Hashable
    load: tuple[float, float, float]


@dataclass(frozen=True)
class Anchors:
    """Measured rows: what ran, what was predicted for them, what was measured (seconds, NaN = not)."""

    runs: Sequence[Run]
    predicted_tpot_s: Array
    predicted_ttft_s: Array
    tpot_s: Array
    ttft_s: Array


@dataclass(frozen=True)
class Corrections:
    """Factors for every row: `passes` on all its passes, `first` on its time to the first token after that.
    `used` counts the anchors of its deployment."""

    passes: Array
    first: Array
    used: Array


def corrections(runs: Sequence[Run], anchors: Anchors) -> Corrections:
    """Shrunk means of log(measured / predicted) over the anchors of each row's deployment:
    x = sum w r / (sum w + noise), w falling with the distance of layout, load and lengths.

    An anchor never corrects the row that it is: rows are told apart by their id.
    """
    by_deployment: dict[Hashable, list[int]] = {}
    for i, run in enumerate(anchors.runs):
        by_deployment.setdefault(run.deployment, []).append(i)
    ratio = np.log(anchors.tpot_s / anchors.predicted_tpot_s)
    size = len(runs)
    passes, first, used = np.ones(size), np.ones(size), np.zeros(size)
    for row, run in enumerate(runs):
        near = [
            i for i in by_deployment.get(run.deployment, ()) if anchors.runs[i].id != run.id or not run.id
        ]
        near = [i for i in near if np.isfinite(ratio[i])]
        if not near:
            continue
        weight = np.array([_worth(run, anchors.runs[i]) for i in near])
        x = float(weight @ ratio[near] / (weight.sum() + OWN_NOISE))
        scaled = anchors.predicted_ttft_s[near] * np.exp(x)
        rest = np.log(anchors.ttft_s[near] / scaled)
        known = np.isfinite(rest)
        passes[row] = np.exp(x)
        if known.any():
            first[row] = np.exp(weight[known] @ rest[known] / (weight[known].sum() + FIRST_NOISE))
        used[row] = len(near)
    return Corrections(passes, first, used)


def _worth(run: Run, other: Run) -> float:
    apart = sum(abs(np.log2(mine / its)) for mine, its in zip(run.load, other.load, strict=True))
    return float((1.0 if run.layout == other.layout else OTHER_LAYOUT) * np.exp(-apart / OCTAVES))
