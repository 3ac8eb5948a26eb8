"""The published result nearest to a plan, found fast enough to stand beside every line of `plan`.

Rows of language models are indexed by chip once. How much more or less a row measured than the model of
submissions says of it is shipped as a table (`data/mlperf_residuals.csv`, written with the fit of those
factors), so that nothing is priced here.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence

from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.published import best_results, rated_chips, rated_results
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.evidence.item import Item, item_of
from chipwise.evidence.match import Match, anchored, nearest
from chipwise.evidence.match_axes import Mark, ModelFacts, Target, chip_axis
from chipwise.values import dataclass

ROWS = 5
"""Rows whose residuals are blended, as in `evidence match`."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest published row of a plan.

    `label` names it in short ("MLPerf v5.0, 8x h100-sxm5-80gb, llama2-70b Offline"), `verdict` says what it is
    good for, `marks` are the eight axes; `supports`: no decisive axis differs or is unknown. `tokens_per_s` was
    measured on `chips` chips. `shift` is the logarithm by which rows near the plan ran faster than predicted,
    shrunk by their distance; `weight` the share of their own residuals that this is.
    """

    result: str
    label: str
    round: str
    date: str
    chip: str
    chips: int
    benchmark: str
    scenario: str
    submitter: str
    tokens_per_s: float
    distance: float
    marks: Mapping[str, Mark]
    supports: bool
    verdict: str
    shift: float
    weight: float

    def anchored(self, predicted: float) -> float:
        """Tokens per second predicted for the plan, moved by what was measured near it."""
        return predicted * math.exp(self.shift)


@per_snapshot
def residuals() -> Mapping[str, float]:
    """log(measured / predicted) of published rows by id, under the shipped factors of submissions."""
    text = shipped_text("evidence/data/mlperf_residuals.csv")
    return {row["id"]: float(row["log_residual"]) for row in csv.DictReader(text.splitlines())}


def predicted(item: Item) -> float | None:
    """Tokens per second that the model of submissions, as shipped, gives a published row; None for any other item."""
    known = residuals().get(item.id)
    return None if known is None or not item.tokens_per_s else item.tokens_per_s / math.exp(known)


def generates(item: Item) -> bool:
    """Whether an item measured a language model: other tasks also count tokens (speech), and say nothing of
    one. What the user measured counts, as benchmarks of serving are of language models."""
    if not item.benchmark:
        return True
    return item.benchmark in _generating()


def nearest_published(target: Target, facts: Callable[[str], ModelFacts | None]) -> Nearest | None:
    """The published row nearest to a plan, None where no such chip was submitted with a language model."""
    # rows of the very chip first: what they leave no room for is soon seen to be further away
    chips = sorted(_kin(target.chip), key=lambda chip: chip != target.chip)
    items = [i for chip in chips for i in _best_of(chip)]
    found = nearest(target, items, facts, ROWS)
    if not found:
        return None
    moved = _moved(found)
    first = found[0].item
    marks = {a.name: a.mark for a in found[0].axes}
    decisive = [marks[n] for n in ("chip", "model", "precision", "load", "count")]
    return Nearest(
        result=first.id,
        label=f"MLPerf {first.round}, {first.chips}x {first.chip}, {first.benchmark} {first.scenario}",
        round=first.round,
        date=first.date,
        chip=first.chip,
        chips=first.chips or 0,
        benchmark=first.benchmark,
        scenario=first.scenario,
        submitter=first.submitter,
        tokens_per_s=first.tokens_per_s or 0.0,
        distance=found[0].distance,
        marks=marks,
        supports=not {"different", "unknown"} & set(decisive),
        verdict=found[0].verdict,
        shift=moved[0],
        weight=moved[1],
    )


def _moved(found: Sequence[Match]) -> tuple[float, float]:
    """Shift (logarithm) and weight of the matches' residuals."""
    blend = anchored(1.0, found, predicted)
    return math.log(blend.value), blend.weight


@per_snapshot
def _generating() -> frozenset[str]:
    """The benchmarks of language models."""
    return frozenset(b.name for b in load_benchmarks().values() if b.kind == "llm" and b.model)


@per_snapshot
def _best_of(chip: str) -> tuple[Item, ...]:
    """The best published row of every cell and round of language models on a chip."""
    return tuple(map(item_of, best_results(rated_results(_generating(), chip))))


@per_snapshot
def _kin(chip: str) -> tuple[str, ...]:
    """Chips with rows that are this one or near it."""
    target = Target(ModelFacts("", 1.0, 1.0, 1.0, ""), chip)
    of_chips = {c: Item("", "published", "", "", 0.0, "", chip=c) for c in rated_chips(_generating())}
    return tuple(c for c, item in of_chips.items() if chip_axis(target, item).mark in ("same", "near"))
