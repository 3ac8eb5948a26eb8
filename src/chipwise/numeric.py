"""Where a condition changes, by halving what is left; and records whose fields are numbers or arrays, as columns, and
what tells them apart."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from chipwise.units import Array, Real

T = TypeVar("T")


def root(keeps: Callable[[Any], Any], low: Real, high: Real, steps: int = 0) -> tuple[Array, Array]:
    """The ends between which `keeps`, true below and false above, changes [broadcast]: after so many halvings, or of
    whole numbers, where `steps` is 0, those one apart."""
    left = steps
    while left > 0 if steps else np.any(np.subtract(high, low) > 1.0):
        middle = 0.5 * np.add(low, high) if steps else np.floor(0.5 * np.add(low, high))
        below, left = keeps(middle), left - 1
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(low), np.asarray(high)


def crossing(keeps: Callable[[Array], Any], low: Array, high: Array, steps: int, most: int) -> tuple[Array, Array]:
    """The ends of `root` after so many halvings, to the bit, of a condition that broadcasts and changes once: of up to
    `most` places the middles of several halvings are asked together, along a first axis."""
    low, high = np.broadcast_arrays(low, high)
    shape, size = low.shape, low.size
    ahead = max((most // max(size, 1) + 1).bit_length() - 1, 1)
    ends, every = np.stack([low, high]).reshape(2, size), np.arange(size)
    while steps > 0:
        for _ in range(times := min(ahead, steps)):
            finer = np.empty((2 * len(ends) - 1, size))
            finer[::2], finer[1::2] = ends, 0.5 * (ends[:-1] + ends[1:])
            ends = finer
        below = np.asarray(keeps(ends[1:-1].reshape(-1, *shape))).reshape(-1, size)
        first = below.sum(axis=0)
        ends, steps = np.stack([ends[first, every], ends[first + 1, every]]), steps - times
    return ends[0].reshape(shape), ends[1].reshape(shape)


def stack(each: Sequence[T]) -> T:
    """Several records as one, every number of it an array."""
    columns = {f.name: np.array([getattr(e, f.name) for e in each]) for f in fields(each[0])}  # type: ignore[arg-type]
    return replace(each[0], **columns)  # type: ignore[type-var]


def take(value: T, index: Any) -> T:
    """Of a record whose fields are arrays: the entries at `index`, any shape; single numbers stay."""
    columns = {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
    return replace(value, **{k: np.asarray(v)[index] for k, v in columns.items() if np.ndim(v)})  # type: ignore[type-var]


def content(value: Any) -> Hashable:
    """What tells a record of texts, numbers, arrays, and tuples and mappings of these from another: equal for equal
    numbers."""
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(content, value))
    if isinstance(value, Mapping):
        return tuple(value), content(tuple(value.values()))
    if names := _names(type(value)):  # type: ignore[arg-type]
        return tuple([content(getattr(value, name)) for name in names])
    return value  # type: ignore[no-any-return]


_PLAIN = frozenset((str, float, int, bool, type(None)))  # what most fields are, asked first


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a record, none of what is none."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
