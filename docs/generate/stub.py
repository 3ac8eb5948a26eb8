"""`python -m docs.generate.stub`: the types of the Python face, `src/chipwise/__init__.pyi`, made of the questions and
the records that answer them. What a keyword takes follows from how its field is read."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import chipwise
from chipwise.api.python import FIRST
from chipwise.api.requests.field import CONFIG
from chipwise.api.requests.kinds import answer_type
from chipwise.api.requests.parts import TOKENS, SampleOptions
from chipwise.api.requests.verbs import VERBS
from chipwise.report.media import MediaReport
from chipwise.workload import media

FILE = Path(chipwise.__file__).with_suffix(".pyi")
WIDTH = 116
TOKEN_TARGETS = frozenset({"ttft", "tpot"})
"""Keywords that only language models take, beside those of tokens."""
OF_MEDIA = frozenset(f.name for f in fields(SampleOptions)) - {"offload"}
SERVED = {"PlanReport": "Plans", "ExplainReport": "Explained"}
"""Answers whose plans serve tokens: their figures of a token are there, unless answers of one token were asked for."""
HEAD = '''\
# Written by `python -m docs.generate.stub`: not to be changed by hand.
# ruff: noqa
# fmt: off
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Generic, Literal, Optional, TypeAlias, TypeVar, overload

from chipwise.api.python import diff as diff
from chipwise.api.python import launch as launch
from chipwise.api.python import replay as replay
from chipwise.api.python import step as step
from chipwise.api.python import trace as trace
from chipwise.api.sweep import sweep as sweep
from chipwise.errors import ChipwiseError as ChipwiseError
from chipwise.workload.program import Program
{imports}

__version__: str

Path: TypeAlias = str | PathLike[str]
Number: TypeAlias = float | str | None
"""A quantity, as in `10` or `"10/s"`."""
Names: TypeAlias = str | Sequence[str | float] | None
Table: TypeAlias = str | Mapping[str, Any] | None
"""Values by name, as in `{{"tp": 8}}` or `"tp=8"`."""
Model: TypeAlias = Path | Mapping[str, Any] | Program
"""A name, a path, the keys of a configuration, or what `trace` made of a module."""
_Of = TypeVar("_Of")

class _Folded(Generic[_Of]):
    """Has no values: it makes an alias recursive, so that type checkers print the alias and not what it stands for."""

NetworkName: TypeAlias = Literal[
{networks}
] | _Folded["NetworkName"]
"""Bundled networks that generate no tokens, by the names that are typed as such."""

class ServedPlan(PlanRecord):
    """A plan that serves tokens."""
    tpot_s: Figure
    tokens_per_s_per_user: Figure

class Plans(PlanReport):
    """Plans that serve tokens, best first."""
    plans: tuple[ServedPlan, ...]
    @property
    def best(self) -> ServedPlan: ...
    def __iter__(self) -> Iterator[ServedPlan]: ...
    @overload
    def __getitem__(self, at: int) -> ServedPlan: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ServedPlan]: ...

class Explained(Plans):
    """One plan that serves tokens, and when a CPU would do a request of this size sooner."""
    amdahl: AmdahlReport | None
'''


def stub() -> str:
    """The text of the stub."""
    verbs = [name for name in chipwise.__all__ if name in VERBS and name not in ("launch", "replay", "diff")]
    kinds = {kind for name in verbs for kind in _answers(name)}
    named = {kind.__name__: kind.__module__ for kind in kinds if kind.__name__ != "ExplainReport"}
    named |= {"PlanRecord": "chipwise.report.plans", "Figure": "chipwise.report.records"}
    named["AmdahlReport"] = "chipwise.report.kernel"
    imports = "\n".join(f"from {module} import {name}" for name, module in sorted(named.items(), key=lambda n: n[::-1]))
    every = sorted({n for e in map(media.entry, media.names()) for n in (e.name, *e.names)})
    quoted = ", ".join(f'"{n}"'.replace(" ", "\0") for n in every)
    listed = textwrap.fill(
        quoted, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
    ).replace("\0", " ")
    parts = [HEAD.format(imports=imports, networks=listed), *(line for name in verbs for line in _verb(name))]
    return "\n".join(parts) + "\n"


def _answers(name: str) -> tuple[type, ...]:
    kind = answer_type(VERBS[name])
    return get_args(kind) or (kind,)


def _verb(name: str) -> Iterator[str]:
    """The function of a verb; of one that answers about networks without tokens too, one for each sort."""
    of_tokens, *others = (k.__name__ for k in _answers(name))
    generated = next((k.__name__ for k in _answers(name) if issubclass(k, MediaReport)), "")
    answer = SERVED.get(of_tokens, of_tokens)
    if not others:
        yield _function(name, answer, ())
        return
    network = _function(name, generated, {*TOKENS, *TOKEN_TARGETS})
    named = network.replace("model: Model", "model: NetworkName", 1)
    # a name is a text too, of which nothing else is known
    yield f"@overload\n{named}".replace("(\n", "(  # type: ignore[overload-overlap]\n", 1)
    yield f"@overload\n{_function(name, answer, OF_MEDIA)}"
    yield f"@overload\n{network}"


def _function(name: str, answer: str, without: Iterable[str]) -> str:
    """A function whose keywords are the fields of its question, but for some."""
    kind: Any = VERBS[name]
    hints, known = get_type_hints(kind), {f.name: f for f in fields(kind) if f.name not in set(without)}
    first = next((n for n in FIRST if n in known), None)
    ordered = sorted(known.values(), key=lambda f: (f.name != first, f.default is not MISSING))
    said = [f"{f.name}: {_taken(f, hints[f.name])}{'' if f.default is MISSING else ' = ...'}" for f in ordered]
    if len(said) > bool(first):
        said.insert(1 if first else 0, "*")
    listed = textwrap.fill(
        ", ".join(s.replace(" ", "\0") for s in said), WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    return f"def {name}(\n{listed.replace(chr(0), ' ')},\n) -> {answer}: ..."


def _taken(f: Field[Any], hint: Any) -> str:
    """What a keyword takes."""
    reading = f.metadata.get("reading")
    optional = type(None) in get_args(hint) or f.default is not MISSING
    also = {str(one["type"]) for one in reading.also} if reading else set()
    if reading is CONFIG:
        return "Model" if not optional else "Model | None"
    if also:
        ways = {"number": "Number", "array": "Names", "object": "Table"}
        return " | ".join(ways[kind] for kind in sorted(also))
    words = re.sub(r"typing\.|NoneType", lambda m: "" if m[0] == "typing." else "None", _plain(hint))
    if words.startswith(("int", "float")):
        words = f"str | {words}"
    return f"PathLike[str] | {words}" if f.metadata.get("file") else words


def _plain(hint: Any) -> str:
    if isinstance(hint, type):
        return hint.__name__
    return str(hint)


def main() -> None:
    """Write the stub."""
    FILE.write_text(stub())


if __name__ == "__main__":
    main()
