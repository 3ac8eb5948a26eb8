"""Collectives inside one scale-up domain: latency and transfer that a pipeline half overlaps.

For GPUs, whose collectives were measured over four decades of bytes: six numbers per kind and library
(`calibrate.kernel_priors.COLLECTIVE`). Families without such rows cannot tell six numbers and take the straight line
of `parallel.comm`; tori and groups that leave a domain need the algorithms of `parallel.topology`.

S bytes, r ranks. S is what nccl-tests and frameworks call the size: the buffer of each rank for all-reduce,
the output of all-gather, the input of reduce-scatter, the send buffer of all-to-all, the message of p2p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from chipwise.units import Real

__all__ = ["Algorithm", "CollectiveParameters", "Kind", "Transfer", "collective", "wire_bytes"]

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "p2p"]
Algorithm = Literal["ring", "direct"]

# One direct all-reduce in two phases (scatter and sum, gather) instead of one.
TWO_PHASES = 1.7


@dataclass(frozen=True, slots=True)
class Transfer:
    """Seconds of one exchange by cause; they add up to the time that passes."""

    latency_s: Real
    transfer_s: Real

    @property
    def total_s(self) -> Real:
        """Seconds until all ranks are done."""
        return self.latency_s + self.transfer_s


@dataclass(frozen=True, slots=True)
class CollectiveParameters:
    """Fitted numbers of one kind of collective under one library; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | link_share | of link bandwidth | at 4 ranks, large messages |
    | rank_gain | exponent | link_share grows as (r / 4)^rank_gain: more links in use, sums in the switch |
    | base_s | s | start and end, ring algorithms |
    | step_s | s | each step around the ring |
    | direct_s | s | start and end of kernels that read their peers' memory |
    | sharpness | exponent | of the sum of latency and transfer |
    """

    link_share: Real
    rank_gain: Real
    base_s: Real
    step_s: Real
    direct_s: Real
    sharpness: Real


def wire_bytes(kind: Kind, num_bytes: Real, ranks: Real) -> Real:
    """Bytes through one chip's port per direction: all-reduce 2 (r - 1) / r of S, p2p and broadcast S, others
    (r - 1) / r."""
    if kind in ("p2p", "broadcast"):
        return num_bytes
    moved: Real = (2.0 if kind == "all_reduce" else 1.0) * num_bytes * (ranks - 1.0) / ranks
    return moved


def collective(
    kind: Kind,
    num_bytes: Real,
    ranks: Real,
    link_bytes_per_s: Real,
    p: CollectiveParameters,
    *,
    algorithm: Algorithm = "ring",
) -> Transfer:
    """t = (L^q + X^q)^(1/q), L latency, X transfer, q = sharpness.

    q < 1 makes the middle slower than the sum: chunks that fill a pipeline are chosen between latency and
    rate, which with the best chunk costs (sqrt L + sqrt X)^2 (q = 1/2; fitted 0.7). Ring: L = base_s + step_s
    x steps, 2 (r - 1) for all-reduce, r - 1 for the others, 1 for p2p; X = wire bytes over
    link_share (r / 4)^rank_gain link. Direct (custom all-reduce of serving frameworks): the better of one
    phase, L = direct_s and (r - 1) S on the wire, and of two, 1.7 direct_s and the wire bytes of a ring.
    Zero for one rank. Ignores topology inside the domain (pairs of links, PCIe switches) and contention.
    """
    r = np.maximum(np.asarray(ranks, dtype=float), 1.0)
    rate = link_bytes_per_s * p.link_share * (np.maximum(r, 2.0) / 4.0) ** p.rank_gain
    wire = wire_bytes(kind, num_bytes, r)
    if algorithm == "direct" and kind == "all_reduce":
        one = _joined(p.direct_s, (r - 1.0) * num_bytes / rate, p.sharpness)
        two = _joined(TWO_PHASES * p.direct_s, wire / rate, p.sharpness)
        best = one.total_s <= two.total_s
        latency: Real = np.where(best, one.latency_s, two.latency_s)
        transfer: Real = np.where(best, one.transfer_s, two.transfer_s)
    else:
        steps = {"all_reduce": 2.0 * (r - 1.0), "p2p": 1.0}.get(kind, r - 1.0)
        both = _joined(p.base_s + p.step_s * steps, wire / rate, p.sharpness)
        latency, transfer = both.latency_s, both.transfer_s
    alone = r <= 1.0
    return Transfer(np.where(alone, 0.0, latency), np.where(alone, 0.0, transfer))


def _joined(latency: Real, transfer: Real, q: Real) -> Transfer:
    """(L^q + X^q)^(1/q), shared out as L^q to X^q."""
    a, b = latency**q, transfer**q
    total = (a + b) ** (1.0 / q)
    return Transfer(total * a / (a + b), total * b / (a + b))
