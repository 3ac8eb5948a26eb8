"""The kernel suite out of fold: errors by chip, operator, data type and size, next to the naive roofline."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.api.suites.kernels import METRIC
from chipwise.calibrate.kernel_folds import FEW, KEYS, out_of_fold
from chipwise.calibrate.kernel_rows import roofline_s
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of, mapped, types_of
from chipwise.calibrate.kernels import KernelTimes
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chips import load_chips
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.columns import read_columns
from chipwise.evidence.validate import Summary, Validation
from chipwise.units import Array

__all__ = ["summaries", "validate_kernels"]

# Ranges of measured time; short kernels are mostly launch.
SIZES = ((0.0, "under 10 us"), (10.0, "10 to 30 us"), (30.0, "30 us to 1 ms"), (1e3, "over 1 ms"))
LEAST = 20
"""Rows that a slice must have to be shown."""

_METHODS = {
    "shape": ("kernels", "5 groups of shapes left out in turn"),
    "chip": ("kernels of a chip never measured", "each chip left out in turn"),
    "few": (
        "kernels of a new chip",
        f"each chip left out in turn but for {FEW} shapes of each operator and data type, which correct the rest",
    ),
}
"""By key: section of the accuracy page, and what was done."""


def validate_kernels(rows: str, numbers: Parameters, key: str = "shape") -> Validation:
    """Errors of fits that never saw a row's shape (5 folds), or, `key` "chip", its chip, or "few", more of its chip
    than a few shapes.

    Raises `UnknownNameError` for another key, `UsageError` for a table without measured columns.
    """
    if key not in KEYS:
        raise UnknownNameError("key", key, KEYS, f"one of {', '.join(KEYS)}")
    text = ("row_id", *TEXT)
    columns = read_columns(rows, text, (*NUMBERS, METRIC, "chip_known"), ("row_id", "chip", "op"))
    scored = (columns["chip_known"] != 0) & (columns["chip"] != "") & (columns[METRIC] > 0)
    if not scored.any():
        raise UsageError(f"{rows}: no measured rows", f"needed: {METRIC}")
    columns = {name: values[scored] for name, values in columns.items()}
    chips = load_chips()
    if key != "shape":  # other families keep their numbers: they are no chip left out
        gpu = np.array([c in chips and chips[c].family == "simt" for c in columns["chip"].tolist()])
        columns = {name: values[gpu] for name, values in columns.items()}
    times = out_of_fold(columns, chips, numbers, key)
    if key == "few":
        unseen = np.isfinite(times.mid_s)
        columns = {name: values[unseen] for name, values in columns.items()}
        times = KernelTimes(*(getattr(times, f.name)[unseen] for f in fields(times)))
    naive_s = roofline_s(asked_of(columns), chips)
    naive = KernelTimes(naive_s, naive_s, naive_s, np.zeros(len(naive_s), dtype=bool))
    measured_us = columns[METRIC]
    size = np.array([name for _, name in SIZES])[
        np.searchsorted([us for us, _ in SIZES], measured_us, side="right") - 1
    ]
    slices = {
        "by operator": columns["op"].astype(str),
        "by operator and size": np.char.add(np.char.add(columns["op"].astype(str), ", "), size),
        "by chip": columns["chip"].astype(str),
        "by data type": types_of(columns),
    }
    if key != "shape":
        vendor = mapped(columns["chip"].astype(str), lambda c: chips[c].vendor if c in chips else "")
        slices["by operator and vendor"] = np.char.add(np.char.add(columns["op"].astype(str), ", "), vendor)
        long = np.where(measured_us >= 30.0, "gemm of 30 us or more, ", "")
        long = np.where(columns["op"].astype(str) == "gemm", long, "")
        slices["products by chip"] = np.where(long == "", "", np.char.add(long, columns["chip"].astype(str)))
        slices["products by vendor"] = np.where(long == "", "", np.char.add(long, vendor))
    tables = {"all": summaries(measured_us, times, np.full(len(size), "all"))}
    for title, names in slices.items():
        tables[title] = summaries(measured_us, times, names)
        tables[f"naive roofline, {title}"] = summaries(measured_us, naive, names)
    suite, how = _METHODS[key]
    return Validation(suite, f"{how}; kernels of GPUs refitted on the rest", tables)


def summaries(measured_us: Array, times: KernelTimes, names: NDArray[np.str_]) -> list[Summary]:
    """Errors of every slice with enough rows."""
    error = 1e6 * times.mid_s / measured_us - 1.0
    inside = (1e6 * times.low_s <= measured_us) & (measured_us <= 1e6 * times.high_s)
    found = []
    keys, codes = np.unique(names, return_inverse=True)
    for i, name in enumerate(keys.tolist()):
        at = np.flatnonzero(codes == i)
        known = at[np.isfinite(error[at])]
        if len(at) < LEAST or not len(known) or not name:
            continue
        off = np.abs(error[known])
        found.append(
            Summary(
                str(name),
                METRIC,
                len(at),
                len(known) / len(at),
                float(np.median(off)),
                float(np.quantile(off, 0.9)),
                float(np.median(error[known])),
                float(np.mean(inside[known])),
            )
        )
    return found
