"""The verbs as Python programs call them: `import chipwise as cw; cw.plan("Qwen/Qwen3-32B", rate=10, tpot="40ms")`.

A verb takes the fields of its question as keywords, `in_` for `in`, and returns its answer, which knows its question:
it can be saved and launched.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from chipwise.api.checkup import with_own_chips
from chipwise.api.launching import launch as launch_saved
from chipwise.api.requests.doors import problem_of
from chipwise.api.requests.kinds import question_of
from chipwise.api.requests.simulate import StepRequest
from chipwise.api.requests.verbs import VERBS, question
from chipwise.api.requests.written import Origin
from chipwise.api.saving import diff as diff_saved
from chipwise.api.saving import replay as replay_saved
from chipwise.errors import ChipwiseError, Sentence, UnknownNameError, UsageError, shorten
from chipwise.report.answer import Answer
from chipwise.report.launch.files import LaunchFiles, write_files
from chipwise.tracing.sources import trace as trace  # a verb of the library, looked up by its name
from chipwise.tracing.sources import traced_name
from chipwise.workload.program import Program

if TYPE_CHECKING:
    from chipwise.api.stepping import PassTimes

FIRST = ("model", "text", "op", "search", "fleet")
"""Fields that a program may give without their name: of those that a verb has, the first."""


def step(model: Any, **keywords: Any) -> PassTimes:
    """The seconds of any pass of a deployment, which `chip` and the options of `estimate` name:
    `step("Qwen/Qwen3-32B", chip="h200", tp=2).seconds(decode=32, context=2000)`. Raises the errors of `estimate`."""
    with _in_python():
        said = {key.removesuffix("_"): value for key, value in {"model": model, **keywords}.items()}
        found: PassTimes = question_of(StepRequest, "step", _with_own(said)).answer()
    return found


@contextmanager
def _in_python() -> Iterator[None]:
    """Errors in the names of keywords."""
    try:
        yield
    except ChipwiseError as error:
        found = problem_of(error)
        error.what, error.hint, error.args = found.what, found.hint, (found.what,)
        raise


def _with_own(said: dict[str, Any]) -> dict[str, Any]:
    """What was asked with the chips of this machine for `auto`."""
    if {"have", "chips", "chip"}.isdisjoint(said):
        return said
    return with_own_chips(said)


def _named(key: str, value: Any) -> Any:
    """A value as a question takes it: a traced module by its name. Raises `UsageError` for one that is not traced."""
    if isinstance(value, Program):
        return traced_name(value)
    if key == "model" and callable(getattr(value, "forward", None)):
        what = f"model: {type(value).__name__} is a module, and its shapes come from an example"
        raise UsageError(what, "cw.trace(module, example), which is a model here", field="model")
    return value


@cache
def verb(name: str) -> Callable[..., Any]:
    """The function that asks a verb: its keywords are the fields of the question, which help(...) shows.
    A value without a name is the model, or what the verb is about in its place (`FIRST`).

    It raises the errors of `question` and of the verb, in the names of the keywords.
    """
    kind = VERBS[name]
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    first = next((name for name in FIRST if name in names), None)

    def answer(*values: Any, **keywords: Any) -> Any:
        with _in_python():
            if len(values) > (first is not None):
                least = f"only {first} can" if first else "no value can"
                other = next((n for n in ("chips", "chip") if n in names), _names(kind)[0])
                raise UsageError(f"{name}: {least} be given without its name", f"for example {name}(..., {other}=...)")
            given = ({first: values[0]} if first and values else {}) | keywords
            # a trailing underscore keeps Python's own names apart
            said = {key.removesuffix("_"): _named(key, value) for key, value in given.items()}
            asked = question(name, _with_own(said))
            report = asked.answer()
        object.__setattr__(report, "_origin", Origin(name, asked))
        return report

    answer.__name__ = answer.__qualname__ = name
    answer.__module__ = "chipwise"
    answer.__doc__ = _told(kind)
    answer.__signature__ = _signature(kind, first)  # type: ignore[attr-defined]
    return answer


def launch(answer: Answer[Any] | str, for_: str = "", *, plan: int = 1, out: str | None = None) -> LaunchFiles:
    """The files that start a plan of an answer, or of the file where one was saved, with a tool (none named: that of
    the plan's own software); with `out` they are written to that folder. Raises `UsageError`, `UnknownNameError`."""
    if not isinstance(answer, Answer | str):
        what = f"answer: cannot launch {shorten(repr(answer), 60)}"
        raise UsageError(what, "a report, or the name of a file where one was saved", field="answer")
    try:
        files = (
            answer.launch(for_, plan) if isinstance(answer, Answer) else LaunchFiles(launch_saved(answer, for_, plan))
        )
    except UnknownNameError as error:
        error.field = error.field or "for"
        raise
    if out is not None:
        write_files(files, out)
    return files


def replay(saved: str) -> Answer[Any]:
    """A saved answer made again from the data saved with it. Raises `UsageError` for a file that is none."""
    return replay_saved(saved)


def diff(before: str, after: str) -> Answer[Any]:
    """What changed between two saved answers, and why. Raises `UsageError` for files that are none of one verb."""
    return diff_saved(before, after)


def _names(kind: Any) -> list[str]:
    return [f.name for f in sorted(fields(kind), key=lambda f: f.default is not MISSING)]


def _signature(kind: Any, first: str | None) -> inspect.Signature:
    table = {f.name: f for f in fields(kind)}
    either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    names = sorted(_names(kind), key=lambda n: n != first)
    return inspect.Signature(
        [
            inspect.Parameter(
                n,
                either if n == first else keyword,
                default=inspect.Parameter.empty if table[n].default is MISSING else table[n].default,
            )
            for n in names
        ]
    )


def _told(kind: Any) -> str:
    said = [f"    {f.name}: {Sentence(f.metadata['help']).as_fields}" for f in fields(kind)]
    return "\n".join([Sentence(inspect.cleandoc(kind.__doc__ or "")).as_fields, "", "Keywords:", *said])
