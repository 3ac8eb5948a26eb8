"""Passes a second that other simulators ask a step for, in the words of their contracts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.timing import median_s
from chipwise.api.python import step

__all__ = ["predictions_per_s"]

MODEL, CHIP = "meta-llama/Llama-3.1-8B", "h100"
PASSES = 20_000
REQUESTS = (8, 32)
"""In a batch; one in ten is a prompt."""


def predictions_per_s() -> dict[str, tuple[float, float]]:
    """One by one and as arrays: counts of a pass, and batches of requests."""
    deployed, rng = step(MODEL, chip=CHIP), np.random.default_rng(0)
    prompts, decodes = rng.integers(0, 3, PASSES), rng.integers(1, 256, PASSES)
    columns = {
        "num_prefill_requests": prompts,
        "sum_prefill_tokens": 300 * prompts,
        "num_decode_requests": decodes,
        "sum_decode_kv_tokens": 1500 * decodes,
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    ask = deployed.estimate_forward_pass_time_ms
    many = median_s(lambda: ask({"scheduled_requests": columns}))
    found = {"counts": (_each(ask, [{"scheduled_requests": row} for row in rows]), PASSES / many)}
    for size in REQUESTS:
        new = np.where(rng.random(PASSES * size) < 0.1, rng.integers(2, 2048, PASSES * size), 1)
        known, counts = rng.integers(1, 9000, PASSES * size), np.full(PASSES, size)
        lengths = zip(*(a.reshape(-1, size).tolist() for a in (new, known)), strict=True)
        batches = [SimpleNamespace(reqs=list(map(_Request, *pair)), forward_mode=None) for pair in lengths]
        many = median_s(lambda a=(counts, new, known): deployed.predict_infer_times(*a))  # type: ignore[misc]
        found[f"{size} requests each"] = (_each(deployed.predict_infer_time, batches), PASSES / many)
    return found


class _Request:
    def __init__(self, new: int, known: int) -> None:
        self.extend_length, self.past_kv_length = new, known


def _each(ask: Callable[[Any], object], questions: Sequence[Any]) -> float:
    def work() -> None:
        for question in questions:
            ask(question)

    return len(questions) / median_s(work)
