"""Runs that a user has measured: what they say about the others on the same chips."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.evidence.rows import Row
from chipwise.evidence.training_case import Case
from chipwise.evidence.training_measured import workload_key
from chipwise.units import Array

__all__ = ["PRIOR_RUNS", "PRIOR_RUNS_UNSEEN", "anchor_factors"]

PRIOR_RUNS = 1.5
"""Runs that the prediction itself counts for: three anchors correct two thirds of a common bias."""

PRIOR_RUNS_UNSEEN = 0.5
"""The same where no fit has seen the chip's generation: the prediction deserves less trust."""


def anchor_factors(
    rows: Sequence[Row],
    cases: Sequence[Case],
    anchor_rows: Sequence[Row],
    anchor_cases: Sequence[Case],
    log_ratios: Array,
    known: frozenset[str] = frozenset(),
) -> Array:
    """Factor on each row's time: exp(sum e / (n + n0)) over the anchors near it, e = log(measured / predicted).

    Near is the same chip; for chips of a generation that no fit has seen (not in `known`) all of the vendor's,
    whose bias is common. Anchors of the row's own workload do not count: they would be the answer.
    """
    chips = np.array([c.labels["chip"] for c in anchor_cases])
    vendors = np.array([c.labels["vendor"] for c in anchor_cases])
    works = np.array([workload_key(r) for r in anchor_rows])
    out = np.ones(len(rows))
    for i, (row, case) in enumerate(zip(rows, cases, strict=True)):
        seen = case.labels["generation"] in known
        near = chips == case.labels["chip"] if seen else vendors == case.labels["vendor"]
        near &= (works != workload_key(row)) & np.isfinite(log_ratios)
        if near.any():
            prior = PRIOR_RUNS if seen else PRIOR_RUNS_UNSEEN
            out[i] = float(np.exp(np.sum(log_ratios[near]) / (near.sum() + prior)))
    return out
