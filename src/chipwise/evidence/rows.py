"""Rows of published measurements: reading them, and writing predictions beside them.

What publications leave out, or word in their own way, are rules over the columns of a row, kept as tables
(`said_of`). A rule says fields of the question where all of its patterns are found in the columns (small letters;
`^$`: blank); the first rule that says a field decides. `{1}`, `{2}`, ... stand for the groups of the patterns, in their
order.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chipwise.catalog.files import writing
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_bytes, shipped_names, shipped_text
from chipwise.errors import MissingExtraError, UsageError, shorten
from chipwise.values import dataclass

Row = Mapping[str, str]

COLUMNS = ("row_id", "metric", "predicted", "low", "high", "basis", "refused")


@dataclass(frozen=True, slots=True)
class Predicted:
    """One metric of one row: a figure with its interval, or the reason for none. `command` is the command line that
    gives the same answer, where a user can ask for it."""

    row_id: str
    metric: str
    mid: float | None
    low: float | None = None
    high: float | None = None
    basis: str = ""
    refused: str = ""
    command: str = ""


def id_of(row: Row) -> str:
    """The name of a row."""
    return row.get("row_id") or row.get("id", "")


class RowPart(str):
    """The path of a table of which only some `rows` are read, as if the file held no others."""

    rows: tuple[Row, ...]

    @staticmethod
    def of(path: str, rows: Iterable[Row]) -> RowPart:
        """These rows of the table at a path."""
        part = RowPart(path)
        part.rows = tuple(rows)
        return part


SHIPPED = "catalog/data/published"


def shipped_table(file: str) -> RowPart | None:
    """A table of measurements that may be passed on and comes with the package, by its file name; None for others."""
    if f"{SHIPPED}/{file}.gz" not in shipped_names(SHIPPED, ".csv.gz"):
        return None
    text = gzip.decompress(shipped_bytes(f"{SHIPPED}/{file}.gz")).decode()
    return RowPart.of(file, csv.DictReader(io.StringIO(text)))


def read_rows(path: str, required: Iterable[str]) -> Iterator[dict[str, str]]:
    """The rows of a CSV or Parquet file as text, blanks for nulls.

    Raises `UsageError` for a file that cannot be read or lacks a required column, `MissingExtraError` for
    Parquet without pyarrow.
    """
    file = Path(path)
    if isinstance(path, RowPart):
        rows: Iterator[dict[str, str]] = map(dict, path.rows)
    elif not file.is_file():
        raise UsageError(f"no such file: {path}", "give the rows as .csv or .parquet")
    else:
        rows = _parquet(file) if file.suffix.lower() == ".parquet" else _csv(file)
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{path}: holds no rows")
    missing = [name for name in required if name not in first]
    if missing:
        raise UsageError(f"{path}: no column {missing[0]}", f"needed: {', '.join(required)}")
    yield first
    yield from rows


def number(
    row: Row, name: str, least: float = 1e-9, most: float = 1e9, blank: float | None = None, *, whole: bool = False
) -> float:
    """A figure of a row from `least` to `most`, `blank` where nothing stands there. Raises `UsageError` for a text that
    is none, a figure out of range, or one with decimals where a `whole` one is asked."""
    try:
        value = blank if blank is not None and not row.get(name) else float(row[name])
    except (KeyError, ValueError):
        said = f" = '{shorten(row[name], 40)}'" if row.get(name) else ""
        raise UsageError(f"{name}{said} cannot be read", f"a number in the column {name}") from None
    if not least <= value <= most:
        raise UsageError(f"{name} = {value:g} is out of range", f"from {least:g} to {most:g}")
    if whole and value != int(value):
        raise UsageError(f"{name} = {value:g} has decimals", f"a whole number from {least:g} to {most:g}")
    return value


def positive(row: Row, name: str) -> float | None:
    """A positive figure of a row; None where it has none. Raises `UsageError` for another text."""
    if (row.get(name) or "").strip().lower() in ("", "nan"):
        return None
    value = number(row, name, -math.inf, math.inf)
    return value if value > 0 else None


def pairs(text: str) -> dict[str, str]:
    """What a cell says as `name=value; name=value`; a name alone says nothing of itself."""
    each = (part.partition("=") for part in text.split(";") if part)
    return {name.strip(): value.strip() for name, _, value in each}


def write_predictions(predictions: Iterable[Predicted], path: str) -> int:
    """Write predictions as CSV; the file appears whole or not at all. Returns the number of lines.

    Raises `UsageError` where the file cannot be written.
    """
    count = 0
    with writing(path) as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for p in predictions:
            numbers = ("" if x is None else str(x) for x in (p.mid, p.low, p.high))
            writer.writerow((p.row_id, p.metric, *numbers, p.basis, p.refused))
            count += 1
    return count


def write_commands(predictions: Iterable[Predicted], path: str) -> None:
    """Write `row_id, command` of every row that has one; the file appears whole or not at all.

    Raises `UsageError` where the file cannot be written.
    """
    found = {p.row_id: p.command for p in predictions if p.command}
    with writing(path) as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("row_id", "command"))
        writer.writerows(found.items())


def _csv(file: Path) -> Iterator[dict[str, str]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as source:
            for row in csv.DictReader(source):
                yield {k: v or "" for k, v in row.items() if k is not None}
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: not a CSV file", str(error)) from None


@contextmanager
def opened_parquet(file: Path) -> Iterator[Any]:
    """A Parquet file to read. Raises `UsageError` where it cannot be read, `MissingExtraError` without pyarrow."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtraError("reading Parquet", "parquet") from None
    try:
        yield ParquetFile(file)
    except (ArrowException, OSError) as error:  # a damaged page is an OSError to pyarrow
        raise UsageError(f"{file}: not a Parquet file", shorten(str(error))) from None


def _parquet(file: Path) -> Iterator[dict[str, str]]:
    with opened_parquet(file) as source:
        for batch in source.iter_batches():
            for row in batch.to_pylist():
                yield {k: "" if v is None else str(v) for k, v in row.items()}


GROUP = re.compile(r"\{(\d)\}")


def said_of(row: Row, table: str) -> dict[str, str]:
    """What the rules of `evidence/data/TABLE.toml` say of a row, by field."""
    found: dict[str, str] = {}
    for where, say in _rules(table):
        groups: list[str] = []
        for column, pattern in where.items():
            hit = pattern.search((row.get(column) or "").lower())
            if hit is None:
                break
            groups += [g for g in hit.groups() if g]
        else:
            for name, text in say.items():
                found.setdefault(name, _filled(text, groups))
    return found


def _filled(text: str, groups: list[str]) -> str:
    return GROUP.sub(lambda m: groups[int(m[1]) - 1], text) if groups else text


@per_snapshot
def _rules(table: str) -> tuple[tuple[dict[str, re.Pattern[str]], dict[str, str]], ...]:
    return tuple(
        ({column: re.compile(text) for column, text in rule["where"].items()}, rule["say"])
        for rule in parse(shipped_text(f"evidence/data/{table}.toml"))["rule"]
    )
