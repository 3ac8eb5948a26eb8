"""Operator x device -> seconds: launch plus a soft maximum of compute and memory time."""

from __future__ import annotations

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.cost.efficiency import Efficiency
from chipwise.units import Real
from chipwise.workload.op import Op


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
        {
            "compute": op.flops / (share * _peak(op, device)),
            "memory": op.bytes / (memory * device.memory_bytes_per_s),
        },
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
