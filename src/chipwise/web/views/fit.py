"""Does it fit: memory on every chip."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.planning import FitRequest
from chipwise.report.charts.memory import memory_bars
from chipwise.report.fit import FitReport, fit_verdict, fit_view
from chipwise.web.views.view import MODEL, PageChart, View

SHOWN = 16
COUNTED = ("memory counted, not measured", "")
CAVEAT = (("on some chips no known software runs it", "weak"),)


def _show(question: FitRequest, report: FitReport) -> dict[str, Any]:
    devices = [(f"{f.chips}x {f.chip}", f.memory) for f in report.fits[:SHOWN]]
    note = (
        f"The first {SHOWN} of {len(report.fits)} chips; name chips to see others."
        if len(report.fits) > SHOWN
        else ""
    )
    return {
        "charts": [
            PageChart("memory", "Memory of a device against its capacity", memory_bars(devices), note)
        ],
        "tables": fit_view(report),
        "verdict": fit_verdict(report),
        "badges": [COUNTED, *CAVEAT[: any(f.caveat for f in report.fits)]],
    }


FIT = View(
    verb="fit",
    tab="Fit",
    title="Does it fit",
    lead="Memory by use on every chip: the fewest that hold the model, the room they leave, and the smallest fix.",
    example={"model": MODEL, "chips": "h100-sxm5-80gb,h200-sxm-141gb,mi300x,tpu-v5e,tpu-v6e,rtx-4090"},
    front=("model", "chips", "count", "context", "batch", "precision"),
    show=_show,
    template="charts.html",
)
