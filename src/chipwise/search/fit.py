"""Does it fit: the smallest count and layout of a chip that holds a model and its cache."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.preferences import preferences
from chipwise.numeric import root
from chipwise.parallel.layout import Layout, illegal
from chipwise.parallel.memory import MemoryAccount
from chipwise.search.memory import account_of
from chipwise.search.space import Deployment, Limits, filled, layouts_for, layouts_of, smallest_layouts
from chipwise.workload.graph import Graph


@dataclass(frozen=True, slots=True)
class Fit:
    """A layout and its account. `fits` is whether the asked load fits; if nothing does, the best miss."""

    layout: Layout
    memory: MemoryAccount
    fits: bool

    @property
    def missing_bytes(self) -> float:
        """Bytes short per device for one sequence, 0 where it fits."""
        return max(0.0, float(self.memory.sequence_bytes) - float(self.memory.cache_bytes))


def fit_on(
    graph: Graph,
    d: Deployment,
    context: float,
    sequences: float,
    *,
    devices: int | None = None,
    limits: Limits | None = None,
) -> Fit | None:
    """The smallest legal layout that holds `sequences` of `context` tokens, or the roomiest one that does not.

    `devices` fixes the number of devices. None where no layout is legal or the memory is not published.
    """
    every = layouts_for(graph, d, limits or Limits()) if devices is None else layouts_of(graph, d, devices)
    rows = smallest_layouts(list(every))
    if not rows or not math.isfinite(float(d.device.memory_bytes)):
        return None
    columns = Layout(*np.array(rows, dtype=float).T)
    held = account_of(graph, d, columns, context)
    legal = illegal(graph, columns, **filled(d.runtime)) == 0
    # sequences spread evenly over attention replicas
    room = held.cache_bytes - np.ceil(sequences / np.asarray(columns.dp)) * held.sequence_bytes
    good = legal & (np.asarray(room) >= 0)
    if not legal.any():
        return None
    if good.any():
        first = int(np.argmax(good))
        if devices is not None:  # of those with about as much room the one with the fewest stages
            enough = good & (room >= (1.0 - preferences().equal) * np.max(np.where(good, room, -np.inf)))
            first = int(np.lexsort((-np.asarray(room), np.asarray(columns.pp), ~enough))[0])
    else:
        first = int(np.argmax(np.where(legal, room, -np.inf)))
    layout = Layout(*(float(x) for x in rows[first]))
    return Fit(layout, account_of(graph, d, layout, context), bool(good[first]))


def largest_context(graph: Graph, d: Deployment, layout: Layout, limit: int) -> int:
    """The longest context of a single sequence that fits, at most `limit` (0: nothing fits)."""
    return int(root(lambda c: account_of(graph, d, layout, float(c)).fits(1.0), 0, limit + 1)[0])


def pooled_chips(weight_bytes: float, cache_bytes: float, capacity_bytes: float) -> int:
    """Chips whose memories together hold weights and cache, as dataflow chips spread a model over themselves."""
    return math.ceil((weight_bytes + cache_bytes) / capacity_bytes)
