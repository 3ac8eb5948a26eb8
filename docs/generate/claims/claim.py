"""A statement, what was computed to check it, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chipwise.catalog.chip import Chip, Source

__all__ = ["Checked", "Number", "Verdict", "cited", "close", "times"]

Verdict = Literal["true", "true with a condition", "misleading", "false"]

LONGEST = 60
"""Characters of a citation."""

CLOSE = 0.01
"""Figures of data sheets are rounded: within a per cent they are the same."""


@dataclass(frozen=True)
class Number:
    """A figure that was computed, as text, and where it comes from."""

    what: str
    value: str
    source: str


@dataclass(frozen=True)
class Checked:
    """A statement with its verdict. `because` is one or two sentences, `command` shows the figures again."""

    quote: str
    verdict: Verdict
    because: str
    numbers: tuple[Number, ...]
    command: str


def close(value: float, claimed: float, share: float = CLOSE) -> bool:
    """Whether a figure is what was claimed, up to rounding."""
    return abs(value - claimed) <= share * abs(claimed)


def cited(chip: Chip, figure: str) -> str:
    """Grade and first source of a figure of the catalogue."""
    p = chip.provenance(figure)
    first = p.sources[0] if p.sources else None
    where = "" if first is None else f": {_short(first.ref)}" + _dated(first)
    return f"{p.grade}{where}"


def times(ratio: float) -> str:
    """A ratio as text."""
    return f"{ratio:.2f} times"


def _dated(source: Source) -> str:
    return f" ({source.date})" if source.date and source.date not in source.ref else ""


def _short(ref: str) -> str:
    """A citation without what makes it long: `chipwise chips show` has it whole."""
    text = ref.removeprefix("https://").replace(" ; ", "; ").partition("; https://")[0]
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] or text[:LONGEST]
