"""From the best layout of a chip and count to a record: rates, utilisation, time, goodput, cost, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.catalog.offer import MARKETPLACES
from chipwise.catalog.preferences import preferences
from chipwise.catalog.system_spec import System
from chipwise.evidence.tiers import Tier
from chipwise.parallel.memory import MemoryAccount, Verdict
from chipwise.predict.energy import Use
from chipwise.predict.training.course import MONTH_S, CheckpointStore, Course, Phase
from chipwise.predict.training.result import Convention, peak_share, step_flops
from chipwise.predict.training.values import TrainSpread
from chipwise.report.assemble import dollars
from chipwise.report.energy import Powered, energy_record
from chipwise.report.plan import numbered, saving
from chipwise.report.records import EnergyRecord, PriceRecord, figure
from chipwise.report.train_why import reasons, shares
from chipwise.report.training import (
    SHARDING,
    PhaseRecord,
    RunRecord,
    ScalingRecord,
    TrainLayoutRecord,
    TrainPlanRecord,
    over,
)
from chipwise.search.prefer import Contenders, cheapest, first, order, pareto
from chipwise.search.training import Point, TrainJob
from chipwise.search.training_space import SCHEDULES
from chipwise.values import dataclass

DAY_S = 86400.0
LESS_USUAL = 0.5  # of a doubt: less than that nobody measured it
ENDED = 1.3
"""ratio: by which a run may take longer with a trainer that is developed than with one whose development ended, and
still come before it. Chosen: what a mistake that nobody mends, or a model that is not read, costs a user; moves which
trainer is named, of one chip, count and precision."""

VERDICTS = {Verdict.FITS: "fits", Verdict.TIGHT: "tight", Verdict.SHORT: "over"}
"""Words of a training plan."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a run is besides its steps: the course of its time, its phases with their layout and tokens per second,
    bytes of a checkpoint, the store, spare hosts, those that would do, share of the time for evaluation, and
    the ends of the share of the time that makes progress."""

    course: Course
    phases: Sequence[tuple[Phase, Point, float]]
    checkpoint_bytes: float
    store: CheckpointStore
    spares: int = 0
    advised: int = 0
    evaluation: float = 0.0
    ends: tuple[float, float] = (0.0, 1.0)

    @property
    def days(self) -> float:
        """From the first process to the last step."""
        worked = sum(phase.tokens / rate for phase, _, rate in self.phases)
        return (worked / max(self.course.progress, 1e-6) + self.course.start_s) / DAY_S


@dataclass(frozen=True, slots=True)
class TrainCase:
    """A job on a chip with its best layout; `devices` of it that layouts count, `counts`: how the trainer counts the
    FLOPs that it logs."""

    job: TrainJob
    at: Point
    chip: Chip
    system: System | None
    stack: str
    precision: str
    running: Running
    tier: Tier
    held: Tier
    devices: int = 1
    counts: Convention = "model"

    @property
    def per_host(self) -> int:
        """Chips of a host."""
        return self.system.chips_per_host if self.system else 1


def _again(s: TrainSpread) -> str:
    """What is computed again, in words."""
    full = float(s.full)
    if full:
        return "full" if full >= 1 else f"{full:.0%} of layers"
    return "selective" if float(s.selective) else "none"


def layout_record(s: TrainSpread) -> TrainLayoutRecord:
    """A layout in whole numbers and in words."""
    n = {f: round(float(getattr(s, f))) for f in ("tp", "pp", "vp", "cp", "ep", "dp", "micro_batch", "shard")}
    stage, recompute = round(float(s.zero)), _again(s)
    sharding = SHARDING[stage]
    schedule = _schedule(s) if n["pp"] > 1 else ""
    context = ("all-gather" if float(s.gather) else "ring") if n["cp"] > 1 else ""
    away = "weights and optimiser" if stage == 3 else "optimiser"
    parts = (
        *((f"{k}{n[k]}", n[k] > 1) for k in ("tp", "pp", "cp", "ep", "dp", "vp")),
        (schedule, schedule not in ("", "1f1b", "interleaved")),
        ("gathered K, V", context == "all-gather"),
        (sharding, sharding != "none"),
        (f"over {n['shard']}", stage == 3 and n["shard"] < n["dp"] * n["cp"]),
        (f"{away} in host memory", float(s.offload)),
        ("activations in host memory", float(s.stash)),
        (f"b{n['micro_batch']}", True),
        (f"recompute {recompute}", recompute != "none"),
    )
    return TrainLayoutRecord(
        **{k: n[k] for k in ("tp", "pp", "vp", "cp", "ep", "dp", "micro_batch")},
        micro_batches=round(float(s.micro_batches)),
        sharding=sharding,
        shard_ranks=n["shard"],
        recompute=recompute,
        label=" ".join(words for words, holds in parts if holds),
        schedule=schedule,
        context=context,
        offload=float(s.offload),
        stash=float(s.stash),
    )


def _schedule(s: TrainSpread) -> str:
    """The name of a layout's schedule."""
    return next((name for name, kind in SCHEDULES.items() if kind.of(s)), "1f1b")


def plan_record(
    case: TrainCase, chips: int, price: PriceRecord | None, powered: Powered | None = None
) -> TrainPlanRecord:
    """The record of one plan, not ranked yet; its interval is that of `case.tier`, tested out of fold. `price` is that
    of all chips that are paid, spare ones too. `powered` None: the power of the chip is not known."""
    job, at, s = case.job, case.at, case.at.spread
    running, course = case.running, case.running.course
    good, days = course.progress, running.days
    device_s = chips * case.devices * at.seconds
    parts = shares(job, at)
    memory, stages = _bytes(at.memory), tuple(map(_bytes, at.stages))
    held, room = float(np.asarray(at.memory.total_bytes)), float(job.cluster.memory_bytes)
    took, taken = case.tier.scaled(days), case.held.scaled(held)
    run = _run_record(running, at, days)
    hfu = float(peak_share(job.network, s, job.cluster, device_s, "hardware"))
    energy = None if powered is None else _energy(case, powered, chips, hfu, parts)
    return TrainPlanRecord(
        chip=case.chip.id,
        chips=chips,
        system=case.system.id if case.system else "",
        layout=layout_record(s),
        precision=case.precision,
        runtime=case.stack,
        stack=case.stack,
        replicas=round(float(s.dp)),
        global_batch=int(float(s.global_batch)),
        seq=int(float(s.seq)),
        step_s=figure(case.tier.scaled(at.seconds)),
        tokens_per_s=figure(case.tier.inverse(at.tokens_per_s)),
        tokens_per_day=at.tokens_per_s * 86400.0 * good,
        mfu=float(peak_share(job.network, s, job.cluster, device_s)),
        hfu=hfu,
        tflops_per_chip=float(step_flops(job.network, s, case.counts)) / (1e12 * chips * at.seconds),
        goodput=good,
        checkpoint_s=course.interval_s,
        days=figure(took),
        price=price,
        usd=dollars(took.scaled(24.0), price, run.storage_usd),
        energy_kwh=None if energy is None else energy.chip_w.mid * chips * days * 24.0 / 1000.0,
        energy=energy,
        memory=memory,
        memory_bytes=held,
        memory_range=figure(taken),
        memory_chance=taken.kept(room),
        host_bytes=float(np.asarray(at.memory.on("host"))),
        capacity_bytes=room,
        verdict=VERDICTS[at.memory.verdict(1.0, *job.room)],
        shares=parts,
        bound=max(parts, key=lambda k: parts[k]),
        why=reasons(job, at, parts),
        stages=stages,
        run=run,
        hosts=-(-chips // case.per_host),
        policy=job.policy,
    )


def _run_record(running: Running, at: Point, days: float) -> RunRecord:
    """What is said of a run besides its steps; the store is paid for as long as the run takes, at least a month."""
    c, store = running.course, running.store
    kept = store.kept * running.checkpoint_bytes
    months = max(days * DAY_S / MONTH_S, 1.0)
    return RunRecord(
        checkpoint_bytes=running.checkpoint_bytes,
        save_s=c.save_s,
        block_s=c.block_s,
        restart_s=c.restart_s,
        start_s=c.start_s,
        stops=days * DAY_S / c.mtbf_s,
        steady=c.steady,
        spares=running.spares,
        spares_advised=running.advised,
        evaluation=running.evaluation,
        data_bytes_per_s=at.tokens_per_s * store.token_bytes,
        storage_bytes=kept,
        storage_usd=kept / 1e9 * months * store.usd_per_gb_month,
        progress_low=min(running.ends[0], c.progress),
        progress_high=max(running.ends[1], c.progress),
        phases=tuple(
            PhaseRecord(
                phase.name,
                phase.tokens,
                phase.seq,
                phase.global_batch,
                layout_record(place.spread).label,
                rate,
                phase.tokens / rate / max(c.progress, 1e-6) / DAY_S,
            )
            for phase, place, rate in running.phases
        ),
    )


def _energy(case: TrainCase, powered: Powered, chips: int, hfu: float, parts: Mapping[str, float]) -> EnergyRecord:
    """Power of a step and joules per token: operations over peak, and of the time that waits for memory all of its
    bandwidth."""
    use = Use(min(parts["memory"] + parts["optimiser"], 1.0), min(hfu, 1.0))
    rate = case.tier.inverse(case.at.tokens_per_s)
    return energy_record(powered, use, chips, -(-chips // case.per_host), rate, None)


def _bytes(used: MemoryAccount) -> dict[str, float]:
    """By use."""
    return {i.name: float(np.asarray(i.bytes)) for i in used.items if i.where == "device"}


@dataclass(frozen=True, slots=True)
class Aim:
    """What training plans are ranked by: slower ones than the horizon come after (None: none does); the deadline is to
    hold with the probability `confidence`; `sooner`: nobody limits time or money, so to be done sooner may cost
    something; `owned`: chips cost nothing, and their days count."""

    horizon_days: float | None = None
    deadline_days: float | None = None
    confidence: float = 0.0
    sooner: bool = True
    owned: bool = False


def rank_runs(plans: Sequence[TrainPlanRecord], aim: Aim) -> tuple[TrainPlanRecord, ...]:
    """Plans in the order of `search.prefer`, of each chip, count and type the first: there days count, and a
    trainer that is not the usual one is half a doubt. A trainer whose development ended gives way to one that lives.

    They cost dollars, or days where chips are one's own or no price is known; what has no price comes last, before it
    what takes longer than the horizon. Among the same costs and evidence the sooner is first, but where a deadline says
    that sooner is worth nothing. The front of cost against time is marked.
    """
    plans = _developed(plans, aim)
    cells: dict[tuple[str, int, str], list[int]] = {}
    for i, p in enumerate(plans):
        cells.setdefault((p.chip, p.chips, p.precision), []).append(i)
    every = _contenders(plans, aim)
    less = LESS_USUAL * np.array([float(bool(p.instead_of)) for p in plans])
    wary = replace(every, cost=every.times[0], doubts=every.doubts + less)
    noise = preferences().sooner if aim.sooner else None
    best, most = first(every, aim.confidence, noise), max(noise or 0.0, preferences().evidence)
    dearest = (1.0 + most) * every.cost[cheapest(every, aim.confidence)]

    def of_cell(one: list[int]) -> int:
        mine = one[first(wary.take(np.array(one)), aim.confidence)]
        # what a cell prefers may not make the first plan dearer than evidence and time can
        return best if best in one and not every.cost[mine] <= dearest else mine

    which = np.array([of_cell(one) for one in cells.values()], dtype=np.intp)
    which = which[order(every.take(which), aim.confidence, noise)]
    c = every.take(which)
    cost = np.array([plans[i].usd.mid if plans[i].usd else np.nan for i in which])
    front = pareto(cost, c.times[0])
    made = [replace(plans[i], on_front=bool(front[k])) for k, i in enumerate(which)]
    firsts = {p.chip: k + 1 for k, p in reversed([*enumerate(made)])}
    # counts of one chip are off by the same factor, and do not tie
    return numbered(made, c, aim.confidence, lambda p, q: q.chip != p.chip and firsts[q.chip] == q.rank)


def _developed(plans: Sequence[TrainPlanRecord], aim: Aim) -> list[TrainPlanRecord]:
    """Without those of trainers whose development ended, where another does the same run on the same chips in at most
    `ENDED` times as long, and keeps the deadline where they do."""

    def stands_in(p: TrainPlanRecord, q: TrainPlanRecord) -> bool:
        alike = (p.chip, p.chips, p.precision) == (q.chip, q.chips, q.precision)
        soon = q.days.mid <= ENDED * p.days.mid
        sure = q.chance is None or p.chance is None or q.chance >= min(p.chance, aim.confidence)
        return alike and soon and sure

    living = [p for p in plans if not over(p)]
    return [p for p in plans if not over(p) or not any(stands_in(p, q) for q in living)]


def cheapest_run(
    leader: TrainPlanRecord, plans: Sequence[TrainPlanRecord], aim: Aim
) -> tuple[TrainPlanRecord | None, float]:
    """The cheapest of all plans that the `leader` was chosen from, and what share of its cost that saves; None where
    nothing does."""
    every = [leader, *plans]
    return saving(every, _contenders(every, aim), aim.confidence)


def _contenders(plans: Sequence[TrainPlanRecord], aim: Aim) -> Contenders:
    """What plans are compared by."""
    days = np.array([p.days.mid for p in plans])
    usd = np.array([p.usd.mid if p.usd else np.nan for p in plans])
    free = np.isnan(usd)
    late = days > (math.inf if aim.horizon_days is None else aim.horizon_days)
    small = np.array([[p.hosts, p.price.billed if p.price else p.chips] for p in plans], dtype=float).T
    return Contenders.of(
        np.where(free, days, usd),
        times=days[None],
        chance=[p.chance for p in plans],
        doubts=[_doubts(p) for p in plans],
        size=small if aim.deadline_days is not None else np.vstack([days, small]),
        group=late + 2.0 * (free & (not aim.owned)),
    )


def _doubts(p: TrainPlanRecord) -> int:
    """How much of a plan is on little evidence: its speed was never measured, its price is doubtful, or nobody
    develops its trainer any more."""
    return (not p.measured) + price_doubts(p.price) + over(p)


def price_doubts(price: PriceRecord | None) -> int:
    """What speaks against a price: that it is old, that marketplaces alone ask for it."""
    return 0 if price is None else price.stale + (price.provider in MARKETPLACES)


def scaling_records(job: TrainJob, chip: str, kind: str, points: Sequence[Point]) -> list[ScalingRecord]:
    """A curve; efficiency is throughput per chip over that of the first point."""
    if not points:
        return []
    first = points[0].tokens_per_s / points[0].devices
    return [
        ScalingRecord(
            chip,
            kind,
            p.devices,
            layout_record(p.spread).label,
            p.seconds,
            p.tokens_per_s,
            p.tokens_per_s / p.devices / first,
            shares(job, p),
        )
        for p in points
    ]
