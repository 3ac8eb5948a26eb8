"""A day's arrivals: the rate of requests in equal slices of 24 hours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from chipwise.catalog.snapshot import own_bytes, own_exists
from chipwise.errors import UsageError, shorten
from chipwise.units import parse_quantity
from chipwise.values import dataclass

MOST = 24 * 60


@dataclass(frozen=True, slots=True)
class RateCurve:
    """Requests per second in each of equal slices of a day, 1 to 1440 of them.

    Raises `UsageError` for a curve that is empty, too long, negative or zero throughout.
    """

    rates_per_s: tuple[float, ...]

    def __post_init__(self) -> None:
        rates = self.rates_per_s
        if not 1 <= len(rates) <= MOST:
            raise UsageError(f"--day: {len(rates)} slices", f"1 to {MOST} rates, 24 for one an hour")
        if not all(0 <= r < 1e9 for r in rates) or not any(r > 0 for r in rates):
            raise UsageError("--day: rates are out of range", "requests per second, some above zero")

    @property
    def peak(self) -> float:
        """Requests per second of the busiest slice."""
        return max(self.rates_per_s)

    @property
    def mean(self) -> float:
        """Requests per second over the day."""
        return float(np.mean(self.rates_per_s))

    @property
    def slice_s(self) -> float:
        """Seconds of one slice."""
        return 86_400.0 / len(self.rates_per_s)


def read_curve(text: str) -> RateCurve:
    """`2,2,1,4,8,...` requests a second, `100/h,60/h,...`, or the name of a file that holds such numbers, separated by
    commas or white space.

    Raises `UsageError` for text that is neither.
    """
    source = text
    file = Path(text) if len(text) < 4096 and "," not in text else None
    if file is not None and own_exists(file) and not file.is_dir():
        try:
            source = own_bytes(file).decode("utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"{file}: cannot be read", str(error)) from None
    words: Sequence[str] = source.replace(",", " ").split()
    try:
        rates = tuple(parse_quantity(word, "1/s", "--day") for word in words)
    except UsageError:
        what = f"{shorten(text)} is no curve of rates"
        hint = "requests a second in equal slices, e.g. 2,2,1,4,9 or 100/h,60/h,400/h, or a file of them"
        raise UsageError(what, hint, field="day") from None
    return RateCurve(rates)
