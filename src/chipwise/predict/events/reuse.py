"""What caches of every size would find: how deep pieces of prompts lie in a stack of those used last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NEVER = np.iinfo(np.int64).max
"""The depth of a piece that was not there before."""


def depths(requests: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Of all pieces of all prompts, one after the other: the smallest cache, in pieces, that finds the piece, `NEVER`
    where none does. Requests come one at a time to one cache, which forgets the least recently used first, tails before
    heads; a piece is found only behind all pieces before it. A cache of so many pieces finds those that lie no deeper,
    for every size at once (Mattson and others, IBM Systems Journal 9, 1970)."""
    counts = np.array([len(ids) for ids in requests], int)
    total = int(counts.sum())
    if not total:
        return np.zeros(0, np.int64)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    ends = starts + np.repeat(counts, counts)
    places = np.arange(total)
    # the first piece of a prompt is the last used
    moments = starts + ends - 1 - places
    ids = np.fromiter((one for some in requests for one in some), np.int64, total)
    order = np.lexsort((moments, ids))
    before = np.full(total, -1)
    same = ids[order][1:] == ids[order][:-1]
    before[order[1:][same]] = moments[order[:-1][same]]
    by_moment = np.empty(total, np.int64)
    by_moment[moments] = before + 1
    # pieces used since, each once: those whose own last use was not later than the last use of this one
    found: NDArray[np.int64] = _lower(by_moment, starts, before + 1) - before
    found[before < 0] = NEVER
    for start, stop in zip(starts[starts == places], ends[starts == places], strict=True):
        np.maximum.accumulate(found[start:stop], out=found[start:stop])
    return found


def _lower(
    values: NDArray[np.int64], stops: NDArray[np.int64], limits: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each query: how many of the first `stops` of `values`, which are 0 or more, are at most a limit. Bit by bit:
    in the order of the bits above, values that share them stand side by side."""
    low, high = np.zeros_like(stops), stops.copy()
    found = np.zeros_like(stops)
    for bit in reversed(range(max(int(values.max()), int(limits.max()), 1).bit_length())):
        ones = (values >> bit) & 1
        zeros = np.concatenate(([0], np.cumsum(1 - ones)))
        low_zero, high_zero = zeros[low], zeros[high]
        up = ((limits >> bit) & 1).astype(bool)
        found += np.where(up, high_zero - low_zero, 0)
        low = np.where(up, zeros[-1] + low - low_zero, low_zero)
        high = np.where(up, zeros[-1] + high - high_zero, high_zero)
        values = np.concatenate((values[ones == 0], values[ones == 1]))
    return found + high - low
