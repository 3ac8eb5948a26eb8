"""Gemma 1 to 3: large heads, gated GELU, a tied head; from 2 on norms around each half and sliding layers.

Shapes: huggingface/transformers, models/gemma, gemma2, gemma3. What Gemma 3's published configurations leave
out stands in its Gemma3TextConfig.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, layer_count, tied, windows
from chipwise.workload.model import Dense, Layer, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["GEMMA3_DEFAULTS", "read_gemma", "read_gemma2", "read_gemma3"]

# Gemma3TextConfig; the 4B model states few of its dims.
GEMMA3_DEFAULTS = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}

PATTERN = {"gemma2": 2, "gemma3": 6}


def read_gemma(r: Reader) -> Network:
    """Gemma 1: Llama's block with heads of 256 whatever the width."""
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    return Network([Layer(attention, Dense(r.count("intermediate_size")))] * layer_count(r), tied(r, True))


def read_gemma2(r: Reader) -> Network:
    """Gemma 2: every other layer slides."""
    r.skip("attn_logit_softcapping", "query_pre_attn_scalar")
    return _around(r, attention_dims(r), PATTERN["gemma2"])


def read_gemma3(r: Reader) -> Network:
    """Gemma 3: a norm over each query and key head; every sixth layer is full."""
    r.skip(
        "attn_logit_softcapping",
        "query_pre_attn_scalar",
        "mm_tokens_per_image",
        "use_bidirectional_attention",
    )
    return _around(r, replace(attention_dims(r), qk_norm="head"), PATTERN["gemma3"])


def _around(r: Reader, attention: SelfAttention, pattern: int) -> Network:
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention, qkv_bias=bias, out_bias=bias)
    count = layer_count(r)
    if r.has("layer_types"):
        r.skip("sliding_window_pattern")
        sizes = windows(r, count)
    else:
        every = r.count("sliding_window_pattern", "_sliding_window_pattern", default=pattern)
        size = r.count("sliding_window")
        sizes = [0 if (i + 1) % every == 0 else size for i in range(count)]
    feed = Dense(r.count("intermediate_size"))
    layers = [Layer(replace(attention, window=w), feed, norms="around") for w in sizes]
    return Network(layers, tied(r, True))
