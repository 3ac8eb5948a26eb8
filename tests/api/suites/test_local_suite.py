"""The suite `local`: what rows of published local speeds ask, and that they take the answer that users get."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.local import AskedDesk
from chipwise.api.suites.predicting import predict_suite
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.errors import ChipwiseError
from chipwise.report.plans import PlanRecord
from truth import published

COLUMNS = ("id", "model", "chip", "chips", "quant", "runtime", "backend", "context", "metric", "date", "note")
ROW = dict(
    zip(
        COLUMNS,
        ("r1", "Qwen/Qwen3-8B", "rtx-4090", "1", "q4_k_m", "llama.cpp", "cuda", "512", "tg_tok_s", "", ""),
        strict=True,
    )
)


def answered(path: Path, *rows: dict[str, str]) -> list[dict[str, str]]:
    table, out = path / "rows.csv", path / "out.csv"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    predict_suite("local", str(table), str(out))
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def per_token(plan: PlanRecord) -> float:
    assert plan.tpot_s is not None
    return plan.tpot_s.mid


def plan(**given: object) -> PlanRecord:
    said = {"model": ROW["model"], "chip": ROW["chip"], "task": "local", "runtime": "llama.cpp"}
    return EstimateRequest(**{**said, "precision": "q4_k_m", **given}).run().plans[0]  # type: ignore[arg-type]


def test_rows_are_what_estimate_answers(tmp_path: Path) -> None:
    prompt = {**ROW, "metric": "pp_tok_s"}
    deep = {**prompt, "note": "chunk=2048 depth=4096"}
    ends = {**ROW, "note": "e2e out=100"}
    tg, pp, depth, whole = (float(line["predicted"]) for line in answered(tmp_path, ROW, prompt, deep, ends))
    assert tg == pytest.approx(1.0 / per_token(plan(in_="512", out="128")), rel=1e-6)
    assert pp == pytest.approx(512 / plan(in_="512", out="2").prefill_s, rel=1e-6)
    first, both = (plan(in_=str(n), out="2").prefill_s for n in (4096, 6144))
    assert depth == pytest.approx(2048 / (both - first), rel=1e-6)
    e2e = plan(in_="512", out="100")
    assert whole == pytest.approx(100 / (e2e.ttft_s.mid + 99 * per_token(e2e)), rel=1e-6)


def test_memory_is_weights_workspace_and_the_cache_of_the_context(tmp_path: Path) -> None:
    (line,) = answered(tmp_path, {**ROW, "metric": "memory_gb", "context": "4096"})
    # 8.19 B weights of which the table (0.35 GB) lies with the host; 147,456 B a token; logits of 512 tokens
    weights, cache, logits = 5.02e9 - 0.35e9, 4096 * 147456, 512 * 151936 * 4
    assert float(line["predicted"]) == pytest.approx((weights + cache + logits) / 1e9, rel=0.02)


def test_backend_and_date_of_a_row_are_told(tmp_path: Path) -> None:
    cuda, vulkan, old = answered(tmp_path, ROW, {**ROW, "backend": "vulkan"}, {**ROW, "date": "2024-05"})
    assert float(vulkan["predicted"]) != float(cuda["predicted"])
    assert float(old["predicted"]) < float(cuda["predicted"])


def test_mxfp4_is_the_file_that_llama_cpp_has(tmp_path: Path) -> None:
    oss = {**ROW, "model": "openai/gpt-oss-20b", "quant": "mxfp4", "metric": "memory_gb", "context": "2"}
    memory = float(answered(tmp_path, oss)[0]["predicted"])
    # ggml-org's file is 12.1 GB, of which the table (0.62 GB in Q8_0) lies with the host
    assert memory == pytest.approx(12.1 - 0.62 + 0.45, rel=0.03)


def test_shells_run_the_kernels_of_their_engine_as_they_start_them(tmp_path: Path) -> None:
    experts = {**ROW, "model": "Qwen/Qwen3-30B-A3B", "date": "2026-10"}
    rows = [
        {**asked, "runtime": runtime}
        for asked in (ROW, experts, {**experts, "metric": "pp_tok_s", "context": "2048", "date": "2025-09"})
        for runtime in ("llama.cpp", "ollama")
    ]
    dense, same, fused, apart, device, host = (float(x["predicted"]) for x in answered(tmp_path, *rows))
    assert dense == same
    # 22 kernels for 8 in each of 48 layers, some microseconds each, of some 5 ms a token
    assert 1.15 < fused / apart < 1.6
    # 128 experts, 2,048 tokens, 8 choices, 3 products, 48 layers: 302 M steps of the host, 2 ns each
    assert 2048 / host - 2048 / device == pytest.approx(0.604, rel=0.1)


def test_a_row_says_its_shell_in_the_note(tmp_path: Path) -> None:
    old = {**ROW, "model": "meta-llama/Llama-3.2-1B", "date": "2025-04"}
    new = {**old, "date": "2026-10"}
    rows = (old, {**old, "note": "LocalScore, llamafile"}, new, {**new, "note": "llamafile"})
    captured, eager, engine, since = (float(line["predicted"]) for line in answered(tmp_path, *rows))
    # mozilla-ai/llamafile pull request 1051: captured graphs since September 2026
    assert eager < 0.9 * captured
    assert since == engine


def test_what_cannot_be_asked_says_why(tmp_path: Path) -> None:
    lines = answered(tmp_path, {**ROW, "metric": "joules"}, {**ROW, "quant": "q9_k"}, {**ROW, "chip": "nonesuch-9"})
    assert [bool(line["refused"]) for line in lines] == [True] * 3
    assert "pp_tok_s, tg_tok_s, memory_gb" in lines[0]["refused"]
    assert "q9_k" in lines[1]["refused"]


def test_a_backend_that_a_chip_lacks_is_refused() -> None:
    for chip, backend, known in (("rtx-4090", "metal", "cuda, vulkan"), ("m4-max", "cuda", "metal")):
        with pytest.raises(ChipwiseError, match=known):
            EstimateRequest(
                model=ROW["model"],
                chip=chip,
                task="local",
                runtime="llama.cpp",
                precision="q4_k_m",
                policy=f"backend={backend}",
            ).run()
    with pytest.raises(ChipwiseError, match="changes nothing here"):
        EstimateRequest(model=ROW["model"], chip="rtx-4090", runtime="vllm", policy="backend=vulkan").run()


def test_a_cache_in_blocks_of_ggml_is_smaller_and_streams_faster() -> None:
    wide, narrow, fours = (plan(in_="32768", out="128", kv=kv) for kv in (None, "q8_0", "q4_0"))
    sizes = [float(p.memory.cache_tokens or 0) for p in (wide, narrow, fours)]
    # 16 bits against 8.5 and 4.5: bytes of a block over its elements
    assert sizes[1] / sizes[0] == pytest.approx(16 / 8.5, rel=0.01)
    assert sizes[2] / sizes[0] == pytest.approx(16 / 4.5, rel=0.01)
    assert per_token(fours) < per_token(narrow) < per_token(wide)


def test_a_larger_micro_batch_reads_weights_less_often() -> None:
    small, large = (plan(in_="2048", out="2", policy=f"micro_batch_tokens={n}") for n in (256, 2048))
    assert large.prefill_s < small.prefill_s
    assert large.memory.items["workspace"] > small.memory.items["workspace"]


def test_speeds_are_right_on_chips_with_models_that_the_fit_did_not_see() -> None:
    trial, numbers = SUITES["local"].trial, shipped_parameters()
    assert trial is not None
    lines = trial.unseen(trial.read([str(published("published_local.csv"))], numbers), numbers, "model")
    for metric, most in (("tg_tok_s", 0.09), ("pp_tok_s", 0.25)):
        (summary,) = lines.where(metric=metric).summaries()
        assert summary.median < most


def test_depth_and_end_are_read_from_the_note() -> None:
    deep = AskedDesk.of({**ROW, "metric": "pp_tok_s", "note": "chunk=2048 depth=32768; file x"})
    assert (deep.new, deep.depth, deep.output) == (2048, 32768, 2)
    ends = AskedDesk.of({**ROW, "note": "e2e out=207"})
    assert (ends.output, ends.whole) == (207, True)
