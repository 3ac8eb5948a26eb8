"""Chips as tables: all of them, one with its sources, several side by side."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.catalog.chip import Chip
from chipwise.catalog.chip_reader import MEASURES
from chipwise.report.citations import Citations
from chipwise.report.table import Table
from chipwise.units import format_bytes, format_number, parse_quantity

__all__ = ["chip_view", "chips_view", "compare_view"]

EXPONENTS = 1e6  # from here on a plain `g` would write them


def chips_view(chips: Sequence[Chip]) -> Table:
    """One line per chip."""
    columns = (
        "chip",
        "year",
        "kind",
        "memory",
        "GB/s",
        "16-bit TFLOPS",
        "fp8",
        "int8 TOPS",
        "link GB/s",
        "joins",
        "W",
        "grade",
    )
    rows = [
        (
            c.id,
            str(c.year) + ("" if c.rentable else " announced"),
            c.kind,
            "-" if c.memory.usable_bytes is None else format_bytes(c.memory.usable_bytes),
            _number(c.memory.bytes_per_s, 1e9),
            _number(c.peak("bf16") or c.peak("fp16"), 1e12),
            _number(c.peak("fp8"), 1e12),
            _number(c.peak("int8"), 1e12),
            _number(c.scaleup.bytes_per_s if c.scaleup else None, 1e9),
            str(c.scaleup.domain) if c.scaleup else "1",
            _number(c.tdp_w, 1.0),
            c.default.grade,
        )
        for c in chips
    ]
    records = [{"chip": c.id, "year": c.year, "kind": c.kind, "status": c.status, **c.figures} for c in chips]
    return Table(columns, rows, right=frozenset(columns[3:-1]), records=records)


def chip_view(chip: Chip) -> Table:
    """Every figure of a chip with its source."""
    rows = []
    sources = Citations()
    for name, value in chip.figures.items():
        p = chip.provenance(name)
        note = "" if p.note == chip.default.note else p.note
        rows.append((name, _text(value), p.grade, sources.mark(p), note))
    head = (f"{chip.name} ({chip.vendor}, {chip.year}, {chip.kind}, {chip.status})", "")
    foot = [chip.default.note] if chip.default.note else []
    missing = [name for name in MEASURES if name not in chip.figures]
    if chip.family != "systolic":
        missing = [name for name in missing if not name.startswith("array")]
    foot.append(f"not found: {', '.join(missing)}")
    foot += [f"exception to guard {guard}: {why}" for guard, why in chip.exceptions.items()]
    foot += sources.notes()
    return Table(
        ("figure", "value", "grade", "source", "note"), rows, head, tuple(foot), frozenset(("value",))
    )


def compare_view(chips: Sequence[Chip]) -> Table:
    """One line per figure that any of the chips has, one column per chip; the grade where it is weak."""
    names = list(dict.fromkeys(name for chip in chips for name in chip.figures))

    def cell(chip: Chip, name: str) -> str:
        if name not in chip.figures:
            return "-"
        grade = chip.provenance(name).grade
        weak = f" ({grade})" if grade in ("derived", "assumed") else ""
        return f"{_text(chip.figures[name])}{weak}"

    rows = [(name, *(cell(chip, name) for chip in chips)) for name in names]
    return Table(("figure", *(chip.id for chip in chips)), rows, right=frozenset(c.id for c in chips))


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}" if value < EXPONENTS else f"{value:,.0f}"
    text = str(value)
    # binary units beside the decimal ones of everything else
    return f"{text} ({format_bytes(parse_quantity(text, 'B', 'capacity'))})" if text.endswith("GiB") else text


def _number(value: float | None, unit: float) -> str:
    return "-" if value is None else format_number(value / unit, 4)
