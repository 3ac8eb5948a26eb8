"""Operator x systolic device -> seconds by resource: TPUs, Trainium and Inferentia, Gaudi's matrix engine.

Products go to the arrays (`physical`), everything else to the vector unit, operands stream from HBM into
on-chip memory while the tile before is worked on. B sequences, H heads, K kv heads, q new and kv visible tokens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.cost.products import every_expert, products
from chipwise.cost.systolic.array import SystolicArray
from chipwise.cost.systolic.facts import Arrays
from chipwise.cost.systolic.physical import Schedule, output_stationary, weight_stationary
from chipwise.numeric import take
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.op import Op

SUBLANES = 8.0
"""rows: of a 32-bit register, to which a compiler pads short dimensions. Source: jax-ml/scaling-book, tpus.md
(registers of 8 x 128)."""
PAIR_OPS = 20.0
"""vector operations: of one (query, key) pair in a fused core that reads no cache by pages, at most. Chosen: a dozen
and an exponential, as believed of other such kernels before one is measured. Confirmed: github
AI-Hypercomputer/maxdiffusion (Wan 14B at 720p: steps of training in 36 and 40 s, README and pull request 470, where
the 74 of paged prompts make 78 s); moves video on TPUs most."""
WIDE = ("fp32", "tf32", "bf16", "fp16")
WORD = 2.0
"""bytes: of an operand at the edge of an array; sums are twice as wide. Exact: operands are bf16."""


@dataclass(frozen=True, slots=True)
class SystolicParameters:
    """Fitted numbers of one family of systolic chips under one compiler; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | compute_share | of dense peak | what the arrays sustain while rows stream |
    | load_rows | rows per cycle | how fast held operands enter an array |
    | memory_share | of HBM bandwidth | weights and activations |
    | cache_share | of HBM bandwidth | keys and values, as the attention kernel fetches them |
    | block_s | s | fixed time per sequence and kv head of the grid of a kernel for new tokens |
    | prompt_block_s | s | the same of a kernel for prompts |
    | pair_ops | vector operations | of one (query, key) pair of a head: scale, mask, maximum, exponential, sums |
    | passes | ratio | on-chip passes per compulsory one of element-wise work |
    | start_s | s | between two operators of a compiled program |
    | softness | exponent | of the soft maximum |
    | expert_passes | 16-bit reads or writes | of every expert's result for every token; 0: experts run for their own |
    | narrow_expert_passes | the same | of experts that multiply in 8 bits or fewer |
    """

    compute_share: Real
    load_rows: Real
    memory_share: Real
    cache_share: Real
    block_s: Real
    prompt_block_s: Real
    pair_ops: Real
    passes: Real
    start_s: Real
    softness: Real
    expert_passes: Real = 0.0
    narrow_expert_passes: Real = 0.0


@dataclass(frozen=True, slots=True)
class SystolicModel:
    """What `systolic_time` needs beside a device: its arrays, the fitted numbers, and 1 for `resident` where
    operators follow each other in a compiled program, 0 where one runs on its own."""

    arrays: Arrays
    numbers: SystolicParameters
    resident: float = 0.0

    def unpaged(self) -> SystolicModel:
        """With an attention core that reads no cache by pages (`PAIR_OPS`)."""
        fewer = np.minimum(self.numbers.pair_ops, PAIR_OPS)
        return replace(self, numbers=replace(self.numbers, pair_ops=fewer))

    def take(self, index: np.ndarray) -> SystolicModel:
        """Of several chips: those at `index`, any shape."""
        return replace(self, arrays=take(self.arrays, index), numbers=take(self.numbers, index))


def pace_hz(device: Device, arrays: Arrays, dtype: str) -> Real:
    """Rows per second that enter one array: peak / (2 x cells). The clock, where one row enters per cycle."""
    return device.matrix[dtype] / (2.0 * arrays.cells)


def product(m: Real, n: Real, k: Real, arrays: Arrays, p: SystolicParameters, *, batch: Real = 1.0) -> Schedule:
    """`batch` products on all arrays of a device, rows padded to registers; as the chip holds its operands."""
    array = SystolicArray(arrays.rows, arrays.cols, load_rows_per_cycle=p.load_rows)
    rows = np.ceil(m / SUBLANES) * SUBLANES
    if np.all(np.asarray(arrays.holds_outputs) > 0):
        return output_stationary(rows, n, k, array, arrays.count, batch=batch, most_parts=arrays.parts)
    return weight_stationary(rows, n, k, array, arrays.count, batch=batch)


def systolic_time(
    op: Op, device: Device, arrays: Arrays, p: SystolicParameters, *, resident: Real = 0.0, fetched: Real = 0.0
) -> Cost:
    """t = launches start_s + <arrays, vector unit and on-chip memory, HBM>_softness (+ blocks of attention).

    `resident` 1: activations are left on chip by the operator before, as compiled programs do while they fit.
    `fetched` 1: the weights were fetched while the operator before left HBM idle. Both 0: all comes from HBM.
    All dims broadcast. Ignores conflicts of on-chip banks and layout changes between operators.
    """
    arrays_s: Real = 0.0
    onchip_s: Real = 0.0
    blocks: Real = 0.0
    cache_bytes: Real = 0.0
    if op.kind == "experts":
        passes = p.expert_passes if op.compute in WIDE else p.narrow_expert_passes
        op = every_expert(op, passes) if np.any(np.asarray(passes) > 0.0) else op
    if op.compute != "vector":
        cycles, onchip_s, blocks = _matrix(op, arrays, p)
        arrays_s = cycles / (pace_hz(device, arrays, op.compute) * p.compute_share)
        # scans do their recurrence without large products: their FLOPs are a floor
        arrays_s = np.maximum(arrays_s, op.flops / (device.matrix[op.compute] * p.compute_share))
        if op.kind == "conv":
            # filters of few channels each would leave an array idle: the vector unit takes them
            lanes = np.minimum(arrays.vector_ops_per_s, device.vector_flops_per_s)
            arrays_s = np.minimum(arrays_s, op.flops / lanes)
    else:
        arrays_s = op.flops / np.minimum(arrays.vector_ops_per_s, device.vector_flops_per_s)
        onchip_s = p.passes * op.bytes / arrays.onchip_bytes_per_s
    if op.kind in ("attention", "scan"):
        cache_bytes = op.kv_bytes
    streamed = op.weight_bytes * (1.0 - fetched) + op.kv_bytes - cache_bytes
    passing = op.activation_bytes * (1.0 - resident * _fits(op, arrays))
    memory_s = (streamed + passing) / p.memory_share + cache_bytes / p.cache_share
    body = soft_maximum(
        {"compute": arrays_s, "on-chip": onchip_s, "memory": memory_s / device.memory_bytes_per_s},
        cast(float, p.softness),
    )
    block_s = np.where(np.asarray(op.dims.get("q", 1.0)) > 1.0, p.prompt_block_s, p.block_s)
    return body + Cost({"launch": op.launches * p.start_s + blocks * block_s})


def _matrix(op: Op, arrays: Arrays, p: SystolicParameters) -> tuple[Real, Real, Real]:
    """Cycles of the arrays, seconds of vector unit and on-chip memory, and blocks of the kernel's grid."""
    cycles: Real = 0.0
    onchip_s: Real = 0.0
    asked = products(op)
    for x in asked:
        found = product(x.m, x.n, x.k, arrays, p, batch=x.batch)
        cycles, onchip_s = cycles + found.cycles, onchip_s + _edge_s(found, arrays)
    if op.kind == "attention":
        # scores stay in registers: what counts is the vector unit's work on every (query, key) pair
        scores = asked[0]
        pairs = scores.batch * scores.m * scores.n
        # encoders, which mask nothing, are compiled as batched products: no kernel of its own with a grid
        blocks = scores.batch * op.dims.get("causal", 1.0)
        return cycles, p.pair_ops * pairs / arrays.vector_ops_per_s, blocks
    if not asked:
        onchip_s = p.passes * op.bytes / arrays.onchip_bytes_per_s
    return cycles, onchip_s, 0.0


def _edge_s(s: Schedule, arrays: Arrays) -> Real:
    """Operands between on-chip memory and the arrays; sums stay in buffers below them."""
    return WORD * (s.activation_reads + s.weight_reads) / arrays.onchip_bytes_per_s


def _fits(op: Op, arrays: Arrays) -> Real:
    """1 while an operator's activations take at most half of the on-chip memory, 0 from all of it."""
    fill = op.activation_bytes / arrays.onchip_bytes
    fits: Real = np.clip(2.0 - 2.0 * fill, 0.0, 1.0)
    return fits
