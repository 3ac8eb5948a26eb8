"""Plans for training: cost against turnaround, scaling, and what a step is made of."""

from __future__ import annotations

from chipwise.report.charts.spec import (
    ACCENT,
    MUTED,
    RESOURCES,
    SERIES,
    Spec,
    axis,
    chart,
    color,
    filling,
    halves,
    labels,
    ratio,
    said,
    tip,
)
from chipwise.report.training import OVERHEADS, TrainReport


def turnaround(report: TrainReport) -> Spec:
    """Days against dollars of every plan, with the front."""
    paid = [(p, p.usd.mid) for p in report.plans if p.usd is not None]
    sides = halves([usd for _, usd in paid])
    rows = [
        {
            "half": half,
            "rank": p.rank,
            "plan": f"{p.chips:,}x {p.chip}",
            "layout": p.layout.label,
            "days": p.days.mid,
            "early": p.days.low,
            "late": p.days.high,
            "usd": usd,
            "mfu": f"{p.mfu:.0%}",
            "bound": p.bound,
            "on_front": p.on_front,
        }
        for (p, usd), half in zip(paid, sides, strict=True)
    ]
    words = "; ".join(f"{r['plan']} {said(r['days'])} days, ${said(r['usd'])}" for r in rows if r["on_front"])
    place = {
        "x": ratio("usd", "dollars (log)", [usd for _, usd in paid]),
        "y": ratio("days", "days (log)", [end for p, _ in paid for end in (p.days.low, p.days.high)]),
    }
    return chart(
        f"Cost against turnaround of {len(rows)} training plans. On the front: {words}.",
        height=320,
        data={"values": rows},
        layer=[
            {
                "mark": {"type": "rule", "opacity": 0.25, "strokeWidth": 1.5},
                "encoding": {**place, "y": axis("early", ""), "y2": {"field": "late"}},
            },
            {
                "mark": {"type": "point", "filled": True},
                "encoding": {
                    **place,
                    "size": {"condition": {"test": "datum.on_front", "value": 130}, "value": 60},
                    "shape": {"condition": {"test": "datum.on_front", "value": "diamond"}, "value": "circle"},
                    "color": {"condition": {"test": "datum.on_front", "value": ACCENT}, "value": MUTED},
                    "tooltip": tip(
                        {
                            "plan": "plan",
                            "layout": "layout",
                            "days": "days",
                            "usd": "$",
                            "mfu": "MFU",
                            "bound": "bottleneck",
                        }
                    ),
                },
            },
            *labels(place, "plan", "datum.on_front"),
        ],
    )


def scaling(report: TrainReport, kind: str) -> Spec:
    """Efficiency over the number of chips, `kind` strong (one batch) or weak (work grows with the chips)."""
    rows = [
        {
            "chip": s.chip,
            "chips": s.chips,
            "efficiency": s.efficiency,
            "tokens": s.tokens_per_s,
            "besides": ", ".join(f"{name} {s.shares[name]:.0%}" for name in OVERHEADS),
            "label": s.label,
        }
        for s in report.scaling
        if s.kind == kind
    ]
    chips = list(dict.fromkeys(str(r["chip"]) for r in rows))
    words = "; ".join(f"{r['chips']} x {r['chip']} {r['efficiency']:.0%}" for r in rows)
    return chart(
        f"Efficiency of {kind} scaling at the best layout of every count: {words}.",
        height=230,
        data={"values": rows},
        mark={"type": "line", "point": {"size": 42}, "strokeWidth": 2},
        encoding={
            "x": axis(
                "chips",
                "chips (log)",
                scale={"type": "log", "base": 2, "nice": False},
                axis={
                    "values": sorted({s.chips for s in report.scaling if s.kind == kind}),
                    "format": ",",
                    "labelOverlap": "greedy",
                    "labelSeparation": 6,
                },
            ),
            "y": axis(
                "efficiency", "efficiency", scale={"domainMin": 0, "nice": True}, axis={"format": ".0%", "tickCount": 5}
            ),
            "color": {
                "field": "chip",
                "type": "nominal",
                "scale": {"domain": chips, "range": list(SERIES)},
                "legend": {"title": None, "orient": "top"},
            },
            "tooltip": tip(
                {
                    "chip": "chip",
                    "chips": "chips",
                    "efficiency": "efficiency",
                    "tokens": "tokens/s",
                    "besides": "besides compute and memory",
                    "label": "layout",
                }
            ),
        },
    )


def step_bars(report: TrainReport, shown: int = 10) -> Spec:
    """The first plans' steps by cause."""
    rows = [
        {"plan": f"{p.rank}  {p.chips:,}x {p.chip}", "resource": name, "share": share, "percent": f"{share:.1%}"}
        for p in report.plans[:shown]
        for name, share in p.shares.items()
        if share > 0.0005
    ]
    names = list(dict.fromkeys(str(r["resource"]) for r in rows))
    names.sort(key=lambda n: list(RESOURCES).index(n) if n in RESOURCES else 99)
    words = "; ".join(f"{p.chips} x {p.chip} {p.bound} {p.shares[p.bound]:.0%}" for p in report.plans[:shown])
    return chart(
        f"What a training step is made of; largest parts: {words}.",
        height=filling(min(len(report.plans), shown)),
        data={"values": rows},
        mark={"type": "bar", "height": {"band": 0.6}},
        encoding={
            "y": axis("plan", "", "nominal", sort=None, axis={"title": None, "labelLimit": 190}),
            "x": axis("share", "share of a step", stack="zero", axis={"format": ".0%", "tickCount": 5}),
            "color": color(names),
            "tooltip": tip({"plan": "plan", "resource": "cause", "percent": "share"}),
        },
    )
