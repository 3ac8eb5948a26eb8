"""Evidence as tables: results, matches with their eight axes, claims, imports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from chipwise.catalog.published import InferenceResult, TrainingResult
from chipwise.evidence.claim import Claim, Condition
from chipwise.evidence.importers import Imported
from chipwise.evidence.item import Item
from chipwise.evidence.match import AXES, Anchored, Match, Target
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import Table
from chipwise.units import format_number

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

SIGNS = {"same": "=", "near": "~", "different": "x", "unknown": "?"}

NOTICE = "MLPerf is a trademark of MLCommons; derived figures (per chip, tokens from samples) are not verified by it"


FIGURES = (
    ("result", "result", 1.0),
    ("tokens_per_s", "Tokens/s", 1.0),
    ("requests_per_s", "requests per second", 1.0),
    ("concurrency", "requests in flight", 1.0),
    ("ttft_mean_s", "TTFT mean, ms", 1e3),
    ("ttft_p99_s", "TTFT 99th percentile, ms", 1e3),
    ("tpot_mean_s", "TPOT mean, ms", 1e3),
    ("tpot_p99_s", "TPOT 99th percentile, ms", 1e3),
    ("step_time_s", "step time, s", 1.0),
    ("samples_per_s", "samples per second", 1.0),
    ("time_to_train_s", "time to train, min", 1.0 / 60.0),
    ("samples_to_target", "samples to the target", 1.0),
)
"""Measured fields, what they are called and by what they are multiplied."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One piece of evidence, and what chipwise would have predicted for it (80 % interval), if it can."""

    item: Item | None
    inference: InferenceResult | None
    training: TrainingResult | None
    predicted: tuple[float, float, float] | None
    note: str
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True, repr=False)
class MatchReport(Answer):
    """The nearest evidence for a plan. `anchored` holds tokens per second of all chips at full load as `plan` predicts
    them (`anchored.model`), with 80 % `interval`, and what correcting by the matches would make of them."""

    target: Target
    matches: tuple[Match, ...]
    anchored: Anchored | None
    layout: str
    note: str
    interval: tuple[float, float] | None = None
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True, repr=False)
class ClaimReport(Answer):
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
            f"{format_number(i.result, 4)} {i.unit}",
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
    return Table(columns, rows, (), tuple(foot), frozenset(("chips", "result", "per chip")), shown)


def shown_view(shown: Shown) -> tuple[Table, ...]:
    """Where a result comes from, its figures, what would have been predicted, and every other known field."""
    record = shown.inference or shown.training or shown.item
    fields = {} if record is None else asdict(record)
    unit = str(fields.pop("unit", ""))
    if fields.get("tokens_per_s") == fields.get("result"):
        fields.pop("tokens_per_s", None)
    figures = [
        (unit or label if name == "result" else label, _figure(fields.pop(name), scale))
        for name, label, scale in FIGURES
        if fields.get(name)
    ]
    if shown.item is not None and shown.item.per_chip is not None:
        figures.append(("Tokens/s and chip", _cell(shown.item.per_chip)))
    if shown.predicted is not None:
        mid, low, high = shown.predicted
        least, middle, most = (format_number(value, 4) for value in (low, mid, high))
        figures.append(("predicted by chipwise, 80 %", f"{middle} [{least} to {most}]"))
    rows = [(name, _cell(value)) for name, value in fields.items() if value not in (None, "", ())]
    foot = (shown.note,) if shown.note else ()
    return (
        Table(("figure", "value"), figures, (_headline(shown), ""), (), frozenset()),
        Table(("field", "value"), rows, ("",), (*foot, NOTICE)),
    )


def _headline(shown: Shown) -> str:
    """Round, date, submitter and system in one line."""
    r = shown.inference
    if r is not None:
        where = f"{r.chips}x {r.accelerator}" + (f" in {r.nodes} hosts" if r.nodes > 1 else "")
        return (
            f"{r.id}: MLPerf Inference {r.round} ({r.date}), {r.category}, closed division: {r.model} {r.scenario}, "
            f"by {r.submitter} on {r.system} ({where})"
        )
    t = shown.training
    if t is not None:
        where = f"{t.system} ({t.chips}x {t.accelerator})"
        return (
            f"{t.id}: MLPerf Training {t.round}, closed division: {t.benchmark}, by {t.submitter} on {where}"
        )
    i = shown.item
    return "" if i is None else f"{i.id}: {_what(i)}, from {i.file or i.format}"


def _figure(value: object, scale: float) -> str:
    return f"{value * scale:,.6g}" if isinstance(value, int | float) else str(value)


def match_view(report: MatchReport) -> tuple[Table, ...]:
    """What was asked, the matches with a sign per axis, the reasons of the nearest, the anchored prediction."""
    t = report.target
    count = "" if t.chips is None else f"{t.chips}x "
    lengths = f"{t.input_tokens or 0:,.0f} tokens in, {t.output_tokens or 0:,.0f} out"
    head = (f"nearest to {t.model.name} {t.precision} on {count}{t.chip}, {t.scenario}, {lengths}", "")
    columns = ("#", "result", "what ran", "tok/s", "axes", "verdict")
    rows = [
        (
            str(n),
            m.item.id,
            _what(m.item),
            "-" if m.item.tokens_per_s is None else f"{m.item.tokens_per_s:,.0f}",
            " ".join(SIGNS[m.mark(name)] for name in AXES),
            m.verdict,
        )
        for n, m in enumerate(report.matches, 1)
    ]
    signs = ", ".join(f"{sign} {mark}" for mark, sign in SIGNS.items())
    foot = (f"axes ({signs}): {', '.join(AXES)}",)
    closing = ("", *_anchor_lines(report), NOTICE)
    right = frozenset(("#", "tok/s"))
    if not report.matches:
        return (Table(columns, rows, head, ("no result of a language model is near", *closing), right),)
    first = report.matches[0]
    why = [(AXES[a.name], a.mark, a.reason) for a in first.axes]
    return (
        Table(columns, rows, head, foot, right),
        Table(("axis", "mark", f"why, for #1 ({first.item.id})"), why, ("",), closing),
    )


def _what(item: Item) -> str:
    """A result in a few words."""
    where = f"{item.chips or '?'}x {item.chip or item.part or 'unknown chip'}"
    what = " ".join(x for x in (item.benchmark or item.model, item.scenario, item.precision) if x)
    when = f"{item.round} {item.submitter}" if item.round else item.date or "yours"
    return f"{what}, {where}, {when}"


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
    note = (
        "ratios after the first line: measured ratio x change of the predicted one; below 1.2x is a tie. Tried for a "
        "reversal: other sizes, experts, bf16, fp8, long prompts, long answers, one request at a time"
    )
    closing = ("", note, *(f"not in the ratios: {c}" for c in claim.cautions), NOTICE)
    tables = [Table(("axis", "mark", "why"), marks, head, () if claim.rivals else closing)]
    for r in claim.rivals:
        steps = [("as measured", f"{r.item.id}, {_rate(r.item)}", f"{r.measured:.2f}x", "")]
        for s in r.steps:
            ratio = "-" if s.ratio is None else f"{s.ratio:.2f}x"
            steps.append((AXES[s.axis], s.change, ratio, "reverses" if s.reverses else ""))
        steps += [
            ("would reverse it", f"{AXES[t.axis]}: {t.change}", f"{t.ratio or 0.0:.2f}x", "")
            for t in r.turners
        ]
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
    span = "" if report.interval is None else " [{:,.0f} to {:,.0f}]".format(*report.interval)
    lines = [f"at full load on {where}: {a.model:,.0f}{span} tok/s, as chipwise plan predicts"]
    if a.used:
        lines.append(
            f"{len(a.used)} measured rows, counting for {a.weight:.0%} of what the same prediction misses on them, "
            f"would make that {a.value:,.0f} ({a.value / a.model - 1.0:+.0%}); they move nothing"
        )
    else:
        lines.append("not anchored: no such model was measured on this chip")
    return [*lines, report.note] if report.note else lines


def _rate(item: Item) -> str:
    return "-" if item.per_chip is None else f"{item.per_chip:,.0f} tok/s per chip"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "; ".join(map(str, value)) if isinstance(value, tuple) else str(value)
