"""Dataflow machines (Groq LPU, Cerebras WSE, SambaNova RDU): one user's token through weights that stay put.

A network is laid out over chips once; a token passes the layers one after the other. What an operator takes is
set by the part of the machine that holds it, and by the latency of one dependent operation.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.units import Real
from chipwise.workload.op import Op

__all__ = ["DataflowParameters", "Machine", "operator_time"]


@dataclass(frozen=True, slots=True)
class Machine:
    """All chips that one model is laid out on.

    `bytes_per_s` and `flops_per_s` of all chips together; `held_bytes` of weights lie on them. `resident`:
    every operator has a region of its own, in proportion to what it holds (weights in SRAM); else all chips
    stream the weights of each operator in turn (HBM or DDR).
    """

    bytes_per_s: Real
    flops_per_s: Real
    held_bytes: Real
    resident: bool


@dataclass(frozen=True, slots=True)
class DataflowParameters:
    """Fitted numbers; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | memory_share | of bandwidth | sweeping the memory of a region |
    | compute_share | of dense peak | products with one row |
    | operation_s | s | one dependent operation: spread the input, add up the output |
    | routed_s | s | the same for routed experts, whose place is known late |
    | softness | exponent | of compute against memory |
    """

    memory_share: Real
    compute_share: Real
    operation_s: Real
    routed_s: Real
    softness: float = 3.0


def operator_time(op: Op, held_bytes: Real, machine: Machine, p: DataflowParameters) -> Cost:
    """t = operations x latency + <FLOPs / (share x peak x region), bytes / (share x bandwidth x region)>.

    `held_bytes` is what this operator and its like in one layer keep of the machine's memory; its region is
    that part of a resident machine, and all of a streaming one. An operator without weights (attention) runs
    where its layer lies: pass the layer's bytes. Ignores congestion of the network between regions.
    """
    region = held_bytes / machine.held_bytes if machine.resident else 1.0
    read = op.weight_bytes + op.kv_bytes
    body = soft_maximum(
        {
            "compute": op.flops / (p.compute_share * machine.flops_per_s * region),
            "memory": read / (p.memory_share * machine.bytes_per_s * region),
        },
        p.softness,
    )
    # element-wise work rides on the products around it
    steps = 0.0 if op.kind in ("pointwise", "lookup") else 1.0
    routed = 1.0 if op.kind == "experts" else 0.0
    return body + Cost({"on-chip": steps * p.operation_s + routed * p.routed_s})
