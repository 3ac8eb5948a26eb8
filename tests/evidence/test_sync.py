"""Benchmarks of others become rows once, and what no machine can have reached is set apart."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.loaded import load
from chipwise.api.suites.sync import sync
from chipwise.catalog.chips import get_chip
from chipwise.errors import UsageError
from chipwise.evidence.importers import ImportTerms, read_file
from chipwise.evidence.item import Item, impossible
from command_line import Run

MODEL, CHIP = "meta-llama/Llama-3.3-70B-Instruct", "h200-sxm-141gb"
# the keys of utils/process_result.py, figures made up
RUN: dict[str, Any] = {
    "hw": "h200-nb_0", "tp": 8, "ep": 1, "dp_attention": "false", "conc": 64, "model": MODEL, "framework": "vllm",
    "precision": "fp8", "isl": 1024, "osl": 1024, "tput_per_gpu": 600.0, "output_tput_per_gpu": 300.0, "mean_ttft": 0.3,
    "mean_tpot": 0.025, "disagg": False,
}  # fmt: skip
LOCALSCORE = {
    "accelerator_name": "NVIDIA GeForce RTX 4090", "model_name": "Meta Llama 3.1 8B Instruct",
    "model_quant": "Q4_K - Medium", "avg_prompt_tps": 7000, "avg_gen_tps": "110", "avg_ttft": 250,
}  # fmt: skip
TENSORRT = """#### Llama 3.3 70B

| Sequence Length (ISL/OSL) | B200<br/>TP1 (FP4) | H100<br/>TP2 (FP8) |
|---|---|---|
| 1000/1000 | 7,007 | 4,205 |
| 2048/128 | 1,339 | |

RTX 6000 Pro Blackwell Server Edition
| Sequence Length (ISL/OSL) | **2 GPUs**<br/>TP1,PP2 (FP4) |
|---|---|
| 1000/1000 | 3,707 |
"""
NEMO = """### System: DGX-H100, Precision: BF16

| Model | #GPUs | GBS | MBS | Seq Length | TP | PP | CP | EP | VP | Tokens/sec/GPU |
|---|---:|---:|--:|--:|--:|--:|--:|--:|--:|--:|
| LLAMA3 8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | 1 | - | 9,000 |
"""


def items(path: Path, content: str) -> tuple[Item, ...]:
    """What a file of this content holds."""
    path.write_text(content, "utf-8")
    return read_file(path).items


def test_inferencex_counts_all_gpus_and_leaves_drafts_and_pools_out(tmp_path: Path) -> None:
    rows = [RUN, {**RUN, "spec_decoding": "mtp"}, {**RUN, "disagg": True}]
    path = tmp_path / "agg.json"
    (item,) = items(path, json.dumps(rows))
    assert (item.chip, item.chips, item.tokens_per_s, item.tpot_mean_s) == (CHIP, 8, 2400.0, 0.025)
    assert len(read_file(path).skipped) == 2
    (row,) = items(path, json.dumps([{**{k: RUN[k] for k in list(RUN)[:10]}, "metrics": RUN}]))
    assert row.tokens_per_s == 2400.0
    assert not item.measured_by_user


def test_localscore_is_a_run_of_one_user(tmp_path: Path) -> None:
    (item,) = items(tmp_path / "l.json", json.dumps([LOCALSCORE]))
    assert (item.chip, item.precision, item.ttft_mean_s) == ("rtx-4090", "q4_k_m", 0.25)
    assert item.tpot_mean_s == pytest.approx(1 / 110)


def test_pages_say_model_and_chip_in_headings(tmp_path: Path) -> None:
    found = items(tmp_path / "perf.md", TENSORRT)
    assert [(i.chip, i.chips, i.output_tokens, i.result) for i in found] == [
        ("b200-sxm", 1, 1000, 7007), ("h100-sxm5-80gb", 2, 1000, 4205), ("b200-sxm", 1, 128, 1339),
        ("rtx-pro-6000-server", 2, 1000, 3707),
    ]  # fmt: skip
    assert {i.model for i in found} == {"Llama 3.3 70B"}
    (item,) = items(tmp_path / "nemo.md", NEMO)
    assert (item.chip, item.chips, item.precision, item.layout) == ("h100-sxm5-80gb", 8, "bf16", "tp=1,pp=1,cp=2,ep=1")
    assert item.per_chip == 9000


def test_what_cannot_be_is_said_with_its_bound(tmp_path: Path) -> None:
    (item,) = items(tmp_path / "agg.json", json.dumps(RUN))
    chip, graph = get_chip(CHIP), load(MODEL, "fp8").graph
    assert impossible(item, chip, graph) == ""
    assert "clients at this TPOT" in impossible(replace(item, concurrency=8.0), None, None)
    assert "reading its weights" in impossible(replace(item, tpot_mean_s=0.0012, tokens_per_s=None), chip, graph)
    assert "above its peak" in impossible(replace(item, tokens_per_s=1e6, tpot_mean_s=None), chip, graph)
    drafted = replace(item, tpot_mean_s=0.0012, tokens_per_s=None, notes=("speculative decoding",))
    assert impossible(drafted, chip, graph) == ""


def test_rows_are_added_once(tmp_path: Path, run: Run) -> None:
    source, into = tmp_path / "agg.json", tmp_path / "tables"
    source.write_text(json.dumps([RUN, {**RUN, "conc": 2}]), "utf-8")
    first = sync([str(source)], str(into), ImportTerms())
    assert (first.seen, first.new, len(first.quarantined)) == (2, {"serving": 3}, 1)
    rows = list(csv.DictReader((into / "serving.csv").read_text("utf-8").splitlines()))
    assert {r["metric"]: float(r["value"]) for r in rows} == {"tpot_ms": 25, "ttft_ms": 300, "tokens_out_per_s": 2400}
    (by_family, *_), *_ = (list(v.tables.values()) for v in first.found)
    assert all(s.answered == 1.0 for s in by_family)
    moved = tmp_path / "elsewhere.json"
    moved.write_text(source.read_text("utf-8"), "utf-8")
    again = run("evidence", "sync", str(moved), "--into", str(into)).out
    assert "0 new and 3 known rows of serving" in again
    assert "refit discrepancy TABLES" in again


def test_nothing_to_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}", "utf-8")
    with pytest.raises(UsageError, match="no results found"):
        sync([str(tmp_path)], str(tmp_path / "out"), ImportTerms())
