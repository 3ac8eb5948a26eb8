"""Memory as a table: where a model fits, with what headroom, and what would mend a no."""

from __future__ import annotations

from chipwise.report.memory_view import count_text, memory_view
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
    table = Table(columns, rows, head, tuple(foot), right, report.fits)
    if len(report.fits) != 1:
        return (table,)
    f = report.fits[0]
    return table, memory_view(f.memory, f.layout.label, f.runtime)


def _row(f: FitRecord) -> tuple[str, ...]:
    room = f.memory.cache_bytes
    return (
        f.chip,
        str(f.chips),
        f.layout.label,
        f.verdict if f.verdict != "no" else f"no, {format_bytes(f.missing_bytes)} short",
        format_bytes(room) if room > 0 else "-",
        count_text(f.memory.cache_tokens),
        count_text(f.largest_batch),
        f"{f.largest_context:,}",
        " or ".join(f.mend) or "-",
    )
