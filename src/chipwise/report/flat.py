"""Records as rows of a CSV: one column for every number, named by its path in the JSON of the record."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["flat_rows"]


def flat_rows(records: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Columns (`ttft_s.mid`, `layout.tp`) and a row of text per record, numbers with all their digits.

    What a record does not have is left empty. Lists are joined by semicolons. Units are those of the records:
    SI, or as the name says.
    """
    flat = [dict(_leaves("", record)) for record in records]
    seen = dict.fromkeys(name for row in flat for name in row)
    order = {head: i for i, head in enumerate(dict.fromkeys(name.partition(".")[0] for name in seen))}
    # a part that some records lack stands as one empty column there and as several where it is
    inner = {name.rpartition(".")[0] for name in seen}
    columns = sorted((n for n in seen if n not in inner), key=lambda name: order[name.partition(".")[0]])
    return columns, [[row.get(name, "") for name in columns] for row in flat]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    parts: Mapping[str, Any] | None = None
    if is_dataclass(value):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
    elif isinstance(value, Mapping):
        parts = value
    if parts is None:
        yield path, _text(value)
        return
    for name, part in parts.items():
        yield from _leaves(f"{path}.{name}" if path else str(name), part)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(
            json.dumps(dict(_leaves("", item))) if is_dataclass(item) else _text(item) for item in value
        )
    return str(value)
