"""What a model keeps of its score in another number format, as published: one test before and after, of one page.

Nothing here is predicted. A checkpoint that somebody tested is told with its own scores; else the same format on other
models shows what such a conversion has cost elsewhere; else nothing is known, and the words say so.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, median
from types import MappingProxyType

from chipwise.catalog.checkpoints import same_maker
from chipwise.catalog.names import tuned, weights
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

UNKNOWN = "quality not assessed"
"""What is said where nothing is published."""
LIKE: Mapping[str, str] = MappingProxyType({"fp8_block": "fp8", "fp8_row": "fp8"})
"""Formats that differ in where their scales stand alone: each counts as the other."""
FEWEST = 3
"""unit: models. Chosen: of fewer, the worst says little about the next; moves whether other models are told."""


@dataclass(frozen=True, slots=True)
class FormatTest:
    """A test of the unconverted (`base`) and of the converted weights, in the unit of its page: percent, or a
    perplexity. `repository` is the converted checkpoint, "" where a page names a method alone; `date` that of the page,
    else the day it was read."""

    model: str
    format: str
    repository: str
    test: str
    base: float
    score: float
    page: str
    date: str

    @property
    def kept(self) -> float:
        """The share of the score that is kept: of a perplexity its inverse."""
        return self.base / self.score if of_words(self.test) else self.score / self.base


@dataclass(frozen=True, slots=True)
class QualityRecord:
    """What weights keep of their score in the number format `format`: on average of `tests` a share `kept`, at worst
    `worst`, on `test`, from `base` to `score`. `models` is 0 where the model itself was tested, as the checkpoint
    `repository` ("": a method without one); else so many other models were, `kept` is their median and `test`, of which
    the scores are left 0, that of the worst.
    `page` and `date` say where the worst stands."""

    format: str
    kept: float
    worst: float
    tests: int
    test: str
    base: float
    score: float
    repository: str
    models: int
    page: str
    date: str

    @property
    def words(self) -> str:
        """A clause whose subject is the number format."""
        if self.models:
            return f"{self._elsewhere} on {self.models} other models in the median (not tested on this one)"
        one = f"{self.score:.4g}, unconverted {self.base:.4g}"
        one = f"a {self.test} of {one}" if of_words(self.test) else f"{one}, on {self.test}"
        by = f"({self.repository or self.page.removeprefix('https://')})"
        if self.tests == 1:
            return f"{'has' if of_words(self.test) else 'scores'} {one} {by}"
        mean = f"keeps {share(self.kept)} of the score on average of {self.tests} tests"
        return f"{mean}, at worst {share(self.worst)}: {one} {by}"

    @property
    def _elsewhere(self) -> str:
        if of_words(self.test):
            return f"raised perplexity by {share(1.0 / self.kept - 1.0)}, at worst {share(1.0 / self.worst - 1.0)},"
        return f"kept {share(self.kept)} of the score, at worst {share(self.worst)},"


def of_words(test: str) -> bool:
    """Whether a test is a perplexity, which grows as a model gets worse, rather than a share of right answers."""
    return "perplexity" in test.lower()


def share(kept: float) -> str:
    """A share of a score in percent: as finely as such tests repeat."""
    return f"{100.0 * kept:.1f}%"


@per_snapshot
def load_format_tests() -> tuple[FormatTest, ...]:
    """Published tests of converted weights: facts of `data/quality.csv`, each with its page: where none is named, that
    of the checkpoint."""
    rows = csv.DictReader(io.StringIO(shipped_text("catalog/data/quality.csv")))
    return tuple(
        FormatTest(
            row["model"],
            row["format"],
            row["repository"],
            row["test"],
            float(row["base_score"]),
            float(row["score"]),
            row["page"] or f"https://huggingface.co/{row['repository']}",
            row["date"],
        )
        for row in rows
    )


@per_snapshot
def quality_of(model: str, number_format: str, checkpoint: str = "") -> QualityRecord | None:
    """What is published of a model in a number format, None where it is neither of the model nor of enough others.

    Of several that were tested the `checkpoint` in question is told, then that of the model's maker, then the one with
    most tests. Shares of right answers go before perplexities.
    """
    name = LIKE.get(number_format, number_format)
    rows = [row for row in load_format_tests() if LIKE.get(row.format, row.format) == name]
    mine = [row for row in rows if _same(row.model, model)]
    if mine:
        answers = [row for row in mine if not of_words(row.test)]
        return _own(answers or mine, number_format, model, checkpoint)
    return _others([row for row in rows if not of_words(row.test)], number_format) or _others(rows, number_format)


def quality_words(found: QualityRecord | None) -> str:
    """The same in words, `UNKNOWN` where nothing is published."""
    return found.words if found else UNKNOWN


def tested(model: str) -> tuple[QualityRecord, ...]:
    """What is published of the model itself, the least loss first."""
    named = dict.fromkeys(row.format for row in load_format_tests() if _same(row.model, model))
    found = [record for name in named if (record := quality_of(model, name)) is not None]
    return tuple(sorted(found, key=lambda record: -record.kept))


def _same(one: str, other: str) -> bool:
    """Whether two names are of the same weights; a base model and one tuned to answer are two."""
    return (weights(one), tuned(one)) == (weights(other), tuned(other))


def _checkpoints(rows: Iterable[FormatTest]) -> list[list[FormatTest]]:
    """The tests of each checkpoint on each page."""
    found = defaultdict[tuple[str, str, str], list[FormatTest]](list)
    for row in rows:
        found[row.model, row.repository, row.page].append(row)
    return list(found.values())


def _own(rows: Iterable[FormatTest], name: str, model: str, checkpoint: str) -> QualityRecord:
    def place(tests: list[FormatTest]) -> tuple[bool, bool, bool, int, str]:
        of = tests[0]
        return (
            not checkpoint or of.repository != checkpoint,
            of.format != name,
            not same_maker(of.repository, model),
            -len(tests),
            of.repository,
        )

    chosen = min(_checkpoints(rows), key=place)
    last = min(chosen, key=lambda row: row.kept)
    mean = fmean(row.kept for row in chosen)
    return QualityRecord(
        name, mean, last.kept, len(chosen), last.test, last.base, last.score, last.repository, 0, last.page, last.date
    )


def _others(rows: Iterable[FormatTest], name: str) -> QualityRecord | None:
    """What a format has cost on other models, of which each counts once: by its checkpoint with most tests."""
    by_model = defaultdict[str, list[list[FormatTest]]](list)
    for tested in _checkpoints(rows):
        by_model[tested[0].model].append(tested)
    kept = {most[0]: fmean(row.kept for row in most) for most in (max(c, key=len) for c in by_model.values())}
    if len(kept) < FEWEST:
        return None
    worst = min(kept, key=lambda row: kept[row])
    return QualityRecord(
        name, median(kept.values()), kept[worst], 0, worst.test, 0.0, 0.0, "", len(kept), worst.page, worst.date
    )
