"""Qwen3-Next, Qwen3.5 and Qwen3.6: three gated delta nets to one gated attention layer.

Shapes: huggingface/transformers, models/qwen3_next, qwen3_5 and qwen3_5_moe. The prediction module is one
full-attention layer (vllm, qwen3_next_mtp.py and qwen3_5_mtp.py).
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_ffn,
    layer_count,
    state_format,
    tied,
)
from chipwise.workload.model import (
    FFN,
    MTP,
    Dense,
    Ends,
    IndexKeys,
    Layer,
    LinearAttention,
    MoE,
    Network,
    SelfAttention,
    Table,
)
from chipwise.workload.reader import Reader

__all__ = ["read_dense", "read_moe", "read_next", "read_next_exp", "read_olmo_hybrid"]

# Qwen3NextConfig.full_attention_interval
FULL_EVERY = 4


def read_dense(r: Reader) -> Network:
    """Qwen3.5 with a gated feed-forward in every layer."""
    r.skip("mlp_only_layers")
    layers = layer_count(r)
    return _network(
        r, [dense_ffn(r)] * layers, modules=r.count("mtp_num_hidden_layers", low=0, high=100, default=0)
    )


def read_moe(r: Reader) -> Network:
    """Qwen3.5 with experts and a gated shared expert."""
    ffns = _experts(r)
    return _network(r, ffns, modules=r.count("mtp_num_hidden_layers", low=0, high=100, default=0))


def read_olmo_hybrid(r: Reader) -> Network:
    """OLMo Hybrid: no gate on attention, a norm over all its query and key heads, a dense feed-forward."""
    r.skip(
        *(key for key in r.data if key.startswith(("linear_a_log", "linear_dt"))), "linear_allow_neg_eigval"
    )
    bias = r.flag("attention_bias", default=False)
    full = replace(attention_dims(r), qkv_bias=bias, out_bias=bias, qk_norm="all")
    linear, feed = _delta_net(r), dense_ffn(r)
    return Network(
        [Layer(full if flag else linear, feed) for flag in _full_layers(r, layer_count(r))], tied(r, False)
    )


def read_next_exp(r: Reader) -> Network:
    """Qwen4-Exp (Qwen3.8-Flash-Next): attention on tokens that an index chooses, gated residual streams, and tables
    of n-grams that are looked up."""
    r.skip(
        "ple_layer_ids",
        "ple_conv_kernel_size",
        "make_ngram_vocab_size_divisible_by",
        "seed",
        "split_ngram_parts",
    )
    r.skip(
        "ple_offload_embedding",
        "indexer_compress_ratio",
        "number_of_conv_states",
        "indexer_kv_heads",
        "mlp_only_layers",
    )
    network = _network(r, _experts(r), modules=0)
    hidden, streams, rank = (
        r.count("hidden_size"),
        r.count("hc_count", default=1),
        r.count("hc_lowrank", default=1),
    )
    size = r.count("ple_embed_dim", default=hidden)
    heads = r.count("heads_per_ngram", default=1) * (r.count("ngram_size", low=2, default=2) - 1)
    table = Table("ngrams", r.count("ngram_vocab_size_base", high=10**9), max(size // heads, 1), copies=heads)
    mixing = Table("stream_gates", streams * hidden, 2 * rank + streams, copies=2 * len(network.layers))
    r.assume(
        "n-gram tables and gates of residual streams are held in memory, not timed; no checkpoint was compared"
    )
    if not r.has("indexer_n_heads"):
        r.assume("indexer_n_heads not given: attention is read as full")
        return replace(network, ends=Ends(tables=(table, mixing)))
    index = IndexKeys(
        r.count("indexer_n_heads", high=100_000),
        r.count("indexer_head_dim", high=65_536),
        r.count("indexer_budget"),
        weighted=False,
    )
    layers = [
        replace(x, mixer=replace(x.mixer, index=index)) if isinstance(x.mixer, SelfAttention) else x
        for x in network.layers
    ]
    return replace(network, layers=layers, ends=Ends(tables=(table, mixing)))


def read_next(r: Reader) -> Network:
    """Qwen3-Next, whose configuration does not name the module that its checkpoints hold."""
    ffns = _experts(r)
    return _network(r, ffns, modules=r.count("num_nextn_predict_layers", low=0, high=100, default=0))


def _network(r: Reader, ffns: list[FFN], *, modules: int) -> Network:
    check_activation(r)
    bias = r.flag("attention_bias", default=False)
    full = replace(
        attention_dims(r),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
        gate="element" if r.flag("attn_output_gate", default=True) else "",
    )
    linear = _delta_net(r)
    is_full = _full_layers(r, len(ffns))
    mixers: list[SelfAttention | LinearAttention] = [full if flag else linear for flag in is_full]
    stack = [Layer(mixer, ffn) for mixer, ffn in zip(mixers, ffns, strict=True)]
    if r.flag("mtp_use_dedicated_embeddings", default=False):
        r.assume("mtp_use_dedicated_embeddings: the module's own embedding is left out of its count")
    return Network(stack, tied(r, False), MTP(modules, (Layer(full, ffns[-1]),)))


def _experts(r: Reader) -> list[FFN]:
    """The feed-forward of every layer: experts, but dense in `mlp_only_layers` and between every
    `decoder_sparse_step`-th."""
    layers = layer_count(r)
    shared = r.count("shared_expert_intermediate_size", low=0)
    experts = r.count("num_experts", "num_local_experts", high=100_000)
    moe = MoE(
        experts,
        r.count("num_experts_per_tok", high=experts),
        r.count("moe_intermediate_size"),
        shared_width=shared,
        shared_gate=shared > 0,
    )
    every = r.count("decoder_sparse_step", low=1, default=1)
    dense_at = set(r.numbers("mlp_only_layers", default=()))
    is_dense = [i in dense_at or (i + 1) % every != 0 for i in range(layers)]
    if not any(is_dense):
        r.skip("intermediate_size")
        return [moe] * layers
    dense = Dense(r.count("intermediate_size"))
    return [dense if flag else moe for flag in is_dense]


def _delta_net(r: Reader) -> LinearAttention:
    keys = r.count("linear_num_key_heads", high=100_000)
    values = r.count("linear_num_value_heads", high=100_000)
    if values % keys:
        what = f"{r.origin}: linear_num_key_heads = {keys} does not divide linear_num_value_heads = {values}"
        raise UsageError(what, "every key head serves the same number of value heads")
    return LinearAttention(
        key_heads=keys,
        value_heads=values,
        key_dim=r.count("linear_key_head_dim", high=65_536),
        value_dim=r.count("linear_value_head_dim", high=65_536),
        conv_width=r.count("linear_conv_kernel_dim", high=1024),
        state_format=state_format(r, "mamba_ssm_dtype"),
    )


def _full_layers(r: Reader, layers: int) -> list[bool]:
    if r.has("layer_types"):
        r.skip("full_attention_interval")
        kinds = r.names("layer_types", length=layers)
        strange = sorted(set(kinds) - {"full_attention", "indexed_attention", "linear_attention"})
        if strange:
            raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
        return [kind != "linear_attention" for kind in kinds]
    if not r.has("full_attention_interval"):
        r.assume(f"layer_types not given: every {FULL_EVERY}th layer has full attention")
    every = r.count("full_attention_interval", default=FULL_EVERY)
    return [(i + 1) % every == 0 for i in range(layers)]
