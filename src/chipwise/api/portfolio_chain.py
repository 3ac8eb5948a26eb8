"""Chains of a fleet: an answer that passes through several models one after the other, with one target for all of them.

Each step is asked about at several targets of its own, parts of that of the chain. What a candidate takes is a figure
with its interval; candidates of different steps whose times together miss the target as surely as was asked clash, and
the assignment takes no such set. So the solver splits the time among steps, where that is cheapest.

Errors of two steps add up as far as they are alike: those of two language models as the model of error says what
deployments share, those of other models fully on one kind of chip and independently on different ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import ceil, sqrt
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chipwise.api.requests.planning import PlanRequest
from chipwise.calibrate.parameter import Z80
from chipwise.catalog.chips import get_chip
from chipwise.evidence.axes import compared_axes, served_family
from chipwise.evidence.discrepancy import apart_of, spread_of
from chipwise.evidence.judge import summed, within
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanRecord
from chipwise.report.portfolio import WHOLE, ChainTimeRecord, StepTimeRecord
from chipwise.report.records import Figure
from chipwise.units import Array, format_seconds
from chipwise.values import dataclass

PARTS = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1)
"""ratio: of a chain's target that a step is asked to take at most, until nothing does. Chosen: closest where a step
takes most of it; moves which candidates a step has."""
LONGER = (1.5, 2.5, 5.0, 12.0)
"""ratio: the same of a step that alone misses the target, until something does. Chosen: enough to name what a chain
takes at the least; moves no plan."""
SPLITS = (0.35, 0.65)
"""ratio: of the time until a step passes on its first tokens, the part until the first of them. Chosen: a short prompt
and a long one lie between; moves which candidates such a step has."""
MOST_TIMES = 5
"""Candidates of a step on a supply that differ in time and cost."""
MOST_TOGETHER = 30_000
"""Sets of candidates, one for each step of a chain, whose times are added up."""
LATE = 0.99  # the share of requests that a wait of networks is told of
END = 0.9  # the probability of the upper end of an interval
ROUNDED = 1.0 + 1e-9


@dataclass(frozen=True)
class CalledModel:
    """A model that the API of a vendor (`chip`) serves, with the times that its user measured there: to the first
    token, and per token after it; of a chain with a percentile those of it."""

    chip: str
    ttft_s: Figure
    tpot_s: Figure
    runtime: str = ""
    precision: str = ""


Timed: TypeAlias = PlanRecord | MediaPlan | CalledModel
"""What runs a step of a chain."""


@dataclass(frozen=True)
class Chain:
    """What its steps have in common: its name and load in words, the `limits` on its time (which time, seconds), which
    are kept with the probability `confidence`, in the mean or for a share of requests (`percentile`, None: the mean).
    Requests come as in a `log` ("": at random)."""

    name: str
    asked: str
    limits: tuple[tuple[str, float], ...]
    confidence: float
    percentile: float | None = None
    log: str = ""


@dataclass(frozen=True)
class ChainStep:
    """A step of a chain: each request to the chain makes so many `calls` of its model at once. The next step begins
    after it has written `passes` tokens of its `output` (both 0: a network without tokens, which passes on all at
    once). `tpot`: its own target for the time per token. `alone`: it is all of its chain."""

    chain: Chain
    name: str
    calls: int = 1
    passes: float = 0.0
    output: float = 0.0
    last: bool = False
    tpot: str | None = None
    alone: bool = False

    @property
    def label(self) -> str:
        """Its name in the fleet."""
        return self.chain.name if self.alone else f"{self.chain.name}/{self.name}"

    @property
    def pieces(self) -> int:
        """How many pieces it passes on, for each of which the next step is called."""
        return ceil(self.output / self.passes) if self.output else 1

    def written(self, limit: str) -> float:
        """Tokens that the chain waits for, of the time that a limit is on."""
        if limit == WHOLE:
            return self.output
        return 1.0 if self.last else self.passes

    def targets(self, part: float) -> tuple[Mapping[str, str | None], ...]:
        """The targets of questions about it, so that it takes at most this part of each limit."""
        if not self.output:
            return ({"e2e": _seconds(part * min(s for _, s in self.chain.limits))},)
        found = [self._targets(part, split) for split in SPLITS]
        return tuple(dict(said) for said in dict.fromkeys(tuple(said.items()) for said in found))

    def _targets(self, part: float, split: float) -> dict[str, str | None]:
        first: list[float] = []
        whole: list[float] = []
        each: list[float] = []
        for limit, s in self.chain.limits:
            tokens = self.written(limit)
            if tokens <= 1.0:
                first.append(part * s / self.calls)
            elif tokens >= self.output:
                whole.append(part * s)
            else:
                first.append(split * part * s / self.calls)
                each.append((1.0 - split) * part * s / (tokens - 1.0))
        own = None if self.output <= 1.0 else self.tpot
        return {
            "ttft": _seconds(min(first)) if first else None,
            "e2e": _seconds(min(whole)) if whole else None,
            "tpot": own or (_seconds(min(each)) if each else None),
        }

    def times(self, plan: Timed) -> tuple[Figure, ...]:
        """What it takes under a plan, for each limit. Of several calls of a language model the last waits for the
        prompts of the others, as if all went to one replica."""
        if isinstance(plan, MediaPlan):
            seen = plan.latency_s.mid if plan.answered_s is None else plan.answered_s
            return (_scaled(plan.latency_s, seen / plan.latency_s.mid),) * len(self.chain.limits)
        first = plan.ttft_s if isinstance(plan, CalledModel) else self.times_first(plan)
        return tuple(_more(first, plan.tpot_s, self.written(limit) - 1.0) for limit, _ in self.chain.limits)

    def times_first(self, plan: PlanRecord) -> Figure:
        """The time until the last of its calls has its first token."""
        return _scaled(plan.ttft_s, 1.0 + (self.calls - 1) * plan.prefill_s / plan.ttft_s.mid)

    def late(self, plan: Timed) -> tuple[float, ...]:
        """For each limit what its percentile takes over the mean; 1 where the limit is on the mean."""
        share = self.chain.percentile
        if share is None or isinstance(plan, CalledModel):
            return (1.0,) * len(self.chain.limits)
        if isinstance(plan, MediaPlan):
            if not plan.answered_s or not plan.answered_p99_s:
                return (1.0,) * len(self.chain.limits)
            spread = float(_spread_of(np.array(plan.answered_p99_s / plan.answered_s), LATE))
            z = NormalDist().inv_cdf(share)
            return (float(np.exp(z * spread - spread**2 / 2.0)),) * len(self.chain.limits)
        tail, ttft = plan.tails[f"p{100.0 * share:g}"], plan.ttft_s.mid
        first_s = (tail.ttft_s or np.inf) / ttft * self.times_first(plan).mid
        each = zip(self.times(plan), self.chain.limits, strict=True)
        more = [self.written(limit) - 1.0 for limit, _ in self.chain.limits]
        return tuple(
            (first_s + (n * (tail.tpot_s or np.inf) if n > 0.0 else 0.0)) / t.mid
            for n, (t, _) in zip(more, each, strict=True)
        )

    def part(self, plan: Timed) -> float:
        """The part of its chain's limits that it takes under a plan, as surely as asked."""
        times = zip(self.times(plan), self.late(plan), self.chain.limits, strict=True)
        sure = self.chain.confidence
        return max(late * within(sure, sqrt(t.low * t.high), t.low, t.high) / s for t, late, (_, s) in times)


def _seconds(s: float) -> str:
    return f"{s:.10g}s"


def _spread_of(late: Array, share: float) -> Array:
    """The deviation of the logarithm of times of which this share takes `late` times the mean at most, as far as a
    log-normal one can."""
    z = NormalDist().inv_cdf(share)
    root = np.maximum(z**2 - 2.0 * np.log(np.maximum(late, 1.0)), 0.0)
    return np.asarray(z - np.sqrt(root))


def _scaled(figure: Figure, by: float) -> Figure:
    return Figure(figure.mid * by, figure.low * by, figure.high * by, figure.basis, figure.provisional)


def _more(first: Figure, each: Figure | None, count: float) -> Figure:
    """The time until a token that comes so many after the first."""
    if each is None or count <= 0.0:
        return first
    mid, low, high = (getattr(first, end) + count * getattr(each, end) for end in ("mid", "low", "high"))
    return Figure(mid, low, high, first.basis, first.provisional)


def asked_at(question: PlanRequest, targets: Mapping[str, str | None]) -> dict[str, Any]:
    """The targets of a step as fields of its question: of a network without tokens, which has one alone, that."""
    return {name: said for name, said in targets.items() if said or getattr(question, name) is not None}


@dataclass(frozen=True)
class Taken:
    """What a candidate of a step takes: its `plan` there, the `times` for each limit, dollars (or where it costs
    nothing chips) for each call a second (`cost`), and on which supply (`where`). `late` is what the percentile of its
    chain takes over the mean, for each limit (none: limits are on the mean)."""

    plan: Timed
    times: tuple[Figure, ...]
    cost: float
    where: tuple[int, bool]
    late: tuple[float, ...] = ()


@dataclass(frozen=True)
class TimedChain:
    """A chain with the candidates of each of its steps."""

    chain: Chain
    names: tuple[str, ...]
    steps: tuple[tuple[Taken, ...], ...]

    @cached_property
    def within_s(self) -> tuple[Array, ...]:
        """For each limit the seconds that candidates together take with the probability asked, an axis for each
        step; with a percentile that share of the requests."""
        shape = tuple(len(its) for its in self.steps)
        at = np.indices(shape).reshape(len(shape), -1)
        alike, found = self._alike(at), []
        for limit in range(len(self.chain.limits)):
            ends = [
                np.array([(t.times[limit].low, t.times[limit].high) for t in its])[i]
                for its, i in zip(self.steps, at, strict=True)
            ]
            low, high = np.moveaxis(np.array(ends), -1, 0).swapaxes(-1, -2)
            wide = np.log(high / low) / (2.0 * Z80)
            kept = summed(np.sqrt(low * high), wide, alike, self.chain.confidence)
            found.append((kept * self._late(at, limit)).reshape(shape))
        return tuple(found)

    def _late(self, at: NDArray[np.intp], limit: int) -> Array:
        """What the percentile takes of a sum over its mean, of sets of candidates [N]. Waits of steps are taken as
        independent of each other, and each time as log-normal."""
        share = self.chain.percentile
        if share is None:
            return np.ones(at.shape[1])
        each = [
            np.array([(t.times[limit].mid, t.late[limit]) for t in its])[i]
            for its, i in zip(self.steps, at, strict=True)
        ]
        mean, late = np.moveaxis(np.array(each), -1, 0).swapaxes(-1, -2)
        spread = _spread_of(late, share)
        whole = summed(mean * np.exp(-np.square(spread) / 2.0), spread, np.eye(len(at)), share)
        return np.asarray(whole / mean.sum(axis=-1))

    def _alike(self, at: NDArray[np.intp]) -> Array:
        """Correlations of the errors of the candidates of each step [N, S, S], of sets of them [S, N]."""
        found = np.ones((at.shape[1], len(at), len(at)))
        for i, j in combinations(range(len(at)), 2):
            found[:, i, j] = found[:, j, i] = _likeness(self.steps[i], self.steps[j])[at[i], at[j]]
        return found

    @property
    def late(self) -> NDArray[np.bool_]:
        """Which candidates together miss a limit, an axis for each step."""
        limits = self.chain.limits
        each = [kept > s * ROUNDED for kept, (_, s) in zip(self.within_s, limits, strict=True)]
        return np.asarray(np.any(each, axis=0))

    def clashes(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """The smallest sets of candidates (step, which of it) that miss a limit whatever the others are."""
        late = self.late
        known = np.zeros_like(late)
        every = tuple(range(late.ndim))
        for size in range(1, late.ndim + 1):
            for some in combinations(every, size):
                rest = tuple(axis for axis in every if axis not in some)
                new = late.all(axis=rest) & ~known.all(axis=rest)
                for place in np.argwhere(new).tolist():
                    yield tuple(zip(some, place, strict=True))
                known |= np.expand_dims(new, rest) if rest else new

    def records(self, models: Sequence[str]) -> tuple[ChainTimeRecord, ...]:
        """The time next to each limit, of the candidates that are slowest together."""
        found = []
        for limit, ((time, target), within_s) in enumerate(zip(self.chain.limits, self.within_s, strict=True)):
            worst = np.unravel_index(int(np.argmax(within_s)), within_s.shape)
            taken = [its[i] for its, i in zip(self.steps, worst, strict=True)]
            whole = sum(t.times[limit].mid for t in taken)
            steps = tuple(
                StepTimeRecord(name, model, t.plan.chip, t.times[limit], t.times[limit].mid / whole)
                for name, model, t in zip(self.names, models, taken, strict=True)
            )
            sure, alike = self.chain.confidence, self._alike(np.array(worst)[:, None])[0]
            narrower = _narrower([t.times[limit] for t in taken], alike)
            share = self.chain.percentile
            found.append(ChainTimeRecord(time, target, float(within_s.max()), sure, whole, steps, narrower, share))
        return tuple(found)

    def unreachable(self) -> str:
        """What the chain takes at the least where no candidates keep its limits, and which step takes most of it; ""
        where some do."""
        if not self.late.all():
            return ""
        over = [kept / s for kept, (_, s) in zip(self.within_s, self.chain.limits, strict=True)]
        worst = np.max(over, axis=0)
        best = np.unravel_index(int(np.argmin(worst)), worst.shape)
        limit = int(np.argmax([part[best] for part in over]))
        name, target = self.chain.limits[limit]
        took = [its[i].times[limit].mid for its, i in zip(self.steps, best, strict=True)]
        most = int(np.argmax(took))
        least = format_seconds(float(self.within_s[limit][best]))
        share = self.chain.percentile
        of = name if share is None else f"{name} of {share:.4g} of the requests"
        return (
            f"{of} takes {least} at the least with {self.chain.confidence:.0%} probability, the target is "
            f"{format_seconds(target)}; {self.names[most]} takes most of it, {format_seconds(took[most])} "
            f"({took[most] / sum(took):.0%})"
        )


def _narrower(times: Sequence[Figure], alike: Array) -> float:
    """The interval of a sum over that if errors were fully alike, by logarithms."""
    low, high = np.array([(t.low, t.high) for t in times]).T
    centres, wide = np.sqrt(low * high), np.log(high / low) / (2.0 * Z80)
    own, full = (
        np.log(summed(centres, wide, shared, END) / summed(centres, wide, shared, 0.5))
        for shared in (alike, np.ones_like(alike))
    )
    return float(own / full) if full > 0.0 else 1.0


def _likeness(one: Sequence[Taken], other: Sequence[Taken]) -> Array:
    """How far errors of the candidates of two steps are alike, correlations [n, m]."""
    known: dict[tuple[object, ...], float] = {}

    def asked(a: Timed, b: Timed) -> float:
        key = (*_kind(a), *_kind(b))
        if key not in known:
            known[key] = likeness(a, b)
        return known[key]

    return np.array([[asked(a.plan, b.plan) for b in other] for a in one])


def _kind(plan: Timed) -> tuple[object, ...]:
    return isinstance(plan, MediaPlan), plan.chip, plan.runtime, plan.precision


def likeness(one: Timed, other: Timed) -> float:
    """The correlation of the errors of two plans: of language models what the model of error says that deployments on
    these chips, in this software and format share, models taken as one; else 1 on one kind of chip, or at one vendor,
    and 0 on two."""
    if not (isinstance(one, PlanRecord) and isinstance(other, PlanRecord)):
        return float(one.chip == other.chip)
    family = served_family(one.runtime)
    if family != served_family(other.runtime):
        return float(one.chip == other.chip)
    mine, its = (compared_axes(get_chip(p.chip), p.runtime, p.precision) for p in (one, other))
    a, b = (spread_of(axes, family) for axes in (mine, its))
    sds = float(a.sd()[0]), float(b.sd()[0])
    means = float(a.mean[0]) - float(b.mean[0])
    shared = (sds[0] ** 2 + sds[1] ** 2 - apart_of(mine, its, family) ** 2 + means**2) / 2.0
    return float(np.clip(shared / (sds[0] * sds[1]), 0.0, 1.0))


def chosen(candidates: Sequence[Taken], most: int) -> list[int]:
    """Of the candidates of a step those that are worth adding up: on each supply, on chips of its own and on shared
    ones, each faster than all that cost less; of more than `most` the ends and those between that lie evenly."""
    places = dict.fromkeys(taken.where for taken in candidates)
    return sorted(i for where in places for i in _even(_faster(candidates, where), most))


def _faster(candidates: Sequence[Taken], where: tuple[int, bool]) -> list[int]:
    mine = [i for i, taken in enumerate(candidates) if taken.where == where]
    found: list[int] = []
    least = np.full(len(candidates[0].times), np.inf)
    for i in sorted(mine, key=lambda i: (candidates[i].cost, [f.high for f in candidates[i].times])):
        late = np.array([f.high for f in candidates[i].times])
        if (late < least).any():
            found.append(i)
            least = np.minimum(least, late)
    return found


def _even(found: Sequence[int], most: int) -> list[int]:
    if len(found) <= most:
        return list(found)
    at = np.unique(np.round(np.linspace(0, len(found) - 1, most)).astype(int))
    return [found[i] for i in at]


def worth(steps: Sequence[Sequence[Taken]]) -> list[list[int]]:
    """The candidates of each step that are worth adding up, so few on a supply that all sets of them can be."""
    for most in range(MOST_TIMES, 0, -1):
        found = [chosen(its, most) for its in steps]
        if np.prod([float(len(its)) for its in found]) <= MOST_TOGETHER:
            break
    return found
