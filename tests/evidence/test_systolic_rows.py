"""The systolic suite: six counters of a row, equal to the published ones."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.systolic_rows import METRICS, systolic_row
from command_line import Run

ROW = {"dataflow": "ws", "array_rows": "128", "array_cols": "128", "M": "676", "N": "64", "K": "576"}
# 28 x 28 with 3 x 3 filters, stride 1: 26 x 26 pixels
LAYER = {
    "ifmap_h": "28",
    "ifmap_w": "28",
    "filter_h": "3",
    "filter_w": "3",
    "channels": "64",
    "num_filters": "64",
    "stride_h": "1",
    "stride_w": "1",
}


def test_a_published_row() -> None:
    # own run of SCALE-Sim v3
    assert systolic_row(ROW) == {
        "cycles": 5290.0,
        "utilization_pct": 28.7578,
        "mapping_efficiency_pct": 45.0,
        "sram_ifmap_reads": 389376.0,
        "sram_filter_reads": 36864.0,
        "sram_ofmap_writes": 216320.0,
    }


def test_a_layer_without_its_product() -> None:
    bare = {name: value for name, value in ROW.items() if name not in "MNK"}
    assert systolic_row(bare | LAYER) == systolic_row(ROW)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"M": "0"}, "M = 0 is out"),
        ({"N": "-3"}, "N = -3 is out"),
        ({"K": "2.5"}, "K = 2.5 has decimals"),
        ({"K": "nan"}, "K = nan is out"),
        ({"M": "1e99"}, "is out of range"),
        ({"M": "many"}, "'many'"),
        ({"array_rows": ""}, "array_rows cannot be read"),
        ({"M": ""}, "neither M, N, K"),
    ],
)
def test_sizes_that_are_none(change: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        systolic_row(ROW | change)


def test_an_unknown_dataflow() -> None:
    with pytest.raises(UnknownNameError, match="unknown dataflow 'rs'"):
        systolic_row(ROW | {"dataflow": "rs"})


def test_every_open_row_through_the_command(run: Run, truth: Path, tmp_path: Path) -> None:
    rows, out = truth / "systolic.csv", tmp_path / "out.csv"
    assert run("predict", "systolic", "--rows", str(rows), "--out", str(out)).code == 0
    with rows.open(newline="") as file:
        measured = {row["row_id"]: row for row in csv.DictReader(file)}
    with out.open(newline="") as file:
        answers = list(csv.DictReader(file))
    assert len(answers) == len(METRICS) * len(measured)
    for answer in answers:
        truth_value = float(measured[answer["row_id"]][answer["metric"]])
        assert abs(float(answer["predicted"]) - truth_value) <= 1e-9, answer
