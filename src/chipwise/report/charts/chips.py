"""Chips of the catalogue on one picture: memory bandwidth against arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.report.catalogue import ChipsReport
from chipwise.report.charts.spec import MUTED, SERIES, Spec, chart, halves, having_room, labels, ratio, tip

RIDGES = (30.0, 100.0, 300.0)  # FLOP per byte
NAMES = 24
"""Where there are more chips their names would hide them."""
VENDORS = ("nvidia", "amd", "google", "intel", "aws")


def _chips(report: ChipsReport) -> Iterator[dict[str, Any]]:
    """The chips whose bandwidth and 16-bit arithmetic are known."""
    for c in report.chips:
        peak = c.peak_flops_per_s.get("bf16") or c.peak_flops_per_s.get("fp16")
        if not peak or not c.memory_bytes_per_s:
            continue
        vendor = c.vendor.lower()
        yield {
            "chip": c.id,
            "vendor": vendor if vendor in VENDORS else "others",
            "year": c.year,
            "tbs": c.memory_bytes_per_s / 1e12,
            "tflops": peak / 1e12,
            "gb": (c.memory_bytes or 0.0) / 1e9,
            "ridge": peak / c.memory_bytes_per_s,
            "usd": "" if c.usd_per_h_low is None else f"{c.usd_per_h_low:.3g} to {c.usd_per_h_high:.3g}",
        }


def landscape(report: ChipsReport) -> Spec:
    """16-bit FLOP/s over bytes per second of main memory; the larger a point, the more memory."""
    rows = list(_chips(report))
    rates = [r["tbs"] for r in rows] or [1.0]
    peaks = [r["tflops"] for r in rows] or [1.0]
    ends = (min(rates), max(rates))
    for row, half in zip(rows, halves(rates), strict=False):
        row["half"] = half
    points = [(x, y, str(r["chip"]), str(r["half"])) for r, x, y in zip(rows, rates, peaks, strict=False)]
    free = having_room(points, (ends, (min(peaks), max(peaks)))) if len(rows) <= NAMES else [False] * len(rows)
    for row, roomy in zip(rows, free, strict=True):
        row["named"] = roomy
    lines = [{"label": f"{ridge:g} FLOP/B", "tbs": x, "tflops": x * ridge} for ridge in RIDGES for x in ends]
    words = "; ".join(f"{r['chip']} {r['tbs']:.3g} TB/s, {r['tflops']:.4g} TFLOP/s" for r in rows[:12])
    where = {"x": ratio("tbs", "TB/s of main memory (log)"), "y": ratio("tflops", "16-bit TFLOP/s, dense (log)")}
    named = [*VENDORS, "others"]
    return chart(
        f"{len(rows)} chips: memory bandwidth against 16-bit arithmetic. First of them: {words}.",
        height=400,
        layer=[
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeDash": [4, 4], "strokeWidth": 1, "color": MUTED, "clip": True},
                "encoding": {**where, "detail": {"field": "label"}},
            },
            {
                "data": {"values": lines[1::2]},
                "mark": {"type": "text", "align": "right", "dy": -7, "fontSize": 10.5, "opacity": 0.8},
                "encoding": {**where, "text": {"field": "label"}},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "opacity": 0.75},
                "encoding": {
                    **where,
                    "size": {
                        "field": "gb",
                        "type": "quantitative",
                        "scale": {"type": "sqrt", "domain": [0, 300], "range": [20, 420], "clamp": True},
                        "legend": None,
                    },
                    "color": {
                        "field": "vendor",
                        "type": "nominal",
                        "scale": {
                            "domain": named,
                            "range": [SERIES[2], SERIES[4], SERIES[0], SERIES[6], SERIES[1], MUTED],
                        },
                        "legend": {"title": None, "orient": "top"},
                    },
                    "tooltip": tip(
                        {
                            "chip": "chip",
                            "year": "year",
                            "gb": "GB",
                            "tbs": "TB/s",
                            "tflops": "16-bit TFLOP/s",
                            "ridge": "ridge, FLOP/B",
                            "usd": "$/h",
                        }
                    ),
                },
            },
            *({"data": {"values": rows}, **part} for part in labels(where, "chip", "datum.named")),
        ],
    )
