"""Throughput of a chip against the speed that one user sees: a curve for each chip, layouts on it, measured points.

Three selections: `zoom` (both axes follow wheel and drag), `shown` (chips that were clicked in the legend) and `pin`
(points whose figures stay written).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chipwise.report.charts.spec import ACCENT, SERIES, Spec, chart, having_room, labels, ratio, said, tip
from chipwise.report.frontier import FrontierPoint, FrontierReport
from chipwise.report.records import Figure
from chipwise.values import dataclass

STAR = "M0,-1L0.23,-0.31L0.95,-0.31L0.36,0.12L0.59,0.81L0,0.38L-0.59,0.81L-0.36,0.12L-0.95,-0.31L-0.23,-0.31Z"
"""Exact: the outline of a star of five points in a unit circle, as a path of SVG."""

X = "tokens/s that one user sees (log)"
REACH = 5.0
"""How far the vertical axis goes beyond the worst of what decides: measured points, plans and the best of each chip."""
WORTH = 2.0
"""An axis is cut where that saves at least this factor."""
EDGE = 0.88
"""Of the width: a name beyond it stands to the left of its point."""
SHOWN = {"filter": {"param": "shown"}}


@dataclass(frozen=True)
class Metric:
    """What stands on the vertical axis: its `name` on the switch, its unit, the figure of a point as middle and ends,
    and the `power` of measured over predicted throughput that it goes with (0: nothing is said of measurements)."""

    name: str
    unit: str
    of: Callable[[FrontierPoint], tuple[float, float, float] | None]
    power: int = 1


def _ends(figure: Figure | None) -> tuple[float, float, float] | None:
    return None if figure is None else (figure.mid, figure.low, figure.high)


def _per_megawatt(p: FrontierPoint) -> tuple[float, float, float] | None:
    """A megawatt is a million joules a second."""
    j = p.joules_per_token
    return None if j is None else (1e6 / j.mid, 1e6 / j.high, 1e6 / j.low)


def _users(p: FrontierPoint) -> tuple[float, float, float]:
    each = p.concurrency / p.chips
    return each, each, each


AXES: Mapping[str, Metric] = {
    "rate": Metric("Throughput", "output tokens/s per chip", lambda p: _ends(p.tokens_per_s_per_chip)),
    "usd": Metric("Cost", "$ per million output tokens", lambda p: _ends(p.usd_per_million_out), -1),
    "power": Metric("Power", "output tokens/s per MW of chips", _per_megawatt),
    "energy": Metric("Energy", "joules of chips per output token", lambda p: _ends(p.joules_per_token), -1),
    "users": Metric("Users", "users at once per chip", _users, 0),
}
"""Vertical axes of the curves, the first first."""


def _curve(points: Sequence[FrontierPoint], metric: Metric) -> list[dict[str, Any]]:
    """The points of one chip; the last carries its name, others their layout where it changes."""
    rows: list[dict[str, Any]] = []
    before = ""
    for p in points:
        figure = metric.of(p)
        if figure is None:
            continue
        name = f"{p.chips}x {p.layout}" if p.layout != "unsharded" else f"{p.chips}x"
        rows.append(
            {
                "chip": p.chip,
                "layout": f"{p.chips}x, {p.layout}, {p.precision}, {p.runtime}",
                "user": p.tokens_per_s_per_user.mid,
                "y": figure[0],
                "low": figure[1],
                "high": figure[2],
                "load": p.concurrency,
                "ttft": p.ttft_s.mid * 1e3,
                "bound": p.bound,
                "basis": p.tokens_per_s_per_chip.basis,
                "label": name if name != before else "",
                "named": False,
            }
        )
        before = name
    if rows:
        rows[-1] |= {"label": rows[-1]["chip"], "named": True}
    return rows


def _band(
    rows: Sequence[Mapping[str, Any]], deciding: Sequence[Mapping[str, Any]], metric: Metric
) -> tuple[float, float]:
    """The ends of the vertical axis: what decides and `REACH` beyond it on the worse side, all of it where that cuts
    little."""
    low, high = min(r["low"] for r in rows), max(r["high"] for r in rows)
    if metric.power < 0:
        end = REACH * max(r["y"] for r in deciding)
        return low, (end if WORTH * end < high else high)
    end = min(r["y"] for r in deciding) / REACH
    return (end if end > WORTH * low else low), high


def _named(rows: list[dict[str, Any]], band: tuple[float, float]) -> None:
    """Takes the labels off that have no room: names of chips have it before those of layouts, and what lies in the
    `band` before what lies beyond it. Says on which side of its point a label stands."""
    ends = min(r["user"] for r in rows), max(r["user"] for r in rows)
    edge = ends[0] * (ends[1] / ends[0]) ** EDGE
    for row in rows:
        row["half"] = "left" if row["user"] <= edge else "right"
    ordered = sorted(rows, key=lambda r: (not r["named"], not band[0] <= r["y"] <= band[1]))
    points = [(r["user"], r["y"], r["label"], r["half"]) for r in ordered]
    for row, free in zip(ordered, having_room(points, (ends, band)), strict=True):
        row["label"] = row["label"] if free else ""


def _on(curve: Sequence[Mapping[str, Any]], user: float) -> tuple[float, float]:
    """The point of a curve at a speed, or at its nearer end."""
    ordered = sorted((math.log(r["user"]), math.log(r["y"])) for r in curve)
    xs, ys = zip(*ordered, strict=True)
    x = min(max(math.log(user), xs[0]), xs[-1])
    after = min(max(bisect(xs, x), 1), len(xs) - 1)
    if len(xs) == 1 or xs[after] == xs[after - 1]:
        return math.exp(x), math.exp(ys[min(after, len(ys) - 1)])
    part = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    return math.exp(x), math.exp(ys[after - 1] + part * (ys[after] - ys[after - 1]))


def _measured(report: FrontierReport, curves: Mapping[str, Any], metric: Metric) -> list[dict[str, Any]]:
    """What was measured, beside the curve of its chip by as much as it is from what is predicted for its own
    conditions."""
    found = []
    for m in report.measured:
        curve = curves.get(m.chip)
        if not curve or m.ratio is None or not metric.power:
            continue
        user, y = _on(curve, m.tokens_per_s_per_user)
        found.append(
            {
                "chip": m.chip,
                "user": user,
                "y": y * m.ratio**metric.power,
                "what": f"{m.chips}x {m.chip}, {m.model}, {m.precision}",
                "there": f"{said(m.tokens_per_s_per_user)} tokens/s per user, {said(m.tokens_per_s_per_chip)} per chip",
                "of": f"{m.ratio:.0%}",
                "source": m.source,
                "kind": "same" if m.same else "near",
            }
        )
    return found


def _stars(report: FrontierReport, curves: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The plans that were asked about, on the curves of their chips."""
    found = []
    for chip, speed in report.speeds.items():
        if chip in curves:
            user, y = _on(curves[chip], speed)
            found.append({"chip": chip, "user": user, "y": y, "what": f"the plan on {chip}"})
    return found


def _marks(
    measured: list[dict[str, Any]], stars: list[dict[str, Any]], place: Spec, hues: Spec, unit: str
) -> list[Spec]:
    """The layers of crosses and stars, where there are some."""
    found: list[Spec] = []
    drawn = {"type": "point", "filled": True, "stroke": "white", "clip": True}
    if measured:
        told = {"what": "measured", "there": "there", "of": "of what is predicted for it", "source": "source"}
        found.append(
            {
                "data": {"values": measured},
                "transform": [SHOWN],
                "mark": {**drawn, "shape": "cross", "size": 90},
                "encoding": {
                    **place,
                    "color": hues,
                    "opacity": {"condition": {"test": "datum.kind === 'same'", "value": 1.0}, "value": 0.45},
                    "tooltip": tip(told),
                },
            }
        )
    if stars:
        found.append(
            {
                "data": {"values": stars},
                "transform": [SHOWN],
                "mark": {**drawn, "shape": STAR, "size": 420},
                "encoding": {
                    **place,
                    "color": {"value": ACCENT},
                    "tooltip": tip({"what": "star", "user": "tokens/s per user", "y": unit}),
                },
            }
        )
    return found


def _points(place: Spec, hues: Spec, unit: str) -> list[Spec]:
    """The layers of points, which can be hovered, picked from the legend and pinned, and of the figures of those that
    are pinned."""
    shown = {
        "chip": "chip",
        "layout": "layout",
        "user": "tokens/s per user",
        "y": unit,
        "low": "80 % from",
        "high": "80 % to",
        "load": "requests in flight",
        "ttft": "TTFT, ms",
        "bound": "bottleneck",
        "basis": "basis",
    }
    pinned = {"param": "pin", "empty": False}
    user, y = (f"format(datum.{name}, datum.{name} < 1000 ? '.3~r' : ',.0f')" for name in ("user", "y"))
    words = f"[datum.chip, {user} + ' tokens/s per user', {y} + ' {unit}']"
    picking: dict[str, Any] = {"type": "point", "on": {"type": "click", "markname": "dots_marks"}}
    params = [
        {"name": "zoom", "select": "interval", "bind": "scales"},
        {"name": "shown", "select": {"type": "point", "fields": ["chip"]}, "bind": "legend"},
        {"name": "pin", "select": {**picking, "fields": ["chip", "user"], "toggle": "true", "clear": "dblclick"}},
    ]
    return [
        {
            "name": "dots",
            "params": params,
            "transform": [SHOWN],
            "mark": {"type": "point", "filled": True, "cursor": "pointer", "clip": True},
            "encoding": {
                **place,
                "color": hues,
                "size": {"condition": {**pinned, "value": 130}, "value": 42},
                "tooltip": tip(shown),
            },
        },
        {
            "transform": [SHOWN, {"filter": pinned}],
            "mark": {
                "type": "text",
                "text": {"expr": words},
                "align": {"expr": "datum.half"},
                "dx": {"expr": "datum.half === 'left' ? 10 : -10"},
                "dy": 14,
                "fontWeight": 600,
                "clip": True,
            },
            "encoding": place,
        },
    ]


def frontier_variants(report: FrontierReport) -> dict[str, Spec]:
    """The curves under each metric that any point has, by its name."""
    return {
        metric.name: frontier_curves(report, key)
        for key, metric in AXES.items()
        if any(metric.of(p) for p in report.points)
    }


def frontier_curves(report: FrontierReport, key: str = "rate") -> Spec:
    """One curve for each chip under one of `AXES`, named at its slow end; the layout is written where it changes.
    Stars are plans. Crosses are measured: thin ones of a near model."""
    metric = AXES[key]
    own = _curves(report, metric)
    rows = [row for its in own.values() for row in its]
    measured, stars = _measured(report, own, metric), _stars(report, own)
    best = [min(its, key=lambda r: r["y"] * (-1 if metric.power >= 0 else 1)) for its in own.values()]
    band = _band(rows, [*measured, *stars, *best], metric)
    cut = len([r for r in rows if not band[0] <= r["y"] <= band[1]])
    _named(rows, band)
    title = f"{metric.unit} (log)"
    place = {"x": ratio("user", X), "y": ratio("y", title)}
    if cut:
        place["y"]["scale"] |= {"domainMax": band[1]} if metric.power < 0 else {"domainMin": band[0]}
    hues = {
        "field": "chip",
        "type": "nominal",
        "scale": {"domain": list(own), "range": list(SERIES)},
        "legend": {"title": None, "orient": "top", "symbolOpacity": 1.0},
    }
    layers: list[Spec] = [
        {
            "transform": [SHOWN],
            "mark": {"type": "area", "opacity": 0.1, "clip": True},
            "encoding": {"x": place["x"], "y": {**place["y"], "field": "low"}, "y2": {"field": "high"}, "color": hues},
        },
        {
            "transform": [SHOWN],
            "mark": {"type": "line", "strokeWidth": 2, "clip": True},
            "encoding": {**place, "color": hues, "order": {"field": "user"}},
        },
        *labels(place, "label", "datum.label !== ''", (SHOWN,), clip=True),
        *_points(place, hues, metric.unit),
        *_marks(measured, stars, place, hues, metric.unit),
    ]
    return chart(
        _in_words(own, metric, len(measured), stars),
        height=360,
        data={"values": rows},
        layer=layers,
        **_cut_off(cut, len(rows), band, metric),
    )


def _curves(report: FrontierReport, metric: Metric) -> dict[str, list[dict[str, Any]]]:
    """The points of each chip that has some of a metric."""
    chips = dict.fromkeys(p.chip for p in report.points)
    found = {c: _curve([p for p in report.points if p.chip == c], metric) for c in chips}
    return {c: its for c, its in found.items() if its}


def _cut_off(cut: int, of: int, band: tuple[float, float], metric: Metric) -> Spec:
    """What is said above the picture of points that lie beyond its axis; nothing where all are within."""
    if not cut:
        return {}
    beyond = f"above {said(band[1])}" if metric.power < 0 else f"below {said(band[0])}"
    return {"title": {"text": f"{cut} of {of} points lie {beyond}: drag to see them"}}


def _in_words(
    own: Mapping[str, Sequence[Mapping[str, Any]]], metric: Metric, measured: int, stars: Sequence[Mapping[str, Any]]
) -> str:
    """What the picture shows."""
    words = "; ".join(
        f"{c} from {said(its[0]['user'])} tokens/s per user at {said(its[0]['y'])} to "
        f"{said(its[-1]['user'])} at {said(its[-1]['y'])}"
        for c, its in own.items()
    )
    counted = f" Measured: {measured} points." if measured else ""
    counted += f" The plan stands at {', '.join(said(s['user']) for s in stars)} tokens/s per user." if stars else ""
    better = "down" if metric.power < 0 else "up"
    return f"{metric.unit} against speed per user; {better} and right is better. {words}.{counted}"
