"""Rows of published measurements: reading them, and writing predictions beside them."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import MissingExtraError, UsageError, shorten

__all__ = ["Predicted", "Row", "read_rows", "write_predictions", "write_table"]

Row = Mapping[str, str]

COLUMNS = ("row_id", "metric", "predicted", "low", "high", "basis", "refused")


@dataclass(frozen=True, slots=True)
class Predicted:
    """One metric of one row: a figure with its interval, or the reason for none."""

    row_id: str
    metric: str
    mid: float | None
    low: float | None = None
    high: float | None = None
    basis: str = ""
    refused: str = ""


def read_rows(path: str, required: Iterable[str]) -> Iterator[dict[str, str]]:
    """The rows of a CSV or Parquet file as text, blanks for nulls.

    Raises `UsageError` for a file that cannot be read or lacks a required column, `MissingExtraError` for
    Parquet without pyarrow.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"no such file: {path}", "give the rows as .csv or .parquet")
    rows = _parquet(file) if file.suffix.lower() == ".parquet" else _csv(file)
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{path}: holds no rows")
    missing = [name for name in required if name not in first]
    if missing:
        raise UsageError(f"{path}: no column {missing[0]}", f"needed: {', '.join(required)}")
    yield first
    yield from rows


def write_predictions(predictions: Iterable[Predicted], path: str) -> int:
    """Write predictions as CSV; returns the number of lines. Raises as `write_table`."""
    numbers = ((p, ("" if x is None else str(x) for x in (p.mid, p.low, p.high))) for p in predictions)
    return write_table(
        COLUMNS, ((p.row_id, p.metric, *each, p.basis, p.refused) for p, each in numbers), path
    )


def write_table(columns: Sequence[str], lines: Iterable[Sequence[str]], path: str) -> int:
    """Write lines of text as CSV; the file appears whole or not at all. Returns the number of lines.

    Raises `UsageError` where the file cannot be written.
    """
    try:
        target = Path(path).resolve()
        usable = target.is_file() or not target.exists()
    except (OSError, ValueError, RuntimeError):
        usable = False
    if not usable:
        raise UsageError(f"{path}: not a file", "give the name of a CSV file to write")
    draft = target.with_name(f"{target.name}.{os.getpid()}.part")
    count = 0
    try:
        with draft.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(columns)
            for line in lines:
                writer.writerow(line)
                count += 1
        draft.replace(target)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written", error.strerror or "check the path") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    return count


def _csv(file: Path) -> Iterator[dict[str, str]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as source:
            for row in csv.DictReader(source):
                yield {k: v or "" for k, v in row.items() if k is not None}
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: not a CSV file", str(error)) from None


def _parquet(file: Path) -> Iterator[dict[str, str]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtraError("reading Parquet", "parquet") from None
    try:
        for batch in ParquetFile(file).iter_batches():
            for row in batch.to_pylist():
                yield {k: "" if v is None else str(v) for k, v in row.items()}
    except (ArrowException, OSError) as error:  # a damaged page is an OSError to pyarrow
        raise UsageError(f"{file}: not a Parquet file", shorten(str(error))) from None
