"""Routing arithmetic of mixtures of experts."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real

CORRELATED = 0.9
"""Exponent of tokens whose choices are correlated, as those of one batch are: experts differ in popularity, and texts
of one service are alike. Of served mixtures of 128 to 512 experts on Hopper and Blackwell, with cells, chips, models or
runtimes left out: 0.85 to 0.9 explains times per token best, 1 and 0.8 do worse."""


def distinct_experts(tokens: Real, experts: Real, top_k: Real, skew: Real = CORRELATED) -> Real:
    """Expected number of different experts that `tokens` tokens reach, each choosing `top_k` of `experts`.

    h = E (1 - (1 - k/E)^(T^skew)). With skew 1 tokens choose independently and evenly; below 1 their choices
    are correlated and fewer experts are hit: in a batch of a few dozen tokens a tenth fewer, one token and very many
    alike.
    """
    miss = 1.0 - np.minimum(np.asarray(top_k) / experts, 1.0)
    hit: Real = experts * (1.0 - miss ** (np.asarray(tokens, dtype=float) ** skew))
    return hit if np.ndim(hit) else float(hit)


def busiest_rank(ranks: Real, experts: Real, hit: Real, pairs: Real) -> tuple[Real, Real]:
    """(weights read, rows computed) of the busiest of `ranks` that hold whole experts, over the mean rank.

    `hit` of `experts` get any of `pairs` (token, expert) rows by independent even choices, so that a rank's
    experts that are hit are binomial and its rows Poisson; the largest of r normals lies 0.564 log2(r)^0.8
    deviations above the mean (within 5 % for r up to 128). All ranks wait for the busiest. Uneven popularity
    of experts comes on top.
    """
    r = np.maximum(np.asarray(ranks, dtype=float), 1.0)
    above = 0.564 * np.log2(r) ** 0.8
    share = np.clip(np.asarray(hit) / experts, 1e-6, 1.0)
    local = experts / r
    read = np.minimum(1.0 + above * np.sqrt((1.0 - share) / (share * local)), np.minimum(r, 1.0 / share))
    rows = np.minimum(1.0 + above / np.sqrt(np.maximum(pairs / r, 1e-6)), r)
    return np.where(r > 1, np.maximum(read, 1.0), 1.0), np.where(r > 1, rows, 1.0)
