"""Suites `serving` and `token_speeds` on the published tables, and `validate` where it has nothing to do."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.serving import predict_serving
from chipwise.api.suites.serving_folds import serving_rows
from chipwise.api.suites.speeds import METRIC, predict_speeds
from chipwise.api.suites.validating import validate
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.errors import ChipwiseError
from chipwise.evidence.validate import Judged, Summary, Validation, summarise
from chipwise.report.accuracy_view import write_section


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["row_id"]: row for row in csv.DictReader(file)}


def test_scored_serving_rows_are_answered_and_near(truth: Path) -> None:
    path = truth / "serving_points.csv"
    rows = table(path)
    scored = {i for i, r in rows.items() if r["score"] == "1"}
    found = [p for p in predict_serving(str(path)) if p.row_id in scored]
    assert len(found) == 2 * len(scored)
    assert sum(p.mid is not None for p in found) >= 0.97 * len(found)
    # in sample: a regression test, not a figure of accuracy
    for metric, most in (("tpot_ms", 0.09), ("ttft_ms", 0.28)):
        errors = [
            abs(p.mid / float(rows[p.row_id][metric]) - 1) for p in found if p.metric == metric and p.mid
        ]
        assert np.median(errors) < most
    assert {p.basis for p in found} == {"calibrated"}


def test_token_speeds_are_right_within_a_factor(truth: Path) -> None:
    path = truth / "token_speeds.csv"
    rows = table(path)
    found = {p.row_id: p for p in predict_speeds(str(path))}
    main = [i for i, r in rows.items() if r["use"] == "main"]
    assert all(found[i].mid for i in main)
    off = [abs(np.log2(found[i].mid / float(rows[i][METRIC]))) for i in main]  # type: ignore[operator]
    assert 2 ** np.median(off) < 1.6


def test_rows_for_a_fit_need_measured_columns(truth: Path, tmp_path: Path) -> None:
    bare = tmp_path / "rows.csv"
    bare.write_text("row_id,chip,backend,isl,osl,concurrency\nx,h100-sxm5-80gb,vllm,1,1,1\n")
    with pytest.raises(ChipwiseError, match="measured"):
        serving_rows(str(bare), shipped_parameters())


@pytest.mark.parametrize(
    ("suite", "rows", "key", "words"),
    [
        ("servin", "x.csv", None, "serving"),
        ("serving", None, None, "no rows"),
        ("serving", "missing.csv", None, "no such file"),
        ("serving", "missing.csv", "phase of the moon", "not split by"),
    ],
)
def test_what_cannot_be_validated(
    suite: str, rows: str | None, key: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHIPWISE_TRUTH", raising=False)
    with pytest.raises(ChipwiseError) as caught:
        validate(suite, rows, key)
    assert words in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def found(suite: str, remark: str) -> Validation:
    rows: list[Summary] = summarise([Judged("a", "m", 1.1, 1.0, 1.2, 1.0)])
    return Validation(suite, "How.", {"all": rows}, [remark])


def test_a_section_is_replaced_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.md"
    write_section(found("one", "first"), str(path))
    write_section(found("two", "other"), str(path))
    write_section(found("one", "second"), str(path))
    text = path.read_text("utf-8")
    assert "second" in text
    assert "first" not in text
    assert "other" in text
    assert text.count("<!-- one: begin -->") == text.count("<!-- two: end -->") == 1
    assert "| all | m | 1 | 100.0 % | 10.0 % | 10.0 % | +10.0 % | 100.0 % |" in text
