"""Kernels priced by fits that never saw them: shapes left out in turn, or one chip after the other, wholly or but
for a few of its shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_priors import PRIORS
from chipwise.calibrate.kernel_questions import taken
from chipwise.calibrate.kernel_rows import groups_of
from chipwise.calibrate.kernel_table import Columns, asked_of, text_of
from chipwise.calibrate.kernels import KernelTimes, calibrate_kernels, kernel_parameters, price_measured
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.refit_kernels import refit_kernels
from chipwise.catalog.chip import Chip

__all__ = ["FEW", "KEYS", "SHAPE", "few_of", "fold_of", "out_of_fold"]

KEYS = ("shape", "chip", "few")

FEW = 15
"""Shapes of each operator and data type that a new chip shows before the others are predicted."""

SHAPE = (
    "m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "causal", "window", "tokens",
    "hidden", "inter", "experts", "topk", "tp", "ep", "distribution", "bytes", "ranks",
)  # fmt: skip
"""Columns that say what is computed, whatever it runs on."""

FOLDS = 5


def fold_of(columns: Columns, key: str, folds: int = FOLDS) -> NDArray[np.intp]:
    """The fold of every row. "shape": rows of equal dims share one of `folds`, dealt out at random but always
    the same; "chip", "few": every chip is a fold. Raises `ValueError` for another key."""
    if key in ("chip", "few"):
        return np.unique(text_of(columns, "chip"), return_inverse=True)[1].astype(np.intp)
    if key != "shape":
        raise ValueError(key)
    codes = _codes(columns, SHAPE)
    dealt = np.random.default_rng(0).permutation(int(codes.max()) + 1) % folds
    return dealt[codes].astype(np.intp)


def few_of(columns: Columns, shapes: int = FEW) -> NDArray[np.bool_]:
    """So many shapes of each chip, operator and data type, dealt out at random but always the same."""
    what = _codes(columns, ("chip", "op", "dtype"))
    chosen = np.zeros(len(what), dtype=bool)
    shape = _codes(columns, SHAPE)
    order = np.random.default_rng(1).permutation(int(shape.max()) + 1)[shape]
    for each in np.unique(what):
        at = np.flatnonzero(what == each)
        chosen[at] = np.isin(order[at], np.unique(order[at])[:shapes])
    return chosen


def _codes(columns: Columns, names: Sequence[str]) -> NDArray[np.int64]:
    """One number for every combination of these columns."""
    codes = np.zeros(len(columns["op"]), dtype=np.int64)
    for name in names:
        each = np.unique(columns[name], return_inverse=True)[1]
        codes = np.unique(codes * (int(each.max()) + 1) + each, return_inverse=True)[1]
    return codes


def out_of_fold(
    columns: Columns, chips: Mapping[str, Chip], numbers: Parameters, key: str, folds: int = FOLDS
) -> KernelTimes:
    """Every row priced by numbers fitted to the rows of the other folds. `columns` hold `latency_us`.

    Kernels of SIMT chips are refitted; other families keep their shipped numbers. "few" corrects the numbers of
    other chips by `few_of` of each chip, as `calibrate` does with rows of one's own; those rows have NaN here.
    """
    fold = fold_of(columns, key, folds)
    shown = few_of(columns) if key == "few" else np.zeros(len(fold), dtype=bool)
    asked = asked_of(columns)
    group = groups_of(asked)
    priced = [np.full(len(fold), np.nan) for _ in range(3)]
    calibrated = np.zeros(len(fold), dtype=bool)
    for each in np.unique(fold):
        out = fold == each
        # groups that have no rows here need no fit
        wanted = np.unique(group[out]).tolist()
        effects = calibrate_kernels(taken(asked, np.flatnonzero(~out)), chips, only=wanted)
        fitted = _with(numbers, kernel_parameters(effects, "fold"))
        if key == "few":
            rows = taken(asked, np.flatnonzero(out & shown))
            known = _with(numbers, {**fitted.table, **refit_kernels(rows, chips, fitted, "few")})
            fitted, out = known, out & ~shown
        times = price_measured(taken(asked, np.flatnonzero(out)), chips, fitted)
        for column, found in zip(priced, (times.mid_s, times.low_s, times.high_s), strict=True):
            column[out] = found
        calibrated[out] = times.calibrated
    return KernelTimes(priced[0], priced[1], priced[2], calibrated)


def _with(numbers: Parameters, fitted: Mapping[str, Parameter]) -> Parameters:
    """The parameters with other numbers for kernels."""
    start = tuple(f"{group}." for group in PRIORS)
    kept = {name: p for name, p in numbers.table.items() if not name.startswith(start)}
    return Parameters({**kept, **fitted})
