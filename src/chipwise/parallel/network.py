"""Groups of ranks on a network of two tiers: what bandwidth one rank of a group gets, and all-to-alls over it.

A fabric (scale-up) joins `domain` devices; a network (scale-out) joins the domains. Ranks of a group lie
`stride` devices apart: tensor-parallel ranks next to each other (stride 1), data-parallel ranks tp x cp apart. The
groups in between do the same at the same time, as all groups of a training step do: what they share, each gets its
part of. Everything broadcasts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.units import Array, Real

__all__ = ["ALIKE", "Network", "Tiered", "Wiring", "all_to_all", "group_rate", "hops"]

LEAF = 32.0  # domains under one leaf switch: half of the 64 ports of a switch of 400 Gb/s


@dataclass(frozen=True, slots=True)
class Wiring:
    """Where links are not alike; zeros and ones: they are.

    | field | meaning |
    |---|---|
    | near, near_bytes_per_s, near_pair_bytes_per_s | devices that meet faster (bridged cards), how fast, a pair |
    | trunk, trunk_bytes_per_s | devices on one side of a way that all share (a socket, a PCIe switch), the way |
    | leaf, oversubscription | domains under a leaf switch; its links down over its links up, rail by rail |
    """

    near: Real = 0.0
    near_bytes_per_s: Real = 0.0
    near_pair_bytes_per_s: Real = 0.0
    trunk: Real = 0.0
    trunk_bytes_per_s: Real = 0.0
    leaf: Real = LEAF
    oversubscription: Real = 1.0

    @property
    def even(self) -> bool:
        """Whether no link differs."""
        return not (np.any(self.near) or np.any(self.trunk))


ALIKE = Wiring()


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
    wiring: Wiring = ALIKE


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
    side share the NICs of a domain: together = Ω / stride. The rest is `Wiring`: groups that cross to the other
    side of a domain share the way there, min(stride, trunk) of them; groups whose ranks lie s domains apart cross
    from leaf to leaf, min(s, leaf) of them over the leaf / oversubscription links up of a rail.
    """
    rate = n.link_bytes_per_s * _part(n, ranks, stride)
    if not n.wiring.even:
        rate = _wired(n.wiring, rate, ranks, stride)
    leaves = np.asarray(ranks * stride > n.domain)
    together = np.maximum(np.minimum(ranks, n.domain / stride), 1.0)
    nic = n.nic_bytes_per_s * _spine(n, ranks, stride, np.maximum(stride / n.domain, 1.0))
    return Tiered(link * rate, net * nic, together, leaves, _steps(n, ranks))


def _wired(w: Wiring, rate: Real, ranks: Real, stride: Real) -> Real:
    """Bytes/s inside a domain of unequal links: bridged neighbours, and a way that groups share."""
    span = np.asarray(ranks * stride)
    near = np.minimum(w.near_bytes_per_s, w.near_pair_bytes_per_s * np.maximum(ranks - 1.0, 1.0))
    shared = w.trunk_bytes_per_s / np.minimum(stride, np.maximum(w.trunk, 1.0))
    crosses = np.asarray(w.trunk) > 0
    rate = np.where(crosses & (span > w.trunk), np.minimum(rate, shared), rate)
    return np.where((np.asarray(w.near) > 0) & (span <= w.near), near, rate)


def _spine(n: Network, ranks: Real, stride: Real, flows: Real) -> Real:
    """Share of its NIC that a rank keeps where `flows` groups cross each leaf's links up; 1 below one leaf."""
    w = n.wiring
    if np.ndim(w.oversubscription) == 0 and float(w.oversubscription) <= 1.0:
        return 1.0
    spans = np.asarray(ranks * stride / n.domain > w.leaf)
    kept = np.minimum(1.0, w.leaf / (w.oversubscription * np.minimum(flows, w.leaf)))
    return np.where(spans, kept, 1.0)


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
    domain once, min(copies, domains - 1), over the rank's own NIC, and is spread there over the fabric. What goes to
    the other side of a domain shares the way there with all that its side sends; what goes to other leaves shares
    their links up.
    """
    inside = np.minimum(ranks, np.maximum(n.domain / stride, 1.0))
    domains = ranks / inside
    apart = (ranks - 1.0) / ranks
    fabric = np.minimum(copies, ranks) * payload_bytes * apart
    if n.wiring.even:
        fabric = fabric / (link * n.link_bytes_per_s * _part(n, inside, stride))
    else:
        fabric = _crossing(n, fabric, inside, stride, link)
    sent = np.minimum(copies, domains - 1.0) * payload_bytes
    kept: Real = 1.0
    if np.ndim(n.wiring.oversubscription) or float(n.wiring.oversubscription) > 1.0:
        away = 1.0 - n.wiring.leaf / np.maximum(ranks * stride / n.domain, n.wiring.leaf)
        kept = _spine(n, ranks, stride, np.maximum(away, 1e-9) * n.wiring.leaf)
    wire = np.where(domains > 1, sent / (net * np.maximum(n.nic_bytes_per_s * kept, 1.0)), 0.0)
    return np.where(np.asarray(ranks) > 1, np.maximum(fabric, wire) + hop_s * hops(ranks), 0.0)


def _crossing(n: Network, sent: Real, ranks: Real, stride: Real, link: Real) -> Real:
    """Seconds of an all-to-all in a domain of unequal links: each port's bytes, or those that `trunk` devices send to
    the (ranks - side) / (ranks - 1) of the group on the other side."""
    w = n.wiring
    near = (np.asarray(w.near) > 0) & np.asarray(ranks * stride <= w.near)
    own = np.where(
        near, _wired(w, n.link_bytes_per_s, ranks, stride), n.link_bytes_per_s * _part(n, ranks, stride)
    )
    side = np.maximum(w.trunk / stride, 1.0)
    other = np.maximum(ranks - side, 0.0) / np.maximum(ranks - 1.0, 1.0)
    crosses = (np.asarray(w.trunk) > 0) & np.asarray(ranks * stride > w.trunk)
    shared = np.where(crosses, w.trunk * other * sent / np.maximum(w.trunk_bytes_per_s, 1.0), 0.0)
    return np.maximum(sent / own, shared) / link
