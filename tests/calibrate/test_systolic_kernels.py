"""Fitted numbers of systolic chips against the measured kernels of a TPU."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit import Times, priced
from chipwise.calibrate.kernel_questions import Questions, questions, taken
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.calibrate.systolic_kernels import (
    GROUPS,
    calibrate_systolic,
    parameters_of,
    priced_systolic,
    systolic_effects,
)
from chipwise.catalog.chips import load_chips
from chipwise.evidence.columns import read_columns

CHIPS = load_chips()

# Median and 90 % of the absolute error on shapes that the fit did not see, a little above what was reached
# (10 / 36, 4 / 11, 2 / 7, 11 / 23 %); a plain roofline is 24 / 51, 95 / 95, 78 / 88, 158 / 202 % off.
BOUNDS = {
    "gemm": (0.11, 0.39),
    "attention_prefill": (0.05, 0.13),
    "attention_decode": (0.02, 0.08),
    "layernorm": (0.13, 0.25),
}


@pytest.fixture(scope="module")
def measured(truth: Path) -> dict[str, NDArray[Any]]:
    pytest.importorskip("pyarrow", reason="needs the parquet extra")
    columns = read_columns(str(truth / "kernels.parquet"), TEXT, (*NUMBERS, "latency_us"), ("op", "chip"))
    return asked_of(taken(columns, np.flatnonzero(columns["chip"] == "tpu-v6e")))


def price_systolic(asked: Questions, effects: Mapping[str, Effects]) -> Times:
    return priced(len(asked["op"]), priced_systolic(asked, CHIPS, effects))


def folds(columns: dict[str, NDArray[Any]]) -> NDArray[np.int_]:
    """Five parts by a hash of the shape."""
    shape = zip(*(columns[name].astype(str) for name in ("source", "m", "n", "k", "batch", "q", "kv")), strict=True)
    return np.array([zlib.crc32("|".join(part).encode()) % 5 for part in shape])


def test_shapes_that_the_fit_did_not_see(measured: dict[str, NDArray[Any]]) -> None:
    fold, seconds = folds(measured), measured["latency_us"] * 1e-6
    mid, inside = np.empty(len(fold)), np.zeros(len(fold), dtype=bool)
    for i in range(5):
        seen = {name: values[fold != i] for name, values in measured.items()}
        left = {name: values[fold == i] for name, values in measured.items()}
        found = price_systolic(left, calibrate_systolic(seen, CHIPS))
        mid[fold == i] = found.mid_s
        inside[fold == i] = (found.low_s <= seconds[fold == i]) & (seconds[fold == i] <= found.high_s)
    assert np.all(np.isfinite(mid))
    for op, (median, ninety) in BOUNDS.items():
        rows = measured["source"] == op
        error = np.abs(mid[rows] / seconds[rows] - 1)
        assert np.median(error) < median, op
        assert np.quantile(error, 0.9) < ninety, op
        assert 0.65 < np.mean(inside[rows]) < 0.95, op


def test_what_ships_is_what_these_rows_give(measured: dict[str, NDArray[Any]]) -> None:
    fitted = parameters_of(calibrate_systolic(measured, CHIPS), "tpu-v6e")
    shipped = parameters_of(systolic_effects(shipped_parameters().table), "tpu-v6e")
    for name in fitted.__slots__:
        assert getattr(shipped, name) == pytest.approx(getattr(fitted, name), rel=0.01), name


def test_other_chips_inherit_with_a_wider_interval() -> None:
    effects = systolic_effects(shipped_parameters().table)
    row = questions(2, m=4096.0, n=4096.0, k=4096.0, chip=np.array(["tpu-v6e", "tpu-v5e"]))
    found = price_systolic(row, effects)
    width = found.high_s / found.low_s
    assert width[1] > 1.1 * width[0]
    assert found.calibrated.tolist() == [True, False]
    # a fifth of the peak
    assert 3.5 < found.mid_s[1] / found.mid_s[0] < 6.0


def test_chips_of_other_families_are_left_alone() -> None:
    found = price_systolic(questions(chip="h100-sxm5-80gb"), {})
    assert np.isnan(found.mid_s).all()


def test_every_group_ships() -> None:
    table = shipped_parameters().table
    for group in GROUPS:
        assert any(name.startswith(f"{group}.") and table[name].rows for name in table), group
