"""Ranked plans as charts: cost against speed, and one figure of several plans side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chipwise.report.charts.spec import (
    ACCENT,
    MUTED,
    Spec,
    axis,
    chart,
    halves,
    having_room,
    labels,
    ratio,
    said,
    ticks,
    tip,
)
from chipwise.report.media import MediaPlan
from chipwise.report.plan import Plan
from chipwise.report.plans import PlanRecord, PlanReport
from chipwise.report.records import Figure, PriceRecord

Row = dict[str, Any]
FULL = 0.999
"""share of the largest load: above it a plan runs full. Exact: loads are printed with three digits."""
NAMES = 14
"""Points that are named at most."""
Metric = tuple[str, str, Callable[[PlanRecord], Figure | None]]
OfNetwork = tuple[str, str, Callable[[MediaPlan], Figure | None]]


def _price(p: Plan) -> Figure | None:
    return Figure(p.price.mid, p.price.low, p.price.high, "published", False) if p.price else None


def _ms(f: Figure) -> Figure:
    return Figure(f.mid * 1e3, f.low * 1e3, f.high * 1e3, f.basis, f.provisional)


def at_most(p: PlanRecord) -> Figure | None:
    """What all chips sustain within the targets, of a plan for a given load."""
    if p.capacity is not None or p.load > FULL:
        return p.capacity
    most = p.largest_requests_per_s
    return Figure(most, most, most, p.tokens_per_s.basis, p.tokens_per_s.provisional)


def _of_chip(p: PlanRecord) -> Figure | None:
    """What a chip makes at full load: at a given one that is the question, and not a result."""
    return p.tokens_per_s_per_chip if at_most(p) is None else None


METRICS: dict[str, Metric] = {
    "cost": ("Cost", "dollars per hour", _price),
    "usd_out": ("Cost of output", "dollars per million output tokens", lambda p: p.usd_per_million_out),
    "tpot": ("TPOT", "ms per output token", lambda p: _ms(p.pace)),
    "ttft": ("TTFT", "ms to the first token", lambda p: _ms(p.ttft_s)),
    "speed": ("Speed for one user", "output tokens/s", lambda p: p.tokens_per_s_per_user),
    "largest": ("Largest load", "requests/s of all chips within the targets", at_most),
    "rate": ("Throughput of a chip", "output tokens/s per chip", _of_chip),
}
"""Figures of a plan for a language model by name: title, unit, and the figure where the plan has one."""
OF_NETWORK: dict[str, OfNetwork] = {
    "cost": ("Cost", "dollars per hour", _price),
    "usd_1000": ("Cost of samples", "dollars per 1,000 samples", lambda p: p.usd_per_1000),
    "time": ("Time of a request", "seconds", lambda p: p.latency_s),
    "rate": ("Throughput", "samples/s of all chips at most", lambda p: p.samples_per_s),
}
"""The same of models without tokens."""
DRAWN = 12
"""Plans with a price whose cost and speed are drawn, besides those on the front: others are no choice."""


def _drawn(report: PlanReport) -> list[tuple[PlanRecord, PriceRecord]]:
    """The first plans with a price and those of the front, each with its price."""
    priced = [(p, p.price) for p in report.plans if p.price]
    return [pair for at, pair in enumerate(priced) if at < DRAWN or pair[0].on_front]


def _points(report: PlanReport) -> list[dict[str, Any]]:
    """A point of the first plans with a price and of the front. Names where there is room, the front first."""
    priced = _drawn(report)
    sides = halves([price.mid for _, price in priced])
    rows = [_point(p, price) | {"half": half} for (p, price), half in zip(priced, sides, strict=True)]
    first = sorted(rows, key=lambda r: (not r["on_front"], r["rank"]))
    points = [(r["usd"], r["speed"], r["plan"], r["half"]) for r in first]
    ends = (
        (min(r["usd_low"] for r in rows), max(r["usd_high"] for r in rows)),
        (min(r["slow"] for r in rows), max(r["fast"] for r in rows)),
    )
    for row, free in zip(first, having_room(points, ends, NAMES), strict=True):
        row["name"] = row["plan"] if free else ""
    return rows


def without_price(report: PlanReport) -> str:
    """How many plans `pareto` leaves out, and the fastest of them, as a sentence; "" where all have a price."""
    without = [p for p in report.plans if not p.price]
    if not without:
        return ""
    fastest = min(without, key=lambda p: p.pace.mid)
    many = "1 plan has" if len(without) == 1 else f"{len(without)} plans have"
    return (
        f"{many} no known price and {'is' if len(without) == 1 else 'are'} not drawn; "
        f"the fastest is {fastest.chips}x {fastest.chip} at {said(1.0 / fastest.pace.mid)} tokens/s."
    )


def _window(rows: Sequence[Row], mid: str, low: str, high: str) -> list[float]:
    """The ends of an axis on which the points fill the picture: intervals may reach beyond it."""
    mids = [row[mid] for row in rows]
    least, most = min(row[low] for row in rows), max(row[high] for row in rows)
    return [max(least, 0.7 * min(mids)), min(most, 1.4 * max(mids))]


def pareto(report: PlanReport) -> Spec:
    """Dollars per hour against tokens per second that one user sees, front and intervals of both. Plans without a known
    price are left out, which `without_price` says; one at least has one.

    Two selections: `brush` (a rectangle) and `pick` (a point, by `rank`).
    """
    rows = _points(report)
    front = sorted((r for r in rows if r["on_front"]), key=lambda r: float(str(r["usd"])))
    words = ", ".join(f"{r['plan']} at ${said(r['usd'])}/h and {said(r['speed'])} tokens/s" for r in front)
    apart = f" {apart}" if (apart := without_price(report)) else ""
    place = {
        "x": ratio("usd", "dollars per hour, all chips (log)", [r["usd"] for r in rows]),
        "y": ratio("speed", "tokens/s that one user sees (log)", [r["speed"] for r in rows]),
    }
    for channel, mid, low, high in (("x", "usd", "usd_low", "usd_high"), ("y", "speed", "slow", "fast")):
        place[channel]["scale"]["domain"] = _window(rows, mid, low, high)
    shown = tip(
        {
            "plan": "plan",
            "layout": "layout",
            "cost": "$/h",
            "speed": "tokens/s per user",
            "ttft": "TTFT, ms",
            "tpot": "TPOT, ms",
            "bound": "bottleneck",
            "basis": "basis",
        }
    )
    picked = {"param": "pick", "empty": False}
    whisker = {"type": "rule", "clip": True, "opacity": 0.22, "strokeWidth": 1.5}
    return chart(
        f"Cost against speed of {len(rows)} plans; left is cheaper, up is faster. On the front: {words}.{apart}",
        height=360,
        data={"values": rows},
        layer=[
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5, "opacity": 0.6},
                "transform": [{"filter": "datum.on_front"}],
                "encoding": {**place, "order": {"field": "usd"}, "color": {"value": ACCENT}},
            },
            {"mark": whisker, "encoding": {**place, "y": axis("slow", ""), "y2": {"field": "fast"}}},
            {"mark": whisker, "encoding": {**place, "x": axis("usd_low", ""), "x2": {"field": "usd_high"}}},
            {
                "params": [
                    {"name": "brush", "select": {"type": "interval"}},
                    {"name": "pick", "select": {"type": "point", "fields": ["rank"], "on": "click", "toggle": False}},
                ],
                "mark": {"type": "point", "filled": True, "cursor": "pointer"},
                "encoding": {
                    **place,
                    "size": {"condition": {"test": {"or": [picked, "datum.on_front"]}, "value": 130}, "value": 60},
                    "shape": {"condition": {"test": "datum.on_front", "value": "diamond"}, "value": "circle"},
                    "color": {"condition": {"test": "datum.on_front", "value": ACCENT}, "value": MUTED},
                    "opacity": {"condition": {"param": "brush", "value": 0.95}, "value": 0.2},
                    "tooltip": shown,
                },
            },
            *labels(place, "name", "datum.name !== ''"),
        ],
    )


def bars(plans: Sequence[Any], metric: str, among: Mapping[str, Any] = METRICS) -> Spec:
    """One figure of `METRICS`, or of others that the plans have, with its interval, in the order of the plans."""
    title, unit, of = among[metric]
    found = [(p, of(p)) for p in plans]
    rows = [
        {
            "plan": f"{p.chips}x {p.chip}",
            "mid": f.mid,
            "low": f.low,
            "high": f.high,
            "text": said(f.mid),
            "basis": f.basis,
            "bound": p.bound,
        }
        for p, f in found
        if f is not None
    ]
    words = "; ".join(f"{r['plan']} {r['mid']:.3g}" for r in rows)
    most = max((f.high for _, f in found if f is not None), default=1.0)
    y = axis("plan", "", "nominal", sort=None, axis={"labelLimit": 170, "title": None})
    return chart(
        f"{title} in {unit}: {words}.",
        height={"step": 26},
        data={"values": rows},
        encoding={"y": y},
        layer=[
            {
                "mark": {"type": "bar", "height": 13, "opacity": 0.85, "cornerRadiusEnd": 2},
                "encoding": {
                    "x": axis("mid", unit, axis=ticks(4), scale={"domainMax": 1.3 * most, "nice": False}),
                    "color": {"value": ACCENT},
                    "tooltip": tip({"plan": "plan", "mid": unit, "low": "low", "high": "high", "basis": "basis"}),
                },
            },
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": axis("low", unit), "x2": {"field": "high"}}},
            {
                "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 11},
                "encoding": {"x": axis("high", unit), "text": {"field": "text"}},
            },
        ],
    )


def _point(p: PlanRecord, price: PriceRecord) -> Row:
    return {
        "rank": p.rank,
        "plan": f"{p.chips}x {p.chip}",
        "layout": p.spread,
        "usd": price.mid,
        "usd_low": price.low,
        "usd_high": price.high,
        "cost": f"{said(price.mid)} ({said(price.low)} to {said(price.high)})",
        "speed": 1.0 / p.pace.mid,
        "slow": 1.0 / p.pace.high,
        "fast": 1.0 / p.pace.low,
        "ttft": p.ttft_s.mid * 1e3,
        "tpot": p.pace.mid * 1e3,
        "bound": p.bound,
        "basis": p.pace.basis,
        "on_front": p.on_front,
    }
