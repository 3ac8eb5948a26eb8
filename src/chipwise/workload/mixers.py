"""Nodes of token mixers that are not plain softmax attention: latent, indexed and compressed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.units import Real
from chipwise.workload import op as ops
from chipwise.workload.axes import Size, Sizes
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op
from chipwise.workload.step import Segment, Step, is_decoding
from chipwise.workload.tensor import Tensor

__all__ = ["CompressedAttend", "Grouped", "IndexScore", "LatentAttend"]

WIDE = FORMATS["bf16"]


@dataclass(frozen=True)
class LatentAttend:
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

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

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
        expand = ops.gemm(
            s.batch * s.kv, heads * (nope + value), rank, self.up.format, self.activation, name="kv_up"
        )
        attend = ops.attention(
            s.batch, s.q, s.kv, heads, heads, nope + rope, WIDE, value_dim=value, name=self.name
        )
        return expand, attend


@dataclass(frozen=True)
class IndexScore:
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

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

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
class CompressedAttend:
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

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

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
class Grouped:
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

    def rows(self, step: Step) -> Real:
        """One per token."""
        return step.tokens

    def ops(self, sizes: Sizes, step: Step) -> tuple[Op, ...]:
        """One batched product."""
        w = self.matrix
        n, k, batch = sizes.local(w.rows), sizes.local(w.cols), sizes.local(w.copies)
        return (ops.gemm(step.tokens, n, k, w.format, self.activation, batch=batch, name=self.name),)
