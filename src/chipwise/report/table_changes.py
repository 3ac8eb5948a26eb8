"""What changed in a table of facts, a line for every entry."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.errors import shorten

__all__ = ["table_changes"]

MOST = 40  # lines of a table


def table_changes(name: str, before: bytes | None, after: bytes | None) -> list[str]:
    """The entries of a TOML, CSV or JSON table that came, went or changed; of other files that they did."""
    if before is None or after is None:
        return ["is new" if before is None else "is gone"]
    try:
        old, new = dict(_entries(name, before.decode())), dict(_entries(name, after.decode()))
    except ValueError:
        return ["has changed"]
    lines = []
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            lines.append(f"{key}: gone")
        elif key not in old:
            lines.append(f"{key}: new")
        elif old[key] != new[key]:
            lines.append(f"{key}: {shorten(str(old[key]))} -> {shorten(str(new[key]))}")
    return lines[:MOST] + ([f"and {len(lines) - MOST} more"] if len(lines) > MOST else [])


def _entries(name: str, text: str) -> Iterator[tuple[str, Any]]:
    if name.endswith(".toml"):
        yield from _flat("", tomllib.loads(text))
    elif name.endswith(".json"):
        yield from _flat("", json.loads(text))
    elif name.endswith(".csv"):
        yield from _rows(text)
    else:
        raise ValueError(name)


def _flat(prefix: str, node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), value)
    else:
        yield prefix, node


def _rows(text: str) -> Iterator[tuple[str, Any]]:
    """The cells of a CSV by row and column. A row goes by its cells of words, as names and dates; among rows
    that share those it goes by its place."""
    seen: dict[str, int] = {}
    for row in csv.DictReader(io.StringIO(text)):
        named = [v for v in row.values() if isinstance(v, str) and v and not _numeric(v)][:4]
        key = " ".join(named)
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key} ({seen[key]})"
        for column, value in row.items():
            yield f"{key}, {column}", value


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
