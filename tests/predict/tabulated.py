"""Passes of toys on a grid, for tests that know every step time by heart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.predict.surface import StepSurface
from chipwise.units import Array
from chipwise.workload.step import Step, decode, prefill

__all__ = ["tabulated"]


def tabulated(cost_of: Callable[[Step], Cost], batches: Array, prompt: float, context: float) -> StepSurface:
    """Passes of `batches` sequences without a prompt and with one of `prompt` tokens, all in one chunk."""
    b = batches[:, None, None]
    plain, mixed = cost_of(decode(b, context)), cost_of(decode(b, context) + prefill(1.0, prompt))
    lead = np.broadcast_shapes(np.shape(plain.total_s), np.shape(mixed.total_s), b.shape)
    both = {
        name: np.concatenate(
            [np.broadcast_to(cost.exposed.get(name, 0.0), lead) for cost in (plain, mixed)], -2
        )
        for name in dict.fromkeys((*plain.exposed, *mixed.exposed))
    }
    return StepSurface(batches, np.array([0.0, prompt]), Cost(both))
