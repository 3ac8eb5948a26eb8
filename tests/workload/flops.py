"""FLOPs of a pass by kind of operator, over all blocks, unsharded."""

from __future__ import annotations

from collections import Counter

from chipwise.workload.axes import Sizes
from chipwise.workload.graph import Graph
from chipwise.workload.op import Op
from chipwise.workload.step import Step


def ops_of(graph: Graph, step: Step) -> list[tuple[int, Op]]:
    """(repeat, operator) of every block."""
    return [
        (repeat, op)
        for repeat, block in graph.blocks()
        for node in block.nodes
        for op in node.ops(Sizes(block.axes), step)
    ]


def by_kind(graph: Graph, step: Step) -> Counter[str]:
    """FLOPs by kind; products of matrices and experts together are "weights"."""
    total: Counter[str] = Counter()
    for repeat, op in ops_of(graph, step):
        kind = "weights" if op.kind in ("gemm", "experts") else op.kind
        total[kind] += repeat * float(op.flops)
    return total


def by_name(graph: Graph, step: Step, name: str) -> float:
    """FLOPs of all operators of a name."""
    return sum(repeat * float(op.flops) for repeat, op in ops_of(graph, step) if op.name == name)


def products(graph: Graph, tokens: int, sequences: int) -> float:
    """2 x active parameters x tokens, the head once per sequence; lookups and norms multiply nothing."""
    total = 0.0
    for repeat, block in graph.blocks():
        sizes = Sizes(block.axes)
        for node in block.nodes:
            rows = sequences if getattr(node, "last", False) else tokens
            tensors = getattr(node, "matrices", None) or node.tensors
            for t in tensors:
                if t.cls in ("norm", "embedding") and not (block is graph.head and t.cls == "embedding"):
                    continue
                if not t.buffer:
                    size = sizes.whole(t.copies) * sizes.whole(t.rows) * sizes.whole(t.cols)
                    total += 2.0 * repeat * size * t.touched * rows
    return total
