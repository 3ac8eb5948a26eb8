"""Statements as people see them: what is said, the verdict, why, the figures and what shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import ClassVar

from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_number, format_seconds
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class FigureOf:
    """A figure that was worked out for a statement: `value` in `unit` (SI; "x" is a ratio, "%" a share of 1), and as it
    is quoted."""

    what: str
    value: float | str
    unit: str
    shown: str

    @property
    def with_unit(self) -> str:
        """The figure with its unit, also where a sentence has that in words."""
        unit = {"x": "x", "tokens/s": " tokens/s", "year": ""}.get(self.unit, "")
        return self.shown if not unit or self.shown.endswith(unit) else f"{self.shown}{unit}"


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """A statement with its verdict. `stands` says whether today's figures bear the verdict out (None: it was not worked
    out); `commands` show the figures, `basis` says where these come from."""

    name: str
    text: str
    verdict: str
    confidence: str
    because: str
    stands: bool | None
    figures: tuple[FigureOf, ...]
    basis: tuple[str, ...]
    commands: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The verdict and why, to be quoted alone."""
        told = ":" if self.because[:1].islower() else "."
        return f"{self.verdict[0].upper()}{self.verdict[1:]}{told} {self.because}".strip()


@dataclass(frozen=True, slots=True, repr=False)
class StatementsReport(Answer[StatementRecord]):
    """The statements that a text makes, worked out; without a text all of them, not worked out. `nearest` are those
    that an unknown text is near to, `commands` what would answer it; `note` says what kind of answer this is."""

    rows: ClassVar[str] = "statements"

    asked: str
    statements: tuple[StatementRecord, ...]
    nearest: tuple[str, ...]
    note: str
    commands: tuple[str, ...] = ()
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per statement, or the figures of one."""
        if self.asked and not self.statements:
            would = tuple(f"would answer it: {command}" for command in self.commands)
            near = tuple(f'near to it: "{text}"' for text in self.nearest)
            return (Table.of((), STATEMENTS, (), (self.note, *would, *near)),)
        if not self.asked:
            return (Table.of(self.statements, STATEMENTS, (), (self.note,)),)
        return tuple(_worked_out(s, self.note if s is self.statements[-1] else "") for s in self.statements)


READ = "read"
"""The name of a statement that is in no table: it was read by its figures."""
STATEMENTS = (
    Column("statement", "text", prose=True),
    Column("verdict", "verdict"),
    Column("confidence", "confidence", spare=1),
)
"""What is said of a statement in a list."""

FIGURES = (Column("figure", "what", prose=True), Column("value", "with_unit", right=True))
"""A figure behind a verdict."""


def _worked_out(s: StatementRecord, note: str) -> Table:
    head = (s.sentence, "", f'statement: "{s.text}"; confidence {s.confidence}', "")
    compared = len({f.unit for f in s.figures}) == 1 and s.figures[0].unit == "x" and s.name == READ
    foot = (
        "x: figure of the first chip over that of the second" if compared else "",
        *(f"basis: {b}" for b in s.basis),
        *(f"source: {source}" for source in s.sources),
        *(f"shown by: {command}" for command in s.commands),
        note,
    )
    return Table.of(s.figures, FIGURES, head, tuple(line for line in foot if line))


def _scaled(value: float) -> tuple[float, str]:
    """A number in the largest of the decimal units from a million on that it reaches, and the prefix of it."""
    scales = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
    scale, prefix = next(((s, p) for s, p in scales if value >= s), (1.0, ""))
    return value / scale, prefix


def _rate(value: float, unit: str) -> str:
    number, prefix = _scaled(value)
    return f"{format_number(number, 4)} {prefix}{unit}"


def _dollars(value: float) -> str:
    if abs(value) >= 1e6:
        return f"${value / 1e6:,.1f} M"
    return f"${value:,.0f}" if abs(value) >= 1e3 else f"${value:.2f}"


QUOTED: Mapping[str, Callable[[float], str]] = {
    "s": format_seconds,
    "B": format_bytes,
    "B/s": lambda v: f"{format_bytes(v)}/s",
    "%": lambda v: f"{v:.0%}" if v >= 0.1 else f"{100 * v:.2g} %",
    "x": lambda v: f"{v:,.0f}" if v >= 100.0 else f"{v:.1f}" if v >= 10.0 else f"{v:.2f}",
    "W": lambda v: f"{v:,.0f} W",
    "year": lambda v: f"{v:.0f}",
    "$": _dollars,
    "FLOP/s": partial(_rate, unit="FLOPS"),
    "Hz": partial(_rate, unit="Hz"),
    "count": lambda v: f"{v / 1e9:.3g} B",
}
"""How a sentence quotes a figure, by its unit."""


def shown(value: float | str, unit: str) -> str:
    """A figure as a sentence quotes it."""
    if isinstance(value, str):
        return value
    if unit in QUOTED:
        return QUOTED[unit](value)
    return f"{value:,.0f}" if value >= 1e3 else format_number(value, 4)
