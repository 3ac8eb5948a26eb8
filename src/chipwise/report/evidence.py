"""Evidence as tables: results, matches with their eight axes, claims, imports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import ClassVar

from chipwise.catalog.published import InferenceResult, TrainingResult
from chipwise.evidence.claim import Claim, Condition, Rival
from chipwise.evidence.importers import Imported
from chipwise.evidence.item import Item
from chipwise.evidence.match import TITLES, Anchored, Match
from chipwise.evidence.match_axes import Target
from chipwise.evidence.residuals import Validation
from chipwise.report.accuracy import accuracy_view
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import DASH, Column, Table
from chipwise.units import format_number
from chipwise.values import dataclass

CORRECTIONS = ("corrected", "tokens per second =", "declared", "custom thermal", "speculative")
"""How notes of an import begin that are shown."""

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
class MatchReport(Answer[Match]):
    """The nearest evidence for a plan. `measured` are the best results of each chip and scenario under `benchmark`,
    for networks that are not predicted and where no chip was named. `anchored` holds tokens per second of all chips
    at full load as `plan` predicts them (`anchored.model`), with 80 % `interval`, and what correcting by the matches
    would make of them."""

    rows: ClassVar[str] = "matches"

    target: Target
    matches: tuple[Match, ...]
    anchored: Anchored | None
    layout: str
    note: str
    interval: tuple[float, float] | None = None
    benchmark: str = ""
    measured: tuple[Item, ...] = ()
    schema_version: str = SCHEMA_VERSION

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per result, and the axes of the nearest."""
        return match_view(self)


@dataclass(frozen=True, slots=True, repr=False)
class ClaimReport(Answer[None]):
    """What becomes of a benchmark lead at the user's conditions."""

    item: Item
    goal: Condition
    claim: Claim
    assumptions: tuple[str, ...] = ()
    schema_version: str = SCHEMA_VERSION

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The axes of the claim, and its rivals."""
        return claim_view(self)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, file by file."""

    files: tuple[Imported, ...]
    new: int
    known: int
    store: str
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did: results `seen`, rows `new` and `known` by table, `quarantined` with the reason, what was
    `left_out`, how far the product is off on the rows of each table, and the `commands` that would refit on them."""

    folder: str
    seen: int
    new: Mapping[str, int]
    known: Mapping[str, int]
    quarantined: Sequence[Mapping[str, str]]
    left_out: Sequence[str]
    found: Sequence[Validation]
    commands: Sequence[str]
    schema_version: str = SCHEMA_VERSION


def _when(i: Item) -> str:
    return i.round or i.date


def _per_chip(i: Item) -> str | None:
    return None if i.per_chip is None else f"{i.per_chip:,.0f} tok/s"


def _summary(i: Item) -> str:
    return f"{i.model or i.benchmark} on {i.chips or '?'}x {i.chip or i.part}, {i.runtime or 'software not said'}"


RESULTS = (
    Column("id", "id", short="id"),
    Column("", _summary, short="what"),
    Column("round", lambda i: _when(i) or None, spare=2),
    Column("model", lambda i: i.benchmark or i.model or None),
    Column("", "benchmark", short="benchmark"),
    Column("scenario", lambda i: i.scenario or None, spare=3),
    Column("", "scenario", short="scenario"),
    Column("chip", lambda i: i.chip or i.part or None),
    Column("", "chip", short="chip"),
    Column("chips", "chips", right=True, short="chips"),
    Column("precision", lambda i: i.precision or None, spare=4),
    Column("", "precision", short="precision"),
    Column("", _when, short="round"),
    Column("", "submitter", short="submitter"),
    Column("result", lambda i: f"{format_number(i.result, 4)} {i.unit}", right=True),
    Column("", "result", short="result", scale=0),
    Column("", "unit", short="unit"),
    Column("per chip", _per_chip, right=True, spare=1),
    Column("", "per_chip", short="per_chip"),
    Column("submitter", lambda i: i.submitter or i.runtime[:24] or None, spare=5),
)
"""What is said of a result."""


def items_view(items: Sequence[Item], *, most: int | None = None) -> Table:
    """One line per result."""
    shown = items if most is None else items[:most]
    foot = [NOTICE] if any(i.origin == "published" for i in shown) else []
    if len(shown) < len(items):
        foot.insert(0, f"{len(items) - len(shown):,} more (--limit {len(items)})")
    if not items:
        foot = ["no results"]
    return Table.of(shown, RESULTS, (), foot)


def shown_view(shown: Shown) -> tuple[Table, ...]:
    """Where a result comes from, its figures, what would have been predicted, and every other known field."""
    record = shown.inference or shown.training or shown.item
    said = {} if record is None else asdict(record)
    unit = str(said.pop("unit", ""))
    if said.get("tokens_per_s") == said.get("result"):
        said.pop("tokens_per_s", None)
    figures: list[dict[str, object]] = [
        {"figure": unit or label if name == "result" else label, "value": _times(said.pop(name), scale)}
        for name, label, scale in FIGURES
        if said.get(name)
    ]
    if shown.item is not None and shown.item.per_chip is not None:
        figures.append({"figure": "Tokens/s per chip", "value": shown.item.per_chip})
    if shown.predicted is not None:
        mid, low, high = shown.predicted
        figures.append({"figure": "predicted by chipwise, 80 %", "value": mid, "low": low, "high": high})
    columns = (Column("figure", "figure"), Column("value", _valued, right=True))
    fields = [{"field": n, "value": v} for n, v in said.items() if v not in (None, "", ())]
    others = (Column("field", "field"), Column("value", "value", _cell, prose=True))
    foot = (shown.note,) if shown.note else ()
    return (Table.of(figures, columns, (_headline(shown), "")), Table.of(fields, others, (), (*foot, NOTICE)))


def _times(value: object, scale: float) -> object:
    return value * scale if isinstance(value, int | float) else value


def _valued(row: Mapping[str, object]) -> str:
    """A figure with its interval where it has one."""
    if "low" not in row:
        return _cell(row["value"])
    mid, low, high = (format_number(float(str(row[name])), 4) for name in ("value", "low", "high"))
    return f"{mid} [{low} to {high}]"


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
        return f"{t.id}: MLPerf Training {t.round}, closed division: {t.benchmark}, by {t.submitter} on {where}"
    i = shown.item
    return "" if i is None else f"{i.id}: {_what(i)}, from {i.file or i.format}"


MATCHES = (
    Column("#", "place", right=True),
    Column("result", "match.item.id"),
    Column("what ran", lambda row: _what(row["match"].item), prose=True),
    Column("measured", lambda row: _figure(row["match"].item), right=True),
    Column("axes", lambda row: " ".join(SIGNS[a.mark] for a in row["match"].axes)),
    Column("verdict", "match.verdict", prose=True),
)
"""What is said of a result that was matched to a plan."""

WHY = (Column("axis", "axis"), Column("mark", "mark"), Column("why", "reason", prose=True))
"""One of the eight axes of a match."""


def _axes(match: Match) -> list[dict[str, str]]:
    return [{"axis": TITLES[a.name], "mark": a.mark, "reason": a.reason} for a in match.axes]


def match_view(report: MatchReport) -> tuple[Table, ...]:
    """What was asked, the matches with a sign per axis, the reasons of the nearest, the corrected prediction; or what
    was measured, by chip."""
    if not report.matches:
        return measured_view(report)
    rows = [{"place": n, "match": m} for n, m in enumerate(report.matches, 1)]
    values = [_match_values(n, m) for n, m in enumerate(report.matches, 1)]
    closing = (*_anchor_lines(report), NOTICE)
    signs = ", ".join(f"{sign} {mark}" for mark, sign in SIGNS.items())
    foot = (f"axes ({signs}): {', '.join(a.name for a in report.matches[0].axes)}",)
    first = report.matches[0]
    why = Table.of(_axes(first), WHY, (f"why, for #1 ({first.item.id}):", ""), closing)
    more = measured_view(report) if report.measured else ()
    return Table.of(rows, MATCHES, (_near_what(report.target), ""), foot, values=values), why, *more


def _near_what(t: Target) -> str:
    """What results were looked for near."""
    count = "" if t.chips is None else f"{t.chips}x "
    lengths = f"{t.input_tokens or 0:,.0f} tokens in, {t.output_tokens or 0:,.0f} out"
    lengths = ", ".join(f"{n} {v}" for n, v in t.sample.items()) if t.benchmark else lengths
    what = " ".join(x for x in (t.model.name, t.precision, "on", f"{count}{t.chip}") if x)
    return ", ".join(x for x in (f"nearest to {what}", t.scenario, lengths) if x)


MEASURED = (
    Column("chip", lambda i: i.chip or i.part or None),
    Column("scenario", "scenario"),
    Column("per chip", lambda i: _speed(i), right=True),
    Column("chips", "chips", right=True),
    Column("precision", lambda i: i.precision or None, spare=2),
    Column("accuracy", lambda i: f"{i.accuracy} %" if i.accuracy else None, spare=3),
    Column("round", _when),
    Column("submitter", lambda i: i.submitter[:16] or None, spare=1),
    Column("result", "id"),
)
"""What is said of the best result of a chip."""


def measured_view(report: MatchReport) -> tuple[Table, ...]:
    """The best results of each chip and scenario."""
    if not report.measured:
        said = report.note or "no result is near"
        return (Table.of((), MEASURED, (), (said, *_anchor_lines(report)[:1], NOTICE)),)
    what = f"measured, not predicted: {report.benchmark} of MLPerf Inference, the best of each chip"
    head = (*((report.note,) if report.note else ()), what, "")
    return (Table.of(report.measured, MEASURED, head, (NOTICE,)),)


def _speed(item: Item) -> str | None:
    """What one chip does, or the latency."""
    if item.unit.startswith("Latency") or item.per_chip is not None or item.speed is None:
        return _figure(item) if item.per_chip is None else f"{item.per_chip:,.0f} tok/s"
    return f"{format_number(item.speed, 4)} {item.unit}"


def _figure(item: Item) -> str:
    """The result as it was reported, in tokens where these are known."""
    if item.tokens_per_s is not None:
        return f"{item.tokens_per_s:,.0f} tok/s"
    unit = item.unit.removeprefix("Latency (").removesuffix(")")
    return f"{format_number(item.result, 4)} {unit}"


def _match_values(place: int, m: Match) -> dict[str, object]:
    """A match as numbers and words, one to a cell."""
    i = m.item
    what = {"benchmark": i.benchmark or i.model, "chip": i.chip or i.part, "chips": i.chips, "round": _when(i)}
    axes = {a.name: a.mark for a in m.axes}
    return {"rank": place, "id": i.id, **what, "tokens_per_s": i.tokens_per_s, "axes": axes, "verdict": m.verdict}


def match_words(match: Match) -> str:
    """A result that was matched to a plan: what ran, its figure, and what it is good for."""
    return f"{_what(match.item)}, {_figure(match.item)}: {match.verdict}"


def _what(item: Item) -> str:
    """A result in a few words."""
    where = f"{item.chips or '?'}x {item.chip or item.part or 'unknown chip'}"
    what = " ".join(x for x in (item.benchmark or item.model, item.scenario, item.precision) if x)
    when = f"{item.round} {item.submitter}" if item.round else item.date or "yours"
    return f"{what}, {where}, {when}"


STEPS = (
    Column("then", "then"),
    Column("change", "change", prose=True),
    Column("ratio per chip", "ratio", "{:.2f}x".format, right=True),
    Column("effect", "effect"),
)
"""A step from the conditions of a benchmark to the user's."""


def claim_view(report: ClaimReport) -> tuple[Table, ...]:
    """The verdict, the axes, and each rival with the turns of the ratio."""
    item, claim = report.item, report.claim
    head = (
        f"{item.id}: {_rate(item)} on {item.chips}x {item.chip}, {item.benchmark or item.model} {item.scenario} "
        f"{item.round}",
        claim.verdict,
        "",
    )
    note = (
        "ratios after the first line: measured ratio x change of the predicted one; below 1.2x is a tie. Tried for a "
        "reversal: other sizes, experts, bf16, fp8, long prompts, long answers, one request at a time"
    )
    taken = f"your side, as said or by default: {'; '.join(report.assumptions)}"
    closing = (taken, note, *(f"not in the ratios: {c}" for c in claim.cautions), NOTICE)
    tables = [Table.of(_axes(claim.match), WHY, head, () if claim.rivals else closing)]
    for r in claim.rivals:
        foot = closing if r is claim.rivals[-1] else ()
        tables.append(Table.of(_steps(r), STEPS, (f"against {r.item.chip}: {r.verdict}", ""), foot))
    return tuple(tables)


def _steps(r: Rival) -> list[dict[str, object]]:
    """The ratio as measured, then at each of the user's conditions, and what would reverse it."""
    steps: list[tuple[object, ...]] = [("as measured", f"{r.item.id}, {_rate(r.item)}", r.measured, "")]
    steps += [(TITLES[s.axis], s.change, s.ratio, "reverses" if s.reverses else "") for s in r.steps]
    steps += [("would reverse it", f"{TITLES[t.axis]}: {t.change}", t.ratio or 0.0, "") for t in r.turners]
    return [dict(zip(("then", "change", "ratio", "effect"), step, strict=True)) for step in steps]


IMPORTED = (
    Column("file", "file"),
    Column("format", lambda f: f.format or None),
    Column("results", lambda f: len(f.items), right=True),
    Column("left out", lambda f: "; ".join(f.skipped[:3]), prose=True),
)
"""What is said of a file that was read."""


def import_view(report: ImportReport) -> Table:
    """File by file: the format, how many results, what was left out and what was corrected."""
    notes: dict[str, int] = {}
    for f in report.files:
        for item in f.items:
            for note in item.notes:
                if note.startswith(CORRECTIONS):
                    notes[note] = notes.get(note, 0) + 1
    foot = [f"{count}x {note}" for note, count in sorted(notes.items(), key=lambda kv: -kv[1])]
    foot.append(f"{report.new} new, {report.known} known already: {report.store}")
    own = [item for f in report.files for item in f.items if item.measured_by_user]
    for name in ("model", "chip"):
        if missing := sum(not getattr(item, name) for item in own):
            foot.append(f"{missing} name no {name} and correct no estimate: import them again with --{name}")
    values = [
        {"file": f.file, "format": f.format, "results": len(f.items), "left_out": f.skipped} for f in report.files
    ]
    return Table.of(report.files, IMPORTED, (), foot, values=values)


APART = (Column("model", "model"), Column("chip", "chip"), Column("file", "file"), Column("why", "why", prose=True))
"""What is said of a result that cannot be."""
LEFT = 5  # reasons that are shown


def synced_view(report: SyncReport) -> tuple[Table, ...]:
    """How far answers are off on the rows, results that were set apart, and what to do next."""
    rows = ", ".join(f"{report.new[n]} new and {report.known[n]} known rows of {n}" for n in report.new)
    foot = [f"{report.seen} results read: {rows or 'none says enough to be a row'} ({report.folder})"]
    foot += [f"left out: {why}" for why in report.left_out[:LEFT]]
    if len(report.left_out) > LEFT:
        foot.append(f"left out: {len(report.left_out) - LEFT} more")
    foot += [f"to refit: {command}" for command in report.commands]
    tables = [table for found in report.found for table in accuracy_view(found)]
    set_apart = f"{len(report.quarantined)} impossible results, set apart in quarantine.csv"
    apart = Table.of(report.quarantined, APART, (set_apart, "") if report.quarantined else (), foot)
    return (*tables, apart)


def _anchor_lines(report: MatchReport) -> list[str]:
    if report.anchored is None:
        return [report.note] if report.measured else [f"no prediction: {report.note}"]
    a = report.anchored
    where = f"{report.target.chip}, {report.layout}"
    span = "" if report.interval is None else " [{:,.0f} to {:,.0f}]".format(*report.interval)
    lines = [f"{a.model:,.0f}{span} tok/s at full load on {where}, as chipwise plan predicts"]
    if a.used:
        rows = "1 measured row suggests" if len(a.used) == 1 else f"{len(a.used)} measured rows suggest"
        low, high = report.interval or (a.value, a.value)
        beyond = "" if low <= a.value <= high else ", outside the interval, so measure before you rely on either"
        lines.append(
            f"{rows} {a.value:,.0f} ({a.value / a.model - 1.0:+.0%}, weighted {a.weight:.0%}){beyond}; the prediction "
            "itself is not changed"
        )
    else:
        lines.append("no correction: no comparable model was measured on this chip")
    return [*lines, report.note] if report.note else lines


def _rate(item: Item) -> str:
    said = _speed(item)
    return DASH if said is None else said if item.unit.startswith("Latency") else f"{said} per chip"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "; ".join(map(str, value)) if isinstance(value, tuple) else str(value)
