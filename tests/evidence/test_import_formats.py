"""Benchmarks and training logs of other tools, each as its documentation shows it, figures made up."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.evidence.importers import FORMATS, Imported, ImportTerms, read_file, read_paths
from chipwise.evidence.item import Item, from_json, to_json
from chipwise.evidence.store import Store
from command_line import Run

MARKDOWN = """ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
| model                          |       size |     params | backend    | ngl |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | --------------: | -------------------: |
| qwen3 8B Q4_K - Medium         |   4.68 GiB |     8.19 B | CUDA       |  99 |           pp512 |      9000.00 ± 23.45 |
| qwen3 8B Q4_K - Medium         |   4.68 GiB |     8.19 B | CUDA       |  99 |           tg128 |        125.00 ± 0.59 |
| qwen3 8B Q4_K - Medium         |   4.68 GiB |     8.19 B | CUDA       |  99 |   tg128 @ d4096 |        110.00 ± 0.49 |

build: d5c05821f (5000)
"""
CSV = (
    "build_commit,build_number,cpu_info,gpu_info,backends,model_filename,model_type,n_gpu_layers,n_prompt,n_gen,"
    "n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts\n"
    '"8cf427ff","5163","AMD Ryzen 7 7800X3D","","CPU","models/Qwen2.5-7B-Instruct-Q8_0.gguf","qwen2 7B Q8_0","0",'
    '"512","0","0","2025-04-24T11:57:09Z","70285660","982040","60.0","5.0"\n'
    '"8cf427ff","5163","AMD Ryzen 7 7800X3D","","CPU","models/Qwen2.5-7B-Instruct-Q8_0.gguf","qwen2 7B Q8_0","0",'
    '"0","128","0","2025-04-24T11:57:10Z","1067431600","3834831","8.0","0.4"\n'
)


def bench(**more: Any) -> dict[str, Any]:
    return {
        "build_commit": "8cf427ff", "cpu_info": "AMD Ryzen 7 7800X3D", "gpu_info": "NVIDIA GeForce RTX 4090",
        "model_filename": "models/Qwen3-8B-Q4_K_M.gguf", "model_type": "qwen3 8B Q4_K - Medium", "n_gpu_layers": 99,
        "n_prompt": 0, "n_gen": 0, "n_depth": 0, "test_time": "2025-04-24T11:58:50Z", "avg_ts": 100.0, **more,
    }  # fmt: skip


AIPERF: dict[str, Any] = {
    "schema_version": "1.0",
    "start_time": "2026-05-18T11:00:00Z",
    "request_throughput": {"unit": "requests/sec", "avg": 4.0},
    "request_latency": {"unit": "ms", "avg": 4000.0, "p99": 5000.0},
    "time_to_first_token": {"unit": "ms", "avg": 90.0, "p99": 200.0},
    "inter_token_latency": {"unit": "ms", "avg": 10.0, "p99": 15.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1024.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1000.0},
    "output_sequence_length": {"unit": "tokens", "avg": 256.0},
    "error_request_count": {"unit": "requests", "avg": 2.0},
    "input_config": {"endpoint": {"model_names": ["Qwen/Qwen3-8B"]}, "loadgen": {"concurrency": 16}},
    "telemetry_data": {
        "endpoints": {"n:9400": {"gpus": {n: {"gpu_name": "NVIDIA H100 80GB HBM3"} for n in ("0", "1")}}}
    },
}
GENAI = {name: value for name, value in AIPERF.items() if name not in ("telemetry_data", "schema_version")} | {
    "time_to_first_token": {"unit": "ns", "avg": 9e7, "p99": 2e8},
    "input_config": {"model": ["Qwen/Qwen3-8B"], "backend": "vllm", "perf_analyzer": {"stimulus": {"concurrency": 16}}},
}
STATE = {
    "global_step": 100, "num_input_tokens_seen": 0, "log_history": [
        {"loss": 1.0, "step": 10, "epoch": 0.1},
        {"train_runtime": 500.0, "train_samples_per_second": 3.2, "train_steps_per_second": 0.2, "step": 100},
    ],
}  # fmt: skip


def megatron(i: int, ms: float) -> str:
    return (
        f" [2025-04-13 23:41:{i:02d}] iteration {i:8d}/    1000 | consumed samples: {16 * i:12d} | elapsed time per"
        f" iteration (ms): {ms:.1f} | learning rate: 1.0E-05 | global batch size:    16 | loss scale: 1.0 |"
    )


def steps(line: Any) -> str:
    """Ten steps, of which the first compile."""
    return "\n".join(["loading data", *(line(i, 9.0 if i < 2 else 2.0) for i in range(10))])


MEGATRON = steps(lambda i, s: megatron(i, s * 1e3))
NEMO = steps(lambda i, s: f"Training epoch 0, iteration {i}/249 | lr: 1e-6 | global_batch_size: 8 | global_step: {i} | "
             f"reduced_train_loss: 1.3 | train_step_timing in s: {s}")  # fmt: skip
TORCHTUNE = steps(lambda i, s: f"Step {i + 1} | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:{4000.0 / s}")
MAXTEXT = steps(
    lambda i, s: (
        f"completed step: {i}, seconds: {s:.3f}, TFLOP/s/device: 100.0, Tokens/s/device: {8192 / s:.3f}, loss: 1"
    )
)


def mllog(key: str, ms: int, value: Any = None, **metadata: Any) -> str:
    event = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return ":::MLLOG " + json.dumps({**event, "metadata": metadata})


MLPERF = "\n".join(
    (
        "noise", mllog("submission_benchmark", 0, "llama31_8b"), mllog("global_batch_size", 0, 32),
        mllog("run_start", 60_000), mllog("eval_accuracy", 500_000, 3.4, samples_count=80_000),
        mllog("eval_accuracy", 650_000, 3.2, samples_count=120_000), mllog("run_stop", 660_000, status="success"),
    )
)  # fmt: skip


def read(tmp_path: Path, name: str, content: Any, given: ImportTerms = ImportTerms()) -> Imported:  # noqa: B008
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_file(file, given)


def one(tmp_path: Path, name: str, content: Any, given: ImportTerms = ImportTerms()) -> Item:  # noqa: B008
    found = read(tmp_path, name, content, given)
    assert not found.skipped
    (item,) = found.items
    return item


def test_llama_bench_as_markdown(tmp_path: Path) -> None:
    short, deep = read(tmp_path, "x.md", MARKDOWN, ImportTerms(model="Qwen/Qwen3-8B")).items
    assert (short.model, short.chip, short.precision, short.runtime) == (
        "Qwen/Qwen3-8B", "rtx-4090", "q4_k_m", "llama.cpp d5c05821f",
    )  # fmt: skip
    assert (short.input_tokens, short.output_tokens, short.concurrency) == (512.0, 128.0, 1.0)
    assert short.ttft_mean_s == pytest.approx(512 / 9000)
    assert short.tpot_mean_s == 1 / 125
    assert (deep.input_tokens, deep.ttft_mean_s, deep.tpot_mean_s) == (4096.0, None, 1 / 110)


def test_llama_bench_as_csv_on_a_processor(tmp_path: Path) -> None:
    item = one(tmp_path, "x.csv", CSV)
    assert (item.model, item.precision, item.part) == ("Qwen2.5-7B-Instruct", "q8_0", "AMD Ryzen 7 7800X3D")
    assert (item.date, item.tpot_mean_s, item.ttft_mean_s) == ("2025-04-24", 1 / 8, 512 / 60)


@pytest.mark.parametrize("lines", [False, True])
def test_llama_bench_as_json_and_json_lines(tmp_path: Path, lines: bool) -> None:
    rows = [bench(n_prompt=512, avg_ts=9000.0), bench(n_gen=128), bench(n_gen=64, n_prompt=256, avg_ts=300.0)]
    text = "\n".join(map(json.dumps, rows)) if lines else json.dumps(rows)
    pair, both = read(tmp_path, "x.json", text).items
    assert (pair.model, pair.chip, pair.ttft_mean_s) == ("Qwen3-8B", "rtx-4090", 512 / 9000)
    assert both.tpot_mean_s is both.ttft_mean_s is None


def test_llama_bench_says_what_it_leaves_out(tmp_path: Path) -> None:
    rows = [
        bench(n_gen=128),
        bench(n_gen=128, gpu_info="NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 4090"),
        bench(n_gen=128, n_cpu_moe=12),
        bench(),
        bench(n_gen=128, avg_ts=0),
    ]
    found = read(tmp_path, "x.json", rows)
    assert len(found.items) == 1
    assert [s.partition(":")[0] for s in found.skipped] == ["row 2", "row 3", "row 4", "row 5"]


@pytest.mark.parametrize(("content", "tool"), [(AIPERF, "aiperf"), (GENAI, "genai-perf")])
def test_aiperf_and_its_predecessor(tmp_path: Path, content: Any, tool: str) -> None:
    item = one(tmp_path, "profile_export.json", content)
    assert (item.format, item.model, item.concurrency) == (tool, "Qwen/Qwen3-8B", 16.0)
    assert item.ttft_mean_s == pytest.approx(0.09)
    assert (item.tpot_mean_s, item.tokens_per_s, item.input_tokens) == (0.01, 1024.0, 1000.0)
    assert item.notes == ("2 requests failed",)
    assert (item.chip, item.chips) == (("h100-sxm5-80gb", 2) if tool == "aiperf" else ("", None))


def test_the_load_of_aiperf_by_phases(tmp_path: Path) -> None:
    """Schema 1.5 keeps the resolved configuration, whose load stands in its phases."""
    config = {k: v for k, v in AIPERF["input_config"].items() if k != "loadgen"}
    for phases in (
        {"warmup": {"concurrency": 2}, "profiling": {"concurrency": 16}},
        [{"name": "warmup", "concurrency": 2}, {"name": "profiling", "concurrency": 16}],
    ):
        content = AIPERF | {"schema_version": "1.5", "input_config": config | {"phases": phases}}
        item = one(tmp_path, "profile_export_aiperf.json", content)
        assert (item.concurrency, item.scenario) == (16.0, "closed loop")
    paced = {"profiling": {"rate": 4.0}}
    assert one(tmp_path, "x.json", AIPERF | {"input_config": config | {"phases": paced}}).scenario == "open loop"


def test_a_time_in_a_unit_that_is_none_is_left_out(tmp_path: Path) -> None:
    strange = AIPERF | {"time_to_first_token": {"unit": "tokens", "avg": 90.0}}
    assert "not a time" in read(tmp_path, "x.json", strange).skipped[0]


@pytest.mark.parametrize(
    ("content", "given", "format_", "result", "unit"),
    [
        (MEGATRON, ImportTerms(), "Megatron log", 8.0, "Samples/s"),
        (NEMO, ImportTerms(), "NeMo log", 4.0, "Samples/s"),
        (NEMO.replace("global_batch_size", "x"), ImportTerms(), "NeMo log", 2000.0, "Latency (ms)"),
        (TORCHTUNE, ImportTerms(chips=8), "torchtune log", 16000.0, "Tokens/s"),
        (MAXTEXT, ImportTerms(), "MaxText log", 2000.0, "Latency (ms)"),
        (MAXTEXT, ImportTerms(chips=4), "MaxText log", 16384.0, "Tokens/s"),
        (MLPERF, ImportTerms(), "MLPerf Training log", 10.0, "Minutes"),
    ],
)
def test_training_logs(
    tmp_path: Path, content: str, given: ImportTerms, format_: str, result: float, unit: str
) -> None:
    item = one(tmp_path, "train.log", content, given)
    assert (item.format, item.scenario, item.unit) == (format_, "training", unit)
    assert item.result == pytest.approx(result)


def test_samples_of_a_benchmark_of_training(tmp_path: Path) -> None:
    item = one(tmp_path, "x.log", MLPERF)
    assert (item.benchmark, item.requests_per_s) == ("llama31_8b", 200.0)
    for old, new in (("success", "aborted"), ("run_stop", "else")):
        assert not read(tmp_path, "x.log", MLPERF.replace(old, new)).items


def test_the_state_of_a_trainer(tmp_path: Path) -> None:
    item = one(tmp_path, "trainer_state.json", STATE)
    assert (item.format, item.result, item.unit) == ("Hugging Face trainer_state.json", 3.2, "Samples/s")
    assert any("5 s a step" in note for note in item.notes)
    seen = STATE | {"num_input_tokens_seen": 1_000_000}
    assert one(tmp_path, "trainer_state.json", seen).tokens_per_s == 2000.0
    cut = STATE | {"log_history": [{"loss": 1.0, "step": 10}]}
    assert "did not end" in read(tmp_path, "trainer_state.json", cut).skipped[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [(TORCHTUNE, "--count N"), ("\n".join(MEGATRON.splitlines()[:5]), "too few"), ("Step 1 | loss", "begins 'Step 1")],
)
def test_logs_that_say_too_little(tmp_path: Path, content: str, why: str) -> None:
    assert why in read(tmp_path, "x.log", content).skipped[0]


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ({"foo": 1, "bar": 2}, "an object with foo, bar"),
        ([{"a": 1}], "a list of 1, the first an object with a"),
        ("hello\nworld", "text that begins 'hello'"),
        ('{"benchmarks": [', "JSON that was cut short"),
        ("", "an empty file"),
    ],
)
def test_a_wrong_format_says_what_was_seen_and_what_there_is(tmp_path: Path, content: Any, seen: str) -> None:
    (why,) = read(tmp_path, "x.json", content).skipped
    assert seen in why
    assert all(name in why for name in FORMATS)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (re.sub(r"(global batch size: *)", r"\g<1>" + "9" * 400, MEGATRON), "no run reaches that"),
        (json.dumps(bench(n_gen=128, avg_ts=1e308)), "no run reaches that"),
        (MARKDOWN.partition("\n| qwen")[0] + "\n| qwen", "no result in it, or cut short"),
    ],
)  # fmt: skip
def test_figures_that_no_machine_has_and_tables_without_rows(content: str, says: str, tmp_path: Path) -> None:
    found = read(tmp_path, "x.log", content)
    assert found.items == ()
    (why,) = found.skipped
    assert says in why


FORMS = (
    MARKDOWN, CSV, MEGATRON, NEMO, TORCHTUNE, MAXTEXT, MLPERF, *map(json.dumps, (bench(n_gen=128), GENAI, STATE)),
)  # fmt: skip
ODD = ("-1", "1e308", "NaN", "Infinity", "null", '"x"', "[]", "{}", "1e-300", "9" * 400, "1.2.3", "\0", "")


@given(st.sampled_from(FORMS), st.data())
def test_files_that_were_cut_or_altered_say_why_in_a_line(content: str, data: st.DataObject) -> None:
    """Half a file, figures that are none: an item that can be kept, or one line for each that cannot."""
    for _ in range(data.draw(st.integers(1, 3))):
        at, value = data.draw(st.integers(0, len(content))), data.draw(st.sampled_from(ODD))
        number = re.compile(r"-?\d[\d.]*").search(content, at)
        content = content[:at] if number is None else content[: number.start()] + value + content[number.end() :]
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), "x.log", content, ImportTerms("h100-sxm5-80gb", 8))
    assert found.items or found.skipped
    assert all(from_json(to_json(item)) == item for item in found.items)
    assert all("\n" not in why and len(why) < 600 for why in found.skipped)


def test_in_a_folder_other_texts_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Notes")
    (tmp_path / "train.log").write_text(MEGATRON)
    assert [f.format for f in read_paths([str(tmp_path)])] == ["Megatron log"]


def test_a_bad_file_beside_good_ones_keeps_the_good(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "x.md").write_text(MARKDOWN)
    (tmp_path / "y.json").write_text("{")
    said = run("evidence", "import", str(tmp_path / "x.md"), str(tmp_path / "y.json"), "--count", "1")
    assert (said.code, len(Store().items())) == (0, 2)
    assert "2 name no model" in said.out
    assert run("evidence", "import", str(tmp_path / "y.json")).refused(2)
    assert len(Store().items()) == 2


def test_a_run_of_a_desk_answers_as_measured(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "data"))
    asked = ("estimate", "Qwen3-8B", "--task", "local", "--chip", "rtx-4090", "--runtime", "llama.cpp", "--precision",
             "q4_k_m", "--in", "512", "--out", "128", "--format", "json")  # fmt: skip
    before = run(*asked).json["plans"][0]
    speed = 0.8 / before["tpot_s"]["mid"]
    (tmp_path / "x.json").write_text(json.dumps([bench(n_gen=128, avg_ts=speed), bench(n_prompt=512, avg_ts=5000.0)]))
    run("evidence", "import", str(tmp_path / "x.json"))
    after = run(*asked).json["plans"][0]
    assert after["tpot_s"]["basis"] == "measured"
    assert after["tpot_s"]["mid"] == pytest.approx(1 / speed, rel=0.06)
    assert "own-" in after["note"]
