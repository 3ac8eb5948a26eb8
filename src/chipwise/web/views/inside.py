"""One plan in detail: memory, its bottleneck, its operators, how it behaves under load, and what starts it."""

from __future__ import annotations

import json
from typing import Any

from chipwise.api.requests.detail import FrontierRequest, LoadRequest, OperatorsRequest, SensitivityRequest
from chipwise.api.requests.field import fields_of
from chipwise.api.requests.kept import LaunchRequest, SimulateRequest
from chipwise.api.requests.kinds import Request
from chipwise.api.requests.planning import ExplainRequest
from chipwise.catalog.tools import tools_of
from chipwise.report.charts.breakdown import elasticities, operator_bars, tornado
from chipwise.report.charts.frontier import frontier_variants
from chipwise.report.charts.load import CURVES, load_curve
from chipwise.report.charts.memory import memory_bars
from chipwise.report.charts.roofline import roofline
from chipwise.report.charts.timeline import request_timeline
from chipwise.report.frontier import FrontierReport
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.launch.targets import ANYWHERE
from chipwise.report.operators import LoadReport, OperatorsReport
from chipwise.report.plans import PlanReport, breakdown_view, cheaper, first_plan, plan_view, ranking
from chipwise.report.sensitivity import SensitivityReport
from chipwise.report.simulated import SimulationReport
from chipwise.report.table import Table
from chipwise.web.views.plan import TIMELINE, badges
from chipwise.web.views.view import INSIDE, MODEL, PageChart, View, link, named, query_of

EXAMPLE = {"model": MODEL, "chip": "h100-sxm5-80gb", "tp": "8", "concurrency": "64", "in": "2000", "out": "300"}
# a curve runs through every load, so it takes none
LOADS = ("concurrency", "rate", "replicas")
FRONT = ("model", "chip", "tp", "pp", "concurrency", "in", "out", "task")


def _show(question: ExplainRequest, report: PlanReport) -> dict[str, Any]:
    plan = report.plans[0]
    asked = named(question)
    name = f"{plan.chips}x {plan.chip}"
    return {
        "plan": plan,
        "badges": badges(report),
        "charts": [
            PageChart("timeline", "Timeline of one request", request_timeline(report), TIMELINE, wide=True),
            PageChart("memory", "Memory of a device", memory_bars([(name, plan.memory)]), wide=True),
            PageChart(
                "elasticities",
                "What would make it faster",
                elasticities(plan),
                "Throughput gained when one resource becomes 10 % faster.",
                wide=True,
            ),
        ],
        "tables": breakdown_view(plan)[::2],
        "more": {
            "operators": link("operators", asked),
            "sensitivity": link("sensitivity", asked),
            "load": link("load", {n: v for n, v in asked.items() if n not in LOADS}),
            "launch": launch_link("explain", question, plan.runtime),
        },
        "evidence": link("match", {**asked, "count": plan.chips}) if _has("match") else "",
        "foot": [
            *cheaper(report),
            *(line for line in ranking(report, report.plans) if not line.startswith("ranked: ")),
            *first_plan(report, report.plans),
        ],
    }


def _show_operators(question: OperatorsRequest, report: OperatorsReport) -> dict[str, Any]:
    return {
        "charts": [
            PageChart(
                "roofline",
                "Roofline with this workload's operators",
                roofline(report),
                "Left of the ridge memory sets the pace, right of it arithmetic. The larger a point, the more of its "
                "phase it takes.",
                wide=True,
            ),
            PageChart("operators-decode", "Decode, by operator", operator_bars(report, "decode")),
            PageChart("operators-prefill", "Prefill, by operator", operator_bars(report, "prefill")),
        ]
    }


def _show_load(question: LoadRequest, report: LoadReport) -> dict[str, Any]:
    note = "Line: mean; band: 80 % interval of the prediction; dots: 95 % of requests are faster."
    return {
        "charts": [PageChart(f"load-{n}", title, load_curve(report, n), note) for n, (title, *_) in CURVES.items()],
        "small": True,
    }


def _show_sensitivity(question: SensitivityRequest, report: SensitivityReport) -> dict[str, Any]:
    note = "Each input is changed alone, on the same chips; the line is the plan as it was asked about."
    return {"charts": [PageChart("tornado", "What each input does to the cost", tornado(report), note, wide=True)]}


def _show_frontier(question: FrontierRequest, report: FrontierReport) -> dict[str, Any]:
    star = "The star marks the plan at its load. " if report.speeds else ""
    measured = (
        "Crosses are measurements (faint: of similar models), as far from their curve as measured is from predicted "
        "for their own lengths and formats: one on the curve confirms the model."
        if any(m.ratio for m in report.measured)
        else ""
    )
    note = (
        "Each curve takes the best layout of one replica at every load; labels mark where the layout changes. Bands "
        "are 80 % intervals. "
        f"{star}{measured} Click a point to pin its figures, a name in the legend to show that chip alone (Shift adds "
        "others). Drag to pan, click and turn the wheel to zoom, double-click to reset."
    )
    variants = frontier_variants(report)
    bases = dict.fromkeys(p.tokens_per_s_per_chip.basis for p in report.points)
    near = f"{len(report.measured)} measured points" if report.measured else "nothing measured with both figures"
    return {
        "charts": [
            PageChart(
                "frontier",
                "Throughput against speed for one user",
                next(iter(variants.values())),
                note,
                wide=True,
                variants=variants,
            )
        ],
        "badges": [*((b, b) for b in bases), (near, "")],
    }


def _has(verb: str) -> bool:
    from chipwise.api.requests.verbs import VERBS

    return verb in VERBS


def _tables(report: PlanReport) -> tuple[Table, ...]:
    return (plan_view(report, ""), *breakdown_view(report.plans[0])) if report.inside else report.tables()


EXPLAIN = View(
    group=INSIDE,
    verb="explain",
    tab="Plan in detail",
    title="Plan details",
    lead="Where the memory and the time of a plan go, what would change that, and what more load does to it.",
    example=EXAMPLE,
    front=FRONT,
    show=_show,
    tables=_tables,
    template="explain.html",
)
OPERATORS = View(
    verb="operators",
    tab="",
    title="Operators",
    lead="Every operator and exchange of a decode pass and of a chunk of a prompt, on one device.",
    example=EXAMPLE,
    front=FRONT,
    show=_show_operators,
)
SENSITIVITY = View(
    verb="sensitivity",
    tab="",
    title="What each input does to the cost",
    lead="The cost of a plan with one input changed at a time: lengths, load, formats, price, the prediction's error.",
    example=EXAMPLE,
    front=FRONT,
    show=_show_sensitivity,
)
FRONTIER = View(
    group=INSIDE,
    verb="frontier",
    tab="Curves",
    title="Throughput against speed",
    lead="What a chip gives at every balance of tokens per second for all users and for one, and what was measured.",
    example={
        "model": MODEL,
        "chips": "h100-sxm5-80gb,h200-sxm-141gb,b200-sxm,mi300x,tpu-v6e",
        "in": "2000",
        "out": "300",
    },
    front=("model", "chips", "in", "out", "precision", "max_chips"),
    show=_show_frontier,
)
LOAD = View(
    verb="load",
    tab="",
    title="Under load",
    lead="Latency and throughput from a lone request to as many as fit.",
    example={n: v for n, v in EXAMPLE.items() if n != "concurrency"} | {"ttft": "1s", "tpot": "40ms"},
    front=(*FRONT, "ttft", "tpot"),
    show=_show_load,
)


def launch_link(verb: str, question: Request, runtime: str) -> str:
    """The address of the files that start the answer to a question with its own runtime; "" where no tool does."""
    own = next(iter(tools_of(runtime)), "")
    asked = {"question": {"verb": verb, "request": fields_of(question)}}
    return link("launch", {"saved": json.dumps(asked), "for": own}) if own else ""


def _started(question: LaunchRequest, report: LaunchReport) -> dict[str, Any]:
    asked = {"saved": question.saved, "for": question.for_, "plan": question.plan}
    return {
        "files": report.files,
        "targets": {name: link("launch", {**asked, "for": name}) for name in dict.fromkeys((report.tool, *ANYWHERE))},
        "zip": f"/launch.zip?{query_of(asked)}",
    }


LAUNCH = View(
    verb="launch",
    tab="",
    title="Launch files",
    lead="Files that start a plan with a tool, and the benchmark that verifies its estimate.",
    example={
        "saved": json.dumps(
            {"question": {"verb": "estimate", "request": {"model": MODEL, "chip": "h100-sxm5-80gb", "tp": 8}}}
        ),
        "for": "vllm",
    },
    front=("for", "plan"),
    show=_started,
    template="launch.html",
)


def _show_simulated(question: SimulateRequest, report: SimulationReport) -> dict[str, Any]:
    speed = report.simulation.tokens_per_s
    return {"badges": [(speed.basis, speed.basis)] if speed is not None else []}


SIMULATE = View(
    group=INSIDE,
    verb="simulate",
    tab="Simulation",
    title="Request by request",
    lead="A deployment under arrivals one by one: percentiles of every time, with their interval.",
    example={"model": "Qwen/Qwen3-8B", "chip": "h100-sxm5-80gb", "rate": "2/s", "requests": "200"},
    front=("model", "chip", "tp", "rate", "requests", "in", "out"),
    show=_show_simulated,
)
