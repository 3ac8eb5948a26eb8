"""Matrix products a second: `cost.price` on arrays of shapes, one chip, with fitted numbers."""

from __future__ import annotations

import numpy as np

from bench.timing import median_s
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.cost.price import price
from chipwise.workload import op as ops

__all__ = ["gemms_per_s"]

PRODUCTS, CHUNK = 262_144, 8_192


def gemms_per_s(chip_id: str) -> float:
    """Products a second of random shapes, in chunks that fit the cache."""
    chip = get_chip(chip_id)
    device = Device.of(chip)
    runtime = "vllm" if chip.family == "simt" else "any"
    model = shipped_parameters().cost(chip.family, runtime, [chip]).take(np.zeros((), dtype=np.intp))
    rng = np.random.default_rng(0)
    m, n, k = np.exp2(rng.uniform(0.0, 14.0, (3, PRODUCTS))).round()
    price(ops.gemm(m[:8], n[:8], k[:8]), device, model)

    def all_products() -> None:
        for start in range(0, PRODUCTS, CHUNK):
            part = slice(start, start + CHUNK)
            _ = price(ops.gemm(m[part], n[part], k[part]), device, model).total_s

    return PRODUCTS / median_s(all_products)
