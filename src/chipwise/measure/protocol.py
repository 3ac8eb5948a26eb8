"""How a time is taken, the same for every backend.

One sample is a run of calls between two readings of the clock, long enough (`SAMPLE_S`) for the clock and the
synchronisation to vanish, each call on other buffers than the one before, so that together they exceed the last cache.
Samples that were disturbed (another process, a lowered clock) are too long, never too short: the figure is the lowest
decile of the samples, their median and spread are kept beside it. Tasks are timed in rounds, so that a disturbance of
seconds meets a task once at most.

Memory that operators free stays with the process meanwhile (`memory_kept`). The C library of Linux gives large blocks
back to the system, which maps and clears each page anew when it is touched again: a time of the system, not of the
operator, that comes and goes with the order of what else was freed.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np

from chipwise.values import dataclass

TRIM_THRESHOLD, MMAP_MAX = (-1, 2**31 - 1, 2**17), (-4, 0, 2**16)
"""Of glibc's `mallopt`: the parameter, its value while all memory is kept, and its default (mallopt(3))."""

SAMPLE_S = 0.0005
"""Seconds of one sample, at least: a thousand times what reading the clock costs, and short against the milliseconds
for which an operating system hands a core to somebody else."""
LEAST, MOST = 3, 100
"""Samples of one task and round."""
LOW = 0.1
"""The quantile of the samples that is the figure."""


@contextmanager
def memory_kept() -> Iterator[None]:
    """What is freed within stays with the process, as allocators that cache keep it (jemalloc, those of devices);
    without effect where the C library has no `mallopt`."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        yield
        return
    for parameter, kept, _ in (TRIM_THRESHOLD, MMAP_MAX):
        mallopt(parameter, kept)
    try:
        yield
    finally:
        for parameter, _, default in (TRIM_THRESHOLD, MMAP_MAX):
            mallopt(parameter, default)
        memory_trimmed()


def memory_trimmed() -> None:
    """Freed memory goes back to the system, where the C library can do that."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: `seconds` is the lowest decile of `samples` samples, `median_s` their middle, `spread` the
    interquartile range over the median."""

    seconds: float
    median_s: float
    spread: float
    samples: int


def timing_of(samples: Sequence[float]) -> Timing:
    """What samples, in seconds of one call, say together."""
    low, first, middle, third = np.quantile(samples, (LOW, 0.25, 0.5, 0.75))
    return Timing(float(low), float(middle), float((third - first) / middle), len(samples))


def sampled(
    call: Callable[[int], object],
    synchronise: Callable[[], None],
    budget_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Samples, in seconds of one call, of `call(i)`, i counting up so that it can take turns among buffers: at least
    three, as many as `budget_s` holds after the first call, which compiles and allocates.

    `synchronise` returns when everything that was started is done; it stands before both readings of the clock.
    """

    def run(start: int, count: int) -> float:
        synchronise()
        began = clock()
        for i in range(start, start + count):
            call(i)
        synchronise()
        return clock() - began

    run(0, 1)
    began = clock()
    once = min(run(1, 1), run(2, 1))
    calls, done = max(1, round(SAMPLE_S / max(once, 1e-7))), 3
    taken: list[float] = []
    while len(taken) < MOST and (len(taken) < LEAST or clock() - began < budget_s):
        taken.append(run(done, calls) / calls)
        done += calls
    return taken
