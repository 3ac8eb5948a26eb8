"""`plan --log`: the first plans under the arrivals of a log, one by one, with as many replicas as these need.

Formulas speak of random arrivals. Where a log knows its times plans are simulated: what they print of percentiles is
what happened to its requests, with what formulas had said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from chipwise.api.estimating import AskedLoad, loads_of, served
from chipwise.api.simulating import QUANTILES, RepeatedRuns, SimulatedTraffic, fleet_of, runs_of
from chipwise.api.stepping import pass_times
from chipwise.calibrate.parameter import Z80
from chipwise.errors import InfeasibleError, UsageError
from chipwise.evidence.judge import chance
from chipwise.predict.events.engine import Fleet as Engines
from chipwise.predict.events.engine import Outcome, run
from chipwise.report.assemble import ReplicaSet, rank_plans
from chipwise.report.plans import PlanRecord
from chipwise.report.records import Figure, TailRecord
from chipwise.units import Array, format_number, format_seconds
from chipwise.workload.arrivals import WINDOWS, Arrivals
from chipwise.workload.workload import Workload

FIRST = 3
"""Plans that are simulated from the first on: those that are read."""
TRIED = 6
"""Plans that are simulated at most, until the first ones are."""
MOST = 5000
"""Requests around the busiest minute of a log with which replicas are counted: the rest is easier."""
GROWTH = 32
"""Times the replicas that formulas ask for, up to which more are tried."""
SIMULATED = "simulated"
UNSEEN = "not simulated: formulas for random arrivals, which these are not"


@dataclass(frozen=True)
class SizedForLog:
    """A plan under a log: `runs` of its requests, with so many `replicas` that carry them."""

    runs: RepeatedRuns
    replicas: int


Asking = Callable[[PlanRecord], AskedLoad | None]
"""The deployment of one replica of a plan, None where it cannot be simulated."""


def over_time(
    plans: Sequence[PlanRecord],
    others: Sequence[PlanRecord],
    workload: Workload,
    asking: Asking,
    most: Callable[[PlanRecord], int],
) -> tuple[tuple[PlanRecord, ...], tuple[str, ...]]:
    """Ranked plans with the first of them simulated over the log of a workload, and what was found, in words; `most` is
    how many replicas a plan may have. `others` are plans of the same chips, of which each has its best in the end.
    Raises `ValueError` for a log without times."""
    log = workload.log
    if log is None or log.time_s is None:
        raise ValueError("a log without times has no arrivals")
    ranked = list(rank_plans([*plans, *others], workload))
    seen: set[tuple[object, ...]] = set()
    while len(seen) < TRIED or _name(ranked[0]) not in seen:
        place = next((i for i, p in enumerate(ranked[:FIRST]) if _name(p) not in seen), None)
        if place is None:
            break
        plan = ranked[place]
        seen.add(_name(plan))
        one = asking(plan)
        if one is None:
            continue
        try:
            found = _sized(one, plan, workload, most(plan))
        except (InfeasibleError, UsageError):
            continue  # what is not simulated says so below
        ranked = list(
            rank_plans([*ranked[:place], _told(one, plan, found, workload), *ranked[place + 1 :]], workload)
        )
    if others:
        ranked = list(rank_plans(list({p.chip: p for p in reversed(ranked)}.values()), workload))
    simulated = [p for p in ranked if p.note.startswith(SIMULATED)]
    words = [
        f"{len(simulated)} plans simulated over the log: their percentiles and chances are the simulation's"
    ]
    if not log.random:
        index = log.dispersion(WINDOWS[0])
        how = (
            "" if index is None else f" (index of dispersion {format_number(index, 2)} over 1 s, 1 at random)"
        )
        words.append(f"arrivals are not random{how}: formulas do not hold for them")
        ranked = [
            p if p in simulated else replace(p, chance=None, note=_also(p.note, UNSEEN)) for p in ranked
        ]
    return tuple(ranked), tuple(words)


def _name(p: PlanRecord) -> tuple[object, ...]:
    return p.chip, p.layout, p.precision, p.runtime, p.prompt_workers


def _also(note: str, words: str) -> str:
    return "; ".join(filter(None, (note, words)))


def busiest(log: Arrivals, count: int = MOST) -> Arrivals:
    """So many requests one after the other, of which the busiest minute is in the middle."""
    counts = log.counts(WINDOWS[-1])
    if len(log) <= count or log.time_s is None:
        return log
    middle = len(log) // 2
    if len(counts):
        start = log.time_s[0] + WINDOWS[-1] * float(np.argmax(counts))
        middle = int(np.searchsorted(log.time_s, start))
    first = int(np.clip(middle - count // 3, 0, len(log) - count))
    last = first + count
    known = None if log.blocks is None else log.blocks[first:last]
    times = log.time_s[first:last]
    return replace(
        log,
        prompt=log.prompt[first:last],
        output=log.output[first:last],
        time_s=times - times[0],
        blocks=known,
    )


def _limits(found: Outcome, workload: Workload) -> list[tuple[float, Array]]:
    """The targets, and the times that they bound; what was never served waits for ever."""
    lost = np.full(int(np.sum(~found.served)), np.inf)
    times = ((workload.ttft_s, found.ttft_s), (workload.tpot_s, found.tpot_s), (workload.e2e_s, found.e2e_s))
    return [
        (limit, np.concatenate([seconds, lost]))
        for limit, seconds in times
        if limit is not None and len(seconds)
    ]


def _bounded(times: Array, workload: Workload) -> float:
    """Of times what a target bounds: their mean, or a percentile."""
    return float(times.mean() if workload.percentile is None else np.quantile(times, workload.percentile))


def _holds(found: Outcome, workload: Workload) -> bool:
    return all(_bounded(times, workload) <= limit for limit, times in _limits(found, workload))


def _sized(one: AskedLoad, plan: PlanRecord, workload: Workload, most: int) -> SizedForLog:
    """The fewest replicas, from those that formulas ask for on, with which the targets hold as surely as was asked."""
    assert workload.log is not None
    passes = pass_times(one)
    fleet = fleet_of(one, passes)
    high = float(passes.high.decode[0, 0] / passes.mid.decode[0, 0])
    slower = passes.mid.scaled(max(high ** (NormalDist().inv_cdf(workload.confidence) / Z80), 1.0))
    part, host_s = busiest(workload.log), float(np.asarray(one.context.rates([one.deployment])[1].request_s))

    def holds(replicas: int, requests: Arrivals = part) -> bool:
        engines: Engines = replace(fleet, table=slower, engines=fleet.engines * replicas)
        return _holds(run(requests, engines).delayed(host_s), workload)

    least = plan.replicas - plan.spare
    limit = max(min(most - plan.spare, least * GROWTH), least)
    below, count = least - 1, least
    while not holds(count) and count < limit:
        below, count = count, min(2 * count, limit)
    while count - below > 1 and count > least:
        middle = (below + count) // 2
        below, count = (below, middle) if holds(middle) else (middle, count)
    traffic = SimulatedTraffic(workload.log, workload.log.line)
    return SizedForLog(runs_of(replace(one, replicas=count), traffic), count)


def _told(one: AskedLoad, plan: PlanRecord, found: SizedForLog, workload: Workload) -> PlanRecord:
    """The plan with so many replicas, its times those of the simulation, with what formulas had said of it."""
    runs, replicas = found.runs, found.replicas
    if replicas != plan.replicas - plan.spare:
        group, loads = loads_of([replace(one, replicas=replicas, rate_per_s=workload.rate_per_s)])
        each = plan.largest_requests_per_s / (plan.replicas - plan.spare)
        fleet = ReplicaSet(replicas, plan.spare, largest_per_s=each, slope=plan.rate_slope, driven=True)
        asked = [replace(one, replicas=replicas, rate_per_s=workload.rate_per_s)]
        (more,) = one.context.records(
            group, loads, served(asked, loads), [fleet], rate_per_s=workload.rate_per_s, quantiles={}
        )
    else:
        more = plan
    limits = (_limits(o, workload) for o in runs.all)
    ends = [[(limit, _bounded(times, workload)) for limit, times in found] for found in limits]
    chances = [
        _chance(limit, low, mid, high) for (limit, low), (_, mid), (_, high) in zip(*ends, strict=True)
    ]
    tails = {
        name: TailRecord(
            *(float(np.quantile(t, q)) if len(t) else None for t in (runs.mid.ttft_s, runs.mid.tpot_s))
        )
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
        chance=min(chances) if chances else plan.chance,
        note=_also(said, plan.note),
        converted=plan.converted,
    )


def _chance(limit: float, low: float, mid: float, high: float) -> float:
    """The probability that a target holds; one that is missed by what was never served has none."""
    if not np.isfinite(high):
        return 0.0
    return chance(limit, mid, min(low, mid), max(high, mid))


def _shares(workload: Workload) -> dict[str, float]:
    own = workload.percentile or 0.5
    return {f"p{q * 100:g}": q for q in sorted({*QUANTILES.values(), own})}


def _mean(figure: Figure, times: Sequence[Array]) -> Figure:
    low, mid, high = (float(t.mean()) for t in times)
    return replace(figure, mid=mid, low=min(low, mid), high=max(high, mid))
