"""Ranked plans: the table, cost against speed, and what stood in the way of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.api.requests.planning import PlanRequest
from chipwise.report.charts.memory import memory_bars
from chipwise.report.charts.plans import METRICS, bars, pareto
from chipwise.report.plans import PLANS, plan_view, verdict
from chipwise.report.records import PlanRecord, PlanReport
from chipwise.report.table import Table
from chipwise.web.views.query import named
from chipwise.web.views.view import MODEL, Chart, View, link

__all__ = ["COMMANDS", "COMPARE", "PLAN"]

EXAMPLE = {"model": MODEL, "rate": "10/s", "in": "2000", "out": "300", "ttft": "1s", "tpot": "40ms"}
FRONT = ("model", "task", "rate", "in", "out", "ttft", "tpot")
SHOWN = 12
# lines of the table that speak of the command line, or that the page shows otherwise
COMMANDS = ("assumed:", "next:", "how to read:")
SHOWN_OF_EACH = ("$/h", "$/M out", "TTFT, ms", "TPOT, ms", "tok/s/chip", "bottleneck", "basis")
COLUMNS = tuple(c for c in PLANS if c.head in SHOWN_OF_EACH)


def _show(question: PlanRequest, report: PlanReport) -> dict[str, Any]:
    plans = report.plans
    priced = [p for p in plans if p.price]
    charts = [
        Chart(
            "cost-against-speed",
            "Cost against speed",
            pareto(report),
            "Diamonds: nothing is both cheaper and faster. Click a plan for its details; drag a rectangle to mark "
            "plans in the table. Bars are 80 % intervals.",
        )
    ]
    if len(priced) < 2:
        charts = []
    return {
        "charts": charts,
        "verdict": " ".join(verdict(report)),
        "columns": COLUMNS,
        "scales": _scales(plans),
        "links": {p.rank: link("explain", named(question.explained(p))) for p in plans},
        "compare": link(
            "compare", {**named(question), "chips": ",".join(p.chip for p in plans[:4]), "have": None}
        ),
        "shown": SHOWN,
        "foot": [
            line for line in plan_view(report, "", everything=True).foot if not line.startswith(COMMANDS)
        ],
    }


def _show_compared(question: PlanRequest, report: PlanReport) -> dict[str, Any]:
    plans = report.plans[:SHOWN]
    wanted = [n for n in METRICS if any(METRICS[n][2](p) for p in plans)]
    charts = [Chart(f"compare-{n}", METRICS[n][0], bars(plans, n)) for n in wanted]
    memory = [(f"{p.chips}x {p.chip}", p.memory) for p in plans]
    charts.append(Chart("compare-memory", "Memory of a device", memory_bars(memory)))
    return {**_show(question, report), "side": charts, "sheet": _sheet(plans)}


def _sheet(plans: Sequence[PlanRecord]) -> Table:
    """The catalogue's figures of the chips, side by side."""
    from chipwise.catalog.chips import get_chip
    from chipwise.report.catalogue import compare_view

    return compare_view([get_chip(name) for name in dict.fromkeys(p.chip for p in plans)])


def _scales(plans: Sequence[PlanRecord]) -> dict[str, tuple[float, float]]:
    """Ends of the range bars of each column of figures."""
    values = {c.head: [v for p in plans if hasattr(v := c.value(p), "low")] for c in COLUMNS}
    return {
        name: (min(v.low for v in known), max(v.high for v in known))
        for name, known in values.items()
        if known
    }


PLAN = View(
    verb="plan",
    tab="Plan",
    title="Which chips, how many, in which layout",
    lead="Every chip that can serve the model at the load you ask for, ranked by what it costs.",
    example=EXAMPLE,
    front=FRONT,
    show=_show,
    template="plan.html",
)
COMPARE = View(
    verb="compare",
    tab="Compare",
    title="Chips side by side",
    lead="The best plan of each chip for the same workload: cost, speed, memory, and the sheets they come from.",
    example={**EXAMPLE, "chips": "h100-sxm5-80gb,h200-sxm-141gb,mi300x,tpu-v6e"},
    front=("chips", *FRONT),
    show=_show_compared,
    template="compare.html",
)
