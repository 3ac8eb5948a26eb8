"""A systolic array: how many multiply-accumulate cells, how they are fed, and how a product, a convolution too,
folds onto them.

Letters: m rows (tokens or output pixels), n output and k input features of C[m, n] = A[m, k] x W[k, n].
A dataflow keeps one operand in the cells and maps it on (rows, cols); the third dimension streams:

| dataflow | held in the cells | rows | cols | streams |
|---|---|---|---|---|
| os, output stationary | C | m | n | k |
| ws, weight stationary | W | k | n | m |
| is, input stationary  | A, transposed | k | m | n |
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, cast

import numpy as np

from chipwise.errors import UnknownNameError
from chipwise.units import Real
from chipwise.values import dataclass

Dataflow = Literal["os", "ws", "is"]
DATAFLOWS: tuple[Dataflow, ...] = ("os", "ws", "is")


@dataclass(frozen=True, slots=True)
class SystolicArray:
    """`rows` x `cols` cells, one multiply-accumulate each per cycle. The numbers may be arrays.

    `load_rows_per_cycle` is how fast held operands enter: by default one row of the array per cycle, so that a
    tile takes `rows` cycles; ports that pack several narrow rows into a word take more. `load_words_per_cycle`
    limits it to what a slow memory delivers.
    `accumulator_rows` is how many rows of partial sums one pass may keep below the array; by default there is
    no limit (the sums spill to a memory as fast as the array).
    """

    rows: Real
    cols: Real
    load_words_per_cycle: Real | None = None
    accumulator_rows: Real = math.inf
    load_rows_per_cycle: Real = 1.0

    @property
    def cells(self) -> Real:
        """Multiply-accumulates per cycle."""
        return self.rows * self.cols

    @property
    def load_cycles(self) -> Real:
        """Cycles until one whole tile of held operands is in."""
        port = self.rows / self.load_rows_per_cycle
        if self.load_words_per_cycle is None:
            return port
        return cast(Real, np.maximum(port, self.cells / self.load_words_per_cycle))


@dataclass(frozen=True, slots=True)
class Folds:
    """Tiles of the held operand: `across_rows` x `across_cols`, each with `stream` vectors passing by."""

    across_rows: Real
    across_cols: Real
    stream: Real

    @property
    def count(self) -> Real:
        """Tiles in all."""
        return self.across_rows * self.across_cols


def folds(m: Real, n: Real, k: Real, array: SystolicArray, dataflow: Dataflow) -> Folds:
    """How C[m, n] = A[m, k] x W[k, n] is cut: ceil(dim / rows) x ceil(dim / cols), by the table above."""
    mapped = {"os": (m, n, k), "ws": (k, n, m), "is": (k, m, n)}
    if dataflow not in mapped:
        raise UnknownNameError("dataflow", dataflow, DATAFLOWS)
    on_rows, on_cols, stream = mapped[dataflow]
    return Folds(np.ceil(on_rows / array.rows), np.ceil(on_cols / array.cols), stream)


class Gemm(NamedTuple):
    """Sizes of C[m, n] = A[m, k] x W[k, n]."""

    m: Real
    n: Real
    k: Real


def im2col(
    ifmap_h: Real,
    ifmap_w: Real,
    filter_h: Real,
    filter_w: Real,
    channels: Real,
    num_filters: Real,
    stride_h: Real = 1.0,
    stride_w: Real = 1.0,
    *,
    pad_h: Real = 0.0,
    pad_w: Real = 0.0,
    images: Real = 1.0,
    partial_windows: Literal["drop", "keep"] = "drop",
) -> Gemm:
    """m = images x out_h x out_w, n = filters, k = filter_h x filter_w x channels.

    out = floor((size + 2 pad - filter) / stride) + 1, as frameworks do. SCALE-Sim rounds up instead
    (`partial_windows="keep"`): a last window that hangs over the edge counts as a pixel.

    `pad_h` and `pad_w` are added on both sides. A grouped convolution is `groups` such products with
    channels / groups and filters / groups each. The copies that im2col makes are not counted: arrays
    gather the windows while reading.
    """
    rounded = np.floor if partial_windows == "drop" else np.ceil
    out_h = rounded((ifmap_h + 2.0 * pad_h - filter_h) / stride_h) + 1.0
    out_w = rounded((ifmap_w + 2.0 * pad_w - filter_w) / stride_w) + 1.0
    return Gemm(images * out_h * out_w, 1.0 * num_filters, filter_h * filter_w * channels)
