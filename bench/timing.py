"""Medians of repeated runs on one core."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

__all__ = ["Result", "median_s", "one_core"]


@dataclass(frozen=True, slots=True)
class Result:
    """A figure beside what was aimed at; a `ratio` above 1 is better than that."""

    name: str
    value: float
    unit: str
    aim: float
    lower_is_better: bool = False

    @property
    def ratio(self) -> float:
        """How many times better than the aim."""
        return self.aim / self.value if self.lower_is_better else self.value / self.aim

    def shown(self, value: float) -> str:
        """A figure in its unit."""
        return f"{value:,.0f} {self.unit}" if value >= 1000 else f"{value:.3f} {self.unit}"


def median_s(work: Callable[[], object], times: int = 5) -> float:
    """Median wall-clock seconds of `work` over `times` runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def one_core() -> None:
    """Keep this process and its children on one core, where the system can."""
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
