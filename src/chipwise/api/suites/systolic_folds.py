"""The systolic suite: counters of an array against SCALE-Sim's. Nothing is fitted, so that nothing is left out."""

from __future__ import annotations

from chipwise.calibrate.parameters import Parameters
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.rows import read_rows
from chipwise.evidence.systolic_rows import METRICS, systolic_row
from chipwise.evidence.validate import Judged, Validation, summarise

__all__ = ["validate_systolic"]

KEY = "row"
EQUAL = 1e-6


def validate_systolic(rows: str, _: Parameters, key: str = KEY) -> Validation:
    """Six counters of every row, by dataflow and by size of the array; equal means to 6 decimals.

    Raises `UnknownNameError` for a key, `UsageError` for a table without rows or measured columns.
    """
    if key != KEY:
        raise UnknownNameError("key", key, (KEY,), "nothing is fitted: every row stands for itself")
    judged: list[Judged] = []
    for row in read_rows(rows, ("row_id", *METRICS)):
        slices = {
            "flow": f"{row.get('dataflow', '')}, {row.get('kind', '')}",
            "array": f"{row.get('array_rows', '')} x {row.get('array_cols', '')}",
        }
        try:
            found = systolic_row(row)
        except ChipwiseError:
            found = {}
        for name in METRICS:
            mid, true = found.get(name, float("nan")), float(row[name])
            judged.append(Judged(row["row_id"], name, mid, mid - EQUAL, mid + EQUAL, true, slices))
    if not judged:
        raise UsageError(f"{rows}: no rows", f"needed: {', '.join(METRICS)}")
    exact = sum(j.low <= j.measured <= j.high for j in judged)
    return Validation(
        "systolic",
        "Nothing is fitted. The last column is the share that equals SCALE-Sim v3 to 6 decimals.",
        {
            "all": summarise(judged),
            "by dataflow and kind": summarise(judged, "flow"),
            "by array": summarise(judged, "array"),
        },
        (f"{exact:,} of {len(judged):,} counters are equal",),
    )
