"""What differs between two answers: their figures, plan by plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["TOLERANCE", "Change", "changes", "first_plans", "leaves"]

# names that tell the entries of a list apart
KEYS = ("chips", "chip", "count", "layout", "precision", "runtime", "phase", "id", "item")
HIDDEN = ("schema_version",)
TOLERANCE = 1e-9
"""Relative difference below which two figures are the same: versions of Python and NumPy add in another order."""
ROUNDING = 1e-15  # of a figure that is zero but for rounding


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of an entry, before and after; None where it was not there."""

    entry: str
    figure: str
    before: Any
    after: Any

    @property
    def factor(self) -> float | None:
        """After over before, None where that says nothing."""
        numbers = (self.before, self.after)
        if all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers) and self.before:
            return float(self.after) / float(self.before)
        return None

    @property
    def size(self) -> float:
        """How much it changed: a logarithm; what came, went or is no number changed most."""
        factor = self.factor
        return abs(math.log(factor)) if factor and factor > 0 else math.inf


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """All leaves of two answers that differ, in the order of the answers; numbers by more than `TOLERANCE`."""
    old, new = dict(leaves(before)), dict(leaves(after))
    return tuple(
        Change(*key, old.get(key), new.get(key))
        for key in dict.fromkeys((*old, *new))
        if not _same(old.get(key), new.get(key))
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two leaves are equal: counts and words exactly, other numbers but for rounding."""
    if one == other:
        return True
    numbers = all(isinstance(n, int | float) and not isinstance(n, bool) for n in (one, other))
    counts = isinstance(one, int) and isinstance(other, int)
    return numbers and not counts and math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=ROUNDING)


def first_plans(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """How the first plan of one answer compares with the first of another where those are not one plan, `plan` being
    its name; empty where they are, or one answer has none."""
    one, other = (next(iter(record.get("plans") or ()), None) for record in (before, after))
    if one is None or other is None or _name(one) == _name(other):
        return ()
    found = changes({"plan": _name(one), **one}, {"plan": _name(other), **other})
    return tuple(Change(f"#1 {c.entry}".strip(), c.figure, c.before, c.after) for c in found)


def leaves(record: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    """((entry, figure), value) of everything in an answer. Entries of lists go by what they are, not by their
    place, so that a plan which moves up a rank is still that plan."""
    for name, value in record.items():
        if name not in HIDDEN:
            yield from _below("", name, value)


def _below(entry: str, figure: str, value: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _below(entry, f"{figure}.{name}", part)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        seen: dict[str, int] = {}
        for i, part in enumerate(value):
            if isinstance(part, Mapping):
                name = _name(part) or f"{figure} {i + 1}"
                seen[name] = seen.get(name, 0) + 1
                name = name if seen[name] == 1 else f"{name} ({seen[name]})"
                for inner, inside in part.items():
                    yield from _below(f"{entry} {name}".strip(), inner, inside)
            else:
                yield (entry, f"{figure}[{i}]"), part
    else:
        yield (entry, figure), value


def _name(part: Mapping[str, Any]) -> str:
    """What tells an entry from others: its chips, count, layout and software, or its name."""
    words = []
    for key in KEYS:
        value = part.get(key)
        if isinstance(value, Mapping):
            value = value.get("label") or value.get("id")
        if value is not None and value != "" and not isinstance(value, list | tuple):
            words.append(f"{value}x" if key == "chips" else str(value))
    return " ".join(words if "id" in part else (*words, *_texts(part.get("name"))))


def _texts(name: Any) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) and name else ()
