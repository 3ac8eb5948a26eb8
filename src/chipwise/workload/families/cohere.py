"""Command R: both halves in parallel after one norm that has a gain and no offset; a tied head.

Shapes: huggingface/transformers, models/cohere and models/cohere2.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, dense_ffn, layer_count, tied, windows
from chipwise.workload.model import Layer, Network
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """Command R+ has a norm over all query and all key heads; Command R7B and A slide in most layers."""
    r.skip(
        "logit_scale",
        "use_parallel_block",
        "use_parallel_embedding",
        "use_embedding_sharing",
        "use_gated_activation",
    )
    r.skip("order_of_interleaved_layers", "position_embedding_type", "rotary_pct", "layer_switch")
    bias = r.flag("attention_bias", default=False)
    norm = r.flag("use_qk_norm", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias, qk_norm="all" if norm else "")
    feed = dense_ffn(r)
    count = layer_count(r)
    if r.has("sliding_window_pattern") and not r.has("layer_types"):
        every, size = r.count("sliding_window_pattern"), r.count("sliding_window")
        sizes = [0 if (i + 1) % every == 0 else size for i in range(count)]
    else:
        r.skip("sliding_window_pattern")
        sizes = windows(r, count)
    layers = [Layer(replace(attention, window=w), feed, parallel=True, norms="shared") for w in sizes]
    return Network(layers, tied(r, True))
