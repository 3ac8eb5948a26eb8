"""Does a benchmark lead carry over? A lead is advice only where the axes support it.

A published row shows its chip ahead of (or behind) others under the benchmark's conditions. The conditions are
then turned, one by one, into those of the user: model, lengths and load, precision, count, software. At every
step both chips are predicted by the same model. What is measured is kept: the ratio at the user's conditions
is the measured ratio times the change of the predicted one. Networks that are measured by samples are not predicted
here: their leads are held against other measured rows of both chips.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chipwise.catalog.preferences import preferences
from chipwise.evidence.item import Item
from chipwise.evidence.match import AXES, TITLES, Match
from chipwise.values import dataclass

TIE = preferences().tie
"""Ratio of two chips below which a difference is no lead: about the 80 % interval of a predicted ratio."""


SMALL, LARGE = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-405B"
ALTERNATIVES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("model", f"a small dense model ({SMALL})", {"model": SMALL}),
    ("model", f"a large dense model ({LARGE})", {"model": LARGE}),
    ("model", "a mixture of experts (openai/gpt-oss-120b)", {"model": "openai/gpt-oss-120b", "precision": ""}),
    ("precision", "bf16", {"precision": "bf16"}),
    ("precision", "fp8", {"precision": "fp8"}),
    ("load", "long prompts: 16,000 tokens in, 300 out", {"input_tokens": 16000.0, "output_tokens": 300.0}),
    ("load", "long answers: 200 tokens in, 2,000 out", {"input_tokens": 200.0, "output_tokens": 2000.0}),
    ("load", "one request at a time", {"scenario": "local", "ttft_s": None, "tpot_s": None}),
)
"""What a claim is tried against: other sizes, formats, lengths and batches than the user's."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one chip is asked to do: enough to predict tokens per second and chip. None = no limit, "" = the
    checkpoint's own precision."""

    chip: str
    chips: int
    model: str
    precision: str
    input_tokens: float
    output_tokens: float
    ttft_s: float | None = None
    tpot_s: float | None = None
    scenario: str = ""
    round: str = ""


@dataclass(frozen=True, slots=True)
class ClaimStep:
    """The predicted ratio of the two chips after one more condition has become the user's."""

    axis: str
    change: str
    ratio: float | None
    reverses: bool


@dataclass(frozen=True, slots=True)
class Rival:
    """A row of another chip under the same benchmark and what becomes of the lead over it. `turners` are single
    changes of the user's own workload that would turn the ratio to the other side of a tie."""

    item: Item
    measured: float
    predicted: float | None
    carried: float | None
    steps: tuple[ClaimStep, ...]
    verdict: str
    turners: tuple[ClaimStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A row, how near it is to the user's plan, and what becomes of its lead over each rival.

    `cautions` name what no step can predict: other software, another environment.
    """

    match: Match
    rivals: tuple[Rival, ...]
    supported: bool
    verdict: str
    cautions: tuple[str, ...] = ()


def rivals_of(item: Item, items: Sequence[Item], against: Sequence[str] = (), count: int = 3) -> tuple[Item, ...]:
    """The best row of every other chip under the same benchmark, scenario and nearest round: those `against`
    names, else the `count` best per chip."""
    best: dict[str, tuple[float, float, Item]] = {}
    for other in items:
        if other.benchmark != item.benchmark or other.scenario != item.scenario or other.unit != item.unit:
            continue
        if not other.chip or other.chip == item.chip or other.speed is None:
            continue
        if against and other.chip not in against:
            continue
        rounds_apart = abs(_half_years(other.date) - _half_years(item.date))
        key = (rounds_apart, -other.speed)
        if other.chip not in best or key < best[other.chip][:2]:
            best[other.chip] = (*key, other)
    ordered = sorted(best.values(), key=lambda entry: (entry[0], entry[1]))
    return tuple(entry[2] for entry in (ordered if against else ordered[:count]))


def judge_claim(
    nearness: Match,
    rivals: Sequence[Item],
    start: Callable[[Item], Condition | None],
    goal: Condition,
    speed: Callable[[Condition], float | None],
    again: Callable[[Condition], float | None] | None = None,
) -> Claim:
    """What becomes of a row's lead at the user's conditions.

    `start` gives the conditions of a row, `goal` those of the user (its chip is replaced by that of each row),
    `speed` predicts tokens per second and chip, None where it cannot; `again` does so with the software that a chip has
    at the user's conditions.
    """
    item = nearness.item
    pairs = _leads(item, rivals)
    found = tuple(_rival(item, other, lead, start, goal, speed, again or speed) for other, lead in pairs)
    off = [AXES[a.name] for a in nearness.axes if a.mark == "different" and a.name != "count"]
    blind = [AXES[a.name] for a in nearness.axes if a.mark == "unknown" and a.name in ("model", "load")]
    supported = not off and not blind and bool(found)
    return Claim(nearness, found, supported, _verdict(found, off, blind), _cautions(nearness))


def judge_measured(nearness: Match, rivals: Sequence[Item], items: Sequence[Item], scenario: str) -> Claim:
    """What becomes of a row's lead in other measured rows of the same benchmark: other scenarios, accuracies, formats.

    The ratio of two chips under other conditions is that of their best rows there. `scenario` is the user's, as rows
    name it: where both chips have rows under it, the lead carries over as measured; nothing is predicted.
    """
    item = nearness.item
    best, wanted = _cells(items, item), scenario or item.scenario
    found = tuple(_measured_rival(item, other, lead, best, wanted) for other, lead in _leads(item, rivals))
    off = [TITLES[a.name] for a in nearness.axes if a.mark == "different" and a.name != "count"]
    blind = [TITLES[a.name] for a in nearness.axes if a.mark == "unknown" and a.name == "model"]
    carried_all = all(r.carried is not None for r in found)
    supported = not off and not blind and bool(found) and carried_all
    return Claim(nearness, found, supported, _verdict(found, off, blind, MEASURED), _cautions(nearness))


Cells = dict[tuple[str, str], float]
"""Speeds by scenario and accuracy."""


def _measured_rival(item: Item, other: Item, measured: float, best: Mapping[str, Cells], wanted: str) -> Rival:
    """The lead over a row, and in the other cells where both chips were measured."""
    mine, theirs = best.get(item.chip, {}), best.get(other.chip, {})
    steps = []
    for cell in sorted(mine.keys() & theirs.keys() - {(item.scenario, item.accuracy)}):
        ratio = mine[cell] / theirs[cell]
        said = " ".join((cell[0], f"at {cell[1]} % accuracy" if cell[1] else "")).strip()
        steps.append(ClaimStep("scenario", f"as measured: {said}", ratio, (ratio < 1.0) != (measured < 1.0)))
    carried = _carried(item, wanted, measured, mine, theirs)
    verdict = _measured_words(measured, carried, wanted, steps)
    return Rival(other, measured, None, carried, tuple(steps), verdict)


def _cells(items: Sequence[Item], like: Item) -> dict[str, Cells]:
    """The best speed of each chip by scenario and accuracy, in rows of the same benchmark."""
    best: dict[str, Cells] = {}
    for i in items:
        if i.benchmark == like.benchmark and i.chip and i.speed:
            cells = best.setdefault(i.chip, {})
            cell = (i.scenario, i.accuracy)
            cells[cell] = max(cells.get(cell, 0.0), i.speed)
    return best


def _carried(item: Item, wanted: str, measured: float, mine: Cells, theirs: Cells) -> float | None:
    """The ratio under the wanted scenario, None where one of the chips has no row there."""
    if wanted == item.scenario:
        return measured
    cell = (wanted, item.accuracy)
    return mine[cell] / theirs[cell] if cell in mine and cell in theirs else None


def _measured_words(measured: float, carried: float | None, wanted: str, steps: Sequence[ClaimStep]) -> str:
    if carried is None:
        return f"{measured:.2f}x as measured; not both were measured under {wanted}: no statement"
    turned = [s.change.removeprefix("as measured: ") for s in steps if s.reverses]
    but = f"; reversed under {', '.join(turned)}" if turned else ""
    if max(carried, 1.0 / carried) < TIE:
        return f"{carried:.2f}x under {wanted}: a tie{but}"
    return f"{carried:.2f}x under {wanted}, as measured: {'ahead' if carried > 1.0 else 'behind'}{but}"


def _cautions(nearness: Match) -> tuple[str, ...]:
    """What differs and cannot be predicted step by step."""
    words = {
        "runtime": "engines tuned for a submission run about 1.3x as fast as common serving, and not equally "
        "so on every vendor's chips",
        "environment": "measured alone on a tuned machine; neighbours, power limits and virtual machines cost more "
        "on some systems than on others",
    }
    found = []
    for a in nearness.axes:
        if a.name in words and a.mark != "same":
            found.append(f"{AXES[a.name]} ({a.mark}): {words[a.name]}")
    return tuple(found)


def _leads(item: Item, rivals: Sequence[Item]) -> list[tuple[Item, float]]:
    """Rivals whose speed is known, and how many times as fast the row is."""
    return [(other, item.speed / other.speed) for other in rivals if item.speed and other.speed]


def _rival(
    item: Item,
    other: Item,
    measured: float,
    start: Callable[[Item], Condition | None],
    goal: Condition,
    speed: Callable[[Condition], float | None],
    again: Callable[[Condition], float | None],
) -> Rival:
    here, there = start(item), start(other)
    if here is None or there is None:
        return Rival(other, measured, None, None, (), "cannot be predicted: no model of the conditions")
    predicted = _ratio(speed(here), speed(there))
    steps: list[ClaimStep] = []
    last = predicted
    ahead, reversed_ = measured >= 1.0, False
    for axis, change, fields in _turns(here, there, goal):
        here, there = replace(here, **fields), replace(there, **fields)
        mine, theirs = speed(here), speed(there)
        ratio = _ratio(mine, theirs)
        carried = None if ratio is None or not predicted else measured * ratio / predicted
        if ratio is None:
            lost = [c.chip for c, x in ((here, mine), (there, theirs)) if not x]
            change = f"{change}: {' and '.join(lost)} cannot"
        turned = carried is not None and (carried < 1.0) == ahead and not reversed_
        reversed_ |= turned
        steps.append(ClaimStep(axis, change, carried, turned))
        last = ratio if ratio is not None else last
    end = steps[-1].ratio if steps else measured
    turners = _turners(here, there, end, last, again)
    return Rival(other, measured, predicted, end, tuple(steps), _words(measured, end, steps), turners)


def _turners(
    here: Condition,
    there: Condition,
    end: float | None,
    predicted: float | None,
    speed: Callable[[Condition], float | None],
) -> tuple[ClaimStep, ...]:
    """Single changes of the workload, software as it is, after which the ratio lies on the other side of 1, by more
    than a tie."""
    if end is None or not predicted or max(end, 1.0 / end) < TIE:
        return ()
    found = []
    for axis, change, fields in ALTERNATIVES:
        if all(getattr(here, n) == v for n, v in fields.items()):
            continue
        ratio = _ratio(*(speed(replace(c, **fields)) for c in (here, there)))
        if ratio is None:
            continue
        carried = end * ratio / predicted
        if (carried < 1.0) != (end < 1.0) and max(carried, 1.0 / carried) >= TIE:
            found.append(ClaimStep(axis, change, carried, True))
    return tuple(found)


def _turns(here: Condition, there: Condition, goal: Condition) -> list[tuple[str, str, dict[str, Any]]]:
    """The user's conditions one after the other, in the order of the axes that matter most."""
    turns: list[tuple[str, str, dict[str, Any]]] = []
    if goal.model != here.model:
        turns.append(("model", f"{here.model} -> {goal.model}", {"model": goal.model}))
    lengths = (goal.input_tokens, goal.output_tokens)
    if lengths != (here.input_tokens, here.output_tokens):
        said = f"{here.input_tokens:g}/{here.output_tokens:g} -> {lengths[0]:g}/{lengths[1]:g} tokens in/out"
        turns.append(("load", said, {"input_tokens": lengths[0], "output_tokens": lengths[1]}))
    limits = (goal.ttft_s, goal.tpot_s)
    if limits != (here.ttft_s, here.tpot_s):
        turns.append(("scenario", f"{_limit(here)} -> {_limit(goal)}", {"ttft_s": limits[0], "tpot_s": limits[1]}))
    if goal.precision and {here.precision, there.precision} != {goal.precision}:
        names = [c.precision or "the checkpoint" for c in (here, there)]
        said = f"{' against '.join(dict.fromkeys(names))} -> {goal.precision or 'the checkpoint'}"
        turns.append(("precision", said, {"precision": goal.precision}))
    if goal.chips != here.chips:
        turns.append(("count", f"{here.chips} -> {goal.chips} chips", {"chips": goal.chips}))
    return turns


def _limit(c: Condition) -> str:
    parts = [f"TTFT {c.ttft_s * 1e3:.0f} ms" if c.ttft_s else "", f"TPOT {c.tpot_s * 1e3:.0f} ms" if c.tpot_s else ""]
    return ", ".join(p for p in parts if p) or "no limit"


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a and b and math.isfinite(a / b) else None


def _words(measured: float, carried: float | None, steps: Sequence[ClaimStep]) -> str:
    if carried is None:
        return "the model cannot follow the row to your workload: no statement"
    lead = "lead" if measured >= 1.0 else "lag"
    turned = next((s for s in steps if s.reverses), None)
    if max(carried, 1.0 / carried) < TIE:
        return f"a tie at your workload: the {lead} of {_x(measured)} becomes {_x(carried)}"
    if (carried < 1.0) == (measured >= 1.0):
        why = f", reversed by {AXES[turned.axis]}" if turned else ""
        return f"reversed at your workload: {_x(measured)} becomes {_x(carried)}{why}"
    change = carried / measured if measured >= 1.0 else measured / carried
    how = "carries over" if 0.85 < change < 1.18 else "shrinks" if change < 1.0 else "grows"
    return f"the {lead} {how}: {_x(measured)} becomes {_x(carried)}"


def _x(ratio: float) -> str:
    return f"{ratio:.2f}x"


PREDICTED = "what follows is predicted, not measured"
MEASURED = "what follows was measured, under the conditions of the benchmark"


def _verdict(rivals: Sequence[Rival], off: Sequence[str], blind: Sequence[str], follows: str = PREDICTED) -> str:
    if not rivals:
        return "no other chip has a comparable row: this row shows no lead"
    if off or blind:
        parts = [f"differs in {', '.join(off)}" if off else "", f"{', '.join(blind)} unknown" if blind else ""]
        return f"not advice: the row {' and '.join(p for p in parts if p)}; {follows}"
    return "the axes support it: the ratios below rest on measurements near your plan"


def _half_years(date: str) -> float:
    try:
        return (int(date[:4]) * 12 + int(date[5:7] or 6)) / 6.0
    except ValueError:
        return 0.0
