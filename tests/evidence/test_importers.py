from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import UsageError
from chipwise.evidence.importers import ImportTerms, read_file, read_paths
from chipwise.evidence.item import from_json, to_json

# the layout of mlcommons/inference_results_v4.1 summary_results.json, figures made up
ROW_V4: dict[str, Any] = {
    "ID": "v4.0-0001",
    "Submitter": "Someone",
    "Category": "closed",
    "Suite": "datacenter",
    "Platform": "DGX-H200_x8_TRT",
    "UsedModel": "llama2-70b-99",
    "Scenario": "Server",
    "Nodes": 1,
    "Accelerator": "NVIDIA H200-SXM-141GB-CTS",
    "a#": 8.0,
    "Software": "TensorRT 9.3.0, CUDA 12.2",
    "Notes": "H200 TGP 1000W",
    "errors": 0,
    "version": "v4.0",
    "weight_data_types": "fp16",
    "Performance_Result": 100.0,
    "Performance_Units": "Queries/s",
}
# that of mlcommons/inference_results_v6.1 summary.json
ROW_V6: dict[str, Any] = {
    "Organization": "Someone",
    "Division": "closed",
    "SystemName": "8xMI355X",
    "Model": "llama3.1-8b",
    "MlperfModel": "llama3.1-8b",
    "Scenario": "Offline",
    "Result": 120000.0,
    "number_of_nodes": 1,
    "accelerator_model_name": "AMD Instinct MI355X 288GB HBM3e",
    "total_accelerators": 8,
    "framework": "vLLM",
    "notes": None,
    "errors": 0,
    "version": "v6.1",
    "Units": "Tokens/s",
    "weight_data_types": "fp8",
}
SUMMARY = """================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second : 100.0
Completed tokens per second: 29000.0
Result is : VALID
  Performance constraints satisfied : Yes

================================================
Additional Stats
================================================
Completed tokens per second                 : 29000.0
Mean First Token latency (ns)               : 960000000
99.00 percentile first token latency (ns)   : 1760000000
Mean Time per Output Token (ns)             : 126000000
99.00 percentile time to output token (ns)  : 165000000
"""
VLLM: dict[str, Any] = {
    "date": "20251102-120000",
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 100,
    "request_rate": "inf",
    "max_concurrency": 32,
    "duration": 10.0,
    "completed": 100,
    "total_input_tokens": 102400,
    "total_output_tokens": 12800,
    "request_throughput": 10.0,
    "output_throughput": 1280.0,
    "mean_ttft_ms": 120.0,
    "p99_ttft_ms": 300.0,
    "mean_tpot_ms": 20.0,
    "p99_tpot_ms": 25.0,
}
SGLANG: dict[str, Any] = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "max_concurrency": None,
    "random_input_len": 1024,
    "server_info": {"model_path": "Qwen/Qwen3-8B", "version": "0.5.4"},
    "completed": 10,
    "total_input_tokens": 10240,
    "total_output_tokens": 1280,
    "request_throughput": 4.0,
    "output_throughput": 512.0,
    "mean_e2e_latency_ms": 2000.0,
    "mean_ttft_ms": 90.0,
    "mean_tpot_ms": 9.0,
    "concurrency": 7.5,
    "accept_length": 2.5,
}
GUIDE: dict[str, Any] = {
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent"}, "backend": {"model": "m/one"}},
            "metrics": {
                "request_totals": {"successful": 9, "errored": 1},
                "requests_per_second": {"successful": {"mean": 2.0}},
                "request_concurrency": {"successful": {"mean": 16.0}},
                "prompt_token_count": {"successful": {"mean": 512.0}},
                "output_token_count": {"successful": {"mean": 128.0}},
                "output_tokens_per_second": {"successful": {"mean": 256.0}},
                "time_to_first_token_ms": {"successful": {"mean": 50.0, "percentiles": {"p99": 80.0}}},
                "inter_token_latency_ms": {"successful": {"mean": 10.0, "percentiles": {"p99": 12.0}}},
            },
        }
    ]
}
PERF: dict[str, Any] = {
    "load_summary": {"count": 10},
    "successes": {
        "count": 10,
        "latency": {
            "time_to_first_token": {"mean": 0.8, "p99": 2.2},
            "time_per_output_token": {"mean": 0.02, "p99": 0.03},
        },
        "throughput": {"output_tokens_per_sec": 640.0, "requests_per_sec": 5.0},
        "prompt_len": {"mean": 700.0},
        "output_len": {"mean": 128.0},
    },
    "failures": {"count": 0},
}


def write(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return file


def only(folder: Path, content: Any, name: str = "x.json") -> Any:
    read = read_file(write(folder, name, content))
    assert not read.skipped
    assert len(read.items) == 1
    return read.items[0]


def test_queries_of_v4_0_become_tokens_and_it_is_said(tmp_path: Path) -> None:
    item = only(tmp_path, [ROW_V4])
    assert (item.chip, item.chips, item.result, item.unit) == ("h200-sxm-141gb", 8, 100.0, "Queries/s")
    assert item.tokens_per_s == pytest.approx(29445.0)
    assert any("294.45" in note for note in item.notes)


def test_a_1000_w_part_is_a_power_bin_and_fp16_is_doubted(tmp_path: Path) -> None:
    item = only(tmp_path, [ROW_V4])
    assert item.power_limit_w == 1000.0
    assert any("custom thermal" in note for note in item.notes)
    assert item.precision == "fp8"
    assert any("declared fp16" in note for note in item.notes)


def test_whisper_in_samples_is_tokens(tmp_path: Path) -> None:
    row = {**ROW_V6, "Model": "whisper", "MlperfModel": "whisper", "Units": "Samples/s", "weight_data_types": "fp16"}
    item = only(tmp_path, {"0": row})
    assert (item.unit, item.tokens_per_s) == ("Tokens/s", 120000.0)
    assert any("corrected" in note for note in item.notes)


def test_the_layout_of_v6_1_is_read(tmp_path: Path) -> None:
    item = only(tmp_path, {"0": ROW_V6})
    assert (item.chip, item.chips, item.benchmark, item.date) == ("mi355x", 8, "llama3.1-8b", "2026-09")
    assert item.tokens_per_s == 120000.0


def test_rows_that_cannot_be_used_are_named_and_the_others_kept(tmp_path: Path) -> None:
    bad = [{**ROW_V4, "Performance_Result": value} for value in (-1, None, "many", float("nan"), True, 1e400)]
    foreign = {**ROW_V4, "Category": "open"}
    read = read_file(write(tmp_path, "x.json", [ROW_V4, *bad, foreign, {**ROW_V4, "errors": 2}]))
    assert len(read.items) == 1
    assert len(read.skipped) == 8
    assert "open division" in " ".join(read.skipped)


def test_a_valid_summary_of_loadgen(tmp_path: Path) -> None:
    item = only(tmp_path, SUMMARY, "mlperf_log_summary.txt")
    assert (item.tokens_per_s, item.requests_per_s, item.output_tokens) == (29000.0, 100.0, 290.0)
    assert (item.ttft_p99_s, item.tpot_mean_s, item.tpot_p99_s) == (1.76, 0.126, 0.165)


def test_an_invalid_or_accuracy_run_is_left_out(tmp_path: Path) -> None:
    for old, new in (("Result is : VALID", "Result is : INVALID"), ("PerformanceOnly", "AccuracyOnly")):
        read = read_file(write(tmp_path, "x.txt", SUMMARY.replace(old, new)))
        assert not read.items
        assert len(read.skipped) == 1


def test_vllm_and_sglang(tmp_path: Path) -> None:
    a = only(tmp_path, VLLM)
    assert (a.model, a.concurrency, a.input_tokens, a.output_tokens) == (VLLM["model_id"], 32.0, 1024.0, 128.0)
    assert (a.format, a.tokens_per_s, a.ttft_mean_s, a.tpot_p99_s) == ("vllm bench serve", 1280.0, 0.12, 0.025)
    b = only(tmp_path, SGLANG)
    assert (b.format, b.model, b.concurrency, b.runtime) == (
        "sglang bench_serving",
        "Qwen/Qwen3-8B",
        7.5,
        "sglang 0.5.4",
    )
    assert any("speculative" in note for note in b.notes)


def test_json_lines_hold_several_runs(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({**SGLANG, "output_throughput": x}) for x in (100.0, 200.0))
    assert [i.tokens_per_s for i in read_file(write(tmp_path, "x.jsonl", lines)).items] == [100.0, 200.0]


def test_a_run_that_was_cut_off_keeps_those_before_it(tmp_path: Path) -> None:
    whole = json.dumps(SGLANG)
    read = read_file(write(tmp_path, "x.jsonl", f"{whole}\n\n{whole[:40]}\n{whole.replace('7.5', '9.5')}"))
    assert [i.concurrency for i in read.items] == [7.5, 9.5]
    assert read.skipped == ("line 3: not JSON, or cut short",)


def test_guidellm_and_inference_perf(tmp_path: Path) -> None:
    a = only(tmp_path, GUIDE)
    assert (a.model, a.concurrency, a.tokens_per_s, a.ttft_p99_s) == ("m/one", 16.0, 256.0, 0.08)
    assert (a.scenario, a.tpot_mean_s, a.notes) == ("concurrent", 0.01, ("1 requests failed",))
    b = only(tmp_path, PERF)
    assert (b.tokens_per_s, b.input_tokens, b.ttft_mean_s, b.tpot_p99_s) == (640.0, 700.0, 0.8, 0.03)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", "null", "[1, 2]", '{"a": {"b": 1}}', "\x00\x01", "[" * 100_000, SUMMARY[:30]]
)
def test_corrupt_and_foreign_files_are_named_and_skipped(tmp_path: Path, content: str) -> None:
    read = read_file(write(tmp_path, "x.json", content))
    assert read.file == "x.json"
    assert not read.items
    assert len(read.skipped) == 1


def test_a_file_that_is_no_file_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not a file" in read_file(tmp_path).skipped[0]
    assert read_file(tmp_path / "missing.json").skipped
    assert read_file(Path("a\0b")).skipped
    monkeypatch.setattr("chipwise.evidence.importers.MAX_BYTES", 10)
    assert "too large" in read_file(write(tmp_path, "x.json", [ROW_V4])).skipped[0]
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe\xff")
    assert read_file(tmp_path / "latin.json").skipped


def test_folders_are_searched_without_following_links(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    write(inside / "deep", "a.json", VLLM)
    write(inside, "notes.txt", "not a result")
    write(outside, "secret.json", SGLANG)
    (inside / "link.json").symlink_to(outside / "secret.json")
    (inside / "folder").symlink_to(outside)
    assert [f.file for f in read_paths([str(inside)])] == ["a.json"]
    with pytest.raises(UsageError, match="nothing to import"):
        list(read_paths([]))


def test_what_the_user_knows_fills_gaps_and_overrides_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "x.json", VLLM)
    item = read_file(file, ImportTerms(chip="l40s", chips=1, model="other")).items[0]
    assert (item.chip, item.chips, item.model) == ("l40s", 1, VLLM["model_id"])
    assert "said by you: chip, chips" in item.notes


def test_the_id_follows_the_content_not_the_place(tmp_path: Path) -> None:
    a, b = only(tmp_path, VLLM, "a.json"), only(tmp_path, VLLM, "b.json")
    assert a.id == b.id
    assert only(tmp_path, {**VLLM, "output_throughput": 1281.0}).id != a.id
    assert from_json(to_json(a)) == a
