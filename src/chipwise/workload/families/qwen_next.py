"""Qwen3-Next, Qwen3.5 and Qwen3.6: three gated delta nets to one gated attention layer.

Shapes: huggingface/transformers, models/qwen3_next, qwen3_5 and qwen3_5_moe. The prediction module is one
full-attention layer (vllm, qwen3_next_mtp.py and qwen3_5_mtp.py).
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.qwen_moe import routed_or_dense
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_ffn,
    layer_count,
    state_format,
    tied,
)
from chipwise.workload.model import FFN, MTP, Layer, LinearAttention, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read_dense", "read_moe", "read_next"]

# Qwen3NextConfig.full_attention_interval
FULL_EVERY = 4


def read_dense(r: Reader) -> Network:
    """Qwen3.5 with a gated feed-forward in every layer."""
    r.skip("mlp_only_layers")
    layers = layer_count(r)
    return _network(
        r, [dense_ffn(r)] * layers, modules=r.count("mtp_num_hidden_layers", low=0, high=100, default=0)
    )


def read_moe(r: Reader) -> Network:
    """Qwen3.5 with experts and a gated shared expert."""
    ffns = routed_or_dense(r, r.count("shared_expert_intermediate_size", low=0), dense_needed=False)
    return _network(r, ffns, modules=r.count("mtp_num_hidden_layers", low=0, high=100, default=0))


def read_next(r: Reader) -> Network:
    """Qwen3-Next, whose configuration does not name the module that its checkpoints hold."""
    ffns = routed_or_dense(r, r.count("shared_expert_intermediate_size", low=0), dense_needed=False)
    return _network(r, ffns, modules=r.count("num_nextn_predict_layers", low=0, high=100, default=0))


def _network(r: Reader, ffns: list[FFN], *, modules: int) -> Network:
    check_activation(r)
    bias = r.flag("attention_bias", default=False)
    full = replace(
        attention_dims(r),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
        gate="element" if r.flag("attn_output_gate", default=True) else "",
    )
    linear = _delta_net(r)
    is_full = _full_layers(r, len(ffns))
    mixers: list[SelfAttention | LinearAttention] = [full if flag else linear for flag in is_full]
    stack = [Layer(mixer, ffn) for mixer, ffn in zip(mixers, ffns, strict=True)]
    if r.flag("mtp_use_dedicated_embeddings", default=False):
        r.assume("mtp_use_dedicated_embeddings: the module's own embedding is left out of its count")
    return Network(stack, tied(r, False), MTP(modules, (Layer(full, ffns[-1]),)))


def _delta_net(r: Reader) -> LinearAttention:
    keys = r.count("linear_num_key_heads", high=100_000)
    values = r.count("linear_num_value_heads", high=100_000)
    if values % keys:
        what = f"{r.origin}: linear_num_key_heads = {keys} does not divide linear_num_value_heads = {values}"
        raise UsageError(what, "every key head serves the same number of value heads")
    return LinearAttention(
        key_heads=keys,
        value_heads=values,
        key_dim=r.count("linear_key_head_dim", high=65_536),
        value_dim=r.count("linear_value_head_dim", high=65_536),
        conv_width=r.count("linear_conv_kernel_dim", high=1024),
        state_format=state_format(r, "mamba_ssm_dtype"),
    )


def _full_layers(r: Reader, layers: int) -> list[bool]:
    if r.has("layer_types"):
        r.skip("full_attention_interval")
        kinds = r.names("layer_types", length=layers)
        strange = sorted(set(kinds) - {"full_attention", "linear_attention"})
        if strange:
            raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
        return [kind == "full_attention" for kind in kinds]
    if not r.has("full_attention_interval"):
        r.assume(f"layer_types not given: every {FULL_EVERY}th layer has full attention")
    every = r.count("full_attention_interval", default=FULL_EVERY)
    return [(i + 1) % every == 0 for i in range(layers)]
