"""The nodes of a graph: operators on named axes, that become numbers when sizes and a step are known.

A node whose inputs run over a split axis (`contracts`) leaves each rank with a partial sum of its output:
that is all that the parallel room needs to place communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chipwise.units import Real
from chipwise.workload import op as ops
from chipwise.workload.axes import ONE, Size, Sizes
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.moe import distinct_experts
from chipwise.workload.step import Step
from chipwise.workload.tensor import Tensor

__all__ = ["Attend", "Experts", "Held", "Linear", "Lookup", "Node", "Pointwise", "norm_tensor"]


class Node(Protocol):
    """What every node offers."""

    @property
    def name(self) -> str:
        """Short name, unique in its block."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Parameters that it owns."""

    @property
    def contracts(self) -> frozenset[str]:
        """Axes that it sums over: split one of them and the output is a partial sum."""

    @property
    def width(self) -> Size:
        """Features of its output, per row."""

    def rows(self, step: Step) -> Real:
        """Rows of its output."""

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """Its operators on one rank."""


@dataclass(frozen=True)
class Linear:
    """Matrices over the same input, fused into one product.

    `last` runs on one row per sequence (logits). `borrowed` matrices belong to another node (a tied head
    reads the embedding table).
    """

    name: str
    matrices: tuple[Tensor, ...]
    activation: Format
    last: bool = False
    borrowed: bool = False

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The matrices, unless they are borrowed."""
        return () if self.borrowed else self.matrices

    @property
    def contracts(self) -> frozenset[str]:
        """The axes of the input."""
        return self.matrices[0].cols.axes

    @property
    def width(self) -> Size:
        """Features of all outputs together."""
        total = self.matrices[0].rows
        for matrix in self.matrices[1:]:
            total = total + matrix.rows
        return total

    def rows(self, step: Step) -> Real:
        """One per token, or one per sequence for logits."""
        return step.sequences if self.last else step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """One GEMM."""
        first = self.matrices[0]
        m, n, k = self.rows(step), sizes.local(self.width), sizes.local(first.cols)
        return (ops.gemm(m, n, k, first.format, self.activation, name=self.name),)


@dataclass(frozen=True)
class Attend:
    """Softmax attention over the cache: one operator per segment of the step.

    `source` > 0: keys and values are those of so many encoder tokens, all of them visible. `top_k` > 0: so
    many selected tokens at most.
    """

    heads: Size
    kv_heads: Size
    head_dim: Size
    window: int
    cache: Format
    name: str = "attention"
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()
    value_dim: Size | None = None
    causal: bool = True
    source: int = 0
    top_k: int = 0

    @property
    def width(self) -> Size:
        """Heads side by side."""
        return self.heads * (self.head_dim if self.value_dim is None else self.value_dim)

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """One operator per segment."""
        heads, kv_heads = sizes.local(self.heads), sizes.local(self.kv_heads)
        head_dim = sizes.local(self.head_dim)
        value_dim = head_dim if self.value_dim is None else sizes.local(self.value_dim)
        return tuple(
            ops.attention(
                s.batch,
                s.q,
                float(self.source) if self.source else s.kv,
                heads,
                kv_heads,
                head_dim,
                self.cache,
                window=self.window,
                causal=self.causal and not self.source,
                value_dim=value_dim,
                top_k=self.top_k,
                guessed=s.guessed,
                name=self.name,
            )
            for s in step.segments
        )


@dataclass(frozen=True)
class Experts:
    """Routed feed-forwards: `up` tensors (gate and up) then `down`, of the experts that tokens choose.

    Tokens of all `sizes.replicas` attention replicas meet here. A rank holds ceil(E / parts) experts, filled up with
    copies where they do not divide, and gets an even share of the assignments; imbalance belongs to the cost model.
    """

    up: tuple[Tensor, ...]
    down: Tensor
    top_k: int
    activation: Format
    name: str = "experts"

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All expert weights."""
        return (*self.up, self.down)

    @property
    def contracts(self) -> frozenset[str]:
        """The expert axis and the width inside an expert."""
        return self.down.cols.axes | self.down.copies.axes

    @property
    def width(self) -> Size:
        """Model width."""
        return self.down.rows

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """One grouped product: FLOPs of the assignments, weights of the distinct experts that are hit."""
        experts = sizes.whole(self.down.copies)
        share = sizes.local(self.down.copies) / experts
        ranks = sizes.parts("E")
        tokens = step.tokens * sizes.replicas
        assignments = tokens * self.top_k / ranks
        # attention replicas send tokens to the ranks that hold one of their experts; else every rank has all tokens
        sent = 1.0 - (1.0 - 1.0 / np.asarray(ranks)) ** self.top_k
        entering = tokens * np.where(np.asarray(sizes.replicas) > 1, sent, 1.0)
        hit = distinct_experts(tokens, experts, self.top_k) * share
        hidden, inner = sizes.local(self.down.rows), sizes.local(self.down.cols)
        matrices = len(self.up) + 1
        per_expert: Real = 0.0
        for tensor in self.tensors:
            per_expert = per_expert + tensor.format.bytes(sizes.local(tensor.rows), sizes.local(tensor.cols))
        moved = hidden + inner * len(self.up) + inner + hidden
        return (
            ops.Op(
                kind="experts",
                name=self.name,
                compute=self.activation.compute,
                weight=self.down.format.name,
                flops=2.0 * assignments * hidden * inner * matrices,
                weight_bytes=hit * per_expert,
                activation_bytes=assignments * moved * 2.0,
                launches=4.0,
                dims={
                    "tokens": tokens,
                    "entering": entering,
                    "top_k": self.top_k,
                    "experts": experts,
                    "local_experts": experts * share,
                    "ranks": ranks,
                    "hidden": hidden,
                    "inner": inner,
                    "matrices": matrices,
                },
            ),
        )


@dataclass(frozen=True)
class Pointwise:
    """Norms, activations, residuals, rotary embedding: `passes` reads or writes of `over` values per row."""

    name: str
    over: Size
    passes: float
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()

    @property
    def width(self) -> Size:
        """Values per row."""
        return self.over

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """One element-wise kernel."""
        return (ops.pointwise(step.tokens * sizes.local(self.over), self.passes, name=self.name),)


@dataclass(frozen=True)
class Lookup:
    """A row of a table per token."""

    table: Tensor
    name: str = "embedding"

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The table."""
        return (self.table,)

    @property
    def contracts(self) -> frozenset[str]:
        """The vocabulary: a rank that holds a slice of it adds zeros for the other words."""
        return self.table.rows.axes

    @property
    def width(self) -> Size:
        """Features of a row."""
        return self.table.cols

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """One gather."""
        return (ops.lookup(step.tokens, sizes.local(self.width), self.table.format, name=self.name),)


@dataclass(frozen=True)
class Held:
    """Parameters that are counted and stored, but not priced: a vision tower's tables."""

    name: str
    tensors: tuple[Tensor, ...]
    contracts: frozenset[str] = frozenset()
    width: Size = ONE

    def rows(self, step: Step) -> Real:
        """None."""
        return 0.0

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """None."""
        return ()


def norm_tensor(name: str, width: Size, *, bias: bool = False) -> Tensor:
    """The gain of a norm over `width` features, kept in 16 bit; with `bias` an offset too."""
    return Tensor(name, "norm", width, ONE, FORMATS["bf16"], bias=bias)
