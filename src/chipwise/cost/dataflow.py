"""One stage of a dataflow chip (Groq LPU, Cerebras WSE, SambaNova RDU): an operator laid out by a compiler.

Weights lie in SRAM next to the units as far as they fit; the rest streams from the next tier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.units import Real
from chipwise.workload.op import Op

__all__ = ["PRIORS", "PRIOR_LOG_SPREAD", "DataflowModel", "Fabric", "StageNumbers", "stage_time"]

PRIOR_LOG_SPREAD = 0.5
"""One standard deviation of log(time): nothing was fitted."""

# SRAM without a published rate is taken to be so many times faster than the memory behind it.
SRAM_GAIN = 20.0
# A tier that does not exist: streaming from it never ends, but arithmetic does.
NO_TIER = 1e-3


@dataclass(frozen=True, slots=True)
class Fabric:
    """One chip. `planes` matrix planes of `plane` x `plane` 8-bit cells at `clock_hz` (0: no planes, only a
    peak); `tier_bytes_per_s` 0: nothing to stream from."""

    planes: Real
    plane: Real
    clock_hz: Real
    sram_bytes: Real
    sram_bytes_per_s: Real
    tier_bytes_per_s: Real

    @classmethod
    def of(cls, chip: Chip) -> Fabric:
        """The fabric of a chip. The tier behind SRAM is the chip's DRAM, or what a named second tier sends."""
        memory = chip.memory.bytes_per_s or 0.0
        on_chip = chip.memory.kind == "sram"
        if not on_chip:
            tier = memory
        elif len(chip.tiers) > 1:
            link = chip.scaleup.bytes_per_s if chip.scaleup else None
            tier = chip.tiers[1].bytes_per_s or link or 0.0
        else:
            tier = 0.0
        planes = chip.matrix_unit.units if chip.matrix_unit.unit.endswith("plane") else 0
        edge = 320.0 if planes else 0.0
        return cls(
            planes=float(planes),
            plane=edge,
            clock_hz=chip.matrix_unit.peak_clock_hz or chip.matrix_unit.boost_clock_hz or np.nan,
            sram_bytes=chip.sram_bytes or chip.memory.usable_bytes or 0.0,
            sram_bytes_per_s=chip.sram_bytes_per_s or (memory if on_chip else SRAM_GAIN * memory),
            tier_bytes_per_s=tier,
        )


@dataclass(frozen=True, slots=True)
class StageNumbers:
    """Assumed numbers; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | compute_share | of dense peak | units without planes |
    | plane_share | of the clock | rows that planes take in |
    | sram_share, tier_share | of bandwidth | sweeping weights where they lie, or streaming them |
    | layer_s | s | way across the chip: spread the input, collect the output |
    | softness | exponent | of units, SRAM and tier against each other |
    """

    compute_share: Real = 0.7
    plane_share: Real = 0.91
    sram_share: Real = 0.8
    tier_share: Real = 0.8
    layer_s: Real = 0.27e-6
    softness: float = 8.0


PRIORS = StageNumbers()


@dataclass(frozen=True)
class DataflowModel:
    """What `cost.time` needs for a stage: `resident` is the share of weights that stay in SRAM."""

    fabric: Fabric
    numbers: StageNumbers = PRIORS
    resident: Real = 1.0

    def take(self, _: object) -> DataflowModel:
        """The same for any selection of chips: it is of one chip."""
        return self


def stage_time(
    op: Op, device: Device, fabric: Fabric, numbers: StageNumbers, *, resident: Real = 1.0
) -> Cost:
    """t = layer_s + <units, SRAM, tier>_softness.

    units: with planes, m rows through ceil(k / edge) ceil(n / edge) whole tiles, rows shared out over the
    planes, one row a clock (a quarter for 16-bit products); else FLOPs over share x peak. SRAM: resident
    weights, activations and cache; tier: the other weights.
    """
    peak = device.vector_flops_per_s if op.compute == "vector" else device.matrix[op.compute]
    peak = np.where(np.isfinite(peak), peak, device.matrix["bf16"])
    units = op.flops / (numbers.compute_share * peak)
    if op.kind == "gemm" and np.all(np.asarray(fabric.planes) > 0):
        d = op.dims
        tiles = np.ceil(d["k"] / fabric.plane) * np.ceil(d["n"] / fabric.plane) * d["batch"]
        passes = 1.0 if op.compute in ("int8", "fp8", "int4", "fp4") else 4.0
        units = passes * tiles / fabric.planes * d["m"] / (numbers.plane_share * fabric.clock_hz)
    stays = op.weight_bytes * resident + op.activation_bytes + op.kv_bytes
    rate = np.maximum(numbers.tier_share * fabric.tier_bytes_per_s, NO_TIER)
    body = soft_maximum(
        {
            "compute": units,
            "on-chip": stays / (numbers.sram_share * fabric.sram_bytes_per_s),
            "memory": op.weight_bytes * (1.0 - resident) / rate,
        },
        numbers.softness,
    )
    return body + Cost({"launch": numbers.layer_s + 0.0 * units})
