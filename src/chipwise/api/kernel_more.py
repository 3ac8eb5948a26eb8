"""`kernel` beyond single products and attention: routed experts, work on rows, and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chipwise.api.kernel import ASSUMED, chips_of, formats_of, sizes_of
from chipwise.api.kernel_moving import ROW_KINDS, WAYS, price_copy, price_rows
from chipwise.api.kernel_price import UNHELD, held
from chipwise.api.kernel_record import record_of, whole_report
from chipwise.api.kernel_routed import ROUTINGS, experts_op, price_experts, routing_of
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.cost.device import Device
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.kernel_records import KernelRecord, KernelReport
from chipwise.report.records import RefusalRecord
from chipwise.units import format_bytes
from chipwise.workload import op as ops

__all__ = ["ELEMENTWISE", "ROUTINGS", "WAYS", "copy", "experts", "rows"]

ELEMENTWISE = tuple(kind for kind in ROW_KINDS if kind not in ("norm", "softmax"))
"""Kinds of element-wise work."""


def experts(
    chips: Sequence[str],
    tokens: int,
    hidden: int,
    inter: int,
    experts: int,
    top_k: int,
    *,
    ranks: int = 1,
    routing: str = "random",
    dtype: str = "bf16",
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """Gated feed-forwards of `experts` of which each of `tokens` (of all ranks together) takes `top_k`, on the
    busiest of `ranks` that share them out; without the exchange between ranks.

    Raises as `gemm`, `UnknownNameError` for an unknown `routing`, and where `ranks` do not divide the experts.
    """
    if routing not in ROUTINGS:
        raise UnknownNameError("routing", routing, ROUTINGS, f"one of {', '.join(ROUTINGS)}")
    d = sizes_of(
        {
            "tokens": tokens,
            "hidden": hidden,
            "inter": inter,
            "experts": experts,
            "top-k": top_k,
            "ranks": ranks,
        }
    )
    if top_k > experts:
        raise UsageError(f"--top-k {top_k}: more than the {experts} experts")
    if experts % ranks:
        raise UsageError(f"--ranks {ranks} does not divide --experts {experts}")
    weight, activation = formats_of(dtype)
    op = experts_op(d, weight, activation, routing_of(routing, d))
    known = numbers or shipped_parameters()
    kernels: list[KernelRecord] = []
    refused: list[RefusalRecord] = []
    for chip in chips_of(chips, changes):
        device = Device.of(chip)
        if not (np.isfinite(device.memory_bytes_per_s) and np.isfinite(device.matrix[op.compute])):
            refused.append(RefusalRecord(chip.id, "NO_FIGURE", f"no memory bandwidth or {op.compute} peak"))
            continue
        if not held(op, chip):
            refused.append(RefusalRecord(chip.id, "CAPACITY", UNHELD))
            continue
        priced = price_experts(op, d, routing, dtype, chip, device, known)
        kernels.append(record_of(priced, op, chip, device))
    what = f"{top_k} of {experts} experts of {hidden:,} x {inter:,} for {tokens:,} tokens, {routing} routing"
    what = f"{what}, one of {ranks} ranks" if ranks > 1 else what
    alone = "the busiest rank on its own: no exchange of tokens, no shared experts"
    return whole_report(what, d, dtype, kernels, refused, (), (*ASSUMED, alone))


def rows(
    chips: Sequence[str],
    kind: str,
    m: int,
    n: int,
    *,
    changes: Mapping[str, str] | None = None,
    numbers: Parameters | None = None,
) -> KernelReport:
    """A norm, a softmax or element-wise work on `m` rows of `n` 16-bit values. Raises as `gemm`."""
    if kind not in ROW_KINDS:
        raise UnknownNameError("kind", kind, ROW_KINDS, f"one of {', '.join(ROW_KINDS)}")
    d = sizes_of({"m": m, "n": n})
    passes, flops, *_ = ROW_KINDS[kind]
    op = ops.pointwise(d["m"] * d["n"], passes, name=kind, flops_each=flops)
    known = numbers or shipped_parameters()
    kernels: list[KernelRecord] = []
    refused: list[RefusalRecord] = []
    for chip in chips_of(chips, changes):
        device = Device.of(chip)
        if not (np.isfinite(device.memory_bytes_per_s) and np.isfinite(device.vector_flops_per_s)):
            refused.append(
                RefusalRecord(chip.id, "NO_FIGURE", "no memory bandwidth or vector peak is published")
            )
            continue
        priced = price_rows(kind, op, d["m"], d["n"], chip, device, known)
        kernels.append(record_of(priced, op, chip, device))
    hot = "GPUs: run again and again on the same rows, so that what fits the cache is found there"
    return whole_report(f"{kind} of {m:,} rows of {n:,} values", d, "bf16", kernels, refused, (), (hot,))


def copy(
    chips: Sequence[str],
    num_bytes: float,
    way: str = "to-chip",
    *,
    changes: Mapping[str, str] | None = None,
) -> KernelReport:
    """A copy from the host to the chip, back, or inside its memory. Raises as `gemm`."""
    if way not in WAYS:
        raise UnknownNameError("way", way, WAYS, f"one of {', '.join(WAYS)}")
    op = ops.pointwise(num_bytes / 2.0, 2.0 if way == "on-chip" else 1.0, name="copy", flops_each=0.0)
    kernels: list[KernelRecord] = []
    refused: list[RefusalRecord] = []
    for chip in chips_of(chips, changes):
        device = Device.of(chip)
        priced = price_copy(way, num_bytes, chip, device)
        if priced is None or not np.isfinite(priced.time_s.mid):
            refused.append(RefusalRecord(chip.id, "NO_LINK", "no such link or bandwidth is published"))
            continue
        kernels.append(record_of(priced, op, chip, device, link=priced.anatomy.levels[0].bytes_per_s))
    assumed = ("host memory is pinned, near the chip, and nothing else is on the way",)
    return whole_report(
        f"{format_bytes(num_bytes)} {way}", {"bytes": num_bytes}, "", kernels, refused, (), assumed
    )
