"""Ranked plans: the table, cost against speed, and what stood in the way of the others."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from chipwise.api.loaded import find_chip
from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.chips import recalled_words
from chipwise.report.catalogue import chip_record
from chipwise.report.charts.load import day_curve
from chipwise.report.charts.memory import memory_bars
from chipwise.report.charts.plans import DRAWN, METRICS, bars, pareto, without_price
from chipwise.report.charts.timeline import request_timeline
from chipwise.report.plan import chance_percent
from chipwise.report.plans import PLANS, PlanRecord, PlanReport, cheaper, first_plan, ranking
from chipwise.report.table import Column
from chipwise.web.views.chips import ChipSheet, sheet_of
from chipwise.web.views.view import FEW, MODEL, PageChart, View, link, named, price_badge

EXAMPLE = {"model": MODEL, "rate": "10/s", "in": "2000", "out": "300", "ttft": "1s", "tpot": "40ms"}
FRONT = ("model", "task", "rate", "in", "out", "ttft", "tpot")
SHOWN = 12
FIVE_SECONDS = ("cost", "speed", "largest", "rate")
CURVES = 6
"""Chips whose curves of throughput against speed are drawn below the plans."""
TIMELINE = "The mean request of the first plan; diamonds are the first and the last token with their 80 % intervals."
SHOWN_OF_EACH = ("$/h", "$/M out", "TTFT, ms", "TPOT, ms", "tok/s/chip", "max req/s", "bottleneck", "basis")
COLUMNS = tuple(c for c in PLANS if c.head in SHOWN_OF_EACH)


def _show(question: PlanRequest, report: PlanReport) -> dict[str, Any]:
    plans, asked = report.plans, named(question)
    priced = [p for p in plans if p.price]
    charts = [
        PageChart(
            "cost-against-speed",
            "Cost against speed",
            pareto(report),
            "Diamonds: no plan is both cheaper and faster. Their bars are 80 % intervals, for cost the range of "
            "prices. Click a plan for details; drag a rectangle to mark plans in the table. "
            f"{_undrawn(report)}{without_price(report)}".rstrip(),
        )
    ]
    if len(priced) < 2:
        charts = []
    if plans[0].day is not None:
        note = "Bars: arrivals. Steps: what replicas that follow them sustain; dashed: all replicas together."
        charts.append(PageChart("day", "A day", day_curve(plans[0]), note))
    charts.append(PageChart("timeline", "Timeline of one request", request_timeline(report), TIMELINE))
    return {
        "charts": charts,
        "glance": _glance(plans[:FEW]),
        "curves": link("frontier", {**asked, **curves_of(plans)}),
        "columns": _columns(report),
        "scales": _scales(plans),
        "links": {p.rank: link("explain", named(question.explained(p))) for p in plans},
        "compare": link("compare", {**asked, "chips": ",".join(p.chip for p in plans[:4]), "have": None}),
        "shown": SHOWN,
        "badges": badges(report),
        "cheaper": _ways(report),
        "foot": {
            **report.titled(),
            "About the first plan": first_plan(report, plans),
            "How they were ranked, and what was left out": ranking(report, plans),
        },
    }


def _columns(report: PlanReport) -> tuple[Column, ...]:
    """What the table of the page shows: of a load that was asked for how much more could be."""
    hidden = "max req/s" if report.workload.rate_per_s is None else "tok/s/chip"
    return tuple(c for c in COLUMNS if c.head != hidden)


def _undrawn(report: PlanReport) -> str:
    """How many plans with a price are left to the table."""
    rest = [p for p in report.plans if p.price and not p.on_front][DRAWN:]
    return f"{len(rest)} dearer plans are in the table alone. " if rest else ""


def _ways(report: PlanReport) -> list[tuple[str, dict[str, str]]]:
    """What would make the first plan cheaper, in words, and the fields of the form that ask for it."""
    fills = [_fields(lever.options) for lever in report.levers]
    lines = cheaper(report)
    return list(zip_longest(lines, fills[: len(lines)], fillvalue={}))  # type: ignore[arg-type]


def _fields(options: str) -> dict[str, str]:
    """Options of the command line as fields: `--kv fp8 --disaggregate`."""
    found: dict[str, str] = {}
    name = ""
    for word in shlex.split(options):
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
        found[name] = "true" if word.startswith("--") else word
    return found


def _glance(plans: Sequence[PlanRecord]) -> list[PageChart]:
    known = [n for n in FIVE_SECONDS if METRICS[n][2](plans[0])] if len(plans) > 1 else []
    return [PageChart(f"first-{n}", METRICS[n][0], bars(plans, n)) for n in known]


def curves_of(plans: Sequence[PlanRecord]) -> dict[str, str]:
    """What `frontier` is asked about the first plans: their chips, each in the format and the software of its plan; the
    first is marked."""
    drawn = list({p.chip: p for p in reversed(plans[:CURVES]) if not p.parts}.values())[::-1]
    formats = [f"{p.chip}={p.precision}/{p.runtime}/{p.kv}" for p in drawn]
    if drawn and drawn[0] is plans[0] and drawn[0].tokens_per_s_per_user:
        formats[0] += f"@{drawn[0].tokens_per_s_per_user.mid:.4g}"
    return {"chips": ",".join(p.chip for p in drawn), "formats": ",".join(formats)}


def badges(report: PlanReport) -> list[tuple[str, str]]:
    """How sure the first plan is, in few words, each with its class: evidence, targets, ties, price, measurement."""
    first, w = report.plans[0], report.workload
    found = [(first.pace.basis, first.pace.basis)]
    if recalled_words((first.chip, *(part.chip for part in first.parts))):
        found.append(("chip figures recalled", "weak"))
    if first.chance is not None:
        kept = "kept" if first.keeps_targets(w.confidence) else "weak"
        found.append((f"targets met {chance_percent(first.chance)} %", kept))
    if w.rate_per_s is not None and first.chance is not None:  # a part of what targets allow
        found.append((f"{first.load:.0%} loaded", ""))
    by_rank = {p.rank: p for p in report.plans}
    tied = [f"{p.chips}× {p.chip}" for rank in first.ties[:2] if (p := by_rank.get(rank))]
    if tied:
        found.append((f"tied within the error: {', '.join(tied)}", ""))
    dated = price_badge(first.price)
    found += [dated] if dated[0] else []
    if first.nearest is not None:
        found.append((f"nearest result: {first.nearest.label}", "kept" if first.nearest.supports else ""))
    return found


def _show_compared(question: PlanRequest, report: PlanReport) -> dict[str, Any]:
    plans = report.plans[:SHOWN]
    wanted = [n for n in METRICS if any(METRICS[n][2](p) for p in plans)]
    charts = [PageChart(f"compare-{n}", METRICS[n][0], bars(plans, n)) for n in wanted]
    memory = [(f"{p.chips}x {p.chip}", p.memory) for p in plans]
    charts.append(PageChart("compare-memory", "Memory of a device", memory_bars(memory), wide=len(charts) % 2 == 0))
    return {**_show(question, report), "side": charts, "sheet": _sheet(question, plans)}


def _sheet(question: PlanRequest, plans: Sequence[PlanRecord]) -> ChipSheet:
    """The figures of the chips, side by side: those of the catalogue, or the user's own."""
    own = question.values["own_chips"] or {}
    chips = [find_chip(name, own=own) for name in dict.fromkeys(p.chip for p in plans)]
    return sheet_of([chip_record(chip, None, sources=True) for chip in chips])


def _scales(plans: Sequence[PlanRecord]) -> dict[str, tuple[float, float]]:
    """Ends of the range bars of each column of figures."""
    values = {c.head: [v for p in plans if hasattr(v := c.value(p), "low")] for c in COLUMNS}
    return {name: (min(v.low for v in known), max(v.high for v in known)) for name, known in values.items() if known}


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
    lead="The best plan of each chip for the same workload: cost, speed, memory, and the data sheets behind them.",
    example={**EXAMPLE, "chips": "h100-sxm5-80gb,h200-sxm-141gb,mi300x,tpu-v6e"},
    front=("chips", *FRONT),
    show=_show_compared,
    template="compare.html",
)
