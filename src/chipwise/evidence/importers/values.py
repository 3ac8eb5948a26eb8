"""Reading numbers and words out of files that somebody else wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from chipwise.errors import shorten


class RowRefusedError(ValueError):
    """An entry of a file that cannot be used; the message says why."""


def at(table: object, *path: str) -> Any:
    """The value at a path of keys, None where one of them is missing."""
    for key in path:
        if not isinstance(table, Mapping):
            return None
        table = table.get(key)
    return table


def number(value: object, scale: float = 1.0) -> float | None:
    """A finite number, not negative, times `scale`; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value) * scale
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def positive(value: object, what: str, scale: float = 1.0) -> float:
    """A number above zero. Raises `RowRefusedError`, naming `what`."""
    found = number(value, scale)
    if not found:
        raise RowRefusedError(f"{what} is {shorten(repr(value), 30)}, not a number above zero")
    return found


def whole(value: object) -> int | None:
    """A whole number of at least 1; None for anything else."""
    found = number(value)
    return int(found) if found and found == int(found) and found < 1e9 else None


def text(value: object, width: int = 200) -> str:
    """One printable line of at most `width` characters, "" for anything but text."""
    return shorten(value, width) if isinstance(value, str) else ""
