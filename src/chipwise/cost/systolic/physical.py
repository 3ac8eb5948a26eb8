"""Cycles that an array needs by its structure alone, without the artefacts of a simulator, and with what it is busy.

`serial` runs one fold after the other, as SCALE-Sim does. `weight_stationary` and `output_stationary` are
what accelerators build: while one tile computes, the next one loads or the last one drains, so a tile costs
the longer of the two and the wavefront is paid once per product. Letters as in `array`: R rows, C cols.

Ignored everywhere: HBM (the roofline prices it), SRAM bank conflicts, instruction issue. Sums over k are
never split over arrays: that would need another adder.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from chipwise.cost.systolic.array import Dataflow, Folds, SystolicArray, folds
from chipwise.units import Real
from chipwise.values import dataclass


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


def serial(m: Real, n: Real, k: Real, array: SystolicArray, dataflow: Dataflow) -> Schedule:
    """One array, folds one after the other: load, stream, drain, next.

    os  folds (k + R + C - 2);   ws  folds (L + m + R + C - 2);   is  folds (L + n + R + C - 2)

    with L the cycles of a tile's load (R, or more where `load_words_per_cycle` says so).
    """
    tiles = folds(m, n, k, array, dataflow)
    macs = 1.0 * m * n * k
    count = tiles.count * _any_work(macs)
    load = 0.0 * array.rows if dataflow == "os" else array.load_cycles
    m_tiles, n_tiles, k_tiles = {
        "os": (tiles.across_rows, tiles.across_cols, 1.0),
        "ws": (1.0, tiles.across_cols, tiles.across_rows),
        "is": (tiles.across_cols, 1.0, tiles.across_rows),
    }[dataflow]
    return Schedule(
        load_cycles=count * load,
        stream_cycles=count * tiles.stream,
        stall_cycles=0.0 * count,
        fill_cycles=count * (array.rows - 1.0),
        drain_cycles=count * (array.cols - 1.0),
        folds=tiles,
        passes=count,
        macs=macs,
        padded_macs=count * array.cells * tiles.stream,
        cells=1.0 * array.cells,
        activation_reads=n_tiles * m * k,
        weight_reads=m_tiles * k * n,
        partial_reads=np.maximum(k_tiles - 1.0, 0.0) * m * n,
        result_writes=k_tiles * m * n,
    )


def weight_stationary(
    m: Real, n: Real, k: Real, array: SystolicArray, units: Real = 1.0, *, batch: Real = 1.0
) -> Schedule:
    """`batch` products C[m, n] = A[m, k] x W[k, n] on `units` arrays with double-buffered weights.

    With F tiles one after the other on an array, p rows streaming past each and L cycles to load one:

    cycles = L + (F - 1) max(p, L) + p + R + C - 2

    Only the first load shows; later ones hide behind the streaming, if p >= L. F = 1 gives SCALE-Sim's
    fold. This is the matrix unit of TPUs (Jouppi et al., ISCA 2017, section 2: a second tile is held "for
    double-buffering", B rows take B pipelined cycles, weights "take effect with the advancing wave").

    Split over arrays: the column tiles (of all `batch` products) are dealt out first; arrays that are left
    over share the rows, ceil(m / floor(units / column tiles)) each. Where it is faster, all arrays share
    the rows of every column tile instead. Both ways each array loads the tiles it uses.

    Rows beyond `accumulator_rows` take further passes (of equal height) with the weights loaded again,
    unless k fits one tile, whose sums need not be kept.
    """
    rows, cols = array.rows, array.cols
    macs = 1.0 * batch * m * n * k
    busy = _any_work(macs)
    k_tiles = np.ceil(k / rows)
    n_tiles = batch * np.ceil(n / cols)
    shares = np.maximum(np.floor(units / np.maximum(n_tiles, 1.0)), 1.0)
    deal = _burst(m, shares, np.ceil(n_tiles / units), k_tiles, array)
    split = _burst(m, units, n_tiles, k_tiles, array)
    faster = _cycles(split, array) < _cycles(deal, array)
    height, passes, loads = (np.where(faster, b, a) for a, b in zip(deal, split, strict=True))
    load = array.load_cycles
    return Schedule(
        load_cycles=_plain(busy * load),
        stream_cycles=_plain(busy * passes * height),
        stall_cycles=_plain(busy * (passes - 1.0) * np.maximum(load - height, 0.0)),
        fill_cycles=_plain(busy * (rows - 1.0)),
        drain_cycles=_plain(busy * (cols - 1.0)),
        folds=Folds(k_tiles, n_tiles, m),
        passes=_plain(busy * passes),
        macs=macs,
        padded_macs=_plain(busy * m * k_tiles * n_tiles * rows * cols),
        cells=1.0 * units * rows * cols,
        activation_reads=n_tiles * m * k,
        weight_reads=_plain(loads * batch * k * n),
        partial_reads=np.maximum(k_tiles - 1.0, 0.0) * batch * m * n,
        result_writes=k_tiles * batch * m * n,
    )


def output_stationary(
    m: Real, n: Real, k: Real, array: SystolicArray, units: Real = 1.0, *, batch: Real = 1.0, most_parts: Real = 1.0
) -> Schedule:
    """`batch` products on `units` arrays that keep the sums and shift them out behind the next tile.

    cycles = k / p + (F - 1) max(k / p, r) + R + C - 2

    with F = ceil(tiles / units) tiles of the result one after the other on an array; r = min(R, p m) cycles shift
    the rows of a finished tile out. Tiles are dealt out whole. Rows that few rows of a product leave idle take other
    parts of k, p = min(floor(R / m), most_parts) at a time, whose sums are added on the way out. F = p = 1 gives
    SCALE-Sim's fold.
    """
    rows, cols = array.rows, array.cols
    macs = 1.0 * batch * m * n * k
    parts = np.clip(np.floor(rows / np.maximum(m, 1.0)), 1.0, most_parts)
    whole, k, shifted = k, k / parts, np.minimum(rows, parts * m)
    busy = _any_work(macs)
    m_tiles, n_tiles = np.ceil(m / rows), np.ceil(n / cols)
    passes = busy * np.ceil(batch * m_tiles * n_tiles / units)
    return Schedule(
        load_cycles=0.0 * busy,
        stream_cycles=_plain(passes * k),
        stall_cycles=_plain(np.maximum(passes - 1.0, 0.0) * np.maximum(shifted - k, 0.0)),
        fill_cycles=busy * (rows - 1.0),
        drain_cycles=busy * (cols - 1.0),
        folds=Folds(m_tiles, batch * n_tiles, k),
        passes=passes,
        macs=macs,
        padded_macs=_plain(busy * batch * m_tiles * n_tiles * rows * cols * k),
        cells=1.0 * units * rows * cols,
        activation_reads=n_tiles * batch * m * whole,
        weight_reads=m_tiles * batch * whole * n,
        partial_reads=0.0 * macs,
        result_writes=1.0 * batch * m * n,
    )


def _burst(m: Real, shares: Real, columns: Real, k_tiles: Real, array: SystolicArray) -> tuple[Real, Real, Real]:
    """Rows per pass, passes on the busiest array, and how often each weight is loaded over all arrays."""
    height = np.ceil(m / shares)
    # sums of a column tile must stay below the array until its last k tile
    chunks = np.where(k_tiles > 1.0, np.maximum(np.ceil(height / array.accumulator_rows), 1.0), 1.0)
    used = np.minimum(shares, np.maximum(np.ceil(m), 1.0))
    return np.ceil(height / chunks), columns * k_tiles * chunks, used * chunks


def _cycles(burst: tuple[Real, Real, Real], array: SystolicArray) -> Real:
    """The part of a burst's cycles that depends on how the work was split."""
    height, passes, _ = burst
    return cast(Real, (passes - 1.0) * np.maximum(height, array.load_cycles) + height)


def _any_work(macs: Real) -> Real:
    """1, or 0 for an empty product, which costs nothing."""
    return _plain(np.where(np.asarray(macs) > 0.0, 1.0, 0.0))


def _plain(value: Real) -> Real:
    """A number where all inputs were numbers."""
    return value if np.ndim(value) else float(value)
