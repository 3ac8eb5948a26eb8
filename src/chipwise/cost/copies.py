"""Copies between a host and a chip, and inside a chip's memory.

Bytes cross the host's bus (PCIe, NVLink-C2C) or the memory's own; nothing is computed.
"""

from __future__ import annotations

from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.units import Real
from chipwise.values import dataclass

WAYS = ("to-chip", "to-host", "on-chip")
"""Where bytes go: over the host's link one way or the other, or inside the chip's memory."""


@dataclass(frozen=True, slots=True)
class CopyParameters:
    """| field | unit | meaning |
    |---|---|---|
    | host_share | of the link | pinned memory: packet headers and flow control take the rest |
    | memory_share | of bandwidth | one stream of reads and one of writes |
    | host_start_s | s | call of the driver to first byte |
    | memory_start_s | s | launch to finish of an empty copy |
    """

    host_share: Real
    memory_share: Real
    host_start_s: Real
    memory_start_s: Real


COPIES = CopyParameters(host_share=0.85, memory_share=0.85, host_start_s=10e-6, memory_start_s=4e-6)
"""shares of the link and of memory, seconds to start: of one copy. Chosen: no copy was measured; PCIe spends 24 of
280 bytes of a packet on headers and as much again on flow control, and 10 us is the usual time of an asynchronous
copy that moves nothing; moves offloading and hand-overs of caches in proportion."""
PRIOR_LOG_SPREAD = 0.25
"""logarithm of seconds: one standard deviation of a copy. Chosen: as nothing was measured, an 80 % interval of a
factor of 1.4; moves that interval."""


def host_copy(num_bytes: Real, link_bytes_per_s: Real, p: CopyParameters = COPIES) -> Cost:
    """t = start + bytes / (share x link), one direction, from pinned memory. Ignores NUMA and other copies."""
    return Cost({"network": num_bytes / (p.host_share * link_bytes_per_s), "launch": p.host_start_s + 0.0 * num_bytes})


def memory_copy(num_bytes: Real, device: Device, p: CopyParameters = COPIES) -> Cost:
    """t = start + 2 bytes / (share x bandwidth): each byte is read and written."""
    return Cost(
        {
            "memory": 2.0 * num_bytes / (p.memory_share * device.memory_bytes_per_s),
            "launch": p.memory_start_s + 0.0 * num_bytes,
        }
    )
