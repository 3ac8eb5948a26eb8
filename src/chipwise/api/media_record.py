"""A model that generates no tokens as a plan, put together of parts that stand alone: how fast it is, how many replicas
carry what was asked, how long requests wait for them, what they hold, cost and draw, and when a job is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from chipwise.api.media_asked import DEFAULT, Sampling
from chipwise.api.media_work import Work
from chipwise.api.scaling import start_up_s
from chipwise.api.simulating import RepeatedRuns
from chipwise.calibrate.fit_media import attended, media_seen
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.media_runtime import MediaRuntime, media_runtime_for
from chipwise.cost.cost import Cost
from chipwise.evidence.axes import Levels, chip_axes
from chipwise.evidence.discrepancy import Scatter, spread_of
from chipwise.evidence.judge import Basis, Estimate, Nearness, chance, judge
from chipwise.evidence.tiers import network_tier
from chipwise.parallel.memory import MemoryAccount, Verdict
from chipwise.predict.fleet import Day, over_day, replicas_for
from chipwise.predict.pipeline import Pace, StageTimes, seconds
from chipwise.predict.rounds import by_deadline, rounds, workers_for
from chipwise.predict.waiting import Queue, load_within, replicas_within
from chipwise.report.assemble import job_record, price_record
from chipwise.report.energy import SAMPLES, Powered, energy_record
from chipwise.report.media import MediaPlan
from chipwise.report.records import EnergyRecord, Figure, PriceRecord, figure
from chipwise.report.simulated import FollowingRecord, PeakRecord
from chipwise.units import Array, format_seconds
from chipwise.values import dataclass
from chipwise.workload.workload import Task

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

ATTENDED = 0.25  # of the time, from which on it matters whether such attention was measured
LATE = 0.99  # of requests, whose wait is told beside the mean

SCENARIOS: Mapping[Task, str] = {"batch": "Offline", "serve": "Server", "local": "SingleStream"}
"""Scenario of the submissions by which tuned software is judged: what bounds it."""
WORDS: Mapping[Nearness, Basis] = {"kind": "modelled"}
"""What a figure rests on, where that is not the rows of a fit."""


@dataclass(frozen=True)
class Replicas:
    """How many replicas work (None: those that carry the rate or the job asked), and the part of full load that all are
    given; `spare` ones stand beside them."""

    count: int | None = None
    load: float = 1.0
    spare: int = 0

    @property
    def all(self) -> int:
        """Those that work and those that stand by."""
        return (self.count or 1) + self.spare


@dataclass(frozen=True)
class Speed:
    """How fast one copy is: seconds of a request by resource, what they are judged by, the interval of a request that
    is alone, and of what passes before the next is taken up at full load (`full`)."""

    pace: Pace
    cost: Cost
    near: Nearness
    latency: Estimate
    full: Estimate

    @classmethod
    def of(cls, work: Work, numbers: Parameters) -> Speed:
        """Under fitted numbers."""
        pace = work.pace(numbers)
        cost = seconds(work.stages, pace)
        total_s = float(cost.total_s)
        near = _near(work, numbers, total_s)
        latency = _judged_s(work, near, total_s)
        busy_s = total_s if work.asked.level == "stock" else work.busy_s(pace)
        return cls(pace, cost, near, latency, latency.scaled(busy_s / total_s))

    def within(self, confidence: float) -> float:
        """How many times slower than predicted a request may be, with that probability."""
        return self.latency.within(confidence) / self.latency.mid


@dataclass(frozen=True)
class Doing:
    """Work on so many replicas: what they deliver, how long requests wait for them, how surely targets hold. It is as
    light as a choice among many needs; `plan` makes the record of it. `seen`: what happened to the requests of a log,
    where these were simulated, and `said` what formulas had made of it. `peak`: what a simulation of the busiest slice
    of a day says, with how surely the targets `hold` in it; `scaling` is how replicas may follow a log or a day."""

    work: Work
    numbers: Parameters
    speed: Speed
    replicas: Replicas
    delivered: Estimate
    queue: Queue | None
    seen: RepeatedRuns | None = None
    said: Doing | None = None
    peak: PeakRecord | None = None
    hold: float | None = None
    scaling: FollowingRecord | None = None

    @classmethod
    def of(cls, work: Work, numbers: Parameters, speed: Speed, replicas: Replicas) -> Doing:
        """At a speed; replicas that nobody counted are as many as carry what was asked."""
        asked, batch = work.asked, work.pipeline.samples
        if replicas.count is None:
            carrying = _carrying(asked, speed, batch, work.copies)
            replicas = replace(replicas, count=carrying, spare=asked.spare)
        count = replicas.count or 1
        one = speed.full.scaled(1.0 / (work.copies * replicas.load)).inverse(float(batch))
        delivered = one.scaled(float(count))
        if asked.job is not None:
            took = _job_s(speed, asked.job.tokens, batch * work.copies * count)
            delivered = took.inverse(asked.job.tokens)
        return cls(work, numbers, speed, replicas, delivered, _queue(work, speed, replicas, delivered))

    @property
    def asked(self) -> Sampling:
        """The question."""
        return self.work.asked

    @property
    def chips(self) -> int:
        """Of all replicas."""
        return self.work.packages * self.replicas.all

    @property
    def part_per_s(self) -> float:
        """Samples a second of a part of a replica that works alone, at its load."""
        return self.replicas.load * self.work.pipeline.samples / self.speed.full.mid

    @property
    def each_per_s(self) -> float:
        """Requests a second that a replica may be given, by formulas."""
        work, speed = self.work, self.speed
        return work.pipeline.samples * work.copies / speed.full.mid * _used(work, speed, self.replicas)

    @property
    def start_s(self) -> float:
        """Seconds until one more replica serves."""
        packages, held = self.work.packages, self.work.held(self.numbers)
        weights = sum(size for kind, size in _uses(held).items() if kind.startswith("weights"))
        hosts = -(-packages // self.work.system.chips_per_host) if self.work.system else 1
        return start_up_s(weights * packages * self.work.chip.devices_per_package, self.work.chip, packages, hosts)

    @property
    def hosts(self) -> int:
        """Machines that hold all chips."""
        system = self.work.system
        return -(-self.chips // (system.chips_per_host if system else 1))

    @property
    def group(self) -> int:
        """Chips of a replica that share one machine."""
        system = self.work.system
        return min(self.work.packages, system.chips_per_host) if system else self.work.packages

    @cached_property
    def waiting_bytes(self) -> float:
        """Bytes that wait on the fullest host."""
        return self.work.waiting_bytes(self.numbers, self.replicas.all)

    @property
    def job_h(self) -> Estimate | None:
        """Hours of the job; None without one."""
        job = self.asked.job
        return None if job is None else self.delivered.inverse(job.tokens / 3600.0)

    @property
    def answered_s(self) -> float:
        """Seconds of a request with its wait: of the mean one, or where a share is asked about of 99 of 100."""
        if self.queue is None:
            return self.speed.latency.mid
        return self.queue.latency_s + self.waits["mean" if self.asked.percentile is None else "late"]

    @cached_property
    def waits(self) -> Mapping[str, float]:
        """Seconds that requests wait, in the `mean` and of 99 of 100 at most (`late`): by a simulation, else by
        formulas."""
        if self.seen is None:
            return _waits(self.queue)
        waited = self.seen.mid.wait_s
        mean = float(waited.mean())
        return {"mean": mean, "late": max(float(np.quantile(waited, LATE)), mean)}

    @cached_property
    def chance(self) -> float | None:
        """The probability that a job keeps its deadline, or a request its limit with what it waits; None without
        such."""
        asked, latency, hours = self.asked, self.speed.latency, self.job_h
        if asked.job is not None and hours is not None:
            due = asked.job.deadline_s
            return None if due is None else hours.kept(due / 3600.0)
        limit = asked.latency_s
        if limit is None:
            return None
        if self.hold is not None:
            return self.hold
        if self.seen is not None:
            low, mid, high = (bounded_s(found.e2e_s, asked.percentile) for found in self.seen.all)
            return chance(limit, mid, min(low, mid), max(high, mid))
        slower = limit / latency.mid if self.queue is None else self.queue.slowest(limit, asked.percentile)
        return latency.kept(slower * latency.mid)

    def _usual(self) -> MediaRuntime:
        """The software that nobody is surprised by: the chip's first, a server of requests that come at a rate."""
        served = self.work.runtime.server and self.asked.rate_per_s is not None
        return self.work.runtime if served else media_runtime_for(self.work.chip)

    def plan(self, terms: Terms) -> MediaPlan:
        """The record of it, at prices."""
        work, numbers, speed, replicas = self.work, self.numbers, self.speed, self.replicas
        asked, latency, total_s = self.asked, speed.latency, speed.latency.mid
        step = _step(work, speed)
        price = price_record(terms.basis(work.chip.id), self.chips, self.group)
        waits = self.waits
        words = float(work.pipeline.settings.get("tokens", 0.0))
        held, capacity = work.held(numbers), work.capacity_bytes
        taken = _judged_bytes(work, network_tier(work.chip, work.runtime, numbers), float(held.total_bytes))
        waiting, host = self.waiting_bytes, work.host_capacity_bytes
        queue, usual = self.queue, self._usual()
        return MediaPlan(
            chip=work.chip.id,
            chips=self.chips,
            runtime=work.runtime.id,
            usual=usual.id,
            ported=usual != work.runtime and work.runtime.ported,
            precision=work.precision,
            spread=asked.spread.label(),
            offload=asked.offload,
            batch=work.pipeline.batch,
            parts=work.pipeline.members if work.pipeline.members > 1 else 0,
            replicas=replicas.all,
            latency_s=figure(latency),
            step_s=figure(step),
            it_per_s=figure(step.inverse(1.0)),
            samples_per_s=figure(self.delivered),
            tokens_per_s=figure(self.delivered.scaled(words)) if words else None,
            bound=speed.cost.bound,
            shares={name: float(s) / total_s for name, s in speed.cost.exposed.items() if float(s) > 0.0},
            stages={s.name: _alone(s, speed.pace) for s in work.stages} | {"request": float(speed.pace.request_s)},
            memory_bytes=float(held.total_bytes),
            memory_range=figure(taken),
            memory_chance=taken.kept(capacity),
            memory=_uses(held),
            capacity_bytes=capacity,
            verdict=(held.verdict() if waiting <= host else Verdict.SHORT).value,
            host_bytes=waiting,
            host_capacity_bytes=host if waiting and host < float("inf") else None,
            flops_per_s=work.pipeline.flops / total_s,
            share_of_peak=work.pipeline.flops / total_s / _peak(work),
            energy=_energy(work, speed, replicas, numbers),
            price=price,
            usd_per_1000=_per_1000(price, self.delivered, self.chips, asked),
            chance=self.chance,
            job=None if asked.job is None else job_record(asked.job.tokens, self.delivered, price),
            load=None if queue is None else queue.load(),
            wait_s=waits.get("mean"),
            wait_p99_s=waits.get("late"),
            answered_s=None if queue is None else queue.latency_s + waits["mean"],
            answered_p99_s=None if queue is None else queue.latency_s + waits["late"],
            hosts=self.hosts,
            spare=replicas.spare,
            day=_day(work, speed, replicas, price),
            note=self._note(),
            scaling=self.scaling,
            peak=self.peak,
        )

    def _note(self) -> str:
        """What a simulation says of waits, and what formulas had said; of a pass of serving software what it leaves
        out."""
        if self.peak is not None:
            return self.peak.words
        if self.seen is None or self.said is None:
            return "" if self.work.served is None else self.work.served.words
        late, had, count = self.waits["late"], self.said.waits.get("late"), self.said.replicas.all
        words = f"simulated: p99 wait {format_seconds(late)}"
        if had is None:
            return words
        before = f"{format_seconds(had)} with {count} replica{'s' * (count > 1)}"
        return f"{words}, where formulas for random arrivals say {before}"


def _uses(held: MemoryAccount) -> dict[str, float]:
    """Bytes on the device, by use."""
    return {item.name: float(item.bytes) for item in held.items if item.where == "device"}


def bounded_s(times: Array, percentile: float | None) -> float:
    """Of times what a target bounds: their mean, or a percentile."""
    return float(times.mean() if percentile is None else np.quantile(times, percentile))


def plan_of(work: Work, numbers: Parameters, terms: Terms, replicas: Replicas = Replicas()) -> MediaPlan:  # noqa: B008
    """The record of work under fitted numbers and prices, on so many replicas."""
    return Doing.of(work, numbers, Speed.of(work, numbers), replicas).plan(terms)


def _step(work: Work, speed: Speed) -> Estimate:
    """Seconds of one call of the part that is called most often."""
    pace = speed.pace if work.pipeline.trained else replace(speed.pace, request_s=0.0)
    return speed.latency.scaled(float(seconds(work.asking("step_s"), pace).total_s) / speed.latency.mid)


def _peak(work: Work) -> float:
    """Operations a second of all devices of a replica at the usual format."""
    return float(work.device.matrix[DEFAULT]) * work.asked.spread.devices


def _job_s(speed: Speed, samples: float, at_once: int) -> Estimate:
    """Seconds of a job: the first round takes as long as a request, each further one what passes at full load until the
    next is taken up."""
    further = float(rounds(samples, at_once)) - 1.0
    return speed.latency.scaled(1.0 + further * speed.full.mid / speed.latency.mid)


def load_kept(asked: Sampling, speed: Speed, batch: int, copies: int, confidence: float) -> float:
    """The part of full load at which so many copies keep the limit on a request, with a probability; 0 where none
    does."""
    slower = speed.within(confidence)
    limit = float("inf") if asked.latency_s is None else asked.latency_s
    return load_within(limit, speed.full.mid * slower, batch, copies, asked.percentile) / slower


def _near(work: Work, numbers: Parameters, total_s: float) -> Nearness:
    """How near the rows of the fit are; those of other attention are far where that is most of the time."""
    near = network_tier(work.chip, work.runtime, numbers, work.asked.level)
    attended_s = sum(float(s.calls) * s.of("attention") for s in work.stages)
    if work.asked.level == "tuned" or attended_s < ATTENDED * total_s:
        return near
    return near if attention_seen(work, numbers) else "kind"


def attention_seen(work: Work, numbers: Parameters) -> bool:
    """Whether rows of the fit had such attention: of that software on such units."""
    label = attended(*(work.labels[name] for name in ("runtime", "attends", "core")))
    return f"attends={label}" in numbers.derived(media_seen)


def _carrying(asked: Sampling, speed: Speed, batch: int, copies: int) -> int:
    """Replicas that carry the rate at `utilisation` of what each can, and more where requests would be answered later
    than the limit; that are done with the job by its deadline in whole rounds (where that is sooner than one, as many
    as have a sample to make); else one. All with the probability asked; where no number keeps a limit so, in the
    middle."""
    wanted, job, full = asked.rate_per_s, asked.job, speed.full
    slower = speed.within(asked.confidence)
    if wanted is not None:
        least = int(replicas_for(wanted, batch * copies / full.mid, most_used=asked.utilisation))
        if asked.latency_s is None:
            return least
        for slow in (slower, 1.0):
            left_s = asked.latency_s - speed.latency.mid * slow
            enough = replicas_within(wanted, left_s, full.mid * slow, batch, asked.percentile)
            if enough is not None:
                return max(least, -(-enough // copies))
        return least
    if job is None or job.deadline_s is None:
        return 1
    # a first round takes as long as a request, which may be more than what passes until the next is taken up
    later_s = (speed.latency.mid - full.mid) * slower
    allowed = by_deadline(job.deadline_s - later_s, full.mid * slower)
    return int(workers_for(job.tokens, batch * copies, allowed))


def _queue(work: Work, speed: Speed, replicas: Replicas, delivered: Estimate) -> Queue | None:
    """The queue before all copies, at the rate asked or the part of full load that they are given; None where full."""
    wanted = work.asked.rate_per_s
    if wanted is None and replicas.load >= 1.0:
        return None
    arriving = delivered.mid if wanted is None else wanted
    copies = (replicas.count or 1) * work.copies
    return Queue(arriving, speed.latency.mid, speed.full.mid, work.pipeline.samples, copies)


def _waits(queue: Queue | None) -> dict[str, float]:
    """Seconds that requests wait, in the `mean` and at most a share of them (`late`). Where fewer wait than are left
    out of that share, it waits for nothing while the mean does not: what it waits at most is then the mean."""
    if queue is None:
        return {}
    mean = queue.waits_s()
    return {"mean": mean, "late": max(queue.waits_s(LATE), mean)}


def _day(work: Work, speed: Speed, replicas: Replicas, price: PriceRecord | None) -> Day | None:
    """A day's arrivals at all replicas, each of which takes what keeps the limit as surely as asked, without one the
    share of full load that was asked for; None where no curve was given."""
    asked = work.asked
    if asked.curve is None:
        return None
    usd = float("nan") if price is None else price.mid / replicas.all
    largest, most = work.pipeline.samples * work.copies / speed.full.mid, _used(work, speed, replicas)
    return over_day(asked.curve, largest, replicas.all, usd, 1.0, replicas.spare, most)


def _used(work: Work, speed: Speed, replicas: Replicas) -> float:
    """The part of full load that replicas are given, which keeps the limit as surely as asked."""
    asked, copies = work.asked, (replicas.count or 1) * work.copies
    if asked.latency_s is None:
        return asked.utilisation
    kept = load_kept(asked, speed, work.pipeline.samples, copies, asked.confidence)
    return min(asked.utilisation, kept)


def _energy(work: Work, speed: Speed, replicas: Replicas, numbers: Parameters) -> EnergyRecord | None:
    """What all chips draw at that load, and joules of a sample; None where their power limit is not published. Tuned
    software of one user is measured one request after the other."""
    chips, system = work.packages * replicas.all, work.system
    batch, count = float(work.pipeline.samples), float(replicas.count or 1)
    powered = Powered.of(work.chip, chips, system, numbers)
    if powered is None or work.pipeline.flops <= 0.0:
        return None
    busy = speed.full.scaled(1.0 / replicas.load)
    alone = work.asked.task == "local" and work.asked.level == "tuned"
    use = work.use(speed.latency.mid if alone else busy.mid) * (count / replicas.all)
    rate = speed.latency.inverse(batch) if alone else busy.inverse(batch).scaled(count * work.copies)
    whole = batch if work.asked.task == "local" else 1.0
    machines = -(-chips // (system.chips_per_host if system else 1))
    return energy_record(replace(powered, kind=SAMPLES), use, chips, machines, rate, whole)


def _per_1000(price: PriceRecord | None, rate: Estimate, chips: int, asked: Sampling) -> Figure | None:
    """Dollars per 1,000 samples at the price that was picked (what others ask stands beside the price): of the rate
    asked, which is carried whatever the speed, else of full load, with the interval of the speed; chips that fill no
    machine then bear their share of it."""
    if price is None:
        return None
    if asked.rate_per_s is not None:
        usd = price.mid / (3.6 * asked.rate_per_s)
        return Figure(usd, usd, usd, rate.basis, rate.provisional)
    share = chips / price.billed if asked.task != "local" else 1.0
    return figure(rate.inverse(share * price.mid / 3.6))


def _alone(stage: StageTimes, pace: Pace) -> float:
    """Seconds of all calls of a stage."""
    return float(seconds((stage,), replace(pace, request_s=0.0)).total_s)


def levels(work: Work) -> Levels:
    """Where work lies on the axes of the model of error."""
    labels = work.labels
    attended_ = attended(*(labels[name] for name in ("runtime", "attends", "core")))
    return chip_axes(
        work.chip,
        runtime=work.runtime.id,
        model=work.pipeline.name,
        precision=labels["dtype"],
        phase=labels["phase"],
        unit=work.pipeline.unit,
        attends=attended_ if work.pipeline.attends else "none",
    )


def _judged_s(work: Work, near: Nearness, mid: float) -> Estimate:
    """A time with its interval: of tuned software by submissions to MLPerf, of trainers by published runs, of passes
    of software that serves by its published rates, else by other people's benchmarks."""
    if work.trained is not None:
        return work.trained.judged(mid, "time")
    if work.served is not None:
        return work.served.judged(mid)
    if work.asked.level == "tuned":
        scenario = SCENARIOS[work.asked.task]
        return _judged(mid, near, spread_of(chip_axes(work.chip, scenario=scenario), "tuned", "samples"))
    return _judged(mid, near, spread_of(levels(work), "media"))


def _judged_bytes(work: Work, near: Nearness, mid: float) -> Estimate:
    """Bytes with their interval."""
    if work.trained is not None:
        return work.trained.judged(mid, "memory")
    return _judged(mid, near, spread_of(levels(work), "media_memory"))


def _judged(mid: float, near: Nearness, spread: Scatter) -> Estimate:
    return judge(mid, spread.around(), WORDS.get(near, "calibrated"), provisional=not spread.known[0])
