"""The doors of all suites: `predict SUITE` answers rows, `validate SUITE` refits without each part of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from chipwise.api.suites.counted import KV_CACHE, MODEL_PARAMS, SYSTOLIC
from chipwise.api.suites.energy import ENERGY
from chipwise.api.suites.kernels import KERNELS
from chipwise.api.suites.local import LOCAL_SPEEDS
from chipwise.api.suites.media import MEDIA
from chipwise.api.suites.mlperf_folds import MLPERF
from chipwise.api.suites.published import PUBLISHED
from chipwise.api.suites.serving import SERVING
from chipwise.api.suites.speeds import TOKEN_SPEEDS
from chipwise.api.suites.suite import Suite, Trial
from chipwise.api.suites.training_folds import MLPERF_TRAINING, TRAINING
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.files import output_file
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.residuals import Validation
from chipwise.evidence.rounds import rounds
from chipwise.evidence.rows import shipped_table, write_commands, write_predictions

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        MODEL_PARAMS,
        KV_CACHE,
        SYSTOLIC,
        KERNELS,
        MLPERF,
        PUBLISHED,
        SERVING,
        TOKEN_SPEEDS,
        LOCAL_SPEEDS,
        TRAINING,
        MLPERF_TRAINING,
        ENERGY,
        MEDIA,
    )
}

VALIDATIONS: tuple[str, ...] = (
    "serving", "published", "mlperf", "training", "mlperf_training", "token_speeds", "local", "kernels", "systolic",
    "model_params", "kv_cache", "energy", "media", "rounds",
)  # fmt: skip
"""Suites that can be validated, and the register of rounds."""

TABLES = "CHIPWISE_TRUTH"


def predict_suite(
    suite: str,
    rows: str,
    out: str,
    anchors: str | None = None,
    parameters: Parameters | None = None,
    commands: str | None = None,
) -> tuple[int, int]:
    """Predict every row of a suite into a CSV; returns (lines written, rows refused).

    `anchors` names measured rows that the user owns; `parameters` replace the shipped ones; `commands` names a CSV
    for the command line of each answered row that gives the same figures. A row that cannot be answered becomes a
    line with the reason. Raises `UnknownNameError` for an unknown suite, `UsageError` for unreadable rows.
    """
    if suite not in SUITES:
        raise UnknownNameError("suite", suite, SUITES, f"one of {', '.join(SUITES)}")
    asked = SUITES[suite]
    output_file(out, rows, anchors)  # before the work is done
    if commands is not None:
        output_file(commands, rows, anchors)
        if not asked.commanded:
            able = ", ".join(name for name, s in SUITES.items() if s.commanded)
            raise UsageError(f"{suite} has no command lines", f"--commands is for {able}")
    if anchors is not None and not asked.anchored:
        able = ", ".join(name for name, s in SUITES.items() if s.anchored)
        raise UsageError(f"{suite} takes no anchors", f"--anchors is for {able}")
    if parameters is not None and (anchors is not None or not asked.priced):
        able = ", ".join(name for name, s in SUITES.items() if s.priced)
        raise UsageError(f"{suite} takes no parameters here", f"--parameters is for {able}, without anchors")
    answers = asked.predict(rows, parameters, anchors, commands=commands is not None)
    written = write_predictions(answers, out)
    if commands is not None:
        write_commands(answers, commands)
    return written, sum(1 for a in answers if a.refused)


def validate(
    suite: str, rows: str | None = None, folds: str | None = None, numbers: Parameters | None = None
) -> Validation:
    """Out-of-fold errors of a suite; `folds` names the key that stays together.

    Without `rows` the suite's table is looked up in the folder that the variable CHIPWISE_TRUTH names, else among
    those that come with the package. Raises `UnknownNameError` for an unknown suite or key, `UsageError` for rows that
    cannot be read.
    """
    if suite not in VALIDATIONS:
        raise UnknownNameError("suite to validate", suite, VALIDATIONS, f"one of {', '.join(VALIDATIONS)}")
    if suite == "rounds":
        if rows or folds:
            raise UsageError(
                "rounds are a register: they take no rows and no folds", "chipwise validate rounds"
            )
        return rounds()
    trial = SUITES[suite].trial
    assert isinstance(trial, Trial)
    if rows is None:
        folder = os.environ.get(TABLES)
        rows = str(Path(folder) / trial.file) if folder else shipped_table(trial.file)
    if rows is None:
        raise UsageError(
            f"validate {suite}: no rows",
            f"--rows {trial.file}, or the folder in {TABLES}: it may not be passed on",
        )
    command = f"chipwise validate {suite}" + (f" --folds {folds}" if folds else "")
    return replace(trial.validate([rows], numbers or shipped_parameters(), folds), command=command)
