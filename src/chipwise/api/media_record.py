"""A model that generates no tokens as a plan, put together of parts that stand alone: how fast it is, how many replicas
carry what was asked, how long requests wait for them, what they hold, cost and draw, and when a job is done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from chipwise.api.media_asked import DEFAULT, Sampling
from chipwise.api.media_judged import MEMORY, figured, judged, tier
from chipwise.api.media_work import Work
from chipwise.calibrate.fit_media import attended, media_seen
from chipwise.calibrate.parameter import Z80
from chipwise.calibrate.parameters import Parameters
from chipwise.cost.cost import Cost
from chipwise.evidence.judge import Estimate, Nearness, chance
from chipwise.predict.fleet import Day, over_day, replicas_for
from chipwise.predict.pipeline import Account, Pace, StageTimes, seconds
from chipwise.predict.rounds import by_deadline, rounds, workers_for
from chipwise.predict.waiting import Queue, load_within, replicas_within
from chipwise.report.assemble import figure, job_record, price_record
from chipwise.report.energy import OF_SAMPLES, Powered, energy_record
from chipwise.report.media import MediaPlan
from chipwise.report.records import EnergyRecord, Figure, PriceRecord
from chipwise.search.deployments import machine_for
from chipwise.units import duration_above, duration_words

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

__all__ = ["Replicas", "load_kept", "plan_of", "too_late", "within"]

COMFORTABLE = 0.9  # of the memory, up to which a plan is not tight
ATTENDED = 0.25  # of the time, from which on it matters whether such attention was measured
LATE = 0.99  # of requests, whose wait is told beside the mean


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
class _Speed:
    """How fast one copy is: seconds of a request by resource, what they are judged by, the interval of a request that
    is alone, of one of its steps, and of what passes before the next is taken up at full load (`full`)."""

    pace: Pace
    cost: Cost
    near: Nearness
    latency: Estimate
    step: Estimate
    full: Estimate

    @classmethod
    def of(cls, work: Work, numbers: Parameters) -> _Speed:
        """Under fitted numbers."""
        pace = work.pace(numbers)
        cost = seconds(work.stages, pace)
        total_s = float(cost.total_s)
        near = _near(work, numbers, total_s)
        trained = work.pipeline.trained
        latency = judged(figured(work.asked.task, work.asked.level, trained=trained), total_s, near)
        one = pace if trained else replace(pace, request_s=0.0)
        step = latency.scaled(float(seconds(work.asking("step_s"), one).total_s) / total_s)
        return cls(pace, cost, near, latency, step, latency.scaled(work.busy_s(pace) / total_s))


def plan_of(work: Work, numbers: Parameters, terms: Terms, replicas: Replicas = Replicas()) -> MediaPlan:
    """The record of work under fitted numbers and prices, on so many replicas."""
    asked, batch = work.asked, work.pipeline.batch
    speed = _Speed.of(work, numbers)
    full = speed.full.scaled(1.0 / work.copies)
    rate = full.scaled(1.0 / replicas.load).inverse(float(batch))  # of one replica
    if replicas.count is None:
        carrying = _carrying(asked, speed.latency, speed.full, batch, work.copies)
        replicas = replace(replicas, count=carrying, spare=asked.spare)
    delivered = rate.scaled(float(replicas.count or 1))
    if asked.job is not None:
        took = _job_s(speed, asked.job.tokens, batch * work.copies * (replicas.count or 1))
        delivered = took.inverse(asked.job.tokens)
    queue = _queue(work, speed, replicas, delivered)
    price, waits = _price(work, replicas.all, terms), _waits(queue)
    job = None if asked.job is None else job_record(asked.job.tokens, delivered, price)
    words = float(work.pipeline.settings.get("tokens", 0.0))
    held, capacity = work.held(numbers), work.capacity_bytes
    waiting, host = work.waiting_bytes(replicas.all), work.host_capacity_bytes
    total_s = speed.latency.mid
    peak = float(work.device.matrix[DEFAULT]) * asked.spread.devices
    return MediaPlan(
        chip=work.chip.id,
        chips=work.packages * replicas.all,
        runtime=work.runtime.id,
        precision=work.precision,
        spread=asked.spread.label,
        offload=asked.offload,
        batch=batch,
        replicas=replicas.all,
        latency_s=figure(speed.latency),
        step_s=figure(speed.step),
        it_per_s=figure(speed.step.inverse(1.0)),
        samples_per_s=figure(delivered),
        tokens_per_s=figure(delivered.scaled(words)) if words else None,
        bound=speed.cost.bound,
        shares={name: float(s) / total_s for name, s in speed.cost.exposed.items() if float(s) > 0.0},
        stages={s.name: _alone(s, speed.pace) for s in work.stages}
        | {"request": float(speed.pace.request_s)},
        memory_bytes=held.total,
        memory_range=figure(judged(MEMORY, held.total, tier(work.chip, work.runtime, numbers))),
        memory={name: getattr(held, name) for name in ("weights", "activations", "cache", "runtime")},
        capacity_bytes=capacity,
        verdict=_fits(held, capacity) if waiting <= host else "no",
        host_bytes=waiting,
        host_capacity_bytes=host if waiting and host < float("inf") else None,
        flops_per_s=work.pipeline.flops / total_s,
        share_of_peak=work.pipeline.flops / total_s / peak,
        energy=_energy(work, speed, replicas, numbers),
        price=price,
        usd_per_1000=_per_1000(price, delivered, work.packages * replicas.all, asked),
        chance=_chance(asked, speed.latency, queue, None if job is None else job.hours),
        job=job,
        load=None if queue is None else queue.load(),
        wait_s=waits.get("mean"),
        wait_p99_s=waits.get("late"),
        answered_s=None if queue is None else queue.latency_s + waits["mean"],
        answered_p99_s=None if queue is None else queue.latency_s + waits["late"],
        hosts=_hosts(work, replicas.all),
        spare=replicas.spare,
        day=_day(work, speed, replicas, price),
    )


def _job_s(speed: _Speed, samples: float, at_once: int) -> Estimate:
    """Seconds of a job: the first round takes as long as a request, each further one what passes at full load until the
    next is taken up."""
    further = float(rounds(samples, at_once)) - 1.0
    return speed.latency.scaled(1.0 + further * speed.full.mid / speed.latency.mid)


def load_kept(work: Work, numbers: Parameters, copies: int) -> float:
    """The part of full load at which so many copies keep the limit on a request, with the probability asked; 0 where
    none does."""
    return _kept(work, _Speed.of(work, numbers), copies)


def _kept(work: Work, speed: _Speed, copies: int) -> float:
    asked, batch = work.asked, work.pipeline.batch
    slower = within(figure(speed.latency), asked.confidence) / speed.latency.mid
    limit = float("inf") if asked.latency_s is None else asked.latency_s
    return load_within(limit, speed.full.mid * slower, batch, copies, asked.percentile) / slower


def within(latency: Figure, confidence: float) -> float:
    """Seconds that a latency keeps with a probability: the inverse of `chance`."""
    z = NormalDist().inv_cdf(confidence) / Z80
    end = latency.high if z > 0.0 else latency.low
    return float(latency.mid * (end / latency.mid) ** abs(z))


def too_late(name: str, soonest: MediaPlan, asked: Sampling) -> tuple[str, str]:
    """What is said of a deadline that no plan keeps, and what helps; `soonest` is the way that is done first."""
    hours = None if soonest.job is None else soonest.job.hours
    due_s = None if asked.job is None else asked.job.deadline_s
    if hours is None or due_s is None or soonest.chance is None:
        return f"{name}: no chip keeps the target", "more --chips, or a narrower --precision"
    sure_s = 3600.0 * within(hours, asked.confidence)
    return (
        f"{name}: no chip keeps the deadline of {duration_words(due_s)}, the nearest is "
        f"{soonest.chips}x {soonest.chip}, which is done in {duration_words(3600.0 * hours.mid)}: "
        f"by then with {soonest.chance:.0%} probability, {asked.confidence:.0%} asked",
        f"--deadline {duration_above(sure_s)}, fewer --steps, or a lower --confidence",
    )


def _near(work: Work, numbers: Parameters, total_s: float) -> Nearness:
    """How near the rows of the fit are; those of other attention are far where that is most of the time."""
    near = tier(work.chip, work.runtime, numbers, work.asked.level)
    attended_s = sum(float(s.calls) * s.of("attention") for s in work.stages)
    if work.asked.level == "tuned" or attended_s < ATTENDED * total_s:
        return near
    label = attended(*(work.labels[name] for name in ("runtime", "attends", "core")))
    return near if f"attends={label}" in numbers.derived(media_seen) else "kind"


def _carrying(asked: Sampling, latency: Estimate, full: Estimate, batch: int, copies: int) -> int:
    """Replicas that carry the rate at `utilisation` of what each can, and more where requests would be answered later
    than the limit; that are done with the job by its deadline in whole rounds (where that is sooner than one, as many
    as have a sample to make); else one. All with the probability asked."""
    wanted, job = asked.rate_per_s, asked.job
    slower = within(figure(latency), asked.confidence) / latency.mid
    each_per_s = batch * copies / full.mid
    if wanted is not None:
        least = int(replicas_for(wanted, each_per_s, most_used=asked.utilisation))
        if asked.latency_s is None:
            return least
        left_s = asked.latency_s - latency.mid * slower
        enough = replicas_within(wanted, left_s, full.mid * slower, batch, asked.percentile)
        return max(least, -(-(enough or 1) // copies))
    if job is None or job.deadline_s is None:
        return 1
    # a first round takes as long as a request, which may be more than what passes until the next is taken up
    later_s = (latency.mid - full.mid) * slower
    allowed = by_deadline(job.deadline_s - later_s, full.mid * slower)
    return int(workers_for(job.tokens, batch * copies, allowed))


def _queue(work: Work, speed: _Speed, replicas: Replicas, delivered: Estimate) -> Queue | None:
    """The queue before all copies, at the rate asked or the part of full load that they are given; None where full."""
    wanted = work.asked.rate_per_s
    if wanted is None and replicas.load >= 1.0:
        return None
    arriving = delivered.mid if wanted is None else wanted
    copies = (replicas.count or 1) * work.copies
    return Queue(arriving, speed.latency.mid, speed.full.mid, work.pipeline.batch, copies)


def _waits(queue: Queue | None) -> dict[str, float]:
    """Seconds that requests wait, in the `mean` and at most a share of them (`late`). Where fewer wait than are left
    out of that share, it waits for nothing while the mean does not: what it waits at most is then the mean."""
    if queue is None:
        return {}
    mean = queue.waits_s()
    return {"mean": mean, "late": max(queue.waits_s(LATE), mean)}


def _chance(asked: Sampling, latency: Estimate, queue: Queue | None, hours: Figure | None) -> float | None:
    """The probability that a job keeps its deadline, or a request its limit with what it waits; None without such."""
    if asked.job is not None and hours is not None:
        due = asked.job.deadline_s
        return None if due is None else chance(due / 3600.0, hours.mid, hours.low, hours.high)
    limit = asked.latency_s
    if limit is None:
        return None
    slower = limit / latency.mid if queue is None else queue.slowest(limit, asked.percentile)
    return chance(slower * latency.mid, latency.mid, latency.low, latency.high)


def _day(work: Work, speed: _Speed, replicas: Replicas, price: PriceRecord | None) -> Day | None:
    """A day's arrivals at all replicas, each of which takes what keeps the limit as surely as asked, without one the
    share of full load that was asked for; None where no curve was given."""
    asked, batch = work.asked, work.pipeline.batch
    if asked.curve is None:
        return None
    most = asked.utilisation
    if asked.latency_s is not None:
        most = min(most, _kept(work, speed, (replicas.count or 1) * work.copies))
    largest = batch * work.copies / speed.full.mid
    usd = float("nan") if price is None else price.mid / replicas.all
    return over_day(asked.curve, largest, replicas.all, usd, 1.0, replicas.spare, most)


def _hosts(work: Work, replicas: int) -> int:
    """Machines that hold all chips."""
    system = machine_for(work.chip)
    return -(-work.packages * replicas // (system.chips_per_host if system else 1))


def _fits(held: Account, capacity: float) -> str:
    """How much room is left."""
    if held.total <= COMFORTABLE * capacity:
        return "comfortable"
    return "tight" if held.total <= capacity else "no"


def _price(work: Work, replicas: int, terms: Terms) -> PriceRecord | None:
    """What all chips cost, each replica in one machine as far as that holds it."""
    system = machine_for(work.chip)
    group = min(work.packages, system.chips_per_host) if system else work.packages
    return price_record(terms.basis(work.chip.id), work.packages * replicas, group)


def _energy(work: Work, speed: _Speed, replicas: Replicas, numbers: Parameters) -> EnergyRecord | None:
    """What all chips draw at that load, and joules of a sample; None where their power limit is not published. Tuned
    software of one user is measured one request after the other."""
    chips, system = work.packages * replicas.all, machine_for(work.chip)
    batch, count = float(work.pipeline.batch), float(replicas.count or 1)
    powered = Powered.of(work.chip, chips, system, numbers)
    if powered is None or work.pipeline.flops <= 0.0:
        return None
    busy = speed.full.scaled(1.0 / replicas.load)
    alone = work.asked.task == "local" and work.asked.level == "tuned"
    use = work.use(speed.latency.mid if alone else busy.mid) * (count / replicas.all)
    rate = speed.latency.inverse(batch) if alone else busy.inverse(batch).scaled(count * work.copies)
    whole = batch if work.asked.task == "local" else 1.0
    machines = _hosts(work, replicas.all)
    return energy_record(replace(powered, kind=OF_SAMPLES), use, chips, machines, rate, speed.near, whole)


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
