"""Dataflow chips (Groq LPU, Cerebras WSE, SambaNova RDU and others): operators laid out by a compiler.

Weights lie in SRAM next to the units as far as they fit; the rest streams from the next tier. A stage of a
pipeline over chips is one chip, or several that share every operator (`parallel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.cost.products import products
from chipwise.numeric import stack, take
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.op import Op

PRIOR_LOG_SPREAD = 0.5
"""logarithm of seconds: one standard deviation of one operator. Chosen: nothing was fitted; moves the interval, at 80
% a factor of 1.9 either way."""

SRAM_GAIN = 10.0
"""ratio: bandwidth of SRAM over that of the memory behind it, where the vendor gives none. Chosen: one 8-byte word
per cycle and unit of 0.5 MB gives SN40L (1,040 units) 11 to 17 TB/s, seven to ten times its HBM, and others are taken
to be alike; moves what stays on chip in proportion."""
PLANE_EDGE = 320.0
"""cells: edge of a plane of the Groq LPU, 320 x 320 of 8 bits. Source: Abts et al., ISCA 2020."""
PLANE_LOAD_CYCLES = 40.0
"""cycles: in which a plane takes in a whole tile of weights. Source: Abts et al., ISCA 2020 (409,600 weights in less
than 40 cycles, four planes at once)."""
KEY_BYTES = 2.0
"""bytes: of keys and values, which attention loads in place of weights. Exact: caches of these chips are 16 bit."""
WIDE_PASSES = 4.0
"""count: passes of a 16-bit product, which pairs two planes and takes two. Source: Groq's figures of its chip: 188
TFLOP/s of fp16, 750 TOP/s of int8."""
KEPT_SHARE = 0.5
"""share of SRAM: up to which weights of a chip with DRAM stay in it. Chosen: half is left to activations and buffers;
moves the size of model from which weights are streamed."""
NO_TIER = 1e-3
"""bytes per second: of a tier that does not exist. Exact: streaming from it never ends, but arithmetic does."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """One device of a chip. Numbers or arrays.

    | field | unit | meaning |
    |---|---|---|
    | planes | count | matrix planes of `plane` x `plane` 8-bit cells; 0: only a peak is known |
    | clock_hz | Hz | rows that a plane takes in |
    | sram_bytes, sram_bytes_per_s | | on-chip memory |
    | tier_bytes_per_s | B/s | the memory that weights stream from; 0: nothing to stream from |
    | holds_all | 1 or 0 | weights lie in SRAM, there is no other memory for them |
    | spatial | 1 or 0 | every operator has a region of units of its own (wafer), in proportion to its weights |
    """

    planes: Real
    plane: Real
    clock_hz: Real
    sram_bytes: Real
    sram_bytes_per_s: Real
    tier_bytes_per_s: Real
    holds_all: Real = 0.0
    spatial: Real = 0.0

    @classmethod
    def of(cls, chip: Chip) -> Fabric:
        """The fabric of a chip. The tier behind SRAM is the chip's DRAM, or what a named second tier sends."""
        n = float(chip.devices_per_package)
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
        return cls(
            planes=planes / n,
            plane=PLANE_EDGE if planes else 0.0,
            clock_hz=chip.matrix_unit.peak_clock_hz or chip.matrix_unit.boost_clock_hz or np.nan,
            sram_bytes=(chip.sram_bytes or chip.memory.usable_bytes or 0.0) / n,
            sram_bytes_per_s=(chip.sram_bytes_per_s or (memory if on_chip else SRAM_GAIN * memory)) / n,
            tier_bytes_per_s=tier / n,
            holds_all=float(on_chip),
            spatial=float(chip.kind == "wafer"),
        )

    @classmethod
    def stack(cls, chips: Sequence[Chip]) -> Fabric:
        """Several chips, every number an array."""
        return stack([cls.of(chip) for chip in chips])


@dataclass(frozen=True, slots=True)
class StageNumbers:
    """What compilers reach; each a number or an array. The defaults are priors for one chip on its own.

    | field | unit | meaning and source |
    |---|---|---|
    | compute_share | of dense peak | units without planes, many rows: assumed, as good products on GPUs |
    | row_share | of dense peak | the same for one row, where units wait for it: assumed |
    | plane_share | of the clock | rows that planes take in: 820 of 900 MHz, at which the LPU's 750 TOPS are stated |
    | sram_share | of bandwidth | sweeping weights where they lie: assumed |
    | tier_share | of bandwidth | streaming weights: assumed, as for HBM elsewhere |
    | layer_s | s | way across the chip per operator: spread the input, collect the output. 240 cycles of the LPU,
      which takes 20 superlanes and 90-odd slices to cross (Abts et al.); set with its ResNet-50 in view |
    | routed_s | s | more where experts are routed, whose place is known late |
    | softness | exponent | of units, SRAM and tier against each other: streams are scheduled to overlap |
    """

    compute_share: Real = 0.7
    row_share: Real = 0.3
    plane_share: Real = 0.91
    sram_share: Real = 0.8
    tier_share: Real = 0.8
    layer_s: Real = 0.27e-6
    routed_s: Real = 0.0
    softness: float = 8.0


PRIORS = StageNumbers()


@dataclass(frozen=True)
class DataflowModel:
    """What `cost.price` needs for a stage.

    `resident` is the share of weights that stay in SRAM, `held_bytes` what all weights of the model take on a
    device (0: the operator is alone on it). In a model both follow from its layout: `holding`.
    """

    fabric: Fabric
    numbers: StageNumbers = PRIORS
    resident: Real = 1.0
    held_bytes: Real = 0.0

    def take(self, index: np.ndarray) -> DataflowModel:
        """Of several chips: those at `index`, any shape."""
        return replace(self, fabric=take(self.fabric, index), numbers=take(self.numbers, index))

    def holding(self, held_bytes: Real) -> DataflowModel:
        """The same for devices that each hold `held_bytes` of weights."""
        kept = np.asarray(held_bytes <= KEPT_SHARE * np.asarray(self.fabric.sram_bytes), dtype=float)
        return replace(self, resident=np.maximum(kept, self.fabric.holds_all), held_bytes=held_bytes)


def stage_time(op: Op, device: Device, model: DataflowModel) -> Cost:
    """t = layer_s (+ routed_s) + fill + <units, SRAM, tier>_softness, element-wise work without layer_s: it rides
    on the products around it.

    units: with planes, the rows of every product through ceil(k / edge) ceil(n / edge) whole tiles, shared out
    over the planes, one row a clock (a quarter for 16-bit products), at least the cycles that a tile of weights
    takes to be loaded, 40 per byte of a weight; else FLOPs over share x peak. SRAM: resident weights, activations,
    and the cache where there is no other memory; tier: the rest.

    fill, of operators with weights on a spatial chip: one row passes the region of the operator, w / held of
    the chip, while other regions work on other rows. It takes 1 / region of what the chip as a whole would:
    (w / held) cancels, so that it is one row of all weights held, t_row = <2 FLOPs, sweep of SRAM>, less the
    share that is counted in the units. Ignores conflicts in networks on the chip.
    """
    f, n = model.fabric, model.numbers
    peak: Real = device.vector_flops_per_s if op.compute == "vector" else device.matrix[op.compute]
    peak = np.where(np.isfinite(peak), peak, device.matrix["bf16"])
    units: Real = op.flops / (n.compute_share * peak)
    asked = products(op)
    if asked and np.all(np.asarray(f.planes) > 0):
        # a type runs at the full rate of the cells only where the chip has a rate of its own for it
        passes = np.where(peak > device.matrix["bf16"], 1.0, WIDE_PASSES)
        cells = sum((x.batch * x.n * x.k for x in asked), start=0.0 * op.flops)
        stored = np.where(np.asarray(op.weight_bytes) > 0.0, op.weight_bytes / cells, KEY_BYTES)
        turns: Real = 0.0
        for x in asked:
            tiles = np.ceil(x.k / f.plane) * np.ceil(x.n / f.plane) * x.batch
            turns = turns + tiles * np.maximum(passes * x.m, PLANE_LOAD_CYCLES * stored)
        units = turns / f.planes / (n.plane_share * f.clock_hz)
    streamed = op.weight_bytes * (1.0 - model.resident) + op.kv_bytes * (1.0 - f.holds_all)
    rate = np.maximum(n.tier_share * f.tier_bytes_per_s, NO_TIER)
    parts = {
        "compute": units,
        "on-chip": (op.bytes - streamed) / (n.sram_share * f.sram_bytes_per_s),
        "memory": streamed / rate,
    }
    cost = soft_maximum(parts, n.softness)
    if op.kind in ("pointwise", "lookup"):
        return cost
    if op.kind in ("gemm", "conv", "experts"):
        cost = cost + _first_row(op, peak, model) * f.spatial
    routed = n.routed_s if op.kind == "experts" else 0.0
    return cost + Cost({"launch": n.layer_s + routed + 0.0 * units})


def _first_row(op: Op, peak: Real, model: DataflowModel) -> Cost:
    """One row through all weights held, less the part of this operator's own."""
    f, n = model.fabric, model.numbers
    others = np.maximum(model.held_bytes - op.weight_bytes, 0.0)
    # operations per byte of weights: 2 per parameter, in the format of this operator
    asked = products(op)
    macs = sum((p.macs / p.m for p in asked), start=0.0 * others)
    multiply_s = 2.0 * macs / np.maximum(op.weight_bytes, 1.0) / (n.row_share * peak)
    sweep_s = 1.0 / (n.sram_share * f.sram_bytes_per_s)
    # experts have a region for the way up and one for the way down
    passed = len(asked) * others
    slower = multiply_s > sweep_s
    return Cost(
        {"compute": np.where(slower, passed * multiply_s, 0.0), "on-chip": np.where(slower, 0.0, passed * sweep_s)}
    )
