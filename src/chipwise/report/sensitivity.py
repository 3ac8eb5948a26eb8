"""What each input does to the cost of a plan, as a record and a table."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from chipwise.report.answer import Answer
from chipwise.report.plans import PlanRecord
from chipwise.report.records import SCHEMA_VERSION, ModelRecord, WorkloadRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_number
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class InputRecord:
    """One input changed alone: the cost with the lesser value and with the greater one, and which these are (None:
    there is no such value, or nothing runs with it)."""

    name: str
    lesser: str
    greater: str
    at_lesser: float | None
    at_greater: float | None

    def swing(self, base: float) -> float:
        """The largest change of the cost, as a ratio of at least 1."""
        found = [x / base for x in (self.at_lesser, self.at_greater) if x]
        return max((max(x, 1.0 / x) for x in found), default=1.0)


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityReport(Answer[InputRecord]):
    """The answer to `sensitivity`, the input that changes the most first. `base` is the cost of the plan at its load in
    `unit`: dollars per thousand requests, or chip-hours of them where no price is known."""

    rows: ClassVar[str] = "inputs"

    model: ModelRecord
    workload: WorkloadRecord
    plan: PlanRecord
    unit: str
    base: float
    inputs: tuple[InputRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per input."""
        p = self.plan
        cost = f"{format_number(self.base)} {self.unit} at {p.concurrency:,.0f} requests in flight"
        return (Table.of(self.inputs, INPUTS, (self.model.line, f"{p.chips}x {p.chip}: {cost}")),)


def _cost(value: float | None) -> str | None:
    return None if value is None else format_number(value)


INPUTS = (
    Column("input", "name", prose=True),
    Column("lesser", lambda i: i.lesser or None),
    Column("cost there", lambda i: _cost(i.at_lesser), right=True),
    Column("greater", lambda i: i.greater or None),
    Column("cost then", lambda i: _cost(i.at_greater), right=True),
)
"""What is said of an input."""
