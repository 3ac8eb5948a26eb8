"""The counters that SCALE-Sim v3 reports, in closed form, its artefacts included.

SCALE-Sim builds a demand matrix, one line per cycle, for every fold. All folds of a layer are equally long
and do not overlap, the read buffers never stall in its bandwidth-estimating mode, so the counters are
products of fold counts. Letters as in `array`: R rows, C cols, T vectors that stream past a fold.

Facts: github.com/scalesim-project/SCALE-Sim (MIT), v3, dense layers, bandwidth mode CALC; the analytical
cycle model is that of Samajdar et al., ISPASS 2020. Not covered: sparsity, custom layouts, DRAM traces.
"""

from __future__ import annotations

import numpy as np

from chipwise.cost.systolic.array import Dataflow, Folds, SystolicArray, folds
from chipwise.units import Real
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Counters:
    """One layer. Reads and writes are words at the array's edge; `cycles` counts every line of the demand
    matrix, one more than the "total cycles" of SCALE-Sim's report."""

    cycles: Real
    utilization_pct: Real
    mapping_efficiency_pct: Real
    sram_ifmap_reads: Real
    sram_filter_reads: Real
    sram_ofmap_writes: Real
    folds: Folds


def counters(m: Real, n: Real, k: Real, array: SystolicArray, dataflow: Dataflow) -> Counters:
    """What SCALE-Sim v3 counts for C[m, n] = A[m, k] x W[k, n].

    cycles per fold:  os  T + R + C - 2;   ws, is  2 R + C + T - 2
    mapping efficiency = m n k / (T R C folds): the cells that a fold uses, averaged over folds.

    Artefacts that are reproduced:
    - utilisation divides by cycles - 1, the index of the last cycle (nan where that is zero);
    - os adds R + C to the ofmap writes of every fold;
    - ws and is load a fold only when the one before has drained, and write all partial sums without
      counting that they are read again.
    """
    tiles = folds(m, n, k, array, dataflow)
    rows, cols, cells = array.rows, array.cols, array.cells
    load = 0.0 * rows if dataflow == "os" else rows
    cycles = tiles.count * (load + tiles.stream + rows + cols - 2.0)
    macs = 1.0 * m * n * k
    last = np.asarray(cycles - 1.0)
    offered = np.where(last > 0.0, last, np.nan) * cells
    if dataflow == "os":
        # A streams once per column of folds, W once per row of folds
        ifmap, weights = tiles.across_cols * m * k, tiles.across_rows * k * n
        ofmap = 1.0 * m * n + tiles.count * (rows + cols)
    elif dataflow == "ws":
        ifmap, weights = tiles.across_cols * m * k, 1.0 * k * n
        ofmap = tiles.across_rows * m * n
    else:
        ifmap, weights = 1.0 * m * k, tiles.across_cols * k * n
        ofmap = tiles.across_rows * m * n
    utilization = 100.0 * macs / offered
    return Counters(
        cycles=cycles,
        utilization_pct=utilization if np.ndim(utilization) else float(utilization),
        mapping_efficiency_pct=100.0 * macs / (tiles.stream * cells * tiles.count),
        sram_ifmap_reads=ifmap,
        sram_filter_reads=weights,
        sram_ofmap_writes=ofmap,
        folds=tiles,
    )
