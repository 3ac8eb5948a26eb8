"""The kernel suite: latencies of single operators, a table at a time, as `chipwise kernel` answers them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chipwise.api.kernel import answer, request_of
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of
from chipwise.calibrate.kernels import price_measured
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.errors import ChipwiseError
from chipwise.evidence.columns import read_columns
from chipwise.evidence.rows import Predicted

__all__ = ["METRIC", "predict_kernels"]

METRIC = "latency_us"


def predict_kernels(
    path: str, numbers: Parameters | None = None, *, commands: bool = False
) -> Iterator[Predicted]:
    """`latency_us` of every row of a table of kernels with its 80 % interval; measured columns are not read.

    Each row is the question of `request_of`; rows of families with measured kernels are priced together, others one
    by one. "calibrated" where the formula was fitted on chips of the same generation, else "modelled". `commands`: with
    the command line of each, which asks the shipped numbers.
    Raises `UsageError` for a table that cannot be read.
    """
    refused: dict[int, str] = {}
    columns = read_columns(path, ("row_id", *TEXT), NUMBERS, ("row_id", "chip", "op"), refused)
    chips, known = load_chips(), numbers or shipped_parameters()
    asked = asked_of(columns)
    times = price_measured(asked, chips, known)
    rows = zip(
        columns["row_id"].tolist(),
        columns["chip"].tolist(),
        columns["op"].tolist(),
        asked["op"].tolist(),
        np.isfinite(times.mid_s).tolist(),
        times.calibrated.tolist(),
        *((1e6 * t).tolist() for t in (times.mid_s, times.low_s, times.high_s)),
        strict=True,
    )
    for at, (row_id, chip, op, kind, answered, calibrated, mid, low, high) in enumerate(rows):
        if at in refused:
            yield Predicted(row_id, METRIC, None, refused=refused[at])
            continue
        if chip not in chips:
            yield Predicted(row_id, METRIC, None, refused="the chip is not in the catalogue")
            continue
        if not kind:
            yield Predicted(row_id, METRIC, None, refused=f"operator {op!r} is not priced")
            continue
        basis = "calibrated" if calibrated else "modelled"
        if not answered:
            try:
                t = answer(request_of(asked, at), known).kernels[0].time_s
            except ChipwiseError as error:
                yield Predicted(row_id, METRIC, None, refused=str(error))
                continue
            mid, low, high, basis = 1e6 * t.mid, 1e6 * t.low, 1e6 * t.high, t.basis
        command = request_of(asked, at).command if commands and numbers is None else ""
        yield Predicted(row_id, METRIC, mid, low, high, basis, "", command)
