"""Rows of simulated systolic arrays: what SCALE-Sim v3 reports for one layer on one array."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.cost.systolic import DATAFLOWS, Dataflow, Gemm, SystolicArray, counters, im2col
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.rows import Row, number

METRICS = (
    "cycles",
    "utilization_pct",
    "mapping_efficiency_pct",
    "sram_ifmap_reads",
    "sram_filter_reads",
    "sram_ofmap_writes",
)
_LAYER = ("ifmap_h", "ifmap_w", "filter_h", "filter_w", "channels", "num_filters", "stride_h", "stride_w")


def systolic_row(row: Row) -> Mapping[str, float]:
    """The six counters of a row: `dataflow`, `array_rows`, `array_cols`, and M, N, K or the dims of a layer.

    Counts are whole numbers and exact. The two percentages are rounded as the published tables are, to 6
    decimals and then to 6 significant digits: unrounded, a figure such as 11.36860234 would lie 2e-6 from
    its printed 11.3686, further than the 1e-6 within which answers count as equal. Raises `UsageError` for a
    size that is missing or no positive whole number, `UnknownNameError` for an unknown dataflow.
    """
    dataflow = row.get("dataflow", "")
    if dataflow not in DATAFLOWS:
        raise UnknownNameError("dataflow", dataflow, DATAFLOWS, f"one of {', '.join(DATAFLOWS)}")
    known: Dataflow = dataflow
    array = SystolicArray(_size(row, "array_rows"), _size(row, "array_cols"))
    found = counters(*_product(row), array, known)
    answer = {name: float(getattr(found, name)) for name in METRICS}
    return {name: _printed(value) if name.endswith("_pct") else value for name, value in answer.items()}


def _product(row: Row) -> Gemm:
    if all(row.get(name) for name in "MNK"):
        return Gemm(_size(row, "M"), _size(row, "N"), _size(row, "K"))
    if row.get("ifmap_h"):
        # SCALE-Sim keeps a last window that hangs over the edge
        return im2col(*(_size(row, name) for name in _LAYER), partial_windows="keep")
    raise UsageError("the row gives neither M, N, K nor the dims of a layer")


def _size(row: Row, name: str) -> float:
    return number(row, name, 1.0, whole=True)


def _printed(value: float) -> float:
    return float(f"{round(value, 6):.6g}")
