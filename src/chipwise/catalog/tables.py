"""What the readers of catalogue files share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.catalog.chip import Source
from chipwise.errors import UsageError, nearest, shorten

__all__ = ["known_keys", "read_sources"]


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
