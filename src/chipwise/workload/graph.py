"""The unsharded network as operators: a run-length sequence of blocks between an embedding and a head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes, Tensor
from chipwise.workload.cache import SCOPES, KVSpec, Scope
from chipwise.workload.model import LatentAttention, Model
from chipwise.workload.nodes import Node
from chipwise.workload.op import Op


@dataclass(frozen=True)
class Block:
    """A residual layer (or the embedding, or the head): nodes in order on its own axes, and its caches."""

    name: str
    axes: Mapping[str, int]
    nodes: tuple[Node, ...]
    caches: tuple[KVSpec, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All parameters of the block."""
        return tuple(tensor for node in self.nodes for tensor in node.tensors)


@dataclass(frozen=True)
class Extra:
    """A part beside the main stack: a module for multi-token prediction ("mtp"), a vision tower ("vision").

    `blocks` are those of one module, of which the configuration names `modules`. Copies of embedding or head
    that a checkpoint may hold per module are not among them.
    """

    name: str
    modules: int
    blocks: tuple[tuple[int, Block], ...]

    @property
    def weight_bytes(self) -> float:
        """Stored bytes of one module."""
        return float(sum(n * t.local_bytes(Sizes(b.axes)) for n, b in self.blocks for t in b.tensors))


def count_entries(blocks: Iterable[tuple[int, Block]], *, buffers: bool = False, scales: bool = False) -> int:
    """Parameters of (repeat, block) pairs, with untrained buffers and with scale entries where asked."""
    total = 0
    for repeat, block in blocks:
        sizes = Sizes(block.axes)
        for tensor in block.tensors:
            if buffers or not tensor.buffer:
                total += repeat * tensor.params(sizes)
            if scales:
                total += repeat * tensor.scales(sizes)
    return total


@dataclass(frozen=True)
class Pictures:
    """What every request shows beside its text: the operators (repeats, operator) of the vision tower for all its
    pictures on one device, between which ranks that share the tower sum `exchanges` times `exchanged_bytes`; and how
    many tokens its prompt has, pictures included."""

    ops: tuple[tuple[float, Op], ...]
    exchanges: float
    exchanged_bytes: float
    prompt_tokens: float


@dataclass(frozen=True)
class Graph:
    """`runs` are (repeat, block) in order. A tied head reads the table that `embed` owns. `extras` are
    counted apart: no sum of this class includes them unless it is asked for them. `pictures` are those of its
    requests, None where they are text."""

    model: Model
    embed: Block
    runs: tuple[tuple[int, Block], ...]
    head: Block
    extras: tuple[Extra, ...] = ()
    pictures: Pictures | None = None

    @property
    def layers(self) -> int:
        """Number of residual layers."""
        return sum(repeat for repeat, _ in self.runs)

    def distinct(self) -> tuple[tuple[int, Block], ...]:
        """Blocks that differ, each with how often it occurs; order is lost, sums are not."""
        return self._distinct

    @cached_property
    def _distinct(self) -> tuple[tuple[int, Block], ...]:
        counts: dict[int, tuple[int, Block]] = {}
        for repeat, block in self.runs:
            seen = counts.get(id(block), (0, block))
            counts[id(block)] = (seen[0] + repeat, block)
        return tuple(counts.values())

    @property
    def routed(self) -> bool:
        """Whether tokens of some layer go to experts."""
        return any("E" in block.axes for _, block in self.runs)

    @property
    def in_pieces(self) -> bool:
        """Whether servers that capture passes with prompts in pieces do so for this model: not if it sees, nor with
        latent attention (sgl-project/sglang, server_args.py, and issue 23842)."""
        latent = any(isinstance(layer.mixer, LatentAttention) for _, layer in self.model.runs)
        return not latent and self.extra("vision") is None

    @property
    def encoder(self) -> tuple[tuple[int, Block], ...]:
        """Blocks that run once per request, over its source, before the main stack; most models have none."""
        found = self.extra("encoder")
        return found.blocks if found else ()

    def parts(self) -> tuple[tuple[int, Block], ...]:
        """Everything with parameters: encoder, embedding, distinct blocks, head."""
        return (*self.encoder, (1, self.embed), *self.distinct(), (1, self.head))

    def extra(self, name: str) -> Extra | None:
        """The part of that name beside the main stack."""
        return next((e for e in self.extras if e.name == name), None)

    def params(self) -> int:
        """Trained parameters of the main stack, tied tables once."""
        return self._params

    @cached_property
    def _params(self) -> int:
        return count_entries(self.parts())

    def active_params(self, *, embedding: bool = False) -> int:
        """Parameters that one token touches: top-k experts, everything else whole. The embedding table is
        counted only when asked (a lookup touches one row), and so are tables beside it; a tied head is counted
        as the head."""
        head = self.embed.nodes[0].tensors if self.model.tied else ()
        total = 0.0
        for repeat, block in self.parts():
            sizes = Sizes(block.axes)
            for tensor in block.tensors:
                looked_up = tensor.cls == "embedding" and tensor not in head
                if tensor.buffer or (looked_up and not embedding):
                    continue
                total += repeat * tensor.params(sizes) * tensor.touched
        return round(total)

    def kv_bytes(self, context: Real, page: int = 1, *, scope: Scope = "attention") -> Real:
        """Cache bytes of one sequence of `context` tokens over all layers, unsharded.

        `scope`: keys, values and latents ("attention"), index keys, recurrent state, or "all" of them.
        """
        total: Real = 0.0
        for repeat, block in self.distinct():
            sizes = Sizes(block.axes)
            for cache in block.caches:
                if cache.kind in SCOPES[scope]:
                    total = total + repeat * cache.bytes(sizes, context, page)
        return total

    def kv_bytes_per_token(self, *, scope: Scope = "attention") -> float:
        """Marginal cache bytes of one more token once every window is full."""
        total = 0.0
        for repeat, block in self.distinct():
            sizes = Sizes(block.axes)
            total += repeat * sum(float(c.growth_bytes(sizes)) for c in block.caches if c.kind in SCOPES[scope])
        return total

    def state_bytes(self) -> float:
        """Recurrent and convolution state of one sequence, unsharded."""
        return float(self.kv_bytes(1.0, scope="state"))

    def weight_bytes(self) -> float:
        """Stored bytes of all weights of the main stack, unsharded."""
        return sum(self.weight_bytes_by_class().values())

    def weight_bytes_by_class(self) -> dict[str, float]:
        """Stored bytes by tensor class, unsharded."""
        return dict(self._by_class)

    @cached_property
    def _by_class(self) -> Mapping[str, float]:
        by_class: dict[str, float] = {}
        for repeat, block in self.parts():
            for tensor in block.tensors:
                held = repeat * float(tensor.local_bytes(Sizes(block.axes)))
                by_class[tensor.cls] = by_class.get(tensor.cls, 0.0) + held
        return by_class
