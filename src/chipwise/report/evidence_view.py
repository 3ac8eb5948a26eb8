"""Evidence as tables: results, matches with their eight axes, claims, imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.catalog.published import InferenceResult, TrainingResult
from chipwise.evidence.claim import Claim, Condition
from chipwise.evidence.importers import Imported
from chipwise.evidence.item import Item
from chipwise.evidence.match import AXES, Anchored, Match, Target
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import Table

__all__ = [
    "ClaimReport",
    "ImportReport",
    "MatchReport",
    "Shown",
    "claim_view",
    "import_view",
    "items_view",
    "match_view",
    "shown_view",
]

NOTICE = "MLPerf is a trademark of MLCommons; derived figures (per chip, tokens from samples) are not verified by it"


@dataclass(frozen=True, slots=True)
class Shown:
    """One piece of evidence, and what chipwise would have predicted for it (80 % interval), if it can."""

    item: Item | None
    inference: InferenceResult | None
    training: TrainingResult | None
    predicted: tuple[float, float, float] | None
    note: str
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class MatchReport:
    """The nearest evidence for a plan. `anchored` are tokens per second of all chips at full load."""

    target: Target
    matches: tuple[Match, ...]
    anchored: Anchored | None
    layout: str
    note: str
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """What becomes of a benchmark lead at the user's conditions."""

    item: Item
    goal: Condition
    claim: Claim
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, file by file."""

    files: tuple[Imported, ...]
    new: int
    known: int
    store: str
    schema_version: str = SCHEMA_VERSION


def items_view(items: Sequence[Item], *, most: int | None = None) -> Table:
    """One line per result."""
    columns = (
        "id",
        "round",
        "model",
        "scenario",
        "chip",
        "chips",
        "precision",
        "result",
        "per chip",
        "submitter",
    )
    shown = items if most is None else items[:most]
    rows = [
        (
            i.id,
            i.round or i.date or "-",
            i.benchmark or i.model or "-",
            i.scenario or "-",
            i.chip or i.part or "-",
            "-" if i.chips is None else str(i.chips),
            i.precision or "-",
            f"{i.result:,.4g} {i.unit}",
            "-" if i.per_chip is None else f"{i.per_chip:,.0f} tok/s",
            i.submitter or i.runtime[:24] or "-",
        )
        for i in shown
    ]
    foot = [NOTICE] if any(i.origin == "published" for i in shown) else []
    if len(shown) < len(items):
        foot.insert(0, f"{len(items) - len(shown):,} more (--limit {len(items)})")
    if not items:
        foot = ["no results"]
    return Table(columns, rows, (), tuple(foot), frozenset(("chips", "result", "per chip")))


def shown_view(
    fields: Mapping[str, object], predicted: tuple[float, float, float] | None, note: str
) -> Table:
    """Every known field of a result, and what would have been predicted."""
    rows = [(name, _cell(value)) for name, value in fields.items() if value not in (None, "", ())]
    if predicted is not None:
        mid, low, high = predicted
        rows.append(
            ("predicted by chipwise", f"{mid:,.4g} [{low:,.4g}-{high:,.4g}], 80 %, calibrated on such rows")
        )
    foot = (note,) if note else ()
    return Table(("field", "value"), rows, (), (*foot, NOTICE))


def match_view(report: MatchReport) -> tuple[Table, ...]:
    """The matches with marks, the reasons of the nearest, the anchored prediction."""
    names = tuple(AXES)
    columns = ("#", "result", "measured", *names, "verdict")
    rows = [
        (
            str(n),
            f"{m.item.id} {m.item.chips or '?'}x {m.item.chip or m.item.part} {m.item.round}".strip(),
            "-" if m.item.tokens_per_s is None else f"{m.item.tokens_per_s:,.0f} tok/s",
            *(next(a.mark for a in m.axes if a.name == name) for name in names),
            m.verdict,
        )
        for n, m in enumerate(report.matches, 1)
    ]
    foot = [f"axes: {', '.join(f'{k} = {v}' for k, v in AXES.items() if k != v)}"]
    closing = ("", *_anchor_lines(report), NOTICE)
    if not report.matches:
        return (Table(columns, rows, (), (*foot, *closing), frozenset(("#", "measured"))),)
    first = report.matches[0]
    why = [(AXES[a.name], a.mark, a.reason) for a in first.axes]
    return (
        Table(columns, rows, (), tuple(foot), frozenset(("#", "measured"))),
        Table(("axis", "mark", f"why, for #1 ({first.item.id})"), why, ("",), closing),
    )


def claim_view(report: ClaimReport) -> tuple[Table, ...]:
    """The verdict, the axes, and each rival with the turns of the ratio."""
    item, claim = report.item, report.claim
    head = (
        f"{item.id}: {_rate(item)} on {item.chips}x {item.chip}, {item.benchmark or item.model} {item.scenario} "
        f"{item.round}",
        claim.verdict,
        "",
    )
    marks = [(AXES[a.name], a.mark, a.reason) for a in claim.match.axes]
    note = "ratios after the first line: measured ratio x change of the predicted one; below 1.2x is a tie"
    closing = ("", note, *(f"not in the ratios: {c}" for c in claim.cautions), NOTICE)
    tables = [Table(("axis", "mark", "why"), marks, head, () if claim.rivals else closing)]
    for r in claim.rivals:
        steps = [("as measured", f"{r.item.id}, {_rate(r.item)}", f"{r.measured:.2f}x", "")]
        for s in r.steps:
            ratio = "-" if s.ratio is None else f"{s.ratio:.2f}x"
            steps.append((AXES[s.axis], s.change, ratio, "reverses" if s.reverses else ""))
        title = f"against {r.item.chip}: {r.verdict}"
        columns = ("then", "change", "ratio per chip", "")
        foot = closing if r is claim.rivals[-1] else ()
        tables.append(Table(columns, steps, ("", title), foot, frozenset(("ratio per chip",))))
    return tuple(tables)


def import_view(report: ImportReport) -> Table:
    """File by file: the format, how many results, what was left out and what was corrected."""
    rows = []
    for f in report.files:
        rows.append((f.file, f.format or "-", str(len(f.items)), "; ".join(f.skipped[:3]) or ""))
    notes: dict[str, int] = {}
    for f in report.files:
        for item in f.items:
            for note in item.notes:
                if note.startswith(
                    ("corrected", "tokens per second =", "declared", "custom thermal", "speculative")
                ):
                    notes[note] = notes.get(note, 0) + 1
    foot = [f"{count}x {note}" for note, count in sorted(notes.items(), key=lambda kv: -kv[1])]
    foot.append(f"{report.new} new, {report.known} known already: {report.store}")
    return Table(("file", "format", "results", "left out"), rows, (), tuple(foot), frozenset(("results",)))


def _anchor_lines(report: MatchReport) -> list[str]:
    if report.anchored is None:
        return [f"no prediction: {report.note}"]
    a = report.anchored
    where = f"{report.target.chip}, {report.layout}"
    lines = [f"predicted at full load on {where}: {a.model:,.0f} tok/s by the model alone"]
    if a.used:
        change = a.value / a.model - 1.0
        lines.append(
            f"anchored: {a.value:,.0f} tok/s ({change:+.0%}); the measured rows count for {a.weight:.0%} of their own "
            f"error of prediction"
        )
    else:
        lines.append("not anchored: no match can be predicted")
    return lines


def _rate(item: Item) -> str:
    return "-" if item.per_chip is None else f"{item.per_chip:,.0f} tok/s per chip"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "; ".join(map(str, value)) if isinstance(value, tuple) else str(value)
