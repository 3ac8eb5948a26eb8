"""Tokens per second of a single user on a dataflow machine: one token through all layers."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.cost.cost import Cost
from chipwise.cost.single_stream import DataflowParameters, Machine, operator_time
from chipwise.parallel.layers import crossings
from chipwise.units import Real
from chipwise.workload.axes import Sizes
from chipwise.workload.graph import Graph
from chipwise.workload.step import decode

__all__ = ["DataflowSystem", "token_cost"]


@dataclass(frozen=True)
class DataflowSystem:
    """Chips of one kind with a model laid out on them; rates of one chip. `crossing_s` per move between groups
    of chips."""

    chips: Real
    bytes_per_s: Real
    flops_per_s: Real
    resident: bool
    crossing_s: Real


def token_cost(graph: Graph, context: Real, system: DataflowSystem, p: DataflowParameters) -> Cost:
    """Seconds of one token of one sequence that holds `context` tokens: all layers in turn, the moves between
    groups of chips, the head."""
    step = decode(1.0, context)
    machine = Machine(
        system.bytes_per_s * system.chips,
        system.flops_per_s * system.chips,
        graph.weight_bytes(),
        system.resident,
    )
    moves = crossings(float(graph.layers), system.chips)
    total = Cost({"network": moves * system.crossing_s})
    for repeat, block in ((1, graph.embed), *graph.distinct(), (1, graph.head)):
        sizes = Sizes(block.axes)
        # a tied head reads the table where it lies
        tensors = {n.name: getattr(n, "matrices", n.tensors) for n in block.nodes}
        held = {name: sum(float(t.local_bytes(sizes)) for t in own) for name, own in tensors.items()}
        layer = sum(held.values()) or graph.weight_bytes() / graph.layers
        for node in block.nodes:
            for op in node.ops(sizes, step):
                own = held[node.name] if op.kind in ("gemm", "experts") and held[node.name] else layer
                total = total + operator_time(op, own, machine, p) * float(repeat)
    return total
