"""How well models guess their own next tokens: published facts of `data/drafts.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.numeric import root
from chipwise.values import dataclass

TABLE = "catalog/data/drafts.toml"
HALVINGS = 40  # of the interval in which an acceptance is looked for


@dataclass(frozen=True, slots=True)
class Accepted:
    """A published mean of `tokens` that came out of a pass of a `model` which verified `draft` guesses of its own
    module, the model's own token included. `text` says what was written, `source` as in the table."""

    model: str
    draft: int
    tokens: float
    text: str
    source: Mapping[str, str]

    @property
    def acceptance(self) -> float:
        """The probability of each guess, given those before it, with which as many tokens come out."""
        fewer, _ = root(lambda p: sum(p**i for i in range(self.draft + 1)) < self.tokens, 0.0, 1.0, HALVINGS)
        return float(fewer)


@dataclass(frozen=True, slots=True)
class Guessing:
    """What is published of guesses: the mean `acceptance`, and in `words` of what."""

    acceptance: float
    words: str


@per_snapshot
def load_accepted() -> tuple[Accepted, ...]:
    """Every published figure."""
    return tuple(record(Accepted, row, TABLE) for row in parse(shipped_text(TABLE))["accepted"])


def guessing(model: str, draft: int) -> Guessing:
    """How often `draft` tokens are accepted that the module of a model guesses: as published of it for the nearest
    number of guesses, else the median of other models."""
    rows = load_accepted()
    mine = _nearest([row for row in rows if row.model == model], draft)
    if mine:
        pages = ", ".join(dict.fromkeys(row.source["ref"].removeprefix("https://") for row in mine))
        texts = "; ".join(row.text for row in mine)
        return Guessing(fmean(row.acceptance for row in mine), f"published for {mine[0].draft}: {texts} ({pages})")
    others = {row.model: _nearest([o for o in rows if o.model == row.model], draft) for row in rows}
    each = [fmean(row.acceptance for row in found) for found in others.values()]
    words = f"the median of {len(each)} other models, {min(each):.0%} to {max(each):.0%}"
    return Guessing(median(each), words)


def _nearest(rows: Sequence[Accepted], draft: int) -> list[Accepted]:
    """Those with the nearest number of guesses, the fewer of two as near."""
    at = min((row.draft for row in rows), key=lambda d: (abs(d - draft), d), default=0)
    return [row for row in rows if row.draft == at]
