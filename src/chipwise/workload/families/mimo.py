"""MiMo: Qwen 2's block with a prediction module; MiMo-V2-Flash: two kinds of attention with unlike heads.

Shapes: vllm, model_executor/models/mimo.py, mimo_mtp.py, mimo_v2_flash.py and mimo_v2_mtp.py.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.deepseek import routed
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_ffn,
    layer_count,
    tied,
    windows,
)
from chipwise.workload.model import MTP, Dense, Layer, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read", "read_v2"]

# The V2 checkpoints hold three prediction modules; their configurations do not say so.
V2_MODULES = 3


def read(r: Reader) -> Network:
    """MiMo 7B: biases on query, key and value."""
    attention = replace(attention_dims(r), qkv_bias=r.flag("attention_bias", default=True))
    r.skip("use_mrope")
    ffn = dense_ffn(r)
    stack = [Layer(replace(attention, window=w), ffn) for w in windows(r, layer_count(r))]
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    return Network(stack, tied(r, False), MTP(modules, (Layer(attention, ffn),)))


def read_v2(r: Reader) -> Network:
    """MiMo-V2: full and sliding attention by `hybrid_layer_pattern`, experts by `moe_layer_freq`."""
    check_activation(r)
    layers = layer_count(r)
    r.skip(
        "attention_value_scale",
        "swa_rope_theta",
        "attention_chunk_size",
        "layernorm_epsilon",
        "moe_router_dtype",
    )
    bias = r.flag("attention_bias", default=False)
    full = _attention(r, "", bias=bias, sinks=r.flag("add_full_attention_sink_bias", default=False))
    window = r.count("sliding_window_size", "sliding_window")
    r.skip("sliding_window")
    slide = replace(
        _attention(r, "swa_", bias=bias, sinks=r.flag("add_swa_attention_sink_bias", default=False)),
        window=window,
    )
    slides = _flags(r, "hybrid_layer_pattern", "layer_types", "sliding_attention", "full_attention", layers)
    sparse = _flags(r, "moe_layer_freq", "mlp_layer_types", "sparse", "dense", layers)
    moe, dense = routed(r, correction=True), Dense(r.count("intermediate_size"))
    stack = [Layer(slide if slides[i] else full, moe if sparse[i] else dense) for i in range(layers)]
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=V2_MODULES)
    return Network(stack, tied(r, False), MTP(modules, (Layer(slide, dense),)))


def _attention(r: Reader, prefix: str, *, bias: bool, sinks: bool) -> SelfAttention:
    heads = r.count(f"{prefix}num_attention_heads", high=100_000)
    kv_heads = r.count(f"{prefix}num_key_value_heads", high=100_000)
    if heads % kv_heads:
        what = f"{r.origin}: {prefix}num_key_value_heads = {kv_heads} does not divide {heads} heads"
        raise UsageError(what, "every key/value head serves the same number of query heads")
    dim = r.count(f"{prefix}head_dim", high=65_536)
    value = r.count(f"{prefix}v_head_dim", high=65_536, default=dim)
    return SelfAttention(heads, kv_heads, dim, qkv_bias=bias, sinks=sinks, value_dim=value)


def _flags(r: Reader, numbers: str, names: str, yes: str, no: str, layers: int) -> list[bool]:
    """One flag per layer, given as zeros and ones or by name."""
    if r.has(names):
        kinds = r.names(names, length=layers)
        strange = sorted(set(kinds) - {yes, no})
        if strange:
            raise UsageError(f"{r.origin}: {names} holds {strange[0]!r}", f"{yes} or {no}")
        r.skip(numbers)
        return [kind == yes for kind in kinds]
    given = r.numbers(numbers, length=layers)
    if set(given) - {0, 1}:
        raise UsageError(f"{r.origin}: {numbers} holds {max(given)}", "0 or 1 per layer")
    return [flag == 1 for flag in given]
