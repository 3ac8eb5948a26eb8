"""Measured kernels on chips of other families, or with types that no SIMT formula knows: `cost.time` of one
operator per row, with a wide interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_labels import KINDS, TYPES, Columns, causal_of, number_of, text_of, types_of
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.cost.device import Device
from chipwise.cost.roofline import roofline, time
from chipwise.parallel.collective import CollectiveParameters, exchange
from chipwise.parallel.network import Network
from chipwise.units import Array, Real
from chipwise.workload.op import Op, causal_pairs

__all__ = ["LOG_SPREAD", "price_others"]

# One standard deviation of log(time): shares of peak and launch times of a family that was not fitted to kernels.
LOG_SPREAD = 0.6


def price_others(columns: Columns, chips: Mapping[str, Chip], numbers: Parameters | None) -> Array:
    """Seconds of every row, NaN where the chip is not in `chips` or the operator is not known.

    Rows of one chip, operator and type are priced together. Types that are not known count as 16 bit. Without
    `numbers`: the naive roofline, peaks and nothing else.
    """
    chip = text_of(columns, "chip")
    op, types, cache = text_of(columns, "op"), types_of(columns), text_of(columns, "kv_dtype")
    keys = np.char.add(np.char.add(np.char.add(chip, "|"), op), np.char.add(np.char.add("|", types), "|"))
    keys = np.char.add(keys, cache)
    out: Array = np.full(len(chip), np.nan)
    distinct, codes = np.unique(keys, return_inverse=True)
    for i, key in enumerate(distinct.tolist()):
        which, kind, dtype, kv = str(key).split("|", 3)
        if which not in chips:
            continue
        at = np.flatnonzero(codes == i)
        rows = {name: values[at] for name, values in columns.items()}
        out[at] = _price(kind, dtype, kv, rows, chips[which], numbers)
    return out


def _price(
    kind: str, dtype: str, kv: str, rows: Columns, chip: Chip, numbers: Parameters | None
) -> Array | float:
    device = Device.of(chip)
    if kind in KINDS:
        ranks = np.maximum(number_of(rows, "ranks", 2.0), 2.0)
        network = Network(device.link_bytes_per_s, np.inf, np.nan)
        naive = CollectiveParameters(1.0, 1.0, 0.0, 0.0, 1.0)
        kind = KINDS[kind]
        p = naive if numbers is None else numbers.links(chip)[kind]  # type: ignore[index]
        found = exchange(kind, number_of(rows, "bytes", np.nan), ranks, network, p)  # type: ignore[arg-type]
        return np.asarray(found.total_s)
    op = _op(kind, dtype, kv, rows)
    if op is None:
        return float(np.nan)
    if numbers is None:
        return np.asarray(roofline(op, device))
    return np.asarray(time(op, device, numbers.efficiency(chip.family, "any")).total_s)


def _op(kind: str, dtype: str, kv: str, rows: Columns) -> Op | None:
    """The operator of rows that share kind and types; None for a kind that is not known."""
    _, compute, weight, activation, output, _, _ = TYPES.get(dtype, TYPES["bfloat16"])

    def d(name: str, default: float = 1.0) -> NDArray[Any]:
        return number_of(rows, name, default)

    def made(name: str, kind: Any, flops: Real, weights: Real, moved: Real, cached: Real, **dims: Real) -> Op:
        return Op(kind, name, compute, flops, "", weights, moved, cached, dims=dims)

    if kind in ("gemm", "batched_gemm"):
        m, n, k, b = d("m"), d("n"), d("k"), d("batch")
        moved = b * (m * k * activation + m * n * output)
        return made(kind, "gemm", 2 * b * m * n * k, b * n * k * weight, moved, 0.0, m=m, n=n, k=k, batch=b)
    if kind.startswith(("attention", "mla")):
        latent, decoding = kind.startswith("mla"), kind.endswith("decode")
        q, seen, b, h = d("q_len"), d("kv_len"), d("batch"), d("heads")
        keys = np.full(len(q), 576.0 if decoding else 192.0) if latent else d("head_dim", 128.0)
        values = np.full(len(q), 512.0 if decoding else 128.0) if latent else keys
        groups = np.where(latent & ~np.array(decoding), h, 1.0) if latent else d("kv_heads")
        window = d("window", 0.0)
        pairs = np.where(causal_of(rows), causal_pairs(q, seen, window), q * seen)
        visible = np.minimum(seen, np.where(window > 0, window + q - 1.0, np.inf))
        per_token = groups * (keys if latent and decoding else keys + values)
        size = 1.0 if (kv or dtype) == "fp8" else 2.0
        return made(
            kind, "attention", 2 * b * pairs * h * (keys + values), 0.0, b * q * h * (keys + values) * 2,
            b * visible * per_token * size, batch=b, q=q, kv=seen, heads=h, kv_heads=groups, head_dim=keys,
            value_dim=values, window=window, top_k=0.0,
        )  # fmt: skip
    if kind == "moe":
        tokens, hidden, inter = d("tokens"), d("hidden"), d("inter") / d("tp")
        total, top_k, ranks = d("experts"), d("topk"), d("ep")
        pairs, each = tokens * top_k / ranks, 3.0 * hidden * inter
        distinct = np.maximum(np.minimum(total, tokens * top_k) / ranks, 1.0)
        return made(kind, "experts", 2 * pairs * each, distinct * each * weight,
                    pairs * (2 * hidden + 3 * inter) * 2.0, 0.0)  # fmt: skip
    if kind in ("layernorm", "softmax", "elementwise"):
        moved = d("bytes", np.nan)
        return Op(
            "pointwise", kind, "vector", 2.0 * moved, activation_bytes=moved, dims={"elements": moved / 4}
        )
    return None
