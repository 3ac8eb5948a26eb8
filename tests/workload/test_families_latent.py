"""Latent attention: counts, caches, and the two forms of its arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flops import by_kind, by_name, ops_of, products
from published_configs import (
    DEEPSEEK_V2,
    DEEPSEEK_V2_LITE,
    DEEPSEEK_V3,
    DEEPSEEK_V4_FLASH,
    DEEPSEEK_V32,
    GLM_46,
    LATENT,
    MIMO_V2_FLASH,
    MINIMAX_M3,
    STEP_35,
    graph_of,
    model_of,
)

from chipwise.errors import UsageError
from chipwise.workload.op import causal_pairs
from chipwise.workload.program import count_entries
from chipwise.workload.step import Segment, Step, decode, prefill


def entries(graph, *, extra="", buffers=False):
    parts = graph.extra(extra).blocks if extra else graph.blocks()
    return count_entries(parts, buffers=buffers)


def test_published_counts():
    assert graph_of(DEEPSEEK_V2).parameters == 235_741_434_880
    assert graph_of(DEEPSEEK_V2_LITE).parameters == 15_706_484_224
    assert graph_of(DEEPSEEK_V3).parameters == 671_026_404_352


def test_checkpoint_of_deepseek_v3_with_its_module_and_copies():
    graph = graph_of(DEEPSEEK_V3)
    table = graph.model.hidden * graph.model.vocab
    stored = entries(graph, buffers=True) + entries(graph, extra="mtp", buffers=True) + 2 * table
    assert stored == 684_489_845_504


@pytest.mark.parametrize(
    ("config", "total_b", "active_b"),
    [(DEEPSEEK_V3, 671, 37), (DEEPSEEK_V2, 236, 21), (DEEPSEEK_V4_FLASH, 284, 13), (MIMO_V2_FLASH, 309, 15)],
)
def test_advertised_sizes(config, total_b, active_b):
    graph = graph_of(config)
    assert graph.parameters / 1e9 == pytest.approx(total_b, rel=0.01)
    assert graph.active_params() / 1e9 == pytest.approx(active_b, rel=0.05)


def test_glm_46_with_its_module():
    graph = graph_of(GLM_46)
    assert (graph.parameters + entries(graph, extra="mtp")) / 1e9 == pytest.approx(357, rel=0.003)
    assert graph.active_params() / 1e9 == pytest.approx(32, rel=0.05)


def test_step_35_sliding_layers_have_more_heads():
    graph = graph_of(STEP_35)
    assert graph.parameters / 1e9 == pytest.approx(196, rel=0.01)
    assert {block.axes["H"] for _, block in graph.distinct()} == {64, 96}


@pytest.mark.parametrize("config", LATENT.values(), ids=LATENT)
@pytest.mark.parametrize("step", [prefill(2, 4096), decode(16, 4096)], ids=["prefill", "decode"])
def test_products_are_twice_the_active_parameters(config, step):
    graph = graph_of(config)
    assert by_kind(graph, step)["weights"] == pytest.approx(products(graph, step.tokens, step.sequences), rel=1e-6)


def test_expanded_attention_of_a_prompt():
    graph, tokens = graph_of(DEEPSEEK_V3), 1000
    expected = 61 * 2 * causal_pairs(tokens, tokens) * 128 * (128 + 64 + 128)
    assert by_kind(graph, prefill(1, tokens))["attention"] == pytest.approx(expected)


def test_absorbed_attention_reads_the_latent_once():
    graph, batch, context = graph_of(DEEPSEEK_V3), 32, 5000
    step = decode(batch, context)
    assert by_kind(graph, step)["attention"] == pytest.approx(61 * 2 * batch * 5001 * 128 * (2 * 512 + 64))
    read = sum(repeat * float(op.kv_bytes) for repeat, op in ops_of(graph, step))
    assert read == pytest.approx(61 * batch * 5001 * (512 + 64) * 2)


def test_cached_prefix_is_expanded_again():
    graph = graph_of(DEEPSEEK_V3)
    fresh, cached = prefill(1, 1000), prefill(1, 1000, cached=3000)
    assert by_name(graph, cached, "kv_up") == pytest.approx(4 * by_name(graph, fresh, "kv_up"))
    assert by_name(graph, cached, "attention") == pytest.approx(
        by_name(graph, fresh, "attention") * causal_pairs(1000, 4000) / causal_pairs(1000, 1000)
    )


def test_mixed_step_is_the_sum_of_its_segments():
    graph = graph_of(DEEPSEEK_V32)
    a, b = decode(8, 3000), prefill(1, 512)
    both = by_kind(graph, a + b)
    assert both["attention"] == pytest.approx(by_kind(graph, a)["attention"] + by_kind(graph, b)["attention"])


def test_sparse_attention_stops_at_the_chosen_tokens():
    graph = graph_of(DEEPSEEK_V32)
    long, longer = decode(1, 50_000), decode(1, 100_000)
    assert by_name(graph, long, "attention") == by_name(graph, longer, "attention")
    assert by_name(graph, long, "attention") == pytest.approx(61 * 2 * 2048 * 128 * (2 * 512 + 64))
    assert by_name(graph, longer, "index_score") == pytest.approx(61 * 2 * 100_001 * 64 * 129)
    short = decode(1, 1000)
    dense = graph_of(DEEPSEEK_V3)
    assert by_name(graph, short, "attention") == pytest.approx(by_name(dense, short, "attention"))


def test_caches_by_scope():
    dense, sparse = graph_of(DEEPSEEK_V3), graph_of(DEEPSEEK_V32)
    assert dense.kv_bytes_per_token() == 61 * 576 * 2 == 70_272
    assert sparse.kv_bytes_per_token() == 70_272
    assert sparse.kv_bytes_per_token(scope="index") == 61 * (128 + 4)
    assert sparse.kv_bytes(10, scope="all") == sparse.kv_bytes(10) + sparse.kv_bytes(10, scope="index")
    assert dense.kv_bytes(10, scope="state") == 0


def test_compressed_caches():
    graph = graph_of(DEEPSEEK_V4_FLASH)
    # 43 windows of 128; 21 layers with an entry per 4 tokens, 20 with one per 128; one shared head of 512
    windows = 43 * 128 * 512 * 2
    assert graph.kv_bytes(12_800) == windows + (21 * 3200 + 20 * 100) * 512 * 2
    assert graph.kv_bytes_per_token() == pytest.approx((21 / 4 + 20 / 128) * 1024)
    assert graph.kv_bytes_per_token(scope="index") == pytest.approx(21 / 4 * 132)
    # decoding reads the window, all of the rare entries and the best 512 of the others
    read = sum(
        repeat * float(op.kv_bytes) for repeat, op in ops_of(graph, decode(1, 127_999)) if op.name == "attention"
    )
    assert read == pytest.approx((43 * 128 + 21 * 512 + 20 * 1000) * 1024)


def test_layers_that_take_over_a_choice_have_no_index():
    every = graph_of(DEEPSEEK_V32)
    some = graph_of(DEEPSEEK_V32 | {"index_topk_freq": 4, "index_skip_topk_offset": 3})
    full = sum(1 for i in range(61) if max(i - 2, 0) % 4 == 0)
    index = 1536 * 64 * 128 + 7168 * 128 + 7168 * 64 + 2 * 128
    assert every.parameters - some.parameters == (61 - full) * index
    assert some.kv_bytes_per_token(scope="index") == full * 132
    step = decode(1, 50_000)
    assert by_name(some, step, "attention") == by_name(every, step, "attention")
    with pytest.raises(UsageError, match="index kind"):
        graph_of(DEEPSEEK_V32 | {"indexer_types": ["shared"] * 61})


def test_blocks_chosen_for_grouped_queries():
    graph = graph_of(MINIMAX_M3)
    assert graph.parameters / 1e9 == pytest.approx(426, rel=0.01)
    assert graph.kv_bytes_per_token() == 60 * 2 * 4 * 128 * 2
    step = decode(1, 99_999)
    assert by_name(graph, step, "attention") == pytest.approx(4 * 64 * 128 * (3 * 100_000 + 57 * 2048))


def test_lengths_broadcast():
    graph = graph_of(MIMO_V2_FLASH)
    lengths = [10, 100, 5000]
    together = graph.kv_bytes(np.array(lengths, dtype=float))
    assert together == pytest.approx([float(graph.kv_bytes(n)) for n in lengths])


def test_values_of_another_size_than_keys():
    graph = graph_of(MIMO_V2_FLASH)
    assert graph.kv_bytes_per_token() == 9 * 4 * (192 + 128) * 2
    assert graph.kv_bytes(1000) == 9 * 1000 * 4 * 320 * 2 + 39 * 128 * 8 * 320 * 2


def test_arrays_of_batches_give_the_same_numbers():
    graph = graph_of(DEEPSEEK_V32)
    batches = np.array([1.0, 7.0, 64.0])
    for i, (repeat, op) in enumerate(ops_of(graph, Step((Segment(batches, 1.0, 4097.0),)))):
        for j, batch in enumerate(batches):
            other_repeat, alone = ops_of(graph, decode(float(batch), 4096.0))[i]
            assert repeat == other_repeat
            assert np.broadcast_to(op.flops, 3)[j] == pytest.approx(float(alone.flops))
            assert np.broadcast_to(op.bytes, 3)[j] == pytest.approx(float(alone.bytes))


@pytest.mark.parametrize("key", ["kv_lora_rank", "qk_rope_head_dim", "n_routed_experts", "moe_intermediate_size"])
def test_missing_keys_are_named(key):
    with pytest.raises(UsageError, match=key):
        model_of({k: v for k, v in DEEPSEEK_V3.items() if k != key})


def test_contradictions_are_refused():
    with pytest.raises(UsageError, match="qk_head_dim"):
        model_of(DEEPSEEK_V3 | {"qk_head_dim": 64})
    with pytest.raises(UsageError, match="q_lora_rank"):
        model_of(DEEPSEEK_V32 | {"q_lora_rank": None})
    with pytest.raises(UsageError, match="compress_ratios"):
        model_of(DEEPSEEK_V4_FLASH | {"compress_ratios": [0, 4]})
    with pytest.raises(UsageError, match="o_groups"):
        model_of(DEEPSEEK_V4_FLASH | {"o_groups": 7})


def test_dspark_has_a_module_for_each_layer_that_it_reads() -> None:
    plain = model_of(DEEPSEEK_V4_FLASH)
    spark = model_of(DEEPSEEK_V4_FLASH | {"dspark_block_size": 5, "dspark_target_layer_ids": [40, 41, 42]})
    assert plain.mtp is not None
    assert spark.mtp is not None
    assert (plain.mtp.modules, spark.mtp.modules) == (1, 3)
    assert spark.mtp.layers == plain.mtp.layers
    assert not any("dspark" in text for text in spark.assumptions)
