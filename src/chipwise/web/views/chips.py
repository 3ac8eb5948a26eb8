"""The catalogue: chips on one picture, their sheets with who says so, models, machines, software and prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.api.requests.catalogue import ChipsRequest
from chipwise.catalog.chips import get_chip
from chipwise.report.catalogue import ChipRecord, ChipsReport, chips_view, compare_view
from chipwise.report.charts.chips import landscape
from chipwise.report.table import Table
from chipwise.values import dataclass
from chipwise.web.views.view import CATALOGUE, PageChart, View, link

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Memory": ("memory", "usable", "tier2", "cache", "sram", "registers"),
    "Matrix peaks, dense": ("matrix_tflops",),
    "Vector peaks": ("vector_tflops",),
    "Links, one direction": ("host", "scaleup", "scaleout"),
    "Clocks and power": ("boost", "peak", "tdp"),
    "The chip": ("",),
}
"""Figures of a sheet by how their names begin; the first that fits."""
UNITS = {"GBps": "GB/s", "MHz": "MHz", "KiB": "KiB", "MiB": "MiB", "GB": "GB", "W": "W", "ns": "ns", "us": "µs"}
WORDS = {
    "scaleup": "scale-up", "scaleout": "scale-out", "tdp": "power limit", "host": "host link", "sram": "on-chip memory",
    "macs": "multiply-adds", "unit": "kind of unit", "units": "units",
}  # fmt: skip
SHOWN = 40
"""Chips of a list that are not folded away."""
WEAK = ("derived", "assumed", "recalled")


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of a chip with its unit, how it is known where that is weak, and the numbers of its sources."""

    text: str
    grade: str
    note: str
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChipSheet:
    """Chips side by side: rows of figures in groups, a cell for each chip or None, and the sources by number."""

    chips: tuple[ChipRecord, ...]
    groups: Mapping[str, Sequence[tuple[str, Sequence[Cell | None]]]]
    sources: tuple[str, ...]


def sheet_of(chips: Sequence[ChipRecord]) -> ChipSheet:
    """The sheets of chips that were asked for by name."""
    sources: dict[str, int] = {}
    known = [{f.name: f for f in c.figures} for c in chips]
    groups: dict[str, list[tuple[str, Sequence[Cell | None]]]] = {title: [] for title in GROUPS}
    for name in dict.fromkeys(name for figures in known for name in figures):
        cells: list[Cell | None] = []
        label, unit = _words(name)
        for figures in known:
            f = figures.get(name)
            if f is None:
                cells.append(None)
                continue
            said = tuple(sources.setdefault(source, len(sources) + 1) for source in f.sources)
            cells.append(Cell(f"{_short(f.value)} {unit}".strip(), f.grade if f.grade in WEAK else "", f.note, said))
        title = next(t for t, starts in GROUPS.items() if name.startswith(starts))
        groups[title].append((label, cells))
    return ChipSheet(tuple(chips), {t: rows for t, rows in groups.items() if rows}, tuple(sources))


def _short(value: str) -> str:
    """A figure in five digits with thousands marked; a text as it is."""
    try:
        return f"{float(f'{float(value):.5g}'):,.10g}"
    except ValueError:
        return value


def _words(name: str) -> tuple[str, str]:
    """What a figure is called, and the unit that its name ends with."""
    kind, dot, dtype = name.partition(".")
    if dot:
        return dtype, "TOPS" if dtype.startswith("int") else "TFLOPS"
    *words, last = kind.split("_")
    words, unit = (words, UNITS[last]) if words and last in UNITS else ([*words, last], "")
    label = WORDS.get("_".join(words)) or " ".join(WORDS.get(w, w) if w != "unit" else w for w in words)
    return f"{label} bandwidth" if last == "GBps" else label, unit


def _show(question: ChipsRequest, report: ChipsReport) -> dict[str, Any]:
    names = [c.id for c in report.chips]
    charts = []
    if len(names) > 1:
        note = "Each point is a chip; dashed lines are ridges: FLOPs that a byte from memory has to feed."
        charts.append(PageChart("chips", "Bandwidth against arithmetic", landscape(report), note))
    links = {c: link("chips", {"chips": c}) for c in names} if question.chips is None else {}
    sheet = sheet_of(report.chips) if report.chips and report.chips[0].figures else None
    # what can be rented, the newest first
    order = sorted(report.chips, key=lambda c: (c.usd_per_h_low is None, -c.year))
    chips = () if sheet else [get_chip(c.id) for c in order]
    tables = [chips_view(part) for part in (chips[:SHOWN], chips[SHOWN:]) if part]
    return {"charts": charts, "tables": tables, "sheet": sheet, "links": links}


def _tables(report: ChipsReport) -> tuple[Table, ...]:
    chips = [get_chip(c.id) for c in report.chips]
    if chips and report.chips[0].figures:
        return (compare_view(chips),)
    return (chips_view(chips),)


CHIPS = View(
    group=CATALOGUE,
    verb="chips",
    tab="Chips",
    title="Chips",
    lead="Every accelerator in the catalogue with the figures that predictions use; name some to see all of theirs.",
    example={"limit": "500"},
    front=("chips", "search", "vendor", "limit"),
    show=_show,
    tables=_tables,
    template="chips.html",
)
LISTS = (
    (
        "models",
        "Models",
        "Models",
        "Language models and networks that are known by name, with their size in memory; search for more of them.",
        ("search", "model", "limit"),
    ),
    (
        "systems",
        "Machines",
        "Machines, pods and slices",
        "How many chips stand in a host, what joins them, and which shapes can be rented.",
        ("system", "chip"),
    ),
    (
        "runtimes",
        "Software",
        "Serving software",
        "Software that runs models, with the chips and number formats that it supports.",
        ("runtime", "chip"),
    ),
    (
        "offers",
        "Prices",
        "Prices",
        "Dated list prices of machines for rent, per chip and hour, the cheapest first.",
        ("chip", "provider", "limit"),
    ),
)
"""Parts of the catalogue that are tables alone: verb, tab, title, lead, and the fields that are not folded away."""
PARTS = (CHIPS, *(View(verb, tab, title, lead, front, group=CATALOGUE) for verb, tab, title, lead, front in LISTS))
"""The catalogue, a page for each part."""
