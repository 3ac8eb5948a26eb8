"""Anchors: measured rows that correct the prediction of rows like them.

What a prediction misses is mostly one factor per deployment (kernel choice), so that one measured row removes most
of it nearby: `kriged` says which share. A deployment of serving is an architecture at a precision on a chip under a
stack; time per token and to the first token have factors of their own, as other things make them. Other sizes and
formats of its family there, its cell, share a part where the same people measured them. Of a
submission to MLPerf it is the cell (chip, benchmark): other counts and rounds of it share the factor (residuals of 9 %
fall to 5), Offline and Server too; Interactive shares it with neither, and other benchmarks on the same chip share
nothing (errors grow), so that they are no anchors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from chipwise.calibrate.parameter import Z80
from chipwise.evidence.discrepancy import end_of_t, families
from chipwise.evidence.judge import Basis
from chipwise.evidence.mlperf_rows import MlperfRun as Submission
from chipwise.units import Array
from chipwise.values import dataclass

CELL_NOISE = 0.3
"""Of rates of submissions, variance of log(measured / predicted) within a cell over that between cells."""
CELL_LEFT = math.sqrt(1.0 - 1.0 / (1.0 + CELL_NOISE) ** 2)
"""What one row of a cell leaves of the standard deviation of another, with its own noise."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How much of its deviation log(measured / predicted) one run of a cell shares with another: exp(- the sum of
    |log2 of their ratio| / octaves) over concurrency, prompt and output tokens (`load`) and each of the `degrees` of
    the layout, times `kin` between deployments. `noise` is the variance of repeats over that between deployments."""

    noise: float
    degrees: float
    load: tuple[float, float, float]
    kin: float

    def of(self, runs: Sequence[OwnRun], others: Sequence[OwnRun]) -> Array:
        """Shares [runs, others]; what is unknown of either is as near as can be."""
        apart = np.nansum(np.abs(_loads(runs)[:, None] - _loads(others)) / np.array(self.load), axis=2)
        pairs = [[self._pair(a, b) for b in others] for a in runs]
        return np.asarray(np.exp(-apart) * np.array(pairs).reshape(len(runs), len(others)))

    def _pair(self, a: OwnRun, b: OwnRun) -> float:
        """What layouts and deployments leave."""
        shared = 1.0 if a.deployment == b.deployment else self.kin
        if a.layout is None or b.layout is None or a.layout == b.layout or len(a.layout) != len(b.layout):
            return shared
        octaves = sum(abs(math.log2(x / y)) for x, y in zip(a.layout, b.layout, strict=True))
        return shared * math.exp(-octaves / self.degrees)


# Octaves that bring what is not known of 1,951 served runs, by fits that never saw their cell, nearest with 1 or 4 of
# their deployment known; noise such that 80 % intervals hold 80 % of those next to a known one too. What deployments of
# a cell share: correlations of their means, 0.34 to 0.45 in three tables (47 cells); of first tokens no table agrees
# with another that they move an answer the right way.
FURTHER = Likeness(noise=0.1, degrees=2.7, load=(3.6, 30.0, 30.0), kin=0.4)
"""Of time per token. Kernels change with the batch and the shard, hardly with lengths."""
FIRST = Likeness(noise=0.15, degrees=2.7, load=(2.1, 3.4, 30.0), kin=0.0)
"""Of the time to the first token: the queue changes with concurrency, what is computed with the prompt."""
SCALE_DEGREES = 2.0
"""Of freedom of how far a deployment is off as a whole: by marginal likelihood 2 for time per token and 1.5 for first
tokens over 48 deployments of two tables (3 and more on one of them, which is seven deployments)."""
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
    except np.linalg.LinAlgError:  # loads that are partly unknown are near to all others, which need not be near
        values, vectors = np.linalg.eigh(among)
        known = (vectors * np.maximum(values, 0.0)) @ vectors.T + noise * np.eye(len(worth))
    return np.asarray(np.linalg.solve(known, worth))


SAME_OCTAVES = 0.32
"""Octaves of the load, all told, up to which an anchor is the run itself, measured: a fifth more or less."""
Degrees: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class OwnRun:
    """What ran: `cell` is what must be the same for a row to correct another, and of one `deployment` it does so
    wholly; `layout` (degrees, as many for all of a deployment) and `load` (concurrency, prompt and output tokens) say
    how near it is. None or NaN of these: not settled yet, as near as can be."""

    id: str
    cell: Hashable
    deployment: Hashable
    layout: Degrees | None
    load: tuple[float, float, float]

    def on_curve(self, other: OwnRun) -> bool:
        """Whether both differ in concurrency alone."""
        return (self.deployment, self.layout, self.load[1:]) == (other.deployment, other.layout, other.load[1:])


@dataclass(frozen=True)
class Anchors:
    """Measured rows: what ran, what was predicted for them, what was measured (seconds, NaN = not)."""

    runs: Sequence[OwnRun]
    predicted_tpot_s: Array
    predicted_ttft_s: Array
    tpot_s: Array
    ttft_s: Array


@dataclass(frozen=True, slots=True)
class Correction:
    """What own runs leave of the intervals of a deployment (1: all): of time per token and of the time to the first
    token. `same`: one of them is this very run."""

    further: float = 1.0
    first: float = 1.0
    same: bool = False

    @property
    def mostly(self) -> bool:
        """Whether what was measured of the deployment itself says more than all that was measured elsewhere."""
        return self.further**2 <= 0.5

    def basis(self, otherwise: Basis | None = None) -> Basis | None:
        """What a figure rests on."""
        return "measured" if self.same else "calibrated" if self.mostly else otherwise


@dataclass(frozen=True)
class Corrections:
    """Factors for every row: `passes` on all its passes, `first` on its time to the first token after that. `used`
    counts the anchors of its deployment, `by` are their ids, the nearest first; `same`: one of them is this very run.
    `left` and `first_left` say how wide an interval is (as logarithm) after that, of time per token and of the first
    token, 1 where there are no anchors. `nearest_tpot_s`
    and `nearest_ttft_s` are what the nearest measured (NaN: nothing)."""

    passes: Array
    first: Array
    left: Array
    first_left: Array
    used: Array
    same: Array
    by: tuple[tuple[str, ...], ...]
    nearest_tpot_s: Array
    nearest_ttft_s: Array

    def of_times(self, quantiles: Mapping[str, tuple[Array, Array]]) -> dict[str, tuple[Array, Array]]:
        """Quantiles of TTFT and TPOT [N, 1] by name, with what the runs say of them."""
        first, further = (self.passes * self.first)[:, None], self.passes[:, None]
        return {name: (a * first, b * further) for name, (a, b) in quantiles.items()}

    def of(self, row: int) -> Correction:
        """What holds of the figures of one row."""
        return Correction(float(self.left[row]), float(self.first_left[row]), bool(self.same[row]))


def corrections(
    runs: Sequence[OwnRun], anchors: Anchors, spread: Sequence[Array], predicted: Sequence[Array] | None = None
) -> Corrections:
    """What log(measured / predicted) of the anchors of each row's cell say of its own (`kriged`): the less, the further
    they are in layout, load and lengths. Of the first token what its own deviations say beyond the share of those of
    time per token that the model of error lets weigh in it, which stands for it where nobody timed it.

    `spread` [2, row] is the standard deviation of the logarithms of both figures where nothing of the cell was
    measured, `predicted` [2, row] their seconds, under which corrected times do not fall as load rises (`_rising`).

    An anchor never corrects the row that it is: rows are told apart by their id.
    """
    by_cell: dict[Hashable, list[int]] = {}
    ratio = np.log(anchors.tpot_s / anchors.predicted_tpot_s)
    first_ratio = np.log(anchors.ttft_s / anchors.predicted_ttft_s)
    share = families()["serving"].first
    carried = share * np.where(np.isfinite(ratio), ratio, 0.0)
    for i, run in enumerate(anchors.runs):
        if np.isfinite(ratio[i]) or np.isfinite(first_ratio[i]):
            by_cell.setdefault(run.cell, []).append(i)
    size = len(runs)
    passes, first, used = np.ones(size), np.ones(size), np.zeros(size)
    left, first_left, same = np.ones(size), np.ones(size), np.zeros(size, dtype=bool)
    by: list[tuple[str, ...]] = [()] * size
    nearest = np.full((2, size), np.nan)
    log_t = np.log(np.full((2, size), np.nan) if predicted is None else np.array(predicted))
    for row, run in enumerate(runs):
        near = [i for i in by_cell.get(run.cell, ()) if anchors.runs[i].id != run.id or not run.id]
        if not near:
            continue
        known = [anchors.runs[i] for i in near]
        asked = [run, *known]  # what is said of the anchors themselves holds times up
        x, left[row] = _moved(FURTHER, asked, known, ratio[near], float(spread[0][row]))
        beyond, first_left[row] = _moved(FIRST, asked, known, (first_ratio - carried)[near], float(spread[1][row]))
        mine = (
            np.append(log_t[0, row], np.log(anchors.predicted_tpot_s[near])),
            np.append(log_t[1, row], np.log(anchors.predicted_ttft_s[near])),
        )
        moved = _rising(x, mine[0], asked)
        passes[row], used[row] = np.exp(moved), len(near)
        first[row] = np.exp(_rising(share * x + beyond, mine[1], asked) - moved)
        same[row] = any(_same(run, other) for other in known)
        ranked = np.array(near)[np.argsort(-FURTHER.of([run], known)[0], kind="stable")]
        by[row] = tuple(anchors.runs[i].id for i in ranked)
        nearest[:, row] = anchors.tpot_s[ranked[0]], anchors.ttft_s[ranked[0]]
    return Corrections(passes, first, left, first_left, used, same, tuple(by), *nearest)


def _moved(
    likeness: Likeness, asked: Sequence[OwnRun], known: Sequence[OwnRun], deviations: Array, spread: float
) -> tuple[Array, float]:
    """What those of `known` whose deviation is finite move each of `asked` by, as logarithms, and what is left of the
    standard deviation of the first.

    How far a deployment is off as a whole is a t of v = `SCALE_DEGREES`, whose 80 % ends are those of `spread`. Of m
    runs of the deployment with deviations r and A = K + noise I the ends of a new one are those of a t of v + m, with
    (1 - k^T A^-1 k / (1 + noise)) (v + (1 + noise) r^T A^-1 r / c^2) / (v + m) of the variance, c the scale of that t:
    where runs are further off than is usual, so is what lies next to them, and where they are nearer, that too.
    """
    run = asked[0]
    timed = [
        i
        for i, other in enumerate(known)
        if np.isfinite(deviations[i]) and (likeness.kin > 0.0 or other.deployment == run.deployment)
    ]
    at, seen = [known[i] for i in timed], deviations[timed]
    worth, among = likeness.of(asked, at), likeness.of(at, at)
    share = kriged(worth.T, among, likeness.noise)
    one = 1.0 + likeness.noise
    mine = np.array([other.deployment == run.deployment for other in at], dtype=bool)
    scatter = _scatter(among[np.ix_(mine, mine)], seen[mine], likeness.noise, spread)
    rest = max(1.0 - float(share[:, 0] @ worth[0]) / one, 0.0)
    return np.asarray(share.T @ seen), math.sqrt(rest) * scatter


def _scatter(among: Array, seen: Array, noise: float, spread: float) -> float:
    """The 80 % end of a new run of a deployment over the usual one, after what is `seen` of others, nearness apart."""
    if not len(seen):
        return 1.0
    v, m = SCALE_DEGREES, len(seen)
    scale = spread * Z80 / end_of_t(v)
    odd = (1.0 + noise) * max(float(seen @ kriged(seen, among, noise)), 0.0) / scale**2
    return end_of_t(v + m) / end_of_t(v) * math.sqrt((v + odd) / (v + m))


def _rising(moved: Array, log_t: Array, asked: Sequence[OwnRun]) -> float:
    """By what logarithm the first of `asked` is moved, so that times of runs that differ in concurrency alone do not
    fall as it rises: `moved` [asked] is what is known of each, `log_t` what was predicted.

    Between runs corrected times stay between theirs. Beyond the most a correction fades no faster than predicted times
    rise; below the least it does not fade where it would let times rise towards fewer requests.
    """
    run, at = asked[0], float(moved[0])
    curve = [i for i in range(1, len(asked)) if run.on_curve(asked[i]) and np.isfinite(log_t[i])]
    if not curve or not np.isfinite(log_t[0]) or not np.isfinite(run.load[0]):
        return at
    curve.sort(key=lambda i: asked[i].load[0])
    times = np.maximum.accumulate([float(moved[i] + log_t[i]) for i in curve])
    loads = np.array([asked[i].load[0] for i in curve])
    below, above = times[loads <= run.load[0]], times[loads >= run.load[0]]
    if not len(below):
        return min(at, float(moved[curve[0]]), float(above[0] - log_t[0])) if moved[curve[0]] < 0.0 else at
    at = max(at, float(below[-1] - log_t[0]))
    return min(at, float(above[0] - log_t[0])) if len(above) else at


def _loads(runs: Sequence[OwnRun]) -> Array:
    loads: Array = np.log2(np.array([run.load for run in runs], dtype=float).reshape(-1, 3))
    return loads


def _same(run: OwnRun, other: OwnRun) -> bool:
    octaves = np.nansum(np.abs(_loads([run]) - _loads([other])))
    alike = None in (run.layout, other.layout) or run.layout == other.layout
    return run.deployment == other.deployment and alike and octaves <= SAME_OCTAVES


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
