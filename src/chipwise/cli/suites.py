"""predict and calibrate: answers to rows of measurements, and parameters fitted to them."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from chipwise import api
from chipwise.calibrate.parameters import load_parameters

__all__ = ["calibrate", "predict"]


def predict(
    suite: Annotated[str, Parameter(help=f"one of {', '.join(api.SUITES)}")],
    *,
    rows: Annotated[
        str, Parameter(help="the rows, CSV or Parquet; configs are looked up in models/ next to it")
    ],
    out: Annotated[
        str, Parameter(help="where to write row_id, metric, predicted, low, high, basis, refused")
    ],
    anchors: Annotated[
        str | None,
        Parameter(help="measured rows that you own, in the form of the rows: they correct the like"),
    ] = None,
    parameters: Annotated[
        str | None, Parameter(help="parameters that chipwise calibrate wrote, for kernels and serving")
    ] = None,
    commands: Annotated[
        str | None,
        Parameter(help="where to write row_id, command: what gives the same figures, line by line"),
    ] = None,
) -> None:
    """Predict the measured columns of a table of rows; measured columns in it are ignored."""
    numbers = None if parameters is None else load_parameters(parameters)
    lines, refused = api.predict_suite(suite, rows, out, anchors, numbers, commands)
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
