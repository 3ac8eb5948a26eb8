"""Where memory goes: an account of items by use, place and policy, one verdict for every task, and the items of a model
that is served, on the fullest pipeline stage.

All figures are bytes per device and broadcast over the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from functools import reduce
from operator import add
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.preferences import preferences
from chipwise.catalog.runtime_spec import Policies
from chipwise.parallel.shard import Sharded
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes
from chipwise.workload.nodes import Experts
from chipwise.workload.program import Block

Where = Literal["device", "host", "disk"]
KEPT_FREE = "kept free"
"""Name of the item that software leaves unused."""


class Verdict(Enum):
    """Whether memory is enough; the text is that of records."""

    FITS = "comfortable"
    TIGHT = "tight"
    SHORT = "no"


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One use of memory, the policy or format that its figure comes from, and where it lies. A name may go on after a
    colon: `weights: experts` is one of the weights."""

    name: str
    bytes: Real
    policy: str = ""
    where: Where = "device"


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Uses of the memory of a device and of what its host holds for it, and what a sequence takes of the room that they
    leave.

    `sequence_bytes` is the cache of one sequence at the asked context (0: nothing is cached); where states have a
    pool of their own, what it takes of the whole if the pool that is full first is to hold it.
    """

    items: tuple[MemoryItem, ...]
    capacity_bytes: Real = np.inf
    sequence_bytes: Real = 0.0
    context: Real = 0.0

    def of(self, name: str, where: Where = "device") -> Real:
        """Bytes of a use in one place, 0 where there is none."""
        return _sum(i for i in self.items if i.where == where and i.name.partition(":")[0] == name)

    def on(self, where: Where) -> Real:
        """Bytes of all uses in one place."""
        return _sum(i for i in self.items if i.where == where)

    def also(self, *items: MemoryItem) -> MemoryAccount:
        """The same with more uses."""
        return replace(self, items=(*self.items, *items))

    def each(self, change: Callable[[Real], Real]) -> MemoryAccount:
        """The same with every figure changed."""
        items = tuple(replace(i, bytes=change(i.bytes)) for i in self.items)
        rest = (self.capacity_bytes, self.sequence_bytes, self.context)
        return MemoryAccount(items, *map(change, rest))

    @property
    def total_bytes(self) -> Real:
        """All of it on the device."""
        return self.on("device")

    @property
    def cache_bytes(self) -> Real:
        """What is left, for a cache if there is one (negative: nothing fits, by so much)."""
        return self.capacity_bytes - self.total_bytes

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
        left = self.cache_bytes
        none = np.asarray(self.sequence_bytes) <= 0
        share: Real = np.where(none, np.where(np.asarray(left) >= 0, np.inf, 0.0), 0.0)
        return share + np.where(none, 0.0, np.maximum(left, 0.0) / np.where(none, 1.0, self.sequence_bytes))

    def short_bytes(self, sequences: Real = 1.0) -> Real:
        """Bytes that are missing for the cache of `sequences`, 0 where it fits."""
        short: Real = np.maximum(sequences * self.sequence_bytes - self.cache_bytes, 0.0)
        return short

    def fits(self, sequences: Real = 1.0) -> NDArray[np.bool_]:
        """Whether all uses and the cache of `sequences` fit."""
        return np.asarray(self.cache_bytes >= sequences * self.sequence_bytes)

    def verdict(self, sequences: Real = 1.0, aim: float | None = None, limit: float = 1.0) -> Verdict:
        """Of a single account: short where uses and cache do not fit into the share `limit` of memory, tight where uses
        take more than the share `aim` (None: `preferences().comfortable`), of a cache its room left out."""
        aim = preferences().comfortable if aim is None else aim
        held = self.total_bytes
        if not np.all(limit * self.capacity_bytes - held >= sequences * self.sequence_bytes):
            return Verdict.SHORT
        return Verdict.FITS if np.any(held <= aim * self.capacity_bytes) else Verdict.TIGHT


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
    inside = (_workspace(sharded, policies), MemoryItem("graphs", policies.graph_bytes, "runtime: captured graphs"))
    blind = policies.tower == "asked" and sharded.graph.pictures is None
    weights = _pooled(sharded) if pooled else weight_items(sharded, hosted=hosted, blind=blind)
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
    sequence = kv_sequence_bytes(sharded, policies, context, mean=mean)
    if policies.state_share < 1.0:
        states = kv_sequence_bytes(sharded, policies, 0.0)
        # of the pool that is full first
        apart = np.maximum(
            policies.state_copies * states / policies.state_share, (sequence - states) / (1.0 - policies.state_share)
        )
        sequence = np.where(np.asarray(states) > 0, apart, sequence)
    withheld = MemoryItem(KEPT_FREE, free - held - cache, "runtime: its share of memory")
    return MemoryAccount((*weights, *inside, *outside, withheld), capacity_bytes, sequence, context)


def _workspace(sharded: Sharded, policies: Policies) -> MemoryItem:
    if policies.workspace == "reserved":
        return MemoryItem("workspace", 0.0, "inside what the runtime reserves")
    tokens, logits = _live(policies)
    basis = f"activations of {tokens} tokens, {'sampling' if policies.sampler_bytes else 'logits'} of {logits}"
    return MemoryItem("workspace", workspace_bytes(sharded, policies), basis)


def _sum(items: Iterable[MemoryItem]) -> Real:
    return reduce(add, [item.bytes for item in items] or [0.0])


def _live(policies: Policies) -> tuple[int, int]:
    """Tokens whose activations, and whose logits, are held at a time. Runtimes that allocate all at start make room for
    the logits of a whole micro-batch: 512 of llama.cpp, 263 MB with a vocabulary of 128k."""
    micro = policies.micro_batch_tokens
    whole = micro and policies.kv_reservation != "growing"
    return micro or policies.max_batched_tokens, micro if whole else policies.max_sequences


def weight_items(sharded: Sharded, *, hosted: bool = False, blind: bool = False) -> tuple[MemoryItem, ...]:
    """Weights by tensor class on the fullest stage. An encoder (vision, or of an encoder-decoder) is taken to
    be held whole by every rank of it, none of a `blind` runtime; prediction modules are left out until speculation is
    asked for."""
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
        if extra.name not in ("mtp", "vision" if blind else "mtp"):
            by_class[extra.name] = extra.weight_bytes
    return tuple(MemoryItem(f"weights: {cls}", size, "checkpoint format") for cls, size in by_class.items())


def _pooled(sharded: Sharded) -> tuple[MemoryItem, ...]:
    graph, pp = sharded.graph, np.asarray(sharded.layout.pp, dtype=float)
    by_class: dict[str, Real] = {}
    for repeat, block in graph.blocks():
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
