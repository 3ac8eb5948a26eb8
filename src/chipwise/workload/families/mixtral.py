"""Mixtral: Mistral attention, every layer a mixture of gated experts.

Shapes: huggingface/transformers, models/mixtral.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, check_activation, layer_count, tied, windows
from chipwise.workload.model import Layer, MoE
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying."""
    check_activation(r)
    experts = r.count("num_local_experts", high=100_000)
    top_k = r.count("num_experts_per_tok", high=experts)
    moe = MoE(experts, top_k, r.count("intermediate_size"))
    attention = attention_dims(r)
    layers = [Layer(replace(attention, window=w), moe) for w in windows(r, layer_count(r))]
    return layers, tied(r, False)
