"""How near a piece of evidence is to what somebody plans, axis by axis, and what a prediction gains from it.

Eight axes for language models: chip and power bin; count and interconnect; model size and architecture;
precision; batch and lengths; scenario; runtime and its date; environment. Networks measured by samples have the
work of a sample and the accuracy target in place of batch and lengths. Each is same, near, different or unknown,
with a reason.

The distance of a match is the sum over axes of weight x step, with the steps 0 (same), 1 (near), 1.5
(unknown) and 3 (different). A measured row shifts a prediction on the logarithmic scale:

    log anchored = log model + sum(k_i r_i) / (sum(k_i) + 0.25),   r_i = log(measured_i / predicted_i),
    k_i = exp(-distance_i / 4)

where rows of one cell (chip, count, model, precision) count once, by their mean: they share what the model
does not know. Only rows of such a model on this very chip shift anything, and Interactive ones nothing but
their like: left-out cells of MLPerf are predicted worse with the residuals of other models or chips than
without, and half as far off with those of their own. So a row that matches on every axis counts for 80 % of
its own error of prediction, and the pure model stays where nothing near was measured. The weights are judgement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from chipwise.catalog.published import ROUNDS
from chipwise.evidence.anchors import shrunk
from chipwise.evidence.item import Item
from chipwise.evidence.match_axes import (
    STEP,
    Axis,
    Mark,
    ModelFacts,
    Target,
    accuracy_axis,
    chip_axis,
    count_axis,
    environment_axis,
    load_axis,
    model_axis,
    precision_axis,
    runtime_axis,
    sample_axis,
    scenario_axis,
)
from chipwise.values import dataclass

WEIGHT = {
    "chip": 3.0,
    "count": 0.7,
    "model": 1.5,
    "precision": 1.0,
    "load": 1.0,
    "scenario": 0.5,
    "runtime": 0.5,
    "environment": 0.3,
    "sample": 1.0,
    "accuracy": 0.5,
}
AXES = {
    "chip": "chip and power bin",
    "count": "count and interconnect",
    "model": "model size and architecture",
    "precision": "precision",
    "load": "batch and lengths",
    "scenario": "scenario",
    "runtime": "runtime and its date",
    "environment": "environment",
}
"""The axes of language models, and what they are called."""
TITLES = AXES | {"sample": "work of a sample", "accuracy": "accuracy target"}
"""What all axes are called."""
SHORT = {
    "chip": "chip",
    "model": "model",
    "precision": "precision",
    "load": "lengths",
    "sample": "sample",
    "count": "count",
}
DECISIVE = tuple(SHORT)
SOFTNESS = 0.25
RANGE = 4.0


@dataclass(frozen=True, slots=True)
class Match:
    """An item against a target: its axes, their distance, and what the item is good for, in words. `chip` is
    that of the target."""

    item: Item
    axes: tuple[Axis, ...]
    distance: float
    verdict: str
    chip: str = ""

    def mark(self, name: str) -> Mark:
        """The mark of an axis."""
        return next(a.mark for a in self.axes if a.name == name)

    @property
    def shares(self) -> bool:
        """Whether what a prediction misses here is missed for the target too: such a model on the same chip,
        under limits of the same kind."""
        near = self.item.chip == self.chip and self.mark("model") in ("same", "near")
        return near and not _tighter(self.item, self.axes)


@dataclass(frozen=True, slots=True)
class Anchored:
    """A prediction moved towards what was measured: `weight` is the share of the measured shift it took."""

    value: float
    model: float
    weight: float
    used: tuple[str, ...]


def match(target: Target, item: Item, facts: Callable[[str], ModelFacts | None]) -> Match:
    """How near an item is to a target; `facts` looks up models by name."""
    found = _match(target, item, facts, math.inf)
    assert found is not None
    return found


def _match(target: Target, item: Item, facts: Callable[[str], ModelFacts | None], most: float) -> Match | None:
    """The same; None as soon as the axes say that the item is further away than `most`."""
    axes, distance = [], 0.0
    for axis in _axes(target, item, facts):
        axes.append(axis)
        distance += WEIGHT[axis.name] * STEP[axis.mark]
        if distance > most:
            return None
    said = _of_samples(axes) if target.benchmark else _verdict(axes, item, target.chip)
    return Match(item, tuple(axes), distance, said, target.chip)


def _axes(target: Target, item: Item, facts: Callable[[str], ModelFacts | None]) -> Iterator[Axis]:
    yield chip_axis(target, item)
    yield count_axis(target, item)
    yield model_axis(target, item, facts)
    yield precision_axis(target, item)
    if target.benchmark:
        yield sample_axis(target, item)
        yield accuracy_axis(target, item)
    else:
        yield load_axis(target, item)
    yield scenario_axis(target, item)
    yield runtime_axis(target, item)
    yield environment_axis(target, item)


def nearest(
    target: Target, items: Iterable[Item], facts: Callable[[str], ModelFacts | None], count: int = 5
) -> tuple[Match, ...]:
    """The nearest items that hold a speed, nearest first; of published rows that differ in round or submitter
    only, the nearest and best one. What holds no tokens per second counts for the very model alone."""
    found: dict[tuple[object, ...], Match] = {}
    most = math.inf  # distance of the last of so many that were found: what is further away is not among them
    for item in items:
        if item.speed is None:
            continue
        here = _match(target, item, facts, most)
        if here is None:
            continue
        if item.tokens_per_s is None and not target.benchmark and here.mark("model") != "same":
            continue
        own = item.id if item.measured_by_user else ""
        key = (own, item.model, item.chip, item.chips, item.scenario, item.precision)
        held = found.get(key)
        if held is None or (here.distance, -item.speed) < (held.distance, -(held.item.speed or 0.0)):
            found[key] = here
            if here.distance < most and len(found) >= count:
                most = sorted(m.distance for m in found.values())[count - 1]
    ordered = sorted(found.values(), key=lambda m: (m.distance, _age(m.item), m.item.id))
    return tuple(ordered[:count])


def anchored(predicted: float, matches: Sequence[Match], predict: Callable[[Item], float | None]) -> Anchored:
    """`predicted` tokens per second of a target, blended with what its matches measured.

    `predict` gives tokens per second of an item by the same model; items that it cannot answer are left out.
    """
    rows = []
    used = []
    for m in matches:
        if not m.shares:
            continue
        own = predict(m.item)
        if not own or not m.item.tokens_per_s:
            continue
        cell = (m.item.chip, m.item.chips, m.item.model, m.item.precision)
        rows.append((cell, math.exp(-m.distance / RANGE), math.log(m.item.tokens_per_s / own)))
        used.append(m.item.id)
    shift, weight = shrunk(rows, SOFTNESS)
    return Anchored(predicted * math.exp(shift), predicted, weight, tuple(used))


def _tighter(item: Item, axes: Sequence[Axis]) -> bool:
    """Whether an item was run under limits so tight that its misses are its own."""
    return item.scenario == "Interactive" and any(a.name == "scenario" and a.mark != "same" for a in axes)


def _marked(marks: Mapping[str, str], mark: str) -> list[str]:
    """The decisive axes with a mark, in short."""
    return [SHORT[n] for n in DECISIVE if marks.get(n) == mark]


def _verdict(axes: Sequence[Axis], item: Item, chip: str) -> str:
    """What the match is good for, from its decisive axes."""
    marks = {a.name: a.mark for a in axes}
    off, unsure = _marked(marks, "different"), _marked(marks, "unknown")
    parts = (f"other {_listed(off)}" if off else "", f"{_listed(unsure)} unknown" if unsure else "")
    but = "; ".join(p for p in parts if p)
    if marks["chip"] in ("different", "unknown"):
        return f"too different to use as evidence: {but}"
    if marks["model"] in ("different", "unknown"):
        return f"shows the chip, not your model's speed: {but}"
    if item.chip != chip:
        return f"weak evidence: comparable model on a similar chip{', ' * bool(but)}{but}"
    if _tighter(item, axes):
        return f"weak evidence: comparable model on this chip under tighter limits{'; ' * bool(but)}{but}"
    if not but:
        near = sum(marks[n] == "near" for n in marks)
        return "a direct measurement of such a plan" if near <= 2 else "close enough to adjust the prediction by it"
    if off == [SHORT["count"]] and not unsure:
        return "close but for the count: per-chip rates apply as far as replicas are independent"
    return f"comparable model, same chip: close enough to adjust the prediction by it; {but}"


def _of_samples(axes: Sequence[Axis]) -> str:
    """What the match of a network that is measured by samples is good for."""
    marks = {a.name: a.mark for a in axes}
    what = "this network" if marks["model"] == "same" else "a network of the same sort"
    where = "this chip" if marks["chip"] == "same" else "another chip"
    words = {"different": "a different", "near": "a similar", "unknown": "an unknown"}
    rest = {n: mark for n, mark in marks.items() if n not in ("model", "chip")}
    parts = [f"{word} {name}" for mark, word in words.items() for name in _marked(rest, mark)]
    return f"measured, not predicted: {what} on {where}" + (f", with {_listed(parts)}" if parts else "")


def _listed(words: Sequence[str]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def _age(item: Item) -> float:
    """Newer evidence first among equals."""
    names = tuple(ROUNDS)
    return -float(names.index(item.round)) if item.round in ROUNDS else 0.0
