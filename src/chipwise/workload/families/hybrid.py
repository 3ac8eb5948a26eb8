"""State spaces and short convolutions with or beside attention: Granite 4, Bamba, Mamba-2, Falcon-H1, Jamba, LFM2.

Shapes: huggingface/transformers, models/granitemoehybrid, bamba, mamba2, falcon_h1, jamba, lfm2 and lfm3.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_ffn,
    layer_count,
    tied,
    windows,
)
from chipwise.workload.model import (
    FFN,
    Dense,
    Layer,
    MoE,
    SelectiveScan,
    SelfAttention,
    ShortConvolution,
    StateSpace,
)
from chipwise.workload.reader import Reader

__all__ = ["read", "read_bamba", "read_falcon_h1", "read_jamba", "read_lfm2", "read_mamba2"]

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
    space = _mamba(r)
    return [Layer(space if MIXERS[kind] else attention, ffn) for kind in kinds], tied(r, True)


def read_bamba(r: Reader) -> tuple[list[Layer], bool]:
    """Bamba: Mamba-2, attention in the layers of `attn_layer_indices`, a dense feed-forward in each."""
    r.skip("mamba_expand", "mamba_chunk_size", "time_step_limit", "z_loss_coefficient", "num_logits_to_keep")
    layers, bias = layer_count(r), r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    ffn, space = dense_ffn(r, bias=r.flag("mlp_bias", default=False)), _mamba(r)
    full = set(r.numbers("attn_layer_indices", default=()))
    if not full:
        r.assume("attn_layer_indices not given: no layer has attention")
    return [Layer(attention if i in full else space, ffn) for i in range(layers)], tied(r, False)


def read_falcon_h1(r: Reader) -> tuple[list[Layer], bool]:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, so that each keeps a cache and a state."""
    r.skip(*(key for key in r.data if key.endswith(("_multiplier", "_multipliers"))))
    r.skip("mamba_expand", "mamba_chunk_size", "mamba_use_mlp", "time_step_limit", "num_logits_to_keep")
    r.skip("time_step_floor", "time_step_max", "time_step_min", "projectors_bias", "mamba_norm_before_gate")
    bias = r.flag("attention_bias", default=False)
    attention = replace(attention_dims(r), qkv_bias=bias, out_bias=bias)
    space = replace(_mamba(r), normed=r.flag("mamba_rms_norm", default=False))
    inner = r.count("mamba_d_ssm", default=space.heads * space.head_dim)
    if inner != space.heads * space.head_dim:
        what = f"{r.origin}: mamba_d_ssm = {inner} is not mamba_n_heads x mamba_d_head"
        raise UsageError(what, "correct one of them")
    ffn = dense_ffn(r, bias=r.flag("mlp_bias", default=False))
    return [Layer(attention, ffn, beside=space)] * layer_count(r), tied(r, False)


def read_jamba(r: Reader) -> tuple[list[Layer], bool]:
    """Jamba: Mamba-1, attention without positions in one layer of `attn_layer_period`, experts in every second."""
    r.skip("use_mamba_kernels", "use_mambapy", "use_associative_scan", "num_logits_to_keep")
    layers, hidden = layer_count(r), r.count("hidden_size", high=1_000_000)
    space = SelectiveScan(
        channels=r.count("mamba_expand", high=64, default=2) * hidden,
        state=r.count("mamba_d_state", high=65_536, default=16),
        rank=r.count("mamba_dt_rank", default=-(-hidden // 16)),
        conv_width=r.count("mamba_d_conv", high=1024, default=4),
        conv_bias=r.flag("mamba_conv_bias", default=True),
        bias=r.flag("mamba_proj_bias", default=False),
        normed=True,
    )
    attention, dense = attention_dims(r), dense_ffn(r)
    full = _every(r, "attn_layer", layers, (8, 4))
    experts = r.count("num_experts", high=100_000, default=1)
    top_k = r.count("num_experts_per_tok", high=max(experts, 2), default=2)
    sparse = _every(r, "expert_layer", layers, (2, 1)) if experts > 1 else [False] * layers
    moe = MoE(experts, min(top_k, experts), dense.width)
    return [Layer(attention if full[i] else space, moe if sparse[i] else dense) for i in range(layers)], tied(
        r, False
    )


def read_lfm2(r: Reader) -> tuple[list[Layer], bool]:
    """LFM2 and LFM3: short convolutions, attention with norms over heads in the layers that `layer_types` names."""
    r.skip(
        *(key for key in r.data if key.startswith(("block_", "conv_dim")) or key == "conv_use_xavier_init")
    )
    r.skip("num_heads", "use_pos_enc", "norm_eps")
    layers, hidden = layer_count(r), r.count("hidden_size", high=1_000_000)
    gate = r.flag("use_attention_gate", default=False)
    attention = replace(attention_dims(r), qk_norm="head", gate="element" if gate else "")
    convolution = ShortConvolution(
        heads=attention.heads,
        head_dim=hidden // attention.heads,
        width=r.count("conv_L_cache", high=1024, default=3),
        bias=r.flag("conv_bias", default=False),
    )
    if hidden % attention.heads:
        raise UsageError(f"{r.origin}: num_attention_heads = {attention.heads} does not divide {hidden}")
    feeds = _lfm2_feeds(r, layers)
    listed = r.numbers("full_attn_idxs", default=())
    kinds = (
        r.names("layer_types", length=layers)
        if r.has("layer_types")
        else tuple("full_attention" if i in listed else "conv" for i in range(layers))
    )
    spans = windows(
        Reader({**r.data, "layer_types": ["full_attention" if k == "conv" else k for k in kinds]}, r.origin),
        layers,
    )
    r.skip("sliding_window")
    around = r.flag("use_sandwich_norm", default=False)
    mixers: list[SelfAttention | ShortConvolution] = [
        convolution if kind == "conv" else replace(attention, window=spans[i]) for i, kind in enumerate(kinds)
    ]
    return [
        Layer(mixer, feed, norms="around" if around else "before")
        for mixer, feed in zip(mixers, feeds, strict=True)
    ], tied(r, True)


def _lfm2_feeds(r: Reader, layers: int) -> list[FFN]:
    """Two thirds of `intermediate_size`, rounded up, where `block_auto_adjust_ff_dim`; with experts after the first
    `num_dense_layers`."""
    width = r.count("intermediate_size", "block_ff_dim")
    if r.flag("block_auto_adjust_ff_dim", default=False):
        multiple = r.count("block_multiple_of", default=256)
        width = -(-(2 * width // 3) // multiple) * multiple
    dense = Dense(width)
    if not r.has("num_experts"):
        return [dense] * layers
    experts = r.count("num_experts", high=100_000)
    moe = MoE(
        experts,
        r.count("num_experts_per_tok", high=experts),
        r.count("moe_intermediate_size"),
        router_buffer=r.flag("use_expert_bias", default=True),
    )
    first = r.count("num_dense_layers", low=0, default=0)
    return [dense if i < first else moe for i in range(layers)]


def _every(r: Reader, what: str, layers: int, usual: tuple[int, int]) -> list[bool]:
    period, offset = (
        r.count(f"{what}_period", default=usual[0]),
        r.count(f"{what}_offset", low=0, default=usual[1]),
    )
    return [i % period == offset for i in range(layers)]


def _mamba(r: Reader) -> StateSpace:
    """Mamba-2 under the names that hybrids give its dims."""
    names = ("n_heads", "d_head", "n_groups", "d_state", "d_conv", "conv_bias")
    space = _state_space(r, *(f"mamba_{name}" for name in names))
    return replace(space, bias=r.flag("mamba_proj_bias", default=False))


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
