"""What is said about hardware: statements with their verdict and the questions that show it, as a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

TABLE = "catalog/data/statements.toml"
WORDING = "catalog/data/wording.toml"
SAYINGS = "catalog/data/sayings.toml"
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


@dataclass(frozen=True, slots=True)
class SentenceKind:
    """A kind of sentence: `when` it is of this kind, the unit `of` the figure that is judged, the `way` in code that
    prepares it, its questions and figures as a statement has them, and `cases` [when, verdict, why], of which the first
    that holds is the verdict. `because` is what several of them say, `read` the sentence as it was understood;
    `denies`: the cases know of sentences that deny."""

    when: str
    cases: tuple[tuple[str, str, str], ...]
    of: str = ""
    way: str = ""
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    figures: Mapping[str, Said] = field(default_factory=dict)
    because: str = ""
    read: str = ""
    denies: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """What two chips are compared by: how a sentence says it, and `where` it holds; whether it is `predicted`; else the
    `figure` of a chip, for sentences about its `aspect`."""

    says: str
    where: str = ""
    predicted: bool = False
    aspect: str = ""
    figure: str = ""


@dataclass(frozen=True, slots=True)
class Sayings:
    """How sentences with figures are judged: kinds in their order, what two chips are compared by, and for other
    sentences [when, commands...] that would answer them."""

    kinds: Mapping[str, SentenceKind]
    measures: Mapping[str, Compared]
    would: tuple[tuple[str, ...], ...]


@per_snapshot
def load_sayings() -> Sayings:
    """How sentences with figures are judged; read once."""
    return record(Sayings, parse(shipped_text(SAYINGS)), SAYINGS)


@dataclass(frozen=True, slots=True)
class Unit:
    """How people write figures of a unit, and what the number of one is multiplied by: `scale`, else what the word
    behind it means, or `per` divided by that."""

    pattern: re.Pattern[str]
    scale: float
    per: float


Patterns = Mapping[str, re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class Wording:
    """The words by which people say something of hardware: the tables of `wording.toml`."""

    scales: Mapping[str, float]
    units: Mapping[str, Unit]
    counts: Mapping[str, int]
    times: Mapping[str, float]
    aspects: Patterns
    precisions: Patterns
    wide: Patterns
    marks: Patterns
    bare: Patterns
    parsed: Patterns


@per_snapshot
def load_wording() -> Wording:
    """The words by which people say something; read once."""
    document = parse(shipped_text(WORDING))

    def pattern(text: str) -> re.Pattern[str]:
        while named := re.search(r"(?<!\?)<([a-z]+)>", text):
            text = text.replace(named[0], document["parts"][named[1]])
        return re.compile(text, re.I)

    units = {n: Unit(pattern(u["words"]), u.get("scale", 0.0), u.get("per", 0.0)) for n, u in document["units"].items()}
    texts = ("aspects", "precisions", "wide", "marks", "bare", "parsed")
    patterns = [{name: pattern(text) for name, text in document[table].items()} for table in texts]
    return Wording(document["scales"], units, document["counts"], document["times"], *patterns)


def reads(name: str, text: str, *, match: bool = False) -> re.Match[str] | None:
    """Where words stand in a text, with `match` at its beginning."""
    words = load_wording().parsed[name]
    return words.match(text) if match else words.search(text)


def found_first(kinds: Patterns, text: str, default: str) -> str:
    """The first kind whose words stand in a text."""
    return next((kind for kind, words in kinds.items() if words.search(text)), default)


@per_snapshot
def load_statements() -> Mapping[str, Statement]:
    """All statements by name; read once."""
    document = parse(shipped_text(TABLE))
    return MappingProxyType({n: record(Statement, e, f"{TABLE}: {n}", name=n) for n, e in document.items()})


def words_of(text: str) -> str:
    """A text as its words in small letters, one blank between them; several of a part are the part (`A100s`)."""
    words = re.findall(r"[a-z0-9$%/]+(?:[.,'-]?[a-z0-9]+)*", text.lower())
    return " ".join(re.sub(r"(?<=[a-z]\d)s$|(?<=\d\d)s$", "", word) for word in words)
