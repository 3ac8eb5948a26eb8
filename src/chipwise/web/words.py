"""Words of the page: names of fields, and sentences in which options of the command line have those names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.parsed import names
from chipwise.report.answer import renamed
from chipwise.report.table import Table

LABELS: Mapping[str, str] = names("web/data/form.toml")["labels"]
"""Names that say less than they could; all others are read as they are written."""


def label_of(field: str) -> str:
    """How a form calls a field."""
    return LABELS.get(field, field.replace("_", " ").capitalize())


def in_words(line: str) -> str:
    """A line without options of the command line: `--tpot 54ms` is the field `TPOT target 54ms`. One with a command
    stays as it is."""
    return renamed(line, label_of)


def plainly(table: Table) -> Table:
    """A table with its lines in words."""
    return replace(table, head=tuple(map(in_words, table.head)), foot=tuple(map(in_words, table.foot)))
