"""Turning 16-bit activations into a narrow type before a product: a kernel of its own."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.cost.cost import Cost
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import FOUND, missed
from chipwise.units import Real


@dataclass(frozen=True, slots=True)
class QuantiseParameters:
    """`start_s` s per call; `row_unit_s` s of one compute unit per row (one block per row: vLLM's per-token
    kernels); `memory_share` of the bandwidth while reading 2 and writing 1 byte per element."""

    start_s: Real
    row_unit_s: Real
    memory_share: Real


CACHE_GAIN = 3.0
"""ratio: bandwidth of a last-level cache over that of the memory behind it. Chosen: vendors give a few times as much,
2 to 5; moves kernels that quantise what is still in cache."""


def quantise(rows: Real, columns: Real, rates: Rates, p: QuantiseParameters, needed: Real = 1.0) -> Cost:
    """needed x (start_s + rows row_unit_s / units + 3 rows columns / (memory_share x bandwidth)).

    The bytes cost a third where input and output fit the cache, since the operator before has just written
    them.

    `needed` is 1 where the runtime quantises, 0 where it does not (a fused or static input), so that a list
    of products broadcasts. Ignores fusion with the norm before it, which hides most of it.
    """
    moved = 3.0 * rows * columns
    away = missed(moved, rates.cache_bytes, *FOUND)
    slow = (away + (1.0 - away) / CACHE_GAIN) / (rates.memory_bytes_per_s * p.memory_share)
    return Cost(
        {
            "launch": needed * p.start_s,
            "on-chip": needed * rows * p.row_unit_s / rates.units,
            "memory": needed * moved * slow,
        }
    )
