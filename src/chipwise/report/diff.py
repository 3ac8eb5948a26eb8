"""What differs between two answers, plan by plan, and between tables of facts; what `replay` and `diff` answer."""

from __future__ import annotations

import csv
import io
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from chipwise.errors import shorten
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import DASH, Column, Table
from chipwise.units import format_number, format_seconds
from chipwise.values import dataclass

# names that tell the entries of a list apart
KEYS = ("chips", "chip", "count", "layout", "precision", "runtime", "phase", "id", "item")
HIDDEN = ("schema_version",)
TOLERANCE = 1e-9
"""Relative difference below which two figures are the same: versions of Python and NumPy add in another order."""
ROUNDING = 1e-15  # of a figure that is zero but for rounding
LINES = 40  # lines of a table
LEAST = 5e-4  # what a table shows
MOST = 12  # changes of one cause
TEXT = 60  # letters of a word that changed
# Ends of intervals, shares and the account of memory move with these; they are in the JSON.
LEADING = {
    "rank": "rank",
    "replicas": "replicas",
    "concurrency": "requests in flight",
    "price.low": "$/h, least",
    "price.mid": "$/h",
    "price.high": "$/h, most",
    "ttft_s.mid": "TTFT",
    "tpot_s.mid": "TPOT",
    "tokens_per_s_per_chip.mid": "tokens/s/chip",
    "usd_per_million_in.mid": "$/M in",
    "usd_per_million_out.mid": "$/M out",
    "bound": "bottleneck",
    "verdict": "fits",
    "latency_s.mid": "time",
    "samples_per_s.mid": "samples/s",
    "usd_per_1000.mid": "$/1,000",
    "step_s.mid": "step",
    "days.mid": "days",
    "usd.mid": "$",
    "mfu": "MFU",
    "plan": "plan",
    "error": "refused",
}
ASIDE = ("workload", "considered", "rejected")  # what was asked and how the answer was found, no part of it
WITHIN = f"{TOLERANCE:.0e}".replace("e-0", "e-")
SAME = f"identical (every figure within {WITHIN})"
NAMES = {"python": "Python", "numpy": "NumPy"}
WHOLE = "the answer"  # what a figure is of that belongs to no entry
NAMING = ("rank", "chip", "id", "name", "item.id")  # figures that an entry has as long as it is there


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
            value = "unsharded" if value == "whole" else value
        if value is not None and value != "" and not isinstance(value, list | tuple):
            words.append(f"{value}x" if key == "chips" else str(value))
    return " ".join(words if "id" in part else (*words, *_texts(part.get("name"))))


def _texts(name: Any) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) and name else ()


def table_changes(name: str, before: bytes | None, after: bytes | None) -> list[str]:
    """The entries of a TOML, CSV or JSON table that came, went or changed; of other files that they did."""
    if before is None or after is None:
        return ["is new" if before is None else "is gone"]
    try:
        old, new = dict(_entries(name, before.decode())), dict(_entries(name, after.decode()))
    except ValueError:
        return ["has changed"]
    lines = []
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            lines.append(f"{key}: gone")
        elif key not in old:
            lines.append(f"{key}: new")
        elif old[key] != new[key]:
            lines.append(f"{key}: {shorten(str(old[key]))} -> {shorten(str(new[key]))}")
    return lines[:LINES] + ([f"and {len(lines) - LINES} more"] if len(lines) > LINES else [])


def _entries(name: str, text: str) -> Iterator[tuple[str, Any]]:
    if name.endswith(".toml"):
        yield from _flat("", tomllib.loads(text))
    elif name.endswith(".json"):
        yield from _flat("", json.loads(text))
    elif name.endswith(".csv"):
        yield from _cells(text)
    else:
        raise ValueError(name)


def _flat(prefix: str, node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), value)
    else:
        yield prefix, node


def _cells(text: str) -> Iterator[tuple[str, Any]]:
    """The cells of a CSV by row and column. A row goes by its cells of words, as names and dates; among rows
    that share those it goes by its place."""
    seen: dict[str, int] = {}
    for row in csv.DictReader(io.StringIO(text)):
        named = [v for v in row.values() if isinstance(v, str) and v and not _numeric(v)][:4]
        key = " ".join(named)
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key} ({seen[key]})"
        for column, value in row.items():
            yield f"{key}, {column}", value


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, repr=False)
class ReplayReport(Answer[Change]):
    """A saved answer made again: `identical` if no figure differs by more than `tolerance` (relative), else what does.
    `saved_with` and `replayed_with` are the versions of Python and NumPy; files of earlier versions do not say. `day`
    and `catalogue` are "" of a record without its tables, which was asked again of those that are installed."""

    rows: ClassVar[str] = "changes"

    verb: str
    day: str
    catalogue: str
    saved_by: str
    replayed_by: str
    identical: bool
    changes: tuple[Change, ...]
    report: Any
    tolerance: float = TOLERANCE
    saved_with: dict[str, str] = field(default_factory=dict)
    replayed_with: dict[str, str] = field(default_factory=dict)
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """What differs."""
        asked = (
            f"{self.verb} of {self.day}, catalogue {self.catalogue}, saved by chipwise {self.saved_by}"
            if self.catalogue
            else f"{self.verb}, answered by chipwise {self.saved_by}, asked again of what is installed"
        )
        if self.identical:
            return (Table((), (), (asked, SAME)),)
        head: tuple[str, ...] = (
            asked,
            f"made again by chipwise {self.replayed_by}: {_differ(len(self.changes))} by more than {WITHIN}",
        )
        if cause := likely_cause(self):
            head = (*head, cause)
        return (_table(self.changes, head),)


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is not as it was: the facts that changed, and what they did to the answer; `first` is how its
    first plan compares with the one before, where that is another plan."""

    cause: str
    facts: tuple[str, ...]
    changes: tuple[Change, ...]
    first: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class DiffReport(Answer[Change]):
    """Two saved answers: what changed, cause by cause and in total."""

    rows: ClassVar[str] = "changes"

    before: str
    after: str
    causes: tuple[Cause, ...]
    changes: tuple[Change, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """What differs."""
        if not self.changes and not self.causes:
            return (Table((), (), (f"{self.before} and {self.after}: {SAME}",)),)
        tables = []
        for cause in self.causes:
            facts = cause.facts[:MOST]
            rest = len(cause.facts) - len(facts)
            head = (cause.cause, *(f"  {fact}" for fact in facts), *((f"  and {rest} more",) if rest else ()))
            if not cause.changes:
                head = (*head, "  moves no figure of the answer")
            tables.append(_table(cause.changes, head, cause.first))
        return tuple(tables)


def likely_cause(report: ReplayReport) -> str:
    """Which versions differ between saving and making again, as a sentence; "" where none is known to."""
    pairs = [(NAMES.get(n, n), report.saved_with.get(n), new) for n, new in report.replayed_with.items()]
    others = [f"{name} {shorten(old, 20)} -> {new}" for name, old, new in pairs if old and old != new]
    return f"likely cause: {', '.join(others)}" if others else ""


def _differ(count: int) -> str:
    return f"{count:,} figures differ" if count != 1 else "1 figure differs"


def _table(changes: Sequence[Change], head: tuple[str, ...], ahead: Sequence[Change] = ()) -> Table:
    """The largest changes of leading figures, those of the first plan (`ahead`) above them."""
    came, went = _whole(changes, "before"), _whole(changes, "after")
    ends = tuple(f"{n} " for n in (*came, *went))
    known = [c for c in changes if not f"{c.entry} ".startswith(ends)]
    shown = _leading([c for c in known if c.size > LEAST])
    first = sorted(shown, key=lambda c: -c.size)[:MOST]
    above = [c for c in ahead if c.figure in LEADING and c.figure != "rank"]
    rows = [*above, *(c for c in shown if c in first)]
    lists = [*_lists("new", came), *_lists("gone", went)]
    more = len(known) - len(rows) + len(above)
    if more:
        lists.append(f"and {more} more figure{'s' if more > 1 else ''} (--format json)")
    return Table.of(rows, CHANGES if rows else (), (*head, ""), lists)


def _lists(word: str, names: Sequence[str]) -> list[str]:
    return [f"{word}: {_listed(names)}"] if names else []


def _leading(moved: Sequence[Change]) -> list[Change]:
    """Changes of leading figures; of an answer without any, of its own."""
    leading = [c for c in moved if c.figure in LEADING]
    return leading or [c for c in moved if c.factor is not None and not _aside(c)]


CHANGES = (
    Column("of", lambda c: c.entry or WHOLE, prose=True),
    Column("figure", lambda c: LEADING.get(c.figure, c.figure)),
    Column("before", lambda c: _text(c.figure, c.before), right=True),
    Column("after", lambda c: _text(c.figure, c.after), right=True),
    Column("change", lambda c: _moved(c), right=True),
)
"""What is said of a figure that changed."""


def _aside(change: Change) -> bool:
    return not change.entry and change.figure.partition(".")[0] in ASIDE


def _whole(changes: Sequence[Change], end: str) -> list[str]:
    """Entries of which nothing was there at one end."""
    named = dict.fromkeys(c.entry for c in changes if c.entry and c.figure in NAMING)
    whole = [n for n in named if all(getattr(c, end) is None for c in changes if c.entry == n)]
    return [n for n in whole if not any(n.startswith(f"{other} ") for other in whole)]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST
    return ", ".join(names[:MOST]) + (f" and {more} more" if more > 0 else "")


def _text(figure: str, value: Any) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shorten(str(value), TEXT)
    if figure == "mfu":
        return f"{value:.1%}"
    return format_seconds(value) if "_s." in figure and "per_s" not in figure else format_number(value, 4)


def _moved(change: Change) -> str:
    factor = None if change.figure == "rank" else change.factor
    if factor is None:
        return "new" if change.before is None else "gone" if change.after is None else ""
    return f"{(factor - 1) * 100:+.1f} %"
