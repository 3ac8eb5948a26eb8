"""Falcon: both halves in parallel, one key/value head (7B) or a few (40B and later).

Shapes: huggingface/transformers, models/falcon. The head is tied; published checkpoints store it twice.
"""

from __future__ import annotations

from typing import Literal

from chipwise.errors import UsageError
from chipwise.workload.families.shared import heads_of, layer_count, tied
from chipwise.workload.model import Dense, Layer, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """The new decoder has grouped heads and, by default, a norm for each half."""
    r.skip("alibi", "apply_residual_connection_post_layernorm", "activation", "hidden_act")
    bias = r.flag("bias", default=False)
    many = heads_of(r, bias=bias)
    grouped = r.flag("new_decoder_architecture", default=False)
    one = r.flag("multi_query", default=True)
    stated = r.count("num_kv_heads", high=100_000, default=many.heads)
    kv_heads = stated if grouped else 1 if one else many.heads
    if many.heads % kv_heads:
        raise UsageError(
            f"{r.origin}: num_kv_heads = {kv_heads} does not divide num_attention_heads = {many.heads}"
        )
    attention = SelfAttention(many.heads, kv_heads, many.head_dim, qkv_bias=bias, out_bias=bias)
    parallel = r.flag("parallel_attn", default=True) or grouped
    each = r.count("num_ln_in_parallel_attn", low=1, high=2, default=2 if grouped else 1)
    norms: Literal["before", "shared"] = "shared" if parallel and each == 1 else "before"
    width = r.count(
        "ffn_hidden_size", "intermediate_size", default=4 * r.count("hidden_size", high=1_000_000)
    )
    layer = Layer(
        attention, Dense(width, gated=False, bias=bias), norm="layer", parallel=parallel, norms=norms
    )
    return Network([layer] * layer_count(r), tied(r, True))
