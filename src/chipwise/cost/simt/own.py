"""Products of many rows by a runtime's own kernels, which no library of the chip's vendor stands for.

Local runtimes keep weights packed and multiply them as they are: with activations in 8 bits where the matrix unit has
such a type, else in 16 bits. What their kernels sustain of it is a number per kind of chip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.cost.device import Device
from chipwise.units import Real
from chipwise.workload.op import Op

__all__ = ["OwnKernels"]

WIDE = ("bf16", "fp16", "fp32", "")


@dataclass(frozen=True, slots=True)
class OwnKernels:
    """Shares of the dense peak, a number per chip; NaN where nothing is known.

    | field | meaning |
    |---|---|
    | packed | products of packed weights, of the 8-bit integer peak where there is one, else of the 16-bit peak |
    | half | products of 16-bit weights, of the peak of 16-bit products whose sums are kept in 16 bits |
    """

    packed: Real
    half: Real

    def take(self, index: np.ndarray) -> OwnKernels:
        """Of several chips: those at `index`, any shape."""
        return OwnKernels(np.asarray(self.packed)[index], np.asarray(self.half)[index])

    def share(self, op: Op, device: Device, library: Real) -> Real:
        """Share of the peak of `op` at which it is multiplied; `library`, its vendor's, where nothing is known.

        Units that keep sums in 16 bits do so at half of their rate for 8-bit integers, consumer cards too; a chip
        without 8-bit units has its 16-bit rate under "int8". At most 1: the type of `op` sets the roofline that is
        shown, even where consumer cards do better in 8 bits.
        """
        if op.weight in WIDE:
            own, peak = self.half, np.maximum(device.matrix["fp16"], device.matrix["int8"] / 2.0)
        else:
            own, peak = self.packed, device.matrix["int8"]
        return np.where(np.isfinite(own), np.minimum(own * peak / device.matrix[op.compute], 1.0), library)
