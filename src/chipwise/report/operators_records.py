"""What `operators` and `load` answer: a pass taken apart, and a deployment under rising load."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.report.answer import Answer
from chipwise.report.records import (
    SCHEMA_VERSION,
    Figure,
    ModelRecord,
    PlanRecord,
    Quantified,
    TailRecord,
    WorkloadRecord,
)

__all__ = ["LoadPoint", "LoadReport", "OperatorRecord", "OperatorsReport"]


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """One kind of work in a pass of one device, repeats added up.

    `phase`: decode is a pass in which every sequence gets a token, prefill a pass that works off one chunk of a
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
class OperatorsReport(Answer):
    """The answer to `operators`: both phases of a plan, and the roofline of its device.

    `peaks_flops_per_s` are dense, by data type, as far as an operator uses them. `decode_s` and `prefill_s` are
    the sums over operators.
    """

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


@dataclass(frozen=True, slots=True)
class LoadPoint(Quantified):
    """A deployment with so many requests in flight. Times are means; `tails` by quantile ("p95")."""

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


@dataclass(frozen=True, slots=True, repr=False)
class LoadReport(Answer):
    """The answer to `load`: one replica from a lone request to as many as fit; `limit` says what ends it.

    `within` is the largest load of `points` whose means meet the targets, None where none does or none is given.
    """

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
