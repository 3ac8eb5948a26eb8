"""One exchange between ranks, and its time inside one scale-up domain where collectives were not measured.

Latency plus bytes over bandwidth: three numbers per family, which is as much as can be believed of chips without
collective benchmarks. Where there are some, `predict.exchange` takes `parallel.collective` instead. Both put the same
bytes on the wire (`wire_bytes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallel.collective import Kind, wire_bytes
from chipwise.units import Real

__all__ = ["Comm", "Fabric", "comm_time"]


@dataclass(frozen=True, slots=True)
class Comm:
    """`payload_bytes`: all_reduce the buffer of each rank; all_gather its output, reduce_scatter its input;
    all_to_all the send buffer of each rank; p2p the message. `axis` is the part of the layout it serves."""

    kind: Kind
    payload_bytes: Real
    ranks: Real
    axis: str


@dataclass(frozen=True, slots=True)
class Fabric:
    """What joins the ranks: bytes/s of one direction of one chip, the share of it that collectives reach,
    and a latency of `base_s` + `hop_s` log2(ranks)."""

    bytes_per_s: Real
    efficiency: Real
    base_s: Real
    hop_s: Real


def comm_time(comm: Comm, fabric: Fabric) -> tuple[Real, Real]:
    """(latency seconds, transfer seconds) of one exchange; both zero for a single rank.

    base_s + hop_s log2(r), and the bytes of ring and pairwise algorithms, which are bandwidth-optimal, over
    efficiency x bytes/s.
    """
    ranks = np.maximum(np.asarray(comm.ranks, dtype=float), 1.0)
    alone = ranks <= 1.0
    wire = wire_bytes(comm.kind, comm.payload_bytes, ranks)
    transfer = np.where(alone, 0.0, wire / (fabric.efficiency * fabric.bytes_per_s))
    latency = np.where(alone, 0.0, fabric.base_s + fabric.hop_s * np.log2(ranks))
    return latency, transfer
