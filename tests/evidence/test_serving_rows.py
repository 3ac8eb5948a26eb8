"""Rows of serving measurements: what their labels mean, what is refused and why, and that no figure is read."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.serving import predict_serving
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.configs import find_config
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.anchors import Anchors, corrections
from chipwise.evidence.rows import Predicted
from chipwise.evidence.serving_answers import answer, predicted
from chipwise.evidence.serving_rows import ServingRun, read_run

ROW = {
    "row_id": "s1",
    "chip": "h200-sxm-141gb",
    "backend": "vllm",
    "backend_version": "0.19.0",
    "mode": "agg",
    "isl": "1024",
    "osl": "1024",
    "concurrency": "16",
    "precision": "fp8",
    "gemm_quant": "fp8",
    "moe_quant": "fp8",
    "tp": "4",
    "source": "dump 2026-04-06",
    "measured_date": "2026-04-03",
}


def run(model: str = "meta-llama/Llama-3.1-70B", **change: str) -> ServingRun:
    return read_run({**ROW, **change}, find_config(model))


def test_a_plain_row() -> None:
    r = run()
    assert r.pool.layout.label() == "tp4"
    assert r.prefill is None
    assert r.prompt_tokens == pytest.approx(0.9 * 1024), "lengths are drawn from 0.8 to 1 times the nominal"
    assert not r.equal_lengths
    assert r.precision.weight("ffn").name == "fp8"
    assert r.precision.kv.name == "bf16", "vLLM keeps a 16-bit cache on Hopper"
    assert r.period == "2026Q2"
    assert r.cell == (r.architecture, "h200-sxm-141gb")


def test_nominal_lengths_where_they_are_not_drawn() -> None:
    r = run(source="NVIDIA single-run table")
    assert (r.prompt_tokens, r.output_tokens, r.equal_lengths) == (1024, 1024, True)


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"tp": "8", "moe_tp": "1", "moe_ep": "8"}, "tp8 ep8"),
        ({"tp": "1", "attention_dp": "4", "moe_tp": "1", "moe_ep": "4"}, "dp4 ep4"),
        ({"tp": "2", "attention_dp": "0", "moe_tp": "0", "moe_ep": "0"}, "tp2"),
        ({"tp": "1", "attention_dp": "", "moe_tp": "", "moe_ep": ""}, "whole"),
    ],
)
def test_layouts(change: dict[str, str], label: str) -> None:
    assert run("Qwen/Qwen3-235B-A22B-FP8", **change).pool.layout.label() == label


@pytest.mark.parametrize(
    ("model", "chip", "backend", "label", "expert", "attention", "cache"),
    [
        ("openai/gpt-oss-120b", "h200-sxm-141gb", "vllm", "nvfp4", ("mxfp4", "bf16"), "bf16", "bf16"),
        ("openai/gpt-oss-120b", "b200-sxm", "trtllm", "nvfp4", ("mxfp4", "fp8"), "bf16", "fp8"),
        ("deepseek-ai/DeepSeek-V3", "b200-sxm", "sglang", "nvfp4", ("nvfp4", "fp4"), "bf16", "fp8"),
        ("deepseek-ai/DeepSeek-V3", "b200-sxm", "sglang", "fp8", ("fp8_block", "fp8"), "fp8_block", "fp8"),
        ("moonshotai/Kimi-K2.5", "b300-sxm", "vllm", "nvfp4", ("nvfp4", "fp4"), "bf16", "fp8"),
        ("Qwen/Qwen3-32B", "b200-sxm", "trtllm", "nvfp4", ("nvfp4", "fp4"), "nvfp4", "fp8"),
        ("Qwen/Qwen3-32B", "b200-sxm", "trtllm", "", ("bf16", "bf16"), "bf16", "bf16"),
    ],
)
def test_what_labels_of_precision_mean(
    model: str, chip: str, backend: str, label: str, expert: tuple[str, str], attention: str, cache: str
) -> None:
    p = run(model, chip=chip, backend=backend, gemm_quant=label, moe_quant=label).precision
    assert (p.weight("expert").name, p.activation("expert").compute) == expert
    assert p.weight("attention").name == attention
    assert p.kv.name == cache


APART = {
    "mode": "disagg",
    "concurrency": "",
    "prefill_workers": "2",
    "prefill_tp": "1",
    "prefill_attention_dp": "4",
    "prefill_moe_ep": "4",
    "decode_workers": "3",
    "decode_batch": "5",
    "decode_tp": "8",
    "decode_moe_ep": "8",
}


def test_pools() -> None:
    r = run("deepseek-ai/DeepSeek-V3", **APART)
    assert r.prefill is not None
    assert (r.prefill.layout.label(), r.prefill.workers) == ("dp4 ep4", 2)
    assert (r.pool.layout.label(), r.pool.devices) == ("tp8 ep8", 24)
    assert r.concurrency == 15, "without a load: what the decode workers run at a time"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chip": ""}, "not in the catalogue"),
        ({"chip": "h201"}, "h200"),
        ({"backend": "vlm"}, "vllm"),
        ({"isl": "many"}, "cannot be read"),
        ({"osl": "0"}, "out of range"),
        ({"tp": "8", "moe_ep": "3"}, "moe_ep divides"),
        ({"gemm_quant": "fp7", "moe_quant": "fp7"}, "fp7"),
        ({**APART, "decode_workers": ""}, "workers is not known"),
    ],
)
def test_what_cannot_be_read_is_said(change: dict[str, str], words: str) -> None:
    with pytest.raises(ChipwiseError) as caught:
        run("deepseek-ai/DeepSeek-V3", **change)
    assert words in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def test_a_row_without_a_model() -> None:
    with pytest.raises(UsageError, match="no config_file"):
        read_run(ROW, None)


def test_measured_columns_are_never_read(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "m.json").write_text(
        '{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,'
        '"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",'
        '"max_position_embeddings": 131072}'
    )

    def table(name: str, **measured: str) -> list[Predicted]:
        row = {**ROW, "config_file": "m.json", "tp": "1", "gemm_quant": "", "moe_quant": "", **measured}
        with (tmp_path / name).open("w", newline="") as out:
            writer = csv.DictWriter(out, row)
            writer.writeheader()
            writer.writerow(row)
            writer.writerow({**row, "row_id": "s2", "chip": ""})
        return list(predict_serving(str(tmp_path / name)))

    plain, told = table("a.csv"), table("b.csv", ttft_ms="1e9", tpot_ms="nonsense")
    assert plain == told
    assert [(p.row_id, p.metric) for p in plain] == [
        (i, m) for i in ("s1", "s2") for m in ("ttft_ms", "tpot_ms")
    ]
    assert all(p.low < p.mid < p.high for p in plain[:2] if p.low and p.mid and p.high)
    assert all(p.mid is None and "catalogue" in p.refused for p in plain[2:])


def test_anchors_pull_their_own_deployment_alone() -> None:
    numbers = shipped_parameters()
    runs = [
        run(concurrency="16", row_id="a"),
        run(concurrency="32", row_id="b"),
        run(chip="b200-sxm", row_id="c"),
    ]
    anchor = [run(concurrency="8", row_id="z")]
    base = predicted(anchor, numbers)
    anchors = Anchors(anchor, base, 1.5 * base.tpot_s, 1.5 * base.ttft_s)
    found = corrections(runs, anchors)
    assert 1.2 < found.passes[1] < found.passes[0] < 1.5, "worth falls with the distance of the load"
    assert found.passes[2] == 1
    assert found.used.tolist() == [1, 1, 0]
    itself = corrections([run(concurrency="8", row_id="z")], anchors)
    assert itself.passes[0] == 1, "a row never corrects itself"


def test_answers_with_an_anchor_are_measured() -> None:
    numbers = shipped_parameters()
    runs = [run(row_id="a"), run(chip="b200-sxm", row_id="c")]
    own = ([run(concurrency="8", row_id="z")], np.array([20e-3]), np.array([0.2]))
    found = answer(runs, numbers, own)
    assert found.nearness[0] == "own"
    assert found.nearness[1] != "own"
    mid, low, high = found.interval("tpot_s", 0)
    assert low < mid < high
