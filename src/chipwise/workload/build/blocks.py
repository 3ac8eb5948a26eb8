"""One residual layer as a block: norms, mixer, feed-forward, and residual paths other than a sum.

Feed-forwards are dense, or a mixture of experts with shared ones beside it. Several streams:
huggingface/transformers, models/deepseek_v4 (DeepseekV4HyperConnection, DeepseekV4HyperHead); a mixture over depth:
Kimi K3 (attention residuals).
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.axes import ONE, Size, Tensor
from chipwise.workload.build.attention import compressed_attention, cross_attention, latent_attention, self_attention
from chipwise.workload.build.part import E, F, L, M, Part, U, X
from chipwise.workload.build.recurrent import (
    lightning_attention,
    linear_attention,
    selective_scan,
    short_convolution,
    state_space,
)
from chipwise.workload.formats import FORMATS
from chipwise.workload.model import (
    CompressedAttention,
    CrossAttention,
    Dense,
    LatentAttention,
    Layer,
    LightningAttention,
    LinearAttention,
    Mixer,
    MoE,
    SelectiveScan,
    SelfAttention,
    ShortConvolution,
)
from chipwise.workload.nodes import Experts, Held, Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.program import Block

WIDE = FORMATS["fp32"]


def mix(name: str, streams: int) -> tuple[Node, ...]:
    """Weights that collapse n streams to one, spread the result, and mix the streams: n (n + 2) per token
    from all streams. The streams are read and written once. Nothing with a single stream."""
    if streams == 1:
        return ()
    outputs = ONE * (streams * (streams + 2))
    weight = Tensor(f"{name}_streams", "router", outputs, M * streams, WIDE)
    small = Tensor(f"{name}_streams_base", "norm", outputs + ONE * 3, ONE, WIDE)
    return (
        Linear(f"{name}_streams", (weight,), FORMATS["bf16"]),
        Pointwise(f"{name}_streams_mix", M * streams, 2.0, (small,)),
    )


def collapse(streams: int) -> tuple[Node, ...]:
    """One weight per stream at the end of the network."""
    if streams == 1:
        return ()
    weight = Tensor("last_streams", "router", ONE * streams, M * streams, WIDE)
    small = Tensor("last_streams_base", "norm", ONE * (streams + 1), ONE, WIDE)
    return (
        Linear("last_streams", (weight,), FORMATS["bf16"]),
        Pointwise("last_streams_mix", M * streams, 1.0, (small,)),
    )


def mix_depth(name: str) -> Node:
    """A softmax over one score per earlier block of layers, from a norm and one row of weights; the outputs
    of the blocks are read. Passes are those of a stack of eight blocks: a guess within a few percent of a
    layer's traffic."""
    row = Tensor(f"{name}_depth", "norm", ONE, M, FORMATS["bf16"])
    return Pointwise(f"{name}_depth", M, 9.0, (norm_tensor(f"{name}_depth_norm", M), row))


def layer_block(layer: Layer, hidden: int, p: Precision, name: str) -> Block:
    """The block of a layer of width `hidden`."""
    p = layer.precision or p
    nodes: tuple[Node, ...] = ()
    axes = {"M": hidden}
    mixer, cross, forward = Part(), Part(), Part()
    if layer.mixer is not None:
        mixer = _mixer(layer.mixer, p)
    if layer.beside is not None:
        mixer = _together(mixer, _mixer(layer.beside, p))
    if layer.cross is not None:
        cross = cross_attention(layer.cross, p)
    if layer.ffn is not None:
        forward = feed_forward(layer.ffn, p)
    if layer.parallel:
        # both halves leave partial sums of one output: no norm between them, ranks meet once
        second = () if layer.norms == "shared" else (_norm("ffn_norm", layer),)
        nodes = (_norm("attention_norm", layer), *second, *mixer.nodes, *forward.nodes)
    else:
        if layer.mixer is not None:
            nodes += (*_residual("attention", layer), *_half("attention", layer, mixer))
        if layer.cross is not None:
            nodes += _half("cross", layer, cross)
        if layer.ffn is not None:
            nodes += (*_residual("ffn", layer), *_half("ffn", layer, forward))
    if layer.side:
        nodes += _side(layer.side, p)
    if layer.buffers:
        scalars = Tensor("scalars", "norm", ONE * layer.buffers, ONE, p.base, buffer=True)
        nodes += (Held("scalars", (scalars,)),)
    for part in (mixer, cross, forward):
        axes |= part.axes
    return Block(name, axes, nodes, (*mixer.caches, *cross.caches))


def _side(width: int, p: Precision) -> tuple[Node, ...]:
    """An input of `width` values per token, weighed by a projection of the stream, projected back and normed."""
    side = ONE * width
    gate = Tensor("side_gate", "ffn", side, M, p.weight("ffn"))
    back = Tensor("side_out", "ffn", M, side, p.weight("ffn"))
    return (
        Linear("side_gate", (gate,), p.activation("ffn")),
        Pointwise("side", side, 3.0),
        Linear("side_out", (back,), p.activation("ffn")),
        Pointwise("side_norm", M, 4.0, (norm_tensor("side_norm", M),)),
    )


def _residual(name: str, layer: Layer) -> tuple[Node, ...]:
    return (mix_depth(name),) if layer.depth_mix else mix(name, layer.streams)


def _half(name: str, layer: Layer, part: Part) -> tuple[Node, ...]:
    before = _norm(f"{name}_norm", layer)
    if layer.norms != "around" and (layer.norms, name) != ("third", "ffn"):
        return (before, *part.nodes)
    return (before, *part.nodes, Pointwise(f"{name}_post_norm", M, 2.0, norm_weights(f"{name}_post_norm", layer)))


def _norm(name: str, layer: Layer) -> Node:
    # the residual is added in the same kernel: two reads, two writes
    return Pointwise(name, M, 4.0, norm_weights(name, layer))


def norm_weights(name: str, layer: Layer) -> tuple[Tensor, ...]:
    """Gain, and offset of a layer norm, of a norm over the width of the model; a plain one has no weights."""
    return () if layer.norm == "plain" else (norm_tensor(name, M, bias=layer.norm == "layer"),)


def _together(first: Part, second: Part) -> Part:
    """Two mixers of the same input; what the second names as the first does is called after it."""
    taken = {node.name for node in first.nodes}
    nodes = (
        replace(node, name=f"beside_{node.name}") if node.name in taken else node  # type: ignore[type-var]
        for node in second.nodes
    )
    return Part((*first.nodes, *nodes), {**first.axes, **second.axes}, (*first.caches, *second.caches))


def _mixer(mixer: Mixer, p: Precision) -> Part:
    match mixer:
        case SelfAttention():
            return self_attention(mixer, p)
        case CrossAttention():
            return cross_attention(mixer, p)
        case LatentAttention():
            return latent_attention(mixer, p)
        case CompressedAttention():
            return compressed_attention(mixer, p)
        case LinearAttention():
            return linear_attention(mixer, p)
        case LightningAttention():
            return lightning_attention(mixer, p)
        case SelectiveScan():
            return selective_scan(mixer, p)
        case ShortConvolution():
            return short_convolution(mixer, p)
        case _:
            return state_space(mixer, p)


def feed_forward(ffn: Dense | MoE, p: Precision) -> Part:
    """The nodes of a feed-forward."""
    if isinstance(ffn, Dense):
        return Part(_dense("", F, ffn.gated, ffn.bias, p), {"F": ffn.width})
    axes = {"E": ffn.experts, "X": ffn.width}
    router = [Tensor("router", "router", E, M, p.weight("router"), bias=ffn.router_bias)]
    if ffn.router_buffer:
        router.append(Tensor("router_correction", "router", E, ONE, p.weight("router"), buffer=True))
    touched = ffn.top_k / ffn.experts
    names = ("gate", "up") if ffn.gated else ("up",)
    inner = M
    if ffn.latent:
        inner, axes["L"] = L, ffn.latent

    def expert(name: str, rows: Size, cols: Size) -> Tensor:
        weight = p.weight("expert")
        return Tensor(name, "expert", rows, cols, weight, copies=E, bias=ffn.bias, touched=touched)

    ups, down = tuple(expert(n, X, inner) for n in names), expert("down", inner, X)
    nodes: tuple[Node, ...] = ()
    if ffn.branches:
        gains = (norm_tensor("router_gain", M), norm_tensor("expert_gain", E))
        nodes += (Pointwise("router_norm", M, 2.0, gains), _branch("expert_norm"))
    nodes += (Linear("router", (router[0],), p.activation("router")), Pointwise("route", E, 2.0, tuple(router[1:])))
    if ffn.latent:
        nodes += (_latent("latent_down", L, M, p),)
    nodes += (Experts(ups, down, ffn.top_k, p.activation("expert")),)
    if ffn.latent and ffn.latent_norm:
        nodes += (Pointwise("latent_norm", L, 2.0, (norm_tensor("latent_norm", L),)),)
    if ffn.latent:
        nodes += (_latent("latent_up", M, L, p),)
    if ffn.branches:
        nodes += (_branch("expert_post_norm"),)
    if ffn.shared_width:
        nodes += _dense("shared_", U, ffn.gated, False, p)
        axes["U"] = ffn.shared_width
        if ffn.shared_gate:
            gate = Tensor("shared_gate", "router", ONE, M, p.weight("router"))
            nodes += (Linear("shared_gate", (gate,), p.activation("router")),)
    if ffn.branches:
        nodes += (_branch("shared_post_norm"),)
    return Part(nodes, axes)


def _branch(name: str) -> Pointwise:
    return Pointwise(name, M, 2.0, (norm_tensor(name, M),))


def _latent(name: str, rows: Size, cols: Size, p: Precision) -> Linear:
    return Linear(name, (Tensor(name, "ffn", rows, cols, p.weight("ffn")),), p.activation("ffn"))


def _dense(prefix: str, width: Size, gated: bool, bias: bool, p: Precision) -> tuple[Node, ...]:
    def matrix(name: str, rows: Size, cols: Size) -> Tensor:
        return Tensor(prefix + name, "ffn", rows, cols, p.weight("ffn"), bias=bias)

    names = ("gate", "up") if gated else ("up",)
    activation = p.activation("ffn")
    return (
        Linear(f"{prefix}gate_up" if gated else f"{prefix}up", tuple(matrix(n, width, M) for n in names), activation),
        Pointwise(f"{prefix}act", width, 3.0 if gated else 2.0),
        Linear(f"{prefix}down", (matrix("down", M, width),), activation),
    )
