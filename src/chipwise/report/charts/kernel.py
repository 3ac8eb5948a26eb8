"""One operator on several chips: time by resource, bytes by level of memory."""

from __future__ import annotations

from chipwise.report.charts.spec import RESOURCES, SERIES, Spec, axis, chart, color, filling, ticks, tip
from chipwise.report.kernel import KernelReport


def time_bars(report: KernelReport) -> Spec:
    """Exposed microseconds by resource; together they are the time."""
    rows = [
        {
            "chip": k.chip,
            "resource": name,
            "order": list(RESOURCES).index(name) if name in RESOURCES else 99,
            "us": seconds * 1e6,
            "share": f"{seconds / k.time_s.mid:.1%}",
        }
        for k in report.kernels
        for name, seconds in k.exposed_s.items()
        if seconds > 1e-12
    ]
    used = [r for r in RESOURCES if any(row["resource"] == r for row in rows)]
    words = "; ".join(f"{k.chip} {k.time_s.mid * 1e6:.3g} µs, {k.bound}" for k in report.kernels)
    return chart(
        f"Time of {report.operator} by what it waits for: {words}.",
        height=filling(len(report.kernels)),
        data={"values": rows},
        mark={"type": "bar", "height": {"band": 0.6}},
        encoding={
            "y": axis("chip", "", "nominal", sort=None, axis={"title": None, "labelLimit": 150}),
            "x": axis("us", "µs", stack="zero", axis=ticks()),
            "color": color(used),
            "order": {"field": "order"},
            "tooltip": tip({"chip": "chip", "resource": "resource", "us": "µs", "share": "share"}),
        },
    )


def level_bars(report: KernelReport) -> Spec:
    """Bytes per multiply-accumulate through every level of memory, on a logarithmic scale."""
    rows = [
        {"chip": k.chip, "level": v.name, "bytes": v.bytes_per_mac, "mb": v.bytes / 1e6, "note": v.note}
        for k in report.kernels
        for v in k.levels
        if v.bytes_per_mac > 0
    ]
    names = list(dict.fromkeys(str(r["level"]) for r in rows))
    words = "; ".join(f"{r['chip']} {r['level']} {r['bytes']:.3g}" for r in rows)
    chips = [k.chip for k in report.kernels]
    return chart(
        f"Bytes per multiply-accumulate by level of memory: {words}.",
        height={"step": 24},
        data={"values": rows},
        mark={"type": "point", "filled": True, "size": 130},
        encoding={
            "y": axis("level", "", "nominal", sort=names, axis={"title": None, "grid": True, "labelLimit": 150}),
            "x": axis(
                "bytes",
                "bytes per multiply-accumulate (log)",
                scale={"type": "log", "nice": False, "padding": 12},
                axis={"tickCount": 5, "format": "~g"},
            ),
            "color": {
                "field": "chip",
                "type": "nominal",
                "scale": {"domain": chips, "range": list(SERIES)},
                "legend": {"title": None, "orient": "top"},
            },
            "shape": {
                "field": "chip",
                "type": "nominal",
                "scale": {"domain": chips},
                "legend": {"title": None, "orient": "top"},
            },
            "tooltip": tip(
                {"chip": "chip", "level": "level", "bytes": "B per MAC", "mb": "MB in total", "note": "how"}
            ),
        },
    )
