"""Operators, chips and models in short."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.mcp.short import Range, rounded
from chipwise.report.catalogue_records import ChipRecord, ChipsReport, ModelsReport
from chipwise.report.kernel_records import KernelRecord, KernelReport
from chipwise.report.records import ModelRecord

__all__ = [
    "ChipLine",
    "ChipsAnswer",
    "KernelAnswer",
    "KernelLine",
    "ModelLine",
    "ModelsAnswer",
    "chips_answer",
    "kernel_answer",
    "models_answer",
]


@dataclass(frozen=True, slots=True)
class KernelLine:
    """An operator on a chip: time in microseconds beside its roofline, and what the time is made of."""

    chip: str
    time_us: Range
    basis: str
    roofline_us: float
    bound: str
    share_of_peak: float
    exposed_us: dict[str, float]
    flop_per_byte: float
    ridge_flop_per_byte: float
    mapping: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """One operator on some chips."""

    operator: str
    kernels: tuple[KernelLine, ...]
    refused: dict[str, str]
    lessons: tuple[str, ...]
    assumptions: tuple[str, ...]
    details: KernelReport | None = field(default=None)


@dataclass(frozen=True, slots=True)
class ChipLine:
    """A chip: usable memory, peaks that are dense, link speed one direction, list price of one chip on demand."""

    id: str
    name: str
    year: int
    status: str
    kind: str
    memory_gb: float | None
    memory_gb_per_s: float | None
    tflops: dict[str, float]
    link_gb_per_s: float | None
    joins: int
    tdp_w: float | None
    usd_per_h: str
    grade: str
    figures: dict[str, str]


@dataclass(frozen=True, slots=True)
class ChipsAnswer:
    """Chips; `figures` of those asked for by name, each with its grade where it is no datasheet's."""

    chips: tuple[ChipLine, ...]
    found: int
    more: tuple[str, ...]
    details: ChipsReport | None = field(default=None)


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in figures."""

    name: str
    architecture: str
    params_billion: float
    active_billion: float
    layers: int
    precision: str
    weights_gb: float
    kv_bytes_per_token: float
    max_context: int
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelsAnswer:
    """Models; `found` counts those beyond the limit too."""

    models: tuple[ModelLine, ...]
    found: int
    details: ModelsReport | None = field(default=None)


LINES = 20


def kernel_answer(report: KernelReport) -> KernelAnswer:
    """The answer to kernel in short."""
    return KernelAnswer(
        report.operator,
        tuple(map(_kernel, report.kernels)),
        {r.chip: r.detail for r in report.refused},
        report.lessons,
        report.assumptions,
    )


def chips_answer(report: ChipsReport) -> ChipsAnswer:
    """The answer to chips in short."""
    more = tuple(c.id for c in report.chips[LINES:])
    return ChipsAnswer(tuple(map(_chip, report.chips[:LINES])), report.found, more)


def models_answer(report: ModelsReport) -> ModelsAnswer:
    """The answer to models in short."""
    return ModelsAnswer(tuple(map(_model, report.models)), report.found)


def _kernel(k: KernelRecord) -> KernelLine:
    t = k.time_s
    return KernelLine(
        chip=k.chip,
        time_us=Range.of(t.low * 1e6, t.mid * 1e6, t.high * 1e6),
        basis=t.basis,
        roofline_us=rounded(k.roofline_s * 1e6),
        bound=k.bound,
        share_of_peak=rounded(k.share_of_peak),
        exposed_us={name: rounded(seconds * 1e6) for name, seconds in k.exposed_s.items() if seconds},
        flop_per_byte=rounded(k.intensity),
        ridge_flop_per_byte=rounded(k.ridge),
        mapping=k.mapping_text,
        notes=k.notes,
    )


def _chip(c: ChipRecord) -> ChipLine:
    dollars = "unknown"
    if c.usd_per_h_low is not None and c.usd_per_h_high is not None:
        dollars = f"{c.usd_per_h_low:.2f}-{c.usd_per_h_high:.2f}"
    return ChipLine(
        id=c.id,
        name=c.name,
        year=c.year,
        status=c.status,
        kind=c.kind,
        memory_gb=_scaled(c.memory_bytes, 1e9),
        memory_gb_per_s=_scaled(c.memory_bytes_per_s, 1e9),
        tflops={name: rounded(peak / 1e12) for name, peak in c.peak_flops_per_s.items()},
        link_gb_per_s=_scaled(c.link_bytes_per_s, 1e9),
        joins=c.joins,
        tdp_w=c.tdp_w,
        usd_per_h=dollars,
        grade=c.grade,
        figures={f.name: f.value if f.grade == "datasheet" else f"{f.value} ({f.grade})" for f in c.figures},
    )


def _model(m: ModelRecord) -> ModelLine:
    return ModelLine(
        name=m.name,
        architecture=m.architecture,
        params_billion=rounded(m.params / 1e9),
        active_billion=rounded(m.active_params / 1e9),
        layers=m.layers,
        precision=m.precision,
        weights_gb=rounded(m.weight_bytes / 1e9),
        kv_bytes_per_token=max(m.kv_bytes_in_window, m.kv_bytes_per_token),
        max_context=m.max_context,
        assumptions=m.assumptions,
    )


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else rounded(value / unit)
