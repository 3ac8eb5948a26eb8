"""The blocks of a cache: those of running sequences, and prefixes that stay until room is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

ENDLESS = 1 << 60
"""Blocks of a cache that nothing limits."""


class Blocks:
    """A pool of `total` blocks. `used` belong to running sequences; prefixes that no sequence runs on any more stay,
    each `unit` blocks, and leave in the order of their last use, tails before heads, as room is needed.

    Prefixes are known by the ids of their pieces: a piece is found only behind all pieces before it.
    """

    __slots__ = ("_idle", "_readers", "total", "unit", "used")

    def __init__(self, total: int, unit: int = 1) -> None:
        self.total = total
        self.unit = unit
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

    def fits(self, blocks: int, ids: Iterable[int] = ()) -> bool:
        """Whether so many blocks, and the pieces `ids` that lie idle here, can be used at once."""
        idle = self._idle
        again = sum(one in idle for one in ids) * self.unit if idle else 0
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
            idle.popitem(last=False)


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
