"""Statements about hardware: what is said, whether it is true, how sure that is, and the command that shows it."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.statement import CheckStatementRequest
from chipwise.report.statements import StatementsReport, statements_view
from chipwise.web.views.view import View, link


def _show(question: CheckStatementRequest, report: StatementsReport) -> dict[str, Any]:
    said = [*(s.text for s in report.statements), *report.nearest]
    return {
        "tables": statements_view(report),
        "links": {text: link("check_statement", {"text": text}) for text in said},
    }


STATEMENTS = View(
    verb="check_statement",
    tab="Statements",
    title="Is it true what they say",
    lead="Statements about hardware with a verdict, how sure it is, and the command whose figures show it.",
    example={},
    front=("text",),
    show=_show,
    template="statements.html",
)
