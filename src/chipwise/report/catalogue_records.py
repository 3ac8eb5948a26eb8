"""What the catalogue answers, as plain records: chips with their sources, and lists of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.catalog.chip import Chip
from chipwise.catalog.offer import Offer, PriceRange
from chipwise.catalog.runtime import Runtime
from chipwise.catalog.system import System
from chipwise.evidence.item import Item
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION, ModelRecord

__all__ = [
    "ChipRecord",
    "ChipsReport",
    "EvidenceReport",
    "FigureRecord",
    "ModelsReport",
    "OffersReport",
    "RuntimesReport",
    "SystemsReport",
    "chip_record",
]


@dataclass(frozen=True, slots=True)
class FigureRecord:
    """A figure of the catalogue as its file has it, in the unit of its name, with where it was read and when.

    `grade`: measured, datasheet, secondary (a page about it), derived or assumed.
    """

    name: str
    value: str
    grade: str
    sources: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class ChipRecord:
    """A chip in SI units: usable bytes of its main memory, dense matrix peaks by data type, its scale-up link (one
    direction, all ports) and how many chips that joins, dollars per hour over all offers on demand. None = not
    published. `figures` is filled where the chip was asked for by name."""

    id: str
    name: str
    vendor: str
    kind: str
    family: str
    year: int
    status: str
    memory: str
    memory_bytes: float | None
    memory_bytes_per_s: float | None
    peak_flops_per_s: dict[str, float]
    link_bytes_per_s: float | None
    joins: int
    tdp_w: float | None
    devices: int
    usd_per_h_low: float | None
    usd_per_h_high: float | None
    grade: str
    figures: tuple[FigureRecord, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class ChipsReport(Answer):
    """The answer to `chips`; `found` counts those that were left out by the limit too."""

    chips: tuple[ChipRecord, ...]
    found: int
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True, repr=False)
class ModelsReport(Answer):
    """The answer to `models`; `found` counts those that were left out by the limit too."""

    models: tuple[ModelRecord, ...]
    found: int
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True, repr=False)
class SystemsReport(Answer):
    """The answer to `systems`."""

    systems: tuple[System, ...]
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True, repr=False)
class RuntimesReport(Answer):
    """The answer to `runtimes`."""

    runtimes: tuple[Runtime, ...]
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True, repr=False)
class OffersReport(Answer):
    """The answer to `offers`: cheapest first, and the range for each chip on demand."""

    offers: tuple[Offer, ...]
    ranges: tuple[PriceRange, ...]
    found: int
    schema_version: str = field(default=SCHEMA_VERSION)


@dataclass(frozen=True, slots=True, repr=False)
class EvidenceReport(Answer):
    """The answer to `evidence`; `found` counts those that were left out by the limit too."""

    items: tuple[Item, ...]
    found: int
    notice: str
    schema_version: str = field(default=SCHEMA_VERSION)


def chip_record(chip: Chip, price: PriceRange | None, *, sources: bool = False) -> ChipRecord:
    """A chip as a record; with `sources` every figure and where it comes from."""
    link = chip.scaleup
    return ChipRecord(
        id=chip.id,
        name=chip.name,
        vendor=chip.vendor,
        kind=chip.kind,
        family=chip.family,
        year=chip.year,
        status=chip.status,
        memory=chip.memory.name,
        memory_bytes=chip.memory.usable_bytes,
        memory_bytes_per_s=chip.memory.bytes_per_s,
        peak_flops_per_s=dict(chip.matrix),
        link_bytes_per_s=link.bytes_per_s if link else None,
        joins=link.domain if link else 1,
        tdp_w=chip.tdp_w,
        devices=chip.devices_per_package,
        usd_per_h_low=price.low if price else None,
        usd_per_h_high=price.high if price else None,
        grade=chip.default.grade,
        figures=_figures(chip) if sources else (),
    )


def _figures(chip: Chip) -> tuple[FigureRecord, ...]:
    found = []
    for name, value in chip.figures.items():
        p = chip.provenance(name)
        said = tuple(f"{s.ref}, {s.date}" if s.date else s.ref for s in p.sources)
        text = f"{value:.12g}" if isinstance(value, float) else str(value)
        found.append(FigureRecord(name, text, p.grade, said, p.note))
    return tuple(found)
