"""MiniMax-M2: full attention with one norm over all query heads, sigmoid routing with a correction bias.
MiniMax-Text-01 and M1: seven layers of lightning attention to one of softmax attention, softmax routing.

Shapes: the checkpoint's modeling_minimax_m2.py; vllm, model_executor/models/minimax_m2.py and
minimax_text_01.py; huggingface/transformers, models/minimax.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.shared import attention_dims, check_activation, layer_count, tied
from chipwise.workload.model import Layer, LightningAttention, MoE
from chipwise.workload.reader import Reader

__all__ = ["read", "read_by_architecture", "read_text_01"]


def read(r: Reader) -> tuple[list[Layer], bool]:
    """Layers and tying. Multi-token-prediction modules are not part of the published checkpoint."""
    check_activation(r)
    r.require("attn_type_list", ([1] * layer_count(r),), "only full attention is read for this family")
    r.require("qk_norm_type", ("per_layer",), "only one norm over all heads is read")
    if r.flag("use_mtp", default=False):
        r.assume("multi-token-prediction modules are left out: the published checkpoint holds none")
    r.skip("mtp_transformer_layers", "num_mtp_modules", "layernorm_full_attention_beta")
    attention = replace(attention_dims(r), qk_norm="all" if r.flag("use_qk_norm", default=False) else "")
    experts = r.count("num_local_experts", high=100_000)
    moe = MoE(
        experts,
        r.count("num_experts_per_tok", high=experts),
        r.count("intermediate_size"),
        shared_width=r.count("shared_intermediate_size", low=0, default=0),
        router_buffer=r.flag("use_routing_bias", default=False),
    )
    return [Layer(attention, moe)] * layer_count(r), tied(r, False)


def read_text_01(r: Reader) -> tuple[list[Layer], bool]:
    """MiniMax-Text-01 and M1."""
    check_activation(r)
    layers = layer_count(r)
    factors = ("full_attention", "linear_attention", "full_attn", "linear_attn", "mlp")
    r.skip(*(f"layernorm_{name}_{end}" for name in factors for end in ("alpha", "beta")))
    r.skip(*(f"{name}_{end}_factor" for name in factors for end in ("alpha", "beta")))
    r.skip("postnorm", "max_model_len", "shared_moe_mode")
    r.require("shared_intermediate_size", (0,), "no shared expert is read for this family")
    full = attention_dims(r)
    lightning = LightningAttention(full.heads, full.head_dim, r.count("block_size", high=65_536, default=256))
    experts = r.count("num_local_experts", high=100_000)
    moe = MoE(experts, r.count("num_experts_per_tok", high=experts), r.count("intermediate_size"))
    if r.has("attn_type_list"):
        r.skip("layer_types")
        kinds = r.numbers("attn_type_list", length=layers)
        if set(kinds) - {0, 1}:
            raise UsageError(
                f"{r.origin}: attn_type_list holds {max(kinds)}", "0 lightning, 1 softmax attention"
            )
        is_full = [kind == 1 for kind in kinds]
    else:
        names = r.names("layer_types", length=layers)
        if set(names) - {"full_attention", "linear_attention"}:
            raise UsageError(f"{r.origin}: layer type {max(names)!r} is not read for this family")
        is_full = [name == "full_attention" for name in names]
    return [Layer(full if flag else lightning, moe) for flag in is_full], tied(r, False)


def read_by_architecture(r: Reader) -> tuple[list[Layer], bool]:
    """The plain name stands for both: M2 where the architecture says so, Text-01 otherwise."""
    return read(r) if "M2" in str(r.data.get("architectures")) else read_text_01(r)
