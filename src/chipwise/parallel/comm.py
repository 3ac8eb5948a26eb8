"""One exchange between ranks, and its time inside one scale-up domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from chipwise.units import Real

__all__ = ["Comm", "Fabric", "comm_time"]

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p"]


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

    Bytes through a chip's port per direction: all_reduce 2 (r - 1) / r, the other collectives (r - 1) / r,
    p2p all of the payload (ring and pairwise algorithms; bandwidth-optimal).
    """
    ranks = np.maximum(np.asarray(comm.ranks, dtype=float), 1.0)
    moved = 1.0 if comm.kind == "p2p" else (ranks - 1.0) / ranks
    if comm.kind == "all_reduce":
        moved = 2.0 * moved
    alone = ranks <= 1.0
    transfer = np.where(alone, 0.0, moved * comm.payload_bytes / (fabric.efficiency * fabric.bytes_per_s))
    latency = np.where(alone, 0.0, fabric.base_s + fabric.hop_s * np.log2(ranks))
    return latency, transfer
