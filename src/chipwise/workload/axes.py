"""Named axes, the sizes built from them, and the tensors of such sizes, before anything is spread over chips.

Axis letters, each a count of whole units. May be split over chips:
H query heads   K key/value heads   V vocabulary   F dense FFN width   U shared-expert width
E experts       X expert FFN width
S state-space heads   B state-space groups   G key and Z value heads, linear attention   O output groups
Never split:
M model width   D head size   W value head size where it differs   Y width of an encoder that is attended to
Q query rank    R key/value rank of a latent   N head size without position   P rotary head size
I index heads   J index head size   L latent width of experts   g key and z value head size, linear attention
r its gate rank   s head size and a state size, state space   c convolution width
o rank and f inputs of an output group"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.formats import Format
from chipwise.workload.precision import TensorClass


@dataclass(frozen=True)
class Size:
    """A polynomial with integer coefficients over named axes: `H * D + 2 * K * D`."""

    terms: tuple[tuple[int, tuple[str, ...]], ...]

    def __add__(self, other: Size) -> Size:
        return Size(self.terms + other.terms)

    def __mul__(self, other: Size | int) -> Size:
        if isinstance(other, int):
            return Size(tuple((other * c, axes) for c, axes in self.terms))
        return Size(tuple((a * b, x + y) for a, x in self.terms for b, y in other.terms))

    __rmul__ = __mul__

    @property
    def axes(self) -> frozenset[str]:
        """The names that occur in it."""
        return frozenset(name for _, names in self.terms for name in names)


def Axis(name: str) -> Size:  # noqa: N802 - reads as the noun that it makes
    """The size that is one axis."""
    return Size(((1, (name,)),))


ONE = Size(((1, ()),))


@dataclass(frozen=True)
class Sizes:
    """Axis sizes of one block, whole and as held by one rank.

    `shards` maps an axis to the number of parts it is cut into (a number or an array of numbers that
    broadcasts). A rank holds ceil(size / parts) units, so that uneven cuts are padded, and an axis with
    fewer units than parts is replicated, as runtimes do. `replicas` attention replicas share one set of
    experts.
    """

    full: Mapping[str, int]
    shards: Mapping[str, Real] = field(default_factory=dict)
    replicas: Real = 1.0
    held: dict[tuple[tuple[int, tuple[str, ...]], ...], Real] = field(default_factory=dict, compare=False, repr=False)

    def whole(self, size: Size) -> int:
        """`size` over the unsharded axes."""
        total = 0
        for coefficient, names in size.terms:
            product = coefficient
            for name in names:
                product *= self.full[name]
            total += product
        return total

    def local(self, size: Size) -> Real:
        """`size` as one rank holds it."""
        known = self.held.get(size.terms)
        if known is not None:
            return known
        total: Real = 0.0
        for coefficient, names in size.terms:
            product: Real = float(coefficient)
            for name in names:
                product = product * self._local_axis(name)
            total = total + product
        self.held[size.terms] = total
        return total

    def parts(self, axis: str) -> Real:
        """The number of parts an axis is cut into; 1 where it is not cut."""
        return self.shards.get(axis, 1.0) if axis in self.full else 1.0

    def _local_axis(self, name: str) -> Real:
        parts = self.shards.get(name)
        if parts is None:
            return float(self.full[name])
        local: Real = np.ceil(np.asarray(self.full[name]) / parts)
        return local


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
