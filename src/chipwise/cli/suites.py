"""predict, calibrate, validate: answers to rows of measurements, parameters fitted to them, and errors on them."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from chipwise import api
from chipwise.api.sweep_run import Engine
from chipwise.calibrate.parameters import load_parameters
from chipwise.cli.options import whole
from chipwise.errors import UsageError
from chipwise.report.accuracy import accuracy_view, write_section
from chipwise.report.table import render
from chipwise.values import dataclass


@Parameter(name="*")
@dataclass(frozen=True)
class Over:
    """What rows or folds are spread over."""

    on: Annotated[
        Literal["local", "ray"] | None,
        Parameter(help="processes of this machine, or a Ray cluster; default: this process alone"),
    ] = None
    workers: Annotated[int | None, whole("processes of --on local; default: one for each core")] = None
    address: Annotated[str | None, Parameter(help="the Ray cluster, e.g. auto; default: one on this machine")] = None

    @property
    def engine(self) -> Engine | None:
        """The engine, None for this process alone. Raises `UsageError` for what says how it works, where it is none."""
        if self.on is not None:
            return self.on, self.workers, self.address
        for name in ("workers", "address"):
            if getattr(self, name) is not None:
                raise UsageError(f"--{name} changes nothing here", "add --on local, or --on ray", field=name)
        return None


def predict(
    suite: Annotated[str, Parameter(help=f"one of {', '.join(api.SUITES)}")],
    *,
    rows: Annotated[str, Parameter(help="the rows, CSV or Parquet; configs are looked up in models/ next to it")],
    out: Annotated[str, Parameter(help="where to write row_id, metric, predicted, low, high, basis, refused")],
    anchors: Annotated[
        str | None, Parameter(help="measured rows that you own, in the form of the rows: they correct the like")
    ] = None,
    parameters: Annotated[
        str | None, Parameter(help="parameters that chipwise calibrate wrote, for kernels and serving")
    ] = None,
    commands: Annotated[
        str | None, Parameter(help="where to write row_id, command: what gives the same figures, line by line")
    ] = None,
    over: Over = Over(),  # noqa: B008
) -> None:
    """Predict the measured columns of a table of rows; measured columns in it are ignored."""
    numbers = None if parameters is None else load_parameters(parameters)
    lines, refused = api.predict_suite(suite, rows, out, anchors, numbers, commands, engine=over.engine)
    print(f"{lines} predictions, {refused} refused: {out}", file=sys.stderr)


def calibrate(
    suite: Annotated[Literal["kernels"], Parameter(help="what was measured")],
    *,
    rows: Annotated[str, Parameter(help="your measurements, with the columns of the suite and latency_us")],
    out: Annotated[str, Parameter(help="where to write the parameters, for --parameters")],
    parameters: Annotated[
        str | None, Parameter(help="start from these, written before; default: those shipped")
    ] = None,
) -> None:
    """Fit parameters to your own measurements, starting from those shipped."""
    numbers = None if parameters is None else load_parameters(parameters)
    found = api.calibrate_kernels_file(rows, out, numbers)
    print(
        f"{found.rows} rows, median error on them {found.before:.1%} before and {found.after:.1%} after: "
        f"{found.parameters} parameters in {out}",
        file=sys.stderr,
    )


def validate(
    suite: Annotated[str, Parameter(help=f"one of {', '.join(api.VALIDATIONS)}")],
    *,
    rows: Annotated[
        str | None, Parameter(help="measured rows; default: the suite's table in CHIPWISE_TRUTH, or the one that ships")
    ] = None,
    folds: Annotated[
        str | None,
        Parameter(help="what is left out whole, as the suite has it: cell, chip, model, runtime, stack, vendor, ..."),
    ] = None,
    without: Annotated[
        bool, Parameter(help="what each fitted number buys there: errors with it and without it", negative=())
    ] = False,
    out: Annotated[str | None, Parameter(help="a Markdown file whose section of the suite is replaced")] = None,
    over: Over = Over(),  # noqa: B008
) -> None:
    """Refit without each part of a table of measurements in turn, and report the errors on it."""
    if without and out is not None:
        raise UsageError("--out writes a section of errors, and --without tells none", "leave one of them out")
    found = api.validate(suite, rows, folds, without=without, engine=over.engine)
    if out is None:
        render(accuracy_view(found), found, "table", sys.stdout)
        return
    write_section(found, out)
    print(f"{suite}: {out}", file=sys.stderr)
