"""`calibrate kernels`: one's own measurements move what they are about, and nothing else."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chipwise import api
from chipwise.api.suites.kernels import calibrate_kernels_file
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of
from chipwise.calibrate.kernels import price_kernels
from chipwise.calibrate.parameters import load_parameters, shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.errors import UsageError

GIVEN = ["row_id", "chip", "op", "framework", "dtype", "timing", "m", "n", "k"]
SLOWER = 1.3


def table(chip: str, shapes: int) -> dict[str, NDArray[Any]]:
    """Large GEMMs on one chip."""
    rng = np.random.default_rng(shapes)
    columns: dict[str, NDArray[Any]] = {name: np.full(shapes, "") for name in TEXT}
    columns |= {name: np.full(shapes, np.nan) for name in NUMBERS}
    columns |= {name: 2.0 ** rng.integers(10, 14, shapes) for name in "mnk"}
    fixed = {"chip": chip, "op": "gemm", "framework": "vllm", "dtype": "bfloat16"}
    columns |= {name: np.full(shapes, value) for name, value in fixed.items()}
    columns["timing"] = np.full(shapes, "cuda-graph replay")
    columns["row_id"] = np.arange(shapes).astype(str)
    return columns


def shipped_us(columns: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    return 1e6 * price_kernels(asked_of(columns), load_chips(), shipped_parameters().kernels).mid_s


def write(path: Path, columns: dict[str, NDArray[Any]], latency_us: NDArray[np.float64]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*GIVEN, "latency_us"])
        writer.writerows(zip(*(columns[n] for n in GIVEN), latency_us, strict=True))
    return str(path)


def test_a_slow_chip_is_learnt_from_fifteen_shapes(tmp_path: Path) -> None:
    mine = table("a100-sxm4-80gb", 15)
    rows = write(tmp_path / "mine.csv", mine, SLOWER * shipped_us(mine))
    found = calibrate_kernels_file(rows, str(tmp_path / "fitted.csv"))
    assert found.rows == 15
    assert found.before == pytest.approx(1 - 1 / SLOWER, abs=0.01)
    assert found.after < 0.05
    numbers = load_parameters(str(tmp_path / "fitted.csv"))
    unseen = table("a100-sxm4-80gb", 40)
    ratio = 1e6 * price_kernels(asked_of(unseen), load_chips(), numbers.kernels).mid_s / shipped_us(unseen)
    assert np.median(ratio) == pytest.approx(SLOWER, rel=0.05)
    other = table("b200-sxm", 40)
    ratio = 1e6 * price_kernels(asked_of(other), load_chips(), numbers.kernels).mid_s / shipped_us(other)
    assert np.median(ratio) == pytest.approx(1, abs=0.1), "another chip hardly moves"


def test_parameters_reach_predictions(tmp_path: Path) -> None:
    mine = table("a100-sxm4-80gb", 15)
    rows = write(tmp_path / "mine.csv", mine, SLOWER * shipped_us(mine))
    calibrate_kernels_file(rows, str(tmp_path / "fitted.csv"))
    numbers = load_parameters(str(tmp_path / "fitted.csv"))
    api.predict_suite("kernels", rows, str(tmp_path / "plain.csv"))
    api.predict_suite("kernels", rows, str(tmp_path / "own.csv"), parameters=numbers)
    plain, own = (
        np.array([float(line.split(",")[2]) for line in (tmp_path / name).read_text().splitlines()[1:]])
        for name in ("plain.csv", "own.csv")
    )
    assert np.median(own / plain) > 1.2


def test_everything_else_is_as_shipped(tmp_path: Path) -> None:
    mine = table("a100-sxm4-80gb", 15)
    calibrate_kernels_file(write(tmp_path / "mine.csv", mine, shipped_us(mine)), str(tmp_path / "fitted.csv"))
    numbers, shipped = load_parameters(str(tmp_path / "fitted.csv")), shipped_parameters()
    changed = {name.split(".")[1] for name, p in numbers.table.items() if p != shipped.table.get(name)}
    assert changed == {"gemm"}
    assert shipped.table.keys() <= numbers.table.keys()


def test_rows_without_a_formula_are_refused(tmp_path: Path) -> None:
    mine = table("tpu-v5e", 3)
    rows = write(tmp_path / "mine.csv", mine, np.full(3, 10.0))
    with pytest.raises(UsageError, match="no row"):
        calibrate_kernels_file(rows, str(tmp_path / "fitted.csv"))
    with pytest.raises(UsageError, match=r"would replace .*mine\.csv, which is read"):
        calibrate_kernels_file(rows, rows)
    with pytest.raises(UsageError, match="not a table of parameters"):
        load_parameters(rows)
