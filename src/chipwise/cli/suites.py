"""predict: answers to rows of published measurements, to be held against them."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from chipwise import api

__all__ = ["predict"]


def predict(
    suite: Annotated[str, Parameter(help=f"one of {', '.join(api.SUITES)}")],
    *,
    rows: Annotated[
        str, Parameter(help="the rows, CSV or Parquet; configs are looked up in models/ beside it")
    ],
    out: Annotated[
        str, Parameter(help="where to write row_id, metric, predicted, low, high, basis, refused")
    ],
) -> None:
    """Predict the measured columns of a table of rows; measured columns in it are ignored."""
    lines, refused = api.predict_suite(suite, rows, out)
    print(f"{lines} predictions, {refused} refused: {out}", file=sys.stderr)
