"""The parts of a forward pass: kinds of work whose time a fit to served workloads may correct.

A part is a kind of kernel or exchange with one cause of its time: reading the weights of a product
("gemm.w8.memory"), multiplying in a data type ("experts.fp4.compute"), starting kernels ("launch"). A factor on
a part is the ratio of what a serving stack needs to what the formulas say.
"""

from __future__ import annotations

import numpy as np

from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, decodes

PARTS = (
    "gemm.w16.memory",
    "gemm.w8.memory",
    "gemm.w4.memory",
    "gemm.bf16.compute",
    "gemm.fp8.compute",
    "gemm.fp4.compute",
    "experts.w16.memory",
    "experts.w8.memory",
    "experts.w4.memory",
    "experts.bf16.compute",
    "experts.fp8.compute",
    "experts.fp4.compute",
    "experts.launch",
    "imbalance",
    "decode.memory",
    "decode.compute",
    "latent_decode.memory",
    "latent_decode.compute",
    "prompt.memory",
    "prompt.compute",
    "latent_prompt.memory",
    "latent_prompt.compute",
    "index",
    "scan",
    "pointwise",
    "quantise",
    "launch",
    "comm.latency",
    "comm.transfer",
    "a2a.latency",
    "a2a.transfer",
    "host.iteration",
    "host.sequence",
)
"""All parts, in the order of columns."""

# Products in types that are not listed run as the nearest that is.
_COMPUTE = {"fp16": "bf16", "fp32": "bf16", "int8": "fp8", "int4": "bf16"}
STARTS = "starts"  # what the host does while the device works: it starts the kernels of a pass one by one
TOWER = "tower."  # before the parts of a vision tower
_LATENT_DIM = 256  # heads that wide are latents shared by all query heads


def part_of(op: Op) -> str:
    """The kind of work of an operator: `gemm.w8.fp8`, `experts.w4.bf16`, `decode`, `scan`, ..."""
    if op.kind in ("gemm", "experts"):
        bits = FORMATS[op.weight].bits if op.weight in FORMATS else 16.0
        stored = 4 if bits <= 5 else 8 if bits <= 8 else 16
        return f"{op.kind}.w{stored}.{_COMPUTE.get(op.compute, op.compute)}"
    if op.name == "index_score":
        return "index"
    if op.kind == "attention":
        wide = bool(np.all(np.asarray(op.dims.get("head_dim", 0.0)) > _LATENT_DIM))
        return ("latent_" if wide else "") + ("decode" if decodes(op) else "prompt")
    return "scan" if op.kind == "scan" else "pointwise"


def quantity(part: str, resource: str) -> str:
    """The entry of `PARTS` for a resource of a part; exchanges are named by their kind, and what a vision tower does as
    what language models do."""
    kind, _, rest = part.removeprefix(TOWER).partition(".")
    if kind == STARTS:
        return "host.iteration"  # work of the host too, without a factor of its own
    if kind in ("host", "quantise", "index", "scan", "imbalance"):
        return {"host": f"host.{'sequence' if resource == 'host' else 'iteration'}"}.get(kind, kind)
    if kind in ("all_reduce", "all_gather", "reduce_scatter", "p2p", "all_to_all"):
        group = "a2a" if kind == "all_to_all" else "comm"
        return f"{group}.{'transfer' if resource == 'network' else 'latency'}"
    if resource == "launch":
        return "experts.launch" if kind == "experts" else "launch"
    if kind in ("gemm", "experts"):
        stored, _, compute = rest.partition(".")
        return f"{kind}.{stored}.memory" if resource == "memory" else f"{kind}.{compute}.compute"
    if kind == "pointwise":
        return kind
    return f"{kind}.{'memory' if resource == 'memory' else 'compute'}"
