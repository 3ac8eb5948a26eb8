"""replay, diff, launch: saved answers made again, compared, started."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from chipwise.api import saving as api
from chipwise.api.launching import launched
from chipwise.api.sweep_run import launch_sweep
from chipwise.cli.options import Output
from chipwise.errors import InfeasibleError, UsageError
from chipwise.report.diff import likely_cause
from chipwise.report.launch.files import write_files
from chipwise.report.launch.targets import TARGETS
from chipwise.report.terminal import tell

File = Annotated[str, Parameter(help="a file that --save wrote")]


def replay(saved: File, *, output: Output = Output()) -> None:  # noqa: B008
    """Make a saved answer again from the facts saved with it; the same to nine digits, or what differs."""
    report = api.replay(saved)
    output.show(report.tables(), report)
    if not report.identical:
        raise InfeasibleError(
            "the answer is another one",
            f"this is chipwise {report.replayed_by}, saved by {report.saved_by}"
            + (f"; {cause}" if (cause := likely_cause(report)) else ""),
        )


def diff(before: File, after: File, *, output: Output = Output()) -> None:  # noqa: B008
    """What changed between two saved answers and why: the model of cost, prices, catalogue, question."""
    report = api.diff(before, after)
    output.show(report.tables(), report)


def launch(
    saved: Annotated[str, Parameter(help="a file that --save wrote, or the TOML file of a sweep")],
    *,
    for_: Annotated[
        str, Parameter(name="--for", help=f"one of {', '.join(TARGETS)}; default: that of the plan's own software")
    ] = "",
    plan: Annotated[int, Parameter(help="which plan of the answer, by its number")] = 1,
    out: Annotated[str | None, Parameter(help="folder to write to; default: print the files")] = None,
) -> None:
    """Files that start a saved plan with a tool, and the benchmark that verifies its estimate; or start a sweep."""
    if saved.endswith(".toml"):
        if plan != 1:
            raise UsageError("--plan is of a saved answer", "a sweep is started whole: leave it out", field="plan")
        files, words = launch_sweep(saved, for_), ""
    else:
        files, _, words = launched(saved, for_, plan)
    if words:
        tell(words)
    if out is not None:
        for path in write_files(files, out):
            print(path)
        return
    for file in files:
        print(f"# ---- {file.name} ----\n{file.text}")
