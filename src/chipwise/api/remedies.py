"""The smallest changes with which a question without a plan has one, found by asking it again: one search for every
task, and how its words and figures are said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, repeat
from operator import mul
from typing import TypeVar

from chipwise.errors import ChipwiseError

HALVINGS = 5  # questions by which a number is narrowed down

Q = TypeVar("Q")
R = TypeVar("R")


def working(keeps: Callable[[Q], object], *kinds: Iterable[tuple[str, Q]]) -> list[str]:
    """Of each kind of change the first with which a question has a plan that keeps what it asks, in words. A change is
    what is said of it and the question that it makes, the smallest first."""
    found = (next((words for words, changed in kind if answered(keeps, changed)), "") for kind in kinds)
    return [words for words in found if words]


def answered(keeps: Callable[[Q], R], question: Q) -> R | None:
    """What is answered to a question; None where it is an error."""
    with suppress(ChipwiseError):
        return keeps(question)
    return None


def steps(first: float, factor: float, count: int) -> Iterator[float]:
    """So many numbers, each the one before times a factor."""
    return accumulate(repeat(factor, count - 1), mul, initial=first)


def most(low: int, high: int, works: Callable[[int], bool]) -> int | None:
    """The largest number below `high` that works, as far as a few questions tell; None where `low` does not."""
    if low >= high or not works(low):
        return None
    for _ in range(HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def down(value: float) -> str:
    """A number with two digits, rounded down."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / digit * (1.0 + 1e-9)) * digit:.6g}"


def up(value: float) -> str:
    """A number with three digits, rounded up."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / digit * (1.0 - 1e-9)) * digit:.6g}"


def either(ways: Sequence[str]) -> str:
    """Ways out as one sentence."""
    return ", or ".join(filter(None, (", ".join(ways[:-1]), *ways[-1:])))
