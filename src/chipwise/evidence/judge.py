"""Prediction -> Estimate: a figure with its 80 % interval and a basis.

How far a figure may be off is said by the model of error (`evidence.discrepancy`); here it becomes ends and chances.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

import numpy as np

from chipwise.calibrate.parameter import Z80
from chipwise.units import Array
from chipwise.values import dataclass

Basis = Literal["measured", "published", "calibrated", "modelled"]

Nearness = Literal["own", "chip", "stack", "vendor", "runtime", "generation", "kernels", "kind"]
"""What a fit had seen near a prediction, in words, nearest first: this very thing (an anchor); other models on this
chip under this runtime; this runtime on such chips by other people's benchmarks, from which a few of its numbers were
chosen (models with experts only where a fit saw the runtime); other chips of its generation under this runtime; its
generation, under other runtimes; other generations of the vendor; no runtime that served on them, but operators of the
vendor's chips, timed alone; nothing on chips of this kind. It says what a figure rests on, not how wide its interval
is."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 80 % interval and what it rests on: half of the outcomes lie below `mid`, a tenth beyond each
    end."""

    mid: float
    low: float
    high: float
    basis: Basis
    provisional: bool = True

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit, or per something."""
        mid, low, high = (x * factor for x in (self.mid, self.low, self.high))
        return Estimate(mid, low, high, self.basis, self.provisional)

    def inverse(self, numerator: float) -> Estimate:
        """`numerator` over this figure: the ends of the interval change places."""
        mid, low, high = (numerator / x for x in (self.mid, self.high, self.low))
        return Estimate(mid, low, high, self.basis, self.provisional)

    def reaching(self, times: float, left: float) -> Estimate:
        """The same where the middle may as well be so many `times` as much: the upper end is as far above that. The
        user's own runs have shown it already, as far as they are worth; `left` is what they leave of a deviation."""
        high = self.high * max(times, 1.0) ** min(left, 1.0) ** 2
        return Estimate(self.mid, self.low, high, self.basis, self.provisional)

    def kept(self, target: float) -> float:
        """The probability that the figure is at most `target`."""
        return chance(target, self.mid, self.low, self.high)

    def within(self, confidence: float) -> float:
        """What the figure keeps with that probability: the inverse of `kept`."""
        return within(confidence, self.mid, self.low, self.high)


def chance(target: float, mid: float, low: float, high: float) -> float:
    """The probability that a figure with this 80 % interval is at most `target`: its logarithm is normal on either side
    of the `mid`, with a tenth of the outcomes beyond each end."""
    end = high if target > mid else low
    if end == mid or target <= 0.0:
        return float(target >= mid)
    z = Z80 * math.log(target / mid) / abs(math.log(end / mid))
    return NormalDist().cdf(z)


def within(confidence: float, mid: float, low: float, high: float) -> float:
    """What a figure with this 80 % interval keeps with a probability: the inverse of `chance`."""
    z = NormalDist().inv_cdf(confidence) / Z80
    return float(mid * ((high if z > 0.0 else low) / mid) ** abs(z))


def summed(centres: Array, deviations: Array, alike: Array, confidence: float) -> Array:
    """What the sum of some figures [..., S] keeps with a probability [...]: each has its median and the deviation of
    its logarithm, which is normal, `alike` [..., S, S] the correlations of these. Means add up, and so do variances
    with what figures share; a logarithm that is normal has both (Fenton and Wilkinson). Exact of one figure."""
    mean = centres * np.exp(np.square(deviations) / 2.0)
    both = deviations[..., :, None] * deviations[..., None, :]
    shared = mean[..., :, None] * mean[..., None, :] * np.expm1(alike * both)
    total = mean.sum(axis=-1)
    wide = np.log1p(shared.sum(axis=(-2, -1)) / np.square(total))
    z = NormalDist().inv_cdf(confidence)
    return np.asarray(total * np.exp(z * np.sqrt(wide) - wide / 2.0))


def judge(
    mid: float,
    around: tuple[float, float],
    basis: Basis,
    *,
    provisional: bool = False,
    least: float = 0.0,
    most: float = float("inf"),
) -> Estimate:
    """The estimate of a figure the interval of whose logarithm lies `around` so much above what is predicted, with a
    standard deviation (`Scatter.around`). The middle is what is predicted, and lies inside; no end of the interval is
    beyond what physics leaves, `least` to `most`."""
    lies, sd = around
    away, centre = math.exp(Z80 * max(sd, 1e-9)), mid * math.exp(lies)
    low = max(min(centre / away, mid), min(least, mid))
    high = min(max(centre * away, mid), max(most, mid))
    return Estimate(mid, low, high, basis, provisional)


def basis_of(near: Nearness) -> Basis:
    """The word for a figure of which nothing of the user's own is known."""
    return "measured" if near == "own" else "calibrated" if near == "chip" else "modelled"
