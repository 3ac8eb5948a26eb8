"""Encoders, encoder-decoders and the decoders before and beside Llama: shapes and what they keep."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.catalog.configs import ModelConfig, find_config
from chipwise.errors import UsageError
from chipwise.workload.axes import Sizes
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.model import SelfAttention
from chipwise.workload.op import Op
from chipwise.workload.program import Block, count_entries
from chipwise.workload.step import Step, decode, prefill


def read(**keys: Any) -> Graph:
    return build(load_model(ModelConfig("m", {"torch_dtype": "bfloat16", **keys}, "config.json")))


def bundled(name: str, **changes: Any) -> Graph:
    found = find_config(name)
    return build(load_model(ModelConfig(name, {**found.data, **changes}, "config.json")))


def block_ops(block: Block, step: Step) -> list[Op]:
    return [op for node in block.nodes for op in node.ops(Sizes(block.axes), step)]


def flops(graph: Graph, step: Step) -> float:
    """Of the matrix units."""
    parts = ((1, graph.embed), *graph.distinct(), (1, graph.head))
    ops = ((repeat, op) for repeat, block in parts for op in block_ops(block, step))
    return float(sum(repeat * float(op.flops) for repeat, op in ops if op.kind in ("gemm", "attention")))


def norms(graph: Graph) -> int:
    block = graph.distinct()[0][1]
    return sum(t.cls == "norm" and not t.buffer for t in block.tensors)


# ---- encoders ----------------------------------------------------------------------------------------------


def test_an_encoder_caches_nothing_and_sees_everything() -> None:
    graph = bundled("google-bert/bert-base-uncased")
    assert graph.kv_bytes(512.0, scope="all") == 0
    attention = [op for op in block_ops(graph.distinct()[0][1], prefill(2, 512)) if op.kind == "attention"]
    assert [op.flops for op in attention] == [2 * 2 * 512 * 512 * 12 * (64 + 64)]
    assert [node.name for node in graph.head.nodes] == ["pooler"]


def test_an_encoder_costs_two_flops_per_parameter_and_token() -> None:
    graph = bundled("google-bert/bert-large-uncased")
    matrices = 24 * (4 * 1024**2 + 2 * 1024 * 4096)
    attention = 24 * 4 * 128 * 128 * 1024
    pooler = 2 * 1024**2
    assert flops(graph, prefill(1, 128)) == pytest.approx(2 * 128 * matrices + attention + pooler)


def test_without_pooler_there_is_no_head() -> None:
    assert bundled("distilbert/distilbert-base-uncased").head.nodes == ()


def test_only_encoders_are_read_as_bert() -> None:
    with pytest.raises(UsageError, match="is_decoder"):
        bundled("google-bert/bert-base-uncased", is_decoder=True)


# ---- encoder-decoders --------------------------------------------------------------------------------------


def test_whisper_keeps_its_source_beside_the_text() -> None:
    graph = bundled("openai/whisper-large-v3")
    per_token = 32 * 2 * 1280 * 2
    assert graph.kv_bytes_per_token() == per_token
    assert graph.kv_bytes(100.0) == per_token * (100 + 1500)


def test_the_encoder_counts_once_and_is_apart_from_the_passes() -> None:
    graph = bundled("openai/whisper-large-v3")
    encoder = count_entries(graph.encoder)
    layer = 4 * 1280**2 + 3 * 1280 + 2 * 1280 * 5120 + 5120 + 1280 + 2 * 2 * 1280
    convolutions = 3 * 128 * 1280 + 1280 + 3 * 1280**2 + 1280
    assert encoder == 32 * layer + convolutions + 1500 * 1280 + 2 * 1280
    assert graph.parameters == encoder + count_entries(((1, graph.embed), *graph.distinct(), (1, graph.head)))
    assert sum(repeat for repeat, block in graph.encoder if block.nodes[0].name == "attention_norm") == 32


def test_a_decoding_pass_reads_no_source_projections() -> None:
    graph = bundled("openai/whisper-large-v3")
    block = graph.distinct()[0][1]
    read_bytes = sum(float(op.weight_bytes) for op in block_ops(block, decode(1, 10)))
    stored = sum(float(t.local_bytes(Sizes(block.axes))) for t in block.tensors if t.cls != "norm")
    source = 2 * 2 * 1280 * 1280  # keys and values of the source, made once per request
    assert stored - read_bytes == pytest.approx(source, rel=0.01)


def test_cross_attention_of_t5_is_sized_by_the_context() -> None:
    graph = bundled("google-t5/t5-base")
    assert graph.kv_bytes(100.0) == 2 * graph.kv_bytes(50.0)
    caches = graph.distinct()[0][1].caches
    assert [c.kind for c in caches] == ["full", "cross"]


def test_t5_layers_have_three_halves_and_the_encoder_two() -> None:
    graph = bundled("google-t5/t5-base")
    assert norms(graph) == 3
    assert [repeat for repeat, _ in graph.runs] == [12]
    assert 12 in [repeat for repeat, _ in graph.encoder]


def test_a_strange_feed_forward_of_t5_is_refused() -> None:
    with pytest.raises(UsageError, match="feed_forward_proj"):
        bundled("google-t5/t5-base", feed_forward_proj="swish")


# ---- parallel halves and norms -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("EleutherAI/gpt-j-6b", 1),
        ("EleutherAI/gpt-neox-20b", 2),
        ("tiiuae/falcon-7b", 1),
        ("tiiuae/falcon-40b", 2),
        ("microsoft/phi-2", 1),
        ("CohereForAI/c4ai-command-r-v01", 1),
        ("google/gemma-7b", 2),
        ("google/gemma-2-9b", 4),
        ("google/gemma-3-1b-it", 6),  # two of them over heads
        ("allenai/OLMo-2-1124-7B", 4),
    ],
)
def test_norms_per_layer(name: str, count: int) -> None:
    assert norms(bundled(name)) == count


def test_parallel_halves_stand_after_their_norms() -> None:
    names = [node.name for node in bundled("EleutherAI/gpt-neox-20b").distinct()[0][1].nodes]
    assert names[:2] == ["attention_norm", "ffn_norm"]
    assert names.index("o") < names.index("up")
    assert all("norm" not in name for name in names[2:])


def test_falcon_7b_has_one_key_head() -> None:
    assert bundled("tiiuae/falcon-7b").kv_bytes_per_token() == 32 * 2 * 64 * 2
    assert bundled("tiiuae/falcon-40b").kv_bytes_per_token() == 60 * 2 * 8 * 64 * 2


def test_falcon_by_its_first_name_of_keys() -> None:
    keys = {k: v for k, v in find_config("tiiuae/falcon-7b").data.items() if k != "num_hidden_layers"}
    keys = {k: v for k, v in keys.items() if k != "num_attention_heads"}
    assert read(**keys, n_layer=32, n_head=71).parameters == bundled("tiiuae/falcon-7b").parameters


def test_head_biases_are_counted() -> None:
    with_bias = bundled("microsoft/phi-2").head.tensors
    assert [t.bias for t in with_bias if t.name == "head"] == [True]


def test_opt_with_a_table_of_another_width_is_refused() -> None:
    with pytest.raises(UsageError, match="word_embed_proj_dim"):
        bundled("facebook/opt-1.3b", word_embed_proj_dim=512)


def test_starcoder_of_the_first_kind_has_one_key_head() -> None:
    graph = read(model_type="gpt_bigcode", n_embd=6144, n_layer=40, n_head=48, n_positions=8192, vocab_size=49152)
    assert graph.parameters == 15_517_456_384
    assert graph.kv_bytes_per_token() == 40 * 2 * 128 * 2


# ---- sliding layers of Gemma -------------------------------------------------------------------------------


def windows(name: str) -> list[int]:
    runs = load_model(find_config(name)).runs
    return [
        layer.mixer.window for repeat, layer in runs for _ in range(repeat) if isinstance(layer.mixer, SelfAttention)
    ]


def test_gemma_2_slides_in_every_other_layer() -> None:
    assert windows("google/gemma-2-9b")[:4] == [4096, 0, 4096, 0]


def test_gemma_3_is_full_in_every_sixth_layer() -> None:
    assert windows("google/gemma-3-27b-it")[:6] == [1024] * 5 + [0]
    assert windows("google/gemma-3-27b-it").count(0) == 10


def test_gemma_4_has_large_heads_in_full_layers() -> None:
    graph = bundled("google/gemma-4-31b-it")
    near, far = (block for _, block in graph.distinct())
    assert (near.axes["K"], near.axes["D"]) == (16, 256)
    assert (far.axes["K"], far.axes["D"]) == (4, 512)
    assert "v" not in {t.name for t in far.tensors}
    # both keys and values are cached, in 10 of 60 layers for the whole context
    assert graph.kv_bytes_per_token() == 10 * 2 * 4 * 512 * 2


def test_gemma_3_without_dims_takes_its_familys_and_says_so() -> None:
    vision = find_config("google/gemma-3-4b-it").data["vision_config"]
    inner = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}
    graph = read(model_type="gemma3", text_config=inner, vision_config=vision)
    assert graph.parameters == bundled("google/gemma-3-4b-it").parameters
    assert "vocab_size not given: 262208, the family's default" in graph.model.assumptions


def test_gemma_4_mixture_runs_a_dense_feed_forward_beside_its_experts() -> None:
    # model card: 25.2 B in all, 3.8 B per token
    graph = bundled("google/gemma-4-26b-a4b-it")
    assert graph.parameters / 1e9 == pytest.approx(25.2, abs=0.05)
    assert graph.active_params() / 1e9 == pytest.approx(3.8, abs=0.05)
    block = graph.distinct()[0][1]
    assert {"shared_up", "up", "router"} <= {t.name for t in block.tensors}
    assert norms(graph) == 4 + 2 + 5


def test_gemma_4_e_models_keep_their_inputs_per_layer_in_a_table() -> None:
    # model card: 2.3 B effective parameters, 5.1 B with embeddings and towers
    graph = bundled("google/gemma-4-e2b-it")
    table = 262_144 * 35 * 256
    assert graph.parameters / 1e9 == pytest.approx(4.63, abs=0.01)
    assert graph.active_params() / 1e9 == pytest.approx(2.3, abs=0.05)
    assert graph.active_params(embedding=True) - graph.active_params() >= table


def test_layers_that_borrow_keys_neither_make_nor_keep_them() -> None:
    graph = bundled("google/gemma-4-e2b-it")
    # of 35 layers the first 15 keep keys and values, 3 of them for the whole context
    assert graph.kv_bytes_per_token() == 3 * 2 * 512 * 2
    borrowing = [block for _, block in graph.distinct() if not block.caches]
    assert len(borrowing) == 2
    assert all({"k", "v"}.isdisjoint(t.name for t in block.tensors) for block in borrowing)
    ops = [op for op in block_ops(borrowing[0], decode(1, 400)) if op.kind == "attention"]
    assert all(float(op.kv_bytes) > 0 for op in ops)
