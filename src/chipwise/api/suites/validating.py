"""`validate`: errors out of fold of a suite, the register of rounds, and how often what was said with a chance held:
rows of others against the model of error without their benchmarker."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import NormalDist

import numpy as np

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.errors import ErrorLine, judged, lines_of, observed
from chipwise.api.suites.predicting import unseen_by
from chipwise.api.suites.suite import Trial
from chipwise.api.sweep_run import Engine
from chipwise.calibrate.fit import Bought
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.errors import UsageError, check_known
from chipwise.evidence.discrepancy import Observed, Posterior, states
from chipwise.evidence.residuals import Reliable, Residuals, Validation
from chipwise.evidence.rounds import rounds
from chipwise.evidence.rows import read_rows, shipped_table
from chipwise.units import Array

CHANCED = (
    "published_serving.csv", "published_inferencex.csv", "published_local.csv", "published_training.csv", "media.csv",
    "rounds/round3_serving.csv", "rounds/round3_local.csv", "rounds/round3_training.csv", "rounds/round3_media.csv",
)  # fmt: skip
FAMILIES = ("serving", "desk", "training", "media")
TARGETS = np.geomspace(0.5, 2.0, 13)
"""Over the predicted time: targets that are asked about."""
MOST = 1200  # rows of a family, whose covariance is inverted
LEAST = 20  # rows of a class that is shown
CELL = ("model", "chip", "runtime", "trainer", "who")
HOW = (
    "For targets from half to twice a predicted time: the chance that is said for keeping it, in ten classes, against "
    "the share of measured rows that kept it. Each benchmarker's rows are judged by a model of error without them; "
    "cells (model, chip, software, benchmarker) count equally. Mids are those of the product, some of whose choices "
    "saw these rows."
)


def reliability(rows: Sequence[str] = (), folder: str = "") -> Validation:
    """Reliability of chances by family. Raises `UsageError` where no table is found."""
    paths = list(rows) or [str(Path(folder, name)) for name in CHANCED if Path(folder, name).is_file()]
    if not paths:
        raise UsageError("validate reliability: no rows", "--rows FILE, or the folder of tables in CHIPWISE_TRUTH")
    lines = [line for path in paths for line in lines_of(path)]
    found = dict(_by_family(lines))
    training = os.path.join(folder, "training.csv")
    remarks = [_memory(training)] if folder and os.path.isfile(training) else []
    return Validation("reliability", HOW, {}, remarks, classes=found, command="chipwise validate reliability")


def _by_family(lines: Sequence[ErrorLine]) -> Iterator[tuple[str, Sequence[Reliable]]]:
    shipped = states()
    for family, every in observed(lines).items():
        if family not in FAMILIES or len(np.unique(every.axes["who"])) < 2:
            continue
        state = shipped[family]
        few = every.balanced(MOST, [a for a in CELL if a in every.axes])
        without = Posterior(state.family, {}, np.zeros(0), np.zeros((0, 0)), state.scales)
        mean, sd = without.left_out(few, few.axes["who"])
        for figure in np.unique(few.figure).tolist():
            at = np.flatnonzero(few.figure == figure)
            name = f"{family}, {'first token' if figure == 'first' else 'time per token, or of a step'}"
            yield name, classes(few.take(at), mean[at], sd[at])


def classes(rows: Observed, mean: Array, sd: Array) -> list[Reliable]:
    """What was said in each of ten classes, and what held, where rows lie around `mean` with deviations `sd`."""
    z = (np.log(TARGETS) - mean[:, None]) / sd[:, None]
    said = np.vectorize(NormalDist().cdf)(z)
    held = rows.y[:, None] <= np.log(TARGETS)
    axes = [rows.axes[a].tolist() for a in CELL if a in rows.axes]
    cells = np.array(["|".join(row) for row in zip(*axes, strict=True)])
    _, code, counts = np.unique(cells, return_inverse=True, return_counts=True)
    weight = np.broadcast_to((1.0 / counts[code])[:, None], said.shape)
    place = np.minimum((10.0 * said).astype(int), 9)
    found = []
    for k in range(10):
        at = place == k
        if at.any(axis=1).sum() >= LEAST:
            share = np.average(held[at], weights=weight[at])
            each = np.average(said[at], weights=weight[at])
            found.append(Reliable(f"{10 * k} to {10 * k + 10} %", float(each), float(share), int(at.any(axis=1).sum())))
    return found


def _memory(path: str) -> str:
    """How many runs of a table of training, all of which ran, are said not to fit."""
    room = {row["row_id"]: row["chip"] for row in read_rows(path, ()) if row["chip"] and row["global_batch"]}
    counted = refused = 0
    for line in SUITES["training"].predict(path):
        if line.metric != "memory_gb" or not line.mid or line.row_id not in room:
            continue
        found = get_chip(room[line.row_id]).tiers[0].found_bytes
        counted += 1
        refused += 0.0 < found < 1e9 * line.mid
    return (
        f"Of {counted:,} training runs that ran, {refused} ({refused / max(counted, 1):.1%}) are said not to fit their "
        "chip; no table holds runs that failed for memory, so that the other error is not known."
    )


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
    engine: Engine | None = None,
) -> Validation:
    """Out-of-fold errors of a suite; `folds` names the key that stays together. `without`: in their place what every
    fitted number buys on rows that its fit had not seen. `engine` says over what folds are spread, with how many
    processes, and where (None: all in this process).

    Without `rows` the suite's table is looked up in the folder that the variable CHIPWISE_TRUTH names, else among
    those that come with the package. Raises `UnknownNameError` for an unknown suite or key, `UsageError` for rows that
    cannot be read.
    """
    check_known("suite to validate", (suite,), VALIDATIONS)
    if without and suite not in FITTED:
        raise UsageError(f"validate {suite}: no fitted numbers", f"one of {', '.join(FITTED)}", field="without")
    _check_engine(suite, engine, without=without)
    if suite == "rounds":
        if rows or folds:
            raise UsageError("rounds are a register: they take no rows and no folds", "chipwise validate rounds")
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
    unseen = None if engine is None else partial(_unseen, suite, rows, numbers, engine)
    found = trial.validate([rows], numbers, folds, partial(judged, suite), unseen)
    return replace(found, command=command)


def _check_engine(suite: str, engine: Engine | None, *, without: bool) -> None:
    """Raises `UsageError` where there is nothing to spread."""
    if engine is not None and (without or suite in ("rounds", "reliability")):
        raise UsageError(f"validate {suite}: there are no folds to spread", "leave --on out", field="on")


def _unseen(suite: str, rows: str, numbers: Parameters, engine: Engine, key: str) -> Residuals:
    return unseen_by(suite, rows, key, numbers, engine)


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
