"""Systems as tables."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.catalog.system import System
from chipwise.report.citations import Citations
from chipwise.report.table import Table

__all__ = ["system_view", "systems_view"]


def systems_view(systems: Sequence[System]) -> Table:
    """One line per system: chips of a host, and what each tier of fabric joins."""
    columns = ("system", "form", "chips of a host", "joined", "GB/s per chip", "scale-out", "to be had")
    rows = []
    for s in systems:
        tiers = [f"{t.chips} by {t.name}" for t in s.tiers]
        speeds = ["?" if t.bytes_per_s is None else f"{t.bytes_per_s / 1e9:g}" for t in s.tiers]
        rows.append(
            (
                s.id,
                s.form,
                ", ".join(f"{n}x {chip}" for chip, n in s.members),
                "; ".join(tiers) or "-",
                "; ".join(speeds) or "-",
                s.scaleout.kind if s.scaleout else "-",
                ", ".join(s.offered) or "-",
            )
        )
    return Table(columns, rows)


def system_view(system: System) -> Table:
    """Every figure of a system with its source."""
    rows = []
    sources = Citations()
    for name, value in system.figures.items():
        if name == "tiers":
            continue  # each tier has a line of its own
        p = system.provenance(name)
        rows.append((name, _text(value), p.grade, sources.mark(p), p.note))
    members = ", ".join(f"{n}x {chip}" for chip, n in system.members)
    shapes = ["x".join(map(str, shape)) for shape in system.slices()]
    more = ", ..." if len(shapes) > 24 else ""
    foot = (f"shapes: {', '.join(shapes[:24])}{more}", *sources.notes())
    head = (f"{system.name}: {members} a host, {system.chips} chips in all", "")
    return Table(("figure", "value", "grade", "source", "note"), rows, head, foot)


def _text(value: object) -> str:
    """A figure, or those of a tier side by side."""
    if isinstance(value, dict):
        shown = (
            k for k in ("name", "fabric", "chips", "shape", "wrap", "GBps", "pairwise_GBps") if k in value
        )
        return ", ".join(f"{k} {_text(value[k])}" for k in shown)
    if isinstance(value, list | tuple):
        return (
            "x".join(map(str, value))
            if all(isinstance(v, int) for v in value)
            else ", ".join(map(str, value))
        )
    return f"{value:g}" if isinstance(value, float) else str(value)
