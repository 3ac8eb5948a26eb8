"""The fitted numbers of host and links, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Overheads"]


@dataclass(frozen=True, slots=True)
class Overheads:
    """Host work per iteration, per running sequence and per request; share and latencies of the links."""

    iteration_s: float
    sequence_s: float
    request_s: float
    link_share: float
    link_base_s: float
    link_hop_s: float
