"""The blocks of a cache: those of running sequences, and prefixes that stay until room is needed; and what
caches of every size would find."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.values import dataclass

ENDLESS = 1 << 60
"""Blocks of a cache that nothing limits."""


@dataclass(frozen=True)
class CacheTier:
    """A memory below the device's: room for so many pieces of prefixes, which come back over one link, each in
    `piece_s` seconds, a load after `latency_s`."""

    pieces: int
    piece_s: float = 0.0
    latency_s: float = 0.0


class LowerPool:
    """The pieces that lie in a tier, and when its link is free again."""

    __slots__ = ("_lies", "free_s", "tier")

    def __init__(self, tier: CacheTier) -> None:
        self.tier = tier
        self.free_s = 0.0
        self._lies: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, piece: int) -> bool:
        return piece in self._lies

    def __len__(self) -> int:
        return len(self._lies)

    def put(self, piece: int) -> int | None:
        """A piece comes from above, as the one used last; the piece that has to leave for it, where one has to."""
        self._lies[piece] = None
        return self._lies.popitem(last=False)[0] if len(self._lies) > self.tier.pieces else None

    def take(self, piece: int) -> None:
        """A piece goes up."""
        del self._lies[piece]

    def until(self, pieces: int, now: float) -> float:
        """When so many pieces would be up, behind all that its link loads already; now where there are none."""
        if not pieces:
            return now
        return max(self.free_s, now) + self.tier.latency_s + pieces * self.tier.piece_s


class Blocks:
    """A pool of `total` blocks. `used` belong to running sequences; prefixes that no sequence runs on any more stay,
    each `unit` blocks, and leave in the order of their last use, tails before heads, as room is needed: to the first
    of the `pools` below, from there to the next, and from the last for good. A piece is in one place at a time.

    Prefixes are known by the ids of their pieces: a piece is found only behind all pieces before it.
    """

    __slots__ = ("_idle", "_readers", "pools", "total", "unit", "used")

    def __init__(self, total: int, unit: int = 1, tiers: Iterable[CacheTier] = ()) -> None:
        self.total = total
        self.unit = unit
        self.pools = tuple(map(LowerPool, tiers))
        self.used = 0
        self._readers: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def kept(self) -> int:
        """Blocks of prefixes that no sequence runs on."""
        return len(self._idle) * self.unit

    def found(self, ids: Sequence[int]) -> int:
        """How many pieces, from the first on, are here."""
        count = 0
        readers, idle = self._readers, self._idle
        for one in ids:
            if one not in readers and one not in idle:
                break
            count += 1
        return count

    def places(self, ids: Sequence[int]) -> list[int]:
        """Where the pieces lie, from the first one on, until one is nowhere: 0 here, 1 in the first of the pools."""
        found = []
        for one in ids:
            if one in self._readers or one in self._idle:
                found.append(0)
                continue
            place = next((i for i, pool in enumerate(self.pools, 1) if one in pool), 0)
            if not place:
                break
            found.append(place)
        return found

    def fits(self, blocks: int, ids: Iterable[int] = ()) -> bool:
        """Whether so many blocks, and the pieces `ids` that no sequence runs on yet, can be used at once."""
        readers = self._readers
        again = sum(one not in readers for one in ids) * self.unit
        return self.used + blocks + again <= self.total

    def take(self, blocks: int) -> None:
        """Use so many more blocks; idle prefixes make room."""
        self.used += blocks
        self._make_room()

    def give(self, blocks: int) -> None:
        """So many blocks are free again."""
        self.used -= blocks

    def read(self, ids: Iterable[int]) -> None:
        """One more sequence runs on pieces that are here."""
        readers, idle = self._readers, self._idle
        for one in ids:
            if one in idle:
                del idle[one]
                readers[one] = 1
                self.used += self.unit
            else:
                readers[one] += 1
        self._make_room()

    def load(self, ids: Sequence[int], places: Sequence[int], now: float) -> float:
        """One more sequence runs on pieces that lie at `places`: those of the pools come up, each pool over its own
        link. When all are up, in seconds of the clock."""
        readers, up_s = self._readers, now
        for i, pool in enumerate(self.pools, 1):
            count = places.count(i)
            if count:
                pool.free_s = pool.until(count, now)
                up_s = max(up_s, pool.free_s)
        for one, place in zip(ids, places, strict=True):
            if place:
                self.pools[place - 1].take(one)
                readers[one] = 0
                self.used += self.unit
        self.read(ids)
        return up_s

    def keep(self, ids: Iterable[int]) -> None:
        """Pieces that a sequence has computed, in blocks that it uses already, are there for others: of one that is
        here already the blocks of the second copy are free again."""
        readers, idle = self._readers, self._idle
        for one in ids:
            if one in readers:
                readers[one] += 1
                self.used -= self.unit
            elif one in idle:
                del idle[one]
                readers[one] = 1
            else:
                readers[one] = 1
                for pool in self.pools:
                    if one in pool:  # computed anew, as that was faster, or what it stands behind was gone
                        pool.take(one)

    def leave(self, ids: Sequence[int]) -> None:
        """One sequence less runs on pieces; those of none stay idle, the last piece the first to go."""
        readers, idle = self._readers, self._idle
        for one in reversed(ids):
            count = readers[one] - 1
            if count:
                readers[one] = count
            else:
                del readers[one]
                idle[one] = None
                self.used -= self.unit
        self._make_room()

    def _make_room(self) -> None:
        idle = self._idle
        while idle and self.used + len(idle) * self.unit > self.total:
            piece: int | None = idle.popitem(last=False)[0]
            for pool in self.pools:
                if piece is not None:
                    piece = pool.put(piece)


def hit_rate(requests: Iterable[Sequence[int]], pieces: int) -> float:
    """Share of the pieces of prompts that a cache of so many finds, where requests come one after the other."""
    cache, asked, hits = Blocks(pieces), 0, 0
    for ids in requests:
        here = cache.found(ids)
        asked, hits = asked + len(ids), hits + here
        cache.read(ids[:here])
        new = ids[here:]
        cache.take(len(new))
        cache.keep(new)
        cache.leave(ids)
    return hits / asked if asked else 0.0


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


def _lower(values: NDArray[np.int64], stops: NDArray[np.int64], limits: NDArray[np.int64]) -> NDArray[np.int64]:
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
