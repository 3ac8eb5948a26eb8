"""The memory account of candidates: the one place where a deployment's bytes are added up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.cost.device import Device
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import MemoryAccount, MemoryItem, account, kv_sequence_bytes
from chipwise.parallel.shard import shard
from chipwise.predict.passes import Requests
from chipwise.search.space import Deployment, Group
from chipwise.units import Real
from chipwise.workload.graph import Graph


def account_of(
    graph: Graph,
    d: Deployment,
    layout: Layout,
    context: Real,
    device: Device | None = None,
    *,
    mean: bool = False,
) -> MemoryAccount:
    """The account of one device of a deployment with sequences of `context` tokens, `mean`: of scattered lengths around
    it; broadcasts over the layout.

    `device` replaces that of `d` by a stack of devices, all under its runtime and policies.
    """
    device, graph = device or d.device, d.holds or graph
    memory = account(
        shard(graph, layout),
        d.policies,
        device.memory_bytes,
        context,
        device.reserved_bytes,
        d.adapter_bytes,
        pooled=device.family == "dataflow",
        mean=mean,
        hosted=d.policies.token_table == "host" and d.chip.host is not None and bool(d.chip.host.bytes_per_s),
    )
    module = graph.extra("mtp") if d.drafts else None
    if module is None:
        return memory
    return _beside(memory, MemoryItem("weights: draft", module.weight_bytes / layout.tp, "checkpoint format"))


def memory_of(graph: Graph, group: Group, requests: Requests) -> MemoryAccount:
    """The account of every candidate under requests, numbers or a column for each candidate; arrays [N, 1].

    A running sequence takes up its prompt and the share of its output that the runtime reserves or that is
    there on average (`Lengths.held`), less what all prompts begin with: that is kept once on every rank. Lengths
    scatter, so that the last page of a sequence is half empty.
    """
    d, layout, device = group.deployments[0], group.layouts(trailing=1), group.device(trailing=1)
    held, common = (np.asarray(x, dtype=float).reshape(-1, 1) for x in (requests.held, requests.common))
    memory = account_of(graph, d, layout, held, device, mean=True)
    if not np.any(common > 0):
        return memory
    kept = kv_sequence_bytes(shard(d.holds or graph, layout), d.policies, common)
    return _beside(memory, MemoryItem("common prefix", kept, "cache of tokens that all prompts begin with"))


def _beside(memory: MemoryAccount, item: MemoryItem) -> MemoryAccount:
    """An account with one more use of what was left for the cache."""
    return replace(memory, items=(*memory.items, item), cache_bytes=memory.cache_bytes - item.bytes)


def row_of(memory: MemoryAccount, index: int) -> MemoryAccount:
    """The account of one of several candidates."""

    def one(value: Real) -> float:
        column = np.asarray(value).reshape(-1)
        return float(column[index if len(column) > 1 else 0])

    items = tuple(replace(item, bytes=one(item.bytes)) for item in memory.items)
    names = ("capacity_bytes", "withheld_bytes", "cache_bytes", "sequence_bytes", "context")
    return replace(memory, items=items, **{name: one(getattr(memory, name)) for name in names})
