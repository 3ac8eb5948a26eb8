"""Memory of a device by use as stacked bars against its capacity."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.report.charts.spec import MUTED, SERIES, Spec, axis, chart, tip
from chipwise.report.records import MemoryRecord

# What the bars show, in their order; every other use of memory is the runtime's.
GROUPS = ("weights", "runtime", "cache", "kept free", "missing")
COLORS = (SERIES[0], SERIES[1], SERIES[2], "#a9b0ba", "#c1272d")


def parts_of(memory: MemoryRecord) -> dict[str, float]:
    """Bytes by group; together they are the capacity, and more where something is missing."""
    weights = sum(size for name, size in memory.items.items() if name.startswith("weights"))
    beside = sum(memory.items.values()) - weights
    room = memory.cache_bytes
    parts = (weights, beside, max(room, 0.0), memory.withheld_bytes, max(-room, 0.0))
    return {name: size for name, size in zip(GROUPS, parts, strict=True) if size > 0}


UNLIKE = 8.0
"""Of the smallest capacity: where one has more, shares of each are drawn, as gigabytes would show that one alone."""


def memory_bars(devices: Sequence[tuple[str, MemoryRecord]]) -> Spec:
    """One bar per device by group, and a line at its capacity; of very unlike ones each in shares of its own."""
    sizes = [memory.capacity_bytes / 1e9 for _, memory in devices]
    shares = max(sizes, default=1.0) > UNLIKE * min(sizes, default=1.0)
    rows = []
    for name, memory in devices:
        capacity = memory.capacity_bytes / 1e9
        name = f"{name}, {capacity:,.0f} GB" if shares else name
        for group, size in parts_of(memory).items():
            rows.append(
                {
                    "device": name,
                    "use": group,
                    "order": GROUPS.index(group),
                    "gb": size / 1e9,
                    "share": f"{size / memory.capacity_bytes:.1%}",
                    "drawn": size / memory.capacity_bytes if shares else size / 1e9,
                    "capacity": 1.0 if shares else capacity,
                }
            )
    words = "; ".join(
        f"{name}: "
        + ", ".join(f"{group} {size / 1e9:.3g}" for group, size in parts_of(memory).items())
        + f" of {memory.capacity_bytes / 1e9:.4g} GB"
        for name, memory in devices
    )
    title = "share of the memory of one device" if shares else "GB of one device"
    scale = {"domainMax": max(1.0, *(sum(parts_of(m).values()) / m.capacity_bytes for _, m in devices))}
    scale = {**scale, "nice": False} if shares else {}
    written = {"tickCount": 5, "format": ".0%"} if shares else {"tickCount": 5}
    y = axis("device", "", "nominal", sort=None, axis={"labelLimit": 180, "title": None})
    return chart(
        f"Memory of one device by use, in GB. {words}.",
        height={"step": 30},
        data={"values": rows},
        encoding={"y": y},
        layer=[
            {
                "mark": {"type": "bar", "height": 17},
                "encoding": {
                    "x": axis("drawn", title, stack="zero", axis=written, scale=scale),
                    "color": {
                        "field": "use",
                        "type": "nominal",
                        "scale": {"domain": list(GROUPS), "range": list(COLORS)},
                        "legend": {"title": None, "orient": "top", "values": _used(rows)},
                    },
                    "order": {"field": "order"},
                    "tooltip": tip({"device": "device", "use": "use", "gb": "GB", "share": "of capacity"}),
                },
            },
            {
                "mark": {"type": "tick", "thickness": 2, "size": 24, "color": MUTED},
                "encoding": {
                    "x": {"field": "capacity", "aggregate": "max", "type": "quantitative"},
                    "tooltip": [{"field": "capacity", "aggregate": "max", "title": f"capacity, {title}"}],
                },
            },
        ],
    )


def _used(rows: Sequence[dict[str, object]]) -> list[str]:
    present = {row["use"] for row in rows}
    return [group for group in GROUPS if group in present]
