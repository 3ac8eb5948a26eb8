"""Softmax attention over keys and values of its own input, or of an encoder's output."""

from __future__ import annotations

from chipwise.workload.axes import Axis
from chipwise.workload.build.latent import indexer
from chipwise.workload.build.letters import D, H, K, M, W
from chipwise.workload.build.part import Part, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.model import CrossAttention, SelfAttention
from chipwise.workload.nodes import Attend, Held, Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.tensor import Tensor

__all__ = ["cross_attention", "self_attention"]


def self_attention(a: SelfAttention, p: Precision) -> Part:
    """Grouped-query attention; a gate per element makes the query projection twice as wide."""
    axes = {"H": a.heads, "K": a.kv_heads, "D": a.head_dim}
    value = D
    if a.value_dim and a.value_dim != a.head_dim:
        value, axes["W"] = W, a.value_dim
    projections = [matrix("q", H * D, M, p, bias=a.qkv_bias)]
    if not a.borrowed:
        projections.append(matrix("k", K * D, M, p, bias=a.qkv_bias and a.key_bias))
        if not a.values_are_keys:
            projections.append(matrix("v", K * value, M, p, bias=a.qkv_bias))
    if a.gate:
        projections.append(matrix("gate", H * value if a.gate == "element" else H, M, p))
    small: list[Tensor] = []
    if a.qk_norm:
        spans = (D, D) if a.qk_norm == "head" else (H * D, K * D)
        small.append(norm_tensor("q_norm", spans[0]))
        if not a.borrowed:
            small.append(norm_tensor("k_norm", spans[1]))
    if a.sinks:
        small.append(norm_tensor("sinks", H))
    activation = p.activation("attention")
    chosen = indexer(a.index, M, p) if a.index else Part()
    nodes: tuple[Node, ...] = (
        Linear("qkv", tuple(projections), activation),
        # rotary embedding, query/key norms and the write into the cache, in place
        Pointwise("rope", H * D if a.borrowed else H * D + K * D + K * value, 2.0, tuple(small)),
        *chosen.nodes,
        Attend(
            heads=H,
            kv_heads=K,
            head_dim=D,
            window=a.window,
            cache=p.kv,
            value_dim=None if value is D else value,
            causal=a.causal,
            top_k=a.index.top_k if a.index else 0,
        ),
    )
    if a.gate:
        nodes += (Pointwise("gate", H * value, 3.0),)
    nodes += (Linear("o", (matrix("o", M, H * value, p, bias=a.out_bias),), activation),)
    cache = KVSpec("window" if a.window else "full", K * (D + value), p.kv, a.window)
    kept = a.causal and not a.borrowed
    return Part(nodes, {**axes, **chosen.axes}, (cache, *chosen.caches) if kept else ())


def cross_attention(a: CrossAttention, p: Precision) -> Part:
    """Attention over an encoder's output, whose keys and values are computed once per sequence: their
    matrices are held, and their product belongs to the encoder's pass."""
    source = Axis("Y")
    axes = {"H": a.heads, "K": a.kv_heads, "D": a.head_dim, "Y": a.source_hidden}
    keys = (
        matrix("k", K * D, source, p, bias=a.qkv_bias and a.key_bias),
        matrix("v", K * D, source, p, bias=a.qkv_bias),
    )
    activation = p.activation("attention")
    nodes = (
        Linear("q", (matrix("q", H * D, M, p, bias=a.qkv_bias),), activation),
        Held("source_kv", keys),
        Attend(H, K, D, 0, p.kv, name="cross_attention", source=a.source, causal=False),
        Linear("o", (matrix("o", M, H * D, p, bias=a.out_bias),), activation),
    )
    return Part(nodes, axes, (KVSpec("cross", 2 * K * D, p.kv, a.source),))
