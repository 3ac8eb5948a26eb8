"""What one half of a layer contributes to its block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.workload.axes import Size
from chipwise.workload.cache import KVSpec
from chipwise.workload.nodes import Node
from chipwise.workload.precision import Precision
from chipwise.workload.tensor import Tensor

__all__ = ["Part", "matrix"]


@dataclass(frozen=True)
class Part:
    """Nodes in order, the axes they run over, the caches they keep."""

    nodes: tuple[Node, ...] = ()
    axes: Mapping[str, int] = field(default_factory=dict)
    caches: tuple[KVSpec, ...] = ()


def matrix(name: str, rows: Size, cols: Size, p: Precision, *, bias: bool = False) -> Tensor:
    """A matrix of the attention class, [rows = outputs, cols = inputs]."""
    return Tensor(name, "attention", rows, cols, p.weight("attention"), bias=bias)
