"""A transformer by its dimensions alone (`transformer:layers=40,hidden=5120,...`): no biases, RMS norms."""

from __future__ import annotations

from chipwise.errors import UsageError
from chipwise.workload.families.shared import layer_count
from chipwise.workload.model import FFN, Dense, Ends, Layer, MoE, Network, SelfAttention
from chipwise.workload.reader import Reader

__all__ = ["read"]


def read(r: Reader) -> Network:
    """All layers alike. Raises `UsageError` for heads that do not divide."""
    hidden, heads = r.count("hidden_size", high=1_000_000), r.count("num_attention_heads", high=100_000)
    kv_heads = r.count("num_key_value_heads", high=100_000, default=heads)
    if heads % kv_heads:
        raise UsageError(f"kv_heads {kv_heads} does not divide {heads} heads", "give a divisor")
    if not r.has("head_dim") and hidden % heads:
        raise UsageError(f"{heads} heads do not divide the width of {hidden}", "give head_dim too")
    size = r.count("head_dim", high=65_536, default=hidden // heads)
    attention = SelfAttention(heads, kv_heads, size, causal=r.flag("causal"))
    gated, width = r.flag("gated"), r.count("intermediate_size")
    ffn: FFN = Dense(width, gated=gated)
    if r.has("num_experts"):
        experts = r.count("num_experts", high=100_000)
        shared = r.count("shared_expert_intermediate_size", default=0, low=0)
        top_k = r.count("num_experts_per_tok", high=experts)
        ffn = MoE(experts, top_k, width, gated=gated, shared_width=shared)
    return Network([Layer(attention, ffn)] * layer_count(r), r.flag("tied"), ends=Ends())
