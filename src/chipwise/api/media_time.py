"""Networks without tokens through time: samples that wait for copies of a network, in the engine of events; one
deployment, and the first of ranked plans with as many replicas as a log of requests needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.api.media_asked import Files
from chipwise.api.media_choice import NetworkChoice
from chipwise.api.media_record import Doing, Speed, bounded_s
from chipwise.api.media_ways import Way
from chipwise.api.media_work import Place, Work
from chipwise.api.over_time import FIRST, GROWTH, MOST, UNSEEN, WaryReplica, busiest, fewest, followed_log
from chipwise.api.scaling_day import Slices, followed_day, peak_chance, peak_of
from chipwise.api.simulating import RepeatedRuns, SimulatedTraffic
from chipwise.predict.events.engine import QUEUE, JobTimes, Outcome, job_fleet, run
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.report.media import SHOWN, MediaPlan
from chipwise.search.space import By
from chipwise.workload.arrivals import Arrivals, rate_words
from chipwise.workload.curve import RateCurve
from chipwise.workload.lengths import Lengths
from chipwise.workload.workload import Workload

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

TRIED = 12
"""Plans whose replicas are counted at most, until the first ones are: no more than one of a chip."""
CELL = 64
"""count: replicas that are simulated at most, of a day. Chosen: a batch is one event, and fewer would wait more; moves
the cost of large fleets."""
COUNTED = 4000
"""count: requests of a slice of a day that are simulated. Chosen: sixty for each replica; moves a percentile by
chance."""
SAMPLE = Lengths(1.0, 1.0)
"""Of a request of a model without tokens: nothing of it is counted in tokens."""
PADDED = "graph"
"""Pace of software whose calls are one graph of fixed shapes: a batch that is not full takes as long as a full one."""


def job_times(model: str | Files, place: Place, terms: Terms, work: Work, speed: Speed) -> JobTimes:
    """Seconds of batches of up to as many samples as were asked, until the next can be taken up: each doubling is
    priced, those between lie on straight lines."""
    most = work.pipeline.samples
    if most == 1 or work.pipeline.members > 1 or place.runtime.pace == PADDED:
        return JobTimes(np.full(most, speed.full.mid))
    sizes = [1 << i for i in range((most - 1).bit_length())]
    asked = (replace(work.asked, batch=n) for n in sizes)
    works = (Work.of(place.pipeline(model, terms, one), place, terms, one) for one in asked)
    times = [Speed.of(one, place.numbers).full.mid for one in works]
    found = np.interp(np.arange(1.0, most + 1.0), [*sizes, most], [*times, speed.full.mid])
    return JobTimes(np.minimum.accumulate(found[::-1])[::-1])


def job_runs(
    times: JobTimes,
    speed: Speed,
    copies: int,
    traffic: SimulatedTraffic,
    route: str = QUEUE,
    *,
    stages: int = 1,
    scaling: Scaling | None = None,
) -> RepeatedRuns:
    """The requests on so many copies, at the ends and the middle of the interval of times; `stages` of them are a
    replica, which may come and go (`scaling`)."""
    later = speed.latency.mid - speed.full.mid

    def at(factor: float) -> Outcome:
        fleet = replace(job_fleet(times.scaled(factor), copies, route), stages=stages, scaling=scaling)
        found = run(traffic.arrivals, fleet, clients=traffic.clients, pause_s=later * factor)
        ended = replace(found, first=found.first + later * factor, last=found.last + later * factor)
        return ended.counting(traffic.counted)

    full = speed.full
    return RepeatedRuns(at(full.low / full.mid), at(1.0), at(full.high / full.mid))


def words_of(place: Place, work: Work, copies: int, route: str) -> tuple[str, ...]:
    """How the software forms batches, and who gets a request."""
    most = work.pipeline.samples
    said = f"{place.runtime.name}: a copy takes what waits when it is free, up to {most:,} at once"
    if most == 1:
        said = f"{place.runtime.name}: one request after the other"
    elif place.runtime.pace == PADDED:
        said += ", in a graph of fixed shapes: a batch that is not full takes as long as a full one"
    ways = {
        QUEUE: "wait in one queue, from which each copy takes when it is free",
        "least": "go to the least loaded copy as they come",
        "turn": "go to copies in turn as they come",
    }
    return (said, *([f"requests {ways[route]}"] if copies > 1 else []))


def overload_words(traffic: SimulatedTraffic, each_s: float) -> tuple[str, ...]:
    """That more requests come than copies carry, of which all take up one every `each_s` at most."""
    load = (traffic.arrivals.rate_per_s or 0.0) * each_s
    if traffic.clients is not None or load < 1.0:
        return ()
    most = rate_words(1.0 / each_s)
    return (f"overloaded: at most {most} can be served, and the queue grows for as long as requests come",)


def over_log(
    choice: NetworkChoice, model: str | Files, log: Arrivals, by: By, given: ScalingGiven
) -> tuple[NetworkChoice, tuple[str, ...]]:
    """The choice with the first of its plans simulated over a log, each with as many replicas as keep the target there
    as surely as asked and with the cheapest policy under which these may follow it, and what was found, in words."""
    peak, tried = busiest(log, MOST), 0
    while True:
        first = choice.best_by(by)[: FIRST if tried < TRIED else 1]
        new = next((way for way in first if way.doing.seen is None), None)
        if new is None:
            break
        doing, tried = _seen(new, model, log, peak, choice), tried + 1
        choice = choice.settled(new, replace(new, doing=doing), by)
    count = sum(way.doing.seen is not None for way in choice.ways)
    words = [f"{count} plans simulated over {log.line}: their waits and chances are the simulation's", *log.said]
    for rank, way in enumerate(choice.best_by(by)[:FIRST], 1):
        doing = way.doing
        if doing.seen is None or doing.asked.latency_s is None or (doing.replicas.count or 1) < 2:
            continue
        closed = max(float(np.floor(doing.each_per_s * doing.answered_s)), 1.0)
        wary = _wary(way, model, log.rate_per_s, log)
        scaling, why = followed_log(replace(way.plan(), rank=rank), wary, doing.start_s, closed, given)
        choice, words = (choice.exchanged(way, replace(way, doing=replace(doing, scaling=scaling))), [*words, *why])
    return choice, tuple(words)


def over_day(choice: NetworkChoice, model: str | Files, curve: RateCurve, by: By, given: ScalingGiven) -> NetworkChoice:
    """The choice whose plans, as far as they are printed, hold the peak of a day in simulation with as many replicas as
    that takes, and of which the first have the cheapest policy under which these follow the day; as it is where no
    target is asked."""
    known: dict[int, Slices] = {}
    if choice.asked.latency_s is None:
        return choice
    while len(known) < SHOWN + TRIED:
        shown = choice.best_by(by)[:SHOWN] if choice.kept else ()
        way = next((one for one in shown if one.doing.peak is None), None)
        if way is None:
            break
        known[id(way.doing.work)] = slices = _slices(way, model, curve.peak)
        choice = choice.exchanged(way, replace(way, doing=_held(way, slices, curve.peak, choice)))
    for way in choice.best_by(by)[:FIRST]:
        doing, its = way.doing, known.get(id(way.doing.work))
        if its is None or doing.peak is None or not doing.peak.holds:
            continue
        scaling, _ = followed_day(way.plan(), doing.each_per_s, curve, its, given)
        choice = choice.exchanged(way, replace(way, doing=replace(doing, scaling=scaling)))
    return choice


def _wary(way: Way, model: str | Files, rate_per_s: float | None, log: Arrivals | None = None) -> WaryReplica:
    """A replica whose batches take as long as they do with the probability with which its target is to hold."""
    doing, asked = way.doing, way.doing.asked
    work, speed = doing.work, doing.speed
    slower = speed.within(asked.confidence)
    times = job_times(model, way.place, way.terms, work, speed).scaled(slower)
    bounded = Workload(
        "serve",
        1.0,
        1.0,
        rate_per_s,
        e2e_s=asked.latency_s,
        percentile=asked.percentile,
        confidence=asked.confidence,
        log=log,
    )
    fleet = replace(job_fleet(times, work.copies), stages=work.copies)
    return WaryReplica(fleet, bounded, (speed.latency.mid - speed.full.mid) * slower)


def _slices(way: Way, model: str | Files, peak: float) -> Slices:
    """The slices of a day as a replica sees them."""
    work, speed = way.doing.work, way.doing.speed
    times = job_times(model, way.place, way.terms, work, speed)

    def repeated(replicas: int, traffic: SimulatedTraffic) -> RepeatedRuns:
        return job_runs(times, speed, replicas * work.copies, traffic)

    return Slices(_wary(way, model, peak), SAMPLE, way.doing.start_s, repeated, CELL, COUNTED)


def _held(way: Way, slices: Slices, peak_per_s: float, choice: NetworkChoice) -> Doing:
    """A way with as many replicas as hold its target at the peak of a day, or the most that were tried."""
    doing = way.doing
    allowed = int(min(choice.limits.chips(doing.work.chip.id) / doing.work.packages, 10.0**6))
    peak = peak_of(way.plan(), slices, peak_per_s, allowed)
    if peak.before is None:
        return replace(doing, peak=peak)
    grown = Doing.of(doing.work, doing.numbers, doing.speed, replace(doing.replicas, count=peak.replicas))
    return replace(grown, peak=peak, hold=peak_chance(grown.chance, peak, slices))


def unseen(plans: Sequence[MediaPlan], log: Arrivals) -> tuple[MediaPlan, ...]:
    """Plans of which those that were not simulated are given no chance where arrivals are not random."""
    if log.random:
        return tuple(plans)
    return tuple(p if p.note else replace(p, chance=None, note=UNSEEN) for p in plans)


def _seen(way: Way, model: str | Files, log: Arrivals, peak: Arrivals, choice: NetworkChoice) -> Doing:
    """A way over a log, with the fewest replicas that keep its target at the `peak`, from those that formulas ask for
    on; where no number keeps it as surely as asked, those that do in the middle, else as many as formulas ask for."""
    doing, place = way.doing, way.place
    work, speed, asked = doing.work, doing.speed, doing.asked
    times = job_times(model, place, way.terms, work, speed)
    least = doing.replicas.count or 1
    later, limit_s = speed.latency.mid - speed.full.mid, asked.latency_s
    allowed = choice.limits.chips(work.chip.id) / work.packages - asked.spare
    limit = int(max(min(allowed, GROWTH * least), least))

    def enough(slower: float) -> int:
        def holds(replicas: int) -> bool:
            assert limit_s is not None
            found = run(peak, job_fleet(times.scaled(slower), replicas * work.copies))
            return bounded_s(found.e2e_s + later * slower, asked.percentile) <= limit_s

        return fewest(holds, least, limit, least)

    sure = [] if limit_s is None else [speed.within(asked.confidence), 1.0]
    count = next((n for slower in sure if (n := enough(slower)) <= limit), least)
    grown = Doing.of(work, doing.numbers, speed, replace(doing.replicas, count=count))
    runs = job_runs(times, speed, count * work.copies, SimulatedTraffic(log, log.line))
    return replace(grown, seen=runs, said=doing)
