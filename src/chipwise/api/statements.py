"""`check_statement`: what is said about hardware, held against the catalogue and the predictions.

Statements are rows of a table; their figures are worked out of the answers to the questions that stand there, and the
verdict stands only while its condition holds of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.api.said import Saying, said_in
from chipwise.api.said_compared import DENIED_IS
from chipwise.api.said_judged import judged, would_judge
from chipwise.api.worked_out import BASIS, WorkedOut, question, value_of
from chipwise.catalog.statements import Statement, load_statements, load_wording, reads, words_of
from chipwise.errors import UsageError, shorten
from chipwise.report.statements import StatementRecord, StatementsReport

LONGEST = 2_000
"""Characters of a text that is checked."""

NEAR = 4


def list_statements() -> StatementsReport:
    """All statements with their verdicts, not worked out."""
    found = tuple(_listed(s) for s in load_statements().values())
    note = 'chipwise claim check "TEXT" works out the figures of a statement'
    return StatementsReport("", found, (), note)


def _listed(s: Statement) -> StatementRecord:
    asked = ((ask["verb"], {n: v for n, v in ask.items() if n != "verb"}) for ask in s.asks.values())
    shown_by = {question(verb, given)[0]: verb for verb, given in asked}
    return _record(s, WorkedOut(commands=shown_by), None, s.because if "{" not in s.because else "")


def check_statement(text: str) -> StatementsReport:
    """The statements that a text makes, with figures and verdict; else that none is known, and the nearest.

    Raises `UsageError` for an empty or a very long text.
    """
    if not words_of(text):
        raise UsageError("there is no statement", 'as in: chipwise claim check "TPUs are a 4-D torus"', field="text")
    if len(text) > LONGEST:
        raise UsageError(f"{len(text):,} characters are no statement", f"at most {LONGEST:,}", field="text")
    saying, table = said_in(text), load_statements()
    made = [s for s in table.values() if words_of(s.text) == words_of(text)]
    if not made:
        made = [s for s in table.values() if s.made_in(text) and _about(s, saying)]
        read = _read(saying, bool(made))
        if read is not None:
            return StatementsReport(text, (read,), (), READ)
    if not made:
        note = f"no statement is known that says '{shorten(text, 60)}', and no figure or comparison in it can be judged"
        near = _nearest(text, table)
        return StatementsReport(text, (), near, f"{note}: nothing was judged", would_judge(saying))
    found = tuple(_answered_for(s, worked_out(s), saying) for s in made)
    return StatementsReport(text, found, (), TURNED if any(_denies(s, saying) for s in made) else "")


def _answered_for(s: Statement, found: StatementRecord, saying: Saying) -> StatementRecord:
    """What was found of a statement, turned round where the sentence says its opposite; that it is another, where a
    sentence that compares two chips says another ratio of them or of another model."""
    theirs = said_in(s.text)
    if _denies(s, saying):
        because = f"Known of the opposite, '{s.text.rstrip('.')}': {found.verdict}. {found.because}"
        opposite = REFUTED if reads("harm", saying.text) else DENIED_IS
        found = replace(found, verdict=opposite.get(found.verdict, found.verdict), because=because)
    if len(saying.chips) != 2 or (saying.ratio, saying.model) == (theirs.ratio, theirs.model):
        return found
    sure = "medium" if found.confidence == "high" else found.confidence
    return replace(found, confidence=sure, because=f"This answers for '{s.text.rstrip('.')}'. {found.because}")


def _read(saying: Saying, known: bool) -> StatementRecord | None:
    """The verdict by the figures in a sentence; of one that is known in general too only where it says more than that,
    or where a figure of its sheet is wrong."""
    more = not known or _exact(saying)
    read = judged(saying) if more or _sheet(saying) else None
    return read if read is not None and (more or read.verdict == "false") else None


TURNED = "the text seems to say the opposite of what is known: its verdict is turned round"
REFUTED: Mapping[str, str] = {**DENIED_IS, "true with a condition": "misleading"}
"""What the verdict on a statement makes of one that says its opposite in words that leave no condition (`HARM`)."""


def _denies(s: Statement, saying: Saying) -> bool:
    """Whether a sentence says the opposite of a statement that it is about."""

    def odd(one: Saying) -> bool:
        return one.denied != bool(len(load_wording().parsed["harm"].findall(one.text)) % 2)

    return odd(saying) != odd(said_in(s.text))


READ = "the sentence was read by its figures: is it what was meant? The commands show the same for other conditions"


def _exact(saying: Saying) -> bool:
    """Whether a sentence says more than what is said in general: it quotes a rate, what runs on how many chips, how two
    do always or in training a model."""
    counted = saying.model and "fits" in saying.marks and len(saying.chips) == 1 and saying.chips[0].count
    compared = len(saying.chips) == 2 and ("always" in saying.marks or (saying.model and "trained" in saying.marks))
    return bool(
        saying.of("tokens/s") or saying.of("users") or saying.of("MFU") or saying.of("run s") or counted or compared
    )


def _sheet(saying: Saying) -> bool:
    """Whether a sentence quotes a chip's sheet: its figures may be wrong where the statement it reminds of is right."""
    return len(saying.chips) == 1 and bool(saying.of("B/s") or saying.of("FLOP/s") or saying.of("B"))


def _about(s: Statement, saying: Saying) -> bool:
    """Whether a statement is about the same as a sentence that compares two chips: not about serving where the sentence
    is about training, or about speed where it is about dollars."""
    if len(saying.chips) != 2 or saying.aspect not in ("training", "per dollar", "energy"):
        return True
    return saying.aspect in (said_in(s.text).aspect, *({"training"} if "train" in str(s.asks) else ()))


def _nearest(text: str, table: Mapping[str, Statement]) -> tuple[str, ...]:
    """The statements with the most words and letters in common, of those that share a word that says something."""
    mine = set(words_of(text).split())

    def words(s: Statement) -> set[str]:
        return set(words_of(s.text).split()) | {w for group in s.says for w in group.split("|")}

    def likeness(s: Statement) -> float:
        letters = difflib.SequenceMatcher(None, words_of(text), words_of(s.text)).ratio()
        return len(mine & words(s)) / (len(mine) or 1) + letters

    near = [s for s in table.values() if any(len(w) > 2 and w not in LITTLE for w in mine & words(s))]
    return tuple(s.text for s in sorted(near, key=likeness, reverse=True)[:NEAR])


LITTLE = frozenset(
    "the and for are not than that with more one all its has need needs you your can runs run made".split()
)
"""Words that say little of what a statement is about."""


def worked_out(s: Statement) -> StatementRecord:
    """A statement with the figures of its questions."""
    work = WorkedOut()
    known: dict[str, Any] = {name: work.ask(**ask) for name, ask in s.asks.items()}
    quoted = {}
    for name, said in s.figures.items():
        known[name] = value_of(said.value, known)
        quoted[name] = work.figure(said.what, known[name], said.unit)
    stands = bool(value_of(s.holds, known))
    because = s.because.format(**quoted)
    if not stands:
        because = f"today's figures no longer bear out the verdict {s.verdict!r}: {because}"
    return _record(s, work, stands, because)


def _record(s: Statement, work: WorkedOut, stands: bool | None, because: str) -> StatementRecord:
    basis = (BASIS.get(verb, f"predicted: the verb {verb}") for verb in work.commands.values())
    return StatementRecord(
        s.name,
        s.text,
        s.verdict if stands is not False else "not settled",
        s.confidence,
        because,
        stands,
        tuple(work.figures),
        tuple(dict.fromkeys(basis)),
        tuple(work.commands),
        s.sources,
    )
