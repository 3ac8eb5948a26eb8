"""Checkpoints by how they are quantised: which class is stored and multiplied in what, layer by layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.errors import UsageError
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.model import Model
from chipwise.workload.program import count_entries

LLAMA = find_config("meta-llama/Llama-3.1-8B").data
QWEN_MOE = find_config("Qwen/Qwen3-30B-A3B").data
DEEPSEEK = {k: v for k, v in find_config("deepseek-ai/DeepSeek-V3").data.items() if k != "quantization_config"}


def loaded(base: Any, **quantisation: Any) -> Model:
    return load_model(ModelConfig("m", {**base, "quantization_config": quantisation}, "config.json"))


def formats(model: Model, layer: int | None = None) -> dict[str, tuple[str, str]]:
    """Weight and activation format by class, of the model or of one layer."""
    precision = model.precision
    if layer is not None:
        layers = [x for repeat, x in model.runs for _ in range(repeat)]
        precision = layers[layer].precision or precision
    classes = ("attention", "ffn", "expert")
    return {c: (precision.weight(c).name, precision.activation(c).name) for c in classes}


def size_gb(model: Model) -> float:
    return build(model).weight_bytes / 1e9


# ---- methods -----------------------------------------------------------------------------------------------


def test_block_fp8_counts_a_scale_per_block() -> None:
    model = loaded(LLAMA, quant_method="fp8", weight_block_size=[128, 128])
    assert formats(model)["ffn"] == ("fp8_block", "fp8_block")
    blocks = 32 * (32 * 32 * 2 + 8 * 32 * 2 + 3 * 112 * 32)
    assert count_entries(build(model).blocks(), buffers=True, scales=True) == 8_030_261_248 + blocks


def test_other_blocks_of_fp8() -> None:
    weight = loaded(LLAMA, quant_method="fp8", weight_block_size=[1, 256]).precision.weight("ffn")
    assert (weight.block_rows, weight.block_cols) == (1, 256)


def test_fp8_without_blocks_has_one_scale_per_matrix() -> None:
    parts = build(loaded(LLAMA, quant_method="fp8")).blocks()
    assert count_entries(parts, buffers=True, scales=True) == 8_030_261_248 + 32 * 7


def test_awq_and_gptq_reproduce_published_file_sizes() -> None:
    # hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4 and -GPTQ-INT4: 5.74 GB, 70B AWQ: 39.8 GB
    awq = loaded(LLAMA, quant_method="awq", bits=4, group_size=128, zero_point=True, version="gemm")
    gptq = loaded(LLAMA, quant_method="gptq", bits=4, group_size=128, desc_act=True, sym=True)
    assert formats(awq)["ffn"] == ("int4", "bf16")
    assert size_gb(awq) == pytest.approx(5.74, rel=0.005)
    assert size_gb(gptq) == pytest.approx(5.74, rel=0.005)
    big = find_config("meta-llama/Llama-3.1-70B").data
    large = loaded(big, quant_method="awq", bits=4, group_size=128, zero_point=True)
    assert size_gb(large) == pytest.approx(39.8, rel=0.005)


def test_gptq_groups_and_dynamic_rules() -> None:
    model = loaded(
        LLAMA,
        quant_method="gptq",
        bits=4,
        group_size=32,
        dynamic={"-:.*self_attn.*": {}, r"+:.*layers\.0\.mlp.*": {"bits": 8}},
    )
    assert formats(model)["attention"] == ("bf16", "bf16")
    assert model.precision.weight("ffn").block_cols == 32
    assert formats(model, 0)["ffn"] == ("int8", "bf16")
    assert formats(model, 1)["ffn"] == ("int4", "bf16")


def test_bitsandbytes() -> None:
    # unsloth/Meta-Llama-3.1-8B-bnb-4bit: 5.70 GB
    double = loaded(
        LLAMA, quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True
    )
    assert formats(double)["ffn"] == ("nf4_double", "bf16")
    assert size_gb(double) == pytest.approx(5.70, rel=0.005)
    eight = loaded(LLAMA, quant_method="bitsandbytes", load_in_8bit=True, load_in_4bit=False)
    assert formats(eight)["ffn"] == ("int8", "int8")


def group(weights: dict[str, Any], inputs: dict[str, Any] | None = None, targets: Any = ("Linear",)) -> dict[str, Any]:
    return {"weights": weights, "input_activations": inputs, "targets": list(targets)}


FLOAT8 = {"num_bits": 8, "type": "float", "strategy": "tensor"}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel"}
NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
MXFP4 = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}
W4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}


@pytest.mark.parametrize(
    ("weights", "inputs", "stored", "met"),
    [
        (FLOAT8, FLOAT8, "fp8", "fp8"),
        ({**FLOAT8, "strategy": "channel"}, {**FLOAT8, "strategy": "token"}, "fp8_row", "fp8_row"),
        ({**FLOAT8, "strategy": "block", "block_structure": [128, 128]}, FLOAT8, "fp8_block", "fp8_block"),
        ({**FLOAT8, "strategy": "block", "block_structure": "128x128"}, FLOAT8, "fp8_block", "fp8_block"),
        (FLOAT8, None, "fp8", "bf16"),
        (INT8, {**INT8, "strategy": "token"}, "int8", "int8"),
        (INT8, None, "int8", "bf16"),
        (W4, None, "int4", "bf16"),
        (W4, FLOAT8, "int4", "fp8"),
        (NVFP4, NVFP4, "nvfp4", "nvfp4"),
        (NVFP4, None, "nvfp4", "bf16"),
        (MXFP4, MXFP4, "mxfp4", "mxfp4"),
        ({**FLOAT8, "strategy": "group", "group_size": 32}, {**FLOAT8, "group_size": 32}, "mxfp8", "mxfp8"),
    ],
)
def test_compressed_tensors(weights: Any, inputs: Any, stored: str, met: str) -> None:
    model = loaded(
        LLAMA, quant_method="compressed-tensors", config_groups={"group_0": group(weights, inputs)}, ignore=["lm_head"]
    )
    assert formats(model)["attention"] == formats(model)["ffn"] == (stored, met)


def test_symmetric_integers_have_no_offsets() -> None:
    groups = {"group_0": group(W4)}
    model = loaded(LLAMA, quant_method="compressed-tensors", config_groups=groups)
    assert model.precision.weight("ffn").mean_bits == 4 + 16 / 128


def test_groups_with_targets_of_their_own() -> None:
    groups = {"group_0": group(FLOAT8, FLOAT8), "group_1": group(NVFP4, NVFP4, ["re:.*mlp.experts.*"])}
    model = loaded(QWEN_MOE, quant_method="compressed-tensors", config_groups=groups, ignore=["re:.*lm_head"])
    assert formats(model)["attention"] == ("fp8", "fp8")
    assert formats(model)["expert"] == ("nvfp4", "nvfp4")
    assert model.precision.name == "nvfp4+fp8"


def test_an_fp8_cache_is_read_and_has_no_scale_per_token() -> None:
    scheme = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    groups = {"group_0": group(FLOAT8, FLOAT8)}
    model = loaded(LLAMA, quant_method="compressed-tensors", config_groups=groups, kv_cache_scheme=scheme)
    assert build(model).kv_bytes_per_token() == 65_536


@pytest.mark.parametrize(
    ("algo", "stored", "met"),
    [
        ("FP8", "fp8", "fp8"),
        ("FP8_PER_CHANNEL_PER_TOKEN", "fp8_row", "fp8_row"),
        ("FP8_PB_WO", "fp8_block", "fp8_block"),
        ("NVFP4", "nvfp4", "nvfp4"),
        ("W4A16_AWQ", "int4", "bf16"),
        ("W4A8_AWQ", "int4", "fp8"),
        ("W8A8_SQ_PER_CHANNEL", "int8", "int8"),
        ("MXFP8", "mxfp8", "mxfp8"),
    ],
)
def test_model_optimizer(algo: str, stored: str, met: str) -> None:
    model = loaded(LLAMA, quant_method="modelopt", quant_algo=algo, kv_cache_quant_algo="FP8")
    assert formats(model)["ffn"] == (stored, met)
    assert model.precision.kv.name == "fp8"


def test_model_optimizer_mixed() -> None:
    layers = {f"model.layers.{i}.self_attn.{p}_proj": {"quant_algo": "FP8"} for i in range(48) for p in "qkvo"}
    layers |= {f"model.layers.{i}.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16} for i in range(48)}
    model = loaded(QWEN_MOE, quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=layers)
    assert formats(model)["attention"] == ("fp8", "fp8")
    assert formats(model)["expert"] == ("nvfp4", "nvfp4")
    assert len(model.runs) == 1


def test_model_optimizer_in_a_file_beside_the_config(tmp_path: Path) -> None:
    folder = tmp_path / "Llama-FP8"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(dict(LLAMA)))
    assert load_model(find_config(str(folder))).precision.name == "bf16"
    inside = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    (folder / "hf_quant_config.json").write_text(json.dumps({"producer": {}, "quantization": inside}))
    model = load_model(find_config(str(folder)))
    assert (model.precision.name, model.precision.kv.name) == ("fp8", "fp8")
    (folder / "hf_quant_config.json").write_text("{}")
    with pytest.raises(UsageError, match="no object 'quantization'"):
        find_config(str(folder))


def test_quark() -> None:
    four = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}
    model = loaded(
        DEEPSEEK,
        quant_method="quark",
        global_quant_config={"weight": four, "input_tensors": {**four, "is_dynamic": True}},
        layer_quant_config={},
        exclude=["lm_head", *(f"model.layers.{i}.self_attn.o_proj" for i in range(61)), "re:.*self_attn.*"],
    )
    assert formats(model)["expert"] == formats(model)["ffn"] == ("mxfp4", "mxfp4")
    assert formats(model)["attention"] == ("bf16", "bf16")


def test_fbgemm_leaves_attention_and_two_layers_alone() -> None:
    # meta-llama/Llama-3.1-405B-Instruct-FP8: 410 B entries, 486 GB
    base = find_config("meta-llama/Llama-3.1-405B").data
    names = [f"model.layers.{i}.self_attn.{p}_proj" for i in range(126) for p in "qkvo"]
    names += [f"model.layers.{i}.mlp.{p}_proj" for i in (0, 125) for p in ("gate", "up", "down")]
    model = loaded(base, quant_method="fbgemm_fp8", modules_to_not_convert=["lm_head", *names])
    assert [repeat for repeat, _ in model.runs] == [1, 124, 1]
    assert formats(model, 0)["ffn"] == formats(model, 125)["ffn"] == ("bf16", "bf16")
    assert formats(model, 60)["ffn"] == ("fp8_row", "fp8_row")
    assert formats(model)["attention"] == ("bf16", "bf16")
    assert size_gb(model) == pytest.approx(487, rel=0.005)


def test_gpt_oss_stores_its_experts_alone_in_four_bits() -> None:
    # openai/gpt-oss-20b: 13.8 GB; gpt-oss-120b: 65.2 GB (original/ folder of the model pages)
    model = load_model(find_config("openai/gpt-oss-20b"))
    assert formats(model) == {"attention": ("bf16", "bf16"), "ffn": ("bf16", "bf16"), "expert": ("mxfp4", "bf16")}
    assert size_gb(model) == pytest.approx(13.76, rel=0.002)
    assert size_gb(load_model(find_config("openai/gpt-oss-120b"))) == pytest.approx(65.25, rel=0.002)


def test_deepseek_v4_has_experts_of_another_type() -> None:
    model = load_model(find_config("deepseek-ai/DeepSeek-V4-Flash"))
    assert formats(model)["expert"] == ("mxfp4", "fp8_block")
    assert formats(model)["attention"] == ("fp8_block", "fp8_block")


def test_nvidia_s_deepseek_v4_names_an_algorithm_for_the_experts() -> None:
    base = find_config("deepseek-ai/DeepSeek-V4-Flash").data
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "moe_quant_algo": "NVFP4"}
    model = loaded(base, **fp8)
    assert formats(model)["expert"] == ("nvfp4", "nvfp4")
    assert formats(model)["attention"] == ("fp8_block", "fp8_block")


def test_kimi_k25_quantises_routed_experts_alone() -> None:
    # moonshotai/Kimi-K2.5: 595 GB
    model = load_model(find_config("moonshotai/Kimi-K2.5"))
    assert formats(model) == {"attention": ("bf16", "bf16"), "ffn": ("bf16", "bf16"), "expert": ("int4", "bf16")}
    assert size_gb(model) == pytest.approx(595, rel=0.005)


# ---- exclusions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", ["self_attn", "model.layers.*.self_attn", "re:.*self_attn.*", "*self_attn*", "model.layers.*.self_attn*"]
)
def test_ways_to_leave_out_attention(pattern: str) -> None:
    model = loaded(LLAMA, quant_method="fp8", modules_to_not_convert=[pattern])
    assert formats(model)["attention"] == ("bf16", "bf16")
    assert formats(model)["ffn"] == ("fp8", "fp8")
    assert len(model.runs) == 1


@pytest.mark.parametrize("pattern", ["gate", "mlp.gate", "lm_head", "model.embed_tokens", "re:.*lm_head"])
def test_names_that_are_no_large_matrix_change_nothing(pattern: str) -> None:
    plain = loaded(QWEN_MOE, quant_method="fp8")
    assert loaded(QWEN_MOE, quant_method="fp8", modules_to_not_convert=[pattern]).runs == plain.runs
    assert loaded(QWEN_MOE, quant_method="fp8", modules_to_not_convert=[pattern]).precision == plain.precision


@pytest.mark.parametrize("pattern", ["model.visual.layers.3", "vision_tower.layers.0.self_attn", "mtp.layers.0.mlp"])
def test_layers_of_other_parts_are_not_those_of_the_stack(pattern: str) -> None:
    assert len(loaded(LLAMA, quant_method="fp8", modules_to_not_convert=[pattern]).runs) == 1


def test_layer_one_is_not_layer_eleven() -> None:
    model = loaded(LLAMA, quant_method="fp8", modules_to_not_convert=["model.layers.1.mlp"])
    assert [repeat for repeat, _ in model.runs] == [1, 1, 30]
    assert formats(model, 1) == {**formats(model, 0), "ffn": ("bf16", "bf16")}


def test_shared_experts_are_not_routed_ones() -> None:
    model = loaded(DEEPSEEK, quant_method="fp8", modules_to_not_convert=["re:.*shared_experts.*"])
    assert formats(model, 10)["ffn"] == ("bf16", "bf16")
    assert formats(model, 10)["expert"] == formats(model, 0)["ffn"] == ("fp8", "fp8")


def test_a_class_that_is_named_in_part_goes_with_most_of_it_and_says_so() -> None:
    model = loaded(LLAMA, quant_method="fp8", modules_to_not_convert=["o_proj"])
    assert formats(model)["attention"] == ("fp8", "fp8")
    assert any("attention matrices" in a for a in model.assumptions)


def test_another_precision_takes_the_place_of_all_layers() -> None:
    model = loaded(LLAMA, quant_method="fp8", modules_to_not_convert=["model.layers.1.mlp"])
    plain = load_model(ModelConfig("m", LLAMA, "config.json"))
    assert model.at_precision(plain.precision).runs == plain.runs


def test_gemma_4_nvfp4_leaves_attention_alone() -> None:
    model = load_model(find_config("nvidia/Gemma-4-31B-IT-NVFP4"))
    assert formats(model)["attention"] == ("bf16", "bf16")
    assert formats(model)["ffn"] == ("nvfp4", "nvfp4")
    assert model.precision.kv.name == "fp8"


@pytest.mark.parametrize(("bits", "bits_each"), [(3, 3.5), (4, 4.5), (6, 6.5), (8, 8.5)])
def test_mlx_packs_tables_too(bits: int, bits_each: float) -> None:
    """Groups of 64 with scale and offset of 16 bits; 4 bits of Llama 3.1 8B are 4.52 GB (mlx-community)."""
    said = {"group_size": 64, "bits": bits}
    for keys in ({"quantization": said}, {"quantization": said, "quantization_config": said}):
        model = load_model(ModelConfig("m", {**LLAMA, **keys}, "config.json"))
        assert size_gb(model) == pytest.approx(build(model).parameters * bits_each / 8e9, rel=0.002)
    own = {**said, "mode": "mxfp4", "model.layers.0.mlp.down_proj": {"group_size": 64, "bits": 8, "mode": "affine"}}
    model = load_model(ModelConfig("m", {**LLAMA, "quantization": own}, "config.json"))
    assert formats(model)["ffn"] == ("mxfp4", "bf16")


@pytest.mark.parametrize(
    ("quantisation", "stored", "met"),
    [
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, "int4", "bf16"),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}}, "int4", "bf16"),
        ({"quant_method": "torchao", "quant_type": "int8_dynamic_activation_int8_weight"}, "int8", "int8"),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}}, "int4", "bf16"),
        ({"quant_method": "eetq"}, "int8", "bf16"),
        ({"quant_method": "quanto", "weights": "float8"}, "fp8_row", "bf16"),
    ],
)  # fmt: skip
def test_methods_of_other_tools(quantisation: Any, stored: str, met: str) -> None:
    assert formats(loaded(LLAMA, **quantisation))["ffn"] == (stored, met)


def test_auto_round_leaves_out_what_stays_in_16_bits() -> None:
    extra = {"re:.*self_attn.*": {"bits": 16}, "re:.*mlp.*": {"bits": 8, "group_size": 128}}
    model = loaded(LLAMA, quant_method="auto-round", bits=4, group_size=128, sym=True, extra_config=extra)
    assert formats(model)["attention"] == ("bf16", "bf16")
    assert formats(model)["ffn"] == ("int8", "bf16")


# ---- what is no configuration ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quantisation",
    [
        {"quant_method": "hqq"},
        {"quant_method": "aqlm"},
        {"quant_method": "torchao", "quant_type": {"default": 3}},
        {"quant_method": "quanto", "weights": "int3"},
        {"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp"},
        {"bits": 7, "group_size": 64},
        {"bits": 4, "group_size": 64, "mode": "strange"},
        {"bits": [4], "group_size": 64},
        {"quant_method": 3},
        {"bits": 4},
        {"quant_method": "awq", "bits": 3},
        {"quant_method": "gptq"},
        {"quant_method": "gptq", "bits": 4, "dynamic": [1]},
        {"quant_method": "gptq", "bits": 4, "dynamic": {"-:(": {}}},
        {"quant_method": "fp8", "weight_block_size": [128]},
        {"quant_method": "fp8", "weight_block_size": "big"},
        {"quant_method": "fp8", "weight_block_size": [0, 128]},
        {"quant_method": "fp8", "modules_to_not_convert": "lm_head"},
        {"quant_method": "fp8", "modules_to_not_convert": [1]},
        {"quant_method": "fp8", "modules_to_not_convert": ["re:["]},
        {"quant_method": "fp8", "modules_to_not_convert": ["re:(.+)+x"]},
        {"quant_method": "fp8", "weight_block_size": [128, 10**400]},
        {"quant_method": "awq", "bits": 4, "group_size": 10**400},
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf5"},
        {"quant_method": "compressed-tensors", "config_groups": [1]},
        {"quant_method": "compressed-tensors", "config_groups": {"g": group({"num_bits": 2, "type": "int"})}},
        {"quant_method": "compressed-tensors", "config_groups": {"g": group({**FLOAT8, "num_bits": []})}},
        {"quant_method": "compressed-tensors", "config_groups": {"g": group(FLOAT8, targets=[3])}},
        {"quant_method": "modelopt", "quant_algo": "FP7"},
        {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "INT3"},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": 1}},
        {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp3"}}},
    ],
)
def test_what_is_not_read_is_refused_in_one_line(quantisation: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(LLAMA, **quantisation)
    assert "config.json" in str(caught.value)
    assert "\n" not in str(caught.value)
