"""The suites `training` and `mlperf_training`: rows of measured runs -> step times, rates, memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from chipwise.api.suites.training_checks import impossible
from chipwise.calibrate.fit_training import Runs, fit
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.training_answers import answer_training
from chipwise.evidence.training_case import Case
from chipwise.evidence.training_rows import read_case, stack_cases

__all__ = ["fitted_training", "measured_runs", "predict_training"]

NEEDED = ("row_id", "chip", "chips_total")


def predict_training(
    rows: str, anchors: str | None = None, numbers: Parameters | None = None
) -> Iterator[Predicted]:
    """Every measured column that physics can give, with 80 % intervals; measured columns are not read.

    `anchors` is a table of the same form with measured columns, of runs that the user owns. A row that cannot
    be answered becomes a line with the reason.
    """
    table = list(read_rows(rows, NEEDED))
    own = list(read_rows(anchors, NEEDED)) if anchors else []
    wrong = [impossible(row) for row in table]
    sound = [row for row, why in zip(table, wrong, strict=True) if not why]
    lines = deque(answer_training(sound, numbers or shipped_parameters(), own))
    for row, why in zip(table, wrong, strict=True):
        if why:
            yield Predicted(row["row_id"], "step_time_s", None, refused=why)
        while lines and lines[0].row_id == row["row_id"]:
            yield lines.popleft()


def fitted_training(paths: Sequence[str], prior: Parameters) -> Parameters:
    """`prior` with the numbers of training fitted to all rows of the tables that count."""
    _, _, runs = measured_runs(paths)
    return fit(runs.take(np.flatnonzero(runs.weight > 0)), prior)


def measured_runs(paths: Sequence[str]) -> tuple[list[Row], list[Case], Runs]:
    """Rows that can be read, of tables with measured columns. Raises `UsageError` where there are none."""
    table: list[Row] = []
    cases: list[Case] = []
    for path in paths:
        for row in read_rows(path, NEEDED):
            try:
                cases.append(read_case(row))
            except ChipwiseError:
                continue
            table.append(row)
    if not table:
        raise UsageError(f"{', '.join(paths)}: no row can be read", "is it a table of training runs?")
    runs = stack_cases(cases, table)
    if not np.isfinite(runs.seconds).any():
        raise UsageError(f"{', '.join(paths)}: no measured columns", "needed: step_time_s or a rate")
    return table, cases, runs
