"""Sweeps and fleets in pictures: two figures of cells with those that no other beats, and where two axes meet; the
chips of a supply that are at work, hour by hour."""

from __future__ import annotations

from typing import Any

from chipwise.report.charts.spec import ACCENT, MUTED, Spec, axis, chart, color, ratio, said, ticks, tip
from chipwise.report.portfolio import PortfolioReport, SupplyRecord
from chipwise.report.sweep import SweepCell, SweepReport, short


def sweep_front(report: SweepReport) -> Spec:
    """The first two figures that are compared, of the cells that no other beats and of some others."""
    across, up = (*report.least, *report.most)[:2]
    front = {c.cell for c in report.front}
    rows = [_point(c, across, up, c.cell in front) for c in (*report.points, *report.front)]
    rows = [row for row in rows if (row["x"] or 0.0) > 0 and (row["y"] or 0.0) > 0]
    best = [row for row in rows if row["front"]]
    place: Spec = {
        "x": ratio("x", f"{short(across)} (log)", [r["x"] for r in rows]),
        "y": ratio("y", f"{short(up)} (log)", [r["y"] for r in rows]),
    }
    shown = tip({"cell": "cell", "asked": "asked", "x": short(across), "y": short(up)})
    words = "; ".join(f"{r['asked']}: {said(r['x'])}, {said(r['y'])}" for r in best[:12])
    mark = {"type": "point", "filled": True}
    return chart(
        f"{short(up)} against {short(across)}. No other cell beats: {words}.",
        height=300,
        data={"values": rows},
        layer=[
            {
                "transform": [{"filter": "!datum.front"}],
                "mark": {**mark, "size": 22, "opacity": 0.5, "color": MUTED},
                "encoding": {**place, "tooltip": shown},
            },
            {
                "transform": [{"filter": "datum.front"}],
                "mark": {**mark, "size": 60, "color": ACCENT},
                "encoding": {**place, "tooltip": shown},
            },
        ],
    )


def _point(cell: SweepCell, across: str, up: str, best: bool) -> dict[str, Any]:
    asked = ", ".join(map(str, cell.asked.values()))
    return {"cell": cell.cell, "asked": asked, "x": cell.figures[across], "y": cell.figures[up], "front": best}


def sweep_map(report: SweepReport) -> Spec:
    """The median of the figure where two axes meet. Raises `ValueError` for a sweep of one axis."""
    found = report.map
    if found is None:
        raise ValueError("the sweep has no two axes")
    rows: list[dict[str, Any]] = [
        {"x": column, "y": line, "value": value, "text": said(value)}
        for line, values in zip(found.lines, found.medians, strict=True)
        for column, value in zip(found.columns, values, strict=True)
        if value is not None
    ]
    words = "; ".join(f"{r['y']}, {r['x']}: {r['text']}" for r in rows[:12])
    label = {"labelLimit": 160}
    place: Spec = {
        "x": axis("x", found.x, "nominal", sort=list(found.columns), axis={**label, "labelAngle": 0}),
        "y": axis("y", found.y, "nominal", sort=list(found.lines), axis=label),
    }
    scale: Spec = {"scheme": "viridis", "reverse": report.figure in report.least}
    if rows and min(r["value"] for r in rows) > 0:
        scale["type"] = "log"
    legend = {"orient": "top", "title": short(report.figure), **ticks()}
    return chart(
        f"Median {short(report.figure)} by {found.y} and {found.x}: {words}.",
        height={"step": 30},
        data={"values": rows},
        mark="rect",
        encoding={
            **place,
            "color": axis("value", short(report.figure), scale=scale, legend=legend),
            "tooltip": tip({"y": found.y, "x": found.x, "value": short(report.figure)}),
        },
    )


def machines_by_hour(report: PortfolioReport, supply: SupplyRecord) -> Spec:
    """Chips of a supply at work over the day, demand upon demand, and dashed those that it has."""
    hours = 24.0 / len(report.slices)
    rows = []
    for i in range(len(report.slices)):
        low = 0.0
        for p in report.placements:
            chips = p.chips_per_slice[i] if p.supply == supply.name else 0.0
            if chips > 0:
                row = {"demand": p.demand, "from": i * hours, "to": (i + 1) * hours, "low": low, "high": low + chips}
                rows.append(row | {"chips": chips, "replicas": p.per_slice[i], "layout": p.spread})
            low += chips
    shown = {"demand": "demand", "from": "from hour", "to": "to hour", "chips": "chips", "replicas": "replicas"}
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "opacity": 0.85},
            "encoding": {
                "x": axis("from", "hour of the day", scale={"domain": [0, 24], "nice": False}, axis={"tickCount": 8}),
                "x2": {"field": "to"},
                "y": axis("low", "chips at work"),
                "y2": {"field": "high"},
                "color": color((p.demand for p in report.placements), "demand"),
                "tooltip": tip(shown | {"layout": "layout"}),
            },
        }
    ]
    if supply.machines:
        has = supply.machines * supply.per_machine
        layers.append(
            {
                "data": {"values": [{"has": has}]},
                "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.5, "color": MUTED},
                "encoding": {"y": axis("has", "chips at work")},
            }
        )
    return chart(f"Chips of {_words(supply)}.", height=200, data={"values": rows}, layer=layers)


def _words(s: SupplyRecord) -> str:
    """`hall at work over the day: 7.67 of 8 on average, 8 at most, in machines of 8`."""
    of = f" of {s.machines * s.per_machine:,}" if s.machines else ""
    at = f"{said(s.mean_chips)}{of} on average, {said(s.most_chips)} at most"
    return f"{s.name} at work over the day: {at}, in machines of {s.per_machine:,}"
