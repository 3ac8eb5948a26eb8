"""Throughput of a chip against the speed that one user sees: a curve for each chip, layouts on it, measured points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.report.charts.spec import SERIES, Spec, chart, having_room, ratio, said, tip
from chipwise.report.frontier import FrontierPoint, FrontierReport

X = "tokens/s that one user sees (log)"
Y = "output tokens/s per chip (log)"


def _curve(points: Sequence[FrontierPoint]) -> list[dict[str, Any]]:
    """The points of one chip; the last carries its name, others their layout where it changes."""
    rows: list[dict[str, Any]] = []
    before = ""
    for p in points:
        name = f"{p.chips}x {p.layout}" if p.layout != "unsharded" else f"{p.chips}x"
        per_chip, last = p.tokens_per_s_per_chip, p is points[-1]
        rows.append(
            {
                "chip": p.chip,
                "layout": f"{p.chips}x, {p.layout}, {p.precision}, {p.runtime}",
                "user": p.tokens_per_s_per_user.mid,
                "per_chip": per_chip.mid,
                "low": per_chip.low,
                "high": per_chip.high,
                "load": p.concurrency,
                "ttft": p.ttft_s.mid * 1e3,
                "bound": p.bound,
                "basis": per_chip.basis,
                "label": p.chip if last else name if name != before else "",
                "named": last,
            }
        )
        before = name
    return rows


def _named(rows: list[dict[str, Any]]) -> None:
    """Takes the labels off that have no room: names of chips have it before those of layouts."""
    ends = tuple(
        (min(r[n] for r in rows), max(r[m] for r in rows)) for n, m in (("user", "user"), ("low", "high"))
    )
    ordered = sorted(rows, key=lambda r: not r["named"])
    points = [(r["user"], r["per_chip"], r["label"], "left") for r in ordered]
    for row, free in zip(ordered, having_room(points, (ends[0], ends[1])), strict=True):
        row["label"] = row["label"] if free else ""


def _measured(report: FrontierReport) -> list[dict[str, Any]]:
    """What was measured, as points."""
    return [
        {
            "chip": m.chip,
            "user": m.tokens_per_s_per_user,
            "per_chip": m.tokens_per_s_per_chip,
            "what": f"{m.chips}x {m.chip}, {m.model}, {m.precision}",
            "source": m.source,
            "kind": "same" if m.same else "near",
            "speed": "99 % of requests are at least as fast" if m.least else "mean",
        }
        for m in report.measured
    ]


def frontier_curves(report: FrontierReport) -> Spec:
    """One curve for each chip, which is named at its slow end; the layout is written where it changes. Crosses are
    measured: thin ones of a near model, or of 99 % of requests in place of a mean."""
    chips = list(dict.fromkeys(p.chip for p in report.points))
    rows = [row for chip in chips for row in _curve([p for p in report.points if p.chip == chip])]
    _named(rows)
    own = {c: [r for r in rows if r["chip"] == c] for c in chips}
    words = "; ".join(
        f"{c} from {said(its[0]['user'])} tokens/s per user at {said(its[0]['per_chip'])} per chip to "
        f"{said(its[-1]['user'])} at {said(its[-1]['per_chip'])}"
        for c, its in own.items()
    )
    place = {"x": ratio("user", X), "y": ratio("per_chip", Y)}
    hues = {
        "field": "chip",
        "type": "nominal",
        "scale": {"domain": chips, "range": list(SERIES)},
        "legend": {"title": None, "orient": "top", "symbolOpacity": 1.0},
    }
    shown = {
        "chip": "chip",
        "layout": "layout",
        "user": "tokens/s per user",
        "per_chip": "tokens/s per chip",
        "low": "80 % from",
        "high": "80 % to",
        "load": "requests in flight",
        "ttft": "TTFT, ms",
        "bound": "bottleneck",
        "basis": "basis",
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.1},
            "encoding": {
                "x": place["x"],
                "y": ratio("low", Y),
                "y2": {"field": "high"},
                "color": hues,
            },
        },
        {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {**place, "color": hues, "order": {"field": "user"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 42},
            "encoding": {**place, "color": hues, "tooltip": tip(shown)},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 6, "dy": -7, "fontSize": 10},
            "transform": [{"filter": "datum.label !== ''"}],
            "encoding": {**place, "text": {"field": "label"}},
        },
    ]
    measured = _measured(report)
    if measured:
        layers.append(
            {
                "data": {"values": measured},
                "mark": {"type": "point", "shape": "cross", "filled": True, "size": 90, "stroke": "white"},
                "encoding": {
                    **place,
                    "color": hues,
                    "opacity": {"condition": {"test": "datum.kind === 'same'", "value": 1.0}, "value": 0.45},
                    "tooltip": tip(
                        {
                            "what": "measured",
                            "user": "tokens/s per user",
                            "per_chip": "tokens/s per chip",
                            "speed": "speed",
                            "source": "source",
                        }
                    ),
                },
            }
        )
    counted = (
        f" Measured: {len(measured)} points." if measured else " Nothing was measured with both figures."
    )
    return chart(
        f"Throughput per chip against speed per user; up and right is better. {words}.{counted}",
        height=360,
        data={"values": rows},
        layer=layers,
    )
