"""The strict reading of catalogue files: known keys alone, values of the right kind, sources that are listed.

Every message opens with where the value stands, names what was wrong, and the nearest valid name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.catalog.chip import Source
from chipwise.errors import UsageError, nearest, shorten

__all__ = ["Values", "known_keys", "read_sources"]


def known_keys(table: object, keys: Iterable[str], where: str) -> Mapping[str, Any]:
    """`table` if it is one and has no other keys; an unknown key is an error that names the nearest.

    Raises `UsageError`, opening with `where`.
    """
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, found {shorten(repr(table), 40)}")
    allowed = tuple(keys)
    for key in table:
        if key not in allowed:
            close = nearest(key, allowed)
            hint = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(allowed)}"
            raise UsageError(f"{where}: unknown key '{shorten(key, 40)}'", hint)
    return table


def read_sources(table: object, origin: str) -> dict[str, Source]:
    """A [sources] table: each key with its citation and the date on which it was read, if it has one.

    Raises `UsageError` for an entry without a citation.
    """
    if not isinstance(table, dict):
        raise UsageError(f"{origin}: [sources] must be a table")
    found = {}
    for key, value in table.items():
        entry = known_keys(value, ("ref", "date"), f"{origin}: source '{key}'")
        if not isinstance(entry.get("ref"), str) or not entry["ref"]:
            raise UsageError(f"{origin}: source '{key}' needs a ref", "say where the figure was read")
        found[key] = Source(entry["ref"], str(entry["date"]) if "date" in entry else None)
    return found


class Values:
    """Reads values out of tables; `where` opens every message."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str, hint: str = "") -> UsageError:
        """An error that says where."""
        return UsageError(f"{self.where}: {what}", hint)

    def text(self, table: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """A text."""
        value = table.get(key, default)
        if not isinstance(value, str):
            raise self.fail(f"{key} must be a text, not {shorten(repr(value), 40)}")
        return value

    def choice(
        self, table: Mapping[str, Any], key: str, legal: tuple[str, ...], default: str | None = None
    ) -> str:
        """One of the legal texts."""
        value = self.text(table, key, default)
        if value not in legal:
            raise self.fail(f"{key} cannot be '{shorten(value, 40)}'", f"one of {', '.join(legal)}")
        return value

    def array(self, table: Mapping[str, Any], key: str, default: list[Any] | None = None) -> list[Any]:
        """A list; empty if not given."""
        value = table.get(key, [] if default is None else default)
        if not isinstance(value, list):
            raise self.fail(f"{key} must be a list")
        return value

    def number(self, table: Mapping[str, Any], key: str) -> float | None:
        """A positive number; None if not given."""
        return self.positive(table[key], key) if key in table else None

    def numbers(self, table: Mapping[str, Any], key: str) -> tuple[float, ...]:
        """A list of positive numbers."""
        return tuple(self.positive(value, key) for value in self.array(table, key))

    def giga(self, table: Mapping[str, Any], key: str) -> float | None:
        """A number of 10^9, in ones; None if not given."""
        value = self.number(table, key)
        return None if value is None else value * 1e9

    def positive(self, value: object, key: str) -> float:
        """`value` if it is a positive, finite number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.fail(f"{key} must be a positive number, not {shorten(repr(value), 40)}")
        return float(value)

    def count(self, table: Mapping[str, Any], key: str, default: int | None = None) -> int:
        """A whole number of at least 1."""
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or (key in table and value < 1):
            raise self.fail(f"{key} must be a whole number of at least 1, not {shorten(repr(value), 40)}")
        return value

    def shape(self, value: object) -> tuple[int, ...]:
        """The lengths of the axes of a slice."""
        if not isinstance(value, list) or any(
            isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in value
        ):
            raise self.fail(f"a shape is a list of whole numbers, not {shorten(repr(value), 40)}")
        return tuple(value)
