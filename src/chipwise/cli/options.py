"""Options that several commands share, and how whole numbers are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from chipwise.api.requests.field import ask, pairs, split
from chipwise.api.requests.parts import Targets
from chipwise.api.requests.planning import TASK
from chipwise.cli.whole import read
from chipwise.report.table import Format
from chipwise.workload.workload import Task, Workload

__all__ = ["Output", "Use", "pairs", "split", "whole", "workload_of"]


def whole(text: str) -> Parameter:
    """An option that takes a whole number."""
    return Parameter(help=text, converter=read)


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How the answer is printed."""

    format: Annotated[Format, Parameter(help="table, json, csv or md")] = "table"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Use(Targets):
    """How the model is used."""

    task: Task = ask(TASK, "serve")


def workload_of(use: Use) -> Workload:
    """The workload of the options; a served workload without targets gets the stated defaults."""
    return use.workload_of(use.task)
