"""What is said about hardware: statements with their verdict and the questions that show it, as a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

TABLE = "catalog/data/statements.toml"
Verdict = Literal["true", "true with a condition", "misleading", "false"]


@dataclass(frozen=True, slots=True)
class Said:
    """A figure of a statement: what it is, the expression over answers and earlier figures that works it out, and its
    unit ("": as it is)."""

    what: str
    value: str
    unit: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and its verdict. `says`: of every group one word or phrase (between bars) occurs in a text that makes
    it. `asks` are
    verbs and their fields by the name that figures use; `holds` must be true of the figures for the verdict to stand.
    `because` quotes figures in braces; `sources` were read besides."""

    name: str
    text: str
    says: tuple[str, ...]
    verdict: Verdict
    confidence: Literal["high", "medium", "low"]
    because: str
    asks: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Said]
    holds: str
    sources: tuple[str, ...] = ()

    def made_in(self, text: str) -> bool:
        """Whether a text makes this statement."""
        words = f" {words_of(text)} "
        return all(any(f" {words_of(w)} " in words for w in group.split("|")) for group in self.says)


@per_snapshot
def load_statements() -> Mapping[str, Statement]:
    """All statements by name; read once."""
    document = parse(shipped_text(TABLE))
    return MappingProxyType({n: record(Statement, e, f"{TABLE}: {n}", name=n) for n, e in document.items()})


def words_of(text: str) -> str:
    """A text as its words in small letters, one blank between them; several of a part are the part (`A100s`)."""
    words = re.findall(r"[a-z0-9$%/]+(?:[.,'-]?[a-z0-9]+)*", text.lower())
    return " ".join(re.sub(r"(?<=[a-z]\d)s$|(?<=\d\d)s$", "", word) for word in words)
