"""Demands of a fleet that share a card: by its time and memory, or as instances that it is cut into (MIG).

A demand is asked about on parts of a chip as it is on a whole one. Parts that fit together on one chip make a card:
their memory adds up to no more than the chip has, and so do instances. Where time is shared, programs that have work
take turns (time slices, or MPS), so that work takes as many times as long as programs have work in the mean, its own
among them; parts are asked with the time that this leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import exp
from typing import Any

from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.override import Share, fit_together, instances_of
from chipwise.errors import InfeasibleError, UsageError
from chipwise.report.plans import PlanRecord
from chipwise.report.portfolio import MIG, TIME

TIMES = (0.5, 0.75)
"""ratio: of a chip's time that demands are asked to keep their targets with. Chosen: two that always have work, and
one next to others that have little; moves which demands share."""
MEMORIES = (0.25, 0.5, 0.75)
"""ratio: of a chip's memory that they are asked with, the least that does is taken. Chosen: quarters, of which sums
fill a chip; moves which demands share."""
MOST_ON_CARD = 4
"""Demands on one card."""
MOST_SHARING = 8
"""Demands that are asked whether they share a kind of chip, those with the least load first."""
FITS = 1.0 + 1e-9


@dataclass(frozen=True)
class SmallDemand:
    """A served demand of which one chip carries the peak: its number and name, its question on `alone`, the plan of the
    whole chip, and its peak in requests per second."""

    demand: int
    name: str
    question: PlanRequest
    alone: PlanRecord
    rate: float


@dataclass(frozen=True)
class CardPart:
    """A demand on part of a chip on which it keeps its targets: the `share`, and its plan there. `memory` is the part
    of the chip's memory, `active` the part of the time in which it has work while it has no more than its share."""

    small: SmallDemand
    share: Share
    plan: PlanRecord
    memory: float
    active: float

    @property
    def how(self) -> str:
        """How the chip is shared."""
        return MIG if self.share.instance else TIME

    @property
    def slower(self) -> float:
        """Time of an answer over that on the whole chip."""
        return _answer_s(self.plan, self.small) / _answer_s(self.small.alone, self.small)

    @property
    def label(self) -> str:
        """The part in a few letters."""
        return self.share.instance or f"{self.memory:.0%}"

    @property
    def told(self) -> str:
        """The share as the option says it."""
        if self.share.instance:
            return f"mig={self.share.instance}"
        return f"gpu={100.0 * self.share.gpu:g}%,memory={100.0 * self.memory:g}%"


def _answer_s(plan: PlanRecord, small: SmallDemand) -> float:
    """Seconds of a whole answer."""
    return plan.answer_s(small.question.workload_of("serve").output_tokens)


def parts_of(small: SmallDemand) -> tuple[CardPart, ...]:
    """The parts of its chip on which a demand keeps its targets: of its time with the least memory that does, and all
    instances."""
    chip = small.alone.chip
    found = [
        next((part for m in MEMORIES if (part := _part(small, Share(gpu, memory=m), m))), None)
        for gpu in TIMES
    ]
    found += [_part(small, Share(instance=cut.name), cut.memory) for cut in instances_of(chip)]
    return tuple(part for part in found if part is not None)


def _part(small: SmallDemand, share: Share, memory: float) -> CardPart | None:
    """A demand on a part of its chip in the format that it has on the whole; None where its targets do not hold."""
    empty = CardPart(small, share, small.alone, memory, 1.0)
    changed: dict[str, Any] = {
        "have": f"1x{small.alone.chip}",
        "share": empty.told,
        "rate": f"{small.rate:.10g}/s",
    }
    if small.alone.converted:
        changed["precision"] = small.alone.precision
    try:
        report = replace(small.question, **changed).ranked(None, published=False).report
    except (InfeasibleError, UsageError):
        return None
    for plan in report.plans:
        if plan.chips == 1 and plan.keeps_targets(report.workload.confidence) and not plan.prompt_workers:
            active = 1.0 - exp(-small.rate * _answer_s(plan, small))
            return CardPart(small, share, replace(plan, converted=small.alone.converted), memory, active)
    return None


def cards(smalls: Sequence[Sequence[CardPart]]) -> tuple[tuple[CardPart, ...], ...]:
    """Of each set of demands that fits on one chip the card that slows them least."""
    found = []
    for count in range(2, min(len(smalls), MOST_ON_CARD) + 1):
        for some in combinations(smalls, count):
            able = [card for card in _together(some) if not conflict(card)]
            if able:
                found.append(min(able, key=lambda card: sum(part.slower for part in card)))
    return tuple(found)


def _together(some: Sequence[Sequence[CardPart]]) -> Iterator[tuple[CardPart, ...]]:
    for how in (TIME, MIG):
        yield from product(*([part for part in parts if part.how == how] for parts in some))


def conflict(card: Sequence[CardPart]) -> str:
    """Why parts do not fit together on one chip; "" where they do."""
    if card[0].how == MIG:
        cuts = {cut.name: cut for cut in instances_of(card[0].small.alone.chip)}
        fits = fit_together(cuts[part.share.instance] for part in card)
        return "" if fits else f"no cut has {' and '.join(part.share.instance for part in card)}"
    held = sum(part.memory for part in card)
    if held > FITS:
        return f"their weights and caches take {held:.0%} of its memory"
    for part in card:
        others = sum(other.active for other in card if other is not part)
        if (1.0 + others) * part.share.gpu > FITS:
            names = " and ".join(other.small.name for other in card if other is not part)
            most = 1.0 / part.share.gpu - 1.0
            return (
                f"{names} {'has' if len(card) == 2 else 'have'} work {others:.0%} of the time, "
                f"{part.small.name} keeps its targets where others have it at most {most:.0%}"
            )
    return ""


def apart(chip: str, smalls: Sequence[SmallDemand], parts: Sequence[Sequence[CardPart]]) -> Iterator[str]:
    """What keeps demands from sharing a chip: those that need the whole of it, and pairs that do not fit together."""
    for small, its in zip(smalls, parts, strict=True):
        if not its:
            yield f"{small.name} keeps its targets on no part of a {chip}"
    able = [its for its in parts if its]
    for one, other in combinations(able, 2):
        why = [conflict(card) for card in _together((one, other))]
        if all(why):
            said = why[-1] if why else "one needs its time, the other an instance"
            yield f"{one[0].small.name} and {other[0].small.name} do not fit on one {chip}: {said}"
