"""What is away for repair: how many hosts or replicas at once, and how often."""

from __future__ import annotations

import math

import numpy as np

from chipwise.units import Array


def at_most_away(mean: float, bunch: float, most: int) -> Array:
    """Share of the time in which at most 0, 1, ... `most` are away, whose `mean` is failures per hour x hours of
    repair: a Poisson number, or where failures bunch a negative binomial one of a variance `bunch` times its mean."""
    if mean <= 0.0:
        return np.ones(most + 1)
    size = mean / (bunch - 1.0) if bunch > 1.0 else math.inf
    logs, term = [], -mean if math.isinf(size) else -size * math.log(bunch)
    for k in range(most + 1):
        logs.append(term)
        more = mean if math.isinf(size) else (size + k) * (bunch - 1.0) / bunch
        term += math.log(more / (k + 1.0))
    found: Array = np.minimum(np.cumsum(np.exp(logs)), 1.0)
    return found
