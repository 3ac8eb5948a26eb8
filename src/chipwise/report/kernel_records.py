"""What `kernel` answers: one operator on one or several chips, everything visible."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION, Figure, RefusalRecord

__all__ = ["AmdahlRecord", "AmdahlReport", "KernelRecord", "KernelReport", "LevelRecord"]


@dataclass(frozen=True, slots=True)
class LevelRecord:
    """Bytes of the operator through one level of memory; `time_s` is what its rate alone would take (None: no
    rate is published)."""

    name: str
    bytes: float
    bytes_per_mac: float
    time_s: float | None
    note: str


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """An operator on one chip.

    `intensity` and `ridge` in FLOP per byte of main memory: left of the ridge the roofline is memory.
    `exposed_s` adds up to the time; `hidden_s` passes behind it. `mapping` holds the figures behind
    `mapping_text`. Collectives have no FLOPs: their ridge is 0 and their levels are links.
    """

    chip: str
    family: str
    time_s: Figure
    bound: str
    exposed_s: dict[str, float]
    hidden_s: dict[str, float]
    flops: float
    bytes: float
    intensity: float
    ridge: float
    roofline_s: float
    peak_flops_per_s: float
    flops_per_s: float
    share_of_peak: float
    bytes_per_s: float
    mapping_text: str
    mapping: dict[str, float]
    levels: tuple[LevelRecord, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class KernelReport(Answer):
    """The answer to `kernel`; `seconds` is the time on the first chip."""

    operator: str
    seconds: float
    dims: dict[str, float]
    dtype: str
    kernels: tuple[KernelRecord, ...]
    refused: tuple[RefusalRecord, ...]
    lessons: tuple[str, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True)
class AmdahlRecord:
    """A CPU against one accelerator. Above `crossover_fraction` of serial work the CPU is faster; below
    `least_work` operations it is faster even with nothing serial (None: it never is overtaken)."""

    chip: str
    cpu_s: float
    chip_s: float
    faster: str
    crossover_fraction: float
    least_work: float | None
    serial_ratio: float
    parallel_ratio: float


@dataclass(frozen=True, slots=True)
class AmdahlReport:
    """The answer to `kernel amdahl`."""

    cpu: str
    serial_fraction: float
    work: float
    chips: tuple[AmdahlRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)
