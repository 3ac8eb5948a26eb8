"""One model over several memories: which layers, and which routed experts, lie on which card and on the host.

Layers stay whole, but the experts of a layer may lie apart from the rest of it. The host has the first layers, as the
engines of desks give it those (-ngl counts the last ones, --n-cpu-moe the first); cards follow in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chipwise.errors import UsageError
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.nodes import Experts
from chipwise.workload.program import Block


@dataclass(frozen=True, slots=True)
class Placement:
    """`cards`: layers of each kind of card; `host_layers`: the first layers, which are whole on the host;
    `host_experts`: the first layers whose routed experts are there (those of `host_layers` among them). Embedding and
    head are on the first card."""

    cards: tuple[int, ...]
    host_layers: int = 0
    host_experts: int = 0

    @property
    def layers(self) -> int:
        """Layers in all."""
        return self.host_layers + sum(self.cards)

    @property
    def on_host(self) -> bool:
        """Whether anything lies on the host."""
        return self.host_layers > 0 or self.host_experts > 0


@dataclass(frozen=True)
class Offloaded:
    """Where parts of a model shall lie: layers on cards, first layers whose routed experts are on the host, and how the
    layers on cards are dealt to kinds of them; None: as fits best."""

    gpu_layers: int | None = None
    cpu_experts: int | None = None
    split: tuple[float, ...] = ()

    def placement(self, graph: Graph, kinds: int) -> Placement | None:
        """The placement that it asks for, None for the best. Raises `UsageError` for more layers than there are."""
        if self == Offloaded():
            return None
        layers = graph.layers
        kept = layers if self.gpu_layers is None else self.gpu_layers
        apart = 0 if self.cpu_experts is None else self.cpu_experts
        for name, value in (("gpu-layers", kept), ("cpu-experts", apart)):
            if not 0 <= value <= layers:
                raise UsageError(
                    f"--offload {name}={value}: {graph.model.name} has {layers} layers",
                    f"0 to {layers}",
                    field="offload",
                )
        if apart and not any(expert_layers(graph)):
            hint = "gpu-layers=N keeps whole layers on the host"
            raise UsageError(f"{graph.model.name} has no routed experts to offload", hint, field="offload")
        if kept == 0:
            raise UsageError("no layer would be on a card", "name the processor alone as --chip", field="offload")
        shares = self.split or (1.0, *(0.0,) * (kinds - 1))
        if len(shares) != kinds:
            what = f"--offload split names {len(shares)} shares, the machine has {kinds} kinds of cards"
            raise UsageError(what, "as in split=3/1", field="offload")
        ends = np.round(np.cumsum(shares) / sum(shares) * kept).astype(int)
        cards = tuple(int(n) for n in np.diff(np.concatenate([[0], ends])))
        return Placement(cards, layers - kept, max(apart, layers - kept))


def expert_layers(graph: Graph) -> tuple[bool, ...]:
    """Whether each layer has routed experts, in order."""
    return tuple(_routed(block) for repeat, block in graph.runs for _ in range(repeat))


def split(graph: Graph, placement: Placement) -> tuple[tuple[Graph, ...], Graph | None]:
    """What each kind of card holds, and the host (None: nothing), as graphs whose sums are those of the whole one.

    Raises `ValueError` for a placement of another number of layers.
    """
    if placement.layers != graph.layers:
        raise ValueError(f"{placement.layers} layers are placed, the model has {graph.layers}")
    nothing = (Block("none", {}, ()),) * 2
    without: dict[int, Block] = {}
    alone: dict[int, Block] = {}
    for _, block in graph.distinct():
        rest = tuple(n for n in block.nodes if not isinstance(n, Experts))
        routed = tuple(n for n in block.nodes if isinstance(n, Experts))
        without[id(block)] = replace(block, nodes=rest)
        alone[id(block)] = replace(block, nodes=routed, caches=())

    def between(low: int, high: int, seen: dict[int, Block] | None = None) -> Iterator[tuple[int, Block]]:
        """Runs of the layers from `low` to `high`, as they are or as `seen` has them."""
        at = 0
        for repeat, block in graph.runs:
            count = min(high, at + repeat) - max(low, at)
            at += repeat
            kept = block if seen is None else seen[id(block)]
            if count > 0 and kept.nodes:
                yield count, kept

    first, apart = placement.host_layers, max(placement.host_experts, placement.host_layers)
    found: list[Graph] = []
    low = first
    for i, count in enumerate(placement.cards):
        high = low + count
        cut = min(max(apart, low), high)
        runs = (*between(low, cut, without), *between(cut, high))
        found.append(graph.holding(runs, None, graph.extras) if i == 0 else graph.holding(runs, nothing))
        low = high
    if not placement.on_host:
        return tuple(found), None
    runs = (*between(0, first), *between(first, apart, alone))
    return tuple(found), graph.holding(runs, nothing)


def _routed(block: Block) -> bool:
    return any(isinstance(node, Experts) for node in block.nodes)
