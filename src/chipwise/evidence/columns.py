"""Large tables as columns: a few arrays instead of a hundred thousand rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import UsageError, shorten
from chipwise.evidence.rows import RowPart, opened_parquet, read_rows

Columns = dict[str, NDArray[Any]]


def read_columns(
    path: str,
    text: Sequence[str],
    numbers: Sequence[str],
    required: Iterable[str] = (),
    refused: dict[int, str] | None = None,
) -> Columns:
    """Columns of a CSV or Parquet file by name: `text` as strings, `numbers` as floats, blanks as "" and NaN.

    Columns that the file lacks are blank. Rows with text where a number belongs are added to `refused` with the
    reason, the number being NaN. Raises `UsageError` for a file that cannot be read, lacks a required column or,
    without `refused`, has such a row; `MissingExtraError` for Parquet without pyarrow.
    """
    file = Path(path)
    if file.suffix.lower() == ".parquet" and file.is_file() and not isinstance(path, RowPart):
        found = _parquet(file, text, numbers)
    else:
        rows = list(read_rows(path, ()))
        found = {n: np.array([r[n] for r in rows]) for n in (*text, *numbers) if n in rows[0]}
    for name in required:
        if name not in found:
            raise UsageError(f"{path}: no column {name}", f"needed: {', '.join(required)}")
    size = len(next(iter(found.values()), ()))
    if not size:
        raise UsageError(f"{path}: holds no rows")
    columns: Columns = {name: found.get(name, np.full(size, "")).astype(str) for name in text}
    for name in numbers:
        columns[name] = _numbers(found.get(name, np.full(size, "")), name, path, refused)
    return columns


def _numbers(values: NDArray[Any], name: str, path: str, refused: dict[int, str] | None) -> NDArray[np.float64]:
    if values.dtype.kind in "fiub":
        return values.astype(float)
    try:
        return np.where(values == "", "nan", values).astype(float)
    except ValueError as error:
        if refused is None:
            raise UsageError(f"{path}: column {name} holds text", shorten(str(error))) from None
    out = np.full(len(values), np.nan)
    for i, value in enumerate(values.tolist()):
        try:
            out[i] = float(value) if value != "" else np.nan
        except ValueError:
            refused.setdefault(i, f"{name} '{shorten(str(value), 40)}' is no number")
    return out


def _parquet(file: Path, text: Sequence[str], numbers: Sequence[str]) -> Columns:
    with opened_parquet(file) as source:
        there = [n for n in (*text, *numbers) if n in source.schema_arrow.names]
        table = source.read(columns=there)
        return {n: _array(table.column(n), as_text=n in text) for n in there}


def _array(column: Any, *, as_text: bool) -> NDArray[Any]:
    """Numbers as floats where they may be; anything else as text, each distinct text made once."""
    from pyarrow import types

    if not as_text and (types.is_integer(column.type) or types.is_floating(column.type)):
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), dtype=float)
    whole = column.combine_chunks()
    coded = whole if types.is_dictionary(column.type) else whole.dictionary_encode()
    texts = np.array(["", *("" if v is None else str(v) for v in coded.dictionary.to_pylist())])
    codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    shown: NDArray[Any] = texts[np.asarray(codes) + 1]
    return shown
