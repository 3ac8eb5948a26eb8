from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api.suites.mlperf_folds import MLPERF
from chipwise.catalog.published import load_inference_results
from chipwise.errors import UsageError
from chipwise.evidence.anchors import Anchor, correction
from chipwise.evidence.mlperf_rows import MlperfRun, run_of
from evidence.mlperf import ROW

RUN = run_of(load_inference_results()["v5.1-05440"])  # 8x H200, llama2-70b, Server


def near(**changes: object) -> MlperfRun:
    return replace(RUN, id="other", **changes)  # type: ignore[arg-type]


def test_an_anchor_of_the_cell_moves_a_run_and_others_do_not() -> None:
    same = Anchor(near(chips=4), 0.2)
    shift, used = correction(RUN, [same])
    assert used == 1
    assert 0.1 < shift < 0.2
    assert correction(RUN, [replace(same, run=replace(same.run, id=RUN.id))]) == (0.0, 0)
    other_chip = near(chip=run_of(load_inference_results()["v5.1-05492"]).chip)
    assert correction(RUN, [Anchor(other_chip, 0.2)]) == (0.0, 0)
    assert correction(RUN, [Anchor(near(scenario="Interactive"), 0.2)]) == (0.0, 0)


def test_the_same_scenario_comes_before_another() -> None:
    offline, server = Anchor(near(scenario="Offline"), 0.5), Anchor(near(chips=4), 0.1)
    assert correction(RUN, [offline, server]) == correction(RUN, [server])
    assert 0.0 < correction(RUN, [offline])[0] < 0.5


def table(path: Path, rows: list[dict[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def test_anchors_of_the_user_move_the_suite(tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.csv", [{**ROW, "result": ""}])
    plain = {p.metric: p for p in MLPERF.predict(rows)}["result"]
    assert plain.mid is not None
    twice = {**ROW, "row_id": "mine", "chips_total": "4", "result": str(plain.mid)}  # twice as fast
    moved = {p.metric: p for p in MLPERF.predict(rows, None, table(tmp_path / "mine.csv", [twice]))}["result"]
    assert moved.mid is not None
    assert 1.4 < moved.mid / plain.mid < 2.0
    assert moved.basis == "measured"
    with pytest.raises(UsageError, match="no measured rows"):
        MLPERF.predict(rows, None, rows)


def test_anchors_move_networks_of_samples_too(tmp_path: Path) -> None:
    row = {
        **ROW, "model": "resnet", "model_base": "resnet", "scenario": "Offline", "unit": "Samples/s",
        "weight_precision": "int8", "result": "",
    }  # fmt: skip
    rows = table(tmp_path / "rows.csv", [row])
    (plain,) = MLPERF.predict(rows)
    assert plain.mid is not None
    mine = table(tmp_path / "mine.csv", [{**row, "row_id": "mine", "result": str(2.0 * plain.mid)}])
    (moved,) = MLPERF.predict(rows, None, mine)
    assert moved.mid is not None
    assert 1.4 < moved.mid / plain.mid < 2.0
    assert moved.low is not None
    assert moved.low < moved.mid


def test_a_row_never_anchors_itself(tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.csv", [{**ROW, "result": ""}])
    known = table(tmp_path / "known.csv", [{**ROW, "result": "1"}])
    plain, moved = (MLPERF.predict(rows, None, a) for a in (None, known))
    assert [p.mid for p in plain] == [p.mid for p in moved]
