"""Kernels priced by fits that never saw them: shapes left out in turn, or one chip after the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_labels import Columns, text_of
from chipwise.calibrate.kernel_priors import PRIORS
from chipwise.calibrate.kernels import (
    GROUPS,
    KernelTimes,
    calibrate_kernels,
    kernel_parameters,
    price_all,
)
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip

__all__ = ["KEYS", "SHAPE", "fold_of", "out_of_fold"]

KEYS = ("shape", "chip")

SHAPE = (
    "m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "causal", "window", "tokens",
    "hidden", "inter", "experts", "topk", "tp", "ep", "distribution", "bytes", "ranks",
)  # fmt: skip
"""Columns that say what is computed, whatever it runs on."""

FOLDS = 5


def fold_of(columns: Columns, key: str, folds: int = FOLDS) -> NDArray[np.intp]:
    """The fold of every row. "shape": rows of equal dims share one of `folds`, dealt out at random but always
    the same; "chip": every chip is a fold. Raises `ValueError` for another key."""
    if key == "chip":
        return np.unique(text_of(columns, "chip"), return_inverse=True)[1].astype(np.intp)
    if key != "shape":
        raise ValueError(key)
    codes = np.zeros(len(columns["op"]), dtype=np.int64)
    for name in SHAPE:
        each = np.unique(columns[name], return_inverse=True)[1]
        codes = np.unique(codes * (int(each.max()) + 1) + each, return_inverse=True)[1]
    dealt = np.random.default_rng(0).permutation(int(codes.max()) + 1) % folds
    return dealt[codes].astype(np.intp)


def out_of_fold(
    columns: Columns, chips: Mapping[str, Chip], numbers: Parameters, key: str, folds: int = FOLDS
) -> KernelTimes:
    """Every row priced by numbers fitted to the rows of the other folds. `columns` hold `latency_us`.

    Kernels of SIMT chips are refitted; other families keep their shipped numbers.
    """
    fold = fold_of(columns, key, folds)
    op = columns["op"].astype(str)
    priced = [np.full(len(op), np.nan) for _ in range(3)]
    calibrated = np.zeros(len(op), dtype=bool)
    for each in np.unique(fold):
        out = fold == each
        # groups that have no rows here need no fit
        wanted = [o for ops in GROUPS.values() if np.isin(op[out], ops).any() for o in ops]
        train = ~out & np.isin(op, wanted)
        effects = calibrate_kernels({k: v[train] for k, v in columns.items()}, chips)
        fitted = _with(numbers, kernel_parameters(effects, "fold"))
        times = price_all({k: v[out] for k, v in columns.items()}, chips, fitted)
        for column, found in zip(priced, (times.mid_s, times.low_s, times.high_s), strict=True):
            column[out] = found
        calibrated[out] = times.calibrated
    return KernelTimes(priced[0], priced[1], priced[2], calibrated)


def _with(numbers: Parameters, fitted: Mapping[str, Parameter]) -> Parameters:
    """The parameters with other numbers for kernels."""
    start = tuple(f"{group}." for group in PRIORS)
    kept = {name: p for name, p in numbers.table.items() if not name.startswith(start)}
    return Parameters({**kept, **fitted})
