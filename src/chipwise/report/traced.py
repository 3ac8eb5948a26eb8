"""What a network of the user's own computes: its operators, before any chip."""

from __future__ import annotations

from dataclasses import field

from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_count, format_number
from chipwise.values import dataclass
from chipwise.workload.program import Program


@dataclass(frozen=True, slots=True)
class TracedOperator:
    """Equal operators of a stage, added up over their repeats.

    `kind` is gemm, conv, attention, pointwise, lookup or scan. `bytes` count each operand once; `launches` are kernels
    without a compiler that fuses.
    """

    stage: str
    name: str
    kind: str
    dtype: str
    repeats: float
    flops: float
    bytes: float
    launches: float
    dims: dict[str, float]


@dataclass(frozen=True, slots=True)
class TracedStage:
    """A part that is called as a whole, with its weights and the most bytes of activations alive at a time."""

    name: str
    calls: float
    parameters: int
    weight_bytes: float
    activation_bytes: float
    flops: float


@dataclass(frozen=True, slots=True, repr=False)
class TraceReport(Answer[None]):
    """The answer to `trace`: what one request computes, reads and holds."""

    name: str
    batch: int
    trained: bool
    parameters: int
    weight_bytes: float
    flops: float
    stages: tuple[TracedStage, ...]
    operators: tuple[TracedOperator, ...]
    settings: dict[str, float]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """What was traced."""
        alive = max((s.activation_bytes for s in self.stages), default=0.0)
        weights = f"{format_bytes(self.weight_bytes)} of weights"
        size = f"{self.name}   {format_count(self.parameters)} parameters   {weights}"
        what = "one training step" if self.trained else "one call"
        work = f"{what} for a batch of {self.batch}: {format_number(self.flops / 1e9)} GFLOP"
        if alive:
            work += f", {format_bytes(alive)} of activations at the peak"
        foot = tuple(f"- {line}" for line in self.assumptions)
        rows = sorted(self.operators, key=lambda o: (-o.flops, -o.bytes))
        return (Table.of(rows, TRACED, (size, *((work,) if self.operators else ()), ""), foot),)


def trace_report(p: Program) -> TraceReport:
    """A pipeline as an answer."""
    return TraceReport(
        name=p.name,
        batch=p.batch,
        trained=p.trained,
        parameters=p.parameters,
        weight_bytes=p.weight_bytes,
        flops=p.flops,
        stages=tuple(
            TracedStage(s.name, s.calls, s.parameters, s.weight_bytes, s.activation_bytes, s.flops) for s in p.stages
        ),
        operators=tuple(
            TracedOperator(
                stage.name, op.name, op.kind, op.compute, n, n * float(op.flops), n * float(op.bytes), n * op.launches,
                {name: float(value) for name, value in op.dims.items()},
            )
            for stage in p.stages
            for n, op in stage.ops
        ),
        settings=dict(p.settings),
        assumptions=p.assumptions,
    )  # fmt: skip


def _shape(o: TracedOperator) -> str:
    d = o.dims
    if "m" in d:
        batch = f"{d['batch']:g} x " if d["batch"] != 1 else ""
        return batch + " x ".join(f"{d[n]:g}" for n in "mnk")
    if o.kind == "attention":
        return f"{d['q']:g} to {d['kv']:g}, {d['heads']:g} heads of {d['head_dim']:g}"
    return ""


TRACED = (
    Column("stage", "stage", spare=3),
    Column("operator", "name", prose=True),
    Column("kind", "kind"),
    Column("dtype", "dtype", spare=2),
    Column("times", "repeats", "{:g}".format, right=True),
    Column("size", _shape, spare=1),
    Column("GFLOP", lambda o: o.flops / 1e9 or None, format_number, right=True),
    Column("bytes", "bytes", format_bytes, right=True),
    Column("launches", "launches", format_number, right=True, spare=4),
)
"""What is said of an operator of a network."""
