"""Kimi Linear and Kimi K3: three layers of delta attention with a decay per channel to one of latent
attention, experts. K3 adds gates on latent attention, experts on a narrower projection, and a mixture over
earlier blocks of layers in place of the plain residual.

Shapes: vllm, model_executor/models/kimi_linear.py and layers/kda.py; huggingface/transformers, models/kimi_k3.
Layers are numbered from one. K3 pads one vector of 96 decays to 128 in its checkpoint: 2,208 entries not counted.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import UsageError
from chipwise.workload.families.deepseek import latent_dims, prediction
from chipwise.workload.families.shared import check_activation, dense_layers, layer_count, tied
from chipwise.workload.model import Dense, IndexKeys, Layer, LinearAttention, MoE, Network
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """Layers of delta and of latent attention."""
    check_activation(r)
    r.skip(
        "mla_use_nope",
        "moe_renormalize",
        "moe_router_activation_func",
        "num_expert_group",
        "use_grouped_topk",
        "activation_situ_beta",
        "activation_situ_linear_beta",
    )
    layers = layer_count(r)
    if not r.has("linear_attn_config"):
        return _flat(r, layers)
    inner = Reader(r.table("linear_attn_config"), f"{r.origin}: linear_attn_config")
    heads, dim = inner.count("num_heads", high=100_000), inner.count("head_dim", high=65_536)
    delta = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_dim=dim,
        value_dim=dim,
        conv_width=inner.count("short_conv_kernel_size", high=1024),
        gate_rank=dim,
        full_gate=inner.flag("use_full_rank_gate", default=False),
    )
    full, linear = set(inner.numbers("full_attn_layers")), set(inner.numbers("kda_layers"))
    if full & linear or full | linear != set(range(1, layers + 1)):
        what = f"{inner.origin}: full_attn_layers and kda_layers do not name every layer once"
        raise UsageError(what, f"1 to {layers}")
    latent = replace(latent_dims(r), gate="element" if r.flag("mla_use_output_gate", default=False) else "")
    moe = _experts(r)
    depth_mix = r.count("attn_res_block_size", low=0, default=0) > 0
    dense, is_dense = Dense(r.count("intermediate_size")), dense_layers(r, layers)
    stack = [
        Layer(latent if i + 1 in full else delta, dense if is_dense[i] else moe, depth_mix=depth_mix)
        for i in range(layers)
    ]
    return Network(stack, tied(r, False), prediction(r, Layer(latent, moe)))


def _experts(r: Reader) -> MoE:
    experts = r.count("num_experts", "n_routed_experts", high=100_000)
    width = r.count("moe_intermediate_size")
    return MoE(
        experts=experts,
        top_k=r.count("num_experts_per_token", "num_experts_per_tok", high=experts),
        width=width,
        shared_width=r.count("num_shared_experts", "n_shared_experts", low=0, high=1000, default=0) * width,
        router_buffer=True,
        latent=r.count("routed_expert_hidden_size", low=0, default=0),
        latent_norm=r.flag("latent_moe_use_norm", default=False),
    )


def _flat(r: Reader, layers: int) -> Network:
    """The form that transformers 5 writes, of Kimi Linear and its kin: keys `linear_*`, layers by name.

    Ling 3.0 has full-rank decays and gates, and a gate per head on latent attention; GLM-5.3 has four residual
    streams and index keys, one for every `index_kpool` tokens.
    """
    kind = r.data.get("model_type")
    r.skip(
        "short_conv_kernel_size",
        "layer_group_size",
        "kda_safe_gate",
        "kda_lower_bound",
        "mtp_loss_scaling_factor",
    )
    r.skip(
        "indexer_types", "index_kpool_always_select_tail", "linear_lower_bound", "hc_eps", "hc_sinkhorn_iters"
    )
    heads, dim = r.count("linear_num_heads", high=100_000), r.count("linear_head_dim", high=65_536)
    ling = kind == "bailing_hybrid"
    delta = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_dim=dim,
        value_dim=dim,
        conv_width=r.count("linear_conv_kernel_dim", high=1024),
        gate_rank=dim,
        full_gate=ling,
        full_decay=ling,
    )
    index = None
    if r.has("index_topk"):
        index = IndexKeys(
            heads=r.count("index_n_heads", high=100_000),
            head_dim=r.count("index_head_dim", high=65_536),
            top_k=r.count("index_topk"),
            pool=r.count("index_kpool", default=1),
        )
    latent = replace(latent_dims(r, index), gate="head" if ling else "")
    kinds = r.names("layer_types", length=layers)
    strange = sorted(set(kinds) - {"linear_attention", "full_attention", "indexed_attention"})
    if strange:
        raise UsageError(f"{r.origin}: layer type {strange[0]!r} is not read for this family")
    streams = r.count("hc_mult", high=64, default=1)
    moe, dense, is_dense = _experts(r), Dense(r.count("intermediate_size")), dense_layers(r, layers)
    stack = [
        Layer(delta if kind == "linear_attention" else latent, dense if is_dense[i] else moe, streams=streams)
        for i, kind in enumerate(kinds)
    ]
    module = prediction(r, Layer(latent, moe, streams=streams))
    return Network(stack, tied(r, False), replace(module, tables=0))
