"""Routing arithmetic of mixtures of experts."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real

__all__ = ["distinct_experts"]


def distinct_experts(tokens: Real, experts: Real, top_k: Real, skew: Real = 1.0) -> Real:
    """Expected number of different experts that `tokens` tokens reach, each choosing `top_k` of `experts`.

    h = E (1 - (1 - k/E)^(T^skew)). With skew 1 tokens choose independently and evenly; below 1 their choices
    are correlated and fewer experts are hit. Ignores uneven popularity otherwise.
    """
    miss = 1.0 - np.minimum(np.asarray(top_k) / experts, 1.0)
    hit: Real = experts * (1.0 - miss ** (np.asarray(tokens, dtype=float) ** skew))
    return hit if np.ndim(hit) else float(hit)
