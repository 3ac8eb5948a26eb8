"""Numbers in short: three significant digits, ranges instead of figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.report.records import Figure, ModelRecord, RefusalRecord
from chipwise.units import format_bytes, format_count, format_number

__all__ = ["Range", "model_text", "range_of", "refusals_of", "rounded", "span"]

DIGITS = 3
NAMED = 8


def rounded(value: float) -> float:
    """At most three significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def span(low: float, high: float) -> str:
    """`11-17`, or the one number."""
    a, b = format_number(low, DIGITS), format_number(high, DIGITS)
    return a if a == b else f"{a}-{b}"


@dataclass(frozen=True, slots=True)
class Range:
    """A middle value between a low and a high one."""

    mid: float
    low: float
    high: float

    @classmethod
    def of(cls, low: float, mid: float, high: float) -> Range:
        """The three, rounded."""
        return cls(rounded(mid), rounded(low), rounded(high))


def range_of(figure: Figure, scale: float = 1.0) -> Range:
    """A figure as a range, in another unit."""
    return Range.of(figure.low * scale, figure.mid * scale, figure.high * scale)


def model_text(m: ModelRecord) -> str:
    """A model in one line."""
    active = "" if m.active_params > 0.8 * m.params else f", {format_count(m.active_params)} active"
    return (
        f"{m.name}: {format_count(m.params)} parameters{active}, {m.precision}, {format_bytes(m.weight_bytes)} of "
        f"weights, {m.kv_bytes_per_token:,.0f} B of cache per token"
    )


def refusals_of(refused: Sequence[RefusalRecord]) -> dict[str, tuple[str, ...]]:
    """Chips by the reason why they have no plan; of many with one reason a few are named."""
    details = Counter(r.detail for r in refused)
    found: dict[str, tuple[str, ...]] = {}
    for detail, count in details.most_common(NAMED):
        names = tuple(r.chip for r in refused if r.detail == detail)[:NAMED]
        found[detail] = (*names, f"and {count - NAMED} more") if count > NAMED else names
    return found
