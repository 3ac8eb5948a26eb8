"""How far a training plan may be off: the interval of the model of error, and the words for what its trainer and its
chip have earned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.calibrate.fit_training import seen_as, seen_runs
from chipwise.calibrate.parameters import Parameters
from chipwise.evidence.axes import Levels
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import Basis, judge


@dataclass(frozen=True, slots=True)
class Tier:
    """Factors of the 80 % interval of measured / predicted, and its `centre`. `seen`: several runs of the fit were of
    such; of step times of dense models, where folds test it, such figures are `calibrated`, else `modelled`.
    `provisional`: nobody measured the chip or the trainer."""

    low: float
    high: float
    centre: float
    basis: Basis
    seen: bool = False
    provisional: bool = False


def tier_name(what: str, labels: Mapping[str, str], *, seen: bool) -> str:
    """What a figure ("time", "memory") is of and whether a fit had `seen` such, in words."""
    name = "memory" if what == "memory" else "experts" if labels["moe"] == "moe" else "dense"
    return f"{name}, {'seen' if seen else 'not seen'}"


def seen_of(
    numbers: Parameters, labels: Mapping[str, str], what: str = "time", *, packed: bool = False
) -> bool:
    """Whether a fit had seen such; packed weights (QLoRA) count as not seen."""
    return seen_as(what, labels) in seen_runs(numbers) and not packed


def tier_of(
    numbers: Parameters,
    labels: Mapping[str, str],
    levels: Levels,
    what: str = "time",
    *,
    packed: bool = False,
) -> Tier:
    """The interval of a figure of a plan with these labels of the fit and `levels` in the model of error."""
    seen = seen_of(numbers, labels, what, packed=packed)
    spread = spread_of(levels, "training_memory" if what == "memory" else "training")
    e = judge(1.0, spread.around(), "modelled")
    calibrated = seen and what == "time" and labels["moe"] != "moe"
    known = bool(spread.known[0])
    return Tier(e.low, e.high, e.centre, "calibrated" if calibrated else "modelled", seen, not known)
