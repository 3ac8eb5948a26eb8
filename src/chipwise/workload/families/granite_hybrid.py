"""Granite 4 hybrids: Mamba-2 or attention, then experts beside a shared feed-forward, or that one alone.
Mamba-2 alone: a state space in every layer and nothing else.

Shapes: huggingface/transformers, models/granitemoehybrid and mamba2.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.shared import attention_dims, check_activation, layer_count, tied
from chipwise.workload.model import FFN, Dense, Layer, MoE, StateSpace
from chipwise.workload.reader import Reader

__all__ = ["read", "read_mamba2"]

MIXERS = {"mamba": True, "linear_attention": True, "attention": False, "full_attention": False}


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Granite 4."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier")
    r.skip(
        "position_embedding_type",
        "mamba_expand",
        "mamba_chunk_size",
        "normalization_function",
        "rms_norm_eps",
    )
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    ffn = _ffn(r)
    kinds = r.names("layer_types" if r.has("layer_types") else "layers_block_type", length=layers)
    strange = sorted(set(kinds) - set(MIXERS))
    if strange:
        raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read", f"one of {', '.join(MIXERS)}")
    if not any(MIXERS[kind] for kind in kinds):
        return [Layer(attention, ffn)] * layers, tied(r, True)
    space = _state_space(
        r,
        "mamba_n_heads",
        "mamba_d_head",
        "mamba_n_groups",
        "mamba_d_state",
        "mamba_d_conv",
        "mamba_conv_bias",
    )
    space = replace(space, bias=r.flag("mamba_proj_bias", default=False))
    return [Layer(space if MIXERS[kind] else attention, ffn) for kind in kinds], tied(r, True)


def read_mamba2(r: Reader) -> tuple[list[Layer], bool]:
    """Mamba-2."""
    r.skip("expand", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank")
    r.skip("chunk_size", "residual_in_fp32", "rescale_prenorm_residual", "rms_norm", "norm_before_gate")
    space = _state_space(r, "num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_conv_bias")
    space = replace(space, bias=r.flag("use_bias", default=False))
    return [Layer(space, None)] * layer_count(r), tied(r, False)


def _ffn(r: Reader) -> FFN:
    shared = r.count("shared_intermediate_size", low=0, default=0)
    experts = r.count("num_local_experts", low=0, high=100_000, default=0)
    if not experts:
        r.skip("num_experts_per_tok", "intermediate_size")
        return Dense(r.count("shared_intermediate_size"))
    top_k = r.count("num_experts_per_tok", high=experts)
    return MoE(experts, top_k, r.count("intermediate_size"), shared_width=shared)


def _state_space(
    r: Reader, heads: str, dim: str, groups: str, state: str, conv: str, bias: str
) -> StateSpace:
    """The state space under a family's names of its dims."""
    count, shared = r.count(heads, high=100_000), r.count(groups, high=100_000, default=1)
    if count % shared:
        raise UsageError(f"{r.origin}: {groups} = {shared} does not divide {heads} = {count}")
    return StateSpace(
        heads=count,
        head_dim=r.count(dim, high=65_536),
        groups=shared,
        state=r.count(state, high=65_536),
        conv_width=r.count(conv, high=1024),
        chunk=256,
        conv_bias=r.flag(bias, default=True),
    )
