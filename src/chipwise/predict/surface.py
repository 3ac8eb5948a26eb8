"""Step time tabulated over batch, prompt tokens and context, for many deployments together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.units import Array

__all__ = ["StepSurface", "batch_grid"]


@dataclass(frozen=True)
class StepSurface:
    """Costs on a grid, as `predict.inference.served_surface` fills it. Every array of `cost` has shape [..., batch,
    prompt, context]; leading axes are the deployments that were tabulated together.

    Between batches of `batch_grid` costs are close to linear: under 1 % off where time is smooth in the batch.
    Kernels that step by a tile are off by more just past a step; whoever needs those asks at the batch itself.
    """

    batches: Array
    prompts: Array
    cost: Cost

    def total_s(self) -> Array:
        """Seconds at the grid points."""
        total: Array = np.asarray(self.cost.total_s)
        return total


def batch_grid(largest: int = 4096) -> Array:
    """1, 2, 3 ... 8, 10, 12, 14, 16, 20 ... `largest`: whole numbers, four to an octave from 4 on."""
    grid = [1.0, 2.0, 3.0]
    step = 1
    while grid[-1] < largest:
        grid += [float(step * i) for i in (4, 5, 6, 7)]
        step *= 2
    return np.array([b for b in grid if b <= largest])
