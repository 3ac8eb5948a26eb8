"""Where the memory of one device goes: an itemised account of the fullest pipeline stage.

All figures are bytes per device and broadcast over the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.preferences import preferences
from chipwise.catalog.runtime_spec import Policies
from chipwise.parallel.shard import Sharded
from chipwise.units import Real
from chipwise.workload.axes import Sizes
from chipwise.workload.graph import Block
from chipwise.workload.nodes import Experts


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One use of memory and where its figure comes from."""

    kind: str
    bytes: Real
    basis: str


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Fixed items, what is left for the cache, and what a sequence takes of it.

    `cache_bytes` is the room for the cache (negative: nothing fits, by so much); `withheld_bytes` is what the
    runtime's share keeps free. `sequence_bytes` is the cache of one sequence at the asked context; where states have a
    pool of their own, what it takes of the whole if the pool that is full first is to hold it.
    """

    capacity_bytes: Real
    items: tuple[MemoryItem, ...]
    withheld_bytes: Real
    cache_bytes: Real
    sequence_bytes: Real
    context: Real

    @property
    def fixed_bytes(self) -> Real:
        """Everything but the cache and what is withheld."""
        return _sum(self.items)

    @property
    def sequences(self) -> Real:
        """Whole sequences of the asked context that fit on one rank; infinite for a model without a cache."""
        room: Real = np.floor(self._share_of_room)
        return room

    def running(self, least: Real = 1.0) -> Real:
        """Sequences of scattered lengths around the asked context that run on one rank on average: the next one misses
        half of its room; `least` where as many fit."""
        share = self._share_of_room
        room: Real = np.maximum(share - 0.5, np.minimum(share, least))
        return room

    @property
    def tokens(self) -> Real:
        """Cache tokens that fit, at the mean cost of a token of the asked context."""
        return self._share_of_room * self.context

    @property
    def _share_of_room(self) -> Real:
        room = np.maximum(self.cache_bytes, 0.0)
        none = np.asarray(self.sequence_bytes) <= 0
        share: Real = np.where(none, np.where(np.asarray(self.cache_bytes) >= 0, np.inf, 0.0), 0.0)
        return share + np.where(none, 0.0, room / np.where(none, 1.0, self.sequence_bytes))

    def fits(self, sequences: Real = 1.0) -> NDArray[np.bool_]:
        """Whether the weights and the cache of `sequences` fit."""
        return np.asarray(self.cache_bytes >= sequences * self.sequence_bytes)

    def verdict(self, sequences: float = 1.0) -> str:
        """Of a single account: `no`, `tight` (under 10 % of usable memory is left for the cache) or
        `comfortable`."""
        if not np.all(self.fits(sequences)):
            return "no"
        spare = 1.0 - preferences().comfortable
        return "tight" if np.all(self.cache_bytes < spare * self.capacity_bytes) else "comfortable"


def account(
    sharded: Sharded,
    policies: Policies,
    capacity_bytes: Real,
    context: Real,
    reserved_bytes: Real = 0.0,
    adapter_bytes: float = 0.0,
    *,
    pooled: bool = False,
    mean: bool = False,
    hosted: bool = False,
) -> MemoryAccount:
    """The account of one device under a runtime's policies.

    `reserved_bytes` belong to display and system; `adapter_bytes` of low-rank adapters are held whole by every
    rank of a stage (their input side is not cut by the common runtimes). `pooled`: a compiler lays the model out
    over all devices as if their memory were one, tables and uneven stages included. `mean`: sequences have scattered
    lengths around `context`. `hosted`: the embedding lies in the host's memory.
    """
    # stages of a pipeline hand on one tensor at a time: next to nothing
    together = np.asarray(sharded.layout.devices) / sharded.layout.pp > 1
    shared = np.where(together, policies.collective_bytes, 0.0)
    outside = (
        MemoryItem("context", policies.context_bytes, "runtime: driver and libraries"),
        MemoryItem("collectives", shared, "runtime: communication buffers"),
        MemoryItem("system", reserved_bytes, "display and operating system"),
    )
    inside = (
        _workspace(sharded, policies),
        MemoryItem("graphs", policies.graph_bytes, "runtime: captured graphs"),
    )
    weights = _pooled(sharded) if pooled else weight_items(sharded, hosted=hosted)
    if adapter_bytes:
        held_here = adapter_bytes / np.asarray(sharded.layout.pp, dtype=float)
        weights = (*weights, MemoryItem("adapters", held_here, "low-rank adapters, whole on every rank"))
    free = capacity_bytes - _sum(outside)
    held = _sum(weights) + _sum(inside)
    share = policies.memory_share
    if policies.memory_base == "total":
        cache = np.minimum(share * capacity_bytes, free) - held
    elif policies.memory_base == "free_before_load":
        cache = share * free - policies.reserved_bytes - held
    else:
        cache = np.where(np.asarray(free - held) > 0, share * (free - held), free - held)
    withheld = free - held - cache
    sequence = kv_sequence_bytes(sharded, policies, context, mean=mean)
    if policies.state_share < 1.0:
        states = kv_sequence_bytes(sharded, policies, 0.0)
        # of the pool that is full first
        apart = np.maximum(
            policies.state_copies * states / policies.state_share,
            (sequence - states) / (1.0 - policies.state_share),
        )
        sequence = np.where(np.asarray(states) > 0, apart, sequence)
    items = (*weights, *inside, *outside)
    return MemoryAccount(capacity_bytes, items, withheld, cache, sequence, context)


def _workspace(sharded: Sharded, policies: Policies) -> MemoryItem:
    if policies.workspace == "reserved":
        return MemoryItem("workspace", 0.0, "inside what the runtime reserves")
    tokens, logits = _live(policies)
    basis = (
        f"activations of {tokens} tokens, {'sampling' if policies.sampler_bytes else 'logits'} of {logits}"
    )
    return MemoryItem("workspace", workspace_bytes(sharded, policies), basis)


def _sum(items: Sequence[MemoryItem]) -> Real:
    total: Real = 0.0
    for item in items:
        total = total + item.bytes
    return total


def _live(policies: Policies) -> tuple[int, int]:
    """Tokens whose activations, and whose logits, are held at a time. Runtimes that allocate all at start make room for
    the logits of a whole micro-batch: 512 of llama.cpp, 263 MB with a vocabulary of 128k."""
    micro = policies.micro_batch_tokens
    whole = micro and policies.kv_reservation != "growing"
    return micro or policies.max_batched_tokens, micro if whole else policies.max_sequences


def weight_items(sharded: Sharded, *, hosted: bool = False) -> tuple[MemoryItem, ...]:
    """Weights by tensor class on the fullest stage. An encoder (vision, or of an encoder-decoder) is taken to
    be held whole by every rank of it; prediction modules are left out until speculation is asked for."""
    graph, pp = sharded.graph, np.asarray(sharded.layout.pp, dtype=float)
    share = np.ceil(graph.layers / pp) / graph.layers
    by_class: dict[str, Real] = {}
    for repeat, block in graph.distinct():
        for cls, size in _by_class(block, sharded.sizes(block)).items():
            by_class[cls] = by_class.get(cls, 0.0) + repeat * share * size
    embed = sum(_by_class(graph.embed, sharded.sizes(graph.embed)).values())
    head = sum(_by_class(graph.head, sharded.sizes(graph.head)).values())
    # first and last stage hold a table each; a tied table is copied to the last
    last = embed + head if graph.model.tied else head
    by_class["tables"] = last if hosted else np.where(pp > 1, np.maximum(embed, last), embed + head)
    for extra in graph.extras:
        if extra.name != "mtp":
            by_class[extra.name] = extra.weight_bytes
    return tuple(MemoryItem(f"weights: {cls}", size, "checkpoint format") for cls, size in by_class.items())


def _pooled(sharded: Sharded) -> tuple[MemoryItem, ...]:
    graph, pp = sharded.graph, np.asarray(sharded.layout.pp, dtype=float)
    by_class: dict[str, Real] = {}
    for repeat, block in graph.parts():
        for cls, size in _by_class(block, sharded.sizes(block)).items():
            by_class[cls] = by_class.get(cls, 0.0) + repeat * size / pp
    text = "checkpoint format, spread evenly over stages by the compiler"
    return tuple(MemoryItem(f"weights: {cls}", size, text) for cls, size in by_class.items())


def workspace_bytes(sharded: Sharded, policies: Policies) -> Real:
    """Peak of live activations at the chunk budget with the logits of a full batch in float32, or of a sampler that
    runs on such logits after the layers have ended, with the residual stream still there.

    A pass holds the residual stream twice and the widest pair of neighbouring tensors, 16 bit each. Tokens
    of routed experts are held once per expert chosen. Ignores fusion inside a runtime's kernels.
    """
    tokens, held = _live(policies)
    entries = held * sharded.graph.model.vocab
    widest: Real = 0.0
    for _, block in sharded.graph.distinct():
        sizes = sharded.sizes(block)
        before: Real = float(sharded.graph.model.hidden)
        for node in block.nodes:
            width = sizes.local(node.width)
            if isinstance(node, Experts):
                width = node.top_k * (width + 2.0 * sizes.local(node.down.cols))
            widest = np.maximum(widest, before + width)
            before = sizes.local(node.width)
    hidden = float(sharded.graph.model.hidden)
    passing = 2.0 * tokens * (2.0 * hidden + widest) + 4.0 * entries
    return np.maximum(passing, 2.0 * tokens * hidden + policies.sampler_bytes * entries)


def kv_sequence_bytes(sharded: Sharded, policies: Policies, context: Real, *, mean: bool = False) -> Real:
    """Cache bytes of one sequence on one rank of the fullest stage, in whole pages; `mean`: of sequences of scattered
    lengths around `context`."""
    graph, pp = sharded.graph, np.asarray(sharded.layout.pp, dtype=float)
    share = np.ceil(graph.layers / pp) / graph.layers
    total: Real = 0.0
    for repeat, block in graph.distinct():
        sizes = sharded.sizes(block)
        for cache in block.caches:
            total = total + repeat * share * cache.bytes(sizes, context, policies.kv_block_tokens, mean=mean)
    return total


def _by_class(block: Block, sizes: Sizes) -> dict[str, Real]:
    held: dict[str, Real] = {}
    for tensor in block.tensors:
        held[tensor.cls] = held.get(tensor.cls, 0.0) + tensor.local_bytes(sizes)
    return held
