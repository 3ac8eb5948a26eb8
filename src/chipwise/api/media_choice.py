"""Which plan of a model that generates no tokens: the ways that are tried on a chip, which of them keep targets and
limits, and in which order those of all chips come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from chipwise.api.media_asked import Files, Sampling, one_size
from chipwise.api.media_record import Replicas, plan_of, within
from chipwise.api.media_work import Place, Work
from chipwise.api.tactics import Level
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.media_runtime import media_runtimes_tried
from chipwise.catalog.offer import PRICE_NOISE
from chipwise.predict.pipeline import ONE, Offload, Spread
from chipwise.report.assemble import Contender, doubts_of, simplest_first, tie
from chipwise.report.media import MediaPlan
from chipwise.report.records import Figure, RefusalRecord
from chipwise.search.space import Limits
from chipwise.units import format_number
from chipwise.workload.op import decodes
from chipwise.workload.pipeline import Pipeline

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

__all__ = [
    "HOSTED",
    "OFFLOADS",
    "SHORT",
    "Found",
    "answered_s",
    "best_of",
    "best_on",
    "bill",
    "fitting",
    "numbered",
    "priced",
    "ranked",
    "shared",
    "taken",
    "ways_of",
]

OFFLOADS: tuple[Offload, ...] = (
    "none",
    "model",
    "sequential",
)  # each keeps more on the host than the one before
COUNTS = (1, 2, 4, 8, 16, 32, 64)  # devices of a replica that plans try
FEW_DEVICES = 8  # of them where no limit of chips was said
BATCHES = (1, 4, 16, 64)  # samples at once that plans try, where none were said
EVEN = 0.05  # of the cost, within which a simpler way on the same chip is taken
HOSTED = 0.2  # of the time for which the host is waited for, from which on software that only starts kernels is tried
ALIKE = 4  # times the chips of a plan, up to which another is as good
SHORT = 0.25  # of the memory, beyond which a request is refused: nearer, the estimate itself may be wrong


@dataclass(frozen=True)
class Found:
    """What was found on a chip: the `pipeline` of a way that was tried, the `best` plan that keeps targets and limits,
    the cheapest that keeps the targets alone (`beyond`), why there is none, and the way that answers soonest."""

    pipeline: Pipeline
    best: MediaPlan | None = None
    beyond: MediaPlan | None = None
    surest: MediaPlan | None = None
    refusal: RefusalRecord | None = None

    @property
    def hosted(self) -> float:
        """The share of its time for which it waits for the host; 0 where nothing fits."""
        shown = self.best or self.beyond or self.surest
        return 0.0 if shown is None else shown.shares.get("host", 0.0)


def ways_of(chip: Chip, terms: Terms, asked: Sampling) -> tuple[Terms, ...]:
    """The terms under each runtime that a plan chooses among: the one asked, else the chip's default and what comes
    with it; of tuned software the default, whose numbers its factors are of. Raises the errors of
    `media_runtime_for`."""
    if terms.runtime is not None or asked.level == "tuned":
        return (terms,)
    others = media_runtimes_tried(terms.shared(chip))[1:]
    return (terms, *(replace(terms, runtime=other.id) for other in others))


def best_of(
    model: str | Files, chip: Chip, terms: Terms, asked: Sampling, limits: Limits, numbers: Parameters
) -> Found:
    """The best plan on a chip, of all runtimes that are tried. The default is taken where it keeps targets and limits
    at about the cost of the best. Raises the errors of `Place.of` and `Place.pipeline`."""
    found: list[Found] = []
    for way in ways_of(chip, terms, asked):
        place = Place.of(chip, way, numbers)
        if place.runtime.folds or not found or found[-1].hosted > HOSTED:
            found.append(best_on(model, place, way, asked, limits))
    return found[0] if len(found) == 1 else _better(found, asked)


def _better(found: Sequence[Found], asked: Sampling) -> Found:
    """Of what was found under several runtimes, the default's first, the best: a plan, else what comes nearest."""
    best = [(one.best, one) for one in found if one.best is not None]
    if best:
        cheapest = ranked([p for p, _ in best], asked, 0.0)[0]
        near = _about(best[0][0], cheapest, asked)
        return best[0][1] if near else next(one for p, one in best if p is cheapest)
    beyond = [(one.beyond, one) for one in found if one.beyond is not None]
    if beyond:
        least = min(beyond, key=lambda pair: bill(pair[0], asked))
        return beyond[0][1] if _about(beyond[0][0], least[0], asked) else least[1]
    fits = [(answered_s(one.surest, asked), one) for one in found if one.surest is not None]
    return min(fits, key=lambda pair: pair[0], default=(0.0, found[0]))[1]


def _about(p: MediaPlan, cheapest: MediaPlan, asked: Sampling) -> bool:
    """Whether a plan is paid about as dearly as the cheapest, within the noise of prices."""
    mine, least = _goal(p, asked), _goal(cheapest, asked)
    return mine is not None and least is not None and mine.mid <= least.mid * (1.0 + PRICE_NOISE)


def best_on(model: str | Files, place: Place, terms: Terms, asked: Sampling, limits: Limits) -> Found:
    """The best plan on a chip under one runtime. Raises the errors of `Place.pipeline`."""
    tried = list(_candidates(model, place, terms, asked, limits))
    pipeline, chip = tried[0][0], place.chip.id
    fits = [p for _, p in tried if p is not None and p.verdict != "no"]
    if not fits:
        if any(p is not None and p.short_on_host_bytes for _, p in tried):
            return Found(pipeline, refusal=RefusalRecord(chip, "HOST_MEMORY", "its host lacks memory"))
        return Found(pipeline, refusal=RefusalRecord(chip, "MEMORY", "lacks memory"))
    surest = min(fits, key=partial(answered_s, asked=asked))
    kept = [p for p in fits if p.chance is None or p.chance >= asked.confidence - 1e-9]
    if not kept:
        return Found(pipeline, surest=surest, refusal=RefusalRecord(chip, "SLO", "slower than asked"))
    allowed = [p for p in kept if _allowed(p, limits) and _paid(p, asked)]
    if not allowed:
        near = min(kept, key=partial(bill, asked=asked))
        what = "more than there are" if limits.have else "beyond the limit of chips, power or price"
        why = RefusalRecord(chip, "BUDGET", f"{taken(near, asked)}: {what}")
        return Found(pipeline, beyond=near, surest=surest, refusal=why)
    return Found(pipeline, _simplest(ranked(allowed, asked, 0.0), asked), surest=surest)


def _simplest(plans: Sequence[MediaPlan], asked: Sampling) -> MediaPlan:
    """Of ways on one chip, cheapest first, the simplest of those that cost about the same: nothing kept on the host,
    then the smallest batch, whose first sample is there soonest."""
    first = _goal(plans[0], asked)
    near = [p for p in plans if first and (g := _goal(p, asked)) and g.mid <= first.mid * (1.0 + EVEN)]
    return min(near or plans[:1], key=lambda p: (OFFLOADS.index(p.offload), p.batch))


def _candidates(
    model: str | Files, place: Place, terms: Terms, asked: Sampling, limits: Limits
) -> Iterator[tuple[Pipeline, MediaPlan | None]]:
    """Every way that is tried on a chip, with its pipeline; None for the plan where memory of a device lacks."""
    batches = (asked.batch,) if asked.batch or one_size(model) else BATCHES
    most = min(limits.chips(place.chip.id) * place.chip.devices_per_package, limits.max_chips or FEW_DEVICES)
    for batch in batches:
        sized = replace(asked, batch=batch)
        pipeline = place.pipeline(model, terms, sized)
        spreads = [asked.spread]
        if asked.spread == ONE and (place.runtime.shares or asked.level == "tuned") and batch == batches[0]:
            spreads += shared(pipeline, place, asked.level, most)
        for spread in spreads:
            work = _held(pipeline, place, terms, replace(sized, spread=spread))
            fits = work.fits(place.numbers)
            yield pipeline, plan_of(work, place.numbers, terms) if fits else None


def shared(pipeline: Pipeline, place: Place, level: Level, most: float) -> list[Spread]:
    """Ways in which up to so many devices that are joined share a stage that is called again and attends to a sequence,
    fewest first: the sequence; the two guided passes too where software was `tuned` to it."""
    stepped = any(
        stage.calls > 1.0 and any(op.kind == "attention" and not decodes(op) for _, op in stage.ops)
        for stage in pipeline.stages
    )
    if not stepped:
        return []
    domain = float(np.nan_to_num(float(np.asarray(place.device.domain)), nan=1.0))
    found = [Spread(ulysses=n) for n in COUNTS[1:] if n <= min(domain, most)]
    if level == "tuned" and pipeline.settings.get("passes", 1) > 1:
        found += [Spread(cfg=2, ulysses=s.ulysses // 2) for s in found]
    return sorted(found, key=lambda s: s.devices)


def answered_s(p: MediaPlan, asked: Sampling) -> float:
    """Seconds that a request and its wait take with the probability asked."""
    waits = p.wait_s if asked.percentile is None else p.wait_p99_s
    return within(p.latency_s, asked.confidence) * (1.0 + (waits or 0.0) / p.latency_s.mid)


def _allowed(p: MediaPlan, limits: Limits) -> bool:
    """Whether a plan keeps the limits of chips and of dollars per hour."""
    usd = limits.max_usd_per_h
    cheap = usd is None or (p.price is not None and p.price.mid <= usd)
    return cheap and p.chips <= limits.chips(p.chip)


def _paid(p: MediaPlan, asked: Sampling) -> bool:
    """Whether a job at the middle price stays within its budget, with the probability asked."""
    if asked.job is None or asked.job.max_usd is None:
        return True
    return _cautious_usd(p, asked) <= asked.job.max_usd


def _cautious_usd(p: MediaPlan, asked: Sampling) -> float:
    """What a job costs at the middle price with the probability asked; infinite where no price is known."""
    if p.job is None or p.price is None:
        return float("inf")
    return p.price.mid * within(p.job.hours, asked.confidence)


def bill(p: MediaPlan, asked: Sampling) -> tuple[float, float, float]:
    """What makes one plan beyond the limits nearer than another: dollars of the job, else of an hour, where they are
    known; then how few chips it takes, then how soon it answers."""
    usd = p.price.mid if p.job is None and p.price else p.job.usd.mid if p.job and p.job.usd else float("inf")
    return usd, float(p.chips), answered_s(p, asked)


def taken(p: MediaPlan, asked: Sampling) -> str:
    """What a plan takes, in words."""
    cost = f"at ${p.price.mid:,.3g}/h" if p.price else "without a known price"
    if p.job is not None and p.job.usd is not None:
        cost += f", at most ${format_number(_cautious_usd(p, asked))} in total with {asked.confidence:.0%} probability"
    return f"takes {p.chips:,} chips {cost}"


def ranked(plans: Sequence[MediaPlan], asked: Sampling, noise: float) -> list[MediaPlan]:
    """Priced first; cheapest per hour of what carries the rate asked, else per sample; then soonest. Within the `noise`
    of that what is surest (measured, freshly priced, without a host whose copies nobody timed) and simplest, but for
    one user. Without prices the fewest chips that carry the rate, else the soonest."""

    def contender(p: MediaPlan) -> Contender:
        rate = p.samples_per_s
        per = rate.mid if asked.rate_per_s is None else 1.0
        # replicas that keep a limit at a rate are as many as that takes at the low end
        slow = 1.0 if asked.rate_per_s is not None and p.chance is not None else rate.mid / rate.low
        # to eight digits: beyond those ways that cost the same would differ
        cost = float(f"{p.price.mid / per * slow:.8g}") if p.price else None
        size = (p.hosts, p.price.billed if p.price else p.chips, p.replicas)
        doubts = doubts_of(p.latency_s.basis, p.price) + (p.offload != "none")
        return Contender((), cost, doubts, size)

    def order(pair: tuple[Contender, MediaPlan]) -> tuple[bool, float, float]:
        contender, p = pair
        if contender.cost is None:
            size = float(p.chips) if asked.rate_per_s is not None else p.latency_s.mid * p.chips
            return True, size, p.latency_s.mid
        return False, contender.cost, p.latency_s.mid

    pairs = sorted(((contender(p), p) for p in plans), key=order)
    return [p for _, p in pairs] if asked.task == "local" else simplest_first(pairs, noise)


def numbered(plans: Sequence[MediaPlan], asked: Sampling) -> list[MediaPlan]:
    """Plans in their order with their ranks, and the ranks of those that the prediction cannot tell apart and that take
    no more than `ALIKE` times as many chips: who is glad of a few has no use for racks of them."""
    goals = [_goal(p, asked) for p in plans]

    def alike(i: int, j: int) -> bool:
        return i != j and plans[j].chips <= ALIKE * plans[i].chips and tie(goals[i], goals[j])

    return [
        replace(p, rank=i + 1, ties=tuple(j + 1 for j in range(len(plans)) if alike(i, j)))
        for i, p in enumerate(plans)
    ]


def _goal(p: MediaPlan, asked: Sampling) -> Figure | None:
    """What a user pays with, price and speed together: dollars per hour of a given rate, else of a sample; seconds of a
    lone user; where no price is known the chips that carry the rate, else their seconds of a sample."""
    if asked.task == "local":
        return p.latency_s
    if p.price is None and asked.rate_per_s is not None:
        count = float(p.chips)
        return Figure(count, count, count, p.latency_s.basis, p.latency_s.provisional)
    if p.price is None:
        return p.latency_s
    rate = p.samples_per_s
    fast, mid, slow = (1.0, 1.0, 1.0) if asked.rate_per_s is not None else (rate.high, rate.mid, rate.low)
    return Figure(p.price.mid / mid, p.price.low / fast, p.price.high / slow, rate.basis, rate.provisional)


def priced(
    pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None
) -> MediaPlan:
    """The plan as asked."""
    return plan_of(Work.of(pipeline, place, terms, asked), place.numbers, terms, Replicas(replicas))


def fitting(
    pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling, replicas: int | None = None
) -> MediaPlan:
    """The plan as asked; where that does not fit and nothing was said of it, with parts that wait on the host; where
    nothing fits, the first that lacks memory of the host alone, else as asked."""
    return plan_of(_held(pipeline, place, terms, asked), place.numbers, terms, Replicas(replicas))


def _held(pipeline: Pipeline, place: Place, terms: Terms, asked: Sampling) -> Work:
    """The work of `fitting`."""
    ways = OFFLOADS if asked.offload == "none" and place.runtime.offloads else (asked.offload,)
    works = [Work.of(pipeline, place, terms, replace(asked, offload=way)) for way in ways]
    fits = [work for work in works if work.fits(place.numbers)]
    return next((work for work in fits if work.host_holds), (*fits, *works)[0])
