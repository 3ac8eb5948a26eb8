"""Linear attention and state spaces: counts, states, scans; towers and prediction modules."""

from __future__ import annotations

import json

import pytest
from flops import by_kind, by_name, ops_of, products
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_configs import (
    ERNIE_21B,
    EVERY,
    GLM_4_9B,
    GRANITE_4_SMALL,
    HYBRID,
    KIMI_K3,
    KIMI_LINEAR,
    MAMBA2,
    MINIMAX_TEXT_01,
    NEMOTRON_3_NANO,
    NEMOTRON_NANO_9B,
    OTHER,
    QWEN2_VL_7B,
    QWEN3_NEXT,
    QWEN25_VL_7B,
    STEP_35,
    graph_of,
    model_of,
)

from chipwise.catalog.configs import find_config, parse_config
from chipwise.errors import ChipwiseError, UsageError
from chipwise.workload.axes import Sizes
from chipwise.workload.build import build
from chipwise.workload.load import load_model
from chipwise.workload.program import count_entries
from chipwise.workload.step import decode, prefill


def test_published_counts():
    assert graph_of(NEMOTRON_NANO_9B).parameters == 8_888_227_328
    assert graph_of(MINIMAX_TEXT_01).parameters == 456_089_655_296
    assert graph_of(GRANITE_4_SMALL).parameters == 32_207_337_984
    assert graph_of(MAMBA2).parameters == 2_702_599_680
    assert graph_of(GLM_4_9B).parameters == 9_400_279_040
    assert count_entries(graph_of(ERNIE_21B).blocks(), buffers=True) == 21_825_437_888
    assert count_entries(graph_of(NEMOTRON_3_NANO).blocks(), buffers=True) == 31_577_940_288
    assert count_entries(graph_of(KIMI_LINEAR).blocks(), buffers=True) == 49_122_681_728


def test_kimi_k3_by_the_shapes_of_its_checkpoint():
    m, heads = 7168, 96 * 128
    low_rank = (128 + 96) * m + heads * 128
    delta = 69 * (3 * heads * m + low_rank + 3 * heads * 4 + heads + 128 + 96)
    latent = 24 * (1536 * m + 1536 + 18432 * 1536 + 576 * m + 512 + 24576 * 512)
    every = 93 * (2 * heads * m + 6 * m)
    experts = 92 * (896 * (3 * 3072 * 3584 + m) + 2 * 3584 * m + 3584 + 3 * 6144 * m)
    assert graph_of(KIMI_K3).parameters == delta + latent + every + experts + 3 * 33792 * m + 2 * 163840 * m + 3 * m


def test_qwen3_next_with_the_module_of_its_checkpoint():
    graph = graph_of(QWEN3_NEXT)
    assert (graph.parameters + count_entries(graph.extra("mtp").blocks)) / 1e9 == pytest.approx(81.3, rel=0.001)


@pytest.mark.parametrize(("config", "published"), [(QWEN2_VL_7B, 8_291_375_616), (QWEN25_VL_7B, 8_292_166_656)])
def test_vision_towers_to_the_last_digit(config, published):
    graph = graph_of(config)
    assert graph.parameters + count_entries(graph.extra("vision").blocks) == published
    assert graph.active_params() < graph.parameters, "the tower is no part of what a token touches"


@pytest.mark.parametrize("config", (HYBRID | OTHER).values(), ids=HYBRID | OTHER)
@pytest.mark.parametrize("step", [prefill(1, 2048), decode(8, 2048)], ids=["prefill", "decode"])
def test_products_are_twice_the_active_parameters(config, step):
    graph = graph_of(config)
    assert by_kind(graph, step)["weights"] == pytest.approx(products(graph, step.tokens, step.sequences), rel=1e-6)


def test_state_does_not_grow_with_the_context():
    graph = graph_of(QWEN3_NEXT)
    assert graph.kv_bytes_per_token() == 12 * 2 * 2 * 256 * 2
    per_layer = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2
    assert graph.state_bytes() == 36 * per_layer
    assert graph.kv_bytes(5) == 5 * graph.kv_bytes_per_token()
    assert float(graph.kv_bytes(5, scope="all")) == graph.kv_bytes(5) + graph.state_bytes()


def test_state_of_a_state_space():
    graph = graph_of(NEMOTRON_NANO_9B)
    layers = NEMOTRON_NANO_9B["hybrid_override_pattern"].count("M")
    channels = 128 * 80 + 2 * 8 * 128
    assert graph.state_bytes() == layers * (128 * 80 * 128 * 4 + 3 * channels * 2)


def test_decoding_reads_and_writes_every_state_once():
    graph, batch = graph_of(NEMOTRON_3_NANO), 16
    moved = sum(
        repeat * float(op.kv_bytes)
        for repeat, op in ops_of(graph, decode(batch, 10))
        if op.name in ("state_space", "convolution")
    )
    assert moved == pytest.approx(2 * batch * graph.state_bytes())


def test_scans_are_linear_in_tokens():
    for config, name in ((QWEN3_NEXT, "delta_rule"), (NEMOTRON_3_NANO, "state_space"), (MINIMAX_TEXT_01, "lightning")):
        graph = graph_of(config)
        one, four = by_name(graph, prefill(1, 1000), name), by_name(graph, prefill(1, 4000), name)
        assert four == pytest.approx(4 * one)
        assert one > 1000 * by_name(graph, decode(1, 1000), name), "chunks cost extra products"


def test_scan_per_token_and_head():
    assert by_name(graph_of(QWEN3_NEXT), decode(1, 0), "delta_rule") == 36 * 6 * 32 * 128 * 128
    assert by_name(graph_of(NEMOTRON_NANO_9B), decode(1, 0), "state_space") == 27 * 4 * 128 * 80 * 128


def test_layers_hold_one_half_where_the_pattern_says_so():
    graph = graph_of(NEMOTRON_3_NANO)
    assert graph.layers == 52
    kinds = [{n.name for n in block.nodes} for _, block in graph.distinct()]
    assert not any("attention_norm" in names and "ffn_norm" in names for names in kinds)


def test_pattern_by_letters_and_by_names_agree():
    names = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
    by_letter = NEMOTRON_3_NANO["hybrid_override_pattern"]
    by_name_ = {k: v for k, v in NEMOTRON_3_NANO.items() if k != "hybrid_override_pattern"}
    by_name_["layers_block_type"] = [names[letter] for letter in by_letter]
    assert graph_of(by_name_).parameters == graph_of(NEMOTRON_3_NANO).parameters


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"hybrid_override_pattern": "MXM", "num_hidden_layers": 3}, "X"),
        ({"hybrid_override_pattern": "ME"}, "num_hidden_layers"),
        ({"hybrid_override_pattern": ""}, "layers_block_type"),
        ({"n_groups": 7}, "n_groups"),
        ({"mamba_num_heads": True}, "mamba_num_heads"),
        ({"mamba_ssm_cache_dtype": "fp7"}, "fp7"),
    ],
)
def test_bad_state_spaces_are_refused_by_the_fact(change, named):
    with pytest.raises(UsageError, match=named):
        model_of(NEMOTRON_3_NANO | change)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (QWEN3_NEXT | {"layer_types": ["full_attention"]}, "layer_types"),
        (QWEN3_NEXT | {"linear_num_value_heads": 30}, "linear_num_key_heads"),
        (KIMI_LINEAR | {"linear_attn_config": {"num_heads": 1}}, "head_dim"),
        (STEP_35 | {"moe_layers_enum": "1,x"}, "moe_layers_enum"),
        (MINIMAX_TEXT_01 | {"attn_type_list": [2] * 80}, "attn_type_list"),
    ],
)
def test_bad_hybrids_are_refused_by_the_fact(config, named):
    with pytest.raises(UsageError, match=named):
        model_of(config)


def test_blocks_left_out_by_architecture_search():
    blocks = [
        {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 2.625, "no_op": False}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 5.25, "no_op": False}},
        {"attention": {"n_heads_in_group": 16, "no_op": False}, "ffn": {"no_op": True}},
    ]
    config = {
        "model_type": "nemotron-nas",
        "hidden_size": 8192,
        "num_hidden_layers": 3,
        "num_attention_heads": 64,
        "vocab_size": 128256,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
        "block_configs": blocks,
    }
    graph = graph_of(config)
    attention = [2 * 8192 * 8192 + 2 * 8192 * kv * 128 for kv in (8, 4)]
    feed = [3 * 8192 * 14336, 3 * 8192 * 28672]
    assert graph.parameters == sum(attention) + sum(feed) + 2 * 8192 * 128256 + 5 * 8192
    with pytest.raises(UsageError, match="replace_with_linear"):
        graph_of(config | {"block_configs": [*blocks[:2], {"attention": {"replace_with_linear": True}}]})


def test_sharded_states_add_up():
    graph = graph_of(QWEN3_NEXT)
    block = next(b for _, b in graph.distinct() if "Z" in b.axes)
    whole, half = Sizes(block.axes), Sizes(block.axes, {"G": 2, "Z": 2})
    for cache in block.caches:
        assert 2 * float(cache.bytes(half, 100)) == float(cache.bytes(whole, 100))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.integers(0, 200_000), st.integers(0, 200_000), st.sampled_from([1, 16]))
def test_more_context_never_holds_less(name, a, b, page):
    graph = graph_of(EVERY[name])
    few, many = sorted((a, b))
    for scope in ("attention", "index", "state", "all"):
        assert graph.kv_bytes(few, page, scope=scope) <= graph.kv_bytes(many, page, scope=scope)
        assert graph.kv_bytes(many, page, scope=scope) >= graph.kv_bytes(many, scope=scope)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.integers(1, 64), st.integers(2, 5000), st.integers(0, 5000))
def test_work_grows_with_the_prompt(name, batch, tokens, cached):
    graph = graph_of(EVERY[name])
    one, more = (by_kind(graph, prefill(batch, tokens, cached)), by_kind(graph, prefill(batch, tokens + 1, cached)))
    assert all(more[kind] >= one[kind] for kind in one)
    held = by_kind(graph, prefill(batch, tokens, cached + 1))
    assert all(held[kind] >= one[kind] * (1 - 1e-12) for kind in one)


@pytest.mark.parametrize("config", EVERY.values(), ids=EVERY)
def test_half_of_every_axis_is_no_more_than_the_whole(config):
    graph = graph_of(config)
    for _, block in graph.distinct():
        whole = Sizes(block.axes)
        half = Sizes(block.axes, {axis: 2 for axis in "HKFUEXSBGZO" if axis in block.axes})
        for tensor in block.tensors:
            assert tensor.local_bytes(half) <= tensor.local_bytes(whole)
        for node in block.nodes:
            for small, large in zip(node.ops(half, prefill(1, 100)), node.ops(whole, prefill(1, 100)), strict=True):
                assert small.flops <= large.flops
                assert small.bytes <= large.bytes


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 300),
    st.integers(10**9, 10**30),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.lists(st.one_of(st.integers(-3, 200), st.text(max_size=3), st.none()), max_size=5),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(EVERY)), st.data())
def test_hostile_configurations_load_or_say_why(name, data):
    config = dict(EVERY[name])
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=3, unique=True)):
        if data.draw(st.booleans()):
            config[key] = data.draw(HOSTILE)
        else:
            del config[key]
    if "vision_config" in config and isinstance(config["vision_config"], dict) and data.draw(st.booleans()):
        inner = data.draw(st.sampled_from(sorted(config["vision_config"])))
        config["vision_config"] = config["vision_config"] | {inner: data.draw(HOSTILE)}
    try:
        graph = build(load_model(parse_config(json.dumps(config), name, "config.json")))
    except ChipwiseError:
        return
    assert graph.parameters > 0
    assert graph.kv_bytes(100) >= 0


@pytest.mark.parametrize(
    "text", ['{"model_type": "nemotron_h", "model_type": "mimo"}', "[" * 100_000, "[1]", "{", "NaN"]
)
def test_files_that_are_no_configuration(text):
    with pytest.raises(UsageError):
        load_model(parse_config(text, "x", "config.json"))


# ---- state spaces beside attention, short convolutions -------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("tiiuae/Falcon-H1-0.5B-Instruct", 521_411_104),
        ("ai21labs/Jamba-v0.1", 51_570_323_328),
        ("LiquidAI/LFM2-1.2B", 1_170_340_608),
        ("HuggingFaceTB/SmolLM3-3B", 3_075_098_624),
        ("tencent/Hunyuan-A13B-Instruct", 80_393_183_232),
        ("LGAI-EXAONE/EXAONE-4.0-32B", 32_003_216_384),
        ("Snowflake/snowflake-arctic-instruct", 478_584_608_768),
        ("poolside/laguna-XS.2", 33_442_617_088),
        ("skt/A.X-K1", 518_983_059_456),
    ],
)
def test_published_checkpoints_hold_as_many_entries(name: str, entries: int) -> None:
    graph = build(load_model(find_config(name)))
    assert graph.parameters == pytest.approx(entries, rel=1e-4)


def test_falcon_h1_keeps_a_cache_and_a_state_in_every_layer() -> None:
    graph = build(load_model(find_config("tiiuae/Falcon-H1-0.5B-Instruct")))
    assert graph.kv_bytes_per_token() == 36 * 2 * 2 * 64 * 2
    assert graph.state_bytes() == 36 * (24 * 64 * 128 * 4 + (1536 + 2 * 128) * 3 * 2)


def test_lfm2_caches_keys_in_its_few_attention_layers() -> None:
    graph = build(load_model(find_config("LiquidAI/LFM2-1.2B")))
    assert graph.kv_bytes_per_token() == 6 * 2 * 8 * 64 * 2
    assert graph.state_bytes() == 10 * 2048 * 2 * 2


def test_jamba_has_one_attention_layer_in_eight() -> None:
    graph = build(load_model(find_config("ai21labs/Jamba-v0.1")))
    assert graph.kv_bytes_per_token() == 4 * 2 * 8 * 128 * 2
    assert graph.state_bytes() == 28 * (2 * 4096 * 16 * 4 + 2 * 4096 * 3 * 2)


def test_names_of_operators_stay_apart_where_two_mixers_share_a_layer() -> None:
    graph = build(load_model(find_config("tiiuae/Falcon-H1-0.5B-Instruct")))
    names = [node.name for node in graph.distinct()[0][1].nodes]
    assert len(set(names)) == len(names)


# ---- as transformers 5 writes them ---------------------------------------------------------------------------


def test_gemma_4_with_overrides_by_layer_is_the_same_model() -> None:
    keys = dict(find_config("google/gemma-4-31b").data)
    inner = dict(keys.get("text_config") or keys)
    far = {"head_dim": inner.pop("global_head_dim"), "num_key_value_heads": inner.pop("num_global_key_value_heads")}
    full = [i for i, kind in enumerate(inner["layer_types"]) if kind == "full_attention"]
    inner["per_layer_config"] = {f"{i:02}": far for i in full}
    saved = {**keys, "text_config": inner} if "text_config" in keys else inner
    there = model_of(keys)
    assert model_of(saved).runs == there.runs


def test_step_with_kinds_of_feed_forwards_is_the_same_model() -> None:
    layers = STEP_35["num_hidden_layers"]
    keys = {**STEP_35, "use_head_wise_attn_gate": True, "use_moe_router_bias": True, "moe_layers_enum": None}
    first = {**keys, "first_k_dense_replace": 3, "mlp_layer_types": None}
    kinds = ["dense" if i < 3 else "sparse" for i in range(layers)]
    other = STEP_35.get("attention_other_setting") or {}
    heads = other.get("num_attention_heads", STEP_35["num_attention_heads"])
    drop = ("attention_other_setting", "use_head_wise_attn_gate", "use_moe_router_bias", "moe_layers_enum")
    saved = {k: v for k, v in keys.items() if k not in drop}
    saved |= {"mlp_layer_types": kinds, "num_sliding_attention_heads": heads}
    assert model_of(saved).runs == model_of(first).runs


def test_an_untied_head_stays_untied_where_the_part_has_the_default_of_its_class() -> None:
    keys = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1}
    keys |= {"num_key_value_heads": 1, "head_dim": 64, "intermediate_size": 64, "vocab_size": 10}
    part = {**keys, "model_type": "qwen3_vl_text", "tie_word_embeddings": True}
    whole = {"model_type": "qwen3_vl", "tie_word_embeddings": False, "text_config": part}
    assert not model_of(whole).tied
    assert model_of({**whole, "tie_word_embeddings": True}).tied
