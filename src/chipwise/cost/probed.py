"""A device whose operators were timed where it stands: few rates per kind of operator and type, fitted to those times.

Nothing is read from the catalogue: what a socket, a virtual machine's share of one or an unknown card reaches under a
framework is what the framework was seen to reach on it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.errors import UsageError
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.op import Op


@dataclass(frozen=True, slots=True)
class ProbedRates:
    """t = start_s + flop_s FLOPs + byte_s bytes + other_s others, of one kind of operator in one type.

    | field | unit | meaning |
    |---|---|---|
    | start_s | s | from the call until the first multiply-add: dispatch, threads, launch |
    | flop_s | s/FLOP | 1 / what products sustain |
    | byte_s | s/B | 1 / what operands arrive at, each read once |
    | other_s | s each | of products and convolutions: per byte of weights, packed first; of attention: per score; of
    work on rows: per byte that no cache holds |
    | scale | tokens, bytes | of attention: rows whose masked scores are computed too, 0: none, infinite: all; of work
    on rows: what the caches hold |
    """

    start_s: float
    flop_s: float
    byte_s: float
    other_s: float = 0.0
    scale: float = 0.0


@dataclass(frozen=True, slots=True)
class Probed:
    """Rates by `group_of`; `stream_bytes_per_s` of a copy in memory and `cache_bytes_per_s` of one that stays within
    `cache_bytes`, bytes read and written together; `copy_s` is what the smallest copy takes."""

    rates: Mapping[str, ProbedRates]
    stream_bytes_per_s: float
    cache_bytes_per_s: float
    cache_bytes: float
    copy_s: float

    def take(self, index: np.ndarray) -> Probed:
        """The same: there is one such device."""
        return self


ROWS: Mapping[str, tuple[str, ...]] = {
    "rows": ("batch_norm_legit_no_training", "batch_norm_backward", "pool2d_with_indices_backward"),
    "batchnorm": ("batch_norm", "batchnorm"),
    "norm": ("norm",),
    "gelu": ("gelu", "silu", "softmax", "exp", "tanh", "sigmoid", "erf"),
    "pool": ("pool",),
}
"""Kinds of work on rows by parts of the names of operators, the first that has one; all other is `rows`, which takes
what its bytes take: so does a batch normalization that knows its statistics, and what goes backward by those of the
forward pass."""


def group_of(op: Op) -> str:
    """What shares rates: kind and type. Convolutions channel by channel are a kind of their own, so are those of single
    points, which gather nothing and run as products, and the work on rows that `ROWS` tells apart."""
    kind = op.kind
    if op.compute == "vector":
        return f"{next((work for work, names in ROWS.items() if any(n in op.name for n in names)), 'rows')}.vector"
    if kind == "conv" and np.all(np.asarray(op.dims["batch"]) > 1.0):
        return f"depthwise.{op.compute}"
    if kind == "conv" and np.all(np.asarray(op.dims["kernel"]) == 1.0) and np.all(op.dims["strides"] == 1.0):
        return f"pointwise.{op.compute}"
    return f"{kind}.{op.compute}"


def terms(op: Op, scale: float) -> tuple[Real, Real, Real]:
    """(FLOPs, bytes, others) of `ProbedRates`. Attention computes keys = min(kv, pairs / q + min(scale, q - 1) / 2) per
    query where it is causal: FLOPs 4 b h q keys d. Of work on rows the bytes tell all (0 FLOPs), and its last term is
    those that `scale` bytes of cache do not hold: none up to `scale`, all from twice as many."""
    if op.compute == "vector":
        return 0.0, op.bytes, op.bytes * np.clip(op.bytes / max(scale, 1.0) - 1.0, 0.0, 1.0)
    if op.kind != "attention":
        weights = op.weight_bytes if op.kind in ("gemm", "conv") else 0.0
        return op.flops, op.bytes, weights
    d = op.dims
    width = d["head_dim"] + d["value_dim"]
    pairs = op.flops / (2.0 * d["batch"] * d["heads"] * d["q"] * width)
    masked = np.minimum(scale, np.asarray(d["q"], dtype=float) - 1.0) / 2.0 * d.get("causal", 1.0)
    scores = d["batch"] * d["heads"] * d["q"] * np.minimum(pairs + masked, d["kv"])
    return 2.0 * scores * width, op.bytes, scores


def probed_time(op: Op, p: Probed) -> Cost:
    """Seconds of one operator by resource. Work on rows that was not timed is priced as a copy of its bytes, from cache
    as far as they fit.

    Raises `UsageError` for a kind and type of product that was not timed.
    """
    if op.compute == "vector" and group_of(op) not in p.rates:
        held = np.clip(2.0 - op.bytes / p.cache_bytes, 0.0, 1.0)
        cached, streamed = (op.bytes * held / p.cache_bytes_per_s, op.bytes * (1.0 - held) / p.stream_bytes_per_s)
        return Cost({"launch": op.launches * p.copy_s, "on-chip": cached, "memory": streamed})
    group = group_of(op)
    if group not in p.rates:
        raise UsageError(f"{group} was not timed on this machine", f"timed: {', '.join(sorted(p.rates))}")
    r = p.rates[group]
    flops, moved, other = terms(op, r.scale)
    return Cost(
        {
            "compute": flops * r.flop_s,
            "memory": moved * r.byte_s,
            "on-chip": other * r.other_s,
            "launch": op.launches * r.start_s,
        }
    )
