"""Which plan of a model that generates no tokens: the ways that are tried on a chip, which of them keep targets and
limits, and in which order those of all chips come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.api.media_asked import Files, Sampling
from chipwise.api.media_record import Replicas, plan_of, within
from chipwise.api.media_work import Place, Work
from chipwise.predict.pipeline import ONE, Offload, Spread
from chipwise.report.assemble import Contender, doubts_of, simplest_first, tie
from chipwise.report.media import MediaPlan
from chipwise.search.space import Limits
from chipwise.units import format_number
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

__all__ = [
    "OFFLOADS",
    "SHORT",
    "allowed",
    "answered_s",
    "bill",
    "candidates",
    "fitting",
    "numbered",
    "paid",
    "priced",
    "ranked",
    "taken",
]

OFFLOADS: tuple[Offload, ...] = (
    "none",
    "model",
    "sequential",
)  # each keeps more on the host than the one before
COUNTS = (1, 2, 4, 8)  # devices of a replica that plans try
BATCHES = (1, 4, 16, 64)  # samples at once that plans try, where none were said
SHORT = 0.25  # of the memory, beyond which a request is refused: nearer, the estimate itself may be wrong


def candidates(
    model: str | Files, place: Place, terms: Terms, asked: Sampling, most: int
) -> Iterator[tuple[Pipeline, MediaPlan]]:
    """Every way that is tried on a chip, with its pipeline."""
    one_size = isinstance(model, Files) and not model.source.sized
    batches = (asked.batch,) if asked.batch or one_size else BATCHES
    domain = float(np.nan_to_num(float(np.asarray(place.device.domain)), nan=1.0))
    for batch in batches:
        sized = replace(asked, batch=batch)
        pipeline = place.pipeline(model, terms, sized)
        stepped = max(stage.calls for stage in pipeline.stages) > 1.0
        spreads = [asked.spread]
        shares = place.runtime.shares or asked.level == "tuned"
        if asked.spread == ONE and shares and stepped and batch == batches[0]:
            spreads += [Spread(ulysses=n) for n in COUNTS[1:] if n <= min(most, domain)]
        for spread in spreads:
            one = replace(sized, spread=spread)
            yield pipeline, fitting(pipeline, place, terms, one)


def answered_s(p: MediaPlan, asked: Sampling) -> float:
    """Seconds that a request and its wait take with the probability asked."""
    waits = p.wait_s if asked.percentile is None else p.wait_p99_s
    return within(p.latency_s, asked.confidence) * (1.0 + (waits or 0.0) / p.latency_s.mid)


def allowed(p: MediaPlan, limits: Limits) -> bool:
    """Whether a plan keeps the limits of chips and of dollars per hour."""
    usd = limits.max_usd_per_h
    cheap = usd is None or (p.price is not None and p.price.mid <= usd)
    return cheap and p.chips * p.replicas <= limits.chips(p.chip)


def paid(p: MediaPlan, asked: Sampling) -> bool:
    """Whether a job at the middle price stays within its budget, with the probability asked."""
    if asked.job is None or asked.job.max_usd is None:
        return True
    return _cautious_usd(p, asked) <= asked.job.max_usd


def _cautious_usd(p: MediaPlan, asked: Sampling) -> float:
    """What a job costs at the middle price with the probability asked; infinite where no price is known."""
    if p.job is None or p.price is None:
        return float("inf")
    return p.price.mid * within(p.job.hours, asked.confidence)


def _per_hour(p: MediaPlan) -> float:
    return p.price.mid if p.price else float("inf")


def bill(p: MediaPlan) -> float:
    """Dollars of the job, else of an hour; infinite where no price is known."""
    return _per_hour(p) if p.job is None else p.job.usd.mid if p.job.usd else float("inf")


def taken(p: MediaPlan, asked: Sampling) -> str:
    """What a plan takes, in words."""
    cost = f"at ${p.price.mid:,.3g}/h" if p.price else "without a known price"
    if p.job is not None and p.job.usd is not None:
        cost += f", at most ${format_number(_cautious_usd(p, asked))} in total with {asked.confidence:.0%} probability"
    return f"takes {p.chips * p.replicas:,} chips {cost}"


def ranked(
    plans: Sequence[MediaPlan], asked: Sampling, hosts: Mapping[str, int], noise: float
) -> list[MediaPlan]:
    """Priced first; cheapest per hour of what carries the rate asked, else per sample; then soonest. Within the `noise`
    of that the simplest, but for one user. `hosts`: chips of each that one holds."""

    def contender(p: MediaPlan) -> Contender:
        rate = p.samples_per_s
        per = rate.mid if asked.rate_per_s is None else 1.0
        # to eight digits: beyond those ways that cost the same would differ
        cost = float(f"{p.price.mid / per * rate.mid / rate.low:.8g}") if p.price else None
        count = p.chips * p.replicas
        size = (-(-count // hosts[p.chip]), p.price.billed if p.price else count, p.replicas)
        return Contender((), cost, doubts_of(p.latency_s.basis, p.price), size)

    def order(pair: tuple[Contender, MediaPlan]) -> tuple[bool, float, float]:
        contender, p = pair
        if contender.cost is None:
            return True, p.latency_s.mid * p.chips, p.latency_s.mid
        return False, contender.cost, p.latency_s.mid

    pairs = sorted(((contender(p), p) for p in plans), key=order)
    return [p for _, p in pairs] if asked.task == "local" else simplest_first(pairs, noise)


def numbered(plans: Sequence[MediaPlan]) -> list[MediaPlan]:
    """Plans in their order with their ranks, and the ranks of those that the prediction cannot tell apart."""
    goals = [p.usd_per_1000 or p.latency_s for p in plans]
    return [
        replace(p, rank=i + 1, ties=tuple(j + 1 for j, g in enumerate(goals) if j != i and tie(goals[i], g)))
        for i, p in enumerate(plans)
    ]


def priced(
    pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None
) -> MediaPlan:
    """The plan as asked."""
    return plan_of(Work.of(pipeline, place, terms, asked), place.numbers, terms, Replicas(replicas))


def fitting(
    pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None
) -> MediaPlan:
    """The plan as asked; where that does not fit and nothing was said of it, with parts that wait on the host; where
    nothing fits, as asked."""
    ways = OFFLOADS if asked.offload == "none" and place.runtime.offloads else (asked.offload,)
    plans = (priced(pipeline, place, terms, replace(asked, offload=way), replicas) for way in ways)
    first = next(plans)
    return first if first.verdict != "no" else next((p for p in plans if p.verdict != "no"), first)
