"""The memory of one device as a table."""

from __future__ import annotations

from chipwise.report.records import MemoryRecord
from chipwise.report.table import Table
from chipwise.units import format_bytes

__all__ = ["count_text", "memory_view"]


def memory_view(m: MemoryRecord, layout: str, runtime: str) -> Table:
    """Every use with its basis; the uses, the cache and what is kept free add up to all."""
    rows = [(kind, format_bytes(size), m.basis[kind]) for kind, size in m.items.items()]
    rows.append(
        ("cache", format_bytes(m.cache_bytes), f"room for {count_text(m.cache_tokens)} tokens in one replica")
    )
    rows.append(("kept free", format_bytes(m.withheld_bytes), f"{runtime}'s share of memory"))
    rows.append(("in all", format_bytes(m.capacity_bytes), "usable"))
    uses = {**m.items, "cache": m.cache_bytes, "kept free": m.withheld_bytes, "in all": m.capacity_bytes}
    records = [{"use": kind, "bytes": size, "basis": m.basis.get(kind, "")} for kind, size in uses.items()]
    columns = (f"memory of a device, {layout}", "bytes", "basis")
    return Table(columns, rows, ("",), right=frozenset(("bytes",)), records=records)


def count_text(value: int | None) -> str:
    """A count, or `any` where nothing limits it."""
    return "any" if value is None else f"{value:,}"
