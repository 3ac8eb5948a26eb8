"""What the kernel formulas read of a chip."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.units import Real
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Rates:
    """One device of a SIMT chip, for one data type of its matrix unit. Numbers or arrays.

    `flops_per_s` is the dense peak of that type, `units` the number of SMs or CUs, `clock_hz` the clock at
    which the peak is stated, `cache_bytes` the last-level cache, `power_w` the board power limit.
    """

    flops_per_s: Real
    memory_bytes_per_s: Real
    cache_bytes: Real
    units: Real
    clock_hz: Real
    power_w: Real

    @classmethod
    def of(cls, chip: Chip, dtype: str) -> Rates:
        """The device of a chip for products in `dtype`; types without a unit are widened (fp8 to 16 bit).

        See `Device` for what is assumed where a vendor does not publish a figure.
        """
        device = Device.of(chip)
        return cls.at(device, _peak(chip, dtype) / float(chip.devices_per_package))

    @classmethod
    def at(cls, device: Device, flops_per_s: Real) -> Rates:
        """A device, or a stack of them, for products at that peak."""
        return cls(
            flops_per_s=flops_per_s,
            memory_bytes_per_s=device.memory_bytes_per_s,
            cache_bytes=device.cache_bytes,
            units=device.units,
            clock_hz=device.clock_hz,
            power_w=device.power_w,
        )


# A type that the matrix unit lacks is widened first; fp32 runs on the vector lanes unless there is a matrix
# unit for it (CDNA), since libraries do not use TF32 unasked.
_WIDER: Mapping[str, tuple[str, ...]] = {
    "fp32": ("fp32",),
    "bf16": ("bf16", "fp16"),
    "fp16": ("fp16", "bf16"),
    "fp8": ("fp8", "int8", "bf16", "fp16"),
    "int8": ("int8", "bf16", "fp16"),
    "fp4": ("fp4", "fp8", "bf16", "fp16"),
}


def _peak(chip: Chip, dtype: str) -> float:
    for name in _WIDER[dtype]:
        rate = chip.matrix.get(name) or chip.vector.get(name)
        if rate:
            return rate
    return float(np.nan)
