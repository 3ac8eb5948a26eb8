"""`plan --day`: the plans that are printed hold the peak of the day in simulation, and the replicas of the first follow
the day by the clock.

Formulas count replicas, and a simulation of the busiest slice says whether the targets hold with these: where they do
not, more are taken, and the plans are ranked again, until all that are printed were simulated.

A day's shape is known ahead, so that replicas can be there when a slice begins. How many a slice needs is what a
simulation says: of a small grid of loads per replica and floors the cheapest is found with which the targets hold in
every slice. The closed rule, full replicas as formulas count them, is one point of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import field, replace
from math import ceil

import numpy as np

from chipwise.api.estimating import AskedLoad
from chipwise.api.over_time import (
    FIRST,
    Asking,
    Name,
    WaryReplica,
    bounded_times,
    chances,
    fewest,
    grown_plan,
    plan_name,
    usd_per_day,
)
from chipwise.api.scaling import policy, ready_s
from chipwise.api.simulating import HOUR_S, RepeatedRuns, SimulatedTraffic, runs_of
from chipwise.errors import InfeasibleError, UsageError
from chipwise.predict.events.engine import Outcome, run
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.predict.fleet import DAY_S, replicas_for
from chipwise.report.assemble import rank_plans
from chipwise.report.plan import FollowedPlan
from chipwise.report.plans import SHOWN, PlanRecord
from chipwise.report.simulated import BoundedTimes, ClosedPolicy, FollowingRecord, PeakRecord
from chipwise.values import dataclass
from chipwise.workload.curve import RateCurve
from chipwise.workload.lengths import Lengths
from chipwise.workload.workload import Workload

USES = (4.0, 3.0, 2.5, 2.0, 1.75, 1.5, 1.25, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""ratio: loads per replica that are tried, over that of the whole plan at the peak. Chosen: steps of a tenth to a
third; moves the cost of a day."""
FLOORS = 3
"""count: lowest numbers of replicas that are tried. Chosen: at night it is one or two that are too few; moves the cost
of a day."""
COUNTED = 3000
"""count: requests of a slice that are simulated. Chosen: thirty are above p99, in a fraction of a second; moves a
percentile by chance."""
CELL = 8
"""count: replicas that are simulated at most; more are taken to do as well as so many under their part of the load.
Chosen: they do better, as they even out more; moves the cost of large fleets."""
SLICES = 24
"""count: slices with their replicas that are simulated at most. Chosen: seconds; moves what is found where more of the
cheapest policies miss."""
GROWTH = 4
"""Times the replicas of a plan up to which more are tried where it misses at the peak."""
TRIED = 16
"""count: plans whose peak is simulated at most, until all that are printed were. Chosen: half a second each; moves
what an answer takes where many miss."""
LESS_SURE = 0.01
"""probability: that a plan which misses has less of than was asked for, at least. Chosen: what can be read."""
UNSEEN = "not simulated at the peak of the day: the plans before it missed there"


@dataclass(frozen=True)
class DayHeld:
    """A day that plans go through (`curve`): how one is simulated (`asking`), `most` replicas that it may have, what is
    said of policies (`given`), and a plan with its figures of the day (`dated`)."""

    curve: RateCurve
    workload: Workload
    asking: Asking
    most: Callable[[PlanRecord], int]
    given: ScalingGiven
    dated: Callable[[PlanRecord], PlanRecord]

    def slices(self, one: AskedLoad | None) -> Slices | None:
        """The slices of the day as `one` replica sees them; None where there is nothing to hold, or to simulate."""
        w = self.workload
        if one is None or all(t is None for t in (w.ttft_s, w.tpot_s, w.e2e_s)):
            return None
        try:
            wary = WaryReplica.of(one, w)
        except (InfeasibleError, UsageError):
            return None
        lengths = w.lengths or Lengths(w.prompt_tokens, w.output_tokens)
        return Slices(wary, lengths, ready_s(one), lambda n, traffic: runs_of(replace(one, replicas=n), traffic))


@dataclass
class Slices:
    """Slices of a day as a replica's simulation sees them: whether the targets hold at a rate with so many replicas,
    each of which takes `start_s` to start. What is harder than one that misses misses too, what is easier than one that
    holds holds too. `repeated` are so many replicas at the ends of the interval of their passes, `cell` the most that
    are simulated, with `counted` requests."""

    wary: WaryReplica
    lengths: Lengths
    start_s: float
    repeated: Callable[[int, SimulatedTraffic], RepeatedRuns]
    cell: int = CELL
    counted: int = COUNTED
    runs: dict[tuple[float, int], tuple[bool, Outcome]] = field(default_factory=dict)

    def seen(self, rate_per_s: float, replicas: int) -> tuple[bool, Outcome]:
        """Whether the targets hold, and what became of the requests."""
        cell = min(replicas, self.cell)
        key = rate_per_s * cell / replicas, cell
        if key not in self.runs:
            traffic = self.traffic(key[0])
            found = run(traffic.arrivals, self.wary.times(cell)).delayed(self.wary.host_s)
            found = found.counting(traffic.counted)
            self.runs[key] = self.wary.keeps(found), found
        return self.runs[key]

    def holds(self, rate_per_s: float, replicas: int) -> bool:
        """Whether the targets hold, by what is known already or by a simulation."""
        cell = min(replicas, self.cell)
        rate = rate_per_s * cell / replicas
        for (other, n), (held, _) in self.runs.items():
            if held and other >= rate and n <= cell:
                return True
            if not held and other <= rate and n >= cell:
                return False
        return self.seen(rate_per_s, replicas)[0]

    def traffic(self, rate_per_s: float) -> SimulatedTraffic:
        """Requests of a slice; those of one rate are the same ones each time."""
        return SimulatedTraffic.random(self.lengths, self.counted, rate_per_s)

    def chance(self, rate_per_s: float, replicas: int) -> float:
        """The probability that the targets hold at a rate with so many replicas, by the interval of their passes."""
        cell = min(replicas, self.cell)
        runs = self.repeated(cell, self.traffic(rate_per_s * cell / replicas))
        return min(chances(runs, self.wary.workload))

    @property
    def requests(self) -> int:
        """Requests simulated so far."""
        return self.counted * len(self.runs)


def over_a_day(plans: Sequence[PlanRecord], day: DayHeld) -> tuple[tuple[PlanRecord, ...], tuple[str, ...]]:
    """Ranked plans of which those that are printed hold the peak of a day in simulation, with as many replicas as that
    takes, and the first have the cheapest policy under which these follow the day; and what was found, in words, where
    formulas had counted too few for one that came first. Where no plan that was tried holds, the likeliest is first."""
    ranked, known, more = list(plans), dict[Name, Slices | None](), 0

    def slices(plan: PlanRecord) -> Slices | None:
        name = plan_name(plan)
        if name not in known:
            known[name] = day.slices(day.asking(plan))
        return known[name]

    while (place := _unseen(ranked, known, day)) is not None and len(known) < TRIED:
        plan, seen = ranked[place], slices(ranked[place])
        if seen is None:
            continue
        ranked[place] = held = _held(plan, peak_of(plan, seen, day.curve.peak, day.most(plan)), seen, day)
        if held.peak and held.peak.before:
            ranked, more = list(rank_plans(ranked, day.workload)), more + (place == 0)
    for place, plan in enumerate(ranked[:FIRST]):
        seen = slices(plan) if place == 0 or plan_name(plan) in known else None
        if seen is not None:
            ranked[place] = _following(plan, seen, day, first=place == 0)
    words = (
        f"the peak of the day is simulated for the plans shown: formulas had counted too few replicas with {more} that "
        "came first, as they may with the others"
    )
    return tuple(ranked), (words,) if more else ()


def _following(plan: PlanRecord, slices: Slices, day: DayHeld, *, first: bool) -> PlanRecord:
    """One of the first plans with the policy under which its replicas follow the day, or why there is none; where no
    peak was simulated before, with what that of the `first` says."""
    words = ""
    if plan.peak is None and plan.keeps_targets(day.workload.confidence):
        words = UNSEEN
    elif plan.peak is None and first:
        words = peak_of(plan, slices, day.curve.peak, day.most(plan)).words
    each = plan.largest_requests_per_s / (plan.replicas - plan.spare)
    scaling, why = followed_day(plan, each, day.curve, slices, day.given)
    return replace(plan, scaling=scaling, note=_also(_also(plan.note, words), why))


def _unseen(ranked: Sequence[PlanRecord], known: Container[Name], day: DayHeld) -> int | None:
    """The place of the first plan of those that are printed whose peak is to be simulated."""
    sure = day.workload.confidence
    waiting = (
        i
        for i, p in enumerate(ranked[:SHOWN])
        if plan_name(p) not in known and p.peak is None and p.keeps_targets(sure)
    )
    return next(waiting, None)


def peak_of(plan: FollowedPlan, slices: Slices, peak: float, allowed: int) -> PeakRecord:
    """What a simulation of the `peak` of a day, in requests a second, says of a plan: how many replicas hold the
    targets, from those that it has on, of as many as are `allowed`."""
    carrying, w = plan.replicas - plan.spare, slices.wary.workload
    held, found = slices.seen(peak, carrying)
    before = bounded_times(found, w)
    if held:
        return PeakRecord(peak, carrying, carrying, True, w.percentile, before)
    most = max(min(allowed - plan.spare, GROWTH * carrying), carrying)
    enough = most + 1
    if most > carrying:
        enough = fewest(lambda n: slices.holds(peak, n), carrying + 1, most, carrying + 1)
    count = min(enough, most)
    times = bounded_times(slices.seen(peak, count)[1], w)
    return PeakRecord(peak, carrying, count, enough <= most, w.percentile, times, before)


def _held(plan: PlanRecord, peak: PeakRecord, slices: Slices, day: DayHeld) -> PlanRecord:
    """A plan with as many replicas as hold the targets at the `peak` of a day, or the most that were tried, then as
    likely as the simulation says."""
    one = None if peak.before is None else day.asking(plan)
    if one is None:
        return replace(plan, peak=peak)
    more = grown_plan(plan, one, peak.replicas, day.workload)
    chance = peak_chance(more.chance, peak, slices)
    return day.dated(replace(more, peak=peak, chance=chance, note=_also(plan.note, peak.words)))


def peak_chance(chance: float | None, peak: PeakRecord, slices: Slices) -> float:
    """The probability that the targets hold of a plan that was given more replicas, of which formulas say `chance`: as
    much as was asked where these hold the peak, less where they do not."""
    sure = slices.wary.workload.confidence
    if peak.holds:
        return max(chance or 0.0, sure)
    return min(slices.chance(peak.rate_per_s, peak.replicas), max(sure - LESS_SURE, 0.0))


def followed_day(
    plan: FollowedPlan, each: float, curve: RateCurve, slices: Slices, given: ScalingGiven
) -> tuple[FollowingRecord | None, str]:
    """The cheapest policy under which the replicas of a plan follow a day, or what keeps them from one in words;
    neither where there is nothing to follow, or they do not hold the peak. By formulas `each` carries so many requests
    a second."""
    carrying = plan.replicas - plan.spare
    if carrying == 1 or not slices.holds(curve.peak, carrying):
        return None, ""
    grid = _grid(curve, policy(given, slices.start_s, np.inf, 1, carrying), each, given)
    ruled = next(p for p in grid if p.closed)
    found = _cheapest(grid, slices)
    if found is None or found.paid_s >= carrying * DAY_S * (1.0 - 1e-9):
        return None, f"replicas cannot follow the day: all {carrying} are needed in every slice"
    return _record(plan, found, ruled, slices, each), ""


def _cheapest(grid: Iterable[ClockPolicy], slices: Slices) -> ClockPolicy | None:
    """The cheapest policy with which the targets hold in all slices, of equally cheap ones that of the most load per
    replica; None where none is found in as many simulations as are allowed."""
    most = len(slices.runs) + SLICES
    for one in sorted(grid, key=lambda p: (p.paid_s, -p.each_per_s)):
        if len(slices.runs) > most:
            return None
        if all(slices.holds(*hard) for hard in one.hardest):
            return one
    return None


def _also(note: str, words: str) -> str:
    return "; ".join(filter(None, (note, words)))


@dataclass(frozen=True)
class ClockPolicy:
    """Replicas by the clock: `counts` of them in the slices of a day, one for `each_per_s` requests, `least` at least,
    as `scaling` says how they come and go. `closed`: that of formulas."""

    curve: RateCurve
    scaling: Scaling
    each_per_s: float
    least: int
    counts: tuple[int, ...]
    closed: bool = False

    @property
    def paid_s(self) -> float:
        """Seconds of replicas that a day pays for: one more for a slice from when it is asked for, one less until it is
        given back."""
        counts, slice_s = np.array(self.counts, dtype=float), self.curve.slice_s
        change = counts - np.roll(counts, 1)
        ahead, held = (min(s, slice_s) for s in (self.scaling.start_s, self.scaling.hold_s))
        more = float(np.maximum(change, 0.0).sum()) * ahead + float(np.maximum(-change, 0.0).sum()) * held
        return min(float(counts.sum()) * slice_s + more, self.scaling.most * DAY_S)

    @property
    def started(self) -> int:
        """Replicas that a day starts."""
        counts = np.array(self.counts)
        return int(np.maximum(counts - np.roll(counts, 1), 0).sum())

    @property
    def hardest(self) -> list[tuple[float, int]]:
        """Rates and replicas of the slices than which no other has a higher rate with no more replicas."""
        pairs = sorted(set(zip(self.curve.rates_per_s, self.counts, strict=True)), key=lambda p: (p[1], -p[0]))
        found: list[tuple[float, int]] = []
        for rate, n in pairs:
            if rate > max((r for r, _ in found), default=0.0):
                found.append((rate, n))
        return found


def _grid(curve: RateCurve, base: Scaling, each: float, given: ScalingGiven) -> list[ClockPolicy]:
    """Policies of all loads per replica and floors, of those with equal replicas the first; that of formulas, which say
    what `each` replica carries, leads them."""
    floors: Iterable[int] = range(1, min(FLOORS, base.most) + 1)
    if given.least is not None:
        floors = (min(given.least, base.most),)
    found: dict[tuple[int, ...], ClockPolicy] = {}
    for least in floors:
        for load in (each, *(curve.peak / base.most * use for use in USES)):
            needed = replicas_for(np.array(curve.rates_per_s), load)
            counts = tuple(int(n) for n in np.clip(needed, least, base.most))
            found.setdefault(counts, ClockPolicy(curve, base, load, least, counts, closed=not found))
    return list(found.values())


def _record(plan: FollowedPlan, found: ClockPolicy, ruled: ClockPolicy, slices: Slices, each: float) -> FollowingRecord:
    """The policy with its replicas, spare ones among them, its dollars, and what was simulated of it."""
    workload = slices.wary.workload
    worst, flight = _worst(found, slices)
    fixed = slices.seen(found.curve.peak, found.scaling.most)[1]
    closed, _ = _worst(ruled, slices)

    def hours(paid_s: float) -> float:
        return (paid_s + plan.spare * DAY_S) / HOUR_S

    paid_h, fixed_h, ruled_h = hours(found.paid_s), hours(found.scaling.most * DAY_S), hours(ruled.paid_s)
    return FollowingRecord(
        target=flight,
        least=min(found.counts) + plan.spare,
        most=found.scaling.most + plan.spare,
        start_s=found.scaling.start_s,
        hold_s=found.scaling.hold_s,
        every_s=found.scaling.every_s,
        started=found.started,
        replica_h=paid_h,
        fixed_h=fixed_h,
        clock=tuple(n + plan.spare for n in found.counts),
        per_replica_per_s=found.each_per_s,
        usd_per_day=usd_per_day(plan, DAY_S, paid_h),
        fixed_usd_per_day=usd_per_day(plan, DAY_S, fixed_h),
        percentile=workload.percentile,
        requests=slices.requests,
        times=worst,
        fixed_times=bounded_times(fixed, workload),
        closed=ClosedPolicy(
            each,
            ruled.least + plan.spare,
            ruled_h,
            usd_per_day(plan, DAY_S, ruled_h),
            all(slices.holds(*hard) for hard in ruled.hardest),
            closed,
        ),
    )


def _worst(found: ClockPolicy, slices: Slices) -> tuple[BoundedTimes, float]:
    """What targets bound in the slice in which each is worst, and the most requests in flight of a replica."""
    outcomes = [(slices.seen(rate, n)[1], min(n, slices.cell)) for rate, n in found.hardest if rate > 0]
    times = [bounded_times(outcome, slices.wary.workload) for outcome, _ in outcomes]
    worst = BoundedTimes(*(_most(getattr(t, name) for t in times) for name in BoundedTimes.__slots__))
    return worst, float(ceil(max(_in_flight(outcome) / n for outcome, n in outcomes)))


def _most(seconds: Iterable[float | None]) -> float | None:
    return max((s for s in seconds if s is not None), default=None)


def _in_flight(found: Outcome) -> int:
    """The most requests that were in flight together."""
    ends = found.last[found.served]
    change = np.concatenate([np.ones(len(found.arrived)), -np.ones(len(ends))])
    order = np.argsort(np.concatenate([found.arrived, ends]), kind="stable")
    return int(np.cumsum(change[order]).max(initial=1))
