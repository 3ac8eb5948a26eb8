"""Rows of training runs as questions: what they say, what their publications did, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from chipwise.api.loaded import load
from chipwise.api.suites.training import answered, lines_of, request_of
from chipwise.api.train import situate
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.errors import ChipwiseError
from chipwise.evidence.rows import Row
from chipwise.evidence.training_measured import measured_of, target_of, workload_key
from chipwise.evidence.training_rows import read_run
from chipwise.predict.training.dims import transformer
from chipwise.predict.training.values import TrainSpread

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


def fields(row: Row) -> Mapping[str, Any]:
    return read_run(row).fields


def spread(row: Row) -> TrainSpread:
    return situate(request_of(read_run(row)).asked(), shipped_parameters())[1].spread


def test_a_row_is_read_as_it_says() -> None:
    found = fields(GPT)
    assert found["model"].startswith("transformer:layers=48,hidden=8192,heads=64,ffn=32768,vocab=51200")
    assert found["layout"] == "tp=8,pp=2,cp=1,micro_batch=1,recompute=full,offload=0"
    assert (found["trainer"], found["precision"], found["network"]) == ("megatron-2020", "fp16", "nic=200Gb/s")
    assert read_run(GPT).assumed == ()
    s = spread(GPT)
    assert (s.tp, s.pp, s.dp, s.full, s.zero) == (8.0, 2.0, 32.0, 1.0, 0.0)


def test_counts_that_a_publication_gives_elsewhere() -> None:
    """Llama 2's card says hours and no chips, its paper says both the chips and the batch."""
    card = {"row_id": "x", "model": "Llama-2-70B", "framework": "Meta", "chip": "a100-sxm4-80gb", "seq_len": "4096"}
    assert (fields(card)["counts"], fields(card)["global_batch"]) == ("2048", 1024)
    assert "global batch" not in read_run(card).assumed


def test_a_row_may_count_the_dies_of_a_package() -> None:
    row = {
        **GPT,
        "chip": "ascend-910c (Atlas A3)",
        "accelerator": "ascend-910c (Atlas A3)",
        "framework": "MindSpeed-LLM",
    }
    run = read_run({**row, "precision": "bf16"})
    assert (run.fields["chips"], run.fields["counts"]) == ("ascend-910c", "256")
    plan = answered(run)
    said = {line.metric: line.mid for line in lines_of(run, plan, shipped_parameters())}
    assert said["tokens_per_s_per_chip"] == pytest.approx(plan.tokens_per_s.mid / 512)
    assert said["tflops_per_chip"] == pytest.approx(plan.tflops_per_chip / 2)
    assert said["memory_gb"] == pytest.approx(plan.memory_bytes / 2e9)


def test_measured_columns_change_nothing() -> None:
    assert fields(GPT) == fields({**GPT, "step_time_s": "1000", "tflops_per_chip": "1", "memory_gb": "3"})


def test_a_benchmark_is_asked_over_the_tokens_to_its_target() -> None:
    found = fields(MLPERF)
    assert (found["model"], found["method"]) == ("meta-llama/Llama-2-70b-hf", "lora")
    assert (found["trainer"], found["precision"]) == ("nemo-tuned", "fp8")
    target = target_of(MLPERF)
    assert target is not None
    plan = answered(read_run(MLPERF))
    steps = target.samples * (1.0 + target.evaluation) / 8.0
    assert plan.days.mid * 86400.0 == pytest.approx(steps * plan.step_s.mid, rel=1e-3)
    assert (spread(MLPERF).cp, spread(MLPERF).dp) == (2.0, 8.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "Wan 2.1 14B"}, "diffusion"),
        ({"model": "Switch 4 experts MoE", "layers": ""}, "experts are not known"),
        ({"model": "mystery", "layers": "", "hidden": ""}, "no dimensions"),
        ({"chips_total": ""}, "chips_total"),
        ({"chip": "", "accelerator": "Abacus 9000"}, "Abacus"),
        ({"hidden": "wide"}, "hidden = 'wide' cannot be read"),
        ({"precision": "posit8"}, "posit8"),
    ],
)
def test_bad_rows_are_refused_by_name(change: dict[str, str], says: str) -> None:
    with pytest.raises(ChipwiseError, match=says):
        read_run({**GPT, **change})


def test_experts_come_from_the_models_configuration() -> None:
    row = {**GPT, "model": "Qwen3_30B_a3B", "layers": "48", "hidden": "2048", "heads": "32", "ffn": "768"}
    assert fields(row)["model"] == "Qwen/Qwen3-30B-A3B"
    own = {**row, "model": "moe", "experts": "8", "topk": "2"}
    assert fields(own)["model"].endswith("experts=8,top_k=2,gated=0,tied=1")


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
    network = transformer(load(fields(row)["model"]).graph)
    assert (network.head_dim, network.gates) == (128.0, 2.0)
    learned = {**GPT, "model": "MPT-125m", "params": "148904000", "layers": "12", "hidden": "768"}
    learned |= {"heads": "12", "ffn": "3072", "vocab": "50368"}
    assert "head_dim" not in fields(learned)["model"]
    assert transformer(load(fields(learned)["model"]).graph).gates == 1.0  # MPT has no gates, whatever its count


@pytest.mark.parametrize(
    ("model", "layers", "hidden", "heads", "ffn", "width", "tied"),
    [
        ("Qwen-1.8B", 24, 2048, 16, 5504, 128.0, 0.0),
        ("Qwen1.5-4B", 40, 2560, 20, 6912, 128.0, 0.0),
        ("Qwen1.5-0.5B", 24, 1024, 16, 2816, 64.0, 1.0),
    ],
)
def test_a_count_holds_two_tables_unless_they_are_one(
    model: str, layers: int, hidden: int, heads: int, ffn: int, width: float, tied: float
) -> None:
    """Published configurations of Qwen and Qwen1.5, whose names are rounded counts of parameters."""
    row = {**GPT, "model": model, "layers": f"{layers}", "hidden": f"{hidden}", "heads": f"{heads}"}
    network = transformer(load(fields({**row, "ffn": f"{ffn}", "vocab": "151936"})["model"]).graph)
    assert (network.head_dim, network.gates, network.tied) == (width, 2.0, tied)


def test_a_name_whose_dimensions_agree_is_that_model() -> None:
    row = {**GPT, "model": "Llama-3.2-1B", "layers": "16", "hidden": "2048", "heads": "32", "ffn": "8192"}
    assert fields(row)["model"] == "meta-llama/Llama-3.2-1B"
    assert fields({**row, "layers": "8"})["model"].startswith("transformer:layers=8")


def test_what_is_blank_stays_open_and_is_said() -> None:
    run = read_run({**GPT, "seq_len": "", "tp": "", "pp": "", "dp": "", "global_batch": ""})
    assert run.assumed == ("sequences", "global batch", "layout")
    assert not {"seq", "global_batch"} & set(run.fields)


def test_batches_and_lengths_in_rounded_figures() -> None:
    assert fields({**GPT, "global_batch": "1540"})["global_batch"] == 1536
    row = {**GPT, "seq_len": "1048580", "cp": "16", "tp": "8", "pp": "1", "global_batch": "4", "model": "GPT x"}
    assert fields(row)["seq"] == "1048576"


def test_flops_stand_in_for_time_by_the_convention_of_the_trainer() -> None:
    row = {**GPT, "tflops_per_chip": "138.0"}
    network = transformer(load(fields(row)["model"]).graph)
    seconds, memory = measured_of(row, network, spread(row), "hardware")
    # 96 b s L h^2 (1 + s / 6h + V / 16 L h), Narayanan et al. 2021; twice the pairs are counted
    flops = 96 * 1536 * 2048 * 48 * 8192**2 * (1 + 2048 / (6 * 8192) + 51200 / (16 * 48 * 8192))
    assert seconds == pytest.approx(flops / (138e12 * 512), rel=0.02)
    assert np.isnan(memory)


def test_keys_keep_layouts_of_one_workload_together() -> None:
    assert workload_key(GPT) == workload_key({**GPT, "tp": "4", "pp": "4"})
    assert workload_key(GPT) != workload_key({**GPT, "global_batch": "768"})


def test_schedules_in_words() -> None:
    row = {
        "row_id": "r", "family": "amd_primus", "model": "Llama 3.1 405B", "chip": "mi355x", "chips_total": "512",
        "seq_len": "8192", "global_batch": "512", "tp": "8", "pp": "8", "vp": "1", "framework": "Primus",
    }  # fmt: skip
    assert spread(row | {"notes": "Interleaved 1F1B", "vp": ""}).vp == 2.0
    half = spread(row | {"notes": "schedule v-half"})
    assert (half.in_flight, half.vp) == (0.5, 2.0)
    assert spread(row).bubble == 1.0


def test_plain_1f1b_has_no_virtual_stages() -> None:
    row = {
        "row_id": "r", "family": "torchtitan", "model": "Llama 3.1 405B", "chip": "h100-sxm5-80gb",
        "chips_total": "512", "seq_len": "65536", "global_batch": "32", "tp": "8", "pp": "8", "cp": "2", "dp": "4",
        "framework": "torchtitan", "notes": "4D 1F1B AsyncTP; local batch 8",
    }  # fmt: skip
    plain = spread(row)
    assert (plain.vp, plain.bubble) == (1.0, 1.0)
    assert spread(row | {"notes": "3D+AsyncTP Interleaved 1F1B"}).vp == 2.0


def test_replicas_that_are_counted_leave_the_rest_to_tensor_parallelism() -> None:
    row = {
        "row_id": "r", "family": "bigscience", "model": "GPT 52B", "chip": "v100-sxm2-32gb", "chips_total": "64",
        "seq_len": "1024", "global_batch": "768", "micro_batch": "48", "dp": "16", "precision": "fp16",
        "framework": "Megatron-DeepSpeed", "system": "Jean Zay", "notes": "V100 nodes of 4", "recompute": "full",
    }  # fmt: skip
    found = spread(row)
    assert (found.tp, found.dp, found.micro_batch) == (4.0, 16.0, 48.0)


def test_a_release_decides_how_experts_run() -> None:
    row = {
        "row_id": "r", "family": "megatron_bridge", "model": "Qwen3_30B_a3B", "chip": "gb200-nvl72", "chips_total": "8",
        "seq_len": "4096", "global_batch": "512", "micro_batch": "4", "tp": "1", "pp": "1", "dp": "8", "ep": "8",
        "precision": "MXFP8",
    }  # fmt: skip

    def took(release: str) -> float:
        return answered(read_run(row | {"framework": f"Megatron-Bridge {release} NeMo Container"})).step_s.mid

    assert took("26.08") == took("26.06") < 0.85 * took("26.04")


def test_a_trainer_that_is_made_of_another_is_read_by_its_own_name() -> None:
    """Megatron-SWIFT sums gradients in fp32, which NeMo on the same chip does not; an H20 is no H200."""
    asked = fields(GPT | {"framework": "Megatron-SWIFT (Megatron-Core)", "chip": "", "accelerator": "H20"})
    assert (asked["trainer"], asked["chips"]) == ("megatron-swift", "h20-96gb")
    assert fields(GPT | {"framework": "Megatron-Core", "chip": "h100-sxm5-80gb"})["trainer"] == "nemo"


def test_a_row_in_the_words_of_the_question_asks_so() -> None:
    row = {
        **GPT, "model": "Qwen/Qwen3-0.6B", "layers": "", "hidden": "", "heads": "", "framework": "torchtitan-eager",
        "trainer": "pytorch-fsdp", "memory": "loss=chunked", "adapter": "rank=8", "offload": "weights",
    }  # fmt: skip
    asked = fields(row)
    assert asked["model"] == "Qwen/Qwen3-0.6B"
    assert (asked["trainer"], asked["memory"], asked["adapter"]) == ("pytorch-fsdp", "loss=chunked", "rank=8")
    assert "offload=1" in asked["layout"]
    assert fields({**row, "trainer": ""})["trainer"] == "torchtitan-eager"  # an id is no name to be found in


def test_experts_that_are_whole_stay_so() -> None:
    assert "ep=1" in fields({**GPT, "ep": "1"})["layout"]
