"""The placements of a fleet through time: each served demand as `simulate` runs it, on the chips that it got; of a
chain what one step has written or made are the arrivals of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import ceil, inf, prod

import numpy as np
from numpy.typing import NDArray

from chipwise.api.media_time import SAMPLE
from chipwise.api.portfolio import placed_options
from chipwise.api.portfolio_chain import ChainStep
from chipwise.api.portfolio_ways import Demand, FleetAsked
from chipwise.api.requests.command import about
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.simulate import REQUESTS, DeployedSimulation
from chipwise.api.simulating import AHEAD, RepeatedRuns, SimulatedTraffic, record_of, runs_by_turns
from chipwise.errors import ChipwiseError, InfeasibleError
from chipwise.predict.events.engine import Outcome
from chipwise.report.portfolio import (
    API,
    FIRST,
    WHOLE,
    ChainTimeRecord,
    PlacedApiRecord,
    PlacedTimeRecord,
    PlacementRecord,
    PortfolioReport,
)
from chipwise.report.simulated import SimulationRecord
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals, read_times
from chipwise.workload.lengths import Lengths

EVEN = 0.5
"""ratio: of chance up to which the middle of an interval is compared with a target, above it the upper end."""
FIELDS = {FIRST: "ttft_s", "TPOT": "tpot_s", WHOLE: "e2e_s"}
MOST_CALLS = 40_000
"""Calls of a step of a chain that are simulated at most. Chosen: some ten seconds; moves how many requests tell the
times of chains whose steps call often."""
LEAST = 100
"""Requests to a chain that tell its times."""
MID = 1  # of the runs at the low end, the middle and the high end of intervals


def through_time(asked: FleetAsked, report: PortfolioReport) -> PortfolioReport:
    """The answer with its placements simulated, one by one, each in the slices of the day that no other is harder than;
    of those that cannot be, why."""
    found: list[PlacedTimeRecord] = []
    left: list[str] = []
    for name, why, times in _simulated(asked, report):
        try:
            found += () if why else times
        except ChipwiseError as error:
            why = error.what
        left += [f"{name}: {why}"] if why else []
    away = {s.name for s in asked.supplies if s.preempt_s < inf}
    left += [f"preemptions on {p.supply}" for p in report.placements if p.supply in away]
    return replace(report, simulated=tuple(found), unsimulated=tuple(dict.fromkeys(left)))


def _simulated(asked: FleetAsked, report: PortfolioReport) -> Iterator[tuple[str, str, Iterator[PlacedTimeRecord]]]:
    """What may be simulated by name, why it is not ("": it is), and its times: placements of a demand each, those of
    replicas that serve several demands or cards on which they sleep by turns, chains."""
    demands = {d.name: d for d in asked.demands}
    for p in report.placements:
        if not demands[p.demand].step and not _together(p):
            yield f"{p.demand} on {p.supply}", _untimed(demands[p.demand], p), _times(demands[p.demand], p)
    for rows in _groups(report.placements).values():
        names = [p.demand for p in rows]
        yield " and ".join(names), "", _group_times(asked, [demands[name] for name in names], rows)
    for told in (d for d in report.demands if d.chain):
        steps = [asked.demands[d] for d in asked.chains[told.demand]]
        placed = [[p for p in report.placements if p.demand == step.name] for step in steps]
        yield told.demand, "", _chain_times(steps, placed, told.chain)


def _untimed(demand: Demand, p: PlacementRecord) -> str:
    """Why a placement is not simulated; "" where it is."""
    if p.kind == API or demand.training:
        return "tokens of an API" if p.kind == API else "training"
    return "a job without targets" if demand.tokens else ""


def _times(demand: Demand, p: PlacementRecord) -> Iterator[PlacedTimeRecord]:
    """Each time that has a target, in the slice in which it is worst."""
    yield from _worst([row for hour, n, rate in _hardest(p) for row in _slice(demand, p, hour, n, rate)])


def _worst(rows: Sequence[PlacedTimeRecord]) -> Iterator[PlacedTimeRecord]:
    for time in dict.fromkeys(row.time for row in rows):
        yield min((r for r in rows if r.time == time), key=lambda r: (r.holds, r.within, -r.mean.mid))


def _hardest(p: PlacementRecord) -> Iterator[tuple[float, int, float]]:
    """Hour, replicas and requests per second of the slices in which it works, but for those that another one has with
    no more replicas and no less for each of them."""
    each = 24.0 / len(p.per_slice)
    slices = [(round(n), rate, i * each) for i, (n, rate) in enumerate(zip(p.per_slice, p.requests_per_s, strict=True))]
    fewest = float("inf")
    for n, rate, hour in sorted((s for s in slices if s[0] and s[1]), key=lambda s: (-s[1] / s[0], s[0])):
        if n < fewest:
            yield hour, n, rate
            fewest = n


def _slice(demand: Demand, p: PlacementRecord, hour: float, replicas: int, rate: float) -> Iterator[PlacedTimeRecord]:
    """Its requests in one slice. Raises the errors of `simulate`."""
    question = demand.question
    assert isinstance(question, PlanRequest)
    workload = question.workload_of("serve")
    given = {"ttft": workload.ttft_s, "tpot": workload.tpot_s, "e2e": workload.e2e_s}
    targets = {name: None if s is None else f"{s:.10g}s" for name, s in given.items()}
    options = placed_options(question, asdict(p), replicas, f"{rate:.10g}/s")
    found = about(question, DeployedSimulation, **{**options, **targets}).answer().simulation
    told = _TimedPlacement(p.rank, p.demand, p.chip, hour, replicas, rate, workload.percentile, workload.confidence)
    yield from told.rows(found)


@dataclass(frozen=True)
class _TimedPlacement:
    """What is simulated: a placement `rank` (None: a chain), from which hour on, at which load, and how surely its
    targets are to hold."""

    rank: int | None
    demand: str
    chip: str
    hour: float
    replicas: int
    rate_per_s: float
    percentile: float | None
    confidence: float

    def rows(self, found: SimulationRecord) -> Iterator[PlacedTimeRecord]:
        """Each time that has a target."""
        sure = self.confidence > EVEN
        for w in found.within:
            spread = getattr(found, FIELDS[w.target])
            if spread is None:
                continue
            if self.percentile is None:
                holds = (spread.mean.high if sure else spread.mean.mid) <= w.seconds
            else:
                holds = (w.low if sure else w.mid) >= self.percentile
            yield PlacedTimeRecord(
                rank=self.rank,
                demand=self.demand,
                chip=self.chip,
                hour=self.hour,
                replicas=self.replicas,
                rate_per_s=self.rate_per_s,
                requests=found.requests,
                time=w.target,
                mean=spread.mean,
                p99=spread.p99,
                target_s=w.seconds,
                percentile=self.percentile,
                within=w.mid,
                within_slow=w.low,
                holds=holds and not found.lost,
            )


def _together(p: PlacementRecord) -> bool:
    """Whether requests to it and to others wait for each other: the same replicas serve them, or they take turns."""
    return p.sharing is not None and (p.sharing.pooled or p.sharing.turn is not None)


def _groups(placements: Sequence[PlacementRecord]) -> Mapping[tuple[str, ...], list[PlacementRecord]]:
    """The placements that are the same replicas, or on the same cards by turns."""
    found: dict[tuple[str, ...], list[PlacementRecord]] = {}
    for p in placements:
        if p.sharing is not None and _together(p):
            same = (p.spread, p.precision) if p.sharing.pooled else ()
            key = (p.supply, *same, *sorted((p.demand, *p.sharing.others)))
            found.setdefault(key, []).append(p)
    return found


def _group_times(
    asked: FleetAsked, demands: Sequence[Demand], rows: Sequence[PlacementRecord]
) -> Iterator[PlacedTimeRecord]:
    """Each time of demands that the same replicas serve, or that sleep by turns, that has a target, in the slice in
    which it is worst: requests of all come at random, and each demand is told by its own. Raises the errors of
    `simulate`."""
    found: dict[str, list[PlacedTimeRecord]] = {}
    for s in _hardest_together([[p] for p in rows]):
        works = [d.question.workload_of("serve") for d in demands if isinstance(d.question, PlanRequest)]
        rates = [p.requests_per_s[s] for p in rows]
        runs, who = _runs_together(asked, rows, s, [work.served for work in works])
        for i, (p, work, rate) in enumerate(zip(rows, works, rates, strict=True)):
            mine = np.flatnonzero(who == i)
            counted = mine[ceil(AHEAD * len(mine)) : len(mine) - ceil(AHEAD * len(mine))]
            own = RepeatedRuns(*(_only(run, counted) for run in runs.all))
            said = {FIRST: work.ttft_s, "TPOT": work.tpot_s, WHOLE: work.e2e_s}
            record = record_of(own, {name: limit for name, limit in said.items() if limit is not None})
            hour, each = 24.0 / len(p.per_slice) * s, round(p.per_slice[s])
            told = _TimedPlacement(p.rank, p.demand, p.chip, hour, each, rate, work.percentile, work.confidence)
            found[p.demand] = [*found.get(p.demand, []), *told.rows(record)]
    for its in found.values():
        yield from _worst(its)


def _runs_together(
    asked: FleetAsked, rows: Sequence[PlacementRecord], s: int, lengths: Sequence[Lengths]
) -> tuple[RepeatedRuns, NDArray[np.intp]]:
    """What becomes of requests to demands in a slice, and of which demand each is: of those that sleep by turns on one
    of their cards."""
    rates, moves = [p.requests_per_s[s] for p in rows], [_move_s(p) for p in rows]
    asleep = not any(move_s is None for move_s in moves)
    cards = round(rows[0].per_slice[s]) if asleep else 1
    arrivals, who = _mixed(lengths, [rate / cards for rate in rates])
    questions = [asked.question_of(asdict(p)) for p in rows]
    deployed = [
        _deployed(question, p, 1 if asleep else round(p.per_slice[s]))
        for question, p in zip(questions, rows, strict=True)
        if isinstance(question, PlanRequest)
    ]
    if not asleep:
        return deployed[0].outcomes(arrivals), who
    loads = [one.load_asked() for one in deployed]
    return runs_by_turns(loads, arrivals, who, [move_s or 0.0 for move_s in moves]), who


def _move_s(p: PlacementRecord) -> float | None:
    """What it takes to move it in or out where it sleeps by turns."""
    return p.sharing.turn.move_s if p.sharing and p.sharing.turn else None


def _mixed(lengths: Sequence[Lengths], rates: Sequence[float]) -> tuple[Arrivals, NDArray[np.intp]]:
    """Requests of several demands as they come to the same replicas, and of which each is: enough of the rarest to tell
    its times, unless those of all were too many."""
    span = min(max(REQUESTS / sum(rates), LEAST / min(rates)), MOST_CALLS / sum(rates))
    some = [
        Arrivals.drawn(its, ceil(span * rate), rate, seed=i)
        for i, (its, rate) in enumerate(zip(lengths, rates, strict=True))
    ]
    at = np.concatenate([one.time_s for one in some if one.time_s is not None])
    order = np.argsort(at, kind="stable")
    who = np.repeat(np.arange(len(some)), [len(one) for one in some])[order]
    prompt, output = (np.concatenate([getattr(one, name) for one in some]) for name in ("prompt", "output"))
    return Arrivals(prompt[order], output[order], at[order] - at[order][0]), who


def _only(run: Outcome, at: NDArray[np.intp]) -> Outcome:
    """What became of some of the requests."""
    names = ("arrived", "began", "first", "last", "prompt", "output")
    return replace(run, **{name: getattr(run, name)[at] for name in names})


Placed = Sequence[PlacementRecord]
"""Where a step of a chain runs."""


def _chain_times(
    steps: Sequence[Demand], placed: Sequence[Placed], times: Sequence[ChainTimeRecord]
) -> Iterator[PlacedTimeRecord]:
    """Each time of a chain that has a target, in the slice in which it is worst. Raises the errors of `simulate`, and
    `InfeasibleError` where a request makes too many calls."""
    some = [d.step for d in steps if d.step]
    questions = [d.question for d in steps if isinstance(d.question, PlanRequest)]
    chips = ", ".join(dict.fromkeys(p.chip or p.supply for its in placed for p in its))
    alike, chain = {of.time: of.alike for of in times}, some[0].chain
    rows: list[PlacedTimeRecord] = []
    for s in _hardest_together(placed):
        rate = sum(p.requests_per_s[s] for p in placed[0]) / some[0].calls
        runs = _chained(some, questions, placed, s, _traffic(some, rate), alike)
        count = sum(round(p.per_slice[s]) for its in placed for p in its)
        hour = 24.0 / len(placed[0][0].per_slice) * s
        told = _TimedPlacement(None, chain.name, chips, hour, count, rate, chain.percentile, chain.confidence)
        rows += told.rows(record_of(runs, dict(chain.limits)))
    yield from _worst(rows)


def _hardest_together(placed: Sequence[Placed]) -> Iterator[int]:
    """The slices in which a chain works, but for those that another one has with no more replicas of any step and no
    less for each of them."""
    count, rate = (
        np.array([np.sum([getattr(p, name) for p in its], axis=0) for its in placed])
        for name in ("per_slice", "requests_per_s")
    )
    works = np.flatnonzero(((rate > 0.0) & (count > 0.0)).all(axis=0))
    ease = np.concatenate([count, -rate / np.maximum(count, EVEN)])[:, works]
    _, first = np.unique(ease, axis=1, return_index=True)
    for i in sorted(first):
        others = ease[:, [o for o in first if o != i]]
        if not (others <= ease[:, [i]]).all(axis=0).any():
            yield int(works[i])


def _traffic(steps: Sequence[ChainStep], rate: float) -> SimulatedTraffic:
    """Requests to a chain: those of its log at this rate, else at random. Raises `InfeasibleError` where one makes so
    many calls that too few could be told."""
    calls = [step.calls * prod(before.pieces for before in steps[:i]) for i, step in enumerate(steps)]
    count = MOST_CALLS // max(calls)
    if count < LEAST:
        what = f"one request makes {max(calls):,} calls of a step, too many to tell its times"
        raise InfeasibleError(what, f"at most {MOST_CALLS // LEAST:,}")
    if steps[0].chain.log:
        some = read_times(steps[0].chain.log).first(count).at_rate(rate)
        return SimulatedTraffic(some, some.line)
    return SimulatedTraffic.random(SAMPLE, min(count, REQUESTS), rate)


def _chained(
    steps: Sequence[ChainStep],
    questions: Sequence[PlanRequest],
    placed: Sequence[Placed],
    s: int,
    traffic: SimulatedTraffic,
    alike: Mapping[str, float],
) -> RepeatedRuns:
    """The requests through all steps in a slice, all as fast or slow as each other within their intervals; of what that
    does to a time its errors leave the part `alike`. Raises the errors of `simulate`."""
    arrived = traffic.arrivals.time_s
    assert arrived is not None
    ready = np.repeat(arrived[None, :, None], 3, axis=0)
    for step, question, its in zip(steps, questions, placed, strict=True):
        calls = _StepCalls.of(step, question, its, s, ready)
        ready = calls.pieces(step)
    seen = calls.first[:, :, 0, :].max(axis=-1), calls.last.max(axis=(-1, -2))
    times = [
        arrived + (at[MID] - arrived) * ((at - arrived) / (at[MID] - arrived)) ** alike.get(name, 1.0)
        for name, at in zip((FIRST, WHOLE), seen, strict=True)
    ]
    ones = np.ones(len(arrived))
    low, mid, high = (
        Outcome(arrived, arrived, first, last, ones, ones, 0, 0, 0, 0, 0, 0, 0.0).counting(traffic.counted)
        for first, last in zip(*times, strict=True)
    )
    return RepeatedRuns(low, mid, high)


@dataclass(frozen=True)
class _StepCalls:
    """What becomes of the calls of a step, at the low end, the middle and the high end of intervals, by request, piece
    and call [3, N, P, C]: when the `first` and the `last` token came (of a network all at once), of `output` tokens [N,
    P, C]; NaN where it was never served."""

    first: Array
    last: Array
    output: Array

    @classmethod
    def of(cls, step: ChainStep, question: PlanRequest, placed: Placed, s: int, ready: Array) -> _StepCalls:
        """Of pieces that are `ready` [3, N, P], in a slice. A call goes to a supply by chance, in proportion to what
        each is given; those that are one batch go together. Raises the errors of `simulate`."""
        sent = np.repeat(ready[..., None], step.calls, axis=-1)
        first, last, output = np.full_like(sent, np.nan), np.full_like(sent, np.nan), np.ones(sent.shape[1:])
        rates = np.array([p.requests_per_s[s] for p in placed])
        apart = (*ready.shape[1:], step.calls if step.output else 1)
        drawn = np.random.default_rng(0).choice(len(placed), apart, p=rates / rates.sum())
        who = np.where(np.isfinite(sent[MID]), drawn, -1)
        for i in np.unique(who[who >= 0]):
            mine = who == i
            order = np.argsort(sent[MID][mine], kind="stable")
            at = sent[MID][mine][order]
            arrivals = _arrivals(step, question, at)
            api = placed[i].api
            runs = (
                _deployed(question, placed[i], round(placed[i].per_slice[s])).outcomes(arrivals)
                if api is None
                else _answered(api, arrivals)
            )
            for run, found in enumerate(runs.all):
                for seen, ends in ((found.first, first), (found.last, last)):
                    took = np.empty(len(at))
                    took[order] = seen - found.arrived
                    ends[run][mine] = sent[run][mine] + took
            lengths = np.empty(len(at))
            lengths[order] = arrivals.output
            output[mine] = lengths
        return cls(first, last, output)

    def pieces(self, step: ChainStep) -> Array:
        """When what it passes on is ready [3, N, pieces]: as soon as all calls have written as much."""
        if not step.output:
            return np.asarray(self.last.max(axis=-1))
        written = np.minimum(step.passes * np.arange(1.0, step.pieces + 1.0), self.output[..., None])
        written[..., -1] = self.output
        each = (self.last - self.first) / np.maximum(self.output - 1.0, 1.0)
        at = (self.first[..., None] + (written - 1.0) * each[..., None]).max(axis=-2)
        return np.asarray(at.reshape(*at.shape[:2], -1))


def _answered(api: PlacedApiRecord, arrivals: Arrivals) -> RepeatedRuns:
    """Calls of an API, which answers each as fast as is said of it."""
    assert arrivals.time_s is not None
    at = arrivals.time_s
    first = at + (api.ttft_s or 0.0)
    last = first + (arrivals.output - 1.0) * (api.tpot_s or 0.0)
    found = Outcome(at, at, first, last, arrivals.prompt, arrivals.output, 0, 0, 0, 0, 0, 0, 0.0)
    return RepeatedRuns(found, found, found)


def _arrivals(step: ChainStep, question: PlanRequest, at: Array) -> Arrivals:
    """Calls at some times, of the lengths that the question gives."""
    lengths = question.workload_of("serve").served if step.output else SAMPLE
    return replace(Arrivals.drawn(lengths, len(at), None), time_s=at - at[0])


def _deployed(question: PlanRequest, p: PlacementRecord, replicas: int) -> DeployedSimulation:
    """So many replicas of a placement."""
    options = placed_options(question, asdict(p), replicas, None)
    return about(question, DeployedSimulation, **{**options, "rate": None})
