"""The inside of a plan: a pass taken apart into its operators, and a deployment under rising load."""

from __future__ import annotations

from dataclasses import field, fields
from typing import ClassVar

from chipwise.report import figures
from chipwise.report.answer import Answer
from chipwise.report.plans import PlanRecord
from chipwise.report.records import SCHEMA_VERSION, Figure, ModelRecord, Quantified, TailRecord, WorkloadRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_number, format_seconds
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """One kind of work in a pass of one device, repeats added up.

    `phase`: decode is a pass in which every sequence gets a token, prefill a pass that computes one chunk of a
    prompt and nothing else; riding with a decode pass the chunk takes less, as weights are read once for both.
    `kind` "exchange" and "host" have no FLOPs; their `bytes` are 0 and so is `intensity`. `seconds` are the sum
    of `exposed_s`; `share` is of the phase. `peak_flops_per_s` is that of the type it multiplies in, 0 where it
    uses no matrix unit.
    """

    phase: str
    name: str
    kind: str
    repeats: float
    dtype: str
    flops: float
    bytes: float
    intensity: float
    flops_per_s: float
    peak_flops_per_s: float
    seconds: float
    share: float
    bound: str
    exposed_s: dict[str, float]


@dataclass(frozen=True, slots=True, repr=False)
class OperatorsReport(Answer[OperatorRecord]):
    """The answer to `operators`: both phases of a plan, and the roofline of its device.

    `peaks_flops_per_s` are dense, by data type, as far as an operator uses them. `decode_s` and `prefill_s` are
    the sums over operators.
    """

    rows: ClassVar[str] = "operators"

    model: ModelRecord
    workload: WorkloadRecord
    plan: PlanRecord
    device: str
    decode_sequences: float
    chunk_tokens: float
    context_tokens: float
    decode_s: float
    prefill_s: float
    memory_bytes_per_s: float
    peaks_flops_per_s: dict[str, float]
    operators: tuple[OperatorRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per operator."""
        p = self.plan
        head = (
            self.model.line,
            f"one device of {p.chips}x {p.chip}, {p.layout.label}: {self.decode_sequences:.3g} sequences decode with "
            f"{self.context_tokens:,.0f} tokens each; a chunk is {self.chunk_tokens:,.0f} tokens of a prompt",
            "",
        )
        foot = (
            f"a decode pass takes {format_seconds(self.decode_s)}, a chunk by itself {format_seconds(self.prefill_s)}",
            "batched with decoding a chunk takes less: weights are read once for both",
            "exchanges and the host have no FLOPs",
        )
        return (Table.of(self.operators, OPERATORS, head, foot),)


@dataclass(frozen=True, slots=True)
class LoadPoint(Quantified):
    """A deployment at a number of requests in flight. Times are means; `tails` by quantile ("p95")."""

    concurrency: float
    batch: float
    requests_per_s: float
    ttft_s: Figure
    tpot_s: Figure | None
    tokens_per_s: Figure
    tokens_per_s_per_user: float | None
    usd_per_million_out: Figure | None
    bound: str
    tails: dict[str, TailRecord]

    @classmethod
    def of(cls, plan: PlanRecord) -> LoadPoint:
        """What a plan says of itself at the load that it was asked at."""
        said = {f.name: getattr(plan, f.name) for f in fields(cls)}
        return cls(**said | {"tokens_per_s_per_user": None if plan.tpot_s is None else 1.0 / plan.tpot_s.mid})


@dataclass(frozen=True, slots=True, repr=False)
class LoadReport(Answer[LoadPoint]):
    """The answer to `load`: one replica from a lone request to as many as fit; `limit` says what ends it.

    `within` is the largest load of `points` whose means meet the targets, None where none does or none is given.
    """

    rows: ClassVar[str] = "points"

    model: ModelRecord
    workload: WorkloadRecord
    plan: PlanRecord
    points: tuple[LoadPoint, ...]
    limit: str
    ttft_s: float | None
    tpot_s: float | None
    within: float | None
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per load."""
        p = self.plan
        asked = [f"{n} {format_seconds(t)}" for n, t in (("TTFT", self.ttft_s), ("TPOT", self.tpot_s)) if t]
        none = self.within is None
        most = "none of these loads" if none else f"{format_number(self.within or 0.0)} requests in flight"
        foot = [f"ends at: {self.limit}"]
        foot += [f"means within {' and '.join(asked)} up to: {most}"] if asked else []
        head = (self.model.line, f"one replica: {p.chips}x {p.chip}, {p.layout.label}", "")
        return (Table.of(self.points, LOADS, head, foot),)


def _rate(o: OperatorRecord) -> float | None:
    return o.flops_per_s / 1e12 if o.peak_flops_per_s else None


OPERATORS = (
    Column("phase", "phase"),
    Column("operator", "name"),
    Column("times", "repeats", "{:g}".format, right=True, spare=2),
    Column("time", "seconds", format_seconds, right=True),
    Column("share", "share", "{:.1%}".format, right=True),
    Column("GFLOP", lambda o: o.flops / 1e9 or None, format_number, right=True, spare=1),
    Column("bytes", lambda o: o.bytes or None, format_bytes, right=True),
    Column("FLOP/B", lambda o: o.intensity or None, format_number, right=True),
    Column("TFLOP/s", _rate, format_number, right=True),
    Column("bottleneck", "bound"),
)
"""What is said of an operator of a pass."""


LOADS = (
    Column("in flight", "concurrency", format_number, right=True),
    Column("requests/s", "requests_per_s", format_number, right=True),
    Column("TTFT", "ttft_s", figures.seconds, right=True),
    Column("TPOT", "tpot_s", figures.seconds, right=True),
    Column("tok/s", "tokens_per_s.mid", lambda v: format_number(v, 4), right=True),
    Column("tok/s/user", "tokens_per_s_per_user", format_number, right=True, spare=2),
    Column("$/M out", "usd_per_million_out", figures.mid, right=True, spare=1),
    Column("bottleneck", "bound"),
)
"""What is said of a deployment at one load."""
