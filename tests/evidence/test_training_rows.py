"""Rows of training measurements: what they mean, what is refused, and how near the predictions come."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.errors import UsageError
from chipwise.evidence.rows import Predicted
from chipwise.evidence.training_answers import answer_training
from chipwise.evidence.training_measured import measured_of, row_group, workload_key
from chipwise.evidence.training_models import row_network
from chipwise.evidence.training_rows import read_case

GPT = {
    "row_id": "x1",
    "family": "megatron_sc21",
    "model": "GPT 39B",
    "chip": "a100-sxm4-80gb",
    "chips_total": "512",
    "layers": "48",
    "hidden": "8192",
    "heads": "64",
    "ffn": "32768",
    "vocab": "51200",
    "seq_len": "2048",
    "global_batch": "1536",
    "micro_batch": "1",
    "tp": "8",
    "pp": "2",
    "dp": "32",
    "precision": "fp16",
    "recompute": "full",
    "framework": "Megatron-LM",
    "interconnect": "8x HDR200 IB per node",
}
MLPERF = {
    "row_id": "m1",
    "benchmark": "llama2_70b_lora",
    "round": "4.0",
    "chip": "h100-sxm5-80gb",
    "chips_total": "64",
    "chips_per_node": "8",
    "seq_len": "8192",
    "global_batch": "8",
    "grad_accum": "1",
    "tp": "4",
    "pp": "1",
    "cp": "2",
}


def by_metric(lines: list[Predicted]) -> dict[str, Predicted]:
    return {line.metric: line for line in lines}


def test_a_row_is_read_as_it_says() -> None:
    case = read_case(GPT)
    s = case.spread
    assert (s.tp, s.pp, s.dp, s.full, s.zero) == (8.0, 2.0, 32.0, 1.0, 0.0)
    assert case.recipe.flash == 0.0
    assert case.cluster.nic_bytes_per_s == 25e9
    assert case.labels["stack"] == "megatron-2020"


def test_measured_columns_change_nothing() -> None:
    numbers = shipped_parameters()
    plain = answer_training([GPT], numbers)
    told = answer_training([{**GPT, "step_time_s": "1000", "tflops_per_chip": "1"}], numbers)
    assert plain == told


def test_every_figure_has_an_interval_and_rates_follow_time() -> None:
    lines = by_metric(answer_training([GPT], shipped_parameters()))
    for line in lines.values():
        assert line.mid is not None
        assert line.low is not None
        assert line.high is not None
        assert line.low < line.mid < line.high
    step, rate = lines["step_time_s"].mid, lines["tokens_per_s_per_chip"].mid
    assert step is not None
    assert rate is not None
    assert rate == pytest.approx(1536 * 2048 / step / 512)


def test_mlperf_rows_have_their_own_columns() -> None:
    lines = by_metric(answer_training([MLPERF], shipped_parameters()))
    assert set(lines) == {"step_time_s", "samples_per_s", "samples_to_target", "time_to_train_min"}
    case = read_case(MLPERF)
    assert case.spread.adapter == 1.0
    assert (case.spread.tp, case.spread.cp, case.spread.dp) == (4.0, 2.0, 8.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "Wan 2.1 14B"}, "diffusion"),
        ({"model": "Switch 4 experts MoE", "layers": ""}, "experts are not known"),
        ({"model": "mystery", "layers": "", "hidden": ""}, "no dimensions"),
        ({"chips_total": ""}, "chips_total"),
        ({"chip": "", "accelerator": "Abacus 9000"}, "Abacus"),
        ({"hidden": "wide"}, "hidden is 'wide'"),
        ({"precision": "posit8"}, "posit8"),
    ],
)
def test_bad_rows_are_refused_by_name(change: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_case({**GPT, **change})
    line = answer_training([{**GPT, **change}], shipped_parameters())[0]
    assert line.mid is None
    assert says in line.refused


def test_experts_come_from_the_models_configuration() -> None:
    row = {**GPT, "model": "Qwen3_30B_a3B", "layers": "48", "hidden": "2048", "heads": "32", "ffn": "768"}
    network, notes = row_network(row)
    assert (network.experts, network.top_k, network.expert_ffn) == (128.0, 8.0, 768.0)
    assert notes == ()


def test_head_size_and_gates_reproduce_the_parameter_count() -> None:
    """MaxText's 128B: 128 heads of 128 on a width of 8,192, gated."""
    row = {
        **GPT,
        "model": "128B",
        "params": "128e9",
        "layers": "64",
        "heads": "128",
        "kv_heads": "128",
        "ffn": "57344",
        "vocab": "32000",
    }
    network, _ = row_network(row)
    assert network.head_dim == 128.0
    assert network.gates == 2.0


def test_guesses_are_listed() -> None:
    case = read_case({**GPT, "seq_len": "", "micro_batch": "", "global_batch": ""})
    assert [g.split(" of")[0] for g in case.guessed] == ["sequences", "global batch", "micro-batch"]


def test_flops_stand_in_for_time_by_the_convention_of_the_source() -> None:
    row = {**GPT, "tflops_per_chip": "138.0"}
    seconds, _ = measured_of(row, read_case(row))
    # 96 b s L h^2 (1 + s / 6h + V / 16 L h), Narayanan et al. 2021; twice the pairs are counted
    flops = 96 * 1536 * 2048 * 48 * 8192**2 * (1 + 2048 / (6 * 8192) + 51200 / (16 * 48 * 8192))
    assert seconds == pytest.approx(flops / (138e12 * 512), rel=0.02)


def test_anchors_correct_other_workloads_only() -> None:
    numbers = shipped_parameters()
    free = by_metric(answer_training([GPT], numbers))["step_time_s"].mid
    assert free is not None
    slow = {**GPT, "row_id": "a", "global_batch": "768", "step_time_s": str(free)}  # twice as slow
    held = by_metric(answer_training([GPT], numbers, [slow, {**slow, "row_id": "b"}]))["step_time_s"].mid
    same = by_metric(answer_training([GPT], numbers, [{**GPT, "step_time_s": "1"}]))["step_time_s"].mid
    assert held is not None
    assert held > 1.3 * free
    assert same == free


@pytest.mark.parametrize(("file", "bound"), [("training.csv", 0.09), ("mlperf_training.csv", 0.09)])
def test_published_runs(truth: Path, file: str, bound: float) -> None:
    """Median error of shipped numbers on open rows (not out of fold; `validate` prints those)."""
    with (truth / file).open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    found = {(p.row_id, p.metric): p for p in answer_training(rows, shipped_parameters())}
    errors = []
    for row in rows:
        line = found.get((row["row_id"], "step_time_s"))
        if row.get("step_time_s") and line and line.mid and row_group(row) != "vtrain_single":
            errors.append(abs(line.mid / float(row["step_time_s"]) - 1.0))
    assert len(errors) > 100
    assert float(np.median(errors)) < bound


def test_keys_keep_layouts_of_one_workload_together() -> None:
    assert workload_key(GPT) == workload_key({**GPT, "tp": "4", "pp": "4"})
    assert workload_key(GPT) != workload_key({**GPT, "global_batch": "768"})


def test_a_micro_batch_per_device_is_data_parallel_and_too_large_a_state_is_cut() -> None:
    row = {
        "row_id": "r", "family": "bigscience", "model": "GPT 52B", "chip": "v100-sxm2-32gb", "chips_total": "64",
        "global_batch": "512", "micro_batch": "8", "precision": "fp16", "framework": "Megatron-DeepSpeed",
        "recompute": "full", "notes": "V100 nodes of 4",
    }  # fmt: skip
    case = read_case(row)
    assert (case.spread.tp, case.spread.pp, case.spread.dp) == (1.0, 1.0, 64.0)
    assert case.spread.zero == 3.0
    assert case.recipe.flat == 1.0
    # its published dimensions, not a guess from the count
    assert (case.network.layers, case.network.hidden, case.network.heads) == (64.0, 8192.0, 32.0)
    small = read_case(row | {"model": "GPT 7.5B", "tp": "4", "pp": "4", "dp": "4", "micro_batch": "1"})
    assert small.spread.zero == 0.0


def test_learned_positions_do_not_make_heads_wider() -> None:
    row = {
        "row_id": "r", "family": "llm_foundry", "model": "MPT-125m", "chip": "a100-sxm4-80gb", "chips_total": "8",
        "params": "148904000", "layers": "12", "hidden": "768", "heads": "12", "ffn": "3072", "vocab": "50368",
        "seq_len": "32768", "global_batch": "32", "micro_batch": "2", "tp": "1", "pp": "1",
    }  # fmt: skip
    assert read_case(row).network.head_dim == 64.0


def test_schedules_in_words() -> None:
    row = {
        "row_id": "r", "family": "torchtitan", "model": "Llama 3.1 405B", "chip": "h100-sxm5-80gb",
        "chips_total": "512", "seq_len": "8192", "micro_batch": "32", "tp": "8", "pp": "8", "precision": "fp8",
        "framework": "torchtitan", "notes": "3D+AsyncTP Interleaved 1F1B",
    }  # fmt: skip
    assert read_case(row).spread.vp == 2.0
    half = read_case(row | {"notes": "schedule v-half"}).spread
    assert (half.in_flight, half.bubble) == (0.5, 0.5)
