"""Memory as a table: where a model fits, with what headroom, and what would mend a no."""

from __future__ import annotations

from chipwise.report.plan_view import model_line
from chipwise.report.records import FitRecord, FitReport
from chipwise.report.table import Table
from chipwise.units import format_bytes

__all__ = ["fit_view"]


def fit_view(report: FitReport) -> tuple[Table, ...]:
    """One line per chip; the itemised account too where a single chip was asked for."""
    columns = (
        "chip",
        "count",
        "layout",
        "fits",
        "left for cache",
        "cache tokens",
        "batch",
        "context",
        "to mend",
    )
    rows = [_row(f) for f in report.fits]
    load = f"{report.sequences} x {report.context:,} tokens"
    head = (model_line(report.model), f"asked load: {load}; cache, batch and context are of one replica", "")
    foot = []
    caveats = [f for f in report.fits if f.caveat]
    if caveats:
        foot.append("sized, but not to be launched:")
        foot += [f"  {f.chip}: {f.caveat}" for f in caveats[:12]]
    foot += [f"{r.chip}: {r.detail}" for r in report.refused[:12]]
    if report.assumptions:
        foot.append(f"assumed: {'; '.join(report.assumptions)}")
    right = frozenset(("count", "left for cache", "cache tokens", "batch", "context"))
    table = Table(columns, rows, head, tuple(foot), right)
    if len(report.fits) != 1 or report.fits[0].memory is None:
        return (table,)
    return table, _items(report.fits[0])


def _row(f: FitRecord) -> tuple[str, ...]:
    room = f.memory.cache_bytes if f.memory else 0.0
    return (
        f.chip,
        str(f.chips),
        f.layout.label,
        f.verdict if f.verdict != "no" else f"no, {format_bytes(f.missing_bytes)} short",
        format_bytes(room) if room > 0 else "-",
        _count(f.memory.cache_tokens) if f.memory else "-",
        _count(f.largest_batch),
        f"{f.largest_context:,}",
        " or ".join(f.mend) or "-",
    )


def _count(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"


def _items(f: FitRecord) -> Table:
    m = f.memory
    assert m is not None
    rows = [(kind, format_bytes(size), m.basis[kind]) for kind, size in m.items.items()]
    rows.append(("cache", format_bytes(m.cache_bytes), f"{_count(m.cache_tokens)} tokens in one replica"))
    rows.append(("kept free", format_bytes(m.withheld_bytes), f"{f.runtime}'s share of memory"))
    rows.append(("in all", format_bytes(m.capacity_bytes), "usable"))
    return Table(
        (f"memory of a device, {f.layout.label}", "bytes", "basis"), rows, right=frozenset(("bytes",))
    )
