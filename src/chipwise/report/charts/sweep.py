"""A sweep in pictures: two figures of its cells with those that no other beats, and where two axes meet."""

from __future__ import annotations

from typing import Any

from chipwise.report.charts.spec import ACCENT, MUTED, Spec, axis, chart, ratio, said, ticks, tip
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
    return {
        "cell": cell.cell,
        "asked": asked,
        "x": cell.figures[across],
        "y": cell.figures[up],
        "front": best,
    }


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
