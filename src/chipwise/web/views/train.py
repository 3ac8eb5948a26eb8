"""Plans for training, and how they scale; the loop of reinforcement learning."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.report.charts.timeline import pipeline_step
from chipwise.report.charts.training import scaling, step_bars, turnaround
from chipwise.report.reinforce import RlReport
from chipwise.report.training import TrainReport
from chipwise.web.views.view import MODEL, PageChart, View, price_badge


def _show(question: TrainRequest, report: TrainReport) -> dict[str, Any]:
    charts = []
    staged = next((p for p in report.plans if p.layout.pp > 1), None)
    if sum(p.usd is not None for p in report.plans) > 1:
        note = "Diamonds: no plan is both cheaper and sooner. Bars are 80 % intervals."
        charts.append(PageChart("turnaround", "Cost against turnaround", turnaround(report), note))
    if report.plans:
        charts.append(PageChart("step", "What a step is made of", step_bars(report)))
    if staged is not None:
        name = f"A step of the pipeline: {staged.chips:,}× {staged.chip}, {staged.layout.label}"
        note = "Passes of the first micro-batches through the stages in the order of 1F1B; gaps are waiting."
        charts.append(PageChart("pipeline", name, pipeline_step(staged), note, wide=True))
    kinds = dict.fromkeys(s.kind for s in report.scaling)
    charts += [PageChart(f"scaling-{k}", f"{k.capitalize()} scaling", scaling(report, k)) for k in kinds]
    first, *further = report.tables(everything=True)
    return {
        "charts": charts,
        "plans": replace(first, foot=(), rows=tuple(tuple(map(_unbroken, row)) for row in first.rows)),
        "notes": [line for line in first.foot if line],
        "further": further,
        "badges": _badges(report),
    }


def _unbroken(cell: str) -> str:
    """A cell whose units stay on the line of their figure: `104 GB of 192 GB` takes two lines at most."""
    return re.sub(r"(?<=\d) (?=[A-Z]+B\b)|(?<=\bof) ", "\u00a0", cell)


def _badges(report: TrainReport) -> list[tuple[str, str]]:
    """How sure the first plan is, in few words."""
    if not report.plans:
        return []
    p = report.plans[0]
    by_rank = {q.rank: q for q in report.plans}
    tied = [f"{q.chips:,}× {q.chip}" for rank in p.ties[:2] if (q := by_rank.get(rank))]
    found = [(p.days.basis, p.days.basis), (f"memory: {p.verdict}", "kept" if p.verdict == "fits" else "weak")]
    found += [(f"tied within the error: {', '.join(tied)}", "")] if tied else []
    return [*found, *(badge for badge in (price_badge(p.price),) if badge[0])]


def _loop(question: RlRequest, report: RlReport) -> dict[str, Any]:
    """Plans of a loop, and what a step of the first waits for."""
    p = report.plans[0]
    badges = [(p.step_s.basis, p.step_s.basis), (f"{p.bound} takes most of a step", "")]
    return {"badges": [*badges, *(badge for badge in (price_badge(p.price),) if badge[0])]}


RL = View(
    verb="rl",
    tab="RL",
    title="Reinforcement learning: sampling and training on one fleet",
    lead="A step of the loop in seconds: answers sampled by a serving engine, scored, trained on, weights handed over.",
    example={"model": "Qwen/Qwen3-8B", "chips": "h100-sxm5-80gb", "counts": "16", "out": "4000"},
    front=("model", "chips", "counts", "prompts", "samples", "out", "steps", "placement"),
    show=_loop,
)
TRAIN = View(
    verb="train",
    tab="Train",
    title="Training: how long, and for how much",
    lead="The best layout of every count of chips: days, dollars, utilisation, and how far it scales.",
    example={
        "model": MODEL,
        "chips": "h100-sxm5-80gb",
        "tokens": "1T",
        "counts": "256,512,1024,2048",
        "curves": "true",
    },
    front=("model", "chips", "tokens", "counts", "seq", "precision", "task", "curves"),
    show=_show,
    template="train.html",
)
