"""What a machine at a desk runs, or what to buy."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.desk import LocalRequest
from chipwise.report.desk import LocalReport
from chipwise.report.tables import tables
from chipwise.web.views.view import View

__all__ = ["LOCAL"]


def _show(question: LocalRequest, report: LocalReport) -> dict[str, Any]:
    return {"charts": [], "tables": tables(report, everything=True)}


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
