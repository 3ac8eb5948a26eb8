"""Served workloads a second: closed loops of many deployments through the service model on tabulated passes."""

from __future__ import annotations

import numpy as np

from bench.timing import median_s
from chipwise.cost.cost import RESOURCES
from chipwise.predict.passes import BATCHES, PassTable, Requests
from chipwise.predict.service import Engines, Service

__all__ = ["served_per_s"]

DEPLOYMENTS, LOADS = 1_000, 32


def served_per_s() -> float:
    """Loads a second of `Loads.closed`: 32 numbers of clients on each of 1,000 deployments."""
    rng = np.random.default_rng(0)
    shape = (DEPLOYMENTS, 1, len(RESOURCES))
    one, per = rng.uniform(1e-3, 3e-3, shape), rng.uniform(1e-6, 1e-5, shape)
    decode = one + BATCHES[None, :, None] * per
    added = np.broadcast_to(
        rng.uniform(0.01, 0.05, (DEPLOYMENTS, 1, 1, len(RESOURCES))), (DEPLOYMENTS, 5, 2, len(RESOURCES))
    )
    prompt = np.broadcast_to(added[:, :1, 0], (DEPLOYMENTS, 3, len(RESOURCES))) + one
    asked = Requests(1000.0, 400.0, 1000.0, 1000.0, 1000.0, 1200.0, 1240.0, 0.0, 8192.0, 1.0)
    alone = np.zeros(DEPLOYMENTS, dtype=bool)
    table = PassTable(tuple(RESOURCES), decode, added, prompt, alone, asked)
    ones = np.ones(DEPLOYMENTS)
    loads = Engines(table, ones, ones, ones, ones, ones * 1024.0).under(Service())
    clients = np.sort(rng.uniform(1.0, 512.0, (DEPLOYMENTS, LOADS)), axis=1)
    return DEPLOYMENTS * LOADS / median_s(lambda: loads.closed(clients))
