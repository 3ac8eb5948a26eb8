"""At most one fitted number for every two independent cells (DESIGN 3), and so many in all suites together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from chipwise.api.suites.kernels import CELL, measured_columns
from chipwise.calibrate.kernels import fitted_names
from chipwise.calibrate.parameter import read_table
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.snapshot import shipped_names, shipped_text
from truth import published, rows_of

CELLS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "serving": (
        "serving_points.csv",
        ("config_file", "chip", "backend", "mode", "gemm_quant"),
        ("serving.pass.", "serving.first."),
    ),
    "training": (
        "training.csv",
        ("model", "chip", "chips_total", "seq_len", "global_batch", "precision"),
        ("training.",),
    ),
    "mlperf": ("mlperf_inference.csv", ("accelerator", "model_base"), ("level.",)),
}
"""Suite -> its table, what makes a cell, and the names of its numbers."""

LISTS = (".label.", ".seen.")
"""Parts of names of what rows were of: no number was fitted."""
BUDGET = 654
"""Fitted values and widths of intervals that ship, of all suites. It only goes down."""


def test_all_suites_together_stay_within_one_budget() -> None:
    tables = {name: read_table(shipped_text(name), name) for name in shipped_names("calibrate/data", ".csv")}
    counts = {file: sum(not any(part in name for part in LISTS) for name in t) for file, t in tables.items()}
    assert all(counts.values()), counts
    assert sum(counts.values()) <= BUDGET, counts


@pytest.mark.parametrize("suite", CELLS)
def test_fitted_numbers_stay_within_half_of_the_cells(suite: str) -> None:
    file, columns, prefixes = CELLS[suite]
    cells = {tuple(row[c] for c in columns) for row in rows_of(file) if row.get("score", "1") == "1"}
    fitted = [
        name
        for name in shipped_parameters().table
        if name.startswith(prefixes) and not any(part in name for part in LISTS)
    ]
    assert fitted, "the suite ships no numbers: is its prefix still right?"
    assert len(fitted) <= len(cells) / 2, (len(fitted), len(cells))


def test_kernels_stay_within_half_of_their_cells() -> None:
    path = published("kernels.parquet")
    pytest.importorskip("pyarrow", reason="needs the parquet extra")
    columns = measured_columns([str(path)], shipped_parameters()).columns
    cells = set(zip(*(columns[name].tolist() for name in CELL), strict=True))
    fitted = fitted_names(shipped_parameters().table)
    assert fitted, "the suite ships no numbers: are its prefixes still right?"
    assert len(fitted) <= len(cells) / 2, (len(fitted), len(cells))
