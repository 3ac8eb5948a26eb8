"""What planning of training answers, as plain records. Units are in the names; a `Figure` has its 80 % interval."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.report.answer import Answer
from chipwise.report.records import (
    SCHEMA_VERSION,
    Figure,
    ModelRecord,
    PriceRecord,
    Quantified,
    RefusalRecord,
)

__all__ = [
    "SHARDING",
    "ScalingRecord",
    "TakeoverRecord",
    "TrainLayoutRecord",
    "TrainPlanRecord",
    "TrainReport",
]

SHARDING = ("none", "zero-1", "zero-2", "fsdp")  # by stage of ZeRO


@dataclass(frozen=True, slots=True)
class TrainLayoutRecord:
    """How the work is spread. `sharding`: none, zero-1 or fsdp, with the ranks that it cuts over. `schedule` of the
    pipeline (empty: one stage); `context`: ring or all-gather (empty: cp 1); `offload`: the share of the optimiser
    that is kept in host memory."""

    tp: int
    pp: int
    vp: int
    cp: int
    ep: int
    dp: int
    micro_batch: int
    micro_batches: int
    sharding: str
    shard_ranks: int
    recompute: str
    label: str
    schedule: str = ""
    context: str = ""
    offload: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainPlanRecord(Quantified):
    """A plan and what it is predicted to do.

    `mfu` counts 6 FLOPs per active parameter and token (adapters: 4) and all pairs of the attention core, over
    the dense peak of the type that products run in; `hfu` counts what runs, recomputation included;
    `tflops_per_chip` counts as the trainer does that logs it. `verdict`: fits, tight, or over where the memory of a run
    that is known to fit is predicted too large. `goodput` is the
    share of the time that makes progress under failures; `days` and the cost include it. `shares` are parts
    of the step by cause; of communication that nothing hides, `network` is what shrinks with the bandwidth of
    scale-out links, `fabric` the rest. `memory` are bytes by use of the fullest pipeline stage, `stages` those of each,
    first to last. `ties` are the first plans of other chips that may cost less, or be done sooner where no price is
    known, as far as step times are known.
    """

    rank: int
    chip: str
    chips: int
    system: str
    layout: TrainLayoutRecord
    precision: str
    stack: str
    global_batch: int
    seq: int
    step_s: Figure
    tokens_per_s: Figure
    tokens_per_day: float
    mfu: float
    hfu: float
    tflops_per_chip: float
    goodput: float
    checkpoint_s: float
    days: Figure
    price: PriceRecord | None
    usd: Figure | None
    energy_kwh: float | None
    memory: dict[str, float]
    memory_bytes: float
    capacity_bytes: float
    verdict: str
    shares: dict[str, float]
    bound: str
    why: tuple[str, ...]
    on_front: bool = False
    stages: tuple[dict[str, float], ...] = ()
    ties: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScalingRecord:
    """One point of a scaling curve: the best layout of so many chips. `shares` are parts of the step by cause."""

    chip: str
    kind: str
    chips: int
    label: str
    step_s: float
    tokens_per_s: float
    efficiency: float
    shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class TakeoverRecord:
    """The first count of strong scaling where compute and memory take less than half of a step (0: none that was
    tried), what takes most of the rest, and the shares of all of it: host, fabric, network, bubble, optimiser,
    stragglers."""

    chips: int
    cause: str
    shares: dict[str, float]


@dataclass(frozen=True, slots=True, repr=False)
class TrainReport(Answer):
    """The answer to `plan --task train` and `finetune`. `takes_over` names, per chip, where strong
    scaling ends. `limits` are those of the question (days, usd, usd_per_h), which middle values keep."""

    model: ModelRecord
    task: str
    tokens: float
    plans: tuple[TrainPlanRecord, ...]
    refused: tuple[RefusalRecord, ...]
    scaling: tuple[ScalingRecord, ...]
    takes_over: dict[str, TakeoverRecord]
    considered: int
    rejected: dict[str, int]
    assumptions: tuple[str, ...]
    limits: dict[str, float] = field(default_factory=dict)
    schema_version: str = field(default=SCHEMA_VERSION)
