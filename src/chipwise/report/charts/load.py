"""A plan under rising load: TTFT, TPOT and throughput over the requests in flight."""

from __future__ import annotations

from collections.abc import Callable

from chipwise.report.charts.spec import ACCENT, MUTED, Spec, axis, chart, tip
from chipwise.report.operators import LoadPoint, LoadReport
from chipwise.report.records import Figure

__all__ = ["CURVES", "load_curve"]


def _scaled(figure: Figure, by: float) -> tuple[float, float, float]:
    return figure.mid * by, figure.low * by, figure.high * by


CURVES: dict[str, tuple[str, str, Callable[[LoadPoint], tuple[float, float, float]]]] = {
    "ttft": ("Time to the first token", "TTFT, ms", lambda p: _scaled(p.ttft_s, 1e3)),
    "tpot": ("Time per output token", "TPOT, ms", lambda p: _scaled(p.tpot_s or p.ttft_s, 1e3)),
    "tokens": ("Throughput of the replica", "output tokens/s", lambda p: _scaled(p.tokens_per_s, 1.0)),
}


def _slow(p: LoadPoint, curve: str) -> float | None:
    """The 95th percentile of a time, None where it is not known or is no time."""
    tail = p.tails.get("p95")
    return getattr(tail, f"{curve}_s", None) if tail else None


def load_curve(report: LoadReport, curve: str) -> Spec:
    """One of `CURVES` with its 80 % band; dashed the 95th percentile of requests, and a line at the target."""
    title, unit, of = CURVES[curve]
    target = {"ttft": report.ttft_s, "tpot": report.tpot_s}.get(curve)
    slow = [(p.concurrency, _slow(p, curve)) for p in report.points]
    rows = []
    for p in report.points:
        mid, low, high = of(p)
        rows.append(
            {
                "load": p.concurrency,
                "mid": mid,
                "low": low,
                "high": high,
                "requests": p.requests_per_s,
                "bound": p.bound,
            }
        )
    first, last = rows[0], rows[-1]
    x = axis(
        "load",
        "requests in flight (log)",
        scale={"type": "log", "nice": False},
        axis={"tickCount": 5, "format": "~s"},
    )
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.16, "color": ACCENT},
            "encoding": {"x": x, "y": axis("low", unit), "y2": {"field": "high"}},
        },
        {
            "mark": {
                "type": "line",
                "color": ACCENT,
                "strokeWidth": 2,
                "point": {"color": ACCENT, "size": 28},
            },
            "encoding": {
                "x": x,
                "y": axis("mid", unit, axis={"tickCount": 5, "format": "~s"}),
                "tooltip": tip(
                    {
                        "load": "in flight",
                        "mid": unit,
                        "low": "low",
                        "high": "high",
                        "requests": "requests/s",
                        "bound": "bottleneck",
                    }
                ),
            },
        },
    ]
    if any(late is not None for _, late in slow):
        tails = [{"load": load, "p95": 1e3 * late} for load, late in slow if late is not None]
        layers.append(
            {
                "data": {"values": tails},
                "mark": {"type": "line", "strokeDash": [2, 3], "strokeWidth": 1.5, "color": ACCENT},
                "encoding": {"x": x, "y": axis("p95", unit), "tooltip": tip({"p95": "95 % of requests, ms"})},
            }
        )
    if target is not None:
        layers.append(
            {
                "data": {"values": [{"target": 1e3 * target}]},
                "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.5, "color": MUTED},
                "encoding": {"y": {"field": "target", "type": "quantitative"}},
            }
        )
    return chart(
        f"{title} from {first['load']:.3g} to {last['load']:.4g} requests in flight: "
        f"{first['mid']:.3g} to {last['mid']:.3g} {unit}.",
        height=200,
        data={"values": rows},
        layer=layers,
    )
