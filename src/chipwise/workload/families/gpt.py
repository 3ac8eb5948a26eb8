"""Decoders before Llama: layer norms with offsets, two matrices per feed-forward, one key head per query head.

Shapes: huggingface/transformers, models/gpt2, gpt_bigcode, gptj, codegen, gpt_neox, persimmon, opt, bloom, starcoder2.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, heads_of, layer_count, tied, windows
from chipwise.workload.model import Dense, Ends, Layer, Network, Table
from chipwise.workload.reader import Reader

__all__ = [
    "read_bloom",
    "read_gpt2",
    "read_gpt_bigcode",
    "read_gpt_neox",
    "read_gptj",
    "read_opt",
    "read_persimmon",
    "read_starcoder2",
]


def read_gpt2(r: Reader) -> Network:
    """GPT-2: learned positions, biases everywhere, a tied head. `n_inner` unset: four times the width."""
    r.require("add_cross_attention", (False,), "only the decoder alone is read")
    r.skip("reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx", "n_ctx", "hidden_act")
    r.skip("summary_proj_to_labels", "summary_type", "summary_use_proj")
    layer = Layer(heads_of(r, bias=True), _feed(r), norm="layer")
    return Network([layer] * layer_count(r), tied(r, True), ends=Ends(tables=(_positions(r),)))


def read_gpt_bigcode(r: Reader) -> Network:
    """StarCoder and SantaCoder: GPT-2 with one key/value head for all."""
    r.skip("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner")
    r.skip(
        "max_batch_size",
        "max_sequence_length",
        "pad_key_length",
        "pre_allocate_kv_cache",
        "validate_runner_input",
    )
    one = r.flag("multi_query", default=True)
    network = read_gpt2(r)
    attention = heads_of(r, bias=True)
    layers = [
        replace(layer, mixer=replace(attention, kv_heads=1 if one else attention.heads))
        for layer in network.layers
    ]
    return replace(network, layers=layers)


def read_gptj(r: Reader) -> Network:
    """GPT-J and CodeGen: both halves in parallel after one norm, no biases in attention, one on the head."""
    r.skip("rotary", "hidden_act", "summary_proj_to_labels", "summary_type", "summary_use_proj")
    layer = Layer(heads_of(r, bias=False), _feed(r), norm="layer", parallel=True, norms="shared")
    return Network([layer] * layer_count(r), tied(r, False), ends=Ends(head_bias=True))


def read_gpt_neox(r: Reader) -> Network:
    """GPT-NeoX and Pythia: both halves in parallel, each after a norm of its own."""
    r.skip("rotary_pct", "rotary_emb_base", "hidden_act", "classifier_dropout")
    layer = Layer(
        heads_of(r, bias=r.flag("attention_bias", default=True)),
        _feed(r),
        norm="layer",
        parallel=r.flag("use_parallel_residual", default=True),
    )
    return Network([layer] * layer_count(r), tied(r, False))


def read_persimmon(r: Reader) -> Network:
    """Persimmon: biases everywhere, a norm with a bias over each query and key head."""
    r.skip("hidden_act", "layer_norm_eps")
    heads = heads_of(r, bias=True)
    if r.flag("qk_layernorm", default=True):
        heads = replace(heads, qk_norm="head")
    layer = Layer(heads, Dense(r.count("intermediate_size"), gated=False, bias=True), norm="layer")
    return Network([layer] * layer_count(r), tied(r, False))


def read_opt(r: Reader) -> Network:
    """OPT: learned positions with two rows to spare, biases everywhere, a tied head."""
    hidden = r.count("hidden_size", high=1_000_000)
    r.require(
        "word_embed_proj_dim", (hidden,), "only tables of the model's own width are read (not OPT-350M)"
    )
    r.require("do_layer_norm_before", (True,), "only norms before each half are read (not OPT-350M)")
    r.skip(
        "activation_function",
        "layerdrop",
        "prefix",
        "_remove_final_layer_norm",
        "layer_norm_elementwise_affine",
    )
    bias = r.flag("enable_bias", default=True)
    layer = Layer(
        heads_of(r, bias=bias), Dense(r.count("intermediate_size"), gated=False, bias=bias), norm="layer"
    )
    positions = Table("positions", r.count("max_position_embeddings") + 2, hidden)
    return Network([layer] * layer_count(r), tied(r, True), ends=Ends(tables=(positions,)))


def read_bloom(r: Reader) -> Network:
    """BLOOM: positions by a slope per head, without weights; a norm after the embedding; a tied head."""
    r.skip("apply_residual_connection_post_layernorm", "attention_softmax_in_fp32", "bias_dropout_fusion")
    r.skip("masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "slow_but_exact")
    r.skip("unk_token_id")
    layer = Layer(heads_of(r, bias=True), _feed(r), norm="layer")
    return Network([layer] * layer_count(r), tied(r, True), ends=Ends(embedding_norm=True))


def read_starcoder2(r: Reader) -> Network:
    """StarCoder2: grouped key/value heads, a window, biases everywhere, a tied head."""
    r.skip("hidden_act", "norm_type", "mlp_type", "residual_dropout")
    bias = r.flag("use_bias", default=True)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    feed = Dense(r.count("intermediate_size"), gated=False, bias=bias)
    layers = [Layer(replace(attention, window=w), feed, norm="layer") for w in windows(r, layer_count(r))]
    return Network(layers, tied(r, True))


def _feed(r: Reader) -> Dense:
    width = r.count("intermediate_size", default=4 * r.count("hidden_size", high=1_000_000))
    return Dense(width, gated=False, bias=True)


def _positions(r: Reader) -> Table:
    return Table("positions", r.count("max_position_embeddings"), r.count("hidden_size", high=1_000_000))
