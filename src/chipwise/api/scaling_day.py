"""`plan --day`: replicas of the first plan that follow a day by the clock, under the cheapest policy that holds.

A day's shape is known ahead, so that replicas can be there when a slice begins. How many a slice needs is what a
simulation says: of a small grid of loads per replica and floors the cheapest is found with which the targets hold in
every slice. The closed rule, full replicas as formulas count them, is one point of the grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil, floor

import numpy as np

from chipwise.api.over_time import Asking, WaryReplica, bounded_times, fewest, usd_per_day
from chipwise.api.scaling import policy
from chipwise.api.simulating import HOUR_S, SimulatedTraffic
from chipwise.errors import InfeasibleError, UsageError
from chipwise.predict.events.engine import Outcome, run
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.predict.fleet import DAY_S, replicas_for
from chipwise.report.plans import PlanRecord
from chipwise.report.simulated import BoundedTimes, ClosedPolicy, FollowingRecord
from chipwise.workload.arrivals import rate_words
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


@dataclass
class Slices:
    """Slices of a day as a replica's simulation sees them: whether the targets hold at a rate with so many replicas.
    What is harder than one that misses misses too, what is easier than one that holds holds too."""

    wary: WaryReplica
    lengths: Lengths
    runs: dict[tuple[float, int], tuple[bool, Outcome]] = field(default_factory=dict)

    def seen(self, rate_per_s: float, replicas: int) -> tuple[bool, Outcome]:
        """Whether the targets hold, and what became of the requests."""
        cell = min(replicas, CELL)
        key = rate_per_s * cell / replicas, cell
        if key not in self.runs:
            traffic = SimulatedTraffic.random(self.lengths, COUNTED, key[0])
            found = run(traffic.arrivals, self.wary.times(cell)).delayed(self.wary.host_s)
            found = found.counting(traffic.counted)
            self.runs[key] = self.wary.keeps(found), found
        return self.runs[key]

    def holds(self, rate_per_s: float, replicas: int) -> bool:
        """Whether the targets hold, by what is known already or by a simulation."""
        cell = min(replicas, CELL)
        rate = rate_per_s * cell / replicas
        for (other, n), (held, _) in self.runs.items():
            if held and other >= rate and n <= cell:
                return True
            if not held and other <= rate and n >= cell:
                return False
        return self.seen(rate_per_s, replicas)[0]

    @property
    def requests(self) -> int:
        """Requests simulated so far."""
        return COUNTED * len(self.runs)


def followed_day(
    plan: PlanRecord, curve: RateCurve, workload: Workload, asking: Asking, given: ScalingGiven
) -> PlanRecord:
    """The plan with the cheapest policy under which its replicas follow a day, or with what keeps it from one in its
    note; as it is where there is nothing to follow, or to hold, or to simulate."""
    carrying = plan.replicas - plan.spare
    one = asking(plan) if carrying > 1 else None
    targets = (workload.ttft_s, workload.tpot_s, workload.e2e_s)
    if one is None or all(t is None for t in targets):
        return plan
    try:
        wary = WaryReplica.of(one, workload)
    except (InfeasibleError, UsageError):
        return plan
    slices = Slices(wary, workload.lengths or Lengths(workload.prompt_tokens, workload.output_tokens))
    each = plan.largest_requests_per_s / carrying
    if not slices.holds(curve.peak, carrying):
        return replace(plan, note=_also(plan.note, _missed(slices, curve.peak, carrying, each)))
    grid = _grid(curve, policy(given, one, np.inf, 1, carrying), each, given)
    ruled = next(p for p in grid if p.closed)
    found = _cheapest(grid, slices)
    if found is None or found.paid_s >= carrying * DAY_S * (1.0 - 1e-9):
        words = f"replicas cannot follow the day: all {carrying} are needed in every slice"
        return replace(plan, note=_also(plan.note, words))
    return replace(plan, scaling=_record(plan, found, ruled, slices, workload, each))


def _cheapest(grid: Iterable[ClockPolicy], slices: Slices) -> ClockPolicy | None:
    """The cheapest policy with which the targets hold in all slices, of equally cheap ones that of the most load per
    replica; None where none is found in as many simulations as are allowed."""
    for one in sorted(grid, key=lambda p: (p.paid_s, -p.each_per_s)):
        if len(slices.runs) > SLICES:
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
        pairs = sorted(
            set(zip(self.curve.rates_per_s, self.counts, strict=True)), key=lambda p: (p[1], -p[0])
        )
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


def _missed(slices: Slices, peak: float, carrying: int, each: float) -> str:
    """That a plan misses its targets at the peak of a day, and the least change with which it holds them."""
    times = bounded_times(slices.seen(peak, carrying)[1], slices.wary.workload)
    words = (
        f"no policy holds the targets in simulation: with all {carrying} replicas, and passes as slow as the "
        f"confidence asks, {rate_words(peak)} has {times.words(slices.wary.workload.percentile)}"
    )
    most = GROWTH * carrying
    enough = fewest(lambda n: slices.holds(peak, n), carrying + 1, most, carrying + 1)
    if enough > most:
        return f"{words}, and {most} do not hold them either"
    used = floor(100.0 * peak / (enough * each))
    return f"{words}; {enough} replicas hold them (--utilisation {used}%)"


def _record(
    plan: PlanRecord, found: ClockPolicy, ruled: ClockPolicy, slices: Slices, workload: Workload, each: float
) -> FollowingRecord:
    """The policy with its replicas, spare ones among them, its dollars, and what was simulated of it."""
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
    outcomes = [(slices.seen(rate, n)[1], min(n, CELL)) for rate, n in found.hardest if rate > 0]
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
