"""`predict kernels`: every row answered or refused with a reason, measured columns never read."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from chipwise import api
from chipwise.errors import UsageError

COLUMNS = ("row_id", "chip", "op", "framework", "dtype", "timing", "m", "n", "k", "bytes", "ranks", "kernel")
ROWS = [
    ("1", "h100-sxm5-80gb", "gemm", "vllm", "bfloat16", "cuda-graph replay", 4096, 8192, 8192, "", "", ""),
    ("2", "groq-lpu1", "gemm", "", "bfloat16", "", 4096, 8192, 8192, "", "", ""),
    ("3", "", "gemm", "vllm", "bfloat16", "", 1, 1, 1, "", "", ""),
    ("4", "h100-sxm5-80gb", "fft", "vllm", "bfloat16", "", 1, 1, 1, "", "", ""),
    ("5", "h100-sxm5-80gb", "allreduce", "nccl", "bfloat16", "", "", "", "", 2**26, 8, "NCCL"),
    ("6", "rubin-sxm", "gemm", "vllm", "bfloat16", "cuda-graph replay", 4096, 8192, 8192, "", "", ""),
    ("7", "h100-sxm5-80gb", "gemm", "vllm", "float7", "", 4096, 8192, 8192, "", "", ""),
]


def predicted(tmp_path: Path, rows: list[tuple[object, ...]], columns: tuple[str, ...]) -> list[dict[str, str]]:
    source, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    api.predict_suite("kernels", str(source), str(out))
    with out.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_row_has_one_answer_or_a_reason(tmp_path: Path) -> None:
    found = {r["row_id"]: r for r in predicted(tmp_path, ROWS, COLUMNS)}
    assert list(found) == [str(r[0]) for r in ROWS]
    assert {r["metric"] for r in found.values()} == {"latency_us"}
    for i in "1256":
        low, mid, high = (float(found[i][c]) for c in ("low", "predicted", "high"))
        assert 0 < low < mid < high
    assert [i for i in found if found[i]["refused"]] == ["3", "4", "7"]
    assert "catalogue" in found["3"]["refused"]
    assert "fft" in found["4"]["refused"]
    assert "float7" in found["7"]["refused"]
    assert [found[i]["basis"] for i in "156"] == ["calibrated", "calibrated", "modelled"]


def test_a_chip_that_was_never_measured_has_a_wider_interval(tmp_path: Path) -> None:
    found = {r["row_id"]: r for r in predicted(tmp_path, ROWS, COLUMNS)}

    def width(i: str) -> float:
        return math.log(float(found[i]["high"]) / float(found[i]["low"]))

    assert width("1") < 0.6 * width("6")


def test_measured_columns_are_not_read(tmp_path: Path) -> None:
    plain = predicted(tmp_path, ROWS, COLUMNS)
    spoiled = [(*r, 1e9) for r in ROWS]
    assert predicted(tmp_path, spoiled, (*COLUMNS, "latency_us")) == plain


def test_parquet_and_csv_agree(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the parquet extra")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the parquet extra")
    plain = predicted(tmp_path, ROWS, COLUMNS)
    table = {c: [None if r[i] == "" else r[i] for r in ROWS] for i, c in enumerate(COLUMNS)}
    table["row_id"] = [int(r[0]) for r in ROWS]  # type: ignore[call-overload]
    parquet.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    api.predict_suite("kernels", str(tmp_path / "rows.parquet"), str(tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == plain


def test_a_table_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no column chip"):
        predicted(tmp_path, [("1", "gemm")], ("row_id", "op"))


def test_text_in_a_number_refuses_its_row(tmp_path: Path) -> None:
    rows = [("1", "h100-sxm5-80gb", "gemm", m, 64, 64) for m in ("many", 64)]
    bad, good = predicted(tmp_path, rows, ("row_id", "chip", "op", "m", "n", "k"))
    assert bad["refused"] == "m 'many' is no number"
    (alone,) = predicted(tmp_path, rows[1:], ("row_id", "chip", "op", "m", "n", "k"))
    assert good == alone


def test_the_whole_truth_table_is_answered(truth: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the parquet extra")
    from chipwise.calibrate.kernel_table import NUMBERS, TEXT
    from chipwise.evidence.columns import read_columns

    path = str(truth / "kernels.parquet")
    columns = read_columns(path, ("row_id", *TEXT), (*NUMBERS, "latency_us", "chip_known"))
    answers = api.SUITES["kernels"].predict(path)
    mid = np.array([np.nan if a.mid is None else a.mid for a in answers])
    counts = columns["chip_known"] == 1
    assert np.isfinite(mid[counts]).all()
    error = np.abs(mid / columns["latency_us"] - 1)
    # in sample; errors on unseen shapes are in the accuracy page
    for op, median in {"gemm": 0.10, "attention_decode": 0.13, "moe": 0.16, "allreduce": 0.12}.items():
        assert np.median(error[counts & (columns["op"] == op)]) < median, op
