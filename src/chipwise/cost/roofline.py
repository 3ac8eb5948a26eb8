"""Operator x device -> seconds: launch plus a soft maximum of compute and memory time, by shares of the peaks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.op import Op


@dataclass(frozen=True)
class Efficiency:
    """Shares of the peaks that code reaches on one family of chips, and the time to start a kernel.

    `compute` by data type for products with weights; `attention_compute` for scores and weighted sums of
    prompts; `expert_compute` multiplies `compute` for grouped products. `memory` for weights,
    `expert_memory` for weights of experts, `cache_memory` for keys and values, `pass_memory` for element-wise
    passes. `softness` is the exponent of the soft maximum.
    """

    compute: Mapping[str, float]
    attention_compute: float
    expert_compute: float
    memory: float
    expert_memory: float
    cache_memory: float
    pass_memory: float
    launch_s: float
    softness: float

    def take(self, _: object) -> Efficiency:
        """The same for any selection of chips: nothing here differs between chips of a family."""
        return self


PEAKS = Efficiency(
    compute=dict.fromkeys(("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4"), 1.0),
    attention_compute=1.0,
    expert_compute=1.0,
    memory=1.0,
    expert_memory=1.0,
    cache_memory=1.0,
    pass_memory=1.0,
    launch_s=0.0,
    softness=16.0,
)
"""shares of peaks, seconds, exponent: the roofline itself, for what no fit knows. Exact: all shares are 1 and nothing
is started; the exponent rounds the corner by 4 %."""


def roofline(op: Op, device: Device) -> Real:
    """Seconds that nothing beats: the larger of FLOPs over peak and compulsory bytes over peak bandwidth."""
    bound: Real = np.maximum(op.flops / _peak(op, device), op.bytes / device.memory_bytes_per_s)
    return bound


def time(op: Op, device: Device, efficiency: Efficiency) -> Cost:
    """Seconds of one operator on one device, by resource.

    t = launches x launch_s + <FLOPs / (share x peak), bytes / (share x bandwidth)>_softness, with the share of
    the operator's kind and data type. Ignores tiles and waves, caches, and imbalance of experts; on short
    kernels that is most of the error. Shapes broadcast over operator and device.
    """
    share, memory = _shares(op, efficiency)
    body = soft_maximum(
        {"compute": op.flops / (share * _peak(op, device)), "memory": op.bytes / (memory * device.memory_bytes_per_s)},
        efficiency.softness,
    )
    return body + Cost({"launch": op.launches * efficiency.launch_s})


def _peak(op: Op, device: Device) -> Real:
    return device.vector_flops_per_s if op.compute == "vector" else device.matrix[op.compute]


def _shares(op: Op, e: Efficiency) -> tuple[float, float]:
    if op.kind == "attention":
        return e.attention_compute, e.cache_memory
    if op.kind == "experts":
        return e.compute[op.compute] * e.expert_compute, e.expert_memory
    if op.kind in ("gemm", "conv"):
        return e.compute[op.compute], e.memory
    return 1.0, e.pass_memory
