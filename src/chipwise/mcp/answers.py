"""What agents get: every verb's answer in short, a few kilobytes instead of the whole record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chipwise.catalog.chips import load_chips
from chipwise.evidence.claim import Rival
from chipwise.evidence.item import Item
from chipwise.evidence.match import TITLES, Match
from chipwise.report.answer import by_kind, renamed
from chipwise.report.catalogue import CHIPS, MODELS, NETWORKS, ChipsReport, EvidenceReport, ModelsReport
from chipwise.report.desk import DESK, LocalReport
from chipwise.report.evidence import NOTICE, RESULTS, ClaimReport, MatchReport
from chipwise.report.fit import FITS, FitReport
from chipwise.report.kernel import KERNELS, KernelReport
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.media import MEDIA, MediaReport, media_words
from chipwise.report.moved import MOVES, MovedReport
from chipwise.report.plans import PLANS, ExplainReport, PlanReport, cheaper
from chipwise.report.records import Figure, PriceRecord, RefusalRecord
from chipwise.report.reinforce import REINFORCED, RlReport
from chipwise.report.statements import StatementsReport
from chipwise.report.table import Column
from chipwise.report.training import TRAINING, TrainReport
from chipwise.values import dataclass

SHOWN = 4  # plans in full
RUN = 6  # models in full that a machine runs
FITTED = 12  # chips in full of those that were asked whether they hold a model
LISTED = 20  # chips in full of a catalogue
NAMED = 8  # rows by name, reasons, and chips of a reason
DIGITS = 3
AS_IT_IS = (0.0, 1.0)  # scales that leave a whole number alone
Own = Callable[[Any], dict[str, Any]]


def rounded(value: float) -> float:
    """At most three significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def lines(records: Sequence[Any], columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Records in short: of each the columns that have a short name, in their order."""
    named = [c for c in columns if c.short]
    return [{c.short: _short(c.value(record), c.scale) for c in named} for record in records]


def _short(value: Any, scale: float) -> Any:
    """A value in short, a figure as the range that it is; with scale 0 as it is."""
    if isinstance(value, Figure | PriceRecord):
        return {end: rounded(getattr(value, end) * scale) for end in ("mid", "low", "high")}
    if isinstance(value, Mapping):
        return {name: _short(part, scale) for name, part in value.items()}
    number = isinstance(value, float) or (isinstance(value, int) and scale not in AS_IT_IS)
    return rounded(value * scale) if number and scale else value


def refusals_of(refused: Sequence[RefusalRecord]) -> dict[str, tuple[str, ...]]:
    """Chips by the reason why they have no plan; of many with one reason a few are named."""
    details = Counter(r.detail for r in refused)
    found: dict[str, tuple[str, ...]] = {}
    for detail, count in details.most_common(NAMED):
        names = tuple(r.chip for r in refused if r.detail == detail)[:NAMED]
        found[detail] = (*names, f"and {count - NAMED} more") if count > NAMED else names
    return found


@dataclass(frozen=True, slots=True)
class RowsInShort:
    """How the rows of a kind of answer are said: the first `shown` by their `columns`, the next by name. `own` is what
    only this kind says."""

    columns: Sequence[Column]
    shown: int
    own: Own
    named: Callable[[Any], str] = lambda row: f"{row.chips:,}x {row.chip}"


def _fields(line: str) -> str:
    """A line as those read it who send fields: `prefix_hit 50%` for `--prefix-hit 50%`."""
    return renamed(line, str)


def _planned(report: PlanReport) -> dict[str, Any]:
    """How many chips have a plan, and what would make the first one cheaper."""
    planned = {p.chip for p in report.plans}
    every = len(planned) + len(report.refused)
    counted = f"{len(planned)} of {every} chips have a plan" if every > 1 else ""
    return {"model": ", ".join(report.model.words), "counted": counted, "cheaper": list(map(_fields, cheaper(report)))}


def _generated(report: MediaReport) -> dict[str, Any]:
    """The network with its sizes; of one chip its seconds by part and bytes by use; `changes`: options that would
    change the first plan, and how many times as many samples its chips then make, as `x1.49 images`."""
    alone = report.plans[0] if len(report.plans) == 1 else None
    return {
        "model": ", ".join(media_words(report)),
        "stage_s": {name: rounded(seconds) for name, seconds in alone.stages.items()} if alone else {},
        "memory_bytes": {name: rounded(size) for name, size in alone.memory.items()} if alone else {},
        "changes": {_fields(c.options): f"x{c.more_per_chip:.3g} {report.unit}s" for c in report.changes},
    }


def _of(*names: str) -> Own:
    """The model in one line, and fields of an answer as they are."""
    return lambda report: {"model": ", ".join(report.model.words), **{name: getattr(report, name) for name in names}}


def _verdict(row: Any) -> str:
    return f"{row.chips:,}x {row.chip}: {row.verdict}"


ROWS: Mapping[type, RowsInShort] = {
    PlanReport: RowsInShort(PLANS, SHOWN, _planned),
    ExplainReport: RowsInShort(PLANS, SHOWN, lambda r: {**_planned(r), "cpu_instead": r.amdahl}),
    MovedReport: RowsInShort(PLANS, SHOWN, lambda r: {**_planned(r), "moved": lines(r.moved, MOVES)}),
    MediaReport: RowsInShort(MEDIA, FITTED, _generated, _verdict),
    FitReport: RowsInShort(FITS, FITTED, _of("context", "sequences"), _verdict),
    LocalReport: RowsInShort(
        DESK,
        RUN,
        lambda r: {name: getattr(r, name) for name in ("machine", "context", "prompt_tokens")},
        lambda r: (
            f"{r.item or r.model}: {r.model if r.item else r.precision}, {rounded(r.tokens_per_s.mid):g} tokens/s"
        ),
    ),
    TrainReport: RowsInShort(TRAINING, SHOWN, _of("tokens")),
    RlReport: RowsInShort(REINFORCED, SHOWN, _of("steps")),
}
"""Answers of rows, best first."""


def rows_answer(report: Any) -> dict[str, Any]:
    """An answer of rows in short: its verdict, what only its kind says, the first rows in full, the next by name, why
    others are not there, and what was assumed."""
    how = by_kind(ROWS, report)
    assert how is not None
    rows = getattr(report, report.rows)
    rest = [how.named(row) for row in rows[how.shown :]]
    more = [*rest[:NAMED], *([f"and {len(rest) - NAMED} more"] if len(rest) > NAMED else [])]
    return {
        "verdict": " ".join(_fields(line) for line in report.verdict()),
        **how.own(report),
        report.rows: lines(rows[: how.shown], how.columns),
        "more": more,
        "refused": refusals_of(report.refused),
        "assumptions": once(report.assumptions),
    }


def once(assumptions: Sequence[str]) -> list[str]:
    """Assumptions with fields in place of options, one that holds of several chips once: `l4, l40s: ...`."""
    owners: dict[str, list[str]] = {}
    for line in map(_fields, assumptions):
        name, colon, said = line.partition(": ")
        alone = colon and name in load_chips()
        owners.setdefault(said if alone else line, []).extend([name] if alone else [])
    return [f"{', '.join(names)}: {said}" if names else said for said, names in owners.items()]


def kernel_answer(report: KernelReport) -> dict[str, Any]:
    """The answer to kernel in short."""
    return {
        "operator": report.operator,
        "kernels": lines(report.kernels, KERNELS),
        "refused": {r.chip: r.detail for r in report.refused},
        "lessons": report.lessons,
        "assumptions": once(report.assumptions),
    }


def chips_answer(report: ChipsReport) -> dict[str, Any]:
    """The answer to chips in short."""
    more = [c.id for c in report.chips[LISTED:]]
    return {"chips": lines(report.chips[:LISTED], CHIPS), "found": report.found, "more": more}


def models_answer(report: ModelsReport) -> dict[str, Any]:
    """The answer to models in short."""
    networks = lines(report.networks, NETWORKS)
    return {"models": lines(report.models, MODELS), "found": report.found, "networks": networks}


def evidence_answer(report: EvidenceReport) -> dict[str, Any]:
    """The answer to evidence in short."""
    return {"results": lines(report.items, RESULTS), "found": report.found, "notice": report.notice}


def match_answer(report: MatchReport) -> dict[str, Any]:
    """The nearest results, each with the axes on which it is the same as the plan, near, different or unknown, and
    tokens per second of the plan at full load: by the model, and moved towards what was measured as far as that is near
    (`weight` of 1 would be all the way); `interval` is to hold 80 %."""
    a = report.anchored
    first = "no results"
    if report.matches:
        first = f"nearest: {report.matches[0].item.id}, {report.matches[0].verdict}"
    elif report.measured:
        first = f"measured, not predicted: {report.benchmark} of MLPerf, {len(report.measured)} best results by chip"
    return {
        "verdict": "; ".join(filter(None, (report.note, first))),
        "matches": [
            {"result": _result(m.item), "verdict": m.verdict, "axes": _axes(m), "reasons": _reasons(m)}
            for m in report.matches
        ],
        "predicted_tokens_per_s": rounded(a.model) if a else None,
        "anchored_tokens_per_s": rounded(a.value) if a and a.used else None,
        "interval": [rounded(end) for end in report.interval] if report.interval else None,
        "weight": rounded(a.weight) if a else 0.0,
        "conditions": report.layout,
        "notice": NOTICE,
        "measured": [_measured(i) for i in report.measured[:FITTED]],
    }


def _measured(i: Item) -> str:
    """A measured result in one line."""
    latency = i.unit.startswith("Latency")
    rate = i.result if latency else i.speed or 0.0
    unit = "tokens/s" if i.per_chip is not None else i.unit
    each = "" if latency else " a chip"
    where = f"{i.scenario}, {i.chips or '?'} chips, {i.round} ({i.id})"
    return f"{i.chip or i.part}: {rounded(rate):,.6g} {unit}{each}, {where}"


def claim_answer(report: ClaimReport) -> dict[str, Any]:
    """Whether a benchmark lead is advice for the workload: only where the axes support it. A ratio below 1.2 ties."""
    claim = report.claim
    against = "; ".join(f"against {r.item.chip}: {r.verdict}" for r in claim.rivals)
    return {
        "verdict": f"{claim.verdict}. {against}" if against else claim.verdict,
        "supported": claim.supported,
        "result": _result(report.item),
        "axes": _axes(claim.match),
        "reasons": _reasons(claim.match),
        "rivals": [_rival(r) for r in claim.rivals],
        "not_in_the_ratios": claim.cautions,
        "notice": NOTICE,
    }


def statements_answer(report: StatementsReport) -> dict[str, Any]:
    """The answer to check_statement in short: of a list the verdicts alone."""
    if not report.asked:
        return {"statements": {s.text: s.verdict for s in report.statements}, "note": report.note}
    found = [
        {
            "statement": s.text,
            "verdict": s.verdict,
            "confidence": s.confidence,
            "because": s.because,
            "figures": {f.what: f.with_unit for f in s.figures},
            "basis": [*s.basis, *s.sources],
            "shown_by": list(s.commands),
        }
        for s in report.statements
    ]
    said = report.statements[0].sentence if found else report.note
    return {
        "verdict": said,
        "statements": found,
        "would_answer_it": list(report.commands),
        "nearest": list(report.nearest),
        "note": report.note if found else "",
    }


def launch_answer(report: LaunchReport) -> dict[str, Any]:
    """The answer to launch: the files by name. They are to be read before they are run."""
    return {
        "verdict": f"{len(report.files)} files start plan {report.plan} with {report.tool}; read them before they run",
        "files": {file.name: file.text for file in report.files},
        "scripts": [file.name for file in report.files if file.script],
    }


def table_answer(report: Any) -> dict[str, Any]:
    """Any answer as its first tables say it: what stands above, the columns with a row of text each, what stands
    below."""
    found: dict[str, Any] = {}
    for number, table in enumerate(report.tables()[:2]):
        end = str(number + 1) if number else ""
        found |= {
            f"verdict{end}": " ".join(line for line in table.head if line),
            f"columns{end}": list(table.columns),
            f"rows{end}": [list(row) for row in table.rows[:LISTED]],
            f"notes{end}": [line for line in table.foot if line],
        }
        if len(table.rows) > LISTED:
            found[f"more_rows{end}"] = len(table.rows) - LISTED
    return found


def _result(item: Item) -> dict[str, Any]:
    return lines((item,), RESULTS)[0]


def _axes(m: Match) -> dict[str, str]:
    return {TITLES[a.name]: a.mark for a in m.axes}


def _reasons(m: Match) -> dict[str, str]:
    """Why, for the axes that are not the same."""
    return {TITLES[a.name]: a.reason for a in m.axes if a.mark != "same"}


def _rival(r: Rival) -> dict[str, Any]:
    """A rival: the measured ratio per chip, what it becomes at the workload asked step by step, and the verdict."""
    return {
        "result": _result(r.item),
        "measured_ratio": rounded(r.measured),
        "ratio_at_your_workload": None if r.carried is None else rounded(r.carried),
        "steps": [
            f"{TITLES[s.axis]}: {s.change}: "
            + ("not predicted" if s.ratio is None else f"{s.ratio:.2f}x")
            + (" (reverses)" if s.reverses else "")
            for s in r.steps
        ],
        "verdict": r.verdict,
    }
