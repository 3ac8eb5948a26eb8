"""Folds of a kernel table: what stays together, and predictions by fits that never saw a row."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chipwise.api.suites.kernels import FEW, KERNELS, MeasuredKernel, few_of
from chipwise.api.suites.validating import validate
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, Columns, asked_of
from chipwise.calibrate.kernels import price_kernels
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.errors import UnknownNameError
from chipwise.evidence.residuals import Residuals

CHIPS = ("h100-sxm5-80gb", "b200-sxm", "a100-sxm4-80gb")


def table(shapes: int = 60, noise: float = 0.05) -> dict[str, NDArray[Any]]:
    """GEMMs of three chips, timed as the shipped formulas say, half as fast again, with noise."""
    rng = np.random.default_rng(0)
    dims = 2.0 ** rng.integers(4, 13, (shapes, 3))
    size = shapes * len(CHIPS)
    columns: dict[str, NDArray[Any]] = {name: np.full(size, "") for name in TEXT}
    columns |= {name: np.full(size, np.nan) for name in NUMBERS}
    columns["chip"] = np.repeat(CHIPS, shapes)
    for i, name in enumerate("mnk"):
        columns[name] = np.tile(dims[:, i], len(CHIPS))
    for name, value in (
        ("op", "gemm"), ("framework", "vllm"), ("dtype", "bfloat16"), ("timing", "cuda-graph replay")
    ):  # fmt: skip
        columns[name] = np.full(size, value)
    true = price_kernels(asked_of(columns), load_chips(), shipped_parameters().kernels).mid_s
    return {**columns, "latency_us": 1.5e6 * true * np.exp(noise * rng.standard_normal(size))}


def keys(columns: Columns, name: str) -> list[Hashable]:
    assert KERNELS.trial is not None
    return list(KERNELS.trial.keys[name](MeasuredKernel.of(columns, shipped_parameters())))


def unseen(columns: Columns, key: str) -> Residuals:
    """Every row as fits price it that never saw its key."""
    assert KERNELS.trial is not None
    numbers = shipped_parameters()
    return KERNELS.trial.unseen(MeasuredKernel.of(columns, numbers), numbers, key)


def test_rows_of_one_shape_share_a_fold() -> None:
    columns = table()
    fold = np.array(keys(columns, "shape"))
    shapes = np.stack([columns[n] for n in "mnk"], 1)
    for shape in np.unique(shapes, axis=0):
        assert len(set(fold[(shapes == shape).all(1)].tolist())) == 1
    assert set(fold.tolist()) == set(range(5))
    assert fold.tolist() == keys(columns, "shape"), "the same every time"


def test_a_chip_is_a_fold() -> None:
    assert set(keys(table(), "chip")) == set(CHIPS)


@pytest.mark.parametrize("key", ["shape", "chip"])
def test_what_was_left_out_is_predicted_from_the_rest(key: str) -> None:
    found = unseen(table(), key)
    assert np.median(np.abs(found.error)) < (0.12 if key == "shape" else 0.35)
    assert np.all(found.low < found.predicted)


def test_chips_of_other_families_are_no_chips_left_out() -> None:
    columns = table(20)
    columns["chip"] = np.where(np.arange(60) < 5, "tpu-v6e", columns["chip"].astype("U20"))
    assert unseen(columns, "chip").place.tolist() == list(range(5, 60))


def test_a_measurement_never_prices_its_own_row() -> None:
    columns = table()
    spoiled = {k: v.copy() for k, v in columns.items()}
    fold = np.array(keys(columns, "shape"))
    spoiled["latency_us"][fold == 0] *= 100
    plain, other = (unseen(c, "shape") for c in (columns, spoiled))
    assert np.array_equal(plain.predicted[fold == 0], other.predicted[fold == 0])


def test_validate_knows_the_suite(tmp_path: Path) -> None:
    columns = table()
    names = ["chip", "op", "framework", "dtype", "timing", "m", "n", "k", "latency_us"]
    lines = [",".join(["row_id", *names])]
    lines += [",".join([str(i), *(str(columns[n][i]) for n in names)]) for i in range(len(columns["op"]))]
    (tmp_path / "kernels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = validate("kernels", str(tmp_path / "kernels.csv"))
    (overall,) = found.tables["all"]
    assert overall.rows == len(columns["op"])
    assert overall.answered == 1
    assert overall.median < 0.12
    assert {s.name for s in found.tables["by chip"]} == set(CHIPS)
    (naive,) = found.tables["naive roofline, by operator"]
    assert naive.median > overall.median
    with pytest.raises(UnknownNameError, match="key"):
        validate("kernels", str(tmp_path / "kernels.csv"), "colour")


def test_few_shapes_of_a_new_chip_correct_the_rest() -> None:
    columns = table()
    slow = columns["chip"] == CHIPS[2]
    columns["latency_us"] = np.where(slow, 2.0, 1.0) * columns["latency_us"]
    shown = few_of(columns)
    for chip in CHIPS:
        assert shown[columns["chip"] == chip].sum() == FEW
    blind, seen = (unseen(columns, key) for key in ("chip", "few"))
    assert np.array_equal(seen.place, np.flatnonzero(~shown)), "what corrected the numbers is not predicted"
    before, after = (np.median(np.abs(x.error[(slow & ~shown)[x.place]])) for x in (blind, seen))
    assert after < 0.5 * before
