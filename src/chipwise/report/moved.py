"""Moving: what one has beside what one could have, at the same load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields

from chipwise.catalog.chips import get_chip
from chipwise.report.plans import PlanRecord, PlanReport
from chipwise.report.table import DASH, Column, Table
from chipwise.units import format_number, format_seconds
from chipwise.values import dataclass

ALIKE = 0.03
"""ratio less 1 below which two figures are called the same. Chosen: less than any prediction tells apart."""
UNITS: Mapping[str, Callable[[float], str]] = {
    "s": format_seconds,
    "1/s": lambda per_s: f"{format_number(per_s)}/s",
    "W": lambda watts: f"{format_number(watts / 1e3)} kW",
    "ratio": lambda share: f"{share:.0%}",
    "": format_number,
}


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """A figure of what one has and of what one could have (None: not known), in its unit."""

    what: str
    unit: str
    have: float | None
    instead: float | None

    @property
    def ratio(self) -> float | None:
        """How many times as much; None where one of both is not known."""
        return self.instead / self.have if self.have and self.instead is not None else None

    def words(self, value: float | None) -> str:
        """One of both in its unit."""
        return DASH if value is None else UNITS[self.unit](value)


@dataclass(frozen=True, slots=True, repr=False)
class MovedReport(PlanReport):
    """The plans of other chips beside the plan of those that one has: `before` it (None: these do not carry the load,
    `stays` says why), `moved` figure by figure, and what the move `needs`."""

    before: PlanRecord | None = None
    stays: str = ""
    moved: tuple[MoveRecord, ...] = ()
    needs: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: PlanReport, before: PlanRecord | None, stays: str, there: tuple[int, int]) -> MovedReport:
        """The answer for other chips with the plan of those that one has, `there` being how many of both there are (0:
        as many as the plan takes); of them a plan takes what its load needs."""
        after = report.plans[0]
        return cls(
            **{f.name: getattr(report, f.name) for f in fields(report)},
            before=before,
            stays=stays,
            moved=() if before is None else tuple(_moved((before, after), there)),
            needs=() if before is None else tuple(_needs(before, after)),
        )

    def verdict(self) -> tuple[str, ...]:
        """What changes, before what the other chips do."""
        after = self.plans[0]
        if self.before is None:
            return (f"What you have does not do it: {self.stays}. What does:", *PlanReport.verdict(self))
        told = [
            f"{m.what} {m.words(m.have)} -> {m.words(m.instead)}"
            for m in self.moved
            if m.what in TOLD and m.ratio is not None
        ]
        mine = f"{self.before.machines} ({self.before.spread}, {self.before.precision})"
        changes = f"Replace your {mine} with {after.machines}: {', '.join(told)}."
        needs = (f"The move needs {', '.join(self.needs)}.",) if self.needs else ()
        return (changes, *needs, *PlanReport.verdict(self))

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The plans of the other chips, then figure by figure what moves."""
        first, *inside = PlanReport.tables(self, command, everything=everything)
        return (first, *([Table.of(self.moved, MOVES)] if self.moved else []), *inside)

    def titled(self) -> Mapping[str, Sequence[str]]:
        """Figure by figure what moves."""
        lines = [f"{m.what}: {m.words(m.have)} -> {m.words(m.instead)}" for m in self.moved]
        return {"What moves": lines} if lines else {}


TOLD = ("all of them sustain", "first token", "time per token", "power at the wall")
"""Figures of the sentence; the table has them all."""
MOVES = (
    Column("what moves", "what", short="what"),
    Column("you have", lambda m: m.words(m.have), right=True, short="have"),
    Column("instead", lambda m: m.words(m.instead), right=True, short="instead"),
    Column("change", lambda m: None if m.ratio is None else _change(m.ratio), right=True),
)


def _change(ratio: float) -> str:
    """A ratio in words: as before, or how many times as much."""
    return "as before" if abs(ratio - 1.0) < ALIKE else f"x {ratio:.3g}"


def _moved(plans: tuple[PlanRecord, PlanRecord], there: tuple[int, int]) -> Iterator[MoveRecord]:
    """The figures of two plans, with what all chips that are there carry within the targets."""
    asked: tuple[tuple[str, str, Callable[[PlanRecord], float | None]], ...] = (
        ("chips at this load", "", lambda p: float(p.chips)),
        ("first token", "s", lambda p: p.ttft_s.mid),
        ("time per token", "s", lambda p: None if p.tpot_s is None else p.tpot_s.mid),
        ("chance of the targets", "ratio", lambda p: p.chance),
        ("memory in use of a device", "ratio", lambda p: p.memory_range.mid / p.memory.capacity_bytes),
        ("power at the wall", "W", lambda p: p.energy.wall_w.mid if p.energy else None),
        ("hosts", "", lambda p: float(p.hosts)),
    )
    carried = (p.largest_requests_per_s * max(n // p.chips, 1) for p, n in zip(plans, there, strict=True))
    yield MoveRecord("all of them sustain", "1/s", *carried)
    for what, unit, of in asked:
        yield MoveRecord(what, unit, *(of(p) for p in plans))


def _needs(before: PlanRecord, after: PlanRecord) -> Iterator[str]:
    """What has to be done for it."""
    makers = [get_chip(p.chip).vendor for p in (before, after)]
    if makers[0] != makers[1]:
        yield f"your own kernels, if any, written anew: {makers[0]} -> {makers[1]}"
    if before.runtime != after.runtime:
        yield f"{before.runtime} -> {after.runtime}"
    if before.precision != after.precision:
        quality = f" ({after.keeps})" if after.converted else ""
        yield f"weights in {before.precision} -> {after.precision}{quality}"
    if before.layout.label != after.layout.label:
        yield f"the layout {before.layout.label} -> {after.layout.label}"
