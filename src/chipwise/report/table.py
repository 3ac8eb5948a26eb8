"""What is said of a record, declared once as columns, and every form of it: text, CSV, Markdown, HTML, JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from html import escape
from typing import IO, Any, Literal

from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.terminal import show, takes_bold, width_of
from chipwise.values import dataclass

Format = Literal["table", "json", "csv", "md"]
ENDS = re.compile(r"\[[^]]*\]")  # of an interval: they stay on one line
FORMULA = re.compile(r"[=@\t]|[-+](?![\d.\s]|$)")
SHORT = 8
"""unit: characters. Chosen: a figure with its unit, such as 1.47 s; moves where a cell of a page may be broken."""
FEW = 3
"""unit: rows. Chosen: what two rows have in common may still be what they are compared by; moves what a page drops."""
DASH = "-"  # what is not known, or does not apply


@dataclass(frozen=True, slots=True)
class Column:
    """One thing that is said of a record, for every place that shows it.

    `head` is the heading ("": in no table). `get` leads to the value: a path of fields (`time_s.basis`) or a function
    of the record; None is a dash. `show` writes it for people. `right` aligns to the right. `spare`: 0 is always shown,
    of others the smallest is kept first where a line of text would be too long. `prose` may be wrapped to make room.
    `short` names the value in the agents' short form, where numbers have three digits after `scale` (0: all digits).
    """

    head: str
    get: str | Callable[[Any], Any]
    show: Callable[[Any], str] = str
    right: bool = False
    spare: int = 0
    prose: bool = False
    short: str = ""
    scale: float = 1.0

    def value(self, record: Any) -> Any:
        """What the record says, not yet written."""
        if not isinstance(self.get, str):
            return self.get(record)
        for part in self.get.split("."):
            if record is None:
                return None
            record = record[part] if isinstance(record, Mapping) else getattr(record, part)
        return record

    def text(self, record: Any) -> str:
        """What the record says, for people."""
        value = self.value(record)
        return DASH if value is None else self.show(value)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of text with lines above (`head`) and below (`foot`).

    `right`: headings of columns that are aligned to the right. `spare`: those that text leaves out for want of width,
    the least important first. `prose`: those whose cells may be wrapped (None: any). `records` are what the rows were
    written from (dataclasses or mappings): CSV shows their values with all digits instead of the text.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()
    right: frozenset[str] = frozenset()
    records: Sequence[Any] | None = None
    spare: tuple[str, ...] = ()
    prose: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        records: Sequence[Any],
        columns: Sequence[Column],
        head: tuple[str, ...] = (),
        foot: Sequence[str] = (),
        *,
        values: Sequence[Any] | None = None,
    ) -> Table:
        """A line for every record, by its declared columns; CSV holds the records, or `values` in their place."""
        shown = [c for c in columns if c.head]
        spare = sorted((c for c in shown if c.spare), key=lambda c: -c.spare)
        return cls(
            tuple(c.head for c in shown),
            [tuple(c.text(r) for c in shown) for r in records],
            head,
            tuple(foot),
            frozenset(c.head for c in shown if c.right),
            records if values is None else values,
            tuple(c.head for c in spare),
            frozenset(c.head for c in shown if c.prose),
        )

    def part(self, start: int, end: int) -> Table:
        """Some of its rows, without the lines below."""
        records = None if self.records is None else self.records[start:end]
        return replace(self, rows=self.rows[start:end], records=records, foot=())

    def lean(self) -> Table:
        """The table without columns in which all of at least `FEW` rows say the same: what that is stands below, but
        for dashes."""
        if len(self.rows) < FEW:
            return self
        alike = {i: cells[0] for i, cells in enumerate(zip(*self.rows, strict=True)) if i and len(set(cells)) == 1}
        kept = [i for i in range(len(self.columns)) if i not in alike]
        said = ", ".join(f"{self.columns[i]} {text}" for i, text in alike.items() if text != DASH)
        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            rows=[tuple(row[i] for i in kept) for row in self.rows],
            foot=(*([f"the same in every row: {said}"] if said else []), *self.foot),
        )

    def text(self, width: int | None = None, *, bold: bool = False) -> str:
        """Lines of at most `width` columns (default: those of the terminal, at most 100), never a broken word."""
        return show(self, width_of() if width is None else width, bold=bold)

    def csv(self) -> str:
        """The rows alone, so that programs can read them: plain numbers, one to a cell."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names, rows = (self.columns, self.rows) if self.records is None else _flat_rows(self.records)
        writer.writerow(names)
        writer.writerows(map(_inert, row) for row in rows)
        return out.getvalue()

    def markdown(self) -> str:
        """All columns, with the lines above, and those below as a list."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(plain(cell).replace("|", "\\|") for cell in cells) + " |"

        def plain(text: str) -> str:
            return text.replace("*", "\\*")

        rule = ["---:" if c in self.right else "---" for c in self.columns]
        body = [line(self.columns), line(rule), *map(line, self.rows)] if self.columns else []
        foot = [f"- {plain(text)}" for text in self.foot if text]
        parts = ["\n\n".join(plain(text) for text in self.head if text), "\n".join(body), "\n".join(foot)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def html(self, caption: str = "", links: Mapping[str, str] | None = None, kind: str = "") -> str:
        """The table as a page shows it, the lines below as a list. `caption` replaces the lines above, `links` go by
        the text of first cells, `kind` is the class of the table."""
        said = caption or " ".join(text for text in self.head if text)
        parts = [self._html_body(said, links or {}, kind)] if self.columns else []
        notes = "".join(f"<li>{escape(text)}</li>" for text in self.foot if text)
        return "\n".join((*parts, f'<ul class="notes">{notes}</ul>' if notes else ""))

    def _html_body(self, caption: str, links: Mapping[str, str], kind: str) -> str:
        def cell(name: str, text: str, *, first: bool) -> str:
            parted = "[" in text or " of " in text  # may stand in two lines
            kinds = {
                "num": name in self.right,
                "short": len(text) < 30 and not parted,
                "long": len(text) > 34,
                "none": text == DASH,
                "spare": name in self.spare,
            }
            classes = " ".join(kind for kind, holds in kinds.items() if holds)
            unbroken = text.replace(" ", "\u00a0") if name in self.right and len(text) <= SHORT else text
            shown = ENDS.sub(r'<span class="ends">\g<0></span>', escape(unbroken))
            if first and text in links:
                shown = f'<a href="{escape(links[text])}">{shown}</a>'
            return f'<td class="{classes}" data-head="{escape(name)}">{shown}</td>'

        heads = "".join(
            f'<th scope="col" class="{"num" if name in self.right else ""}{" spare" if name in self.spare else ""}">'
            f"{escape(name)}</th>"
            for name in self.columns
        )
        rows = "\n".join(
            "<tr>"
            + "".join(cell(n, t, first=i == 0) for i, (n, t) in enumerate(zip(self.columns, row, strict=True)))
            + "</tr>"
            for row in self.rows
        )
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">\n'
            f"<table{f' class={chr(34)}{escape(kind)}{chr(34)}' if kind else ''}>\n"
            f"<caption>{escape(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
            f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
        )


def render(tables: Sequence[Table], record: Any, form: Format, out: IO[str]) -> None:
    """Write tables, or `record` as JSON. Several tables of CSV have a blank line between them."""
    if form == "json":
        origin = getattr(record, "_origin", None)
        out.write(to_json(record, origin.written() if origin else None) + "\n")
    elif form == "csv":
        out.write("\n".join(table.csv() for table in tables))
    elif form == "md":
        out.write("\n".join(table.markdown() for table in tables))
    else:
        bold = takes_bold(out)
        out.write("\n".join(table.text(bold=bold) for table in tables))


def csv_cells(values: Sequence[Any]) -> list[str]:
    """Values as cells of CSV, as those of tables are: numbers with all their digits, None as nothing."""
    return [_inert(_plain(value)) for value in values]


def _inert(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula (names may come from files of others), and without carriage
    returns, which the csv module of Python 3.11 does not quote."""
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if FORMULA.match(text) else text


def to_json(record: Any, question: Mapping[str, Any] | None = None) -> str:
    """A record as indented JSON, or a list of them under `items`; numbers that are not finite become null. A `question`
    stands in it under that name, so that the answer can be asked for again."""
    from pydantic import TypeAdapter

    if isinstance(record, tuple | list | dict):
        record = {"schema_version": SCHEMA_VERSION, "items": record}
    text: bytes = TypeAdapter(Any).dump_json(record, indent=2)
    if question is None:
        return text.decode()
    return f'{text.decode()[:-2]},\n  "question": {json.dumps(question)}\n}}'


def _flat_rows(records: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Columns named by their paths in the JSON (`ttft_s.mid`, `levels.0.bytes`), and a row of text per record, numbers
    with all their digits. What a record does not have is left empty. Units are those of the records: SI, or as the name
    says."""
    flat = [dict(_leaves("", record)) for record in records]
    seen = dict.fromkeys(name for row in flat for name in row)
    order = {head: i for i, head in enumerate(dict.fromkeys(name.partition(".")[0] for name in seen))}
    # a part that some records lack stands as one empty column there and as several where it is
    inner = {name[: -len(end)] for name in seen for end in _ends(name)}
    columns = sorted((n for n in seen if n not in inner), key=lambda name: order[name.partition(".")[0]])
    return columns, [[row.get(name, "") for name in columns] for row in flat]


def _ends(path: str) -> Iterator[str]:
    """All endings of a path: `.c` and `.b.c` of `a.b.c`."""
    parts = path.split(".")
    return (f".{'.'.join(parts[i:])}" for i in range(1, len(parts)))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Lists of records are numbered, lists of words and numbers stand in one cell, parted by semicolons."""
    parts: Mapping[str, Any] | None = None
    if is_dataclass(value):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
    elif isinstance(value, Mapping):
        parts = value
    elif isinstance(value, Sequence) and any(is_dataclass(v) or isinstance(v, Mapping) for v in value):
        parts = {str(i): part for i, part in enumerate(value)}
    if parts is None:
        yield path, _plain(value)
        return
    for name, part in parts.items():
        yield from _leaves(f"{path}.{name}" if path else str(name), part)


def _plain(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(map(_plain, value))
    return str(value)
