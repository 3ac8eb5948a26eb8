"""Mamba-2 (state-space duality) as Nemotron-H and its kin use it, Mamba-1 (Jamba), and a short convolution alone (LFM2).

Source: huggingface/transformers, models/nemotron_h and models/zamba2 (Mamba2 mixer), models/jamba, models/lfm2.
"""

from __future__ import annotations

from chipwise.workload.axes import ONE
from chipwise.workload.build.letters import SD, A, B, C, D, H, M, S
from chipwise.workload.build.part import Part, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS, get_format
from chipwise.workload.model import SelectiveScan, ShortConvolution, StateSpace
from chipwise.workload.nodes import Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.recurrent import Convolve, Scan
from chipwise.workload.tensor import Tensor

__all__ = ["selective_scan", "short_convolution", "state_space"]


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
    small: tuple[Tensor, ...] = (norm_tensor("a_log", S), norm_tensor("skip", S), norm_tensor("dt_bias", S))
    if m.normed:
        small += (norm_tensor("norm", inner),)
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


CHANNELS = 64
"""Channels of Mamba-1 that are split together."""


def selective_scan(m: SelectiveScan, p: Precision) -> Part:
    """Input and gate, a short convolution, step and input and output of the state, the scan, the output projection.

    Per token and channel with state a: 9 a FLOPs (decay, update and read, each token after the other).
    """
    size = CHANNELS if m.channels % CHANNELS == 0 else 1
    axes = {"S": m.channels // size, "s": size, "a": m.state, "c": m.conv_width}
    inner, rank = S * SD, ONE * m.rank
    activation = p.activation("attention")
    small: tuple[Tensor, ...] = (norm_tensor("a_log", inner * A), norm_tensor("skip", inner))
    norms: tuple[Tensor, ...] = ()
    if m.normed:
        norms = (norm_tensor("dt_norm", rank), norm_tensor("b_norm", A), norm_tensor("c_norm", A))
    nodes: tuple[Node, ...] = (
        Linear("in", (matrix("in", 2 * inner, M, p, bias=m.bias),), activation),
        Convolve(Tensor("conv", "norm", inner, C, p.base, bias=m.conv_bias)),
        Linear("x", (matrix("x", rank + 2 * A, inner, p),), activation),
        Pointwise("x_norms", rank + 2 * A, 2.0, norms),
        Linear("dt", (matrix("dt", inner, rank, p, bias=True),), activation),
        Scan(
            heads=S,
            one=9 * inner * A,
            chunked=9 * inner * A,
            state=inner * A,
            state_format=FORMATS["fp32"],
            values=3 * inner,
            out=inner,
            name="selective_scan",
            tensors=small,
        ),
        Linear("o", (matrix("o", M, inner, p, bias=m.bias),), activation),
    )
    caches = (
        KVSpec("state", inner * A, FORMATS["fp32"]),
        KVSpec("state", inner * (m.conv_width - 1), FORMATS["bf16"]),
    )
    return Part(nodes, axes, caches)


def short_convolution(m: ShortConvolution, p: Precision) -> Part:
    """Two gates and an input, the convolution, the output projection."""
    channels = H * D
    activation = p.activation("attention")
    nodes: tuple[Node, ...] = (
        Linear("in", (matrix("in", 3 * channels, M, p, bias=m.bias),), activation),
        Convolve(Tensor("conv", "norm", channels, C, p.base, bias=m.bias)),
        Pointwise("gates", channels, 5.0),
        Linear("o", (matrix("o", M, channels, p, bias=m.bias),), activation),
    )
    axes = {"H": m.heads, "D": m.head_dim, "c": m.width}
    return Part(nodes, axes, (KVSpec("state", channels * (m.width - 1), FORMATS["bf16"]),))
