"""The strict reading of catalogue files: known keys alone, values of the right kind, sources that are listed.

A table that is a record is read by the record's own fields (`record`); one that needs more is read value by value
(`Values`). Every message opens with where the value stands, names what was wrong, and the nearest valid name.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from chipwise.catalog.chip import Grade, Provenance, Source
from chipwise.errors import UsageError, nearest, shorten

T = TypeVar("T")
LARGEST = 1e15
PROVENANCE = ("sources", "grade", "note")
"""Keys that say where the figures of a table are from."""


def known_keys(table: object, keys: Iterable[str], where: str, required: Collection[str] = ()) -> Mapping[str, Any]:
    """`table` if it is one, has no keys but these and the required ones, and has those; an unknown key is an error that
    names the nearest.

    Raises `UsageError`, opening with `where`.
    """
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, found {shorten(repr(table), 40)}")
    allowed = (*required, *keys)
    for key in table:
        if key not in allowed:
            raise UsageError(
                f"{where}: unknown key '{shorten(key, 40)}'", _near(key, allowed, "known: ") or "none is known"
            )
    for key in required:
        if key not in table:
            raise UsageError(f"{where}: key '{key}' is missing")
    return table


def _near(name: str, known: Iterable[str], listed: str) -> str:
    known = tuple(known)
    close = nearest(name, known)
    return f"did you mean {', '.join(close)}?" if close else f"{listed}{', '.join(known)}" if known else ""


def read_text(where: str, value: object, choices: Collection[str] | None = None) -> str:
    """A text, with `choices` one of these. Raises `UsageError`."""
    if not isinstance(value, str):
        raise UsageError(f"{where}: expected text, found {shorten(repr(value), 40)}")
    if choices is not None and value not in choices:
        raise UsageError(f"{where}: unknown value '{shorten(value, 40)}'", _near(value, choices, "one of "))
    return value


def read_texts(where: str, value: object, choices: Collection[str] | None = None) -> list[str]:
    """A list of texts. Raises `UsageError`."""
    if not isinstance(value, list):
        raise UsageError(f"{where}: expected a list, found {shorten(repr(value), 40)}")
    return [read_text(where, item, choices) for item in value]


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


def record(kind: type[T], table: object, where: str, **given: Any) -> T:
    """A dataclass whose fields, but those `given`, are the keys of a table; those without a default have to be there.

    | annotation | of TOML |
    |---|---|
    | str, bool, int, float | the same; a whole number will do for a float |
    | Literal | one of the texts or numbers |
    | tuple[X, ...], Sequence[X], frozenset[X]; tuple[X, Y] | a list; a list of that length |
    | Mapping[str, X] | a table |
    | a dataclass; X or Y | a table that is such a record; the first that fits |

    Raises `UsageError`, opening with `where`.
    """
    hints = _hints(cast(Any, kind))
    read = {f.name: f for f in fields(cast(Any, kind)) if f.name not in given}
    required = [n for n, f in read.items() if f.default is MISSING and f.default_factory is MISSING]
    entry = known_keys(table, [n for n in read if n not in required], where, required)
    return kind(**given, **{n: _as(hints[n], value, f"{where}.{n}") for n, value in entry.items()})


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _one_of(words: Sequence[Any], value: Any, where: str) -> Any:
    """One of the words of an annotation."""
    if value not in words or isinstance(value, bool) is not isinstance(words[0], bool):
        said = shorten(str(value), 40)
        raise UsageError(f"{where}: unknown value '{said}'", _near(said, map(str, words), "one of "))
    return value


def _several(origin: Any, inner: Sequence[Any], value: Any, where: str) -> Any:
    """A list of TOML as a tuple or a set."""
    if not isinstance(value, list):
        raise UsageError(f"{where}: expected a list, found {shorten(repr(value), 40)}")
    if origin is tuple and inner[-1] is not ...:
        if len(value) != len(inner):
            raise UsageError(f"{where}: expected {len(inner)} values, found {len(value)}")
        return tuple(_as(a, v, where) for a, v in zip(inner, value, strict=True))
    items = [_as(inner[0], item, where) for item in value]
    return frozenset(items) if origin is frozenset else tuple(items)


def _as(kind: Any, value: Any, where: str) -> Any:
    """A value of TOML as an annotation asks for it."""
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        *others, last = [a for a in inner if a is not type(None)]
        for other in others:
            with suppress(UsageError):
                return _as(other, value, where)
        return _as(last, value, where)
    if origin is Literal:
        return _one_of(inner, value, where)
    if origin in (tuple, frozenset, Sequence):
        return _several(origin, inner, value, where)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise UsageError(f"{where}: expected a table, found {shorten(repr(value), 40)}")
        return {name: _as(inner[1], item, f"{where}.{name}") for name, item in value.items()}
    if is_dataclass(kind):
        return record(cast(type, kind), value, where)
    named = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
    able = (int, float) if kind is float else kind
    if not isinstance(value, able) or isinstance(value, bool) is not (kind is bool):
        raise UsageError(f"{where}: expected {named[kind]}, found {shorten(repr(value), 40)}")
    return kind(value)


def read_flag(where: str, value: object) -> bool:
    """True or false. Raises `UsageError`."""
    return bool(_as(bool, value, where))


class Values:
    """Reads values out of tables; `where` opens every message."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str, hint: str = "") -> UsageError:
        """An error that says where."""
        return UsageError(f"{self.where}: {what}", hint)

    def text(self, table: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """A text; without a default one that is not empty."""
        value = table.get(key, default)
        if value is None:
            raise self.fail(f"no {key}")
        if not isinstance(value, str) or (default is None and not value):
            raise self.fail(f"{key} must be a text, not {shorten(repr(value), 40)}")
        return value

    def choice(self, table: Mapping[str, Any], key: str, legal: tuple[str, ...], default: str | None = None) -> str:
        """One of the legal texts."""
        value = self.text(table, key, default)
        if value not in legal:
            raise self.fail(f"{key} must be one of {', '.join(legal)}, not '{shorten(value, 40)}'", ", ".join(legal))
        return value

    def flag(self, table: Mapping[str, Any], key: str) -> bool:
        """True or false; false if not given."""
        value = table.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(f"{key} must be true or false, not {shorten(repr(value), 40)}")
        return value

    def array(self, table: Mapping[str, Any], key: str, default: list[Any] | None = None) -> list[Any]:
        """A list; empty if not given."""
        value = table.get(key, [] if default is None else default)
        if not isinstance(value, list):
            raise self.fail(f"{key} must be a list")
        return value

    def texts(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        """A list of texts; empty if not given."""
        value = self.array(table, key)
        if not all(isinstance(item, str) and item for item in value):
            raise self.fail(f"{key} must be a list of texts, not {shorten(repr(value), 40)}")
        return tuple(value)

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
        """`value` if it is a positive number, not out of all reason."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST:
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
        if not isinstance(value, list) or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in value):
            raise self.fail(f"a shape is a list of whole numbers, not {shorten(repr(value), 40)}")
        return tuple(value)

    def provenance(
        self, table: Mapping[str, Any], sources: Mapping[str, Source], default: Provenance | None = None
    ) -> Provenance:
        """Where a table's figures are from: `PROVENANCE`, what it leaves out being as the default; a note is not handed
        down to other sources. Without a default a grade and sources have to be there."""
        if default is not None and not any(key in table for key in PROVENANCE):
            return default
        grade = self.choice(table, "grade", get_args(Grade), default.grade if default else None)
        names = self.texts(table, "sources")
        if not names and default is None:
            raise self.fail("no sources", "list keys of [sources]")
        for name in names:
            if name not in sources:
                hint = _near(name, sources, "known: ")
                raise self.fail(f"source '{shorten(name, 40)}' is not in [sources]", hint)
        listed = tuple(sources[name] for name in names) or (default.sources if default else ())
        return Provenance(listed, cast(Grade, grade), self.text(table, "note", ""))

    def own(
        self,
        table: Mapping[str, Any],
        figures: Mapping[str, object],
        sources: Mapping[str, Source],
        default: Provenance,
    ) -> dict[str, Provenance]:
        """The figures that `own = [{ figures = [...], ... }]` gives a provenance of their own."""
        inner = Values(f"{self.where}, own")
        found: dict[str, Provenance] = {}
        for entry in self.array(table, "own"):
            given = known_keys(entry, ("figures", *PROVENANCE), inner.where)
            for figure in inner.texts(given, "figures"):
                if figure in found:
                    raise self.fail(f"own lists '{figure}' twice")
                if figure not in figures:
                    raise self.fail(
                        f"own lists '{shorten(figure, 40)}', which the table does not have", _near(figure, figures, "")
                    )
                found[figure] = inner.provenance(given, sources, default)
        return found
