"""`validate`: errors out of fold of a suite, how often chances held, and the register of rounds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.errors import judged
from chipwise.api.suites.reliability import reliability
from chipwise.api.suites.suite import Trial
from chipwise.calibrate.fit import Bought
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import UsageError, check_known
from chipwise.evidence.residuals import Validation
from chipwise.evidence.rounds import rounds
from chipwise.evidence.rows import shipped_table

VALIDATIONS: tuple[str, ...] = (
    "serving", "published", "mlperf", "training", "mlperf_training", "token_speeds", "local", "kernels", "systolic",
    "model_params", "kv_cache", "energy", "media", "reliability", "rounds",
)  # fmt: skip
"""Suites that can be validated, how often chances held, and the register of rounds."""

FITTED = tuple(name for name in VALIDATIONS if name in SUITES and SUITES[name].fits)
"""Those of which numbers are fitted."""

TABLES = "CHIPWISE_TRUTH"


def validate(
    suite: str,
    rows: str | None = None,
    folds: str | None = None,
    numbers: Parameters | None = None,
    *,
    without: bool = False,
) -> Validation:
    """Out-of-fold errors of a suite; `folds` names the key that stays together. `without`: in their place what every
    fitted number buys on rows that its fit had not seen.

    Without `rows` the suite's table is looked up in the folder that the variable CHIPWISE_TRUTH names, else among
    those that come with the package. Raises `UnknownNameError` for an unknown suite or key, `UsageError` for rows that
    cannot be read.
    """
    check_known("suite to validate", (suite,), VALIDATIONS)
    if without and suite not in FITTED:
        raise UsageError(
            f"validate {suite}: no fitted numbers", f"one of {', '.join(FITTED)}", field="without"
        )
    if suite == "rounds":
        if rows or folds:
            raise UsageError(
                "rounds are a register: they take no rows and no folds", "chipwise validate rounds"
            )
        return rounds()
    if suite == "reliability":
        return reliability([rows] if rows else (), os.environ.get(TABLES, ""))
    trial = SUITES[suite].trial
    assert isinstance(trial, Trial)
    rows = rows or _table(suite, trial.file)
    command = f"chipwise validate {suite}" + (f" --folds {folds}" if folds else "")
    numbers = numbers or shipped_parameters()
    if without:
        key, parts = trial.bought([rows], numbers, folds)
        return replace(_bought(suite, key, parts), command=f"{command} --without")
    return replace(trial.validate([rows], numbers, folds, partial(judged, suite)), command=command)


def _table(suite: str, file: str) -> str:
    """Where the table of a suite is. Raises `UsageError` where nobody has said it and none ships."""
    folder = os.environ.get(TABLES)
    found = str(Path(folder) / file) if folder else shipped_table(file)
    if found is None:
        why = f"--rows {file}, or the folder in {TABLES}: it may not be passed on"
        raise UsageError(f"validate {suite}: no rows", why)
    return found


def _bought(suite: str, key: str, parts: Mapping[str, Sequence[Bought]]) -> Validation:
    """What numbers buy, as a validation."""
    every = [b for each in parts.values() for b in each]
    helped = sum(b.buys > 0.0 for b in every)
    method = (
        f"Every number at its prior, the others moved to make up for it, on rows whose {key} its fit had not seen. "
        "Errors are medians of the rows that it moves; what it buys is the difference of means, the least first."
    )
    said = f"{helped} of {len(every)} numbers that ship make rows better that no fit had seen"
    return Validation(f"{suite}: what numbers buy", method, {}, (said,), numbers=parts)
