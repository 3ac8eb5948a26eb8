"""When a job of alike pieces is done: workers take some at a time, and nobody takes a part of a piece.

k workers that each take c pieces at once, and L seconds for them, are done with n pieces after

    ceil(n / (k c)) L

seconds: whole rounds, the last one full or not. So a job never ends before one round does, a worker more helps only
where it saves a round, and more than ceil(n / c) workers have nothing to do. Of many rounds it is n L / (k c), the work
over the throughput. A piece is a sample, or a request with all its output tokens; c is a batch, or how many requests
are open at once, and L = c / X where X of them are answered a second (Little's law).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.numeric import root
from chipwise.units import Array, Real

REST = 1e-3
"""share of a round: a rest that is smaller is done with the last whole one. Chosen: far above rounding, far below a
piece; moves nothing but batches that all but divide."""
HALVINGS = 100  # of a time at which a job is done


def rounds(pieces: Real, at_once: Real) -> Array:
    """ceil(n / c) [broadcast], at least one."""
    return np.maximum(np.ceil(np.asarray(pieces) / at_once - REST), 1.0)


def by_deadline(due_s: Real, one_s: Real) -> Array:
    """Whole rounds of `one_s` that are done in `due_s`: 0 where not even one is [broadcast]."""
    return np.floor(np.asarray(due_s) / one_s * (1.0 + 1e-9))


def workers_for(pieces: Real, at_once: Real, allowed: Real) -> Array:
    """The fewest workers that are done in so many rounds; where no round is allowed all that find work, which are done
    soonest [broadcast]."""
    return rounds(pieces, at_once * np.maximum(np.asarray(allowed), 1.0))


def kept_up(pieces: Real, at_once: Real) -> Array:
    """The part of its throughput that a job keeps up until it is done: n / (c ceil(n / c)), c those that all workers
    together take `at_once` [broadcast]."""
    return np.asarray(pieces) / (rounds(pieces, at_once) * at_once)


def side_by_side(pieces: float, kinds: Sequence[tuple[float, float, float]]) -> float:
    """Seconds in which workers of several kinds are done together: of each kind (pieces at once of all, seconds of the
    first round, seconds of each after it). Each takes the next ones as soon as it has time."""

    def busy(after_s: float) -> bool:
        passed = (c * (1.0 + np.floor((after_s - one) / more)) for c, one, more in kinds if after_s >= one)
        return bool(sum(passed) < pieces * (1.0 - REST))

    last = min(one + (float(rounds(pieces, c)) - 1.0) * more for c, one, more in kinds)
    return float(root(lambda s: busy(float(s)), 0.0, last, HALVINGS)[1])
