"""`validate SUITE`: refit without each part of a table of measurements in turn, and report the errors on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chipwise.api.suites.kernel_folds import validate_kernels
from chipwise.api.suites.mlperf_folds import validate_mlperf
from chipwise.api.suites.serving_folds import validate_serving
from chipwise.api.suites.speed_folds import validate_speeds
from chipwise.api.suites.systolic_folds import validate_systolic
from chipwise.api.suites.training_folds import validate_training
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.validate import Validation

__all__ = ["VALIDATIONS", "Validator", "validate"]


@dataclass(frozen=True, slots=True)
class Validator:
    """How a suite is tested: its file in a folder of tables, the key that stays together, and the test
    (rows file, parameters, key) -> what was found."""

    file: str
    key: str
    run: Callable[[str, Parameters, str], Validation]


VALIDATIONS: dict[str, Validator] = {
    "kernels": Validator("kernels.parquet", "shape", validate_kernels),
    "systolic": Validator("systolic.csv", "row", validate_systolic),
    "serving": Validator("serving_points.csv", "cell", validate_serving),
    "mlperf": Validator("mlperf_inference.csv", "cell", validate_mlperf),
    "token_speeds": Validator("token_speeds.csv", "model", validate_speeds),
    "training": Validator("training.csv", "workload", validate_training),
    "mlperf_training": Validator("mlperf_training.csv", "workload", validate_training),
}
"""Suites that can be validated."""

TABLES = "CHIPWISE_TRUTH"


def validate(
    suite: str, rows: str | None = None, folds: str | None = None, numbers: Parameters | None = None
) -> Validation:
    """Out-of-fold errors of a suite; `folds` names the key that stays together.

    Without `rows` the suite's table is looked up in the folder that the variable CHIPWISE_TRUTH names. Raises
    `UnknownNameError` for an unknown suite, `UsageError` for rows that cannot be read or an unknown key.
    """
    if suite not in VALIDATIONS:
        raise UnknownNameError("suite to validate", suite, VALIDATIONS, f"one of {', '.join(VALIDATIONS)}")
    test = VALIDATIONS[suite]
    if rows is None:
        folder = os.environ.get(TABLES)
        if not folder:
            raise UsageError(f"validate {suite}: no rows", f"--rows {test.file}, or the folder in {TABLES}")
        rows = str(Path(folder) / test.file)
    return test.run(rows, numbers or shipped_parameters(), folds or test.key)
