"""`calibrate`: parameters fitted to measurements of one's own."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chipwise.calibrate.kernel_questions import taken
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of
from chipwise.calibrate.kernels import METRIC, corrected_kernels, price_kernels
from chipwise.calibrate.parameter import write_table
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.files import output_file, writing
from chipwise.errors import UsageError
from chipwise.evidence.columns import read_columns


class Calibrated(NamedTuple):
    """Rows used, parameters written, and the median error on those rows before and after (not out of fold)."""

    rows: int
    parameters: int
    before: float
    after: float


def calibrate_kernels_file(rows: str, out: str, numbers: Parameters | None = None) -> Calibrated:
    """Fit the kernel formulas to a table of measured kernels and write the parameters that changed.

    Raises `UsageError` for a table without usable rows, or a file that cannot be written.
    """
    output_file(out, rows)  # before the work is done
    known = numbers or shipped_parameters()
    columns = read_columns(rows, TEXT, (*NUMBERS, METRIC), ("chip", "op", METRIC))
    chips = load_chips()
    asked = asked_of(columns)
    before = price_kernels(asked, chips, known.kernels).mid_s
    usable = np.isfinite(before) & (columns[METRIC] > 0)
    if not usable.any():
        raise UsageError(
            f"{rows}: no row that a kernel formula prices", "chips and operators as in predict kernels"
        )
    asked = taken(asked, usable)
    source = f"fitted on {int(usable.sum())} rows of {Path(rows).name}, {date.today()}"
    fitted = corrected_kernels(asked, chips, known, source)
    after = price_kernels(asked, chips, Parameters({**known.table, **fitted}).kernels).mid_s
    with writing(out, rows) as file:
        file.write(write_table(fitted))
    measured = asked[METRIC] * 1e-6

    def off(seconds: np.ndarray) -> float:
        return float(np.median(np.abs(seconds / measured - 1.0)))

    return Calibrated(int(usable.sum()), len(fitted), off(before[usable]), off(after))
