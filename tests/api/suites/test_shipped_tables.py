"""The tables that come with the package: a reader repeats figures of the accuracy page on them, without any other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.validating import validate
from chipwise.evidence.residuals import Summary
from chipwise.evidence.rows import RowPart, shipped_table
from chipwise.report.accuracy import REPEATED


@pytest.fixture(autouse=True)
def no_other_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHIPWISE_TRUTH", raising=False)


def summaries(suite: str) -> dict[str, Summary]:
    return {s.metric: s for s in validate(suite).tables["all"]}


def test_simulated_arrays_are_counted_to_the_last_digit() -> None:
    found = summaries("systolic")
    assert set(found) >= {"cycles", "sram_ifmap_reads"}
    assert all(s.rows > 300 and s.coverage == 1.0 for s in found.values())


def test_parameters_and_caches_lie_within_what_their_rows_allow() -> None:
    counts, caches = summaries("model_params"), summaries("kv_cache")
    assert counts["checkpoint_params"].rows > 25
    for s in (*counts.values(), *caches.values()):
        assert s.answered == 1.0
        # totals of some vendors are rounded, and no row says how far
        assert s.coverage == 1.0 or (s.metric == "published_total_b" and s.p90 < 0.05), s.metric


def test_submissions_of_language_models_are_answered_as_well_as_the_page_says() -> None:
    table = shipped_table("mlperf_inference.csv")
    assert table is not None
    rows = [r for r in table.rows if r["model_base"].startswith("llama") and r["scenario"] == "Offline"][::9]
    measured = {r["row_id"]: float(r["result"]) for r in rows}
    lines = SUITES["mlperf"].predict(RowPart.of(table, rows))
    off = [abs(math.log(p.mid / measured[p.row_id])) for p in lines if p.mid and p.row_id in measured]
    assert len(off) > 20
    assert np.median(off) < 0.25


def test_tables_that_may_not_be_passed_on_are_not_there() -> None:
    for file in ("published_serving.csv", "serving_points.csv", "token_speeds.csv", "training.csv"):
        assert shipped_table(file) is None, file


def test_the_page_names_only_suites_whose_tables_ship() -> None:
    for suite in REPEATED:
        trial = SUITES[suite].trial
        assert trial is not None
        assert shipped_table(trial.file) is not None, suite
