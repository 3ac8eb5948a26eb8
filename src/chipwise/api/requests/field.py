"""A field of a request, and how its text becomes values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field
from typing import Any, ClassVar

from chipwise.errors import UsageError, shorten
from chipwise.units import parse_quantity

__all__ = ["MISSING", "Asked", "ask", "count_of", "pairs", "quantity", "share", "split", "whole"]


class Asked:
    """Base of what is asked. Doors read numbers for text (`"rate": 10`) and refuse unknown names."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "coerce_numbers_to_str": True}

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """What fields that were left out mean where it depends on those that were given, by public name."""
        return {}


def ask(help_: str, default: Any = None, *, name: str | None = None, file: bool = False) -> Any:
    """A field with its help; `name` replaces its Python name, `file` marks names that may be files.

    A default of `MISSING` makes the field required.

    Command line and schemas both read the help from the field's metadata, each under its own key. Doors that
    serve others let no file through.
    """
    metadata = {"help": help_, "description": help_, "file": file}
    return field(default=default, metadata=metadata | ({"alias": name} if name else {}))


def split(text: str | None) -> tuple[str, ...]:
    """A comma-separated list; blanks between commas are left out, a list of blanks is an error."""
    if text is None:
        return ()
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise UsageError(f"'{shorten(text)}' names nothing", "separate names by commas")
    return parts


def pairs(text: str | None, option: str) -> dict[str, str]:
    """`a=1,b=2` as a dictionary. Raises `UsageError` for a part without an equals sign."""
    found: dict[str, str] = {}
    for part in split(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(
                f"{option}: cannot read '{shorten(part)}'", "write NAME=VALUE, separated by commas"
            )
        found[name.strip()] = value.strip()
    return found


def quantity(text: str | None, unit: str, option: str, *, low: float, high: float) -> float | None:
    """A quantity in `unit`, None where none was given. Raises `UsageError` out of [low, high]."""
    return None if text is None else parse_quantity(text, unit, option, low=low, high=high)


def share(text: str | None, option: str) -> float | None:
    """A part of a whole, as in `0.3` or `30%`, None where none was given. Raises `UsageError` out of [0, 1]."""
    if text is None:
        return None
    number = text.strip()
    scale = 0.01 if number.endswith("%") else 1.0
    return scale * parse_quantity(number.removesuffix("%"), "", option, low=0.0, high=1.0 / scale)


def count_of(value: int | None, option: str, what: str, high: int = 1_000_000) -> int | None:
    """A count from 1 to `high`, None where none was given. Raises `UsageError` out of that."""
    if value is not None and not 1 <= value <= high:
        raise UsageError(f"{option} {value}: not a count of {what}", "at least 1")
    return value


def whole(text: str, option: str, *, low: float, high: float) -> int:
    """A count, as in `4k`. Raises `UsageError` out of [low, high] and for parts of one."""
    number = parse_quantity(text, "", option, low=low, high=high)
    if number % 1:
        raise UsageError(
            f"{option}: {shorten(text)} is no whole number", f"as in {max(int(number), int(low)) or 1}"
        )
    return int(number)
