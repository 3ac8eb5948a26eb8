"""How a matrix product is cut into tiles and how tiles fill the compute units.

m rows, n columns, k summed over; a tile is bm x bn of the output. The library is taken to choose the best
tile and, where it can, to split k.
"""

from __future__ import annotations

import numpy as np

from chipwise.units import Array, Real

# Output tiles of the usual libraries. The instruction is 16 by 8 (mma.m16n8k16) and takes rows on either side, so that
# few rows are padded to 8, 16 or 32; such tiles reload their columns too often for more rows than one of them holds,
# and are not taken there.
FEW_ROWS: tuple[tuple[int, int], ...] = ((8, 64), (16, 64), (32, 64))
MANY_ROWS: tuple[tuple[int, int], ...] = (
    (64, 64), (128, 64), (64, 128), (128, 128), (128, 256), (256, 128),
)  # fmt: skip
TILES = FEW_ROWS + MANY_ROWS
ONE_TILE: tuple[tuple[int, int], ...] = ((64, 128),)  # of kernels that nobody tuned: whatever the rows

MINIMUM_SLICE = 256.0
"""elements: of k, the least that is split off. Chosen: a slice must be worth filling a pipeline of four stages of 64;
moves products of few tiles and small k."""
SUM_BYTES = 8.0
"""bytes: of a split sum, combined in fp32. Exact: written once and read once, 4 bytes each."""


class UnitTime:
    """Seconds that the compute units need, and where loading tiles rather than multiplying sets them."""

    __slots__ = ("load_bound", "seconds")

    def __init__(self, seconds: Array, load_bound: Array) -> None:
        self.seconds = seconds
        self.load_bound = load_bound


def waves(sizesper_unit: Real, quantisation: Real) -> Real:
    """Rounds in which tiles are worked off: x when they could be divided at will, ceil(x) when not.

    `quantisation` 0..1 is how much of the last, partly filled round is lost: libraries mix tile sizes and
    stream the tail. Less than one tile per unit still takes one round.
    """
    x = sizesper_unit
    rounds: Real = np.maximum(1.0, x + (np.ceil(x) - x) * quantisation)
    return rounds


def tiled(
    m: Real,
    n: Real,
    k: Real,
    batch: Real,
    units: Real,
    unit_flops_per_s: Real,
    unit_bytes_per_s: Real,
    row_bytes: Real,
    column_bytes: Real,
    prologue: Real,
    quantisation: Real,
    split_limit: Real,
    sizes: tuple[tuple[int, int], ...] = TILES,
) -> UnitTime:
    """Time of `batch` products [m, k] x [k, n] on the best of `sizes`.

    One tile takes (k / s + prologue) x max(2 bm bn / unit_flops_per_s,
    (min(bm, m) row_bytes + bn column_bytes) / unit_bytes_per_s): rows that only fill a tile up are multiplied, but not
    loaded. `prologue` is the start and end of a tile in elements of k; s <= `split_limit` slices of k where units would
    idle. Times the waves, plus the sum of the slices. `row_bytes` and `column_bytes` are bytes per element of the two
    operands.
    """
    limit = np.minimum(np.maximum(1.0, np.floor(k / MINIMUM_SLICE)), split_limit)
    splits = bool(np.any(limit > 1.0))
    rows = {bm: np.ceil(m / bm) * batch for bm, _ in sizes}
    loads = {bm: np.minimum(bm, m) * row_bytes for bm, _ in sizes}
    columns = {bn: np.ceil(n / bn) for _, bn in sizes}
    slice_s = m * n * batch * (SUM_BYTES / (unit_bytes_per_s * units))
    best: Array = np.asarray(np.inf)
    load: Array = np.asarray(False)
    for bm, bn in sizes:
        few = np.asarray(m) <= bm if (bm, bn) in FEW_ROWS else None
        if few is not None and not few.any():
            continue
        tiles = rows[bm] * columns[bn]
        s: Real = 1.0
        if splits:
            s = np.minimum(np.maximum(1.0, np.floor(units / tiles)), limit)
        multiply_s = 2.0 * bm * bn / unit_flops_per_s
        load_s = (loads[bm] + bn * column_bytes) / unit_bytes_per_s
        rounds = waves(tiles * s / units, quantisation)
        seconds = rounds * (k / s + prologue) * np.maximum(multiply_s, load_s)
        if splits:
            seconds = seconds + np.where(s > 1.0, s, 0.0) * slice_s
        if few is not None:
            seconds = np.where(few, seconds, np.inf)
        load = np.where(seconds < best, load_s > multiply_s, load)
        best = np.minimum(best, seconds)
    return UnitTime(best, load)
