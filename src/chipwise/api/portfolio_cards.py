"""Demands of a fleet that share a card: by its time and memory, as instances that it is cut into (MIG), or asleep
by turns.

A demand is asked about on parts of a chip as it is on a whole one. Parts that fit together on one chip make a card:
their memory adds up to no more than the chip has, and so do instances. Where time is shared, programs that have work
take turns (time slices, or MPS), so that work takes as many times as long as programs have work in the mean, its own
among them; parts are asked with the time that this leaves.

Demands whose weights do not fit together may sleep by turns: one is awake with nearly all of the memory, the weights of
the others lie in the host's. How long requests wait for their model is played through (`predict.turns`); demands are
asked at the rate that comes together while they are awake, with what waiting leaves of their targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import exp
from typing import Any

from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.override import Share, fit_together, instances_of
from chipwise.catalog.preferences import preferences
from chipwise.catalog.runtime import get_runtime, runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.cost.copies import CopyParameters, host_copy
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.predict.events.turns import Turn, TurnModel, turns
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanRecord
from chipwise.report.portfolio import MIG, SLEEP, TIME
from chipwise.search.deployments import machine_for
from chipwise.units import format_bytes, format_seconds
from chipwise.values import dataclass

TIMES = (0.5, 0.75)
"""ratio: of a chip's time that demands are asked to keep their targets with. Chosen: two that always have work, and
one next to others that have little; moves which demands share."""
MEMORIES = (0.25, 0.5, 0.75)
"""ratio: of a chip's memory that they are asked with, the least that does is taken. Chosen: quarters, of which sums
fill a chip; moves which demands share."""
LITTLE = 0.125
"""ratio: of it that a network without tokens is asked with too, where it needs no more on a whole chip. Chosen: half a
quarter; moves which networks share."""
AWAKE = 0.5
"""ratio: of the time that is left to a demand that sleeps by turns, so that it is asked at twice its rate. Chosen: two
that take as much time as each other; moves which demands take turns."""
AT_ONCE = 0.25
"""ratio: of its targets that it keeps while awake, the rest is for waiting. Chosen: a model awake is much faster than
such demands ask; moves which take turns."""
ASLEEP = 0.9
"""ratio: of a chip's memory that the one awake gets. Chosen: what stays of sleeping ones, contexts and graphs, is 1 to
3 GB each; it is checked."""
MOST_ON_CARD = 4
"""Demands on one card."""
MOST_SHARING = 8
"""Demands that are asked whether they share a kind of chip, those with the least load first."""
FITS = 1.0 + 1e-9


@dataclass(frozen=True)
class SmallDemand:
    """A served demand of which one chip carries the peak: its number and name, its question on `alone`, the plan of the
    whole chip, and its peak in requests per second (of a network samples)."""

    demand: int
    name: str
    question: PlanRequest
    alone: PlanRecord | MediaPlan
    rate: float

    @property
    def answer_s(self) -> float:
        """Seconds of a whole answer on the whole chip."""
        return _answer_s(self.alone, self)


@dataclass(frozen=True)
class Sleeper:
    """A demand that sleeps by turns: its weights of `weight_bytes` take `move_s` to or from the memory of the host, of
    which its chip's part has room for `room_bytes`; what stays on the chip are `rest_bytes`, of which others leave it
    `spare_bytes`. Requests may wait `patience_s`, in the mean or all but a share of them (`percentile`, None: the
    mean). `cv` is the spread of their answers. `turn` is what it sees of a card (None: no card was looked at)."""

    weight_bytes: float
    move_s: float
    room_bytes: float
    rest_bytes: float
    spare_bytes: float
    patience_s: float
    percentile: float | None
    cv: float
    turn: Turn | None = None


@dataclass(frozen=True)
class CardPart:
    """A demand on part of a chip on which it keeps its targets: the `share`, and its plan there. `memory` is the part
    of the chip's memory, `active` the part of the time in which it has work while it has no more than its share.
    `asleep`: how it sleeps by turns (None: it does not)."""

    small: SmallDemand
    share: Share
    plan: PlanRecord | MediaPlan
    memory: float
    active: float
    asleep: Sleeper | None = None

    @property
    def how(self) -> str:
        """How the chip is shared."""
        return SLEEP if self.asleep else MIG if self.share.instance else TIME

    @property
    def slower(self) -> float:
        """Time of an answer over that on the whole chip."""
        return _answer_s(self.plan, self.small) / self.small.answer_s

    @property
    def label(self) -> str:
        """The part in a few letters."""
        if self.asleep:
            return "by turns"
        return self.share.instance or f"{self.memory:.0%}"

    @property
    def told(self) -> str:
        """The share as the option says it."""
        if self.share.instance:
            return f"mig={self.share.instance}"
        return f"gpu={100.0 * self.share.gpu:g}%,memory={100.0 * self.memory:g}%"


def _answer_s(plan: PlanRecord | MediaPlan, small: SmallDemand) -> float:
    """Seconds of a whole answer, of a network those of a batch."""
    if isinstance(plan, MediaPlan):
        return plan.latency_s.mid
    return plan.answer_s(small.question.workload_of("serve").output_tokens)


def _active(plan: PlanRecord | MediaPlan, small: SmallDemand) -> float:
    """The part of the time in which a demand has work: requests under way at once, of a network batches one after the
    other."""
    had = small.rate * _answer_s(plan, small)
    return min(had / plan.samples, 1.0) if isinstance(plan, MediaPlan) else 1.0 - exp(-had)


def parts_of(small: SmallDemand) -> tuple[CardPart, ...]:
    """The parts of its chip on which a demand keeps its targets: of its time with the least memory that does, and all
    instances."""
    chip = small.alone.chip
    found = [
        next((part for m in _memories(small) if (part := _part(small, Share(gpu, memory=m), m))), None) for gpu in TIMES
    ]
    found += [_part(small, Share(instance=cut.name), cut.memory) for cut in instances_of(chip)]
    return tuple(part for part in found if part is not None)


def _memories(small: SmallDemand) -> tuple[float, ...]:
    """The parts of a chip's memory that a demand is asked with: a network keeps no cache that could be smaller."""
    alone = small.alone
    if not isinstance(alone, MediaPlan):
        return MEMORIES
    return tuple(m for m in (LITTLE, *MEMORIES) if m * alone.capacity_bytes >= alone.memory_bytes)


def _part(small: SmallDemand, share: Share, memory: float) -> CardPart | None:
    """A demand on a part of its chip in the format that it has on the whole; None where its targets do not hold."""
    return _asked(small, CardPart(small, share, small.alone, memory, 1.0), {"rate": f"{small.rate:.10g}/s"})


def _asked(small: SmallDemand, empty: CardPart, changed: dict[str, Any]) -> CardPart | None:
    """A part with its plan and the time that it has work, asked with these changes; None where targets do not hold."""
    changed |= {"have": f"1x{small.alone.chip}", "share": empty.told}
    language = isinstance(small.alone, PlanRecord)
    if small.question.precision is None and language:
        changed["precision"] = small.alone.precision
    if small.question.runtime is None and not language:
        changed["runtime"] = small.alone.runtime
    try:
        report = replace(small.question, **changed).ranked(None, published=False).report
    except (InfeasibleError, UsageError):
        return None
    for plan in report.plans:
        if plan.chips == 1 and plan.keeps_targets(report.sure) and whole(plan):
            return replace(empty, plan=_told(plan, small.alone), active=_active(plan, small))
    return None


def _told(plan: PlanRecord | MediaPlan, alone: PlanRecord | MediaPlan) -> PlanRecord | MediaPlan:
    """A plan on a part of a chip, with what is to be known of its weights on the whole one."""
    if isinstance(plan, MediaPlan) or isinstance(alone, MediaPlan):
        return plan
    return replace(plan, converted=alone.converted, note=alone.note or plan.note)


def whole(plan: PlanRecord | MediaPlan) -> bool:
    """Whether a plan is of replicas that do all of the work, and fit."""
    return plan.verdict != "no" if isinstance(plan, MediaPlan) else not plan.prompt_workers


def sleeper_of(small: SmallDemand) -> CardPart | None:
    """A demand asleep by turns on its chip; None where nobody says how long an answer may take, where its software or
    chip does not sleep, where its targets leave no time to wait, and of a network without tokens."""
    chip = get_chip(small.alone.chip)
    runtime = _sleeping(small, chip)
    workload = small.question.workload_of("serve")
    said = {"ttft": workload.ttft_s, "e2e": workload.e2e_s}
    limits = {name: s for name, s in said.items() if s is not None}
    machine = machine_for(chip)
    if runtime is None or runtime.sleeping is None or not limits or machine is None:
        return None
    if machine.host.memory_bytes is None or chip.host is None or not chip.host.bytes_per_s:
        return None
    changed: dict[str, Any] = {name: f"{AT_ONCE * s:.10g}s" for name, s in limits.items()}
    changed |= {"rate": f"{small.rate / AWAKE:.10g}/s", "runtime": runtime.id}
    part = _asked(small, CardPart(small, Share(memory=ASLEEP), small.alone, ASLEEP, 1.0), changed)
    if part is None:
        return None
    assert isinstance(part.plan, PlanRecord)
    weights, rest = resting(part.plan)
    way = CopyParameters(runtime.sleeping.link, 1.0, runtime.sleeping.start_s, 0.0)
    asleep = Sleeper(
        weight_bytes=weights,
        move_s=float(host_copy(weights, chip.host.bytes_per_s, way).total_s),
        room_bytes=preferences().host_share * machine.host.memory_bytes[1] / machine.chips_per_host,
        rest_bytes=rest,
        spare_bytes=(1.0 / ASLEEP - 1.0) * _capacity(part.plan),
        patience_s=(1.0 - AT_ONCE) * min(limits.values()),
        percentile=workload.percentile,
        cv=workload.lengths.output_cv if workload.lengths else 0.0,
    )
    return replace(part, asleep=asleep)


def resting(plan: PlanRecord) -> tuple[float, float]:
    """Bytes of the weights of a plan on a device, which sleep on the host, and of what stays on the chip."""
    items = plan.memory.items
    weights = sum(size for name, size in items.items() if name.startswith("weights"))
    return weights, items.get("context", 0.0) + items.get("graphs", 0.0)


def _capacity(plan: PlanRecord | MediaPlan) -> float:
    """Bytes that a device has for a plan."""
    return plan.capacity_bytes if isinstance(plan, MediaPlan) else plan.memory.capacity_bytes


def _sleeping(small: SmallDemand, chip: Chip) -> Runtime | None:
    """The software of a demand, or the first for its chip that sleeps where it names none; None where it does not."""
    if isinstance(small.alone, MediaPlan):
        return None
    named = small.question.runtime
    try:
        able = (get_runtime(named),) if named else runtimes_for(chip)
    except ChipwiseError:
        return None
    return next((r for r in able if r.sleeping and chip.vendor in r.sleeping.vendors), None)


def cards(smalls: Sequence[Sequence[CardPart]]) -> tuple[tuple[CardPart, ...], ...]:
    """Of each set of demands that fits on one chip the card that slows them least; they sleep by turns only where they
    do not fit awake, and where all but one of them do so too."""
    found: dict[tuple[int, ...], tuple[CardPart, ...]] = {}
    for count in range(2, min(len(smalls), MOST_ON_CARD) + 1):
        for some in combinations(smalls, count):
            names = tuple(parts[0].small.demand for parts in some)
            able = [card for card in _together(some, TIME, MIG) if not conflict(card)]
            if not able and (count == 2 or all(less in found for less in combinations(names, count - 1))):
                able = [card for card in map(_taken, _together(some, SLEEP)) if not conflict(card)]
            if able:
                found[names] = min(able, key=lambda card: sum(part.slower for part in card))
    return tuple(found.values())


def _together(some: Sequence[Sequence[CardPart]], *hows: str) -> Iterator[tuple[CardPart, ...]]:
    for how in hows:
        yield from product(*([part for part in parts if part.how == how] for parts in some))


def _taken(card: Sequence[CardPart]) -> tuple[CardPart, ...]:
    """Sleeping demands with what each sees of their turns, where the memory of the host and the chip is enough."""
    if any(_cramped(card)):
        return tuple(card)
    models = [
        TurnModel(part.small.rate, _answer_s(part.plan, part.small), part.asleep.cv, part.asleep.move_s)
        for part in card
        if part.asleep
    ]
    return tuple(
        replace(part, asleep=replace(part.asleep, turn=turn))
        for part, turn in zip(card, turns(tuple(models)), strict=True)
        if part.asleep
    )


def conflict(card: Sequence[CardPart]) -> str:
    """Why parts do not fit together on one chip; "" where they do."""
    if card[0].how == MIG:
        cuts = {cut.name: cut for cut in instances_of(card[0].small.alone.chip)}
        fits = fit_together(cuts[part.share.instance] for part in card)
        return "" if fits else f"no cut has {' and '.join(part.share.instance for part in card)}"
    if card[0].how == SLEEP:
        return next(_cramped(card), "") or next(_sleepless(card), "")
    return _crowded(card)


def _crowded(card: Sequence[CardPart]) -> str:
    """Why parts cannot have a chip's memory and take turns with its time; "" where they can."""
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


def _cramped(card: Sequence[CardPart]) -> Iterator[str]:
    """Why host and chip have no room for demands that sleep by turns."""
    sleepers = [part.asleep for part in card if part.asleep]
    held, room = sum(s.weight_bytes for s in sleepers), min(s.room_bytes for s in sleepers)
    if held > room:
        yield f"their weights take {format_bytes(held)} of the host's memory, a chip's part is {format_bytes(room)}"
    for part, mine in zip(card, sleepers, strict=True):
        if sum(s.rest_bytes for s in sleepers if s is not mine) > mine.spare_bytes:
            yield f"what stays of those asleep leaves {part.small.name} less than {ASLEEP:.0%} of the memory"


def _sleepless(card: Sequence[CardPart]) -> Iterator[str]:
    """Why demands cannot sleep by turns on one chip that has room for them."""
    for part in card:
        mine = part.asleep
        if mine is None or mine.turn is None:
            continue
        waits = mine.turn.within_s(mine.percentile)
        if mine.turn.left < AWAKE:
            left = f"{mine.turn.left:.0%} of the time is left to {part.small.name}"
            yield f"{left}, it keeps its targets with {AWAKE:.0%}"
        if waits > mine.patience_s:
            share = "in the mean" if mine.percentile is None else f"for {mine.percentile:.0%} of its requests"
            said = f"{part.small.name} waits {format_seconds(waits)} for its turn {share}"
            yield f"{said}, its targets leave {format_seconds(mine.patience_s)}"


def apart(chip: str, smalls: Sequence[SmallDemand], parts: Sequence[Sequence[CardPart]]) -> Iterator[str]:
    """What keeps demands from sharing a chip: those that need the whole of it, and pairs that do not fit together."""
    for small, its in zip(smalls, parts, strict=True):
        if not its:
            yield f"{small.name} keeps its targets on no part of a {chip}"
    able = [its for its in parts if its]
    for one, other in combinations(able, 2):
        if why := _apart(one, other):
            yield f"{one[0].small.name} and {other[0].small.name} do not fit on one {chip}: {why}"


def _apart(one: Sequence[CardPart], other: Sequence[CardPart]) -> str:
    """Why two demands do not fit on one chip; "" where they do."""
    awake = [conflict(card) for card in _together((one, other), TIME, MIG)]
    if not all(awake):
        return ""
    turn = [conflict(_taken(card)) for card in _together((one, other), SLEEP)]
    if turn and not all(turn):
        return ""
    whole = [its[0].small.name for its in (one, other) if all(part.how == SLEEP for part in its)]
    said = "one needs its time, the other an instance"
    said = f"no part of it is enough for {' and '.join(whole)}" if whole else said
    return f"{awake[-1] if awake else said}{f'; asleep by turns, {turn[-1]}' if turn else ''}"
