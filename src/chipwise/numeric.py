"""Where a condition changes, by halving what is left."""

from collections.abc import Callable
from typing import Any

import numpy as np

from chipwise.units import Array, Real


def root(keeps: Callable[[Any], Any], low: Real, high: Real, steps: int = 0) -> tuple[Array, Array]:
    """The ends between which `keeps`, true below and false above, changes [broadcast]: after so many halvings, or of
    whole numbers, where `steps` is 0, those one apart."""
    left = steps
    while left > 0 if steps else np.any(np.subtract(high, low) > 1.0):
        middle = 0.5 * np.add(low, high) if steps else np.floor(0.5 * np.add(low, high))
        below, left = keeps(middle), left - 1
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(low), np.asarray(high)
