"""Which pictures an answer has, by its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from chipwise.report.answer import Answer, Charts, by_kind
from chipwise.report.catalogue import ChipsReport
from chipwise.report.charts.breakdown import elasticities, operator_bars, swings, tornado
from chipwise.report.charts.chips import landscape
from chipwise.report.charts.frontier import AXES, frontier_curves
from chipwise.report.charts.kernel import level_bars, time_bars
from chipwise.report.charts.load import CURVES, day_curve, load_curve
from chipwise.report.charts.memory import memory_bars
from chipwise.report.charts.plans import METRICS, OF_NETWORK, bars, pareto
from chipwise.report.charts.roofline import kernel_roofline, roofline
from chipwise.report.charts.sweep import machines_by_hour, sweep_front, sweep_map
from chipwise.report.charts.timeline import pipeline_step, request_timeline, stage_timeline
from chipwise.report.charts.training import scaling, step_bars, turnaround
from chipwise.report.fit import FitReport
from chipwise.report.frontier import FrontierReport
from chipwise.report.kernel import KernelReport
from chipwise.report.media import MediaReport
from chipwise.report.operators import LoadReport, OperatorsReport
from chipwise.report.plans import PlanReport
from chipwise.report.portfolio import PortfolioReport
from chipwise.report.sensitivity import SensitivityReport
from chipwise.report.sweep import SweepReport, short
from chipwise.report.training import TrainReport


def charts_of(answer: Answer[Any]) -> Charts:
    """The pictures of an answer by name, the first first; of most kinds none."""
    found = by_kind(CHARTS, answer)
    return {} if found is None else found(answer)


def _plan_charts(answer: Any) -> Charts:
    plans = answer.plans[:12]
    found: dict[str, Callable[[], Any]] = {}
    if sum(p.price is not None for p in plans) > 1:
        found["pareto"] = lambda: pareto(answer)
    if len(plans) == 1:
        found["elasticities"] = lambda: elasticities(plans[0])
    for name, (_, _, of) in METRICS.items():
        if any(map(of, plans)):
            found[name] = lambda name=name: bars(plans, name)  # type: ignore[misc]
    found["memory"] = lambda: memory_bars([(f"{p.chips}x {p.chip}", p.memory) for p in plans])
    found["timeline"] = lambda: request_timeline(answer)
    if plans[0].day is not None:
        found["day"] = lambda: day_curve(plans[0])
    return found


def _fit_charts(answer: Any) -> Charts:
    return {"memory": lambda: memory_bars([(f"{f.chips}x {f.chip}", f.memory) for f in answer.fits[:16]])}


def _train_charts(answer: Any) -> Charts:
    found: dict[str, Callable[[], Any]] = {}
    if sum(p.usd is not None for p in answer.plans) > 1:
        found["turnaround"] = lambda: turnaround(answer)
    found["step"] = lambda: step_bars(answer)
    staged = next((p for p in answer.plans if p.layout.pp > 1), None)
    if staged is not None:
        found["timeline"] = lambda: pipeline_step(staged)
    for kind in dict.fromkeys(s.kind for s in answer.scaling):
        found[kind] = lambda kind=kind: scaling(answer, kind)  # type: ignore[misc]
    return found


def _kernel_charts(answer: Any) -> Charts:
    found: dict[str, Callable[[], Any]] = {"time": lambda: time_bars(answer)}
    if any(k.flops > 0 for k in answer.kernels):
        found["roofline"] = lambda: kernel_roofline(answer)
    if any(v.bytes_per_mac > 0 for k in answer.kernels for v in k.levels):
        found["levels"] = lambda: level_bars(answer)
    return found


def _operators_charts(answer: Any) -> Charts:
    return {
        "roofline": lambda: roofline(answer),
        "decode": lambda: operator_bars(answer, "decode"),
        "prefill": lambda: operator_bars(answer, "prefill"),
    }


def _load_charts(answer: Any) -> Charts:
    return {name: lambda name=name: load_curve(answer, name) for name in CURVES}  # type: ignore[misc]


def _media_charts(answer: Any) -> Charts:
    timed = next((p for p in answer.plans if p.stages), None)
    found: dict[str, Callable[[], Any]] = {}
    if timed is not None:
        found["timeline"] = lambda: stage_timeline(timed)
    plans = answer.plans[:12]
    for name, (_, _, of) in OF_NETWORK.items():
        if any(map(of, plans)):
            found[name] = lambda name=name: bars(plans, name, OF_NETWORK)  # type: ignore[misc]
    return found


def _frontier_charts(answer: Any) -> Charts:
    return {
        "frontier" if key == "rate" else f"frontier-{key}": partial(frontier_curves, answer, key)
        for key, metric in AXES.items()
        if any(metric.of(p) for p in answer.points)
    }


def _sensitivity_charts(answer: Any) -> Charts:
    return {"tornado": lambda: tornado(answer)}


def _chips_charts(answer: Any) -> Charts:
    return {"landscape": lambda: landscape(answer)}


def _fleet_charts(answer: Any) -> Charts:
    return {f"machines-{i}": partial(machines_by_hour, answer, supply) for i, supply in enumerate(answer.working, 1)}


def _sweep_charts(answer: Any) -> Charts:
    found: dict[str, Callable[[], Any]] = {}
    if answer.front and len(answer.least) + len(answer.most) > 1:
        found["front"] = lambda: sweep_front(answer)
    if answer.map is not None:
        found["map"] = lambda: sweep_map(answer)
    if answer.effects and answer.base:
        unit = short(answer.figure)
        words = f"Median {unit} of cells with one axis at its least and its greatest"
        found["sensitivity"] = lambda: swings(answer.effects, answer.base, unit, words)
    return found


CHARTS: Mapping[type, Callable[[Any], Charts]] = {
    PlanReport: _plan_charts,
    FitReport: _fit_charts,
    MediaReport: _media_charts,
    TrainReport: _train_charts,
    KernelReport: _kernel_charts,
    OperatorsReport: _operators_charts,
    LoadReport: _load_charts,
    SensitivityReport: _sensitivity_charts,
    FrontierReport: _frontier_charts,
    ChipsReport: _chips_charts,
    PortfolioReport: _fleet_charts,
    SweepReport: _sweep_charts,
}
"""Answers that have pictures."""
