"""The memory account of candidates, the one place where a deployment's bytes are added up; and whether a model fits:
the smallest count and layout of a chip that holds it and its cache."""

from __future__ import annotations

import math

import numpy as np

from chipwise.catalog.preferences import preferences
from chipwise.cost.device import Device
from chipwise.numeric import root
from chipwise.parallel.layout import Layout, illegal
from chipwise.parallel.memory import MemoryAccount, MemoryItem, account, kv_sequence_bytes
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.passes import Requests
from chipwise.search.space import Deployment, Group, Limits, filled, layouts_for, layouts_of, smallest_layouts
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.graph import Graph


def account_of(graph: Graph, d: Deployment, layout: Layout, context: Real, *, mean: bool = False) -> MemoryAccount:
    """The account of one device of a deployment with sequences of `context` tokens, `mean`: of scattered lengths around
    it; broadcasts over the layout."""
    return _account(shard(d.holds or graph, layout), d, d.device, context, mean=mean)


def _account(sharded: Sharded, d: Deployment, device: Device, context: Real, *, mean: bool) -> MemoryAccount:
    """The same of a stack of devices, all under the runtime and policies of a deployment."""
    memory = account(
        sharded,
        d.policies,
        device.memory_bytes,
        context,
        device.reserved_bytes,
        d.adapter_bytes,
        pooled=device.family == "dataflow",
        mean=mean,
        hosted=d.policies.token_table == "host" and d.chip.host is not None and bool(d.chip.host.bytes_per_s),
    )
    module = sharded.graph.extra("mtp") if d.drafts else None
    if module is None:
        return memory
    draft = module.weight_bytes / sharded.layout.tp
    return memory.also(MemoryItem("weights: draft", draft, "checkpoint format"))


def memory_of(graph: Graph, group: Group, requests: Requests) -> MemoryAccount:
    """The account of every candidate under requests, numbers or a column for each candidate; arrays [N, 1].

    A running sequence takes up its prompt and the share of its output that the runtime reserves or that is
    there on average (`Lengths.held`), less what all prompts begin with: that is kept once on every rank. Lengths
    scatter, so that the last page of a sequence is half empty.
    """
    d, device = group.deployments[0], group.device(trailing=1)
    sharded = group.sharded(d.holds or graph)
    held, common = (np.asarray(x, dtype=float).reshape(-1, 1) for x in (requests.held, requests.common))
    memory = _account(sharded, d, device, held, mean=True)
    if not np.any(common > 0):
        return memory
    kept = kv_sequence_bytes(sharded, d.policies, common)
    return memory.also(MemoryItem("common prefix", kept, "cache of tokens that all prompts begin with"))


def row_of(memory: MemoryAccount, index: int) -> MemoryAccount:
    """The account of one of several candidates."""

    def one(value: Real) -> float:
        column = np.asarray(value).reshape(-1)
        return float(column[index if len(column) > 1 else 0])

    return memory.each(one)


@dataclass(frozen=True, slots=True)
class Fit:
    """A layout and its account. `fits` is whether the asked load fits; if nothing does, the best miss."""

    layout: Layout
    memory: MemoryAccount
    fits: bool


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
