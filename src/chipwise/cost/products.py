"""Operators as matrix products: what a matrix unit is asked for, whatever the unit is.

Families of chips with matrix units (arrays, AMX tiles, planes) read operators through `products` and differ only
in what they do with rows, columns and depths that do not fill the unit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.moe import distinct_experts
from chipwise.workload.op import Op

QUERIES = 128.0
"""rows: of a tile of prompt attention, of whose masked keys half are computed. Source: Dao, 2023 (FlashAttention-2,
section 3.3: blocks of 64 or 128)."""


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products C[m, n] = A[m, k] x W[k, n]; numbers or arrays."""

    m: Real
    n: Real
    k: Real
    batch: Real

    @property
    def macs(self) -> Real:
        """Multiply-accumulates."""
        return self.batch * self.m * self.n * self.k


def products(op: Op) -> tuple[Product, ...]:
    """The products of an operator (of a convolution as im2col has them), none for element-wise work, lookups and scans.

    Experts: those that are hit, with their mean rows, once up and once down. Attention, per sequence and
    key/value head: scores [q g, D] x [D, keys] and weighted sum [q g, keys] x [keys, Dv], since the g query heads
    of a group share their keys. `keys` is what a query sees on average, and half a tile of masked keys.
    """
    d = op.dims
    if op.kind in ("gemm", "conv"):
        return (Product(d["m"], d["n"], d["k"], d["batch"]),)
    if op.kind == "experts":
        share = d["local_experts"] / d["experts"]
        hit = np.maximum(distinct_experts(d["tokens"], d["experts"], d["top_k"]) * share, 1e-9)
        rows = d["tokens"] * d["top_k"] / d.get("ranks", 1.0 / share) / hit
        up = Product(rows, d["inner"] * (d["matrices"] - 1.0), d["hidden"], hit)
        return (up, Product(rows, d["hidden"], d["inner"], hit))
    if op.kind == "attention":
        q = np.asarray(d["q"], dtype=float)
        pairs = op.flops / (2.0 * d["batch"] * d["heads"] * (d["head_dim"] + d["value_dim"]))
        keys = np.minimum(pairs / q + np.minimum(QUERIES, q - 1.0) / 2.0, d["kv"])
        rows, batch = q * (d["heads"] / d["kv_heads"]), d["batch"] * d["kv_heads"]
        return (Product(rows, keys, d["head_dim"], batch), Product(rows, d["value_dim"], keys, batch))
    return ()


def every_expert(op: Op, passes: Real) -> Op:
    """Routed experts as compilers of fixed shapes run them: every expert for every token, the results of those that a
    token did not choose times nothing. Where `passes` > 0; elsewhere (0) the operator as it is.

    FLOPs times E / k, the weights of all local experts; every expert's result [E, tokens, hidden] is written to memory
    and read again, `passes` times in all at 16 bit, on every rank that holds a part of its inner dimension.
    """
    d, dense = op.dims, np.asarray(passes) > 0.0
    share = d["local_experts"] / d["experts"]
    hit = np.maximum(distinct_experts(d["tokens"], d["experts"], d["top_k"]) * share, 1e-9)
    more = np.where(dense, d["experts"] / np.asarray(d["top_k"], dtype=float), 1.0)
    moved = 2.0 * np.asarray(passes) * d["local_experts"] * d["tokens"] * d["hidden"]
    return replace(
        op,
        flops=op.flops * more,
        weight_bytes=op.weight_bytes * np.where(dense, d["local_experts"] / hit, 1.0),
        activation_bytes=op.activation_bytes + moved,
        dims={**d, "top_k": d["top_k"] * more},
    )


def stretch(op: Op, rows: Real) -> Real:
    """Work of an operator on a unit that multiplies `rows` rows at once, over its own work: each product's rows
    are rounded up to whole tiles. 1 for operators without products."""
    done: Real = 0.0
    padded: Real = 0.0
    for p in products(op):
        done = done + p.macs
        padded = padded + p.macs * (np.ceil(p.m / rows) * rows / p.m)
    return np.where(np.asarray(done) > 0.0, padded / np.where(np.asarray(done) > 0.0, done, 1.0), 1.0)
