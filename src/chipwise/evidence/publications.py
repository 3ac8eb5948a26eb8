"""What publications leave out, or word in their own way: rules over the columns of a row, kept as tables.

A rule says fields of the question where all of its patterns are found in the columns (small letters; `^$`: blank); the
first rule that says a field decides. `{1}`, `{2}`, ... stand for the groups of the patterns, in their order.
"""

from __future__ import annotations

import re

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.evidence.rows import Row

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
