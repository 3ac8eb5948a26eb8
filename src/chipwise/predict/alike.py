"""Rows of a search that are alike: what is the same for several layouts or chips is priced once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters
from chipwise.parallel.layout import Layout
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.op import Op

MANY = 48
"""count of kinds: from which operators that several share are looked for. Chosen: to look takes about as long as to
price so many; moves time alone."""
SAVED = 0.7
"""share of kinds: that an operator may have of its own where it is still worth while to put them together. Chosen: as
`MANY`; moves time alone."""


@dataclass(frozen=True)
class Alike:
    """Rows of layouts whose ranks work on the same operators, however many stages follow each other: the row `of` each,
    and one of each kind, with its devices and numbers, `first` the place of that, `which` the chip."""

    of: NDArray[np.intp]
    first: NDArray[np.intp]
    which: NDArray[np.intp]
    layout: Layout
    device: Device
    numbers: CostParameters
    known: dict[bytes, tuple[Device, CostParameters]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def kinds(cls, which: NDArray[np.intp], layout: Layout) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first row of each kind, and the kind of each row, of devices `which` and columns of degrees."""
        columns = (np.broadcast_to(np.asarray(layout.part(p)), which.shape) for p in ("tp", "dp", "ep"))
        _, first, of = np.unique(np.stack([which, *columns]), axis=1, return_index=True, return_inverse=True)
        return first, of.reshape(-1)

    def spread(self, value: Real) -> Real:
        """A value of kinds, [kind, ...] or shared by all, for every row."""
        return _rows(value, len(self.first), self.of)

    def price(self, op: Op, seconds: Callable[[Op, Device, CostParameters], Cost]) -> Cost:
        """The exposed `seconds` of an operator of all kinds: of those that have the very same, on the same chip, once.
        What is hidden no table asks for."""
        rows = self._distinct(op) if len(self.first) >= MANY else None
        if rows is None:
            return Cost(seconds(op, self.device, self.numbers).exposed)
        first, back = rows
        key = first.tobytes()
        if key not in self.known:
            self.known[key] = self.device.take(first), self.numbers.take(first)
        cost = seconds(self._of(op, first), *self.known[key])
        return Cost({name: _rows(value, len(first), back) for name, value in cost.exposed.items()})

    def _of(self, op: Op, some: NDArray[np.intp]) -> Op:
        """The operator of some kinds."""

        def taken(value: Real) -> Real:
            return _rows(value, len(self.first), some)

        return replace(
            op,
            flops=taken(op.flops),
            weight_bytes=taken(op.weight_bytes),
            activation_bytes=taken(op.activation_bytes),
            kv_bytes=taken(op.kv_bytes),
            dims={name: taken(value) for name, value in op.dims.items()},
        )

    def _distinct(self, op: Op) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """The first kind that has each operator, and which of them each kind has; None where hardly any is shared.
        Kinds are told apart by one number each, a sum of all theirs with weights that nothing else has."""
        total = self.which * _WEIGHTS[0]
        values = (op.flops, op.weight_bytes, op.activation_bytes, op.kv_bytes, *op.dims.values())
        for weight, value in zip(_WEIGHTS[1 : len(values) + 1], values, strict=True):
            if _own(value, len(self.first)):
                table = np.asarray(value, dtype=float).reshape(len(self.first), -1)
                scale = np.abs(table).max() or 1.0
                total = total + weight * (table @ _COLUMNS[: table.shape[1]]) / scale
        _, first, back = np.unique(total, return_index=True, return_inverse=True)
        return (first, back.reshape(-1)) if len(first) <= SAVED * len(self.first) else None


def _own(value: Real, count: int) -> bool:
    """Whether a value, [count, ...] or shared by all, has a row for each."""
    return np.ndim(value) > 1 and count > 1 and np.shape(value)[0] == count


def _rows(value: Real, count: int, at: NDArray[np.intp]) -> Real:
    """The rows `at` of a value that has one for each of `count`; the value itself where all share it."""
    found: Array = np.asarray(value)
    return found[at] if _own(value, count) else found


_WEIGHTS = np.random.default_rng(1).uniform(1.0, 2.0, 32)
"""weights: of the numbers of an operator. Exact: at random, so that no two sums are equal by chance."""
_COLUMNS = np.random.default_rng(2).uniform(1.0, 2.0, 1024)
"""weights: of passes side by side. Exact: as above."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """Seconds of a part of a pass, `once` for each kind of rows, and how many `times` each row has it."""

    once: Cost
    times: Real
    alike: Alike

    @property
    def cost(self) -> Cost:
        """Of every row, repeats included."""
        return Cost({name: self.of(value) for name, value in self.once.exposed.items()})

    def of(self, seconds: Real) -> Real:
        """Some of these of every row, repeats included."""
        return self.alike.spread(seconds) * self.times
