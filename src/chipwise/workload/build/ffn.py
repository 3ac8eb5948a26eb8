"""Feed-forwards: dense, or a mixture of experts with shared ones beside it."""

from __future__ import annotations

from chipwise.workload.axes import ONE, Size
from chipwise.workload.build.part import E, F, L, M, Part, U, X
from chipwise.workload.model import Dense, MoE
from chipwise.workload.nodes import Experts, Linear, Node, Pointwise, norm_tensor
from chipwise.workload.precision import Precision
from chipwise.workload.tensor import Tensor


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
    nodes += (
        Linear("router", (router[0],), p.activation("router")),
        Pointwise("route", E, 2.0, tuple(router[1:])),
    )
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
        Linear(
            f"{prefix}gate_up" if gated else f"{prefix}up",
            tuple(matrix(n, width, M) for n in names),
            activation,
        ),
        Pointwise(f"{prefix}act", width, 3.0 if gated else 2.0),
        Linear(f"{prefix}down", (matrix("down", M, width),), activation),
    )
