"""gpt-oss: biases everywhere, attention sinks, alternating windows, experts with biases.

Shapes: huggingface/transformers, models/gpt_oss.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, layer_count, tied, windows
from chipwise.workload.model import Layer, MoE
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying."""
    bias = r.flag("attention_bias", default=True)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias, sinks=True)
    experts = r.count("num_local_experts", high=100_000)
    top_k = r.count("num_experts_per_tok", "experts_per_token", high=experts)
    moe = MoE(experts, top_k, r.count("intermediate_size"), bias=True, router_bias=True)
    layers = [Layer(replace(attention, window=w), moe) for w in windows(r, layer_count(r))]
    return layers, tied(r, False)
