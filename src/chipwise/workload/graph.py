"""The unsharded language model as a program: a run-length sequence of blocks between an embedding and a head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes
from chipwise.workload.cache import SCOPES, Scope
from chipwise.workload.model import LatentAttention, Model
from chipwise.workload.program import Block, Blocks, Program, Stage, distinct

LAYERS = "layers"
"""Name of the stage that a pass runs: embedding, layers, head."""


@dataclass(frozen=True)
class Graph(Program):
    """A program whose first stage is asked for every pass: `embed`, `runs` of (repeat, block) in order, `head`. A tied
    head reads the table that `embed` owns. `extras` are the stages beside it: one that is called as often as a
    configuration names modules for multi-token prediction ("mtp"), towers ("vision"), an "encoder". Copies of embedding
    or head that a checkpoint may hold per module are not among them."""

    model: Model = field(kw_only=True)

    @classmethod
    def of(cls, model: Model, embed: Block, runs: Blocks, head: Block, extras: Iterable[Stage] = ()) -> Graph:
        """The program of a model whose blocks these are."""
        layers = Stage.of(LAYERS, ((1, embed), *runs, (1, head)))
        return cls(model.name, (layers, *extras), unit="token", model=model)

    def holding(
        self, runs: Iterable[tuple[int, Block]], ends: tuple[Block, Block] | None = None, extras: Iterable[Stage] = ()
    ) -> Graph:
        """The same with other layers, between other `ends` where they are given, and other stages beside it."""
        embed, head = ends or (self.embed, self.head)
        return replace(self, stages=(Stage.of(LAYERS, ((1, embed), *runs, (1, head))), *extras))

    @property
    def embed(self) -> Block:
        """The block before the layers."""
        return self.stages[0].blocks[0][1]

    @cached_property
    def runs(self) -> Blocks:
        """The layers in order."""
        return self.stages[0].blocks[1:-1]

    @property
    def head(self) -> Block:
        """The block after the layers."""
        return self.stages[0].blocks[-1][1]

    @property
    def extras(self) -> tuple[Stage, ...]:
        """The stages beside the one that a pass runs."""
        return self.stages[1:]

    @property
    def layers(self) -> int:
        """Number of residual layers."""
        return sum(repeat for repeat, _ in self.runs)

    def distinct(self) -> Blocks:
        """Layers that differ, each with how often it occurs."""
        return self._distinct

    @cached_property
    def _distinct(self) -> Blocks:
        return distinct(self.runs)

    @property
    def routed(self) -> bool:
        """Whether tokens of some layer go to experts."""
        return any("E" in block.axes for _, block in self.runs)

    @property
    def in_pieces(self) -> bool:
        """Not if it sees, nor with latent attention (sgl-project/sglang, server_args.py, and issue 23842)."""
        latent = any(isinstance(layer.mixer, LatentAttention) for _, layer in self.model.runs)
        return not latent and self.extra("vision") is None

    @property
    def encoder(self) -> Blocks:
        """Blocks that run once per request, over its source, before the main stack; most models have none."""
        found = self.extra("encoder")
        return found.blocks if found else ()

    def blocks(self) -> Blocks:
        """Everything with parameters: encoder, embedding, distinct layers, head."""
        return (*self.encoder, (1, self.embed), *self.distinct(), (1, self.head))

    def extra(self, name: str) -> Stage | None:
        """The stage of that name beside the main stack."""
        return next((e for e in self.extras if e.name == name), None)

    def active_params(self, *, embedding: bool = False) -> int:
        """Parameters that one token touches: top-k experts, everything else whole. The embedding table is
        counted only when asked (a lookup touches one row), and so are tables beside it; a tied head is counted
        as the head."""
        head = self.embed.nodes[0].tensors if self.model.tied else ()
        total = 0.0
        for repeat, block in self.blocks():
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

    @cached_property
    def weight_bytes_by_class(self) -> Mapping[str, float]:
        """Stored bytes by tensor class, unsharded."""
        by_class: dict[str, float] = {}
        for repeat, block in self.blocks():
            for tensor in block.tensors:
                held = repeat * float(tensor.local_bytes(Sizes(block.axes)))
                by_class[tensor.cls] = by_class.get(tensor.cls, 0.0) + held
        return by_class
