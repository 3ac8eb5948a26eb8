"""OLMo 2 and 3: norms after each half instead of before it, and over all query and all key heads.

Shapes: huggingface/transformers, models/olmo2 and models/olmo3.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, dense_ffn, layer_count, tied, windows
from chipwise.workload.model import Layer, Network
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """A norm after a half has the weights, and the cost, of one before it."""
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qk_norm="all", qkv_bias=bias, out_bias=bias)
    feed = dense_ffn(r)
    layers = [Layer(replace(attention, window=w), feed) for w in windows(r, layer_count(r))]
    return Network(layers, tied(r, False))
