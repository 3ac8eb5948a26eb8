from __future__ import annotations

import csv
import gzip
import io
from importlib.resources import files
from pathlib import Path

import pytest

from chipwise.catalog.benchmarks import get_benchmark, load_benchmarks
from chipwise.catalog.chips import load_chips
from chipwise.catalog.published import (
    INFERENCE_COLUMNS,
    ROUNDS,
    best_results,
    find_result,
    load_inference_results,
    load_training_results,
    select,
    software_age,
)
from chipwise.catalog.published_pack import pack
from chipwise.errors import UnknownNameError

FOLDER = files("chipwise.catalog") / "data" / "published"


def test_every_result_is_there_and_whole() -> None:
    results = load_inference_results()
    assert len(results) == 4446
    assert len(load_training_results()) == 210
    for r in results.values():
        assert r.result > 0
        assert r.chips >= 1 or not r.chip
        assert r.round in ROUNDS
        assert r.source
        assert r.chip == "" or r.chip in load_chips()
        assert r.benchmark in load_benchmarks()


def test_the_tables_are_small_and_carry_their_notice() -> None:
    sizes = {f.name: len(f.read_bytes()) for f in FOLDER.iterdir()}
    assert sum(sizes.values()) < 300_000
    notice = (FOLDER / "NOTICE.txt").read_text("utf-8")
    for words in ("Apache License", "MLPerf is a trademark of MLCommons", "not verified by MLCommons"):
        assert words in notice


def test_packing_the_same_rows_gives_the_same_file() -> None:
    rows = [{"a": "1", "b": "x, y"}, {"a": "2", "b": ""}]
    once = pack(rows, ("b", "a"))
    assert once == pack(rows, ("b", "a"))
    assert gzip.decompress(once).decode() == 'b,a\n"x, y",1\n,2\n'


def test_the_table_is_that_of_the_published_rows(truth: Path) -> None:
    packed = gzip.decompress((FOLDER / "mlperf_inference.csv.gz").read_bytes()).decode()
    with (truth / "mlperf_inference.csv").open(newline="", encoding="utf-8") as source:
        published = list(csv.DictReader(source))
    shipped = list(csv.DictReader(io.StringIO(packed)))
    assert [tuple(r[c] for c in INFERENCE_COLUMNS) for r in published] == [
        tuple(r[c] for c in INFERENCE_COLUMNS) for r in shipped
    ]


def test_a_result_keeps_its_figures_in_si_units() -> None:
    r = find_result("v5.1-05440")
    assert (r.chip, r.chips, r.scenario) == ("h200-sxm-141gb", 8, "Server")  # type: ignore[union-attr]
    assert r.result == 34193.8  # type: ignore[union-attr]
    assert r.ttft_p99_s == pytest.approx(1.71511)  # type: ignore[union-attr]
    assert r.per_chip == pytest.approx(34193.8 / 8)  # type: ignore[union-attr]
    assert find_result("mt000").time_to_train_s == pytest.approx(64.2638 * 60)  # type: ignore[union-attr]


def test_an_unknown_result_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean v5\.1-05440"):
        find_result("v5.1-0544")


def test_filters_and_best() -> None:
    found = select(load_inference_results().values(), benchmark="llama2-70b", chip="h200-sxm-141gb", scenario="server")
    assert found
    assert {(r.benchmark, r.chip, r.scenario) for r in found} == {("llama2-70b", "h200-sxm-141gb", "Server")}
    best = best_results(found)
    for b in best:
        rivals = [r for r in found if (r.chips, r.nodes, r.model, r.round) == (b.chips, b.nodes, b.model, b.round)]
        assert b.result == max(r.result for r in rivals if r.unit == b.unit)
    latency = best_results(r for r in load_inference_results().values() if r.unit.startswith("Latency"))
    assert all(r.unit.startswith("Latency") for r in latency)


def test_software_age_counts_rounds_from_v4_0() -> None:
    assert [software_age(r) for r in ("v3.0", "v4.0", "v6.1")] == [-2.0, 0.0, 5.0]
    assert [software_age(d) for d in ("2024-03", "2024-09", "20250901")] == [0.0, 1.0, 3.0]
    for wrong in ("v9", "2024-13", ""):
        with pytest.raises(UnknownNameError):
            software_age(wrong)


def test_benchmarks_have_either_a_model_or_a_network_or_a_reason() -> None:
    for b in load_benchmarks().values():
        assert bool(b.model) + bool(b.network) + bool(b.refused) == 1, b.name
        if b.model:
            assert b.input_tokens > 0
            assert b.output_tokens > 0
            assert b.input_note
    assert get_benchmark("LLAMA2-70B").limits["Interactive"].tpot_s == 0.04


def test_one_constant_only_where_lengths_are_unpublished() -> None:
    allowed = {
        *("llama2-70b", "llama3.1-405b", "llama3.1-8b", "llama3.1-8b-edge", "mixtral-8x7b", "gptj", "deepseek-r1"),
        *("gpt-oss-120b", "qwen3-vl-235b-a22b", "whisper", "qwen3.6-27b", "e2e-rag-qna", "e2e-rag-db"),
    }
    assert {b.name for b in load_benchmarks().values() if b.constant} == allowed
