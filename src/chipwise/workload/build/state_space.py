"""Mamba-2 (state-space duality) as Nemotron-H and its kin use it.

Source: huggingface/transformers, models/nemotron_h and models/zamba2 (Mamba2 mixer).
"""

from __future__ import annotations

from chipwise.workload.build.letters import SD, A, B, C, M, S
from chipwise.workload.build.part import Part, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS, get_format
from chipwise.workload.model import StateSpace
from chipwise.workload.nodes import Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.recurrent import Convolve, Scan
from chipwise.workload.tensor import Tensor

__all__ = ["state_space"]


def state_space(m: StateSpace, p: Precision) -> Part:
    """One input projection (gate, input, B, C, step), a short convolution, the scan, a gated norm, output.

    Per token and head of size s with state a: 4 s a FLOPs (update and read of the state; the decay is folded
    in); worked through in chunks of c tokens 2 c s more per head and 2 c a per group, for the products inside
    a chunk.
    """
    axes = {"S": m.heads, "s": m.head_dim, "B": m.groups, "a": m.state, "c": m.conv_width}
    inner, shared = S * SD, 2 * B * A
    channels = inner + shared
    activation = p.activation("attention")
    state = S * SD * A
    small = (
        norm_tensor("a_log", S),
        norm_tensor("skip", S),
        norm_tensor("dt_bias", S),
        norm_tensor("norm", inner),
    )
    stored = get_format(m.state_format)
    nodes: tuple[Node, ...] = (
        Linear("in", (matrix("in", inner + channels + S, M, p, bias=m.bias),), activation),
        Convolve(Tensor("conv", "norm", channels, C, p.base, bias=m.conv_bias)),
        Scan(
            heads=S,
            one=4 * state,
            chunked=4 * state + 2 * m.chunk * inner + 2 * m.chunk * B * A,
            state=state,
            state_format=stored,
            values=channels + S + inner,
            out=inner,
            name="state_space",
        ),
        Pointwise("gated_norm", inner, 3.0, small),
        Linear("o", (matrix("o", M, inner, p, bias=m.bias),), activation),
    )
    caches = (
        KVSpec("state", state, stored),
        KVSpec("state", channels * (m.conv_width - 1), FORMATS["bf16"]),
    )
    return Part(nodes, axes, caches)
