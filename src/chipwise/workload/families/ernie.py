"""ERNIE 4.5: Llama's block, tied; with experts from a layer on, routing with a correction bias, shared experts.

Shapes: huggingface/transformers, models/ernie4_5 and ernie4_5_moe.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import attention_dims, check_activation, dense_ffn, layer_count, tied
from chipwise.workload.model import Layer, MoE
from chipwise.workload.reader import Reader

__all__ = ["read", "read_moe"]


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Dense: one switch for all biases."""
    bias = r.flag("use_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    return [Layer(attention, dense_ffn(r, bias=bias))] * layer_count(r), tied(r, True)


def read_moe(r: Reader) -> tuple[list[Layer], bool]:
    """With experts. Prediction modules that a configuration names are left out."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("moe_capacity", "moe_gate", "moe_use_aux_free", "moe_aux_loss_lambda", "moe_layer_interval")
    if r.count("num_nextn_predict_layers", low=0, high=100, default=0):
        r.assume("prediction modules are left out: the public code does not build them")
    bias = r.flag("use_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    experts = r.count("moe_num_experts", high=100_000)
    width = r.count("moe_intermediate_size")
    shared = r.count("moe_num_shared_experts", low=0, high=1000, default=0)
    moe = MoE(
        experts=experts,
        top_k=r.count("moe_k", "num_experts_per_tok", high=experts),
        width=width,
        shared_width=shared * width,
        router_buffer=True,
    )
    first = r.count("moe_layer_start_index", low=0, default=1)
    last = r.count("moe_layer_end_index", low=-1, default=-1)
    every = r.count("moe_layer_interval", default=1)
    end = layers - 1 if last < 0 else last
    dense = dense_ffn(r, bias=bias)
    sparse = [first <= i <= end and (i + 1) % every == 0 for i in range(layers)]
    return [Layer(attention, moe if flag else dense) for flag in sparse], tied(r, True)
