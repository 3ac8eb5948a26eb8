"""Recommenders: tables of embeddings, and small networks over what was looked up.

Shapes: facebookresearch/dlrm; mlcommons/training, recommendation_v2/torchrec_dlrm; NVIDIA/DeepLearningExamples,
Recommendation/DLRM and NCF.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal

from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.media.layers import LayerBlock, Layers, join
from chipwise.workload.op import Op, gemm, lookup

TILE = 32.0  # columns of a tile of matrix units, into which the features of a sample go


def _mlp(layers: Layers, widths: tuple[int, ...]) -> LayerBlock:
    parts = []
    for entry, out in itertools.pairwise(widths):
        parts += [layers.linear(1, entry, out), layers.act(1, out, "relu")]
    return join(*parts)


@dataclass(frozen=True, kw_only=True)
class DLRM:
    """Dense features through `bottom`, one sum of rows from each table, their products in pairs ("dot") or low-rank
    crossings ("cross": `crossings` layers of `rank`), and `top`.

    `rows`: entries of all tables together; `hot`: rows read by a sample in all tables together, `near` of them in
    tables so small that the cache of a chip holds them; `table`: format of the tables.
    """

    rows: int
    tables: int
    width: int
    hot: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    dense: int = 13
    interaction: Literal["dot", "cross"] = "dot"
    crossings: int = 3
    rank: int = 512
    table: str = "fp32"
    near: int = 0

    @property
    def stored(self) -> Format:
        """Format of the tables."""
        return FORMATS[self.table]

    def embeddings(self, layers: Layers) -> LayerBlock:
        """The lookups: rows are read, those of small tables in the cache, and one sum of each table is written."""
        op = lookup(layers.batch * (self.hot - self.near), self.width, self.stored, name="embedding_bag")
        op = replace(op, activation_bytes=layers.bytes(self.tables, self.width))
        count = self.rows * self.width
        ops: tuple[tuple[float, Op], ...] = ((1.0, op),)
        return LayerBlock(ops, count, count * self.stored.bits / 8.0, layers.bytes(self.tables, self.width))

    def block(self, layers: Layers) -> LayerBlock:
        """The dense part of one pass."""
        features, w = self.tables + 1, self.width
        bottom = _mlp(layers, (self.dense, *self.bottom))
        if self.interaction == "cross":
            entry = features * w
            each = join(
                layers.linear(1, entry, self.rank, False),
                layers.linear(1, self.rank, entry),
                layers.pointwise(1, entry, 4.0, "cross"),
            )
            return join(bottom, self.crossings * each, _mlp(layers, (entry, *self.top)))
        p = layers.precision.plain
        op = gemm(features, features, w, p, p, batch=layers.batch, name="pairs")
        if (
            p.bits < 16
        ):  # engines have a kernel of their own: a tile holds the features of a sample, one after the other
            op = gemm(layers.batch * features, TILE, w, p, p, name="pairs")
            op = replace(
                op,
                weight_bytes=0.0,
                activation_bytes=layers.bytes(features, w + features),
                dims={**op.dims, "static": 1.0},
            )
        pairs = w + features * (features - 1) // 2
        pairs += pairs % 2  # padded to an even width
        dots = LayerBlock(((1.0, op),), peak=layers.bytes(features, w + features), kept=layers.bytes(features, w))
        return join(bottom, dots, layers.pointwise(1, pairs, 2.0, "gather"), _mlp(layers, (pairs, *self.top)))


@dataclass(frozen=True, kw_only=True)
class NCF:
    """Neural matrix factorisation: tables of users and items for a product and for a network."""

    users: int
    items: int
    factors: int
    mlp: tuple[int, ...]

    def block(self, layers: Layers) -> LayerBlock:
        """One pass over a pair of user and item per sample."""
        f, half = self.factors, self.mlp[0] // 2
        tables = [layers.embed(1, rows, w) for rows in (self.users, self.items) for w in (f, half)]
        product = layers.pointwise(1, f, 3.0, "product")
        beside = layers.pointwise(1, self.mlp[0], 2.0, "concatenate")
        last = f + self.mlp[-1]
        ends = layers.pointwise(1, last, 2.0, "concatenate") + layers.linear(1, last, 1)
        return join(*tables, product, beside, _mlp(layers, self.mlp), ends)
