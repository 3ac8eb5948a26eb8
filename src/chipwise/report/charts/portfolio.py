"""A fleet in pictures: the chips of a supply that are at work, hour by hour."""

from __future__ import annotations

from chipwise.report.charts.spec import MUTED, Spec, axis, chart, color, said, tip
from chipwise.report.portfolio import PortfolioReport, SupplyRecord


def machines_by_hour(report: PortfolioReport, supply: SupplyRecord) -> Spec:
    """Chips of a supply at work over the day, demand upon demand, and dashed those that it has."""
    hours = 24.0 / len(report.slices)
    rows = []
    for i in range(len(report.slices)):
        low = 0.0
        for p in report.placements:
            chips = p.chips_per_slice[i] if p.supply == supply.name else 0.0
            if chips > 0:
                row = {
                    "demand": p.demand,
                    "from": i * hours,
                    "to": (i + 1) * hours,
                    "low": low,
                    "high": low + chips,
                }
                rows.append(row | {"chips": chips, "replicas": p.per_slice[i], "layout": p.spread})
            low += chips
    shown = {
        "demand": "demand",
        "from": "from hour",
        "to": "to hour",
        "chips": "chips",
        "replicas": "replicas",
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "opacity": 0.85},
            "encoding": {
                "x": axis(
                    "from", "hour of the day", scale={"domain": [0, 24], "nice": False}, axis={"tickCount": 8}
                ),
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
