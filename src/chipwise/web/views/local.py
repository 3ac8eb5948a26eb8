"""What a machine at a desk runs, or what to buy."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.desk import LocalRequest
from chipwise.report.desk import LocalReport, local_verdict, local_view
from chipwise.web.views.view import View


def _show(question: LocalRequest, report: LocalReport) -> dict[str, Any]:
    first = report.models[0] if report.models else None
    badges = [(first.basis, first.basis), (f"quality {first.quality}", "")] if first else []
    return {
        "charts": [],
        "tables": (local_view(report, everything=True),),
        "verdict": local_verdict(report),
        "badges": [b for b in badges if b[0]],
    }


LOCAL = View(
    verb="local",
    tab="Desk",
    title="What a desk runs",
    lead="Which models a machine of your own runs, in which format, how fast and with which command; or what to buy.",
    example={"have": "rtx-4090", "host_memory": "64GB"},
    front=("have", "host_memory", "max_usd", "min_tps", "context", "use"),
    show=_show,
    template="charts.html",
)
