"""Groups of ranks on a network of two tiers: what bandwidth one rank of a group gets, and all-to-alls over it.

A fabric (scale-up) joins `domain` devices; a network (scale-out) joins the domains. Ranks of a group lie
`stride` devices apart: tensor-parallel ranks next to each other (stride 1), data-parallel ranks tp x cp apart.
Everything broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.units import Array, Real

__all__ = ["Network", "Tiered", "all_to_all", "group_rate", "hops"]


@dataclass(frozen=True, slots=True)
class Network:
    """One direction, per device. `axes` > 0: a torus of so many dimensions; `mesh` 1: a link between every
    pair, of which a group of n uses n - 1; `reduces` 1: the switch sums (NVLink SHARP)."""

    link_bytes_per_s: Real
    domain: Real
    nic_bytes_per_s: Real
    axes: Real = 0.0
    mesh: Real = 0.0
    reduces: Real = 0.0


@dataclass(frozen=True, slots=True)
class Tiered:
    """Bytes/s of a rank inside its domain and across domains, ranks of the group per domain, and neighbours that
    a piece passes on its way round: r - 1, on a torus the sum over its axes."""

    inside: Real
    across: Real
    together: Real
    leaves: Array
    steps: Real

    @property
    def bytes_per_s(self) -> Real:
        """What a hierarchical collective runs at: the slower tier; all NICs of a domain work for the group, so
        that a rank moves `together` times what its own NIC does."""
        return np.where(self.leaves, np.minimum(self.inside, self.across * self.together), self.inside)


def group_rate(n: Network, ranks: Real, stride: Real, link: Real, net: Real) -> Tiered:
    """Bandwidth of a group of `ranks`, `stride` apart; `link` and `net` are the shares that collectives reach.

    Torus: a group of neighbours owns one axis, Λ / axes; a group further apart owns the others, all of them
    where its neighbours are alone. Full mesh: Λ (n - 1) / (Ω - 1) for a group of n. Groups that are side by
    side share the NICs of a domain: together = Ω / stride.
    """
    rate = n.link_bytes_per_s * _part(n, ranks, stride)
    leaves = np.asarray(ranks * stride > n.domain)
    together = np.maximum(np.minimum(ranks, n.domain / stride), 1.0)
    return Tiered(link * rate, net * n.nic_bytes_per_s, together, leaves, _steps(n, ranks))


def _steps(n: Network, ranks: Real) -> Real:
    ring = np.maximum(ranks, 1.0) - 1.0
    if np.ndim(n.axes) == 0 and not float(n.axes):
        return ring
    axes = np.maximum(n.axes, 1.0)
    grid = axes * (np.maximum(ranks, 1.0) ** (1.0 / axes) - 1.0)
    return np.where((np.asarray(n.axes) > 0) & (np.asarray(ranks) > 32), grid, ring)


def _part(n: Network, ranks: Real, stride: Real) -> Real:
    if np.ndim(n.axes) == 0 and not float(n.axes) and np.ndim(n.mesh) == 0 and not float(n.mesh):
        return 1.0
    axes = np.maximum(n.axes, 1.0)
    far = np.asarray(stride) > 1
    torus = np.where(
        far, np.maximum(axes - 1.0, 1.0) / axes, np.where(np.asarray(ranks) > 32, 1.0, 1.0 / axes)
    )
    mesh = np.clip(
        (ranks - 1.0) / np.maximum(n.domain - 1.0, 1.0), 1.0 / np.maximum(n.domain - 1.0, 1.0), 1.0
    )
    return np.where(np.asarray(n.axes) > 0, torus, np.where(np.asarray(n.mesh) > 0, mesh, 1.0))


def hops(ranks: Real) -> Real:
    """Doublings of a group: log2, 0 for one rank."""
    return np.log2(np.maximum(ranks, 1.0))


def all_to_all(
    payload_bytes: Real,
    copies: Real,
    ranks: Real,
    n: Network,
    stride: Real,
    link: Real,
    net: Real,
    hop_s: Real,
) -> Real:
    """Seconds of an all-to-all where each rank sends `payload_bytes` to `copies` of the `ranks` on average.

    Inside a domain every copy but the rank's own crosses the fabric. Across domains a token crosses to a
    domain once, min(copies, domains - 1), over the rank's own NIC, and is spread there over the fabric.
    """
    inside = np.minimum(ranks, np.maximum(n.domain / stride, 1.0))
    domains = ranks / inside
    apart = (ranks - 1.0) / ranks
    fabric = np.minimum(copies, ranks) * payload_bytes * apart
    fabric = fabric / (link * n.link_bytes_per_s * _part(n, inside, stride))
    sent = np.minimum(copies, domains - 1.0) * payload_bytes
    wire = np.where(domains > 1, sent / (net * np.maximum(n.nic_bytes_per_s, 1.0)), 0.0)
    return np.where(np.asarray(ranks) > 1, np.maximum(fabric, wire) + hop_s * hops(ranks), 0.0)
