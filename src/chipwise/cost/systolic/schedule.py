"""How long an array is busy with one product, and with what. Parts add up to the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.cost.systolic.array import Folds
from chipwise.units import Real


@dataclass(frozen=True, slots=True)
class Schedule:
    """Cycles of the busiest of `units` equal arrays, and the words that all of them move.

    Words are operands at the edge of the arrays: `activation_reads` and `weight_reads` from SRAM,
    `partial_reads` and `result_writes` of sums (a sum that is added to later is written and read again).
    """

    load_cycles: Real
    """The array waits for its first tile (without double buffering: for every tile)."""
    stream_cycles: Real
    """A vector enters in each of these cycles."""
    stall_cycles: Real
    """Streaming is over before the next tile is there."""
    fill_cycles: Real
    """rows - 1 for each burst: the first sum travels to the lower edge."""
    drain_cycles: Real
    """cols - 1 for each burst: the last column follows the first."""
    folds: Folds
    """Tiles of the whole product, over all arrays."""
    passes: Real
    """Tiles that the busiest array works off, one after the other."""
    macs: Real
    """Multiply-accumulates that the product needs."""
    padded_macs: Real
    """The same with both mapped dimensions rounded up to whole tiles."""
    cells: Real
    """Multiply-accumulates per cycle of all arrays."""
    activation_reads: Real
    weight_reads: Real
    partial_reads: Real
    result_writes: Real

    @property
    def cycles(self) -> Real:
        """From the first weight in to the last sum out."""
        feeding = self.load_cycles + self.stream_cycles + self.stall_cycles
        return feeding + self.fill_cycles + self.drain_cycles

    @property
    def utilization(self) -> Real:
        """Useful share of all multiply-accumulates offered: macs / (cycles cells)."""
        return self.macs / np.maximum(self.cycles * self.cells, 1.0)

    def time_s(self, clock_hz: Real) -> Real:
        """Seconds at one clock."""
        return self.cycles / clock_hz
