"""The axis letters as sizes (legend in `workload.axes`), and what one half of a layer contributes to its block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from chipwise.values import dataclass
from chipwise.workload.axes import Axis, Size, Tensor
from chipwise.workload.cache import KVSpec
from chipwise.workload.nodes import Node
from chipwise.workload.precision import Precision

M, H, K, D, W = Axis("M"), Axis("H"), Axis("K"), Axis("D"), Axis("W")
F, U, X, E, V, L = Axis("F"), Axis("U"), Axis("X"), Axis("E"), Axis("V"), Axis("L")
Q, R, N, P = Axis("Q"), Axis("R"), Axis("N"), Axis("P")
I, J = Axis("I"), Axis("J")  # noqa: E741 - index heads
G, Z, GD, ZD, C, GR = Axis("G"), Axis("Z"), Axis("g"), Axis("z"), Axis("c"), Axis("r")
S, SD, B, A = Axis("S"), Axis("s"), Axis("B"), Axis("a")
O, OR, OF = Axis("O"), Axis("o"), Axis("f")  # noqa: E741 - output groups


@dataclass(frozen=True)
class Part:
    """Nodes in order, the axes they run over, the caches they keep."""

    nodes: tuple[Node, ...] = ()
    axes: Mapping[str, int] = field(default_factory=dict)
    caches: tuple[KVSpec, ...] = ()


def matrix(name: str, rows: Size, cols: Size, p: Precision, *, bias: bool = False) -> Tensor:
    """A matrix of the attention class, [rows = outputs, cols = inputs]."""
    return Tensor(name, "attention", rows, cols, p.weight("attention"), bias=bias)
