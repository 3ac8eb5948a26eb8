"""Plans for training, and how they scale."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.training import TrainRequest
from chipwise.report.charts.training import scaling, step_bars, turnaround
from chipwise.report.tables import tables
from chipwise.report.training import TrainReport, train_verdict
from chipwise.web.views.view import MODEL, Chart, View

__all__ = ["TRAIN"]


def _show(question: TrainRequest, report: TrainReport) -> dict[str, Any]:
    charts = []
    if sum(p.usd is not None for p in report.plans) > 1:
        note = "Diamonds: nothing is both cheaper and sooner done. Bars are 80 % intervals."
        charts.append(Chart("turnaround", "Cost against turnaround", turnaround(report), note))
    if report.plans:
        charts.append(Chart("step", "What a step is made of", step_bars(report)))
    kinds = dict.fromkeys(s.kind for s in report.scaling)
    charts += [Chart(f"scaling-{k}", f"{k.capitalize()} scaling", scaling(report, k)) for k in kinds]
    first, *further = tables(report, everything=True)
    return {"charts": charts, "verdict": train_verdict(report), "plans": first, "further": further}


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
