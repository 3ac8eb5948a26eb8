"""Exchanges behind compute: what stays visible, and the units that an exchange takes away meanwhile."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real

GPU_UNITS = 20.0 / 132.0
"""share of a GPU's multiprocessors: that run the kernels of an exchange. Source: DeepSeek-V3 technical report (arXiv
2412.19437, section 3.2.2): 20 of 132; other GPUs are taken to give as large a part."""


def stolen_share(family: str) -> float:
    """Part of a chip's units that an exchange occupies: of GPUs `GPU_UNITS`, of chips whose DMA or network engines move
    and sum by themselves (systolic arrays, dataflow) none."""
    return GPU_UNITS if family == "simt" else 0.0


def behind(compute_s: Real, exchange_s: Real, stolen: Real) -> Real:
    """Seconds of compute and an exchange side by side: max(E, C + σ E).

    While the exchange lasts, compute runs on 1 - σ of the units: an exchange that ends first costs σ E more, one that
    compute cannot cover is all that is seen. Source: the work of compute, C = (1 - σ) E + (T - E).
    """
    return np.maximum(exchange_s, compute_s + stolen * np.asarray(exchange_s))


def uncovered(moved_s: Real, cover_s: Real, always: Real = 0.0) -> Real:
    """Seconds that stay visible of what is moved while other work takes `cover_s`: what is longer, and a share that is
    seen `always`."""
    return np.maximum(np.asarray(moved_s) - cover_s, 0.0) + always * np.asarray(moved_s)
