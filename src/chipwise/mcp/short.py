"""Records in short: the columns that they declare for agents, as frozen records with few digits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from chipwise.report.figures import Interval
from chipwise.report.records import Figure, ModelRecord, PriceRecord, RefusalRecord
from chipwise.report.table import Column

DIGITS = 3
NAMED = 8
AS_IT_IS = (0.0, 1.0)  # scales that leave a whole number alone


def rounded(value: float) -> float:
    """At most three significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Range:
    """A middle value between a low and a high one."""

    mid: float
    low: float
    high: float

    @classmethod
    def of(cls, figure: Interval, scale: float = 1.0) -> Range:
        """A figure in another unit, rounded."""
        return cls(rounded(figure.mid * scale), rounded(figure.low * scale), rounded(figure.high * scale))


class Short:
    """The short form of a record: a frozen dataclass `line` made of the columns that have a short name, in their order,
    and the way from the record to it."""

    def __init__(self, name: str, record: type, columns: Sequence[Column], doc: str) -> None:
        self.columns = tuple(c for c in columns if c.short)
        members = [(c.short, _short_type(_type_of(record, c), c.scale)) for c in self.columns]
        self.line: Any = make_dataclass(name, members, frozen=True, slots=True)
        self.line.__doc__, self.line.__module__ = doc, __name__

    def __call__(self, record: Any) -> Any:
        """The record in short."""
        return self.line(*(_short(c.value(record), c.scale) for c in self.columns))

    def many(self, records: Sequence[Any]) -> tuple[Any, ...]:
        """Several records in short."""
        return tuple(map(self, records))


def _type_of(record: type, column: Column) -> Any:
    """What a column gives, by the hints of the record or of the function that gets it."""
    if not isinstance(column.get, str):
        return get_type_hints(column.get)["return"]
    found: Any = record
    for part in column.get.split("."):
        owner = getattr(found, part, None)
        getter: Callable[..., Any] | None = owner.fget if isinstance(owner, property) else None
        found = get_type_hints(found)[part] if getter is None else get_type_hints(getter)["return"]
    return found


def _short_type(kind: Any, scale: float) -> Any:
    """The type of a value in short: figures and prices are ranges, what is scaled a float."""
    if get_origin(kind) in (Union, UnionType):
        return reduce(or_, (_short_type(member, scale) for member in get_args(kind)))
    if kind in (Figure, PriceRecord):
        return Range
    return float if kind is int and scale not in AS_IT_IS else kind


def _short(value: Any, scale: float) -> Any:
    """A value in short; with scale 0 as it is."""
    if isinstance(value, Figure | PriceRecord):
        return Range.of(value, scale)
    if isinstance(value, Mapping):
        return {name: _short(part, scale) for name, part in value.items()}
    number = isinstance(value, float) or (isinstance(value, int) and scale not in AS_IT_IS)
    return rounded(value * scale) if number and scale else value


def model_text(m: ModelRecord) -> str:
    """A model in one line."""
    return ", ".join(m.words)


def refusals_of(refused: Sequence[RefusalRecord]) -> dict[str, tuple[str, ...]]:
    """Chips by the reason why they have no plan; of many with one reason a few are named."""
    details = Counter(r.detail for r in refused)
    found: dict[str, tuple[str, ...]] = {}
    for detail, count in details.most_common(NAMED):
        names = tuple(r.chip for r in refused if r.detail == detail)[:NAMED]
        found[detail] = (*names, f"and {count - NAMED} more") if count > NAMED else names
    return found
