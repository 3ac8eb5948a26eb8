"""Training plans that there are not: what keeps a count from having one, and what comes nearest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.api.remedies import up
from chipwise.api.train_input import Pins
from chipwise.catalog.chip import Chip
from chipwise.evidence.judge import within
from chipwise.parallel.layout import REASONS, Reason
from chipwise.report.records import Figure, PriceRecord, RefusalRecord
from chipwise.report.training import TrainPlanRecord, duration
from chipwise.search.training import PricedLayouts, TrainJob, best, search
from chipwise.search.training_space import divisors
from chipwise.units import format_count, format_number
from chipwise.values import dataclass

LEANEST = "does not fit, recomputed and in the smallest micro-batches that --layout leaves open: more chips"
# What makes a run lighter than each method.
LIGHTER = {
    "full": "adapters (method lora or qlora), or another chip",
    "lora": "weights of 4 bits (method qlora), or another chip",
    "qlora": "choose another chip",
}


def tally(priced: PricedLayouts) -> Counter[Reason]:
    """How many layouts got which verdict; those that cannot come near the fastest got none against them."""
    found, counts = np.unique(priced.reason, return_counts=True)
    each = {REASONS[int(r)]: int(n) for r, n in zip(found, counts, strict=True)}
    return Counter(each) + Counter({Reason.OK: priced.left})


def blocker(tally: Counter[Reason]) -> Reason:
    """What keeps a count from having a plan: no network, else memory, else the commonest verdict."""
    for reason in (Reason.NO_NETWORK, Reason.MEMORY):
        if tally[reason]:
            return reason
    return tally.most_common(1)[0][0] if tally else Reason.PINNED


def left_out(
    chip: Chip, job: TrainJob, without: Mapping[Reason, Sequence[int]], method: str, pins: Pins
) -> Iterator[RefusalRecord]:
    """The counts without a plan, by reason; no hint asks for what another rules out."""
    for reason, counts in without.items():
        why = _without(reason, counts, job, without, method)
        if reason is Reason.MEMORY and _at_once(job, max(counts), pins):
            why = (
                f"{job.global_batch:,} sequences of a step do not fit at once, and nothing follows one pass in a step "
                "here: a smaller --global-batch, more chips"
            )
        odd = [c for c in counts if job.global_batch % (c // (c & -c))]
        if reason is Reason.MEMORY and odd:
            why += f"; {odd[0]:,} ranks cannot share a batch of {job.global_batch:,}: another --global-batch"
        *first, last = [f"{c:,}" for c in counts]
        tried = f"{', '.join(first)} or {last}" if first else last
        yield RefusalRecord(chip.id, reason.name, f"not on {tried}: {why}")


def _at_once(job: TrainJob, count: int, pins: Pins) -> bool:
    """Whether so many devices would hold a step whose micro-batches follow each other, which they do not here."""
    if job.software.accumulates:
        return False
    able = replace(job, software=replace(job.software, accumulates=True))
    return bool(len(best(able, search(able, count, pins))))


def _without(
    reason: Reason, counts: Sequence[int], job: TrainJob, without: Mapping[Reason, Sequence[int]], method: str
) -> str:
    """Why some counts have no plan, and what to change."""
    most, nic = int(float(job.cluster.domain)), float(job.cluster.nic_bytes_per_s)
    alone = not (np.isfinite(nic) and nic > 0)
    full = alone and max(without.get(Reason.MEMORY, (0,))) >= most
    if reason is Reason.NO_NETWORK:
        hint = "choose another chip" if full else f"use at most {most:,}"
        meet = f"{most:,} chips meet on a fabric" if most > 1 else "it is joined to no other"
        return f"{meet} and no network is known: {hint}"
    if reason is Reason.MEMORY and full:
        return f"does not fit, and no more chips meet: {LIGHTER[method]}"
    if reason is Reason.MEMORY and alone:
        return f"{LEANEST}, at most {most:,}"
    if reason is Reason.TP_DOMAIN:
        return f"tp leaves the scale-up domain: choose at most {most:,}"
    if reason is Reason.BATCH:
        return f"no layout divides the batch of {job.global_batch:,}: {_divided(job, counts)}"
    return verdict_words(reason)


def verdict_words(reason: Reason) -> str:
    """Why a run has no layout; what does not fit was tried in every way to save memory."""
    return LEANEST if reason is Reason.MEMORY else reason.value


def _divided(job: TrainJob, counts: Sequence[int]) -> str:
    """The counts next to those asked for that some tp x pp x dp makes, dp a divisor of the batch."""
    t, batch = job.network, job.global_batch
    tps = divisors(int(float(t.heads)), int(min(float(job.cluster.domain), 1e6)))
    stages, dps = range(1, int(float(t.layers)) + 1), divisors(batch, batch)
    legal = np.unique(np.multiply.outer(tps, np.multiply.outer(stages, dps)))
    near: list[int] = []
    for count in counts:
        below, above = legal[legal < count][-1:], legal[legal > count][:1]
        near += [int(v) for v in (*below, *above)]
    return f"as on {' or '.join(f'{n:,}' for n in dict.fromkeys(near))}, or another --global-batch"


@dataclass(frozen=True)
class RunLimit:
    """A limit of a run: the field and the option that it is asked by, its unit, and the figure of a plan that it is
    for (None: no price is known)."""

    field: str
    option: str
    unit: str
    of: Callable[[TrainPlanRecord], Figure | PriceRecord | None]

    def words(self, p: TrainPlanRecord, most: float) -> str:
        """What a plan takes of it."""
        figure = self.of(p)
        if figure is None:
            return "no price is known"
        if self.unit == "d":
            return f"{duration(figure.mid)} of {duration(most)}"
        return f"{format_count(figure.mid)} of {format_count(most)} {self.unit}"


LIMITS = {
    "days": RunLimit("deadline_days", "--deadline", "d", lambda p: p.days),
    "usd": RunLimit("max_usd", "--max-usd", "$", lambda p: p.usd),
    "usd_per_h": RunLimit("max_usd_per_h", "--max-usd-per-h", "$/h", lambda p: p.price),
}


def excess(p: TrainPlanRecord, limits: Mapping[str, float]) -> float:
    """By which factor a plan's middle values are above the limits; up to 1 it keeps them. What has no price keeps no
    limit of it."""
    figures = ((LIMITS[name].of(p), most) for name, most in limits.items())
    return max((figure.mid / most if figure else math.inf for figure, most in figures), default=0.0)


def needs(p: TrainPlanRecord, name: str, confidence: float) -> float | None:
    """What a limit has to be for a plan to keep it, a deadline with the probability `confidence`; None: no price is
    known."""
    figure = LIMITS[name].of(p)
    if figure is None or name != "days":
        return None if figure is None else figure.mid
    return within(min(max(confidence, 0.01), 0.99), p.days.mid, p.days.low, p.days.high)


def relaxed(name: str, least: float) -> tuple[str, dict[str, Any]]:
    """A limit that is no less than a value, as its option takes it and as the field of a run."""
    unit, size = ("", 1.0) if name != "days" else ("d", 1.0) if least >= 2.0 else ("h", 1.0 / 24.0)
    text = up(least / size)
    return f"{LIMITS[name].option} {text}{unit}", {LIMITS[name].field: float(text) * size}


def missed(plans: Sequence[TrainPlanRecord], kept: Collection[str], limits: Mapping[str, float]) -> list[RefusalRecord]:
    """The chips besides those `kept` of which no plan keeps the limits: the plan that comes nearest, and what it
    misses."""
    found = []
    for chip in dict.fromkeys(p.chip for p in plans if p.chip not in kept):
        near = min((p for p in plans if p.chip == chip), key=lambda p: excess(p, limits))
        over = [LIMITS[n].words(near, most) for n, most in limits.items() if excess(near, {n: most}) > 1.0]
        found.append(RefusalRecord(chip, "LIMITS", f"nearest on {near.chips:,}: {', '.join(over)}"))
    return found


def _on(p: TrainPlanRecord) -> str:
    rate = f" at ${format_number(p.price.mid)}/h" if p.price else ""
    return f"{rate} on {p.chips:,}x {p.chip}"


def nearest(plans: Sequence[TrainPlanRecord], refused: Sequence[RefusalRecord], batch: int) -> str:
    """What comes nearest to the limits that nothing meets."""
    if not plans:
        if not refused:
            return "allow more chips"
        one = len({r.chip for r in refused}) == 1
        return refused[0].detail if one else f"{refused[0].chip}: {refused[0].detail}"
    soon = min(plans, key=lambda p: p.days.mid)
    # more chips than sequences of a step only wait for one another
    larger = f", or take a larger --global-batch than {batch:,}" if soon.chips * 4 >= batch else ""
    text = f"soonest: {duration(soon.days.mid)} on {soon.chips:,}x {soon.chip}{_cheapest(plans)}"
    return f"{text}; relax the deadline or the budget{larger}"


def _cheapest(plans: Sequence[TrainPlanRecord]) -> str:
    """The cheapest of those that are priced, and another that is the least by the hour."""
    priced = [(p.usd.mid, p) for p in plans if p.usd is not None]
    if not priced:
        return ""
    usd, cheap = min(priced, key=lambda one: one[0])
    slow = min((p for _, p in priced), key=lambda p: p.price.mid if p.price else math.inf)
    text = f"; cheapest: ${usd:,.0f}{_on(cheap)}"
    if slow.price and (slow.chip, slow.chips) != (cheap.chip, cheap.chips):
        text += f"; least by the hour:{_on(slow).removeprefix(' at')}"
    return text
