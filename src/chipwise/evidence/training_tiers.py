"""How far a training plan may be off: the interval and the basis that its chip and its software have earned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import Parameters
from chipwise.evidence.training_answers import NOISY, TIERS

__all__ = ["SEEN", "TWINS", "PlanTier", "Seen", "plan_tier"]

ENOUGH = 0.75  # of a chip's rows in their 80 % interval, below which the interval is too narrow for it


@dataclass(frozen=True, slots=True)
class Seen:
    """What published step times of a chip came to out of fold: rows, median error, share in the 80 % interval; of
    chips that were missed, also the 10 % and 90 % quantiles of measured / predicted."""

    rows: int
    median: float
    covered: float
    low: float = 1.0
    high: float = 1.0


# As validation reports them by chip (training.csv, refit without each workload).
SEEN: Mapping[str, Seen] = {
    "a100-pcie-80gb": Seen(6, 0.075, 1.000),
    "a100-sxm4-40gb": Seen(60, 0.024, 0.900),
    "a100-sxm4-80gb": Seen(332, 0.067, 0.774),
    "b200-sxm": Seen(36, 0.077, 0.917),
    "b300-sxm": Seen(16, 0.249, 0.562, 0.80, 1.53),
    "gaudi2": Seen(6, 0.161, 0.500, 0.83, 1.30),
    "gb200-nvl72": Seen(66, 0.077, 0.788),
    "h100-sxm5-80gb": Seen(174, 0.044, 0.868),
    "mi210": Seen(5, 0.029, 0.800),
    "mi355x": Seen(7, 0.038, 1.000),
    "tpu-v4": Seen(6, 0.060, 1.000),
    "tpu-v5e": Seen(18, 0.031, 0.944),
    "tpu-v5p": Seen(17, 0.087, 0.706, 0.86, 1.14),
    "tpu-v6e": Seen(14, 0.035, 0.857),
    "tpu-v7x": Seen(10, 0.123, 0.600, 0.89, 1.34),
    "trainium1": Seen(105, 0.069, 0.924),
    "v100-sxm2-32gb": Seen(69, 0.126, 0.667, 0.88, 1.68),
}

# The same die with the same units, clocks and links; only the memory differs.
TWINS: Mapping[str, str] = {
    "h200-sxm-141gb": "h100-sxm5-80gb",
    "v100-sxm2-16gb": "v100-sxm2-32gb",
}


@dataclass(frozen=True, slots=True)
class PlanTier:
    """Factors of the 80 % interval of measured / predicted step time, and whether rows of the chip are in the fit:
    `calibrated`, else `modelled`."""

    low: float
    high: float
    basis: str


def plan_tier(
    numbers: Parameters, stack: str, chip: str, generation: str, *, routed: bool, packed: bool = False
) -> PlanTier:
    """The interval of a plan, whose inputs are all stated.

    Of a chip (or its twin) with rows of its own: that of stated inputs, of noisy software that of assumed ones. The
    next wider one and the quantiles of the chip's own rows join it where less than 75 % of these rows were covered,
    or they were off in the median by more than the interval reaches. Without rows of its own, or of software that no
    fit has seen: `modelled`, with the interval of chips and software left out. `packed` weights (QLoRA), of which no
    published step time is read, are `modelled` on any chip, with that of assumed inputs too. An interval that joins
    never makes one narrower.
    """
    effects, _ = training_effects(numbers)
    known = stack in effects.keys_of("stack") and generation in effects.keys_of("generation")
    kind = "experts" if routed else "dense"
    if packed:
        return PlanTier(*_joined(*(f"{kind}, {how}" for how in ("stated", "assumed", "unseen"))), "modelled")
    seen = SEEN.get(TWINS.get(chip, chip))
    if seen is None or not known:
        return PlanTier(*_joined(f"{kind}, stated", f"{kind}, unseen"), "modelled")
    rungs = [f"{kind}, {how}" for how in ("stated", "assumed", "unseen")]
    count = 2 if stack in NOISY else 1
    low, high = _joined(*rungs[:count])
    if seen.covered < ENOUGH or seen.median > max(1.0 - low, high - 1.0):
        low, high = _joined(*rungs[: count + 1])
        low, high = min(low, seen.low), max(high, seen.high)
    return PlanTier(low, high, "calibrated")


def _joined(*names: str) -> tuple[float, float]:
    """The interval that holds all of these."""
    return min(TIERS[n][0] for n in names), max(TIERS[n][1] for n in names)
