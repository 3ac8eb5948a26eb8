"""A stored parameter tensor on named axes."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.units import Real
from chipwise.workload.axes import ONE, Size, Sizes
from chipwise.workload.formats import Format
from chipwise.workload.precision import TensorClass


@dataclass(frozen=True, slots=True)
class Tensor:
    """`copies` matrices [rows = outputs, cols = inputs] of one class and format, each with a bias or not.

    `touched` is the share of it that one token reads (top-k over experts). A buffer is stored but not
    trained.
    """

    name: str
    cls: TensorClass
    rows: Size
    cols: Size
    format: Format
    copies: Size = ONE
    bias: bool = False
    touched: float = 1.0
    buffer: bool = False

    def params(self, sizes: Sizes) -> int:
        """Elements of the whole tensor, bias included."""
        rows = sizes.whole(self.rows)
        return sizes.whole(self.copies) * (rows * sizes.whole(self.cols) + (rows if self.bias else 0))

    def scales(self, sizes: Sizes) -> int:
        """Scale entries of the whole tensor."""
        per_copy = self.format.scales(sizes.whole(self.rows), sizes.whole(self.cols))
        return sizes.whole(self.copies) * int(per_copy)

    def local_bytes(self, sizes: Sizes) -> Real:
        """Bytes that one rank holds, scales included; biases are kept in 16 bit."""
        rows = sizes.local(self.rows)
        one = self.format.bytes(rows, sizes.local(self.cols))
        if self.bias:
            one = one + 2.0 * rows
        return sizes.local(self.copies) * one
