"""`check_statement`: what is said about hardware, held against the catalogue and the predictions.

Statements are rows of a table; their figures are worked out of the answers to the questions that stand there, and the
verdict stands only while its condition holds of them.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chipwise.api.requests.command import command_line, plain_command
from chipwise.api.requests.kinds import DIRECT, question_in
from chipwise.api.said import Saying, said_in
from chipwise.api.said_judged import DENIED_IS, TRAINED, judged, would_judge
from chipwise.catalog.chips import get_chip
from chipwise.catalog.statements import Said, Statement, load_statements, words_of
from chipwise.catalog.system import get_system
from chipwise.errors import UsageError, shorten
from chipwise.evidence.item import Item
from chipwise.report.statements import FigureOf, StatementRecord, StatementsReport, shown

LONGEST = 2_000
"""Characters of a text that is checked."""

NEAR = 4


def list_statements() -> StatementsReport:
    """All statements with their verdicts, not worked out."""
    found = tuple(_record(s, (), None, s.because if "{" not in s.because else "") for s in load_statements().values())
    note = 'chipwise claim check "TEXT" works out the figures of a statement'
    return StatementsReport("", found, (), note)


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
    found = tuple(_answered_for(s, _worked_out(s), saying) for s in made)
    return StatementsReport(text, found, (), TURNED if any(_denies(s, saying) for s in made) else "")


def _answered_for(s: Statement, found: StatementRecord, saying: Saying) -> StatementRecord:
    """What was found of a statement, turned round where the sentence says its opposite; that it is another, where a
    sentence that compares two chips says another ratio of them or of another model."""
    theirs = said_in(s.text)
    if _denies(s, saying):
        because = f"Known of the opposite, '{s.text.rstrip('.')}': {found.verdict}. {found.because}"
        opposite = REFUTED if HARM.search(saying.text) else DENIED_IS
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
HARM = re.compile(r"\b(?:halv|hurt|ruin|destroy|kill|degrad|los|useless|worthless|pointless)\w*\b", re.I)
"""Words by which a sentence denies that something works, as `not` does; two of them deny nothing."""


def _denies(s: Statement, saying: Saying) -> bool:
    """Whether a sentence says the opposite of a statement that it is about."""

    def odd(one: Saying) -> bool:
        return one.denied != bool(len(HARM.findall(one.text)) % 2)

    return odd(saying) != odd(said_in(s.text))


READ = "the sentence was read by its figures: is it what was meant? The commands show the same for other conditions"


def _exact(saying: Saying) -> bool:
    """Whether a sentence says more than what is said in general: it quotes a rate, what runs on how many chips, how two
    do always or in training a model."""
    counted = saying.model and saying.fits and len(saying.chips) == 1 and saying.chips[0].count
    compared = len(saying.chips) == 2 and (saying.always or (saying.model and TRAINED.search(saying.text)))
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


def _worked_out(s: Statement) -> StatementRecord:
    """A statement with the figures of its questions."""
    answers = {name: _ask(ask)[0] for name, ask in s.asks.items()}
    known: dict[str, Any] = dict(answers)
    figures = []
    quoted = {}
    for name, said in s.figures.items():
        known[name] = value_of(said.value, known)
        figure = _figure(said, known[name])
        figures.append(figure)
        quoted[name] = figure.shown
    stands = bool(value_of(s.holds, known))
    because = s.because.format(**quoted)
    if not stands:
        because = f"today's figures no longer bear out the verdict {s.verdict!r}: {because}"
    return _record(s, tuple(figures), stands, because)


def _figure(said: Said, value: Any) -> FigureOf:
    kept = value if isinstance(value, str) else float(value)
    return FigureOf(said.what, kept, said.unit, shown(kept, said.unit))


def _record(s: Statement, figures: Sequence[FigureOf], stands: bool | None, because: str) -> StatementRecord:
    commands = tuple(dict.fromkeys(_ask(ask, run=False)[1] for ask in s.asks.values()))
    kinds = dict.fromkeys(str(ask["verb"]) for ask in s.asks.values())
    basis = tuple(BASIS.get(kind, f"predicted: the verb {kind}") for kind in kinds)
    verdict = s.verdict if stands is not False else "not settled"
    return StatementRecord(
        s.name,
        s.text,
        verdict,
        s.confidence,
        because,
        stands,
        tuple(figures),
        tuple(dict.fromkeys(basis)),
        commands,
        s.sources,
    )


FACTS: Mapping[str, Callable[[str], Any]] = {"chip": get_chip, "system": get_system}
"""Rows of the catalogue that a statement asks for, by what they are."""

BASIS = {
    "chip": "the catalogue: each figure has its source and date in what the command shows",
    "system": "the catalogue: each figure has its source and date in what the command shows",
    "offers": "dated list prices of instances for rent",
    "models": "counted from the model's configuration",
    "fit": "counted: the memory account",
    "match": "measured: MLPerf Inference of MLCommons",
}


def _ask(ask: Mapping[str, Any], *, run: bool = True) -> tuple[Any, str]:
    """What a question of a statement is answered with, and the command that shows it."""
    verb = str(ask["verb"])
    given = {name: value for name, value in ask.items() if name != "verb"}
    if verb in FACTS:
        return FACTS[verb](given[verb]) if run else None, f"chipwise {verb}s show {given[verb]}"
    request = question_in(DIRECT, verb, given)
    command = plain_command(verb, given) or command_line(verb, request)  # type: ignore[arg-type]
    return request.run() if run else None, command


# figures


BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
COMPARED: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}


def _best(items: Sequence[Item], chip: str, scenario: str) -> float:
    """The best speed per chip of a chip under a scenario."""
    return max(i.speed or 0.0 for i in items if (i.chip, i.scenario) == (chip, scenario))


CALLED: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "best": _best,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
}


def value_of(expression: str, known: Mapping[str, Any]) -> Any:
    """An expression of a statement over answers and figures: fields, items, arithmetic, comparisons and the functions
    of `CALLED`. Raises `ValueError` for anything else."""
    return _value(ast.parse(expression, mode="eval").body, known)


def _value(node: ast.AST, known: Mapping[str, Any]) -> Any:
    def of(part: ast.AST) -> Any:
        return _value(part, known)

    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Attribute(value=owner, attr=name) if not name.startswith("_"):
            return getattr(of(owner), name)
        case ast.Subscript(value=owner, slice=key):
            return of(owner)[of(key)]
        case ast.BinOp(left=a, op=op, right=b) if type(op) in BINARY:
            return BINARY[type(op)](of(a), of(b))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return -of(a)
        case ast.Compare(left=first, ops=ops, comparators=others) if all(type(op) in COMPARED for op in ops):
            values = [of(first), *map(of, others)]
            return all(COMPARED[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(map(of, parts))
        case ast.IfExp(test=test, body=a, orelse=b):
            return of(a) if of(test) else of(b)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in CALLED:
            return CALLED[name](*map(of, args))
    raise ValueError(f"{ast.unparse(node)} is no figure")
