"""The catalogue of chips: all on one picture, and their sheets."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.catalogue import ChipsRequest
from chipwise.catalog.chips import get_chip
from chipwise.report.catalogue import ChipsReport, chips_view, compare_view
from chipwise.report.charts.chips import landscape
from chipwise.report.table import Table
from chipwise.web.views.view import Chart, View, link

__all__ = ["CHIPS"]


def _show(question: ChipsRequest, report: ChipsReport) -> dict[str, Any]:
    names = [c.id for c in report.chips]
    charts = []
    if len(names) > 1:
        note = "Each point is a chip; dashed lines are ridges: FLOPs that a byte from memory has to feed."
        charts.append(Chart("chips", "Bandwidth against arithmetic", landscape(report), note))
    links = {c: link("chips", {"chips": c}) for c in names} if question.chips is None else {}
    return {"charts": charts, "tables": _tables(report), "links": links}


def _tables(report: ChipsReport) -> tuple[Table, ...]:
    chips = [get_chip(c.id) for c in report.chips]
    if chips and report.chips[0].figures:
        return (compare_view(chips),)
    return (chips_view(chips),)


CHIPS = View(
    verb="chips",
    tab="Chips",
    title="Chips",
    lead="Every accelerator of the catalogue with the figures that predictions rest on; name some to see them in full.",
    example={"limit": "200"},
    front=("chips", "search", "vendor", "limit"),
    show=_show,
    tables=_tables,
    template="chips.html",
)
