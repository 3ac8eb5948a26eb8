"""Served workloads a second, of deployments of the catalogue: loads solved on passes that are priced, and rows as
`predict serving` answers them, with the pricing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from bench.timing import median_s
from chipwise.api.estimating import AskedLoad, asked, loads_of, served
from chipwise.api.placing import Given, Terms
from chipwise.parallel.layout import Layout
from chipwise.units import Array
from chipwise.workload.workload import Workload

__all__ = ["loops_per_s", "rows_per_s"]

MODELS = {"meta-llama/Llama-3.1-70B": Layout(tp=8.0), "Qwen/Qwen3-235B-A22B": Layout(tp=4.0, dp=2.0, ep=8.0)}
"""Dense, and experts that two attention replicas share."""
CHIPS = ("h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm", "mi300x")
RUNTIMES = ("vllm", "sglang")
LENGTHS = ((128, 2048), (1024, 1024), (2000, 300), (8192, 256))
CLIENTS: Array = np.geomspace(1.0, 256.0, 32)
"""Numbers of clients, four to an octave: with few an engine rests, with many some wait for room."""
TIMES = 25
"""So often each number of clients is asked of a deployment: the table is then as long as a search's."""


def loops_per_s() -> float:
    """Loads a second of `Loads.closed` on deployments whose passes were priced before."""
    rng = np.random.default_rng(0)
    clients = np.sort(rng.uniform(0.9, 1.1, (TIMES, 1)) * CLIENTS, axis=None)
    loads = [loads_of(members)[1] for members in _together(_rows())]
    asked_ = [(found, np.tile(clients, (len(found.engines), 1))) for found in loads]

    def solve() -> None:
        for found, many in asked_:
            found.closed(many)

    return sum(many.size for _, many in asked_) / median_s(solve)


def rows_per_s() -> float:
    """Rows a second of the code that answers `estimate` and `predict serving`, questions read before: those of one
    software priced and loaded together, one number of clients each."""
    rows = [replace(one, concurrency=float(c)) for one in _rows() for c in CLIENTS]
    groups = _together(rows)

    def answer() -> None:
        for members in groups:
            served(members, loads_of(members)[1])

    return len(rows) / median_s(answer)


def _rows() -> list[AskedLoad]:
    """Every model on every chip under every runtime, at all lengths."""
    found = []
    for (model, layout), chip, runtime, lengths in product(MODELS.items(), CHIPS, RUNTIMES, LENGTHS):
        terms = Terms(runtime=runtime, precision="fp8")
        found.append(asked(model, Workload("serve", *lengths), Given(chip, layout), terms))
    return found


def _together(rows: Sequence[AskedLoad]) -> list[list[AskedLoad]]:
    """Rows that are priced together, as `predict` groups them."""
    groups: dict[tuple[object, ...], list[AskedLoad]] = {}
    for one in rows:
        groups.setdefault(one.category, []).append(one)
    return list(groups.values())
