"""Rows of training runs that cannot be are refused in one line; all others are answered as before."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.api.suites.training import impossible
from chipwise.api.suites.training_folds import TRAINING
from chipwise.evidence.rows import read_rows

ROW = {
    "row_id": "a", "chip": "a100-sxm4-80gb", "chips_total": "8", "layers": "24", "hidden": "1920", "heads": "16",
    "ffn": "7680", "vocab": "51200", "seq_len": "2048", "global_batch": "16", "tp": "2", "pp": "2",
    "precision": "bf16", "model": "GPT 1B",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tp": "3"}, "nearest: 2 or 4"),
        ({"pp": "25", "chips_total": "64"}, "at most 24"),
        ({"tp": "16"}, "more than 8 devices"),
        ({"global_batch": "0"}, "at least 1"),
        ({"seq_len": "-1"}, "at least 1"),
        ({"hidden": "inf"}, "not a count"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, str], says: str) -> None:
    why = impossible(ROW | change)
    assert says in why
    assert "\n" not in why


@pytest.mark.parametrize("change", [{}, {"tp": ""}, {"heads": ""}, {"layers": "many"}, {"chip": "h1000"}])
def test_the_rest_is_left_to_the_reader(change: dict[str, str]) -> None:
    assert impossible(ROW | change) == ""


def test_software_may_see_several_devices_in_a_chip() -> None:
    assert impossible(ROW | {"chip": "tpu-v7x", "tp": "8"}) == ""


def test_answers_keep_the_order_of_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(ROW))
        writer.writeheader()
        writer.writerows([ROW, ROW | {"row_id": "b", "tp": "3"}, ROW | {"row_id": "c"}])
    lines = TRAINING.predict(str(file))
    assert list(dict.fromkeys(line.row_id for line in lines)) == ["a", "b", "c"]
    refused = {line.row_id: line.refused for line in lines if line.refused}
    assert list(refused) == ["b"]


@pytest.mark.parametrize("table", ["training.csv", "mlperf_training.csv"])
def test_no_measured_row_is_called_impossible(truth: Path, table: str) -> None:
    rows = read_rows(str(truth / table), ("row_id", "chip", "chips_total"))
    assert [r["row_id"] for r in rows if impossible(r)] == []
