"""Multi-head latent attention, with or without index keys that select tokens.

Source: deepseek-ai/DeepSeek-V3, inference/model.py (MLA); DeepSeek-V3.2-Exp, inference/model.py (Indexer).
"""

from __future__ import annotations

from chipwise.workload.axes import ONE, Size
from chipwise.workload.build.letters import H, I, J, M, N, P, Q, R, W
from chipwise.workload.build.part import Part, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS
from chipwise.workload.mixers import IndexScore, LatentAttend
from chipwise.workload.model import IndexKeys, LatentAttention
from chipwise.workload.nodes import Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.tensor import Tensor

__all__ = ["INDEX_FORMAT", "indexer", "latent_attention"]

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
