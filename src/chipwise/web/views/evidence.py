"""What published results say about a plan, axis by axis, and whether a lead carries over."""

from __future__ import annotations

from typing import Any

from chipwise.api.requests.evidence import CheckClaimRequest, EvidenceMatchRequest
from chipwise.evidence.match import TITLES
from chipwise.report.evidence import NOTICE, ClaimReport, MatchReport, claim_view, measured_view
from chipwise.web.views.view import EVIDENCE, MODEL, View, link, named

EXAMPLE = {
    "model": MODEL,
    "chip": "h100-sxm5-80gb",
    "count": "8",
    "in": "2000",
    "out": "300",
    "ttft": "1s",
    "tpot": "40ms",
}


def _show(question: EvidenceMatchRequest, report: MatchReport) -> dict[str, Any]:
    asked = {n: v for n, v in named(question).items() if n != "chip"}
    return {
        "axes": TITLES,
        "notice": NOTICE,
        "badges": _badges(report),
        "claims": {
            m.item.id: link("claim", {**asked, "result": m.item.id})
            for m in report.matches
            if m.item.speed is not None and m.item.chip
        },
        "tables": measured_view(report) if report.measured else (),
    }


def _badges(report: MatchReport) -> list[tuple[str, str]]:
    """How near the nearest result is."""
    if not report.matches:
        return []
    marks = [a.mark for a in report.matches[0].axes]
    same = f"nearest result: {marks.count('same')} of {len(marks)} axes the same, {marks.count('different')} different"
    return [(same, "kept" if report.matches[0].shares else "weak")]


def _show_claim(question: CheckClaimRequest, report: ClaimReport) -> dict[str, Any]:
    return {"axes": TITLES, "notice": NOTICE, "tables": claim_view(report)[1:]}


MATCH = View(
    group=EVIDENCE,
    verb="match",
    tab="Evidence",
    title="Evidence for a plan",
    lead="The published results nearest to a plan, compared on eight axes, and what they say about the prediction.",
    example=EXAMPLE,
    front=("model", "chip", "count", "in", "out", "ttft", "tpot", "precision", "task", "limit"),
    show=_show,
    template="evidence.html",
)
CLAIM = View(
    verb="claim",
    tab="",
    title="Does a lead hold for you?",
    lead="A leading benchmark result, translated step by step to your conditions.",
    example={"result": "v5.0-03955", "model": MODEL, "count": "8", "in": "2000", "out": "300", "ttft": "1s"},
    front=("result", "model", "count", "in", "out", "ttft", "tpot", "against"),
    show=_show_claim,
    template="claim.html",
)
RESULTS = View(
    group=EVIDENCE,
    verb="evidence",
    tab="Results",
    title="Published results",
    lead="Results of MLPerf Inference and your own measurements: search by words, or filter.",
    front=("search", "chip", "benchmark", "scenario", "submitter", "best", "limit"),
)
