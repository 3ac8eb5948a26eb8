"""Linear attention: gated delta net (Qwen3-Next, Kimi Linear), lightning attention (MiniMax-Text-01).

Sources: huggingface/transformers, models/qwen3_next (Qwen3NextGatedDeltaNet), models/minimax.
"""

from __future__ import annotations

from chipwise.workload.axes import ONE
from chipwise.workload.build.letters import GD, GR, ZD, C, D, G, H, M, Z
from chipwise.workload.build.part import Part, matrix
from chipwise.workload.cache import KVSpec
from chipwise.workload.formats import FORMATS, get_format
from chipwise.workload.model import LightningAttention, LinearAttention
from chipwise.workload.nodes import Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.recurrent import Convolve, Scan
from chipwise.workload.tensor import Tensor

__all__ = ["lightning_attention", "linear_attention"]

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
    caches = (
        KVSpec("state", Z * GD * ZD, state),
        KVSpec("state", channels * (a.conv_width - 1), FORMATS["bf16"]),
    )
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
