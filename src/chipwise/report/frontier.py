"""Throughput of a chip against the speed that one user sees: a curve for each chip, and what was measured."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from chipwise.report import figures
from chipwise.report.answer import Answer
from chipwise.report.plans import PlanRecord
from chipwise.report.records import SCHEMA_VERSION, Figure, ModelRecord, Quantified, RefusalRecord, WorkloadRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_number
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class FrontierPoint(Quantified):
    """A layout of one replica at a load, which no other on the same chip beats in both figures."""

    chip: str
    chips: int
    layout: str
    precision: str
    runtime: str
    concurrency: float
    tokens_per_s_per_user: Figure
    tokens_per_s_per_chip: Figure
    ttft_s: Figure
    usd_per_million_out: Figure | None
    joules_per_token: Figure | None
    bound: str

    @classmethod
    def of(cls, plan: PlanRecord) -> FrontierPoint:
        """What a plan of one replica says of itself."""
        assert plan.tokens_per_s_per_user is not None
        return cls(
            plan.chip,
            plan.chips,
            plan.spread,
            plan.precision,
            plan.runtime,
            plan.concurrency,
            plan.tokens_per_s_per_user,
            plan.tokens_per_s_per_chip,
            plan.ttft_s,
            plan.usd_per_million_out,
            None if plan.energy is None else plan.energy.joules_per_token,
            plan.bound,
        )


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A measurement of the same model, or of a near one (`same` False). `least`: the speed that a user sees is the one
    that 99 % of requests had at least, as benchmarks bound it, not a mean. `ratio` is its throughput over what is
    predicted for its own lengths, formats and software (None: nothing is)."""

    result: str
    chip: str
    chips: int
    tokens_per_s_per_user: float
    tokens_per_s_per_chip: float
    model: str
    precision: str
    source: str
    same: bool
    least: bool
    ratio: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class FrontierReport(Answer[FrontierPoint]):
    """The answer to `frontier`: points of each chip from the fastest for one user to the most tokens per chip.
    `speeds` are the tokens/s of a user at which plans that were asked about stand, by chip."""

    rows: ClassVar[str] = "points"

    model: ModelRecord
    workload: WorkloadRecord
    points: tuple[FrontierPoint, ...]
    measured: tuple[MeasuredPoint, ...]
    refused: tuple[RefusalRecord, ...]
    assumptions: tuple[str, ...]
    speeds: dict[str, float] = field(default_factory=dict)
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """Which chip gives one user the most, and which the most per chip."""
        return (_ends(self),)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The curves, and what was measured."""
        w = self.workload
        head = (
            self.model.line,
            f"Throughput per chip against speed per user, {w.prompt_tokens:,.0f} tokens in, {w.output_tokens:,.0f} out",
        )
        foot = [f"{r.chip}: {r.reason}, {r.detail}" for r in self.refused]
        found = Table.of(self.points, POINTS, head, foot)
        return (found, Table.of(self.measured, MEASURED)) if self.measured else (found,)


POINTS = (
    Column("plan", lambda p: f"{p.chips}x {p.chip}"),
    Column("layout", "layout"),
    Column("in flight", "concurrency", format_number, right=True),
    Column("tok/s/user", "tokens_per_s_per_user", figures.number, right=True),
    Column("tok/s/chip", "tokens_per_s_per_chip", figures.number, right=True),
    Column("$/M out", "usd_per_million_out", figures.number, right=True, spare=1),
    Column("bottleneck", "bound", spare=2),
    Column("basis", "tokens_per_s_per_chip.basis", spare=3),
)
"""What is said of a point of a curve."""

MEASURED = (
    Column("measured on", lambda m: f"{m.chips}x {m.chip}"),
    Column("model", "model", prose=True),
    Column("tok/s/user", lambda m: f"{'>= ' if m.least else ''}{format_number(m.tokens_per_s_per_user)}", right=True),
    Column("tok/s/chip", "tokens_per_s_per_chip", format_number, right=True),
    Column("of predicted", "ratio", lambda r: f"{r:.0%}", right=True, spare=1),
    Column("precision", "precision", spare=1),
    Column("source", "source", prose=True),
)
"""What is said of a measurement beside the curves."""


def _ends(report: FrontierReport) -> str:
    fast = max(report.points, key=lambda p: p.tokens_per_s_per_user.mid)
    full = max(report.points, key=lambda p: p.tokens_per_s_per_chip.mid)

    def words(p: FrontierPoint) -> str:
        user, chip = p.tokens_per_s_per_user, p.tokens_per_s_per_chip
        each = f"{format_number(chip.mid)} tokens/s per chip at {format_number(user.mid)} for each user"
        return f"{p.chips}x {p.chip} ({p.layout}), {each}"

    return f"{report.model.name}: fastest for one user on {words(fast)}; most per chip on {words(full)}."
