"""How an operator is run: once among the others of a model, or again and again, as benchmarks do."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """Where an operator finds its operands; the default is one of the operators of a model.

    | field | meaning |
    |---|---|
    | copies | equal weights or caches that take turns before the first is used again: 1 a hot loop, infinity never |
    | cached | 1 where the operator before has just written the activations, 0 where they take turns too |
    | fetched | 1 where the weights arrived while the operator before left the memory idle (systolic chips) |
    """

    copies: Real = np.inf
    cached: Real = 1.0
    fetched: Real = 0.0

    @property
    def hot(self) -> Real:
        """1 in a hot loop, where caches and weights are found on chip as far as they fit."""
        return np.where(np.asarray(self.copies) <= 1.0, 1.0, 0.0)


AMONG = Run()
"""One operator among the others of a model."""
