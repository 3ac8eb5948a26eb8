"""What `validate` found, as tables, as a section of docs/accuracy.md, and as the first screen of that page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import expm1, inf, log

from chipwise.catalog.files import output_file, writing
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import shipped_text
from chipwise.errors import UsageError
from chipwise.evidence.residuals import FEW, Summary, Validation
from chipwise.evidence.rounds import HOW, leading
from chipwise.report.table import DASH, Column, Table


def _percent(share: float) -> str:
    return DASH if share != share else f"{100 * share:.1f} %"


def _signed(share: float) -> str:
    return DASH if share != share else f"{100 * share:+.1f} %"


def _cells(s: Summary) -> str | None:
    """The mean over cells with its interval."""
    if s.cells < 2 or s.cell_mean != s.cell_mean:
        return None
    ends = "" if s.cell_low != s.cell_low else f" [{100 * s.cell_low:.0f}-{100 * s.cell_high:.0f}]"
    return f"{100 * s.cell_mean:.1f} %{ends} of {s.cells:,}"


ACCURACY = (
    Column("part", "name", prose=True),
    Column("metric", "metric"),
    Column("rows", "rows", "{:,}".format, right=True),
    Column("answered", "answered", _percent, right=True),
    Column("median", "median", _percent, right=True),
    Column("p90", "p90", _percent, right=True),
    Column("bias", "bias", _signed, right=True),
    Column("in 80 % interval", "coverage", _percent, right=True),
    Column("z", "z", lambda z: DASH if z != z else f"{z:.1f}", right=True),
    Column("mean of cells", _cells, right=True),
)
"""What is said of the errors on some rows."""

RELIABLE = (
    Column("class", "name"),
    Column("said", "said", _percent, right=True),
    Column("held", "held", _percent, right=True),
    Column("apart", lambda c: _signed(c.held - c.said), right=True),
    Column("rows", "rows", "{:,}".format, right=True),
)
"""What became of chances that were said."""


BOUGHT = (
    Column("number", "name", prose=True),
    Column("prior", "prior", "{:.4g}".format, right=True),
    Column("value", "value", "{:.4g}".format, right=True),
    Column("spread", "spread", "{:.2g}".format, right=True),
    Column("rows", "rows", "{:,}".format, right=True),
    Column("median with it", lambda b: _percent(expm1(b.known)), right=True),
    Column("without", lambda b: _percent(expm1(b.unknown)), right=True),
    Column("buys", lambda b: _signed(b.buys), right=True),
)
"""What a fitted number buys on rows that its fit had not seen."""


def accuracy_view(found: Validation) -> tuple[Table, ...]:
    """Every table of the section, the method above the first, the remarks below the last."""
    parts: list[tuple[str, Sequence[object], Sequence[Column]]]
    parts = [(title, rows, ACCURACY) for title, rows in found.tables.items()]
    parts += [(title, rows, RELIABLE) for title, rows in found.classes.items()]
    parts += [(title, rows, BOUGHT) for title, rows in found.numbers.items()]
    tables = []
    for i, (title, rows, columns) in enumerate(parts):
        head = ((found.method, "") if i == 0 else ()) + (title, "")
        tables.append(Table.of(rows, columns, head, found.remarks if i == len(parts) - 1 else ()))
    return tuple(tables)


def accuracy_lines(found: Validation) -> Iterator[str]:
    """The section without its markers, in Markdown."""
    yield f"## {found.suite}"
    yield ""
    yield found.method
    for title, rows in found.tables.items():
        yield ""
        yield f"**{title}**"
        yield ""
        yield from _table(rows)
    for title, classes in found.classes.items():
        yield ""
        yield f"**{title}**"
        yield ""
        yield from _table(classes, RELIABLE)
    if found.remarks:
        yield ""
        for remark in found.remarks:
            yield f"- {remark}"


def accuracy_section(found: Validation) -> str:
    """The section as text."""
    return "\n".join(accuracy_lines(found)) + "\n"


def write_section(found: Validation, path: str) -> None:
    """Replace the suite's section in a Markdown file, between its markers, or append it, and make the first screen anew
    from all sections.

    Raises `UsageError` for a file that cannot be read or written.
    """
    file = output_file(path)
    begin, end = _markers(found.suite)
    try:
        text = file.read_text("utf-8") if file.exists() else "# Accuracy\n"
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read", str(error)) from None
    section = f"{begin}\n{_told(found)}\n{accuracy_section(found)}{end}\n"
    if begin in text and end in text:
        head, _, rest = text.partition(begin)
        text = head + section + rest.partition(end)[2].lstrip("\n")
    else:
        text = f"{text.rstrip()}\n\n{section}"
    with writing(path) as out:
        out.write(_headed(text))


# ------------------------------------------------------------------- the first screen

WORST = 20
"""Cells that are shown as the worst."""
HEAD = "first screen"
DATA = re.compile(r"<!-- figures (.*) -->")
"""What a section says of itself for the first screen, which is made of all of them."""


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def _told(found: Validation) -> str:
    first = next(iter(found.tables.values()), ()) if found.command else ()  # rounds lead the page by themselves
    lines = found.glance or [
        replace(s, name=found.suite if s.name == "all" else f"{found.suite}, {s.name}") for s in first
    ]
    told = {"command": found.command, "glance": _plain(lines), "cells": _plain(_worst(found.cells))}
    return f"<!-- figures {json.dumps(told, separators=(',', ':'))} -->"


def _plain(lines: Sequence[Summary]) -> list[Mapping[str, object]]:
    """As JSON has them: a figure that is none is null."""
    return [{name: None if value != value else value for name, value in asdict(line).items()} for line in lines]


def _summary(told: Mapping[str, object]) -> Summary:
    return Summary(**{k: float("nan") if v is None else v for k, v in told.items()})  # type: ignore[arg-type]


def _worst(cells: Sequence[Summary]) -> list[Summary]:
    """Cells by how far their middle is off, as a factor, the worst first."""

    def factor(s: Summary) -> float:
        return abs(log(max(1.0 + s.bias, 1e-9))) if s.bias == s.bias else -inf

    return sorted(cells, key=factor, reverse=True)[:WORST]


def _headed(text: str) -> str:
    """The page with its first screen as its sections say."""
    told = [json.loads(found) for found in DATA.findall(text)]
    if not any(t["command"] for t in told):
        return text
    begin, end = _markers(HEAD)
    screen = "\n".join([begin, *_screen(told), end]) + "\n"
    if begin in text and end in text:
        head, _, rest = text.partition(begin)
        return head + screen + rest.partition(end)[2].lstrip("\n")
    first = text.find("<!-- ")
    return f"{text[:first].rstrip()}\n\n{screen}\n{text[first:]}"


def _screen(told: Sequence[Mapping[str, list[Mapping[str, object]]]]) -> Iterator[str]:
    glance = [(_summary(s), str(t["command"])) for t in told for s in t["glance"]]
    weight: dict[str, int] = {}
    for s, _ in glance:
        weight[_who(s)] = weight.get(_who(s), 0) + s.rows * (s.name.count(",") == 2)
    glance.sort(key=lambda line: (-weight[_who(line[0])], _who(line[0]), line[0].name))
    yield from last_rounds()
    yield ""
    yield "## At a glance: parts of tables left out"
    yield ""
    yield (
        "An easier test: parts of tables are left out of a fit in turn, but what is fitted, and how, was chosen on "
        "these rows. Vendor, dense models or experts, software as it is installed (stock) or tuned as submissions to "
        "benchmarks are. Half of the rows are nearer than the median error; the command prints the line."
    )
    yield ""
    yield "| part | metric | rows | median error | bias | in 80 % interval | command |"
    yield "|---|---|---:|---:|---:|---:|---|"
    for s, command in glance:
        if s.rows >= FEW:
            shares = f"{_percent(s.median)} | {_signed(s.bias)} | {_percent(s.coverage)}"
            yield f"| {s.name} | {_metric(s)} | {s.rows:,} | {shares} | `{command}` |"
    yield ""
    yield (
        f"Without any other table run {', '.join(f'`chipwise validate {x}`' for x in REPEATED)}: "
        "what they read comes with chipwise. Other tables may not be passed on."
    )
    yield ""
    cells = _worst([_summary(s) for t in told for s in t["cells"]])
    reasons = parse(shipped_text(REASONS)).get("miss", [])
    yield f"## The worst {len(cells)} cells"
    yield ""
    yield f"Cells of {FEW} rows or more, by how far their middle is off."
    yield ""
    yield "| cell | metric | rows | bias | why |"
    yield "|---|---|---:|---:|---|"
    for s in cells:
        why = next((r["why"] for r in reasons if all(word in s.name for word in r["cell"])), _unknown(s))
        yield f"| {s.name} | {_metric(s)} | {s.rows} | {_signed(s.bias)} | {why} |"


def last_rounds() -> Iterator[str]:
    """What happened on figures that nobody had seen, in Markdown."""
    yield "## Figures that nobody had seen"
    yield ""
    yield HOW
    for lines in leading():
        yield ""
        yield f"Round {lines[0].round}, {lines[0].date}, product at {lines[0].commit}:"
        yield ""
        yield "| part | metric | rows | median error | bias | in 80 % interval |"
        yield "|---|---|---:|---:|---:|---:|"
        for s in (line.found for line in lines):
            shares = f"{_percent(s.median)} | {_signed(s.bias)} | {_percent(s.coverage)}"
            yield f"| {s.name} | {s.metric} | {s.rows:,} | {shares} |"


def _who(s: Summary) -> str:
    return s.name.partition(",")[0]


METRICS = {
    "tokens_per_s": "throughput",
    "tpot": "TPOT",
    "ttft": "TTFT",
    "step_time_s": "step time",
    "memory_gb": "memory",
}


def _metric(s: Summary) -> str:
    """The metric in words."""
    if s.metric == "tokens_per_s_per_user":
        return "tokens/s of a user"
    return next((word for start, word in METRICS.items() if s.metric.startswith(start)), s.metric)


REPEATED = ("mlperf", "mlperf_training", "systolic", "model_params", "kv_cache")
"""Suites whose tables come with the package."""
REASONS = "evidence/data/misses.toml"


def _unknown(s: Summary) -> str:
    side = "more" if s.bias > 0 else "less"
    return f"predicted {side} than was measured; no reason is known"


def _table(rows: Sequence[object], columns: Sequence[Column] = ACCURACY) -> Iterator[str]:
    yield "| " + " | ".join(c.head for c in columns) + " |"
    yield "".join("|---:" if c.right else "|---" for c in columns) + "|"
    for s in rows:
        yield "| " + " | ".join(c.text(s) for c in columns) + " |"
