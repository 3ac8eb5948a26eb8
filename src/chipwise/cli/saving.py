"""replay, diff: saved answers made again, and what changed between two."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from chipwise.api import saving as api
from chipwise.cli.options import Output
from chipwise.errors import InfeasibleError
from chipwise.report.diff_view import diff_view, replay_view
from chipwise.report.table import render

__all__ = ["diff", "replay"]

File = Annotated[str, Parameter(help="a file that --save wrote")]


def replay(saved: File, *, output: Output = Output()) -> None:  # noqa: B008
    """Make a saved answer again from the facts saved with it; the same to the last bit, or what differs."""
    report = api.replay(saved)
    render(replay_view(report), report, output.format, sys.stdout)
    if not report.identical:
        raise InfeasibleError(
            "the answer is another one", f"this is chipwise {report.replayed_by}, saved by {report.saved_by}"
        )


def diff(before: File, after: File, *, output: Output = Output()) -> None:  # noqa: B008
    """What changed between two saved answers and why: the model of cost, prices, catalogue, question."""
    report = api.diff(before, after)
    render(diff_view(report), report, output.format, sys.stdout)
