"""Products of few rows on the vector lanes: the kernels that local runtimes use while one or a few users decode.

A matrix unit pads the rows to a tile; a matrix-vector kernel does not, and streams the weights at the rate of the
memory or of the lanes that unpack them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.units import Real
from chipwise.workload.op import Op

__all__ = ["VectorParameters", "few_rows"]


@dataclass(frozen=True, slots=True)
class VectorParameters:
    """Numbers of matrix-vector kernels.

    | field | unit | meaning |
    |---|---|---|
    | rows | | most rows that are multiplied so |
    | unpack | operations | that turn one packed weight into a number; none for 16-bit weights |
    | compute_share | of the vector peak | what the lanes sustain |
    | memory_share | of bandwidth | what streaming weights sustains |
    | softness | exponent | of the soft maximum |
    """

    rows: float
    unpack: float
    compute_share: float
    memory_share: float
    softness: float


def few_rows(tiles: Cost, rows: Real, weights: Real, op: Op, device: Device, p: VectorParameters) -> Cost:
    """`tiles`, the cost of a product by tiles, or, for at most `p.rows` rows, that of matrix-vector kernels if less:

    t = launch of `tiles` + <(flops + unpack x weights read) / (share x vector peak), bytes / (share x bandwidth)>

    `weights` is how many are read; rows, weights and the device broadcast.
    """
    packed = op.weight not in ("bf16", "fp16", "fp32", "")
    work = op.flops + (p.unpack if packed else 0.0) * weights
    body = soft_maximum(
        {
            "compute": work / (device.vector_flops_per_s * p.compute_share),
            "memory": op.bytes / (device.memory_bytes_per_s * p.memory_share),
        },
        p.softness,
    )
    whole = body + Cost({"launch": tiles.exposed.get("launch", 0.0)})
    few = (np.asarray(rows) <= p.rows) & (np.asarray(whole.total_s) < tiles.total_s)
    taken = np.where(few, 1.0, 0.0)
    return whole * taken + tiles * (1.0 - taken)
