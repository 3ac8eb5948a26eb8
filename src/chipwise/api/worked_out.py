"""Figures behind a verdict as they are worked out: questions, expressions over their answers, and what is quoted."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

from chipwise.api.requests.command import command_line, plain_command
from chipwise.api.requests.kinds import DIRECT, question_in
from chipwise.catalog.chips import get_chip
from chipwise.catalog.system import get_system
from chipwise.evidence.item import Item
from chipwise.report.records import Figure
from chipwise.report.statements import FigureOf, shown
from chipwise.units import format_number
from chipwise.values import dataclass

FACTS: Mapping[str, Callable[[str], Any]] = {"chip": get_chip, "system": get_system}
"""Rows of the catalogue that one asks for, by what they are."""
CATALOGUE = "the catalogue: each figure has its source and date in what the command shows"
BASIS: Mapping[str, str] = {
    "offers": "dated list prices of instances for rent",
    "chip": CATALOGUE,
    "system": CATALOGUE,
    "fit": "counted: the memory account",
    "models": "counted from the model's configuration",
    "match": "measured: MLPerf Inference of MLCommons",
}
"""What figures that are not predicted rest on, by the question that shows them."""

SURE = {"modelled": "low", "calibrated": "medium", "published": "high", "measured": "high"}
SHORT = {"in": 128, "out": 2048}
"""Short prompts and long answers, as sellers quote throughput."""


@dataclass
class WorkedOut:
    """The figures behind a verdict and the commands that show them (with their verbs), as they are worked out; `kinds`
    of predictions and the `measures` that were predicted."""

    figures: list[FigureOf] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    measures: list[str] = field(default_factory=list)

    def ask(self, verb: str, **given: Any) -> Any:
        """The answer of a verb or a row of the catalogue, its command noted; of plans the first counts."""
        command, answered = question(verb, given)
        answer = answered()
        self.commands.setdefault(command, verb)
        return answer

    @staticmethod
    def look(verb: str, **given: Any) -> Any:
        """The answer of a verb that only prepares a question, and shows no figure."""
        return question(verb, given)[1]()

    def figure(self, what: str, value: float | str | Figure, unit: str) -> str:
        """A figure noted, a predicted one with its interval and basis; as it is quoted."""
        if not isinstance(value, Figure):
            kept = value if isinstance(value, str) else float(value)
            text = shown(kept, unit)
        else:
            self.kinds.add(value.basis)
            kept = value.mid
            rate = unit == "tokens/s"
            mid, low, high = (format_number(x) if rate else shown(x, unit) for x in (value.mid, value.low, value.high))
            text = f"{mid} [{low} to {high}]{' tokens/s' if rate else ''}"
        self.figures.append(FigureOf(what, kept, unit, text))
        return text


def confidence(work: WorkedOut) -> str:
    """How sure a verdict is that rests on these figures: as sure as the weakest."""
    return next((words for kind, words in SURE.items() if kind in work.kinds), "high")


def question(verb: str, given: Mapping[str, Any]) -> tuple[str, Callable[[], Any]]:
    """A question or a row of the catalogue as the command that shows it and what answers it."""
    asked = {name: value for name, value in given.items() if value not in (None, "")}
    if verb in FACTS:
        return f"chipwise {verb}s show {asked[verb]}", partial(FACTS[verb], asked[verb])
    request = question_in(DIRECT, verb, asked)
    return plain_command(verb, asked) or command_line(verb, request), request.glance  # type: ignore[arg-type]


# expressions

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
    ast.NotEq: operator.ne,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _best(items: Sequence[Item], chip: str, scenario: str) -> float:
    """The best speed per chip of a chip under a scenario."""
    return max(i.speed or 0.0 for i in items if (i.chip, i.scenario) == (chip, scenario))


def times(factor: float, of: Figure | None) -> Figure | None:
    """So many times a predicted figure."""
    return of and of.each(1 / factor)


def over(value: float, of: Figure) -> Figure:
    """A figure by a predicted one, which makes less of it where that is more."""
    return replace(of, mid=value / of.mid, low=value / of.high, high=value / of.low)


CALLED: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "best": _best,
    "len": len,
    "max": max,
    "min": min,
    "over": over,
    "round": round,
    "times": times,
}
"""Functions of expressions; those of sentences come with the names that are known of one."""


def value_of(expression: str, known: Mapping[str, Any]) -> Any:
    """An expression of a table over answers and figures: fields, items, arithmetic, comparisons and the functions of
    `CALLED`, or that are known. Raises `ValueError` for anything else."""
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
        case ast.Tuple(elts=parts):
            return tuple(map(of, parts))
        case ast.IfExp(test=test, body=a, orelse=b):
            return of(a) if of(test) else of(b)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if callable(known.get(name) or CALLED.get(name)):
            return (known.get(name) or CALLED[name])(*map(of, args))
    return _worked(node, of)


def _worked(node: ast.AST, of: Callable[[ast.AST], Any]) -> Any:
    """Arithmetic, comparisons and what joins them."""
    match node:
        case ast.BinOp(left=a, op=op, right=b) if type(op) in BINARY:
            return BINARY[type(op)](of(a), of(b))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return -of(a)
        case ast.UnaryOp(op=ast.Not(), operand=a):
            return not of(a)
        case ast.Compare(left=first, ops=ops, comparators=others) if all(type(op) in COMPARED for op in ops):
            values = [of(first), *map(of, others)]
            return all(COMPARED[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False))
        case ast.BoolOp(op=op, values=parts):
            return (all if isinstance(op, ast.And) else any)(map(of, parts))
    raise ValueError(f"{ast.unparse(node)} is no figure")
