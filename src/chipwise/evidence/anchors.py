"""Anchors: measured rows that correct the prediction of rows like them.

What a prediction misses is mostly one factor per deployment (kernel choice), so that one measured row removes most:
`shrunk` says which share. A deployment of serving is an architecture at a precision on a chip under a stack. Of a
submission to MLPerf it is the cell (chip, benchmark): other counts and rounds of it share the factor (residuals of 9 %
fall to 5), Offline and Server too; Interactive shares it with neither, and other benchmarks on the same chip share
nothing (errors grow), so that they are no anchors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.evidence.mlperf_rows import Run as Submission
from chipwise.units import Array

__all__ = ["Anchor", "Anchors", "Corrections", "Run", "correction", "corrections", "kriged", "shrunk"]

# Variance of log(measured / predicted) within a deployment over that between deployments: (0.06 / 0.15)^2 for
# time per token; times to the first token differ more within (0.4 is best on 2,617 served runs, 4 of a deployment
# known: 20 % off in the median, 22 % with 1); rates of submissions.
OWN_NOISE = 0.16
FIRST_NOISE = 0.4
CELL_NOISE = 0.3
OTHER_LAYOUT = 0.4  # worth of an anchor with another layout
OCTAVES = 3.0  # of concurrency, prompt or output, over which an anchor loses e of its worth
OTHER_SCENARIO = 0.6  # worth of a submission under another scenario of those that share the factor
THROUGHPUT = ("Offline", "Server")


def shrunk(rows: Iterable[tuple[Hashable, float, float]], noise: float) -> tuple[float, float]:
    """(shift, weight): sum w r / (sum w + noise) over the cells of (cell, worth, log residual), and what share of their
    residuals that is. Rows of one cell repeat its factor: a cell is worth as much as its best row, and its residual is
    their mean."""
    cells: dict[Hashable, list[tuple[float, float]]] = {}
    for cell, worth, residual in rows:
        cells.setdefault(cell, []).append((worth, residual))
    total = moved = 0.0
    for known in cells.values():
        most = max(w for w, _ in known)
        total += most
        moved += most * sum(w * r for w, r in known) / sum(w for w, _ in known)
    return (moved / (total + noise), total / (total + noise)) if cells else (0.0, 0.0)


def kriged(worth: Array, among: Array, noise: float) -> Array:
    """Shares [n] that known residuals r [n] have in the one looked for, k^T (K + noise I)^-1 r.

    `worth` k [n] is how much of its deviation each shares with it, `among` K [n, n] with one another, 1 at no distance;
    `noise` is the variance of repeats over that between cells. What is far moves it little, however much there is of
    it, and what says the same twice counts once (simple kriging; Matheron 1963, Rasmussen and Williams 2006).
    """
    if not len(worth):
        return worth
    known = among + noise * np.eye(len(worth))
    try:
        np.linalg.cholesky(known)
    except (
        np.linalg.LinAlgError
    ):  # loads that are partly unknown are near to all others, which need not be near
        values, vectors = np.linalg.eigh(among)
        known = (vectors * np.maximum(values, 0.0)) @ vectors.T + noise * np.eye(len(worth))
    return np.asarray(np.linalg.solve(known, worth))


SAME = 0.9  # worth from which on an anchor is the run itself, measured: the same layout, loads within a fifth


@dataclass(frozen=True)
class Run:
    """What ran: `deployment` is what must be the same for a row to correct another, `layout` and `load` (concurrency,
    prompt and output tokens) say how near it is. None or NaN of these: not settled yet, as near as can be."""

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
    """Factors for every row: `passes` on all its passes, `first` on its time to the first token after that. `used`
    counts the anchors of its deployment, `weight` is the share of their residuals that it took, `by` are their ids, the
    nearest first; `same`: one of them is this very run. `nearest_tpot_s` and `nearest_ttft_s` are what the nearest
    measured (NaN: nothing)."""

    passes: Array
    first: Array
    used: Array
    weight: Array
    same: Array
    by: tuple[tuple[str, ...], ...]
    nearest_tpot_s: Array
    nearest_ttft_s: Array


def corrections(runs: Sequence[Run], anchors: Anchors) -> Corrections:
    """What log(measured / predicted) of the anchors of each row's deployment say of its own (`kriged`): the less, the
    further they are in layout, load and lengths.

    An anchor never corrects the row that it is: rows are told apart by their id.
    """
    by_deployment: dict[Hashable, list[int]] = {}
    ratio = np.log(anchors.tpot_s / anchors.predicted_tpot_s)
    first_ratio = np.log(anchors.ttft_s / anchors.predicted_ttft_s)
    for i, run in enumerate(anchors.runs):
        if np.isfinite(ratio[i]):
            by_deployment.setdefault(run.deployment, []).append(i)
    size = len(runs)
    passes, first, used = np.ones(size), np.ones(size), np.zeros(size)
    weight, same = np.zeros(size), np.zeros(size, dtype=bool)
    by: list[tuple[str, ...]] = [()] * size
    nearest = np.full((2, size), np.nan)
    for row, run in enumerate(runs):
        near = [
            i for i in by_deployment.get(run.deployment, ()) if anchors.runs[i].id != run.id or not run.id
        ]
        if not near:
            continue
        worth = np.array([_worth(run, anchors.runs[i]) for i in near])
        among = np.array([[_worth(anchors.runs[i], anchors.runs[j]) for j in near] for i in near])
        share = kriged(worth, among, OWN_NOISE)
        x, weight[row] = float(share @ ratio[near]), float(share.sum())
        timed = np.isfinite(first_ratio[near])
        of_first = kriged(worth[timed], among[np.ix_(timed, timed)], FIRST_NOISE)
        rest = first_ratio[near][timed] - x
        passes[row], first[row], used[row] = np.exp(x), np.exp(float(of_first @ rest)), len(near)
        same[row] = worth.max() >= SAME
        ranked = np.array(near)[np.argsort(-worth, kind="stable")]
        by[row] = tuple(anchors.runs[i].id for i in ranked)
        nearest[:, row] = anchors.tpot_s[ranked[0]], anchors.ttft_s[ranked[0]]
    return Corrections(passes, first, used, weight, same, tuple(by), *nearest)


def _worth(run: Run, other: Run) -> float:
    apart = np.nansum([abs(np.log2(mine / its)) for mine, its in zip(run.load, other.load, strict=True)])
    alike = None in (run.layout, other.layout) or run.layout == other.layout
    return float((1.0 if alike else OTHER_LAYOUT) * np.exp(-apart / OCTAVES))


@dataclass(frozen=True, slots=True)
class Anchor:
    """A measured submission and the logarithm of measured over predicted."""

    run: Submission
    residual: float


def correction(run: Submission, anchors: Sequence[Anchor]) -> tuple[float, int]:
    """The logarithm by which the prediction of a submission is moved, and how many anchors move it: those of its cell
    under the nearest kind of scenario. A row is never its own anchor."""
    near = [a for a in anchors if a.run.cell == run.cell and (a.run.id != run.id or not run.id)]
    rows = [(run.cell, w, a.residual) for a in near if (w := _shared(run, a.run)) > 0.0]
    best = max((w for _, w, _ in rows), default=0.0)
    nearest = [row for row in rows if row[1] == best]
    return shrunk(nearest, CELL_NOISE)[0], len(nearest)


def _shared(run: Submission, other: Submission) -> float:
    if other.scenario == run.scenario:
        return 1.0
    return OTHER_SCENARIO if run.scenario in THROUGHPUT and other.scenario in THROUGHPUT else 0.0
