"""A table with lines above and below it, and its four renderings."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from chipwise.report.records import SCHEMA_VERSION

__all__ = ["Format", "Table", "render", "to_json"]

Format = Literal["table", "json", "csv", "md"]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of text; a column whose name is in `right` is aligned to the right."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()
    right: frozenset[str] = frozenset()


def render(tables: Sequence[Table], record: Any, form: Format, out: IO[str]) -> None:
    """Write tables, or `record` as JSON. CSV holds the rows alone, so that programs can read it,
    with a blank line between tables."""
    if form == "json":
        out.write(to_json(record) + "\n")
    elif form == "csv":
        writer = csv.writer(out, lineterminator="\n")
        for i, table in enumerate(tables):
            if i:
                out.write("\n")
            writer.writerow(table.columns)
            writer.writerows(table.rows)
    elif form == "md":
        out.write("\n".join(_markdown(table) for table in tables))
    else:
        for table in tables:
            _text(table, out)


def to_json(record: Any) -> str:
    """A record as indented JSON, or a list of them under `items`; numbers that are not finite become null."""
    from pydantic import TypeAdapter

    if isinstance(record, tuple | list | dict):
        record = {"schema_version": SCHEMA_VERSION, "items": record}
    text: bytes = TypeAdapter(Any).dump_json(record, indent=2)
    return text.decode()


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---:" if c in table.right else "---" for c in table.columns]
    body = [line(table.columns), line(rule), *(line(row) for row in table.rows)] if table.columns else []
    parts = ["\n\n".join(table.head), "\n".join(body), "\n\n".join(table.foot)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _text(table: Table, out: IO[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    terminal = out.isatty()
    # a pipe has no width: nothing is cut or wrapped there
    console = Console(file=out, width=None if terminal else 400, highlight=False, emoji=False, markup=False)
    # captured: rich would end the program when the reader of a pipe has gone
    with console.capture() as captured:
        for text in table.head:
            console.print(text, soft_wrap=True)
        if table.columns:
            shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
            for name in table.columns:
                shown.add_column(name, justify="right" if name in table.right else "left", overflow="fold")
            for row in table.rows:
                shown.add_row(*row)
            console.print(shown)
        for text in table.foot:
            console.print(text, soft_wrap=True)
    out.write(captured.get())
