"""How many samples MLPerf Training benchmarks need to their target."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import shipped_text
from chipwise.evidence.rows import Row
from chipwise.evidence.training_rows import number

__all__ = ["SPREAD", "Target", "target_of"]

TABLE = "evidence/data/training_targets.toml"
SPREAD = 1.07  # 10 % to 90 % of runs around the median: published best and worst runs


@dataclass(frozen=True, slots=True)
class Target:
    """Samples to the target of a benchmark (the median), and its evaluation as a share of the steps' time."""

    samples: float
    evaluation: float


def target_of(row: Row) -> Target | None:
    """What the benchmark of a row needs at its batch; None where nothing is published."""
    entry = parse(shipped_text(TABLE)).get(row.get("benchmark", ""))
    batch = number(row, "global_batch")
    if entry is None or batch is None:
        return None
    sizes, counts = (np.log(column) for column in zip(*entry["samples"], strict=True))
    return Target(math.exp(float(np.interp(math.log(batch), sizes, counts))), entry["evaluation"])
