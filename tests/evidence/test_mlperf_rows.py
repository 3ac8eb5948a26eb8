from __future__ import annotations

import math
from dataclasses import replace

import pytest

from chipwise.api.requests.command import command_line
from chipwise.api.suites.mlperf import MlperfAnswer, answer, measured_log, sample_question
from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.published import find_result, load_inference_results
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.mlperf_rows import MlperfRun, precision_of, read_run, run_of
from evidence.mlperf import ROW

RESNET = {**ROW, "model": "resnet", "model_base": "resnet", "unit": "Samples/s", "weight_precision": "int8"}


def figures(run: MlperfRun) -> dict[str, tuple[float, float, float]]:
    (found,) = answer([run])
    assert isinstance(found, MlperfAnswer), found
    return found.figures()


def test_a_row_and_its_published_result_are_the_same_run() -> None:
    r = load_inference_results()["v5.1-05440"]
    run = run_of(r)
    assert (run.chip.id, run.chips, run.scenario, run.precision, run.age) == ("h200-sxm-141gb", 8, "Server", "fp8", 3.0)
    assert run.cell == ("h200-sxm-141gb", "llama2-70b")


def test_measured_columns_are_not_read() -> None:
    measured = {"result": "1", "tokens_per_s": "1", "ttft_p99_ms": "1", "tpot_p99_ms": "1"}
    assert figures(read_run({**ROW, **measured})) == figures(read_run(ROW))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"chip": ""}, UsageError),
        ({"chip": "h999"}, UnknownNameError),
        ({"model_base": "llama9"}, UnknownNameError),
        ({"scenario": "Someday"}, UsageError),
        ({"round": "v9.9"}, UsageError),
        ({"chips_total": "many"}, UsageError),
        ({"chips_total": "0"}, UsageError),
        ({"power_limit_w": "x"}, UsageError),
    ],
)
def test_bad_rows_are_one_clear_error(change: dict[str, str], kind: type[ChipwiseError]) -> None:
    with pytest.raises(kind):
        read_run({**ROW, **change})


def test_precision_that_was_mislabelled() -> None:
    run = read_run(ROW)
    assert precision_of(run.benchmark, run.chip, "fp16") == ("fp8", "declared fp16: taken to have run in fp8")
    assert precision_of(run.benchmark, run.chip, "fp8") == ("fp8", "")
    b200 = read_run({**ROW, "chip": "b200-sxm"})
    assert precision_of(b200.benchmark, b200.chip, "fp4")[0] == "nvfp4"
    mi = read_run({**ROW, "chip": "mi355x"})
    assert precision_of(mi.benchmark, mi.chip, "fp4")[0] == "mxfp4"


def test_bert_at_its_high_accuracy_is_not_in_int8() -> None:
    row = {**ROW, "model": "bert-99.9", "model_base": "bert", "unit": "Samples/s", "weight_precision": ""}
    found = {chip: read_run({**row, "chip": chip}).precision for chip in ("l40s", "h200-sxm-141gb")}
    assert found == {"l40s": "fp16", "h200-sxm-141gb": "fp8"}
    assert read_run({**row, "chip": "l40s", "model": "bert-99"}).precision == "int8"


def test_units_follow_the_row() -> None:
    tokens = figures(read_run(ROW))["result"]
    queries = figures(read_run({**ROW, "unit": "Queries/s"}))
    assert queries["tokens_per_s"] == pytest.approx(tokens)
    assert queries["result"][0] == pytest.approx(tokens[0] / 294.45)
    for name in ("v3.0-00144", "v5.1-05440"):
        r = find_result(name)
        run = run_of(r)  # type: ignore[arg-type]
        assert math.isfinite(measured_log(run, r.result))  # type: ignore[union-attr, arg-type]


def test_a_latency_turns_over_with_its_interval() -> None:
    rows = (r for r in load_inference_results().values() if r.benchmark == "resnet" and r.chip and "ms" in r.unit)
    mid, low, high = figures(run_of(next(rows)))["result"]
    assert low < mid < high


def row_of(benchmark: str, **changed: str) -> MlperfRun:
    row = {**ROW, "model": benchmark, "model_base": benchmark, "unit": "Samples/s", "scenario": "Offline"}
    return read_run({**row, "weight_precision": "", **changed})


def test_every_network_of_samples_is_answered_by_the_plan_that_its_command_asks_for() -> None:
    for benchmark in load_benchmarks().values():
        if not benchmark.network or benchmark.name == "wan-2.2-t2v-a14b":
            continue
        run = row_of(benchmark.name)
        (found,) = answer([run])
        assert isinstance(found, MlperfAnswer), (benchmark.name, found)
        assert found.question is not None
        asked = found.question.run().plans[0]
        # what is owned costs nothing and has a rank; the row is priced as if it were rented
        rented = replace(found.plan, price=None, usd_per_1000=None, rank=asked.rank)  # type: ignore[type-var]
        assert asked == rented, command_line("plan", found.question)
        rate = asked.tokens_per_s if run.unit == "Tokens/s" else asked.samples_per_s  # type: ignore[union-attr]
        assert found.figures()["result"][0] == pytest.approx(rate.mid, rel=1e-9)


def test_scenarios_ask_for_throughput_within_a_limit_or_one_at_a_time() -> None:
    offline, served, lone, eight = (
        sample_question(row_of("resnet", scenario=s, unit=u))
        for s, u in (
            ("Offline", "Samples/s"), ("Server", "Queries/s"), ("SingleStream", "Latency (ms)"),
            ("MultiStream", "Latency (ms)"),
        )
    )  # fmt: skip
    assert (offline.task, offline.batch, offline.e2e) == ("batch", None, None)
    assert (served.task, served.e2e, served.percentile) == ("serve", "0.015s", "p99")
    assert (lone.task, lone.batch, eight.batch) == ("local", 1, 8)
    assert {q.level for q in (offline, served, lone, eight)} == {"tuned"}


def test_what_was_not_tuned_is_asked_as_stock_software_one_sample_after_the_other() -> None:
    asked = sample_question(row_of("resnet", framework="onnxruntime 1.15"))
    assert (asked.level, asked.batch, asked.runtime) == ("stock", 1, "onnxruntime")


def test_a_benchmark_without_a_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="no published limit"):
        sample_question(row_of("yolo", scenario="Server", unit="Queries/s"))
