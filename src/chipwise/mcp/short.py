"""Records in short: the columns that they declare for agents, with few digits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.report.records import Figure, PriceRecord, RefusalRecord
from chipwise.report.table import Column

DIGITS = 3
NAMED = 8
AS_IT_IS = (0.0, 1.0)  # scales that leave a whole number alone


def rounded(value: float) -> float:
    """At most three significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def lines(records: Sequence[Any], columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Records in short: of each the columns that have a short name, in their order."""
    named = [c for c in columns if c.short]
    return [{c.short: _short(c.value(record), c.scale) for c in named} for record in records]


def _short(value: Any, scale: float) -> Any:
    """A value in short, a figure as the range that it is; with scale 0 as it is."""
    if isinstance(value, Figure | PriceRecord):
        return {end: rounded(getattr(value, end) * scale) for end in ("mid", "low", "high")}
    if isinstance(value, Mapping):
        return {name: _short(part, scale) for name, part in value.items()}
    number = isinstance(value, float) or (isinstance(value, int) and scale not in AS_IT_IS)
    return rounded(value * scale) if number and scale else value


def refusals_of(refused: Sequence[RefusalRecord]) -> dict[str, tuple[str, ...]]:
    """Chips by the reason why they have no plan; of many with one reason a few are named."""
    details = Counter(r.detail for r in refused)
    found: dict[str, tuple[str, ...]] = {}
    for detail, count in details.most_common(NAMED):
        names = tuple(r.chip for r in refused if r.detail == detail)[:NAMED]
        found[detail] = (*names, f"and {count - NAMED} more") if count > NAMED else names
    return found
