"""Step 3.5 and 3.7 Flash: sliding layers with more query heads than full ones, a gate per head, experts.

Shapes: vllm, model_executor/models/step3p5.py. Where a configuration gives neither `attention_other_setting`
nor the gate, sliding layers have the heads of full ones and no gate, as in that code; the published
Step-3.5-Flash has 96 query heads instead of 64 there and a gate, so that such a count is some percent low.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError, shorten
from chipwise.workload.families.shared import check_activation, layer_count, tied
from chipwise.workload.model import MTP, Dense, Layer, MoE, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """Layers; prediction modules of a sliding layer with a dense feed-forward."""
    check_activation(r)
    layers = layer_count(r)
    r.skip("moe_router_activation", "moe_router_scaling_factor", "need_fp32_gate", "norm_expert_weight")
    r.skip(
        "swiglu_limits",
        "swiglu_limits_shared",
        "use_rope_layers",
        "yarn_only_types",
        "partial_rotary_factors",
    )
    r.skip("max_seq_len", "att_impl_type", "n_shared_experts")
    full = _full(r)
    slide = _sliding(r, full)
    moe, dense = _experts(r), Dense(r.count("intermediate_size"))
    sparse = _sparse_layers(r, layers)
    spans = _windows(r, layers)
    stack = [
        Layer(replace(slide, window=spans[i]) if spans[i] else full, moe if i in sparse else dense)
        for i in range(layers)
    ]
    modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
    module = Layer(replace(slide, window=max(spans)), dense)
    return Network(stack, tied(r, False), MTP(modules, (module,)))


def _windows(r: Reader, layers: int) -> list[int]:
    """The window of every layer, 0 for full; a list of kinds may go on with the prediction modules'."""
    kinds = r.names("layer_types")
    strange = sorted(set(kinds) - {"full_attention", "sliding_attention"})
    if strange or len(kinds) < layers:
        found = f"the kind {strange[0]!r}" if strange else f"{len(kinds)} entries"
        raise UsageError(
            f"{r.origin}: layer_types has {found}", f"full or sliding_attention, {layers} of them"
        )
    window = r.count("sliding_window") if "sliding_attention" in kinds else 0
    return [window if kind == "sliding_attention" else 0 for kind in kinds[:layers]]


def _full(r: Reader) -> SelfAttention:
    heads = r.count("num_attention_heads", high=100_000)
    kv_heads = r.count("num_attention_groups", "num_key_value_heads", high=100_000)
    if heads % kv_heads:
        raise UsageError(
            f"{r.origin}: {kv_heads} key/value heads do not divide num_attention_heads = {heads}"
        )
    gate = r.flag("use_head_wise_attn_gate", default=False)
    bias = r.flag("attention_bias", default=False)
    dim = r.count("head_dim", high=65_536)
    return SelfAttention(heads, kv_heads, dim, qkv_bias=bias, qk_norm="head", gate="head" if gate else "")


def _sliding(r: Reader, full: SelfAttention) -> SelfAttention:
    other = r.table("attention_other_setting")
    if not other:
        r.assume("attention_other_setting not given: sliding layers have the heads of full ones")
        return full
    inner = Reader(other, f"{r.origin}: attention_other_setting")
    inner.require("attention_type", ("sliding_attention",), "the other attention is the sliding one")
    heads = inner.count("num_attention_heads", high=100_000)
    kv_heads = inner.count("num_attention_groups", high=100_000)
    if heads % kv_heads:
        raise UsageError(f"{inner.origin}: num_attention_groups = {kv_heads} does not divide {heads} heads")
    return replace(full, heads=heads, kv_heads=kv_heads, head_dim=inner.count("head_dim", high=65_536))


def _experts(r: Reader) -> MoE:
    experts = r.count("moe_num_experts", "num_experts", "n_routed_experts", high=100_000)
    return MoE(
        experts=experts,
        top_k=r.count("moe_top_k", "num_experts_per_tok", high=experts),
        width=r.count("moe_intermediate_size"),
        shared_width=r.count("share_expert_dim", low=0, default=0),
        router_buffer=r.flag("use_moe_router_bias", default=False),
    )


def _sparse_layers(r: Reader, layers: int) -> frozenset[int]:
    if r.has("moe_layers_enum"):
        r.skip("first_k_dense_replace")
        text = r.text("moe_layers_enum")
        items = [item.strip() for item in text.split(",") if item.strip()]
        if not all(item.isascii() and item.isdigit() and len(item) < 7 for item in items):
            raise UsageError(
                f"{r.origin}: moe_layers_enum is {shorten(text, 40)!r}", "layer numbers, comma-separated"
            )
        return frozenset(int(item) for item in items)
    return frozenset(range(r.count("first_k_dense_replace", low=0), layers))
