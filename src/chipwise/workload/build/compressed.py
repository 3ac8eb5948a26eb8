"""DeepSeek V4 attention: one shared key = value head over a window and over compressed older tokens.

Source: huggingface/transformers, models/deepseek_v4 (DeepseekV4Attention, ...Compressor, ...Indexer).
"""

from __future__ import annotations

from chipwise.workload.axes import ONE, Size
from chipwise.workload.build.latent import indexer
from chipwise.workload.build.letters import OF, OR, D, H, J, M, O, Q
from chipwise.workload.build.part import Part, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.mixers import CompressedAttend, Grouped
from chipwise.workload.model import CompressedAttention
from chipwise.workload.nodes import Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.tensor import Tensor

__all__ = ["compressed_attention"]


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
    small = (
        Tensor(f"{name}_bias", "norm", ONE * ratio, span, p.base),
        norm_tensor(f"{name}_norm", width),
    )
    return (
        Linear(
            name,
            (matrix(f"{name}_kv", span, M, p), matrix(f"{name}_gate", span, M, p)),
            p.activation("attention"),
        ),
        Pointwise(f"{name}_pool", 2 * span, 1.0, small),
    )
