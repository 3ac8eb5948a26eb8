"""One model on the parts of one machine: cards of one or several kinds, and the processor with its memory.

A token passes the parts one after the other, so that its time is the sum of theirs and of what crosses the bus:

    decode   t = sum over parts of (their layers and experts at their memory's speed) + crossings x (latency + x / link)
    prompts  products of weights on the host: on the processor, or from `streams_from` tokens on the first card, which
             fetches the weights that a micro-batch needs: ceil(n / micro_batch) x bytes / link + the products there

Ignores that a card could fetch the next weights while it multiplies, and processors that also serve other programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.catalog.runtime_spec import Offload
from chipwise.cost.cost import Cost
from chipwise.cost.cpu import CpuModel
from chipwise.cost.price import CostParameters
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import MemoryAccount
from chipwise.parallel.placement import Placement, expert_layers, split
from chipwise.parallel.shard import shard
from chipwise.predict.overheads import Overheads
from chipwise.predict.parts import STARTS, quantity
from chipwise.predict.passes import Requests, tabulate
from chipwise.predict.service import Engines
from chipwise.predict.step import step_parts
from chipwise.search.memory import account_of
from chipwise.search.space import Deployment
from chipwise.units import Array, Real, format_bytes
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes
from chipwise.workload.graph import Graph
from chipwise.workload.nodes import Experts
from chipwise.workload.program import Block
from chipwise.workload.step import Step

STREAMED = ("gemm", "experts", "imbalance", "quantise")
"""Parts of a pass that are products of weights, which may be made where the weights do not lie."""
CROSSING_S = 15e-6
"""seconds: until work goes on at the other side of the bus, an event of the card or a wake-up of the processor's
threads. Chosen: between a kernel's launch (5 us) and a synchronisation that blocks (30 us); moves models shared
between cards and processor, by twice that per layer that changes sides."""
ACTIVATION_BYTES = 4.0
"""bytes: of a value that crosses. Source: ggml-org/llama.cpp: the residual stream is fp32."""


@dataclass(frozen=True)
class AssemblyPart:
    """What a kind of device holds (`deployment.holds`) and of how many of them; `layout` cuts it into stages."""

    deployment: Deployment
    layout: Layout
    sockets: int = 1

    @property
    def graph(self) -> Graph:
        """Its part of the model."""
        assert self.deployment.holds is not None
        return self.deployment.holds

    @property
    def count(self) -> int:
        """Devices or sockets."""
        return max(int(self.layout.devices), self.sockets)

    def account(self, context: Real) -> MemoryAccount:
        """The memory of one of them at a context."""
        return account_of(self.graph, self.deployment, self.layout, context, mean=False)


@dataclass(frozen=True)
class Assembly:
    """A model on the parts of a machine: kinds of cards in order, then the host where it holds anything."""

    placement: Placement
    cards: tuple[AssemblyPart, ...]
    host: AssemblyPart | None
    offload: Offload

    @property
    def parts(self) -> tuple[AssemblyPart, ...]:
        """Cards and host."""
        return self.cards if self.host is None else (*self.cards, self.host)

    def engines(
        self, requests: Requests, limit: Array, rates: Sequence[tuple[CostParameters, Overheads]], *, alone: bool
    ) -> Engines:
        """The one engine that they are, priced with the numbers of each part; `limit` [1] requests fit.

        `alone`: prompts have passes of their own.
        """
        table = tabulate(lambda step: self._pass(step, rates), 1, requests, alone=alone, factors={})
        one = np.ones(1)
        return Engines(table, one, one, one, one, limit)

    def seconds(self, step: Step, rates: Sequence[tuple[CostParameters, Overheads]]) -> dict[str, float]:
        """Seconds of one pass by part, and of the bus; for a step of single numbers."""
        found: dict[str, float] = {}
        for where, _, cost in self._told(step, rates):
            found[where] = found.get(where, 0.0) + float(np.sum(cost.total_s))
        return found

    def _pass(self, step: Step, rates: Sequence[tuple[CostParameters, Overheads]]) -> Iterator[tuple[str, Cost]]:
        for _, part, cost in self._told(step, rates):
            yield part, cost

    def _told(self, step: Step, rates: Sequence[tuple[CostParameters, Overheads]]) -> Iterator[tuple[str, str, Cost]]:
        """Where, which part of a pass, and its seconds."""
        for card, numbers in zip(self.cards, rates, strict=False):
            for part, cost in _scaled(card, step, numbers):
                if part != "host" or card is self.cards[0]:
                    yield card.deployment.chip.id, part, cost
        first, overheads = self.cards[0], rates[0][1]
        link = _bus(first.deployment) * overheads.link_share
        value = step.tokens * float(first.graph.model.hidden) * ACTIVATION_BYTES
        hops: Real = float(len(self.cards) - 1)
        if self.host is not None:
            numbers = _sockets(rates[-1], self.offload, self.host.sockets)
            least = self.offload.streams_from
            streams: Real = np.where(np.asarray(step.tokens) >= least, 1.0, 0.0) if least else 0.0
            here = self.host.deployment.chip.id
            for part, cost in _scaled(self.host, step, numbers):
                if part != "host":
                    yield here, part, cost * (1.0 - streams) if part.startswith(STREAMED) else cost
            if np.any(streams):
                yield from self._streamed(step, rates[0], link, streams)
            inside = max(self.placement.host_experts - self.placement.host_layers, 0)
            hops = hops + (2.0 * inside * (1.0 - streams)) + (1.0 if self.placement.host_layers else 0.0)
        yield "bus", "p2p", Cost({"launch": hops * CROSSING_S, "network": hops * value / link})

    def _streamed(
        self, step: Step, numbers: tuple[CostParameters, Overheads], link: float, streams: Real
    ) -> Iterator[tuple[str, str, Cost]]:
        """Products of the host's weights on the first card, and the way of the weights there."""
        assert self.host is not None
        guest = replace(self.cards[0], deployment=replace(self.cards[0].deployment, holds=self.host.graph))
        guest = replace(guest, layout=Layout())
        for part, cost in _scaled(guest, step, numbers):
            if part.startswith(STREAMED):
                yield "bus", part, cost * streams
        batches = np.ceil(np.asarray(step.tokens) / self.offload.micro_batch)
        few = step.scaled(1.0 / np.maximum(batches, 1.0))
        moved: Real = 0.0
        for repeat, op in shard(self.host.graph, Layout()).ops(few):
            if op.kind in ("gemm", "experts"):
                moved = moved + repeat * op.weight_bytes
        yield "bus", "p2p", Cost({"network": streams * batches * moved / link})


def assemble(
    graph: Graph,
    cards: Sequence[tuple[Deployment, int]],
    host: tuple[Deployment, int] | None,
    offload: Offload,
    context: float,
    asked: Placement | None = None,
) -> Assembly:
    """The model on the parts of a machine so that as little as can be lies on the host: first routed experts, of as few
    layers as need be, then whole layers; and on several kinds of cards as much as can be on the first.

    `asked`: this placement, not the best. Raises `InfeasibleError` where it does not fit, saying by how much.
    """
    found = _Room.of(graph, cards, host, offload, context)
    placement = asked or found.best()
    pieces, rest = split(graph, placement)
    parts = tuple(
        AssemblyPart(replace(d, holds=piece), Layout(pp=float(n)))
        for (d, n), piece in zip(cards, pieces, strict=True)
        if piece.layers
    )
    there = None
    if rest is not None:
        if host is None:
            raise InfeasibleError(
                "a part of the model lies on the host, and none was named",
                "name it, e.g. --chip rtx-4090+cpu or --host-memory 64GB",
            )
        there = AssemblyPart(replace(_pooled(*host, offload), holds=rest), Layout(), host[1])
    assembly = Assembly(placement, parts, there, offload)
    for part in assembly.parts:
        short = float(np.max(part.account(context).short_bytes()))
        if short > 0:
            name = part.deployment.chip.id
            raise InfeasibleError(
                f"{graph.model.name}: {format_bytes(short)} short on {name}",
                "a smaller format, a shorter context, or more on the other side",
                reasons={"does not fit in memory": 1},
            )
    return assembly


@dataclass(frozen=True)
class _Room:
    """What parts have room for, by layers: bytes of each layer with and without its routed experts, cache included."""

    graph: Graph
    whole: Array
    rest: Array
    cards: tuple[float, ...]
    counts: tuple[int, ...]
    host: float
    offload: Offload

    @classmethod
    def of(
        cls,
        graph: Graph,
        cards: Sequence[tuple[Deployment, int]],
        host: tuple[Deployment, int] | None,
        offload: Offload,
        context: float,
    ) -> _Room:
        """The room at a context. An engine's workspace is that of the whole model."""
        policies = cards[0][0].policies
        blocks = [block for _, block in graph.runs]
        repeats = [repeat for repeat, _ in graph.runs]
        known = {id(b): (_layer_bytes(b, policies, context), _expert_bytes(b)) for b in blocks}
        whole, experts = np.repeat(np.array([known[id(b)] for b in blocks]).T, repeats, axis=1)
        nothing = Block("none", {}, ())
        inner = graph.holding(graph.runs, (nothing, nothing))
        rooms = tuple(_free(inner if i else graph, d, n, context) for i, (d, n) in enumerate(cards))
        free = _free(inner, _pooled(*host, offload), 1, context) if host else 0.0
        return cls(graph, whole, whole - experts, rooms, tuple(n for _, n in cards), free, offload)

    def best(self) -> Placement:
        """The least on the host; where nothing fits the attempt that is nearest, to be refused with its figures."""
        layers = len(self.whole)
        found = self._dealt(0, 0)
        if found is not None:
            return found
        last = Placement((layers, *(0,) * (len(self.cards) - 1)))
        if self.host <= 0:
            return last
        routed = "experts" in self.offload.holds and any(expert_layers(self.graph))
        if routed:
            for apart in range(1, layers + 1):
                found = self._dealt(0, apart)
                if found is not None:
                    return found
            last = replace(last, host_experts=layers)
        if "layers" in self.offload.holds:
            for kept in range(1, layers):
                found = self._dealt(kept, layers if routed else kept)
                if found is not None:
                    return found
            first = (1, *(0,) * (len(self.cards) - 1))
            last = Placement(first, layers - 1, layers if routed else layers - 1)
        return last

    def _dealt(self, kept: int, apart: int) -> Placement | None:
        """Layers dealt to cards in order with the first `kept` whole, and experts of the first `apart`, on the host."""
        at, dealt = kept, []
        sizes = np.where(np.arange(len(self.whole)) < apart, self.rest, self.whole)
        for room, count in zip(self.cards, self.counts, strict=True):
            taken = np.arange(1.0, len(sizes) - at + 1)
            fullest = np.cumsum(sizes[at:]) * _fullest(taken, count)
            dealt.append(int(np.max(taken, where=fullest <= room, initial=0)))
            at += dealt[-1]
        if at < len(sizes) or dealt[0] < 1:
            return None
        return Placement(tuple(dealt), kept, apart)


def _layer_bytes(block: Block, policies: Any, context: float) -> float:
    sizes = Sizes(block.axes)
    cache = sum(float(c.bytes(sizes, context, policies.kv_block_tokens)) for c in block.caches)
    return cache + sum(float(t.local_bytes(sizes)) for t in block.tensors)


def _expert_bytes(block: Block) -> float:
    sizes = Sizes(block.axes)
    return sum(float(t.local_bytes(sizes)) for n in block.nodes if isinstance(n, Experts) for t in n.tensors)


def _weights(graph: Graph) -> Iterator[float]:
    """Bytes of the weights of every run of layers."""
    for repeat, block in graph.runs:
        sizes = Sizes(block.axes)
        yield repeat * sum(float(t.local_bytes(sizes)) for t in block.tensors)


def _free(graph: Graph, d: Deployment, count: int, context: float) -> float:
    """Bytes that each of `count` devices has for layers and their cache: what the account of the model leaves there
    for the cache, and the layers in it. So all that is not of layers is counted as the account does, the table of
    tokens only where it lies on the card, and encoders."""
    memory = account_of(graph, d, Layout(pp=float(count)), context)
    layers = sum(_weights(graph)) * float(_fullest(graph.layers, count))
    return float(np.sum(memory.cache_bytes)) + layers


def _fullest(layers: Real, count: int) -> Real:
    """The share of `layers` on the fullest of `count` devices, as accounts have it."""
    share: Real = np.ceil(np.asarray(layers) / count) / layers
    return share


def _pooled(d: Deployment, sockets: int, offload: Offload) -> Deployment:
    """A processor with the memory of all sockets, unless each holds a copy, and the units that the software uses."""
    if not offload.matrix_units:
        lanes = d.device.vector_flops_per_s
        slower = {name: np.minimum(rate, lanes) for name, rate in d.device.matrix.items()}
        d = replace(d, device=replace(d.device, matrix=slower))
    if sockets == 1 or offload.second_socket > 0:
        return d
    return replace(d, device=replace(d.device, memory_bytes=d.device.memory_bytes * sockets))


def _bus(d: Deployment) -> float:
    """Bytes per second between a card and its host, one direction; PCIe 4 x16 where none is published."""
    host = d.chip.host
    return host.bytes_per_s if host is not None and host.bytes_per_s else 31.5e9


def _sockets(
    numbers: tuple[CostParameters, Overheads], offload: Offload, sockets: int
) -> tuple[CostParameters, Overheads]:
    """The numbers of a processor with what further sockets add; vector lanes have no tile to fill."""
    costs, overheads = numbers
    if isinstance(costs, CpuModel):
        more = 1.0 + offload.second_socket * (sockets - 1)
        costs = replace(costs, numbers=replace(costs.numbers, sockets=more))
        if not offload.matrix_units:
            costs = replace(costs, cores=replace(costs.cores, rows=1.0))
    return costs, overheads


def _scaled(part: AssemblyPart, step: Step, numbers: tuple[CostParameters, Overheads]) -> Iterator[tuple[str, Cost]]:
    """A pass of one part with the factors of its own software."""
    costs, overheads = numbers
    of = step_parts(shard(part.graph, part.layout), step, part.deployment.device, costs, overheads)
    for name, cost in of:
        if name == STARTS:
            continue  # stages of a machine follow each other: what a host starts ahead hides behind the one before
        factors = overheads.factors
        yield name, Cost({r: s * factors.get(quantity(name, r), 1.0) for r, s in cost.exposed.items()})
