"""Mixtures on Llama's or GPT's block: OLMoE (norms over all heads) and Phi-3.5-MoE (biases, layer norms).

Shapes: huggingface/transformers, models/olmoe and models/phimoe.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, check_activation, layer_count, tied, windows
from chipwise.workload.model import Ends, Layer, MoE, Network
from chipwise.workload.reader import Reader

__all__ = ["read_olmoe", "read_phimoe"]


def read_olmoe(r: Reader) -> Network:
    """OLMoE: as many key heads as query heads, small experts."""
    r.skip("clip_qkv")
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qk_norm="all", qkv_bias=bias, out_bias=bias)
    return Network([Layer(attention, _moe(r, "num_experts"))] * layer_count(r), tied(r, False))


def read_phimoe(r: Reader) -> Network:
    """Phi-3.5-MoE: biases on the projections and on the head."""
    r.skip("input_jitter_noise")
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    moe = _moe(r, "num_local_experts")
    layers = [Layer(replace(attention, window=w), moe, norm="layer") for w in windows(r, layer_count(r))]
    return Network(layers, tied(r, False), ends=Ends(head_bias=r.flag("lm_head_bias", default=False)))


def _moe(r: Reader, key: str) -> MoE:
    check_activation(r)
    experts = r.count(key, high=100_000)
    return MoE(experts, r.count("num_experts_per_tok", high=experts), r.count("intermediate_size"))
