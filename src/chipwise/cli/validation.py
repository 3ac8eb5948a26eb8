"""validate: how far predictions are from measurements that no fit behind them had seen."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from chipwise import api
from chipwise.report.accuracy import accuracy_view, write_section
from chipwise.report.table import render

__all__ = ["validate"]


def validate(
    suite: Annotated[str, Parameter(help=f"one of {', '.join(api.VALIDATIONS)}")],
    *,
    rows: Annotated[
        str | None,
        Parameter(help="measured rows; default: the suite's table in CHIPWISE_TRUTH, or the one that ships"),
    ] = None,
    folds: Annotated[
        str | None,
        Parameter(
            help="what is left out whole, as the suite has it: cell, chip, model, runtime, stack, vendor, ..."
        ),
    ] = None,
    out: Annotated[
        str | None, Parameter(help="a Markdown file whose section of the suite is replaced")
    ] = None,
) -> None:
    """Refit without each part of a table of measurements in turn, and report the errors on it."""
    found = api.validate(suite, rows, folds)
    if out is None:
        render(accuracy_view(found), found, "table", sys.stdout)
        return
    write_section(found, out)
    print(f"{suite}: {out}", file=sys.stderr)
