"""Mixers with a state instead of a growing cache: delta nets, lightning attention, state spaces, short convolutions.

Sources: huggingface/transformers, models/qwen3_next (Qwen3NextGatedDeltaNet), minimax, nemotron_h and zamba2 (Mamba2
mixer), jamba, lfm2.
"""

from __future__ import annotations

from chipwise.workload.axes import ONE, Tensor
from chipwise.workload.build.part import GD, GR, SD, ZD, A, B, C, D, G, H, M, Part, S, Z, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS, get_format
from chipwise.workload.model import LightningAttention, LinearAttention, SelectiveScan, ShortConvolution, StateSpace
from chipwise.workload.nodes import Convolve, Linear, Node, Pointwise, Scan, norm_tensor
from chipwise.workload.precision import Precision

# Tokens per chunk of the public delta-rule kernels (flash-linear-attention).
CHUNK = 64


def linear_attention(a: LinearAttention, p: Precision) -> Part:
    """Projections, a short convolution, the delta rule, a gated norm, output projection.

    Per token and value head: 6 g z FLOPs (read, update and query of the state); worked through in chunks of
    c tokens 2 c (3 g + 2 z) more, for the products inside a chunk.
    """
    axes = {"G": a.key_heads, "Z": a.value_heads, "g": a.key_dim, "z": a.value_dim, "c": a.conv_width}
    if a.gate_rank:
        axes["r"] = a.gate_rank
    keys, values = G * GD, Z * ZD
    channels = 2 * keys + values
    activation = p.activation("attention")
    decays = G * GD if a.gate_rank else Z
    small = (norm_tensor("a_log", Z), norm_tensor("dt_bias", decays), norm_tensor("norm", ZD))
    once = 6 * Z * GD * ZD
    state = get_format(a.state_format)
    nodes: tuple[Node, ...] = (
        *_inputs(a, p),
        Convolve(Tensor("conv", "norm", channels, C, p.base)),
        Scan(
            heads=Z,
            one=once,
            chunked=once + 2 * CHUNK * Z * (3 * GD + 2 * ZD),
            state=Z * GD * ZD,
            state_format=state,
            values=channels + values,
            out=values,
            name="delta_rule",
        ),
        Pointwise("gated_norm", values, 3.0, small),
        Linear("o", (matrix("o", M, values, p),), activation),
    )
    caches = (KVSpec("state", Z * GD * ZD, state), KVSpec("state", channels * (a.conv_width - 1), FORMATS["bf16"]))
    return Part(nodes, axes, caches)


def _inputs(a: LinearAttention, p: Precision) -> tuple[Node, ...]:
    """Queries, keys, values, output gate (z), step (b) and decay (a); gate and decay through a low rank in
    Kimi delta attention (vllm, layers/kda.py)."""
    activation = p.activation("attention")
    keys, values = G * GD, Z * ZD
    qkv, step = matrix("in_qkv", 2 * keys + values, M, p), matrix("in_b", Z, M, p)
    if not a.gate_rank:
        return (
            Linear("in", (qkv, matrix("in_z", values, M, p)), activation),
            Linear("in_ba", (step, matrix("in_a", Z, M, p)), activation),
        )
    gate = matrix("gate", values, M, p) if a.full_gate else matrix("gate_a", GR, M, p)
    decay = matrix("decay", keys, M, p) if a.full_decay else matrix("decay_a", GR, M, p)
    nodes: tuple[Node, ...] = (Linear("in", (qkv, step, decay, gate), activation),)
    if not a.full_decay:
        nodes += (Linear("decay", (matrix("decay_b", keys, GR, p),), activation),)
    return nodes if a.full_gate else (*nodes, Linear("gate", (matrix("gate_b", values, GR, p),), activation))


def lightning_attention(a: LightningAttention, p: Precision) -> Part:
    """Projections, decayed linear attention, a norm over all heads, a gate, output projection.

    Per token and head: 4 d^2 FLOPs on the state, 4 b d more inside blocks of b tokens. No rotary embedding.
    """
    axes = {"H": a.heads, "D": a.head_dim}
    heads = H * D
    activation = p.activation("attention")
    state = H * D * D
    nodes: tuple[Node, ...] = (
        Linear("qkv", (matrix("qkv", 3 * heads, M, p), matrix("gate", heads, M, p)), activation),
        Scan(
            heads=H,
            one=4 * state,
            chunked=4 * state + 4 * a.block * heads,
            state=state,
            state_format=FORMATS["fp32"],
            values=4 * heads,
            out=heads,
            name="lightning",
        ),
        Pointwise("gated_norm", heads * ONE, 3.0, (norm_tensor("norm", heads),)),
        Linear("o", (matrix("o", M, heads, p),), activation),
    )
    return Part(nodes, axes, (KVSpec("state", state, FORMATS["fp32"]),))


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
    caches = (KVSpec("state", state, stored), KVSpec("state", channels * (m.conv_width - 1), FORMATS["bf16"]))
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
    caches = (KVSpec("state", inner * A, FORMATS["fp32"]), KVSpec("state", inner * (m.conv_width - 1), FORMATS["bf16"]))
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
