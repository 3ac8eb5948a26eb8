"""Evidence in short: the nearest results, whether they count, and what becomes of a benchmark lead."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.evidence.claim import Rival
from chipwise.evidence.item import Item
from chipwise.evidence.match import AXES, Match
from chipwise.mcp.short import rounded
from chipwise.report.catalogue_records import EvidenceReport
from chipwise.report.evidence_view import NOTICE, ClaimReport, MatchReport

__all__ = [
    "ClaimAnswer",
    "EvidenceAnswer",
    "MatchAnswer",
    "MatchLine",
    "ResultLine",
    "RivalLine",
    "claim_answer",
    "evidence_answer",
    "match_answer",
]


@dataclass(frozen=True, slots=True)
class ResultLine:
    """A result; `per_chip` are tokens per second of one chip."""

    id: str
    what: str
    benchmark: str
    scenario: str
    chip: str
    chips: int | None
    precision: str
    round: str
    submitter: str
    result: float
    unit: str
    per_chip: float | None


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """Results; `found` counts those beyond the limit too."""

    results: tuple[ResultLine, ...]
    found: int
    notice: str
    details: EvidenceReport | None = field(default=None)


@dataclass(frozen=True, slots=True)
class MatchLine:
    """A result, and on which of the eight axes it is the same as the plan, near, different or unknown."""

    result: ResultLine
    verdict: str
    axes: dict[str, str]
    reasons: dict[str, str]


@dataclass(frozen=True, slots=True)
class MatchAnswer:
    """The nearest results, and tokens per second of the plan at full load: by the model, and moved towards what was
    measured as far as that is near (`weight` of 1 would be all the way); `interval` is to hold 80 %."""

    verdict: str
    matches: tuple[MatchLine, ...]
    predicted_tokens_per_s: float | None
    anchored_tokens_per_s: float | None
    interval: tuple[float, float] | None
    weight: float
    conditions: str
    notice: str
    details: MatchReport | None = field(default=None)


@dataclass(frozen=True, slots=True)
class RivalLine:
    """A rival: the measured ratio per chip, what it becomes at your workload step by step, and the verdict."""

    result: ResultLine
    measured_ratio: float
    ratio_at_your_workload: float | None
    steps: tuple[str, ...]
    verdict: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """Whether a benchmark lead is advice for the workload: only where the axes support it. A ratio below 1.2 ties."""

    verdict: str
    supported: bool
    result: ResultLine
    axes: dict[str, str]
    reasons: dict[str, str]
    rivals: tuple[RivalLine, ...]
    not_in_the_ratios: tuple[str, ...]
    notice: str
    details: ClaimReport | None = field(default=None)


def evidence_answer(report: EvidenceReport) -> EvidenceAnswer:
    """The answer to evidence in short."""
    return EvidenceAnswer(tuple(map(_result, report.items)), report.found, report.notice)


def match_answer(report: MatchReport) -> MatchAnswer:
    """The answer to evidence_match in short."""
    a = report.anchored
    first = (
        f"nearest: {report.matches[0].item.id}, {report.matches[0].verdict}"
        if report.matches
        else "no results"
    )
    return MatchAnswer(
        verdict=f"{first}; {report.note}" if report.note else first,
        matches=tuple(map(_match, report.matches)),
        predicted_tokens_per_s=rounded(a.model) if a else None,
        anchored_tokens_per_s=rounded(a.value) if a and a.used else None,
        interval=(rounded(report.interval[0]), rounded(report.interval[1])) if report.interval else None,
        weight=rounded(a.weight) if a else 0.0,
        conditions=report.layout,
        notice=NOTICE,
    )


def claim_answer(report: ClaimReport) -> ClaimAnswer:
    """The answer to check_claim in short."""
    claim = report.claim
    against = "; ".join(f"against {r.item.chip}: {r.verdict}" for r in claim.rivals)
    return ClaimAnswer(
        verdict=f"{claim.verdict}. {against}" if against else claim.verdict,
        supported=claim.supported,
        result=_result(report.item),
        axes=_axes(claim.match),
        reasons=_reasons(claim.match),
        rivals=tuple(map(_rival, claim.rivals)),
        not_in_the_ratios=claim.cautions,
        notice=NOTICE,
    )


def _result(i: Item) -> ResultLine:
    return ResultLine(
        id=i.id,
        what=f"{i.model or i.benchmark} on {i.chips or '?'}x {i.chip or i.part}, {i.runtime or 'software not said'}",
        benchmark=i.benchmark,
        scenario=i.scenario,
        chip=i.chip,
        chips=i.chips,
        precision=i.precision,
        round=i.round or i.date,
        submitter=i.submitter,
        result=i.result,
        unit=i.unit,
        per_chip=None if i.per_chip is None else rounded(i.per_chip),
    )


def _match(m: Match) -> MatchLine:
    return MatchLine(_result(m.item), m.verdict, _axes(m), _reasons(m))


def _axes(m: Match) -> dict[str, str]:
    return {AXES[a.name]: a.mark for a in m.axes}


def _reasons(m: Match) -> dict[str, str]:
    """Why, for the axes that are not the same."""
    return {AXES[a.name]: a.reason for a in m.axes if a.mark != "same"}


def _rival(r: Rival) -> RivalLine:
    steps = tuple(
        f"{AXES[s.axis]}: {s.change}: "
        + ("not predicted" if s.ratio is None else f"{s.ratio:.2f}x")
        + (" (reverses)" if s.reverses else "")
        for s in r.steps
    )
    carried = None if r.carried is None else rounded(r.carried)
    return RivalLine(_result(r.item), rounded(r.measured), carried, steps, r.verdict)
