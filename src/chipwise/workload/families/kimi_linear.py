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
from chipwise.workload.model import Dense, Layer, LinearAttention, MoE, Network
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
    latent = replace(latent_dims(r), gate=r.flag("mla_use_output_gate", default=False))
    experts = r.count("num_experts", "n_routed_experts", high=100_000)
    width = r.count("moe_intermediate_size")
    moe = MoE(
        experts=experts,
        top_k=r.count("num_experts_per_token", "num_experts_per_tok", high=experts),
        width=width,
        shared_width=r.count("num_shared_experts", "n_shared_experts", low=0, high=1000, default=0) * width,
        router_buffer=True,
        latent=r.count("routed_expert_hidden_size", low=0, default=0),
        latent_norm=r.flag("latent_moe_use_norm", default=False),
    )
    depth_mix = r.count("attn_res_block_size", low=0, default=0) > 0
    dense, is_dense = Dense(r.count("intermediate_size")), dense_layers(r, layers)
    stack = [
        Layer(latent if i + 1 in full else delta, dense if is_dense[i] else moe, depth_mix=depth_mix)
        for i in range(layers)
    ]
    return Network(stack, tied(r, False), prediction(r, Layer(latent, moe)))
