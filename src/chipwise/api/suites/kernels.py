"""The kernel suite: latencies of single operators, a table at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chipwise.calibrate.kernels import NUMBERS, TEXT, price_all
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.evidence.columns import read_columns
from chipwise.evidence.rows import Predicted

__all__ = ["METRIC", "predict_kernels"]

METRIC = "latency_us"


def predict_kernels(path: str, numbers: Parameters | None = None) -> Iterator[Predicted]:
    """`latency_us` of every row of a table of kernels with its 80 % interval; measured columns are not read.

    "calibrated" where the formula was fitted on chips of the same generation, else "modelled".
    Raises `UsageError` for a table that cannot be read.
    """
    refused: dict[int, str] = {}
    columns = read_columns(path, ("row_id", *TEXT), NUMBERS, ("row_id", "chip", "op"), refused)
    chips = load_chips()
    times = price_all(columns, chips, numbers or shipped_parameters())
    rows = zip(
        columns["row_id"].tolist(),
        columns["chip"].tolist(),
        columns["op"].tolist(),
        np.isfinite(times.mid_s).tolist(),
        times.calibrated.tolist(),
        *(np.round(1e6 * t, 4).tolist() for t in (times.mid_s, times.low_s, times.high_s)),
        strict=True,
    )
    for i, (row_id, chip, op, answered, calibrated, mid, low, high) in enumerate(rows):
        if i in refused:
            yield Predicted(row_id, METRIC, None, refused=refused[i])
            continue
        if answered:
            yield Predicted(row_id, METRIC, mid, low, high, "calibrated" if calibrated else "modelled")
            continue
        why = f"operator {op!r} is not priced" if chip in chips else "the chip is not in the catalogue"
        yield Predicted(row_id, METRIC, None, refused=why)
