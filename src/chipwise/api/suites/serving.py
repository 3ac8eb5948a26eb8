"""The suite `serving`: measured serving rows -> time to the first token and per further token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.errors import ChipwiseError
from chipwise.evidence.rows import Predicted, Row, read_rows
from chipwise.evidence.serving_answers import FIGURES, answer, seconds
from chipwise.evidence.serving_rows import ServingRun, read_run
from chipwise.units import Array

__all__ = ["measured_runs", "predict_serving", "readable_runs"]

NEEDED = ("row_id", "chip", "backend", "isl", "osl", "concurrency")


def predict_serving(
    rows: str, anchors: str | None = None, numbers: Parameters | None = None
) -> Iterator[Predicted]:
    """`ttft_ms` and `tpot_ms` of every row with 80 % intervals; measured columns are not read.

    `anchors` is a table of the same form with measured columns, of runs that the user owns: rows of the same
    deployment correct the prediction. A row that cannot be answered becomes a line with the reason.
    """
    parameters = numbers or shipped_parameters()
    table, found = readable_runs(rows)
    own = measured_runs(anchors) if anchors else None
    runs = [run for run in found if isinstance(run, ServingRun)]
    answers = answer(runs, parameters, own) if runs else None
    at = -1
    for row, run in zip(table, found, strict=True):
        if not isinstance(run, ServingRun) or answers is None:
            for metric in FIGURES.values():
                yield Predicted(row["row_id"], metric, None, refused=str(run))
            continue
        at += 1
        near = answers.nearness[at]
        basis = {"own": "measured", "chip": "calibrated"}.get(near, "modelled")
        for figure, metric in FIGURES.items():
            mid, low, high = (round(1e3 * x, 4) for x in answers.interval(figure, at))
            yield Predicted(row["row_id"], metric, mid, low, high, basis)


def readable_runs(path: str) -> tuple[list[Row], list[ServingRun | ChipwiseError]]:
    """Rows of a table and what they mean, or why they cannot be read."""
    folder = Path(path).parent / "models"
    configs: dict[str, ModelConfig] = {}
    table: list[Row] = list(read_rows(path, NEEDED))
    found: list[ServingRun | ChipwiseError] = []
    for row in table:
        try:
            name = row.get("config_file", "")
            if name and name not in configs:
                configs[name] = find_config(str(folder / name))
            found.append(read_run(row, configs.get(name)))
        except ChipwiseError as error:
            found.append(error)
    return table, found


def measured_runs(path: str) -> tuple[list[ServingRun], Array, Array]:
    """Readable rows with measured columns: runs, seconds per token, seconds to the first token."""
    table, found = readable_runs(path)
    kept = [(row, run) for row, run in zip(table, found, strict=True) if isinstance(run, ServingRun)]
    kept = [(row, run) for row, run in kept if _numbers(row)]
    runs = [run for _, run in kept]
    tpot, ttft = (seconds([row.get(name, "") for row, _ in kept]) for name in ("tpot_ms", "ttft_ms"))
    return runs, tpot, ttft


def _numbers(row: Row) -> bool:
    """Whether a row holds a measured time per token."""
    try:
        values = [float(row[name]) for name in FIGURES.values() if row.get(name)]
    except ValueError:
        return False
    return bool(row.get("tpot_ms")) and bool(np.all(np.array(values) > 0))
