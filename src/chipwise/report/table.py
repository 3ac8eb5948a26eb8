"""A table with lines above and below it, and its four renderings."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from chipwise.report.flat import flat_rows
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.terminal import show

__all__ = ["Format", "Table", "render", "to_json"]

Format = Literal["table", "json", "csv", "md"]
FORMULA = re.compile(r"[=@\t]|[-+](?![\d.\s]|$)")


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of text; a column whose name is in `right` is aligned to the right. `records` are what the rows
    were written from (dataclasses or mappings): CSV shows their values instead of the text."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()
    right: frozenset[str] = frozenset()
    records: Sequence[Any] | None = None


def render(tables: Sequence[Table], record: Any, form: Format, out: IO[str]) -> None:
    """Write tables, or `record` as JSON. CSV holds the rows alone, so that programs can read it: plain numbers
    with all their digits where the table knows its records, with a blank line between tables."""
    if form == "json":
        out.write(to_json(record) + "\n")
    elif form == "csv":
        writer = csv.writer(out, lineterminator="\n")
        for i, table in enumerate(tables):
            if i:
                out.write("\n")
            names, rows = (table.columns, table.rows) if table.records is None else flat_rows(table.records)
            writer.writerow(names)
            writer.writerows(map(_inert, row) for row in rows)
    elif form == "md":
        out.write("\n".join(_markdown(table) for table in tables))
    else:
        for table in tables:
            _text(table, out)


def _inert(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula (names may come from files of others), and without carriage
    returns, which the csv module of Python 3.11 does not quote."""
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if FORMULA.match(text) else text


def to_json(record: Any) -> str:
    """A record as indented JSON, or a list of them under `items`; numbers that are not finite become null."""
    from pydantic import TypeAdapter

    if isinstance(record, tuple | list | dict):
        record = {"schema_version": SCHEMA_VERSION, "items": record}
    text: bytes = TypeAdapter(Any).dump_json(record, indent=2)
    return text.decode()


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(plain(cell).replace("|", "\\|") for cell in cells) + " |"

    def plain(text: str) -> str:
        return text.replace("*", "\\*")

    rule = ["---:" if c in table.right else "---" for c in table.columns]
    body = [line(table.columns), line(rule), *(line(row) for row in table.rows)] if table.columns else []
    foot = [f"- {plain(text)}" for text in table.foot if text]
    parts = ["\n\n".join(plain(text) for text in table.head if text), "\n".join(body), "\n".join(foot)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _text(table: Table, out: IO[str]) -> None:
    from rich.console import Console

    terminal = out.isatty()
    # a pipe has no width: nothing is cut or wrapped there
    console = Console(file=out, width=None if terminal else 400, highlight=False, emoji=False, markup=False)
    # as text: rich would end the program when the reader of a pipe has gone
    out.write(show(table, console, terminal=terminal))
