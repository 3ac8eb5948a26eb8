"""Qwen mixtures of experts: dense layers where a step or a list says so, shared experts in Qwen 2.

Shapes: huggingface/transformers, models/qwen2_moe and models/qwen3_moe.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, check_activation, layer_count, tied, windows
from chipwise.workload.model import FFN, Dense, Layer, MoE, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read_qwen2_moe", "read_qwen3_moe", "routed_or_dense"]


def read_qwen2_moe(r: Reader) -> tuple[list[Layer], bool]:
    """Qwen 1.5 and 2 MoE: biases on query, key and value; a gated shared expert."""
    shared = r.count("shared_expert_intermediate_size", low=0)
    return _read(r, replace(attention_dims(r), qkv_bias=True), shared), tied(r, False)


def read_qwen3_moe(r: Reader) -> tuple[list[Layer], bool]:
    """Qwen 3 MoE: a norm over each query and key head, no shared expert."""
    r.require("use_qk_norm", (True,), "the public code always has these norms")
    bias = r.flag("attention_bias", default=False)
    base = replace(attention_dims(r), qk_norm="head", qkv_bias=bias, out_bias=bias)
    return _read(r, base, 0), tied(r, False)


def routed_or_dense(r: Reader, shared: int, *, dense_needed: bool = True) -> list[FFN]:
    """The feed-forward of every layer: experts, but dense in `mlp_only_layers` and between every
    `decoder_sparse_step`-th. A dense width that no layer uses need not be given unless `dense_needed`."""
    layers = layer_count(r)
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
    if not (dense_needed or any(is_dense)):
        r.skip("intermediate_size")
        return [moe] * layers
    dense = Dense(r.count("intermediate_size"))
    return [dense if flag else moe for flag in is_dense]


def _read(r: Reader, attention: SelfAttention, shared: int) -> list[Layer]:
    check_activation(r)
    ffns = routed_or_dense(r, shared)
    return [
        Layer(replace(attention, window=w), ffn) for w, ffn in zip(windows(r, len(ffns)), ffns, strict=True)
    ]
