"""Options that several commands share, and how whole numbers are read."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.api.requests.field import pairs, split
from chipwise.cli.whole import read
from chipwise.errors import UsageError
from chipwise.report.table import Format

__all__ = ["Answer", "Output", "pairs", "refuse", "split", "whole"]


def whole(text: str) -> Parameter:
    """An option that takes a whole number."""
    return Parameter(help=text, converter=read)


def refuse(options: Any, kind: type, but: tuple[str, ...], task: str) -> None:
    """Raise `UsageError` for an option of `kind` that was given and that the task does not read."""
    for f in fields(kind):
        default = None if f.default is MISSING else f.default
        if f.name not in but and getattr(options, f.name) != default:
            name = f"--{f.metadata.get('alias', f.name).replace('_', '-')}"
            raise UsageError(f"{name} says nothing about --task {task}", "leave it out")


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How the answer is printed."""

    format: Annotated[Format, Parameter(help="table, json, csv or md")] = "table"


@Parameter(name="*")
@dataclass(frozen=True)
class Answer(Output):
    """How an answer is printed, and kept."""

    save: Annotated[
        str | None, Parameter(help="keep the answer with all facts it rests on, for replay, diff and launch")
    ] = None

    def of(self, verb: str, request: Any) -> Any:
        """The answer to a request, kept if that was asked for."""
        if self.save is None:
            return request.run()
        from chipwise.api.saving import save

        return save(verb, request, self.save).report
