"""Nemotron-H and Nemotron 3: each layer is one of Mamba-2, attention, feed-forward or experts.

Shapes: huggingface/transformers, models/nemotron_h. Feed-forwards have no gate (squared ReLU); experts may
work on a latent projection. A prediction module runs its own pattern of layers (vllm, nemotron_h_mtp.py).
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError, shorten
from chipwise.workload.families.shared import attention_dims, state_format, tied
from chipwise.workload.model import MTP, Dense, Layer, MoE, Network, StateSpace
from chipwise.workload.reader import Reader

__all__ = ["read"]

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
# names that newer configurations use for the same
SAME = {"linear_attention": "mamba", "full_attention": "attention"}


def read(r: Reader) -> Network:
    """Layers by pattern, and prediction modules by theirs."""
    r.require("mlp_hidden_act", ("relu2", "relu", "gelu", "silu"), "feed-forwards without a gate are read")
    r.require("sliding_window", (None,), "full attention is read for this family")
    r.skip(
        "chunk_size",
        "expand",
        "mamba_hidden_act",
        "mamba_proj_bias",
        "mamba_ssm_cache_dtype",
        "n_shared_experts",
    )
    r.skip("moe_shared_expert_overlap", "num_logits_to_keep", "rescale_prenorm_residual", "residual_in_fp32")
    r.skip(
        "time_step_floor",
        "time_step_limit",
        "time_step_max",
        "time_step_min",
        "time_step_rank",
        "use_mamba_kernels",
    )
    kinds = _pattern(r, "layers_block_type", "hybrid_override_pattern")
    if not kinds:
        raise UsageError(
            f"{r.origin}: no layers_block_type or hybrid_override_pattern", "it names every layer"
        )
    count = r.count("num_hidden_layers", high=10_000, default=len(kinds))
    if count != len(kinds):
        what = f"{r.origin}: num_hidden_layers = {count}, but the pattern names {len(kinds)} layers"
        raise UsageError(what, "correct one of them")
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    ahead = _pattern(r, "mtp_layers_block_type", "mtp_hybrid_override_pattern")
    if modules and not ahead:
        r.assume("prediction modules without a pattern: one attention layer and one of experts")
        ahead = ("attention", "moe")
    if "mlp" not in (*kinds, *ahead):
        r.skip("intermediate_size")  # a width that no layer uses
    made = {kind: _layer(r, kind) for kind in dict.fromkeys((*kinds, *ahead))}
    mtp = MTP(modules, tuple(made[kind] for kind in ahead)) if ahead else None
    return Network([made[kind] for kind in kinds], tied(r, False), mtp)


def _pattern(r: Reader, names: str, letters: str) -> tuple[str, ...]:
    if r.has(names):
        r.skip(letters)
        kinds = tuple(SAME.get(kind, kind) for kind in r.names(names))
    else:
        text = r.text(letters, default="")
        kinds = tuple(LETTERS.get(letter, letter) for letter in text)
    strange = [kind for kind in kinds if kind not in LETTERS.values()]
    if strange:
        what = f"{r.origin}: layer kind {shorten(strange[0], 20)!r} is not read for this family"
        raise UsageError(what, f"one of {', '.join(LETTERS.values())}")
    if len(kinds) > 10_000:
        raise UsageError(f"{r.origin}: a pattern of {len(kinds):,} layers", "10,000 layers at most")
    return kinds


def _layer(r: Reader, kind: str) -> Layer:
    bias = r.flag("mlp_bias", default=False)
    if kind == "mamba":
        return Layer(_state_space(r), None)
    if kind == "attention":
        older = "attention_head_dim"
        dims = attention_dims(r, older if r.has(older) and not r.has("head_dim") else "head_dim")
        qkv = r.flag("attention_bias", default=False)
        return Layer(replace(dims, qkv_bias=qkv, out_bias=qkv), None)
    if kind == "mlp":
        return Layer(None, Dense(r.count("intermediate_size"), gated=False, bias=bias))
    if bias:
        raise UsageError(f"{r.origin}: mlp_bias with experts is not read yet", "mlp_bias: false")
    experts = r.count("n_routed_experts", high=100_000)
    return Layer(
        None,
        MoE(
            experts=experts,
            top_k=r.count("num_experts_per_tok", high=experts),
            width=r.count("moe_intermediate_size"),
            gated=False,
            shared_width=r.count("moe_shared_expert_intermediate_size", low=0, default=0),
            router_buffer=True,
            latent=r.count("moe_latent_size", low=0, default=0),
        ),
    )


def _state_space(r: Reader) -> StateSpace:
    heads = r.count("mamba_num_heads", high=100_000)
    groups = r.count("n_groups", "mamba_n_groups", high=100_000)
    if heads % groups:
        what = f"{r.origin}: n_groups = {groups} does not divide mamba_num_heads = {heads}"
        raise UsageError(what, "every group serves the same number of heads")
    return StateSpace(
        heads=heads,
        head_dim=r.count("mamba_head_dim", high=65_536),
        groups=groups,
        state=r.count("ssm_state_size", high=65_536),
        conv_width=r.count("conv_kernel", "mamba_d_conv", high=1024),
        chunk=r.count("chunk_size", "mamba_chunk_size", high=1_000_000, default=128),
        conv_bias=r.flag("use_conv_bias", "mamba_conv_bias", default=True),
        bias=r.flag("use_bias", default=False),
        state_format=state_format(r, "mamba_ssm_cache_dtype"),
    )
