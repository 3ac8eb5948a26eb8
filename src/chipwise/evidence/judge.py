"""Prediction -> Estimate: an interval and a basis for every figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Basis", "Estimate", "judge"]

Basis = Literal["measured", "published", "calibrated", "modelled"]

# Factors low and high of the 80 % interval. Provisional: from errors that a model of this form had on published
# serving measurements with unfitted parameters, widened by half. Coverage is not tested yet.
PROVISIONAL = {
    "tpot_s": (0.70, 1.45),
    "ttft_s": (0.50, 2.50),
    "tokens_per_s": (0.65, 1.40),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 80 % interval and what it rests on."""

    mid: float
    low: float
    high: float
    basis: Basis
    provisional: bool = True

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit, or per something."""
        return Estimate(
            self.mid * factor, self.low * factor, self.high * factor, self.basis, self.provisional
        )

    def inverse(self, numerator: float) -> Estimate:
        """`numerator` over this figure: the ends of the interval change places."""
        return Estimate(
            numerator / self.mid, numerator / self.high, numerator / self.low, self.basis, self.provisional
        )


def judge(figure: str, mid: float) -> Estimate:
    """The estimate of one figure ("tpot_s", "ttft_s", "tokens_per_s") of a prediction."""
    low, high = PROVISIONAL[figure]
    return Estimate(mid, mid * low, mid * high, "modelled")
