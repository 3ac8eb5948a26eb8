"""How many samples MLPerf Training benchmarks need to their target, and the time around the steps."""

from __future__ import annotations

import math

import numpy as np

from chipwise.evidence.rows import Row
from chipwise.evidence.training_models import number

__all__ = ["samples_to_target", "time_to_train_s"]

# Median samples to target by global batch, of the results published for v4.0 to v5.1 (and for gpt3, where the
# logs do not say, run time over step time); between batches on a logarithmic scale.
CURVES: dict[str, tuple[tuple[float, float], ...]] = {
    "llama2_70b_lora": ((8, 3072), (9, 3290), (16, 4032), (64, 7700), (128, 11136)),
    "llama31_8b": ((16, 172032), (32, 184320), (36, 184680), (64, 221184), (128, 344064)),
    "llama31_405b": ((1152, 290000),),
    "gpt3": ((2048, 585000), (3072, 625000), (4096, 635000)),
}
SPREAD = 1.07  # 10 % to 90 % of runs around the median: published best and worst runs

# (evaluation and validation as a share of the steps' time, seconds besides): chosen per benchmark, not fitted,
# from how often it evaluates and on how much.
AROUND: dict[str, tuple[float, float]] = {
    "llama2_70b_lora": (0.15, 10.0),
    "llama31_8b": (0.05, 40.0),
    "llama31_405b": (0.03, 120.0),
    "gpt3": (0.02, 10.0),
}


def samples_to_target(row: Row) -> tuple[float, float, float] | None:
    """(median, low, high) samples that a benchmark needs at its batch; None where nothing is published."""
    curve = CURVES.get(row.get("benchmark", ""))
    batch = number(row, "global_batch")
    if curve is None or batch is None:
        return None
    sizes, counts = np.log([b for b, _ in curve]), np.log([c for _, c in curve])
    middle = math.exp(float(np.interp(math.log(batch), sizes, counts)))
    return middle, middle / SPREAD, middle * SPREAD


def time_to_train_s(row: Row, samples: float, step_s: float, batch: float) -> float:
    """Seconds from start to target: steps x step time x (1 + share for evaluation) + what happens once."""
    share, once = AROUND[row["benchmark"]]
    return samples / batch * step_s * (1.0 + share) + once
