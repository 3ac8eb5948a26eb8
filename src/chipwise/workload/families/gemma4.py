"""Gemma 4: sliding layers with small heads, full ones with large heads whose values are their keys.

Shapes: huggingface/transformers, models/gemma4 (read at commit 0246b4f, 2026). Each layer ends with a scalar
that is not trained.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.shared import attention_dims, layer_count, tied
from chipwise.workload.model import FFN, Dense, Ends, Layer, MoE, Network, SelfAttention, Table
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """The dense model, the mixture, and the E models with an input per layer and borrowed keys and values."""
    r.skip("use_bidirectional_attention", "vision_soft_tokens_per_image")
    count = layer_count(r)
    kinds = r.names("layer_types", length=count)
    strange = sorted(set(kinds) - {"full_attention", "sliding_attention"})
    if strange:
        raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
    near, far = _attention(r)
    own = count - r.count("num_kv_shared_layers", low=0, high=count, default=0)
    wide = r.flag("use_double_wide_mlp", default=False)
    feed = _feed(r)
    side = r.count("hidden_size_per_layer_input", low=0, default=0)

    def layer(index: int, kind: str) -> Layer:
        attention = replace(near if kind == "sliding_attention" else far, borrowed=index >= own)
        mine = feed
        if wide and index >= own and isinstance(feed, Dense):
            mine = replace(feed, width=2 * feed.width)
        return Layer(attention, mine, norms="around", buffers=1, side=side)

    layers = [layer(index, kind) for index, kind in enumerate(kinds)]
    return Network(layers, tied(r, True), ends=Ends(tables=_side_tables(r, side, count)))


def _side_tables(r: Reader, side: int, layers: int) -> tuple[Table, ...]:
    """Of the inputs per layer: a table of tokens, a projection of the embedding (0.7 % of the FLOPs, not
    priced), a norm."""
    vocab = r.count("vocab_size_per_layer_input", low=0, high=100_000_000, default=0)
    if not side:
        return ()
    hidden = r.count("hidden_size", high=1_000_000)
    return (
        Table("side_embedding", vocab or r.count("vocab_size"), layers * side),
        Table("side_projection", layers * side, hidden),
        Table("side_norm", side, 1),
    )


def _attention(r: Reader) -> tuple[SelfAttention, SelfAttention]:
    plain = attention_dims(r)
    bias = r.flag("attention_bias", default=False)
    window = r.count("sliding_window")
    alike = r.flag("attention_k_eq_v", default=False)
    kv_heads = plain.kv_heads
    if alike:
        kv_heads = r.count("num_global_key_value_heads", high=plain.heads)
    else:
        r.skip("num_global_key_value_heads")
    large = r.count("global_head_dim", high=65_536, default=plain.head_dim)

    def made(kv: int, dim: int, *, window: int = 0, alike: bool = False) -> SelfAttention:
        return SelfAttention(
            plain.heads,
            kv,
            dim,
            window,
            qkv_bias=bias,
            out_bias=bias,
            qk_norm="head",
            values_are_keys=alike,
        )

    return made(plain.kv_heads, plain.head_dim, window=window), made(kv_heads, large, alike=alike)


def _feed(r: Reader) -> FFN:
    width = r.count("intermediate_size")
    if not r.flag("enable_moe_block", default=False):
        r.skip("moe_intermediate_size", "expert_intermediate_size", "top_k_experts", "num_experts")
        return Dense(width)
    experts = r.count("num_experts", high=100_000)
    each = r.count("moe_intermediate_size", "expert_intermediate_size")
    return MoE(experts, r.count("top_k_experts", high=experts), each, shared_width=width, branches=True)
