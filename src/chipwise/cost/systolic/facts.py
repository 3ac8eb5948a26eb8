"""What the systolic formulas read of a chip."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.catalog.chip import Chip
from chipwise.errors import UsageError
from chipwise.numeric import stack
from chipwise.units import Real
from chipwise.values import dataclass

LANES = 1024.0
"""count: of a core's vector unit, 8 x 128 with four 32-bit units each, two up to v4; stands in where a vendor gives
no vector rate. Source: jax-ml/scaling-book, tpus.md, appendix C."""
BYTES_PER_LANE = 4.0
"""bytes per lane and cycle: one operand from on-chip memory. Chosen: what measured norms reach; the scaling book puts
that memory at about 22 times HBM, some three times as much; moves element-wise kernels that stay on chip."""
NO_BYTES = 1.0
"""bytes: of on-chip memory whose size is not published. Exact: nothing is taken to stay there."""
CLOCK_HZ = 1.75e9
"""clocks per second: where none is published (TPU v6e, v7x). Chosen: that of TPU v5p; moves the vector rate and the
cycles of a tile on those chips in proportion."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """The matrix and vector units of one device. Numbers or arrays.

    `count` arrays of `rows` x `cols` cells; `holds_outputs` 1 where sums stay in the cells, 0 where weights do;
    `parts` of the inner dimension that an array which holds sums works on side by side where rows are few.
    The pace of the arrays is not a fact of its own: it is peak / (2 rows cols count), which for TPU v6e and v7x
    is above any plausible clock (their arrays take more than one row per cycle) and differs by data type.
    `vector_ops_per_s` and `onchip_bytes_per_s` are of the vector units and the memory that feeds them,
    `onchip_bytes` its size.
    """

    rows: Real
    cols: Real
    count: Real
    holds_outputs: Real
    parts: Real
    vector_ops_per_s: Real
    onchip_bytes_per_s: Real
    onchip_bytes: Real

    @property
    def cells(self) -> Real:
        """Of all arrays."""
        return self.rows * self.cols * self.count

    @classmethod
    def stack(cls, chips: Sequence[Chip]) -> Arrays:
        """Several chips, every number an array. Raises `UsageError` as `of` does."""
        return stack([cls.of(chip) for chip in chips])

    @classmethod
    def of(cls, chip: Chip) -> Arrays:
        """The device of a chip. Raises `UsageError` for a chip whose arrays are not known."""
        unit = chip.matrix_unit
        if not unit.arrays or not unit.array_rows or not unit.array_cols:
            raise UsageError(f"{chip.id}: no systolic arrays", "arrays, array_rows and array_cols are not given")
        n = float(chip.devices_per_package)
        clock = unit.peak_clock_hz or unit.boost_clock_hz or CLOCK_HZ
        cores = max(unit.units, 1) / n
        vector = chip.vector.get("fp32")
        per_lane = 4.0 if chip.year >= 2023 else 2.0
        ops = vector / n if vector else cores * LANES * per_lane * clock
        bytes_per_s = ops * BYTES_PER_LANE / per_lane
        if chip.sram_bytes_per_s:
            bytes_per_s = chip.sram_bytes_per_s / n
        local = (chip.sram_per_unit_bytes or 0.0) * unit.units
        return cls(
            rows=float(unit.array_rows),
            cols=float(unit.array_cols),
            count=unit.arrays / n,
            holds_outputs=float(unit.array_holds == "outputs"),
            parts=float(unit.array_parts),
            vector_ops_per_s=ops,
            onchip_bytes_per_s=bytes_per_s,
            onchip_bytes=(local or chip.sram_bytes or chip.cache_bytes or NO_BYTES) / n,
        )
