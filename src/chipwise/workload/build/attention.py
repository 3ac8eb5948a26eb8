"""Softmax attention: over keys and values of its own input or of an encoder's output, on latents, on compressed tokens.

Sources: deepseek-ai/DeepSeek-V3, inference/model.py (MLA); DeepSeek-V3.2-Exp, inference/model.py (Indexer);
huggingface/transformers, models/deepseek_v4 (DeepseekV4Attention, ...Compressor, ...Indexer).
"""

from __future__ import annotations

from chipwise.workload.axes import ONE, Axis, Size, Tensor
from chipwise.workload.build.part import OF, OR, D, H, I, J, K, M, N, O, P, Part, Q, R, W, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS
from chipwise.workload.model import CompressedAttention, CrossAttention, IndexKeys, LatentAttention, SelfAttention
from chipwise.workload.nodes import (
    Attend,
    CompressedAttend,
    Grouped,
    Held,
    IndexScore,
    LatentAttend,
    Linear,
    Node,
    Pointwise,
    norm_tensor,
)
from chipwise.workload.precision import Precision

# Runtimes keep index keys in 8 bit with one 32-bit scale per key, whatever the cache's format is
# (vllm, DeepseekV32IndexerCache: 132 bytes for 128 values).
INDEX_FORMAT = FORMATS["fp8_row"]


def latent_attention(a: LatentAttention, p: Precision) -> Part:
    """Low-rank query and key/value projections, attention on the latent, output projection."""
    axes = {"H": a.heads, "R": a.kv_rank, "N": a.nope_dim, "P": a.rope_dim, "W": a.value_dim}
    activation = p.activation("attention")
    down = [matrix("kv_a", R + P, M, p, bias=a.bias)]
    small: list[Tensor] = [norm_tensor("kv_a_norm", R)]
    nodes: tuple[Node, ...]
    query: Size
    if a.q_rank:
        axes["Q"] = a.q_rank
        query = Q
        small.append(norm_tensor("q_a_norm", Q))
        nodes = (
            Linear("qkv_a", (matrix("q_a", Q, M, p, bias=a.bias), *down), activation),
            Pointwise("latent_norms", Q + R + P, 2.0, tuple(small)),
            Linear("q_b", (matrix("q_b", H * (N + P), Q, p),), activation),
        )
    else:
        query = M
        nodes = (
            Linear("kv_a", tuple(down), activation),
            Pointwise("latent_norms", R + P, 2.0, tuple(small)),
            Linear("q", (matrix("q", H * (N + P), M, p),), activation),
        )
    caches = [KVSpec("latent", R + P, p.kv)]
    if a.index is not None:
        index = indexer(a.index, query, p)
        nodes += index.nodes
        axes |= index.axes
        caches += index.caches
    nodes += (
        Pointwise("rope", H * P, 2.0),
        LatentAttend(
            up=matrix("kv_b", H * (N + W), R, p),
            heads=H,
            rank=R,
            nope=N,
            rope=P,
            value=W,
            cache=p.kv,
            activation=activation,
            top_k=a.index.top_k if a.index else a.top_k,
        ),
    )
    if a.gate:
        nodes += (
            Linear("gate", (matrix("gate", H if a.gate == "head" else H * W, M, p),), activation),
            Pointwise("gated", H * W, 3.0),
        )
    nodes += (Linear("o", (matrix("o", M, H * W, p, bias=a.bias),), activation),)
    return Part(nodes, axes, tuple(caches))


def indexer(x: IndexKeys, query: Size, p: Precision, *, every: int = 1) -> Part:
    """Index queries from the query latent (or the input), one index key per token (or per `every` tokens,
    where the key comes from a compressor), one weight per head where scores are summed. The key's norm has
    an offset in DeepSeek's form; unweighted heads have norms of query and key without.
    """
    activation = p.activation("attention")
    nodes: tuple[Node, ...] = (Linear("index_q", (matrix("index_q", I * J, query, p),), activation),)
    norms: tuple[Tensor, ...] = (norm_tensor("index_k_norm", J, bias=True),)
    if x.weighted:
        # the weights of the heads stay in 16 bit
        weights = Tensor("index_weights", "router", I, M, p.weight("router"))
        nodes += (Linear("index_weights", (weights,), FORMATS["bf16"]),)
    else:
        norms = (norm_tensor("index_q_norm", J), norm_tensor("index_k_norm", J))
    if every == 1:
        nodes += (
            Linear("index_k", (matrix("index_k", J, M, p),), activation),
            Pointwise("index_norm", I * J + J, 2.0, norms),
        )
    if x.pool > 1:
        # one gate and one place in the pool per value (GLM-5.3)
        places = Tensor("index_places", "norm", ONE * x.pool, J, p.base)
        nodes += (
            Linear("index_gate", (matrix("index_gate", J, M, p),), activation),
            Pointwise("index_pool", 2 * J, 1.0, (places,)),
        )
    every = max(every, x.pool)
    nodes += (IndexScore(I, J, INDEX_FORMAT, every),)
    cache = KVSpec("index", J, INDEX_FORMAT, every=every)
    return Part(nodes, {"I": x.heads, "J": x.head_dim}, (cache,))


def compressed_attention(a: CompressedAttention, p: Precision) -> Part:
    """Low-rank query, shared key/value, compressor and index where the layer has them, grouped output."""
    axes = {
        "H": a.heads,
        "D": a.head_dim,
        "Q": a.q_rank,
        "O": a.out_groups,
        "o": a.out_rank,
        "f": a.heads * a.head_dim // a.out_groups,
    }
    activation = p.activation("attention")
    norms = (norm_tensor("q_a_norm", Q), norm_tensor("kv_norm", D), norm_tensor("sinks", H))
    nodes: tuple[Node, ...] = (
        Linear("qkv_a", (matrix("q_a", Q, M, p), matrix("kv", D, M, p)), activation),
        Pointwise("latent_norms", Q + D, 2.0, norms),
        Linear("q_b", (matrix("q_b", H * D, Q, p),), activation),
    )
    caches = [KVSpec("window", D, p.kv, a.window)]
    if a.ratio:
        nodes += _compressor("compress", D, a.ratio, a.overlap, p)
        caches.append(KVSpec("latent", D, p.kv, every=a.ratio))
        if a.index is not None:
            nodes += _compressor("index_compress", J, a.ratio, a.overlap, p)
            index = indexer(a.index, Q, p, every=a.ratio)
            nodes += index.nodes
            axes |= index.axes
            caches += index.caches
    top_k = a.index.top_k if a.index else 0
    out = Tensor("o_a", "attention", OR, OF, p.weight("attention"), copies=O)
    nodes += (
        Pointwise("rope", H * D, 2.0),
        CompressedAttend(H, D, p.kv, a.window, a.ratio, top_k),
        Grouped("o_a", out, activation),
        Linear("o", (matrix("o_b", M, O * OR, p),), activation),
    )
    return Part(nodes, axes, tuple(caches))


def _compressor(name: str, width: Size, ratio: int, overlap: bool, p: Precision) -> tuple[Node, ...]:
    # values and gates, both halves of an overlapping window; a learned bias per place in the window
    span = 2 * width if overlap else width
    small = (Tensor(f"{name}_bias", "norm", ONE * ratio, span, p.base), norm_tensor(f"{name}_norm", width))
    return (
        Linear(name, (matrix(f"{name}_kv", span, M, p), matrix(f"{name}_gate", span, M, p)), p.activation("attention")),
        Pointwise(f"{name}_pool", 2 * span, 1.0, small),
    )


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
        Pointwise(
            "rope",
            H * D if a.borrowed else H * D + K * D + K * value,
            2.0,
            tuple(small),
            sums=0 if a.qk_norm != "all" else 1 if a.borrowed else 2,
        ),
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
