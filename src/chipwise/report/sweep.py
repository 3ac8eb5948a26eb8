"""What a sweep found: the cells that no other beats, what each axis does, where two of them meet, and what failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, ClassVar

from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.sensitivity import InputRecord
from chipwise.report.table import DASH, Column, Table
from chipwise.units import format_number
from chipwise.values import dataclass

SHOWN = 12


@dataclass(frozen=True, slots=True)
class SweepCell:
    """A cell by its number in the results: what it asked of what varies, and its figures by column."""

    cell: int
    asked: Mapping[str, Any]
    figures: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class SweepProblem:
    """Cells without an answer for one kind of reason, and the words of the first of them."""

    kind: str
    cells: int
    first: int
    message: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The median of a figure where the values of two axes meet (None: no cell has it)."""

    x: str
    y: str
    columns: tuple[str, ...]
    lines: tuple[str, ...]
    medians: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, repr=False)
class SweepReport(Answer[SweepCell]):
    """What `sweep` found. `front` are the cells that no other beats in all figures of `least` (the less the better) and
    `most`; `figure` is the one whose median `base`, `effects` (each axis alone, between the values at which it is least
    and greatest) and `map` are of, "" where no cell has one. `points` are some cells for the picture of the front."""

    rows: ClassVar[str] = "front"

    verb: str
    cells: int
    failed: int
    axes: Mapping[str, int]
    figure: str
    base: float | None
    least: tuple[str, ...]
    most: tuple[str, ...]
    front: tuple[SweepCell, ...]
    effects: tuple[InputRecord, ...]
    map: HeatMap | None
    points: tuple[SweepCell, ...]
    problems: tuple[SweepProblem, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """How many cells were answered, and the best of them."""
        varied = ", ".join(f"{n:,} {name}" for name, n in self.axes.items())
        failed = f"; {self.failed:,} have no answer" if self.failed else ""
        lines = [f"{self.cells:,} cells of {self.verb} ({varied or 'nothing varies'}){failed}."]
        if self.front:
            best = self.front[0]
            asked = ", ".join(f"{name} {value}" for name, value in best.asked.items())
            least = "Least" if self.figure in self.least else "Most"
            value = format_number(best.figures[self.figure] or 0.0)
            lines.append(f"{least} {short(self.figure)}: {value} at {asked or 'the only cell'}.")
        return tuple(lines)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The front, what each axis does, and what failed."""
        found = []
        shown = self.front if everything else self.front[:SHOWN]
        if shown:
            more = len(self.front) - len(shown)
            notes = [f"{more} more cells of the front are in the report"] if more else []
            names, figures = shown[0].asked, (*self.least, *self.most)
            better = ", ".join((*(f"less {short(n)}" for n in self.least), *(f"more {short(n)}" for n in self.most)))
            columns = (
                Column("cell", "cell", lambda n: f"{n:,}", right=True),
                *(Column(name, _asked(name), prose=True) for name in names),
                *(Column(short(n), _figure(n), format_number, right=True) for n in figures),
            )
            head = (*self.verdict(), f"Cells that no other beats: {better}")
            found.append(Table.of(shown, columns, head, notes))
        if self.effects:
            least = f"One axis at a time: the median of {short(self.figure)}, {format_number(self.base or 0.0)} of all"
            found.append(Table.of(self.effects, EFFECTS, (least,)))
        if self.problems:
            found.append(Table.of(self.problems, PROBLEMS, ("Cells without an answer",)))
        return tuple(found) or (Table((), (), self.verdict()),)


def short(path: str) -> str:
    """A path into an answer as a heading: without the row that it starts from and the middle that it ends in."""
    parts = path.removesuffix(".mid").split(".")
    return ".".join(parts[2:] if len(parts) > 2 and parts[1].isdigit() else parts)


def _asked(name: str) -> Callable[[SweepCell], Any]:
    return lambda cell: cell.asked.get(name)


def _figure(name: str) -> Callable[[SweepCell], Any]:
    return lambda cell: cell.figures[name]


def _cost(value: float | None) -> str:
    return DASH if value is None else format_number(value)


EFFECTS = (
    Column("axis", "name"),
    Column("least at", "lesser", prose=True),
    Column("median there", "at_lesser", _cost, right=True),
    Column("most at", "greater", prose=True),
    Column("median then", "at_greater", _cost, right=True),
)
"""What is said of an axis."""
PROBLEMS = (
    Column("error", "kind"),
    Column("cells", "cells", lambda n: f"{n:,}", right=True),
    Column("first", "first", lambda n: f"{n:,}", right=True),
    Column("its message", "message", prose=True),
)
"""What is said of a kind of problem."""
