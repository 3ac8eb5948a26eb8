"""Step time tabulated over batch, prompt tokens and context, for whoever asks again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.units import Array, Real
from chipwise.workload.step import Step, decode, prefill

__all__ = ["StepSurface", "batch_grid", "step_surface"]


@dataclass(frozen=True)
class StepSurface:
    """Costs on a grid. Every array of `cost` has shape [..., batch, prompt, context]; leading axes are the
    deployments that were tabulated together.

    Between grid points costs are linear in each direction: with the grid of `batch_grid` for batches and prompt
    tokens, and contexts by octaves, the error is under 1 %.
    """

    batches: Array
    prompts: Array
    contexts: Array
    cost: Cost

    def total_s(self) -> Array:
        """Seconds at the grid points."""
        total: Array = np.asarray(self.cost.total_s)
        return total

    def time_s(self, batch: Real, prompt: Real = 0.0, context: Real | None = None) -> Array:
        """Seconds between the grid points; the arguments broadcast against the leading axes.

        Values outside the grid are taken at its edge.
        """
        where = self.contexts[0] if context is None else context
        total = self.total_s()
        axes = ((self.batches, batch), (self.prompts, prompt), (self.contexts, where))
        result: Array = np.zeros(())
        corners = [_bracket(grid, value) for grid, value in axes]
        for i, wi in corners[0]:
            for j, wj in corners[1]:
                for k, wk in corners[2]:
                    result = result + wi * wj * wk * _pick(total, i, j, k)
        return result


def step_surface(
    cost_of: Callable[[Step], Cost], batches: Array, prompts: Array, contexts: Array, prompt_length: float
) -> StepSurface:
    """Tabulate `cost_of` over decoding batches that hold `contexts` tokens each, with `prompts` prompt tokens
    in the same pass (of requests of `prompt_length` tokens). `prompts` ascend; 0 is a pass without a prompt,
    whose kernels are then not launched."""
    b = batches[:, None, None]
    c = contexts[None, None, :]
    length = max(prompt_length, 1.0)
    parts: list[tuple[int, Cost]] = []
    plain = int(np.count_nonzero(prompts <= 0.0))
    if plain:
        parts.append((plain, cost_of(decode(b, c))))
    if plain < len(prompts):
        p = prompts[None, plain:, None]
        parts.append((len(prompts) - plain, cost_of(decode(b, c) + prefill(p / length, length))))

    def joined(pick: Callable[[Cost], Mapping[str, Real]]) -> dict[str, Array]:
        names = dict.fromkeys(name for _, cost in parts for name in pick(cost))
        return {
            name: np.concatenate([filled(n, pick(c).get(name, 0.0)) for n, c in parts], -2) for name in names
        }

    def filled(count: int, value: Real) -> Array:
        lead = np.broadcast_shapes(*(np.shape(cost.total_s)[:-3] for _, cost in parts))
        return np.broadcast_to(value, (*lead, len(batches), count, len(contexts)))

    cost = Cost(joined(lambda cost: cost.exposed), joined(lambda cost: cost.hidden))
    return StepSurface(batches, prompts, contexts, cost)


def batch_grid(largest: int = 4096) -> Array:
    """1, 2, 3 ... 8, 10, 12, 14, 16, 20 ... `largest`: whole numbers, four to an octave from 4 on."""
    grid = [1.0, 2.0, 3.0]
    step = 1
    while grid[-1] < largest:
        grid += [float(step * i) for i in (4, 5, 6, 7)]
        step *= 2
    return np.array([b for b in grid if b <= largest])


def _bracket(grid: Array, value: Real) -> list[tuple[np.ndarray, Array]]:
    if len(grid) == 1:
        return [(np.zeros(np.shape(value), dtype=int), np.ones(np.shape(value)))]
    at = np.clip(np.asarray(value, dtype=float), grid[0], grid[-1])
    right = np.clip(np.searchsorted(grid, at, side="left"), 1, len(grid) - 1)
    left = right - 1
    weight = (at - grid[left]) / (grid[right] - grid[left])
    return [(left, 1.0 - weight), (right, weight)]


def _pick(total: Array, i: np.ndarray, j: np.ndarray, k: np.ndarray) -> Array:
    lead = np.indices(total.shape[:-3], sparse=True)
    picked: Array = total[(*lead, i, j, k)]
    return picked
