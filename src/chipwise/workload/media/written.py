"""Families of networks that are written as rows, in `workload/data/network_families.toml`: a row is a layer.

A family says the fields that its parts have (`needs` without a type is a whole number, `has` has a default), numbers
that follow from the fields (`let`: one is the `multiple` that sides of what it takes must be), and blocks. The key of a
block is its name and the sizes that it takes; each becomes a method `net.NAME(layers, *sizes)`. Its rows, in order:

| row | is |
|---|---|
| linear n d 3*d name='qkv' | a layer of `Layers`, with what it takes; or another block of the family or of all |
| rotary? rotate n d | only where that is neither 0, false nor empty |
| layers x layer n d | so many, each with weights of its own |
| layers times layer n d | the same weights so many times |
| @samples layer n d | for so many in each sample |
| both = n + m | a number by a name, in the rows that follow |
| beside n d m w | while [n, d] and [m, w] are alive beside all of the block |

Numbers are arithmetic over fields, sizes and names, without spaces inside a row, with the functions of `FUNCTIONS`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial, partialmethod
from typing import Any, ClassVar

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError
from chipwise.values import dataclass
from chipwise.workload.media.layers import LayerBlock, Layers, join, shrunk, size_of

TABLE = "workload/data/network_families.toml"
SHARED = "all"
"""The family whose blocks all others have."""

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "size": size_of,
    "shrunk": shrunk,
    "grown": lambda grid, times, more=0: tuple(times * side + more for side in grid),
    "cut": lambda grid, most: tuple(min(side, most) for side in grid),
    "padded": lambda grid, most: tuple(-(-side // min(side, most)) * min(side, most) for side in grid),
    "len": len,
    "ceil": math.ceil,
    "round": round,
    "int": int,
    "min": min,
    "max": max,
    "either": lambda which, yes, no: yes if which else no,
}
"""What numbers of rows may call."""

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
}
_WORDS = {"yes": True, "no": False}
_KINDS = {"int": int, "float": float, "ints": tuple[int, ...]}


@dataclass(frozen=True)
class LayerRow:
    """One row: a layer or a block (`word`) with what it takes, `when`, how often (`again`: with the same
    weights), `within` how many of each sample; or a `name` of a number."""

    word: str
    takes: tuple[ast.expr, ...]
    named: tuple[tuple[str, ast.expr], ...] = ()
    when: ast.expr | None = None
    count: ast.expr | None = None
    again: bool = False
    within: ast.expr | None = None
    name: str = ""


@dataclass(frozen=True)
class WrittenBlock:
    """Rows that take sizes by their names."""

    sizes: tuple[str, ...]
    rows: tuple[LayerRow, ...]


@dataclass(frozen=True)
class WrittenFamily:
    """What all networks of a family have: blocks by their names, and numbers that follow from fields."""

    name: str
    blocks: Mapping[str, WrittenBlock]
    let: Mapping[str, ast.expr]


class WrittenNetwork:
    """A network of a family of the table; its blocks are methods."""

    _written: ClassVar[WrittenFamily]

    def __getattr__(self, name: str) -> Any:
        """A number that follows from the fields, as another attribute of the network."""
        if name not in self._written.let:
            raise AttributeError(f"{self._written.name} has no {name}")
        return self._named[name]

    @cached_property
    def _named(self) -> dict[str, Any]:
        """Fields, and numbers that follow from them."""
        names: dict[str, Any] = _WORDS | vars(self)
        for known, number in self._written.let.items():
            names[known] = _number(number, names)
        return names

    def _run(self, layers: Layers, *sizes: Any, name: str) -> LayerBlock:
        """The layers of a block, in order."""
        block = self._written.blocks[name]
        names = self._named | dict(zip(block.sizes, sizes, strict=True))
        parts, held = list[LayerBlock](), 0.0
        for row in block.rows:
            if row.when is not None and not _number(row.when, names):
                continue
            given = [_number(node, names) for node in row.takes]
            if row.name:
                names[row.name] = given[0]
            elif row.word == "beside":
                held += sum(layers.bytes(n, w) for n, w in zip(given[::2], given[1::2], strict=True))
            else:
                at = layers if row.within is None else layers.times(_number(row.within, names))
                made = self._called(row.word, at)(*given, **{k: _number(v, names) for k, v in row.named})
                if row.count is not None:
                    count = _number(row.count, names)
                    made = made.again(count) if row.again else count * made
                parts.append(made)
        return join(*parts).beside(held) if held else join(*parts)

    def _called(self, word: str, layers: Layers) -> Callable[..., LayerBlock]:
        """The layer or the block of that word."""
        if word in self._written.blocks:
            return partial(self._run, layers, name=word)
        found: Callable[..., LayerBlock] | None = getattr(layers, word, None)
        if found is None or word.startswith("_"):
            raise UsageError(f"{TABLE}: {self._written.name} has no layer '{word}'", "see workload/media/layers.py")
        return found


@per_snapshot
def families() -> Mapping[str, type]:
    """Classes of networks by the names of their families."""
    table = parse(shipped_text(TABLE))
    shared = table.pop(SHARED)["blocks"]
    return {name: family(name, row, shared) for name, row in table.items()}


def family(name: str, row: Mapping[str, Any], shared: Mapping[str, str]) -> type:
    """The class of a family: fields by its `needs` and `has`, a method for each of its blocks and of the `shared`."""
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in row.get("has", {}).items()}
    hints: dict[str, Any] = {
        key: tuple[tuple(map(type, v))] if isinstance(v, tuple) else type(v)  # type: ignore[misc]
        for key, v in values.items()
    }
    hints |= {field: _KINDS[kind[0] if kind else "int"] for field, *kind in map(str.split, row["needs"])}
    blocks = {}
    for said, text in (shared | row["blocks"]).items():
        called, *sizes = said.split()
        blocks[called] = WrittenBlock(tuple(sizes), _rows(text))
    methods = {called: partialmethod(WrittenNetwork._run, name=called) for called in blocks}
    let = {key: _parsed(text) for key, text in ({"multiple": "1"} | row.get("let", {})).items()}
    written = WrittenFamily(name, blocks, let)
    body = {**methods, **values, "_written": written, "__annotations__": hints, "__doc__": f"{name}, of {TABLE}."}
    return dataclass(frozen=True, kw_only=True)(type(name, (WrittenNetwork,), {**body, "__module__": __name__}))


@lru_cache(maxsize=4096)
def _rows(text: str) -> tuple[LayerRow, ...]:
    return tuple(_row(line) for line in text.strip().splitlines() if line.strip())


def _row(line: str) -> LayerRow:
    name, equals, number = line.partition(" = ")
    if equals:
        return LayerRow("", (_parsed(number),), name=name.strip())
    words = line.split()
    when = _parsed(words.pop(0)[:-1]) if words[0].endswith("?") else None
    within = _parsed(words.pop(0)[1:]) if words[0].startswith("@") else None
    counted = words[1:2] in (["x"], ["times"])
    count, again = (_parsed(words[0]), words[1] == "times") if counted else (None, False)
    word, *takes = words[2:] if counted else words
    pairs = [each.partition("=") for each in takes]
    named = [(key, _parsed(value)) for key, sign, value in pairs if sign and key.isidentifier()]
    plain = map(_parsed, takes[: len(takes) - len(named)])
    return LayerRow(word, tuple(plain), tuple(named), when, count, again, within)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _number(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What an expression is worth. Raises `UsageError` for what is no arithmetic over known names."""
    match node:
        case ast.Constant(value=found):
            return found
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_number(left, names), _number(right, names))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_number(left, names), _number(right, names))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner, names)
        case ast.Subscript(value=inner, slice=place):
            return _number(inner, names)[_number(place, names)]
        case ast.Tuple(elts=inner):
            return tuple(_number(each, names) for each in inner)
        case ast.Call(func=ast.Name(id=name), args=takes, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_number(each, names) for each in takes))
        case ast.Name(id=name):
            raise UsageError(f"{TABLE}: there is no '{name}'", f"known are {', '.join(names)}")
    raise UsageError(f"{TABLE}: '{ast.unparse(node)}' cannot be worked out", f"known are {', '.join(names)}")
