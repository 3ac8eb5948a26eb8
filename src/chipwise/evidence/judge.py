"""Prediction -> Estimate: an interval and a basis for every figure.

Intervals are split-conformal: quantiles of measured / predicted over rows that the fit did not see, by tier.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from chipwise.calibrate.parameter import Z80
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.units import Array, Real

Basis = Literal["measured", "published", "calibrated", "modelled"]

Nearness = Literal["own", "chip", "stack", "vendor", "runtime", "generation", "kernels", "kind"]
"""What was measured near a prediction, nearest first: this very thing (an anchor); other models on this chip under this
runtime; this runtime on such chips by other people's benchmarks, from which a few of its numbers were chosen (models
with experts only where a fit saw the runtime); other chips of its generation under this runtime; its generation, under
other runtimes; other generations of the vendor; no runtime that served on them, but operators of the vendor's chips,
timed alone; nothing on chips of this kind. Residuals of each tier but the last two are those of fits that had to do
without a cell, a chip, a runtime, a generation; of the last two also those of runtimes without their chosen numbers."""

APART = " apart"
"""Suffix of figures of disaggregated pools, which scatter more."""

USERS = " of users"
"""Suffix of figures without a benchmark client that was fitted: judged by other people's benchmarks, which no fit
saw."""

TUNED = " tuned"
"""Suffix of figures of tuned software at full load, tested on submissions to MLPerf."""

LOCAL = " local"
"""Suffix of figures of runtimes that bring kernels of their own: judged by published local speeds, of chips and models
that the fit had to do without."""

COVERAGE = 0.8
ENOUGH_ROWS, ENOUGH_CELLS = 200, 15

# Without measured rows of a tier the interval of the tier before it is widened by this power.
WIDER: Mapping[Nearness, float] = {
    "own": 1.0,
    "chip": 1.0,
    "stack": 1.0,
    "vendor": 1.2,
    "runtime": 1.3,
    "generation": 1.3,
    "kernels": 1.3,
    "kind": 1.3,
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


def chance(target: float, mid: float, low: float, high: float) -> float:
    """The probability that a figure with this 80 % interval is at most `target`: its logarithm is normal on either side
    of the middle, with a tenth of the outcomes beyond each end."""
    end = high if target > mid else low
    if end == mid or target <= 0.0:
        return float(target >= mid)
    z = Z80 * float(np.log(target / mid) / abs(np.log(end / mid)))
    return NormalDist().cdf(z)


@dataclass(frozen=True, slots=True)
class Factors:
    """Ends of an 80 % interval over its middle; `rows` residuals of `cells` groups gave them."""

    low: float
    high: float
    rows: int = 0
    cells: int = 0

    @property
    def tested(self) -> bool:
        """Whether the tier is large enough for its coverage to mean something."""
        return self.rows >= ENOUGH_ROWS and self.cells >= ENOUGH_CELLS

    def at_least(self, other: Factors) -> Factors:
        """As wide as both; its residuals are those of `other`."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Factors(low, high, other.rows, other.cells)

    def widened(self, power: float) -> Factors:
        """A wider interval, for what is further away."""
        return Factors(self.low**power, self.high**power)

    @property
    def deviation(self) -> float:
        """Standard deviation of the logarithm, were it normal."""
        return float(np.log(self.high / self.low)) / (2.0 * Z80)

    def to(self, power: float) -> Factors:
        """Ends so many times as far from the middle, as logarithms, on the same residuals."""
        return Factors(self.low**power, self.high**power, self.rows, self.cells)

    def for_few(self) -> Factors:
        """Wider where residuals come from few cells, which differ more among each other than their rows do:
        t_(m - 1) sqrt(1 + 1 / m) over z, the interval of a new one after m normal ones, at 80 %.

        Quantiles of t: Abramowitz and Stegun, 26.7.5. The same where the tier is large enough.
        """
        if self.tested or self.cells < 1:
            return self
        z, n = Z80, max(self.cells - 1.0, 1.0)
        t = z + (z**3 + z) / (4.0 * n) + (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * n * n)
        power = t / z * np.sqrt(1.0 + 1.0 / self.cells)
        return Factors(float(self.low**power), float(self.high**power), self.rows, self.cells)


def reach(slope: Real) -> Real:
    """The power to which the interval of a rate is taken that falls by `slope` per cent where passes take one longer.

    An error of passes moves the rate by `slope` times as much, one of anything else (lengths, clients, who tuned) as
    it would without limits; variances add, and are taken to be alike: sqrt((1 + slope^2) / 2), 1 without limits.
    """
    found: Real = np.sqrt(0.5 * (1.0 + np.square(slope)))
    return found


def conformal(ratios: Array, coverage: float = COVERAGE) -> tuple[float, float]:
    """Ends that hold `coverage` of new ratios measured / predicted, the same share left out on either side.

    Quantiles at (n + 1) (1 +- coverage) / 2 of n sorted residuals (split conformal prediction: Lei et al.,
    2018, theorem 2.2), which hold exactly for exchangeable rows; rows of one cell are not, so that real
    coverage scatters more than n suggests.
    """
    ordered = np.sort(np.asarray(ratios, dtype=float))
    n = len(ordered)
    if n == 0:
        return 0.0, float("inf")
    below = int(np.floor((n + 1) * (1.0 - coverage) / 2.0)) - 1
    above = int(np.ceil((n + 1) * (1.0 + coverage) / 2.0)) - 1
    return float(ordered[max(below, 0)]), float(ordered[min(above, n - 1)])


@per_snapshot
def shipped_factors() -> Mapping[tuple[str, str], Factors]:
    """Factors by (figure, nearness) that come with the package."""
    text = shipped_text("evidence/data/intervals.csv")
    return {
        (row["figure"], row["nearness"]): Factors(
            float(row["low"]), float(row["high"]), int(row["rows"]), int(row["cells"])
        )
        for row in csv.DictReader(text.splitlines())
    }


def tier_factors(
    figure: str, nearness: Nearness, table: Mapping[tuple[str, str], Factors] | None = None
) -> Factors:
    """The interval of a tier, no narrower than those of nearer ones; where it was not measured, that of the next
    nearer one, widened, but no wider than the next further one that was; where nothing as near was measured, that of
    the next further one.

    Raises `KeyError` for a figure that is not judged.
    """
    return _shipped_tier(figure, nearness) if table is None else _tier(figure, nearness, table)


@per_snapshot
def _shipped_tier(figure: str, nearness: Nearness) -> Factors:
    return _tier(figure, nearness, shipped_factors())


def _tier(figure: str, nearness: Nearness, known: Mapping[tuple[str, str], Factors]) -> Factors:
    if APART in figure and USERS in figure:
        plain = figure.removesuffix(USERS), figure.replace(APART, "")
        mine, its = (_tier(name, nearness, known) for name in plain)
        return mine.at_least(its)
    while not any(name == figure for name, _ in known) and " " in figure:
        figure = figure.rpartition(" ")[0]
    order: tuple[Nearness, ...] = get_args(Nearness)
    widest: Factors | None = None  # of the tiers so far
    measured: Factors | None = None  # of those that were
    for tier in order[: order.index(nearness) + 1]:
        if tier == "stack" and nearness in ("vendor", "runtime"):
            continue  # benchmarks of other vendors' software say nothing of generations that a fit saw
        found = known.get((figure, tier))
        if found is not None:
            # further away is never told to be surer
            widest = measured = found if measured is None else measured.at_least(found)
        elif widest is not None:
            widest = widest.widened(WIDER[tier])
    if widest is not None and widest is not measured:
        further = (known.get((figure, tier)) for tier in order[order.index(nearness) :])
        beyond = next((f for f in further if f is not None), None)
        if beyond is not None and measured is not None:
            most = measured.at_least(beyond)
            widest = Factors(max(widest.low, most.low), min(widest.high, most.high))
    if widest is not None:
        return widest
    further = (known.get((figure, tier)) for tier in order[order.index(nearness) :])
    found = next(
        (f for f in further if f is not None), None
    )  # nothing as near was measured: that of what was
    if found is None:
        raise KeyError(figure)
    return found


def judge(
    figure: str,
    mid: float,
    nearness: Nearness = "kind",
    *,
    basis: Basis | None = None,
    least: float = 0.0,
    most: float = float("inf"),
    power: float = 1.0,
) -> Estimate:
    """The estimate of one figure ("tpot_s", "ttft_s", "tokens_per_s") of a prediction: `evidence.tiers` says how
    near anything measured was, `power` how many times as wide as that of its tier the interval is, as logarithms: the
    `reach` of a rate under limits, times what own runs that corrected it leave (`anchors.Corrections`). No end of the
    interval is beyond what physics leaves, `least` to `most`."""
    factors = tier_factors(figure, nearness).to(power)
    said: Basis = basis or (
        "measured" if nearness == "own" else "calibrated" if nearness == "chip" else "modelled"
    )
    low, high = min(factors.low, 1.0 - 1e-9), max(factors.high, 1.0 + 1e-9)
    ends = max(mid * low, min(least, mid)), min(mid * high, max(most, mid))
    return Estimate(mid, *ends, said, provisional=not factors.tested)


def as_rows(table: Mapping[tuple[str, str], Factors]) -> Iterable[str]:
    """The lines of `data/intervals.csv`."""
    yield "figure,nearness,low,high,rows,cells"
    for (figure, nearness), f in table.items():
        yield f"{figure},{nearness},{f.low:.3f},{f.high:.3f},{f.rows},{f.cells}"
