"""Where the time goes, what would shorten it, and what each input does to the cost."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.report.charts.spec import ACCENT, RESOURCES, SERIES, Spec, axis, chart, color, said, ticks, tip
from chipwise.report.operators import OperatorsReport
from chipwise.report.plan import RESOURCE, gain
from chipwise.report.plans import PlanRecord
from chipwise.report.sensitivity import InputRecord, SensitivityReport

SHOWN = 12


def elasticities(plan: PlanRecord) -> Spec:
    """Throughput gained when one resource becomes 10 % faster."""
    rows = [
        {"resource": name, "what": RESOURCE.get(name, name), "gain": 100 * gain(share), "share": f"{share:.1%}"}
        for name, share in plan.shares.items()
        if share >= 0.001
    ]
    words = ", ".join(f"{r['what']} +{r['gain']:.2f} %" for r in rows)
    return chart(
        f"What 10 % more of one resource gives in tokens per second: {words}.",
        height={"step": 26},
        data={"values": rows},
        mark={"type": "bar", "height": 14, "cornerRadiusEnd": 2},
        encoding={
            "y": axis("what", "", "nominal", sort=None, axis={"title": None, "labelLimit": 140}),
            "x": axis("gain", "% more tokens/s from 10 % more", axis={"tickCount": 4}),
            "color": {**color(str(r["resource"]) for r in rows), "legend": None},
            "tooltip": tip({"what": "10 % more", "gain": "% more tokens/s", "share": "share of time"}),
        },
    )


def operator_bars(report: OperatorsReport, phase: str) -> Spec:
    """The longest operators of a phase by resource; the rest as one bar."""
    found = [o for o in report.operators if o.phase == phase]
    rows = []
    names: list[str] = []
    for i, o in enumerate(found):
        name = o.name if i < SHOWN else "all others"
        names.append(name)
        for resource, seconds in o.exposed_s.items():
            rows.append(
                {
                    "operator": name,
                    "resource": resource,
                    "order": list(RESOURCES).index(resource) if resource in RESOURCES else 99,
                    "us": seconds * 1e6,
                    "repeats": o.repeats,
                }
            )
    whole = sum(o.seconds for o in found) or 1.0
    words = ", ".join(f"{o.name} {o.seconds / whole:.0%}" for o in found[:5])
    order = list(dict.fromkeys(names))
    used = [r for r in RESOURCES if any(row["resource"] == r for row in rows)]
    what = "a pass in which every sequence gets a token" if phase == "decode" else "a chunk of a prompt by itself"
    return chart(
        f"Time of operators in {phase} ({what}), {whole * 1e3:.3g} ms in total: {words}.",
        height={"step": 22},
        data={"values": rows},
        mark={"type": "bar", "height": 13},
        encoding={
            "y": axis("operator", "", "nominal", sort=order, axis={"title": None, "labelLimit": 140}),
            "x": axis("us", "µs on one device", aggregate="sum", axis=ticks()),
            "color": color(used),
            "order": {"field": "order"},
            "tooltip": [
                {"field": "operator", "title": "operator"},
                {"field": "resource", "title": "resource"},
                {"field": "us", "aggregate": "sum", "title": "µs"},
            ],
        },
    )


def tornado(report: SensitivityReport) -> Spec:
    """The cost with each input changed alone, from the plan's own cost to both sides, the largest change first."""
    base = f"{said(report.base)} {report.unit}"
    words = f"Cost of {report.plan.chips}x {report.plan.chip}, {base}, with one input changed"
    return swings(report.inputs, report.base, report.unit, words)


def swings(inputs: Sequence[InputRecord], base: float, unit: str, what: str) -> Spec:
    """A figure with each input changed alone, from `base` to both sides; `what` says so."""
    rows = []
    for i in inputs:
        for side, value, cost in (("lesser", i.lesser, i.at_lesser), ("greater", i.greater, i.at_greater)):
            if cost is not None:
                change = cost / base - 1.0
                rows.append(
                    {
                        "input": i.name,
                        "side": f"{side} value",
                        "value": value,
                        "short": str(value).partition(" (")[0],
                        "cost": cost,
                        "base": base,
                        "change": f"{change:+.0%}",
                        "half": "right" if cost >= base else "left",
                    }
                )
    words = "; ".join(f"{r['input']} {r['value']}: {said(r['cost'])} ({r['change']})" for r in rows)
    y = axis("input", "", "nominal", sort=None, axis={"title": None, "labelLimit": 190})
    x = axis(
        "cost",
        unit,
        axis=ticks(unless="datum.value < 0"),  # room for words is no cost below nothing
        scale={"zero": False, "padding": 56},
    )
    return chart(
        f"{what}: {words}.",
        height={"step": 27},
        data={"values": rows},
        encoding={"y": y},
        layer=[
            {
                "mark": {"type": "bar", "height": 15},
                "encoding": {
                    "x": x,
                    "x2": {"field": "base"},
                    "color": {
                        "field": "side",
                        "type": "nominal",
                        "scale": {"domain": ["lesser value", "greater value"], "range": [SERIES[0], SERIES[1]]},
                        "legend": {"title": None, "orient": "top"},
                    },
                    "tooltip": tip({"input": "input", "value": "value", "cost": unit, "change": "change"}),
                },
            },
            *(
                {
                    "mark": {"type": "text", "align": align, "dx": dx, "fontSize": 10.5},
                    "transform": [{"filter": f"datum.half === '{half}'"}],
                    "encoding": {"x": x, "text": {"field": "short"}},
                }
                for half, align, dx in (("right", "left", 5), ("left", "right", -5))
            ),
            {
                "mark": {"type": "tick", "orient": "vertical", "bandSize": 27, "thickness": 2, "color": ACCENT},
                "encoding": {"x": x | {"field": "base"}},
            },
        ],
    )
