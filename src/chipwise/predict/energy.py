"""Power of a chip, of its machine and at the wall, from what the chip does in a second.

    P = L s(rest + memory m + compute (c + integer i)^k),   s(x) = x / (1 + x^q)^(1/q)

with L the power limit (TDP, or a lower one that was set), m bytes of memory over its bandwidth, c and i floating-point
and integer operations over the peak of their type, as units issue them: a matrix unit multiplies whole tiles, however
few rows there are (`issued`). A share of the limit at full rate is an energy: a byte takes
memory x L / bandwidth, an operation at the peak compute x L / peak. So a narrower format and a newer process take less
by as much as they do more in the same watts, and few numbers serve every chip. Power grows less than in proportion to
operations (k < 1): half-filled units still clock, fetch and schedule. Near the limit the clock gives way: s never
exceeds 1. Bytes on links between chips are not told apart from `rest`.

    W = (M base + (1 + upkeep) sum P) / supply

at the plugs of M machines: `base` is what a machine draws for itself (processors, memory, drives), `upkeep` what fans,
network cards and switches take in proportion to its chips, `supply` what power supplies let through. Cooling of the
building is in none of it.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from chipwise.cost.device import Device
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op

SOFTNESS = 3.0
"""exponent: how close to its limit a chip runs before the clock gives way. Source: the best of 2, 3, 4, 6 and 10 on
measured rows that no fit had seen (2026-11); busy GPUs read 97 to 99 % of their limit."""

DUTY = 0.4
"""exponent: of operations. Source: the best of 0.3, 0.4, 0.5, 0.7 and 1 on measured rows that no fit had seen
(2026-11)."""

TILE = 16.0
"""rows: of the smallest tile of a matrix unit, fewer are padded to it. Source: PTX ISA: mma.m16n8k16; Intel AMX and
AMD's wavefronts have as many."""

INTEGER = frozenset(("int8", "int4"))
"""Types of products that take the energy of integers."""

SUPPLY = 0.94
"""share of the power at the plug: that reaches the machine. Source: 80 PLUS Platinum: 94 % at half load, 230 V."""


@dataclass(frozen=True)
class Use:
    """What a chip does, on average, as shares of what it could: numbers or arrays that broadcast.

    | field | meaning |
    |---|---|
    | memory | bytes a second that memory moves, over its bandwidth |
    | compute | floating-point operations that are issued a second, over the peak of their type, summed over types |
    | integer | the same of integer operations |
    """

    memory: Real
    compute: Real
    integer: Real = 0.0

    def __mul__(self, factor: Real) -> Use:
        """The same work spread over more chips, or over more time."""
        return Use(*(getattr(self, f.name) * factor for f in fields(self)))

    def take(self, row: int) -> Use:
        """One of several, as numbers."""
        return Use(*(float(np.asarray(getattr(self, f.name))[row]) for f in fields(self)))


def issued(op: Op, device: Device, *, lanes: bool = False) -> tuple[str, Real]:
    """By which field of `Use` the operations of an operator count, and the seconds that they take at the peak.

    Matrix units multiply every weight that is read by a tile of `TILE` rows at least, so that a lone sequence draws
    what 16 do; kernels on vector `lanes`, those of local runtimes, by the rows that there are. Broadcasts. A type
    without a peak takes no time.
    """
    if op.compute == "vector":
        return "compute", op.flops / device.vector_flops_per_s
    weights = 8.0 * op.weight_bytes / FORMATS[op.weight].mean_bits if op.weight in FORMATS else 0.0
    flops: Real = op.flops if lanes else np.maximum(op.flops, 2.0 * TILE * weights)
    return "integer" if op.compute in INTEGER else "compute", flops / device.matrix.get(op.compute, np.inf)


@dataclass(frozen=True)
class PowerModel:
    """Shares of the power limit: of a chip with its clocks up that waits (`rest`), and what is added while its memory
    moves all it can, while it computes at its peak; `integer` is the energy of an integer operation over that of a
    floating-point one at the same peak."""

    rest: Real
    memory: Real
    compute: Real
    integer: Real

    def share(self, use: Use) -> Array:
        """Power over the limit, below 1. Broadcasts."""
        computed = np.asarray(use.compute + self.integer * use.integer) ** DUTY
        wanted = np.asarray(self.rest + self.memory * use.memory + self.compute * computed)
        return np.asarray(wanted / (1.0 + wanted**SOFTNESS) ** (1.0 / SOFTNESS))


@dataclass(frozen=True)
class PoweredMachine:
    """What a machine draws beside its chips: watts for itself, and a share of theirs."""

    base_w: Real
    upkeep: Real

    def wall_w(self, chips_w: Real, machines: Real) -> Real:
        """Watts at the plugs of `machines` machines whose chips draw `chips_w` in all."""
        watts: Real = (machines * self.base_w + (1.0 + self.upkeep) * chips_w) / SUPPLY
        return watts

    def fed(self, wall_w: float, chip_w: float, each: int) -> int:
        """The most chips, `each` to a machine, that `wall_w` at the plugs feed while every one draws `chip_w`: whole
        machines, and as many in a last one as are left."""
        inside, chip = wall_w * SUPPLY, (1.0 + float(self.upkeep)) * chip_w
        machines, left = divmod(inside, float(self.base_w) + each * chip)
        return int(machines) * each + max(int((left - float(self.base_w)) / chip), 0)
