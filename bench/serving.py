"""Served workloads a second: loads times deployments through the closed form on tabulated passes."""

from __future__ import annotations

import numpy as np

from bench.timing import median_s
from chipwise.predict.passes import BATCHES, Passes
from chipwise.predict.serving import Load, Service, closed_loop

__all__ = ["served_per_s"]

DEPLOYMENTS, ROWS, CHUNK = 1_000, 500_000, 16_384


def served_per_s() -> float:
    """Rows a second of `closed_loop`, in chunks that fit the cache, for 1,000 deployments."""
    rng = np.random.default_rng(0)
    decode = rng.uniform(5e-3, 2e-2, (DEPLOYMENTS, 1)) + BATCHES * rng.uniform(1e-5, 1e-4, (DEPLOYMENTS, 1))
    mixed = decode + rng.uniform(0.05, 0.3, (DEPLOYMENTS, 1))
    passes = Passes(BATCHES, decode, mixed, mixed[:, 0], np.ones(DEPLOYMENTS))
    engine = rng.integers(0, DEPLOYMENTS, ROWS)
    clients = rng.uniform(1.0, 512.0, ROWS)

    def all_rows() -> None:
        for start in range(0, ROWS, CHUNK):
            part = slice(start, start + CHUNK)
            closed_loop(passes, Load(clients[part], 1000.0, 400.0), Service(), engine[part])

    return ROWS / median_s(all_rows)
