"""`plan --log`: the first plans under the arrivals of a log, one by one, with as many replicas as these need, and the
policy under which these may follow it.

Formulas speak of random arrivals. Where a log knows its times plans are simulated: what they print of percentiles is
what happened to its requests, with what formulas had said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from chipwise.api.estimating import AskedLoad, loads_of, served
from chipwise.api.scaling import STARTS_S, STEADIEST, cheapest_policy, longest_start, policy, ready_s
from chipwise.api.simulating import HOUR_S, QUANTILES, RepeatedRuns, SimulatedTraffic, fleet_of, runs_of, scaling_record
from chipwise.api.stepping import pass_times
from chipwise.calibrate.parameter import Z80
from chipwise.errors import InfeasibleError, UsageError
from chipwise.evidence.judge import chance
from chipwise.predict.events.engine import Fleet as Engines
from chipwise.predict.events.engine import Outcome, run
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.predict.fleet import DAY_S
from chipwise.report.assemble import ReplicaSet, rank_plans
from chipwise.report.plan import FollowedPlan
from chipwise.report.plans import SHOWN, PlanRecord
from chipwise.report.records import Figure, TailRecord
from chipwise.report.simulated import BoundedTimes, ClosedPolicy, FollowingRecord
from chipwise.units import Array, format_number, format_seconds
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.workload import Workload

FIRST = 3
"""Plans that are simulated over all of a log, and whose replicas may follow it: those that are read."""
TRIED = 40
"""count: plans whose replicas are counted at most, until those of all that are printed are. Chosen: a second or two
each; moves what an answer takes where formulas count too few for many."""
MOST = 5000
"""Requests around the busiest minute of a log with which replicas are counted: the rest is easier."""
PEAK = 500
"""Requests in the middle of these that are looked at first: what misses the targets with all others in no time at all
misses them with all."""
GROWTH = 32
"""Times the replicas that formulas ask for, up to which more are tried."""
SIMULATED = "simulated"
UNSEEN = "not simulated: formulas for random arrivals, which these are not"
SIZED = "replicas simulated around the busiest minute of the log; times by formulas for random arrivals"


Asking = Callable[[PlanRecord], AskedLoad | None]
"""The deployment of one replica of a plan, None where it cannot be simulated."""
Name: TypeAlias = tuple[object, ...]
"""What tells a plan from others."""


def over_time(
    plans: Sequence[PlanRecord],
    others: Sequence[PlanRecord],
    workload: Workload,
    asking: Asking,
    most: Callable[[PlanRecord], int],
    scaling: ScalingGiven,
) -> tuple[tuple[PlanRecord, ...], tuple[str, ...]]:
    """Ranked plans with the first of them simulated over the log of a workload, and what was found, in words; `most` is
    how many replicas a plan may have. `others` are plans of the same chips, of which each has its best in the end.
    Replicas of those that are simulated may follow the log, under a policy of which `scaling` is said. Raises
    `ValueError` for a log without times."""
    log = workload.log
    if log is None or log.time_s is None:
        raise ValueError("a log without times has no arrivals")
    ranked, counted = _followed(list(rank_plans([*plans, *others], workload)), workload, asking, most)
    if others:
        ranked = list(rank_plans(list({p.chip: p for p in reversed(ranked)}.values()), workload))
    simulated = [p for p in ranked if p.note.startswith(SIMULATED)]
    words = [f"{len(simulated)} plans simulated over the log: their percentiles and chances are the simulation's"]
    if not log.random:
        window = log.windows[0]
        index = log.dispersion(window)
        said = f"{format_number(index or 0.0, 2)} over {window:g} s"
        how = "" if index is None else f" (index of dispersion {said}, 1 at random)"
        words.append(f"arrivals are not random{how}: formulas do not hold for them")
        ranked = [
            p
            if p in simulated
            else replace(p, chance=None, note=_also(p.note, SIZED if plan_name(p) in counted else UNSEEN))
            for p in ranked
        ]
    for place, plan in enumerate(ranked[:SHOWN]):
        ranked[place], why = _scaled(plan, asking, workload, scaling)
        words += why
    return tuple(ranked), tuple(words)


def _followed(
    ranked: list[PlanRecord], workload: Workload, asking: Asking, most: Callable[[PlanRecord], int]
) -> tuple[list[PlanRecord], Set[Name]]:
    """Ranked plans of which the first have replicas counted for the log of a workload, and the first of these the times
    of its simulation; and those that were counted with enough."""
    assert workload.log is not None
    peak, ample = busiest(workload.log, MOST), 1.0
    tried: dict[Name, CountedPlan | None] = {}
    told: set[Name] = set()
    while True:
        name = _next(ranked, tried, told)
        if name is None:
            return ranked, {n for n, found in tried.items() if found and found.enough}
        place = [plan_name(p) for p in ranked].index(name)
        found, new = tried.get(name), name not in tried
        if new:
            tried[name] = found = _counted(asking(ranked[place]), ranked[place], workload, peak, most, ample)
        if found is None:
            continue
        if new and found.enough:
            ample, changed = found.ample(workload), found.grown(workload)
        else:
            told.add(name)
            changed = found.told(workload)
        ranked = list(rank_plans([*ranked[:place], changed, *ranked[place + 1 :]], workload))


def _next(ranked: Sequence[PlanRecord], tried: Mapping[Name, CountedPlan | None], told: Set[Name]) -> Name | None:
    """The plan to look at next: of the first one that was not `tried`, then one that was not `told`."""
    names = [plan_name(p) for p in ranked]
    waiting = [n for n in names[: SHOWN if len(tried) < TRIED else 1] if n not in tried]
    # what is told of a plan takes three runs of the whole log: of the best of a chip alone
    best = {p.chip: n for p, n in zip(reversed(ranked), reversed(names), strict=True) if tried.get(n)}
    waiting += [n for n in [n for n in names if n in best.values()][:FIRST] if n not in told]
    return next(iter(waiting), None)


def plan_name(p: PlanRecord) -> Name:
    """What tells a plan from the others of an answer."""
    return p.chip, p.layout, p.precision, p.runtime, p.prompt_workers


def _also(note: str, words: str) -> str:
    return "; ".join(filter(None, (note, words)))


def busiest(log: Arrivals, count: int) -> Arrivals:
    """So many requests one after the other, of which the busiest minute is in the middle."""
    counts = log.counts(log.windows[-1])
    if len(log) <= count or log.time_s is None:
        return log
    middle = len(log) // 2
    if len(counts):
        start = log.time_s[0] + log.windows[-1] * float(np.argmax(counts))
        middle = int(np.searchsorted(log.time_s, start))
    first = int(np.clip(middle - count // 3, 0, len(log) - count))
    last = first + count
    known = None if log.blocks is None else log.blocks[first:last]
    times = log.time_s[first:last]
    return replace(
        log, prompt=log.prompt[first:last], output=log.output[first:last], time_s=times - times[0], blocks=known
    )


def _limits(found: Outcome, workload: Workload) -> list[tuple[float, Array]]:
    """The targets, and the times that they bound; what was never served waits for ever."""
    lost = np.full(int(np.sum(~found.served)), np.inf)
    times = ((workload.ttft_s, found.ttft_s), (workload.tpot_s, found.tpot_s), (workload.e2e_s, found.e2e_s))
    return [(limit, np.concatenate([seconds, lost])) for limit, seconds in times if limit is not None and len(seconds)]


def _bounded(times: Array, workload: Workload, count: int = 0) -> float:
    """Of times what a target bounds: their mean, or a percentile; of `count` requests, the others in no time at all."""
    times = np.concatenate([times, np.zeros(max(count - len(times), 0))])
    return float(times.mean() if workload.percentile is None else np.quantile(times, workload.percentile))


def _holds(found: Outcome, workload: Workload, count: int) -> bool:
    """Whether the targets may hold of `count` requests, of which some are known."""
    few = count if len(found.arrived) < count else 0
    return all(_bounded(times, workload, few) <= limit for limit, times in _limits(found, workload))


@dataclass(frozen=True)
class CountedPlan:
    """A plan of formulas, `one` replica of it, and how many `replicas` carry a log; `not `enough` where all that are
    allowed do not."""

    plan: PlanRecord
    one: AskedLoad
    replicas: int
    enough: bool = True

    @property
    def before(self) -> int:
        """Replicas that formulas ask for."""
        return self.plan.replicas - self.plan.spare

    @property
    def each_per_s(self) -> float:
        """Requests a second that formulas say a replica could carry."""
        return self.plan.largest_requests_per_s / self.before

    def ample(self, workload: Workload) -> float:
        """What all replicas could carry, over the mean rate."""
        return self.replicas * self.each_per_s / (workload.rate_per_s or self.each_per_s)

    def grown(self, workload: Workload) -> PlanRecord:
        """The plan with so many replicas, as formulas see it, but that its targets hold as surely as was asked."""
        return replace(self._more(workload), chance=workload.confidence)

    def _more(self, workload: Workload) -> PlanRecord:
        return grown_plan(self.plan, self.one, self.replicas, workload, quantiles={})

    def told(self, workload: Workload) -> PlanRecord:
        """`grown` with the times of a simulation, and what formulas had said of the plan in its note."""
        assert workload.log is not None
        runs = runs_of(replace(self.one, replicas=self.replicas), SimulatedTraffic(workload.log, workload.log.line))
        return _told(self._more(workload), self.plan, runs, workload)


def grown_plan(
    plan: PlanRecord,
    one: AskedLoad,
    replicas: int,
    workload: Workload,
    quantiles: Mapping[str, tuple[Array, Array]] | None = None,
) -> PlanRecord:
    """A plan, of which `one` is a replica, with so many that carry the load, as formulas see it; `quantiles` are those
    of its times (None: those of formulas)."""
    before = plan.replicas - plan.spare
    if replicas == before:
        return plan
    asked_ = [replace(one, replicas=replicas, rate_per_s=workload.rate_per_s)]
    group, loads = loads_of(asked_)
    each = plan.largest_requests_per_s / before
    fleet = ReplicaSet(replicas, plan.spare, largest_per_s=each, slope=plan.rate_slope, driven=True)
    (more,) = one.context.records(
        group, loads, served(asked_, loads), [fleet], rate_per_s=workload.rate_per_s, quantiles=quantiles
    )
    return replace(more, converted=plan.converted, note=plan.note)


@dataclass(frozen=True)
class WaryReplica:
    """A replica whose passes are as slow as they are with the probability with which targets are to hold; `host_s`
    pass before the engine sees a request."""

    fleet: Engines
    workload: Workload
    host_s: float

    @classmethod
    def of(cls, one: AskedLoad, workload: Workload) -> WaryReplica:
        """That of one deployment. Raises the errors of `pass_times` and `fleet_of`."""
        passes = pass_times(one)
        fleet = fleet_of(one, passes)
        high = float(passes.high.decode[0, 0] / passes.mid.decode[0, 0])
        slower = passes.mid.scaled(max(high ** (NormalDist().inv_cdf(workload.confidence) / Z80), 1.0))
        host_s = float(np.asarray(one.context.rates([one.deployment])[1].request_s))
        return cls(replace(fleet, table=slower), workload, host_s)

    def times(self, replicas: int, scaling: Scaling | None = None) -> Engines:
        """So many of them, which may follow the load."""
        return replace(self.fleet, engines=self.fleet.engines * replicas, scaling=scaling)

    def keeps(self, found: Outcome) -> bool:
        """Whether the targets hold of requests that were simulated."""
        return _holds(found, self.workload, len(found.arrived))

    def holds(self, engines: Engines, some: Arrivals, count: int) -> tuple[bool, Outcome]:
        """Whether the targets hold with requests that are some of `count`, and what became of them."""
        found = run(some, engines).delayed(self.host_s)
        return _holds(found, self.workload, count), found


def bounded_times(found: Outcome, workload: Workload) -> BoundedTimes:
    """What targets bound of the times of a simulation; what was never served waits for ever."""
    lost = np.full(int(np.sum(~found.served)), np.inf)
    ttft, tpot, e2e = (np.concatenate([t, lost]) for t in (found.ttft_s, found.tpot_s, found.e2e_s))

    def of(times: Array) -> float | None:
        return _bounded(times, workload) if len(times) else None

    p99 = float(np.quantile(ttft, QUANTILES["p99"])) if len(ttft) else None
    return BoundedTimes(of(ttft), of(tpot), of(e2e), p99)


def _scaled(
    plan: PlanRecord, asking: Asking, workload: Workload, given: ScalingGiven
) -> tuple[PlanRecord, tuple[str, ...]]:
    """The plan with the cheapest policy under which its replicas may follow the log, and why there is none."""
    one = asking(plan)
    if one is None or plan.replicas - plan.spare < 2 or not plan.note.startswith(SIMULATED):
        return plan, ()
    wary = WaryReplica.of(one, workload)
    found, why = followed_log(plan, wary, ready_s(one), in_flight(plan, workload), given)
    return replace(plan, scaling=found), why


def followed_log(
    plan: FollowedPlan, wary: WaryReplica, start_s: float, closed: float, given: ScalingGiven
) -> tuple[FollowingRecord | None, tuple[str, ...]]:
    """The cheapest policy under which the replicas of a plan may follow a log, or why there is none; each takes
    `start_s` to start, and by formulas `closed` requests in flight."""
    workload = wary.workload
    log, carrying = workload.log, plan.replicas - plan.spare
    if log is None:
        return None, ()
    peak = busiest(log, MOST)
    amid = len(peak) < len(log)

    def keeps_peak(scaling: Scaling) -> bool:
        return wary.holds(wary.times(carrying, replace(scaling, busy=amid)), peak, len(peak))[0]

    found, ruled = cheapest_policy(
        lambda target, least: policy(given, start_s, target, least, carrying),
        given,
        carrying,
        closed,
        keeps_peak,
        lambda scaling: wary.holds(wary.times(carrying, scaling), log, len(log)),
    )
    if found is None:
        tried = policy(given, start_s, given.target or STEADIEST, given.least or carrying - 1, carrying)
        return None, (_throughout(plan.rank, tried, keeps_peak),)
    fixed = wary.holds(wary.times(carrying), log, len(log))[1]
    record = scaling_record(found.scaling, found.outcome, carrying, plan.spare)
    usd = partial(usd_per_day, plan, found.outcome.whole_s)
    paid_h = ruled.outcome.paid_s / HOUR_S + record.fixed_h * plan.spare / plan.replicas
    record = replace(
        record,
        usd_per_day=usd(record.replica_h),
        fixed_usd_per_day=usd(record.fixed_h),
        percentile=workload.percentile,
        requests=len(log),
        times=bounded_times(found.outcome, workload),
        fixed_times=bounded_times(fixed, workload),
        closed=ClosedPolicy(
            ruled.scaling.target,
            ruled.scaling.least + plan.spare,
            paid_h,
            usd(paid_h),
            ruled.holds,
            bounded_times(ruled.outcome, workload),
        ),
    )
    return record, ()


def in_flight(plan: PlanRecord, workload: Workload) -> float:
    """Requests in flight of one replica that takes as many as formulas say it can: those a second, times the time of
    each (Little)."""
    each = plan.largest_requests_per_s / (plan.replicas - plan.spare)
    return max(float(np.floor(each * plan.answer_s(workload.output_tokens))), 1.0)


def usd_per_day(plan: FollowedPlan, seconds: float, replica_h: float) -> float | None:
    """Dollars a day of replicas that were there for so many hours in so many seconds; None without a price."""
    if plan.price is None or not seconds:
        return None
    return plan.price.mid / plan.replicas * replica_h * DAY_S / seconds


def _throughout(rank: int, scaling: Scaling, holds: Callable[[Scaling], bool]) -> str:
    """Why replicas of the plan of that rank cannot follow under a policy, and the least change with which they could: a
    higher floor, else a shorter start."""
    ready = f"as one is ready {format_seconds(scaling.start_s)} after it is started"
    floors = range(scaling.least + 1, scaling.most)
    least = next((n for n in floors if holds(replace(scaling, least=n))), None)
    if least is not None:
        words = f"#{rank} needs more than {scaling.least} replicas throughout"
        return f"{words}, {ready}; {least} do (--scale least={least})"
    words = f"#{rank} needs all {scaling.most} replicas throughout, {ready}"
    start_s = longest_start(scaling.start_s, lambda s: holds(replace(scaling, start_s=s)))
    if start_s is None:
        return f"{words}; none may go even if one starts in {format_seconds(STARTS_S[-1])}"
    return f"{words}; from a start of {format_seconds(start_s)} on (--scale start={start_s:g}s) fewer do at times"


def _counted(
    one: AskedLoad | None,
    plan: PlanRecord,
    workload: Workload,
    peak: Arrivals,
    most: Callable[[PlanRecord], int],
    ample: float,
) -> CountedPlan | None:
    """The fewest replicas, from those that formulas ask for on, with which the targets hold as surely as was asked, at
    the `peak` of a log; looked for from where they could carry `ample` times the mean rate. None where there is nothing
    to simulate."""
    if one is None:
        return None
    try:
        wary = WaryReplica.of(one, workload)
    except (InfeasibleError, UsageError):
        return None  # what is not simulated says so below
    height = busiest(peak, PEAK)

    def holds(replicas: int) -> bool:
        engines = wary.times(replicas)
        return all(
            wary.holds(engines, some, len(peak))[0] for some in ((height, peak) if len(height) < len(peak) else (peak,))
        )

    found = CountedPlan(plan, one, plan.replicas - plan.spare)
    limit = max(min(most(plan) - plan.spare, found.before * GROWTH), found.before)
    guess = int(np.ceil(found.before * ample / found.ample(workload)))
    count = fewest(holds, found.before, limit, guess)
    return replace(found, replicas=min(count, limit), enough=count <= limit)


def fewest(holds: Callable[[int], bool], least: int, limit: int, guess: int) -> int:
    """The smallest number from `least` to `limit` that `holds`, one more where none does: by steps that double away
    from a guess, then by halves."""
    at = min(max(guess, least), limit)
    below, enough, step = least - 1, limit + 1, max(at // 4, 1)
    if holds(at):
        enough = at
        while enough > least:
            lower = max(enough - step, least)
            if not holds(lower):
                below = lower
                break
            enough, step = lower, 2 * step
    else:
        below = at
        while below < limit:
            upper = min(below + step, limit)
            if holds(upper):
                enough = upper
                break
            below, step = upper, 2 * step
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if holds(middle) else (middle, enough)
    return enough


def _told(more: PlanRecord, plan: PlanRecord, runs: RepeatedRuns, workload: Workload) -> PlanRecord:
    """A plan with as many replicas as carry a log, its times those of `runs`, with what formulas had said of `plan`."""
    sure = chances(runs, workload)
    tails = {
        name: TailRecord(*(float(np.quantile(t, q)) if len(t) else None for t in (runs.mid.ttft_s, runs.mid.tpot_s)))
        for name, q in _shares(workload).items()
    }
    before, after = (x.get("p99") for x in (plan.tails, tails))
    said = f"{SIMULATED}: p99 TTFT {format_seconds(after.ttft_s)}" if after and after.ttft_s else SIMULATED
    if before is not None and before.ttft_s is not None:
        count = plan.replicas - plan.spare
        had = f"{format_seconds(before.ttft_s)} with {count} replica{'s' * (count > 1)}"
        said += f", where formulas for random arrivals say {had}"
    return replace(
        more,
        ttft_s=_mean(more.ttft_s, [o.ttft_s for o in runs.all]),
        tpot_s=None if more.tpot_s is None else _mean(more.tpot_s, [o.tpot_s for o in runs.all]),
        tails=tails,
        chance=min(sure) if sure else plan.chance,
        note=_also(said, plan.note),
        converted=plan.converted,
    )


def chances(runs: RepeatedRuns, workload: Workload) -> list[float]:
    """The probability that each target holds; one that is missed by what was never served has none."""
    limits = (_limits(o, workload) for o in runs.all)
    ends = ([(limit, _bounded(times, workload)) for limit, times in found] for found in limits)
    return [
        chance(limit, mid, min(low, mid), max(high, mid)) if np.isfinite(high) else 0.0
        for (limit, low), (_, mid), (_, high) in zip(*ends, strict=True)
    ]


def _shares(workload: Workload) -> dict[str, float]:
    own = workload.percentile or 0.5
    return {f"p{q * 100:g}": q for q in sorted({*QUANTILES.values(), own})}


def _mean(figure: Figure, times: Sequence[Array]) -> Figure:
    low, mid, high = (float(t.mean()) for t in times)
    return replace(figure, mid=mid, low=min(low, mid), high=max(high, mid))
