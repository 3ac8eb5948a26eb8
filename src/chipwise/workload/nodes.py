"""The nodes of a graph: operators on named axes, that become numbers when sizes and a step are known.

A node whose inputs run over a split axis (`contracts`) leaves each rank with a partial sum of its output:
that is all that the parallel room needs to place communication.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload import op as ops
from chipwise.workload.axes import ONE, Size, Sizes, Tensor
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.moe import distinct_experts
from chipwise.workload.op import Op
from chipwise.workload.step import Segment, Step, is_decoding

WIDE = FORMATS["bf16"]


class PerToken:
    """What has a row of output for each token."""

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens


@dataclass(frozen=True)
class LatentAttend(PerToken):
    """Attention on latents of `rank` + `rope` values per token, from which `up` rebuilds keys and values.

    Decoding, and wherever tokens are selected (`top_k`), the rebuilding is absorbed into query and output:
    per head rank x nope and rank x value products on the new tokens alone, and one shared head of rank + rope
    that is read once. Otherwise all visible latents are expanded into `nope` + `rope` keys and `value` values
    per head, cached ones too. FLOPs per pair and head: 2 (2 rank + rope) absorbed, 2 (nope + rope + value)
    expanded. Runtimes keep the absorbed matrices in 16 bit. Source: DeepSeek-V2 report, section 2.1; vllm,
    v1/attention/backends/mla/common.py.
    """

    up: Tensor
    heads: Size
    rank: Size
    nope: Size
    rope: Size
    value: Size
    cache: Format
    activation: Format
    top_k: int = 0
    name: str = "attention"
    contracts: frozenset[str] = frozenset()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The matrix that rebuilds keys and values."""
        return (self.up,)

    @property
    def width(self) -> Size:
        """Value heads side by side."""
        return self.heads * self.value

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """Two batched products around the attention, or one product before it, per segment."""
        found: tuple[Op, ...] = ()
        for segment in step.segments:
            absorbed = is_decoding(segment) or self.top_k > 0
            found += (self._absorbed if absorbed else self._expanded)(sizes, segment)
        return found

    def _absorbed(self, sizes: Sizes, s: Segment) -> tuple[Op, ...]:
        heads, rank, rope = sizes.local(self.heads), sizes.local(self.rank), sizes.local(self.rope)
        tokens = s.batch * s.q
        query = ops.gemm(tokens, rank, sizes.local(self.nope), WIDE, WIDE, batch=heads, name="absorb_query")
        attend = ops.attention(
            s.batch,
            s.q,
            s.kv,
            heads,
            1.0,
            rank + rope,
            self.cache,
            value_dim=rank,
            latent=True,
            top_k=self.top_k,
            guessed=s.guessed,
            name=self.name,
        )
        value = ops.gemm(tokens, sizes.local(self.value), rank, WIDE, WIDE, batch=heads, name="absorb_value")
        return query, attend, value

    def _expanded(self, sizes: Sizes, s: Segment) -> tuple[Op, ...]:
        heads, rank = sizes.local(self.heads), sizes.local(self.rank)
        nope, rope, value = sizes.local(self.nope), sizes.local(self.rope), sizes.local(self.value)
        expand = ops.gemm(s.batch * s.kv, heads * (nope + value), rank, self.up.format, self.activation, name="kv_up")
        attend = ops.attention(s.batch, s.q, s.kv, heads, heads, nope + rope, WIDE, value_dim=value, name=self.name)
        return expand, attend


@dataclass(frozen=True)
class IndexScore(PerToken):
    """Scores of every visible entry for every new token, over `heads` light heads, then the best are chosen.

    FLOPs: 2 pairs heads (head_dim + 1). Scores are written in 32 bit and read back by the selection, since
    no runtime fuses the two. One entry per `every` tokens. Source: deepseek-ai/DeepSeek-V3.2-Exp,
    inference/model.py (Indexer).
    """

    heads: Size
    head_dim: Size
    cache: Format
    every: int = 1
    name: str = "index_score"
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()

    @property
    def width(self) -> Size:
        """One weight per head."""
        return self.heads

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One operator per segment."""
        heads, dim = sizes.local(self.heads), sizes.local(self.head_dim)
        return tuple(self._score(s, heads, dim) for s in step.segments)

    def _score(self, s: Segment, heads: Real, dim: Real) -> Op:
        pairs = ops.causal_pairs(s.q, s.kv) / self.every
        entries = s.kv / self.every
        return Op(
            kind="attention",
            name=self.name,
            compute=self.cache.compute,
            flops=2.0 * s.batch * pairs * heads * (dim + 1.0),
            activation_bytes=s.batch * (s.q * heads * (dim + 2.0) * 2.0 + 8.0 * pairs),
            kv_bytes=s.batch * entries * self.cache.bytes(1.0, dim),
            launches=2.0,
            dims={
                "batch": s.batch,
                "q": s.q,
                "kv": entries,
                "heads": heads,
                "kv_heads": 1.0,
                "head_dim": dim,
                "value_dim": 1.0,
                "window": 0.0,
                "top_k": 0.0,
            },
        )


@dataclass(frozen=True)
class CompressedAttend(PerToken):
    """One shared key = value head over the last `window` tokens and over one entry per `ratio` older tokens,
    the best `top_k` of them if given, all otherwise; a single softmax over both.

    FLOPs: 4 pairs heads head_dim. Entries are counted as tokens / ratio, not whole ones. Source:
    huggingface/transformers, models/deepseek_v4.
    """

    heads: Size
    head_dim: Size
    cache: Format
    window: int
    ratio: int = 0
    top_k: int = 0
    name: str = "attention"
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()

    @property
    def width(self) -> Size:
        """Heads side by side."""
        return self.heads * self.head_dim

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One operator per segment."""
        heads, dim = sizes.local(self.heads), sizes.local(self.head_dim)
        return tuple(self._attend(s, heads, dim) for s in step.segments)

    def _attend(self, s: Segment, heads: Real, dim: Real) -> Op:
        pairs = ops.causal_pairs(s.q, s.kv, self.window)
        read: Real = np.minimum(s.kv, self.window + s.q - 1.0)
        if self.ratio:
            reach = float(self.top_k * self.ratio)
            pairs = pairs + ops.causal_pairs(s.q, s.kv, reach) / self.ratio
            entries = s.kv / self.ratio
            read = read + (np.minimum(entries, self.top_k * s.q) if self.top_k else entries)
        return Op(
            kind="attention",
            name=self.name,
            compute="bf16",
            flops=4.0 * s.batch * pairs * heads * dim,
            activation_bytes=s.batch * s.q * heads * dim * 4.0,
            kv_bytes=s.batch * read * self.cache.bytes(1.0, dim),
            dims={
                "batch": s.batch,
                "q": s.q,
                "kv": read,
                "heads": heads,
                "kv_heads": 1.0,
                "head_dim": dim,
                "value_dim": dim,
                "window": float(self.window),
                "top_k": float(self.top_k),
            },
        )


@dataclass(frozen=True)
class Grouped(PerToken):
    """A block-diagonal matrix: `matrix.copies` groups of inputs, each with its own product."""

    name: str
    matrix: Tensor
    activation: Format
    contracts: frozenset[str] = frozenset()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The matrix."""
        return (self.matrix,)

    @property
    def width(self) -> Size:
        """Outputs of all groups."""
        return self.matrix.copies * self.matrix.rows

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One batched product."""
        w = self.matrix
        n, k, batch = sizes.local(w.rows), sizes.local(w.cols), sizes.local(w.copies)
        return (ops.gemm(step.tokens, n, k, w.format, self.activation, batch=batch, name=self.name),)


@dataclass(frozen=True)
class Scan(PerToken):
    """A recurrence with a state of `state` elements per sequence.

    `one` FLOPs per token when decoded, `chunked` when prompts are worked through in chunks (more FLOPs, as
    products inside a chunk). The state is read and written once per pass; `values` go in and out per token.
    """

    heads: Size
    one: Size
    chunked: Size
    state: Size
    state_format: Format
    values: Size
    out: Size
    name: str = "scan"
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()

    @property
    def width(self) -> Size:
        """Outputs of all heads."""
        return self.out

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One operator per segment."""
        state_bytes = self.state_format.bytes(1.0, sizes.local(self.state))
        return tuple(
            ops.scan(
                s.batch,
                s.q,
                sizes.local(self.heads),
                sizes.local(self.one if is_decoding(s) else self.chunked),
                state_bytes,
                sizes.local(self.values),
                name=self.name,
            )
            for s in step.segments
        )


@dataclass(frozen=True)
class Convolve(PerToken):
    """A causal depthwise convolution over tokens: `kernel` [channels, width]; the last width - 1 inputs of
    every sequence are kept and read and written once per pass."""

    kernel: Tensor
    name: str = "convolution"
    contracts: frozenset[str] = frozenset()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The kernel."""
        return (self.kernel,)

    @property
    def width(self) -> Size:
        """Channels."""
        return self.kernel.rows

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One element-wise kernel."""
        channels, width = sizes.local(self.kernel.rows), sizes.local(self.kernel.cols)
        body = ops.pointwise(step.tokens * channels, 2.0, name=self.name, flops_each=2.0)
        state_bytes = 2.0 * step.sequences * channels * (width - 1.0) * WIDE.bits / 8.0
        return (replace(body, flops=body.flops * width, kv_bytes=state_bytes),)


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
class Attend(PerToken):
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
class Experts(PerToken):
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
class Pointwise(PerToken):
    """Norms, activations, residuals, rotary embedding: `passes` reads or writes of `over` values per row. `sums` > 0:
    so many norms over all of a row, of which ranks that hold a part of it add up their squares."""

    name: str
    over: Size
    passes: float
    tensors: tuple[Tensor, ...] = ()
    contracts: frozenset[str] = frozenset()
    sums: int = 0

    @property
    def width(self) -> Size:
        """Values per row."""
        return self.over

    def ops(self, sizes: Sizes, step: Step) -> tuple[ops.Op, ...]:
        """One element-wise kernel."""
        return (ops.pointwise(step.tokens * sizes.local(self.over), self.passes, name=self.name),)


@dataclass(frozen=True)
class Lookup(PerToken):
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
