"""One operator with its numbers: what it multiplies and what it moves. No chip, no communication.

Every number may be an array; they broadcast together. Letters: m rows (tokens), n output and k input
features; batch independent products or sequences; q new and kv visible tokens per sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

import numpy as np

from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS, Format

Kind = Literal["gemm", "conv", "attention", "experts", "pointwise", "lookup", "scan"]

UNJOINED = "unjoined"
"""Entry of `dims` of work on elements: the bytes that its calls move where each is a kernel, over those of one kernel
that joins them."""


@dataclass(frozen=True, slots=True)
class Op:
    """`flops` counts a multiply-add as two. Bytes are compulsory traffic: each operand once.

    `compute` is the data type the matrix unit multiplies in, `weight` the storage format of the weights
    (W4A16 has weight "int4" and compute "bf16"). `dims` holds what a cost model may need beyond the sums;
    `launches` is the number of kernels.
    """

    kind: Kind
    name: str
    compute: str
    flops: Real
    weight: str = ""
    weight_bytes: Real = 0.0
    activation_bytes: Real = 0.0
    kv_bytes: Real = 0.0
    launches: float = 1.0
    dims: Mapping[str, Real] = field(default_factory=dict)

    @property
    def bytes(self) -> Real:
        """All compulsory traffic."""
        return self.weight_bytes + self.activation_bytes + self.kv_bytes


def stacked(ops: Sequence[Op]) -> Op:
    """One operator of several that differ in their sizes alone, along a first axis."""
    names = ops[0].dims
    columns = [
        [op.flops for op in ops],
        [op.weight_bytes for op in ops],
        [op.activation_bytes for op in ops],
        [op.kv_bytes for op in ops],
        *([op.dims[name] for op in ops] for name in names),
    ]
    shape = np.broadcast_shapes(*(np.shape(x) for column in columns for x in column))
    flops, weights, activations, kv, *dims = (
        np.stack([np.broadcast_to(x, shape) for x in column]) for column in columns
    )
    return replace(
        ops[0],
        flops=flops,
        weight_bytes=weights,
        activation_bytes=activations,
        kv_bytes=kv,
        dims=dict(zip(names, dims, strict=True)),
    )


def gemm(
    m: Real,
    n: Real,
    k: Real,
    weight: Format = FORMATS["bf16"],
    activation: Format = FORMATS["bf16"],
    *,
    batch: Real = 1.0,
    name: str = "gemm",
) -> Op:
    """C[m, n] = A[m, k] x W[k, n], `batch` times: 2 m n k FLOPs; A and W are read and C is written once.

    The product runs in the activations' type: low-precision weights under 16-bit activations are widened
    first. Outputs are 16 bit unless activations are wider.
    """
    out_bits = max(16.0, activation.bits)
    return Op(
        kind="gemm",
        name=name,
        compute=activation.compute,
        weight=weight.name,
        flops=2.0 * batch * m * n * k,
        weight_bytes=batch * weight.bytes(n, k),
        activation_bytes=batch * (m * k * activation.bits + m * n * out_bits) / 8.0,
        dims={"m": m, "n": n, "k": k, "batch": batch},
    )


def convolution(
    images: Real,
    channels: Real,
    filters: Real,
    inputs: Real,
    outputs: Real,
    kernel: Real,
    weight: Format = FORMATS["bf16"],
    activation: Format = FORMATS["bf16"],
    *,
    groups: Real = 1.0,
    name: str = "conv",
) -> Op:
    """A convolution over any number of dimensions: `inputs` and `outputs` are positions of one image (height x width,
    or frames x height x width), `kernel` the positions of a filter; `groups` cut channels and filters alike.

    As a product per group: m = images x outputs, n = filters / groups, k = kernel x channels / groups; FLOPs 2 m n k
    groups. Inputs are read and outputs written once: windows are gathered while reading.
    """
    m, n, k = images * outputs, filters / groups, kernel * channels / groups
    moved = images * (inputs * channels * activation.bits + outputs * filters * max(16.0, activation.bits))
    return Op(
        kind="conv",
        name=name,
        compute=activation.compute,
        weight=weight.name,
        flops=2.0 * groups * m * n * k,
        weight_bytes=groups * weight.bytes(n, k),
        activation_bytes=moved / 8.0,
        dims={"m": m, "n": n, "k": k, "batch": groups, "kernel": kernel, "images": images, "strides": inputs / outputs},
    )


def causal_pairs(q: Real, kv: Real, window: Real = 0.0) -> Real:
    """(query, key) pairs of one sequence: q new tokens, each seeing itself and all before it, kv in all.

    q (kv - q) + q (q + 1) / 2 without a window; with a window w a query sees at most w keys:
    sum over the new positions p = kv - q + 1 .. kv of min(p, w).
    """
    full = q * (kv - q) + q * (q + 1.0) / 2.0
    limit = np.where(np.asarray(window) > 0, window, np.inf)
    # positions not past the window see p keys, the rest see w
    short = np.clip(limit - (kv - q), 0.0, q)
    ramp = short * (kv - q) + short * (short + 1.0) / 2.0
    capped = ramp + np.where(q > short, (q - short) * np.minimum(limit, kv), 0.0)
    pairs: Real = np.where(np.asarray(window) > 0, capped, full)
    return pairs if np.ndim(pairs) else float(pairs)


def attention(
    batch: Real,
    q: Real,
    kv: Real,
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    cache: Format = FORMATS["bf16"],
    *,
    window: Real = 0.0,
    causal: bool = True,
    value_dim: Real | None = None,
    latent: bool = False,
    top_k: Real = 0.0,
    guessed: bool = False,
    name: str = "attention",
) -> Op:
    """Scores and weighted sum of `batch` sequences, fused so that scores never leave the chip.

    FLOPs: 2 pairs heads (head_dim + value_dim). Keys and values that are visible are read once per
    kv head; queries are read and outputs written in 16 bit. `latent`: values are a part of the keys, which
    are read once for both. `top_k` > 0: a query attends to that many selected tokens at most; queries
    choose on their own, so that at most top_k x q of the cache is read. `guessed`: the new tokens are guesses to be
    verified.
    """
    value = head_dim if value_dim is None else value_dim
    pairs = causal_pairs(q, kv, np.where(np.asarray(top_k) > 0, top_k, window)) if causal else q * kv
    limit = np.where(np.asarray(window) > 0, window + q - 1.0, np.inf)
    limit = np.where(np.asarray(top_k) > 0, np.asarray(top_k) * q, limit)
    visible = np.minimum(kv, limit)
    per_token = kv_heads * (head_dim if latent else head_dim + value)
    return Op(
        kind="attention",
        name=name,
        compute="bf16",
        flops=2.0 * batch * pairs * heads * (head_dim + value),
        activation_bytes=batch * q * heads * (head_dim + value) * 2.0,
        kv_bytes=batch * visible * per_token * (cache.bits / 8.0),
        dims={
            "batch": batch,
            "q": q,
            "kv": kv,
            "heads": heads,
            "kv_heads": kv_heads,
            "head_dim": head_dim,
            "value_dim": value,
            "window": window,
            "top_k": top_k,
            "causal": 1.0 if causal else 0.0,
        }
        | ({"guessed": 1.0} if guessed else {}),
    )


def decodes(op: Op) -> bool:
    """Whether an attention takes kernels of decoding: one new token per sequence, or guesses that are verified, whose
    queries share a read of the cache."""
    return bool(op.dims.get("guessed", 0.0)) or bool(np.all(np.asarray(op.dims.get("q", 1.0)) == 1.0))


def scan(
    batch: Real, q: Real, heads: Real, flops_per_token: Real, state_bytes: Real, row_values: Real, *, name: str = "scan"
) -> Op:
    """A recurrence over `q` new tokens of `batch` sequences: `flops_per_token` over all heads; the state of
    `state_bytes` per sequence is read and written once; `row_values` 16-bit values per token go in and out.
    """
    return Op(
        kind="scan",
        name=name,
        compute="bf16",
        flops=batch * q * flops_per_token,
        activation_bytes=batch * q * row_values * 2.0,
        kv_bytes=2.0 * batch * state_bytes,
        dims={"batch": batch, "q": q, "heads": heads, "state_bytes": state_bytes},
    )


def pointwise(elements: Real, passes: float, *, name: str = "pointwise", flops_each: float = 4.0) -> Op:
    """Element-wise work and row reductions (norms, activations, residuals): `passes` 16-bit reads or writes
    of `elements` values."""
    return Op(
        kind="pointwise",
        name=name,
        compute="vector",
        flops=flops_each * elements,
        activation_bytes=2.0 * passes * elements,
        dims={"elements": elements},
    )


def lookup(rows: Real, width: Real, table: Format = FORMATS["bf16"], *, name: str = "lookup") -> Op:
    """`rows` rows of a table read and written out in 16 bit."""
    return Op(
        kind="lookup",
        name=name,
        compute="vector",
        flops=0.0 * rows,
        weight=table.name,
        weight_bytes=rows * width * (table.bits / 8.0),
        activation_bytes=2.0 * rows * width,
        dims={"rows": rows, "width": width},
    )
