"""Options that several commands share, and how whole numbers are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.api.requests.field import pairs, split
from chipwise.cli.whole import read
from chipwise.report.table import Format

__all__ = ["Answer", "Output", "pairs", "split", "whole"]


def whole(text: str) -> Parameter:
    """An option that takes a whole number."""
    return Parameter(help=text, converter=read)


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
