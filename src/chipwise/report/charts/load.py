"""A plan under load: TTFT, TPOT and throughput over the requests in flight, and the arrivals of a day."""

from __future__ import annotations

from collections.abc import Callable

from chipwise.report.charts.spec import ACCENT, MUTED, Spec, axis, chart, ticks, tip
from chipwise.report.operators import LoadPoint, LoadReport
from chipwise.report.plans import PlanRecord
from chipwise.report.records import Figure


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
    x = axis("load", "requests in flight (log)", scale={"type": "log", "nice": False}, axis=ticks())
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.16, "color": ACCENT},
            "encoding": {"x": x, "y": axis("low", unit), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": ACCENT, "strokeWidth": 2, "point": {"color": ACCENT, "size": 28}},
            "encoding": {
                "x": x,
                "y": axis("mid", unit, axis=ticks()),
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


def day_curve(plan: PlanRecord) -> Spec:
    """A day's arrivals against what the plan sustains with all replicas, and with replicas that follow the rate. Raises
    `ValueError` for a plan that was not asked about a day."""
    day = plan.day
    if day is None:
        raise ValueError("the plan was not asked about a day")
    hours = 24.0 / len(day.rates_per_s)
    # what a simulation found, where there is a policy; else what formulas count
    follow = plan.scaling.clock if plan.scaling and plan.scaling.clock else day.scaled_replicas
    mean = plan.scaling.replica_h / 24.0 if plan.scaling and plan.scaling.clock else day.mean_scaled_replicas
    rows = [
        {
            "from": i * hours,
            "to": (i + 1) * hours,
            "rate": rate,
            "room": n * day.room_per_s,
            "replicas": n,
            "all": day.replicas * day.room_per_s,
        }
        for i, (rate, n) in enumerate(zip(day.rates_per_s, follow, strict=True))
    ]
    x = axis("from", "hour of the day", scale={"domain": [0, 24], "nice": False}, axis={"tickCount": 8})
    shown = tip({"from": "hour", "rate": "requests/s", "replicas": "replicas that follow", "room": "they sustain"})
    step: Spec = {"y": axis("room", "requests/s"), "x2": {"field": "to"}, "x": x}
    busiest, idle = max(day.rates_per_s), min(day.rates_per_s)
    return chart(
        f"A day's arrivals, {idle:.3g} to {busiest:.3g} requests/s, on {day.replicas} replicas that sustain "
        f"{day.replicas * day.room_per_s:.3g}: {day.mean_utilisation:.0%} used on average, "
        f"{day.peak_utilisation:.0%} at the peak. Replicas that follow the rate are "
        f"{mean:.3g} on average.",
        height=220,
        data={"values": rows},
        layer=[
            {
                "mark": {"type": "rect", "opacity": 0.75, "color": ACCENT},
                "encoding": {
                    "x": x,
                    "x2": {"field": "to"},
                    "y": axis("rate", "requests/s"),
                    "y2": {"datum": 0},
                    "tooltip": shown,
                },
            },
            {"mark": {"type": "rule", "strokeWidth": 2, "color": "#e08e0b"}, "encoding": step},
            {
                "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.5, "color": MUTED},
                "encoding": {**step, "y": axis("all", "requests/s")},
            },
        ],
    )
