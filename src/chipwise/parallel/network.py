"""Groups of ranks on a network of two tiers: what bandwidth one rank of a group gets, and all-to-alls over it.

A fabric (scale-up) joins `domain` devices; a network (scale-out) joins the domains. Ranks of a group lie
`stride` devices apart: tensor-parallel ranks next to each other (stride 1), data-parallel ranks tp x cp apart. The
groups in between do the same at the same time, as all groups of a training step do: what they share, each gets its
part of. Everything broadcasts.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.system_spec import FabricTier, System
from chipwise.errors import UsageError
from chipwise.units import Real
from chipwise.values import dataclass

SOCKETS_BYTES_PER_S = 60e9
"""bytes per second: between two sockets, one direction. Chosen: about two thirds of three UPI links of 16 GT/s, 32
GB/s each; moves exchanges of cards on two sockets without links of their own."""
BRIDGED = ("bridge", "mesh", "nvswitch", "switched")
NEIGHBOURS = 32.0
"""count: devices of a torus that lie along one axis, at most. Chosen: longer groups are taken to lie over several
axes; moves exchanges of more than 32 chips of a torus."""
TREE_STEPS = 2.5
"""count: steps of a ring that one hop of a tree takes. Chosen: both are then as fast at nine ranks, beyond which NCCL
takes trees; moves latency between many hosts in proportion to its logarithm."""
LEAF = 32.0
"""count: domains under one leaf switch. Chosen: half of the 64 ports of a switch of 400 Gb/s, the other half leads
up; moves exchanges over more hosts, whose trunk is shared."""


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
    def blocking(self) -> bool:
        """Whether leaf switches have more links down than up."""
        return bool(np.any(np.asarray(self.oversubscription) > 1.0))


ALIKE = Wiring()


@dataclass(frozen=True, slots=True)
class Network:
    """One direction, per device. `axes` > 0: a torus of so many dimensions; `mesh` 1: a link between every
    pair, of which a group of n uses n - 1.

    Of a slice of a torus that is known: `rings`, its axes of more than one device, those that do not close counted
    half; `hops` along all of them; `longest` of them, and whether it is `closed`. Zeros: groups as they come.
    """

    link_bytes_per_s: Real
    domain: Real
    nic_bytes_per_s: Real
    axes: Real = 0.0
    mesh: Real = 0.0
    wiring: Wiring = ALIKE
    rings: Real = 0.0
    hops: Real = 0.0
    longest: Real = 0.0
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Level:
    """One tier as a group of ranks meets it: ranks of the group that are together up to it, bytes/s of a rank at full
    rate, steps that a piece takes round the tier's parts; whether its links run from chip to chip, so that a group uses
    as many as it has, and whether it is the network between domains."""

    ranks: Real
    bytes_per_s: Real
    steps: Real
    direct: NDArray[np.bool_] | bool = False
    network: bool = False


def system_network(system: System, chips: int) -> Network:
    """The fabric that `chips` chips of a system meet on. On a torus the most cube-like slice on offer.

    Raises `UsageError` where more chips are asked for than the fabric holds and no network joins several.
    """
    tier = system.tier(chips) or (system.tiers[-1] if system.tiers else None)
    nic = (system.scaleout.bytes_per_s if system.scaleout else None) or math.nan
    if tier is None or tier.bytes_per_s is None:
        if chips > 1 and not math.isfinite(nic):
            raise UsageError(f"{system.id} joins no chips at a published speed", "use one chip")
        return Network(nic, 1.0, nic)
    if chips > system.chips and not math.isfinite(nic):
        raise UsageError(f"{system.id} joins {system.chips:,} chips, not {chips:,}", f"use at most {system.chips:,}")
    axes = float(len(tier.shape)) if tier.torus else 0.0
    network = Network(tier.bytes_per_s, float(tier.chips), nic, axes, *_links(system, tier, tier.bytes_per_s))
    return _around(network, tier, _slice(system, tier, min(chips, tier.chips))) if tier.torus else network


def _links(system: System, tier: FabricTier, bytes_per_s: float) -> tuple[float, Wiring]:
    """Whether every chip of a tier is linked with every other (1), and what of it is narrower or faster."""
    mesh = 1.0 if tier.fabric in ("mesh", "partial-mesh") else 0.0
    uneven = wiring(system) if tier is system.tiers[-1] else ALIKE
    pair = tier.pairwise_bytes_per_s
    if not mesh or not pair or uneven.near:
        return mesh, uneven
    # what a group has is known by its links, not only by their sum
    size = float(tier.chips)
    return 0.0, replace(uneven, near=size, near_bytes_per_s=bytes_per_s, near_pair_bytes_per_s=pair)


def _around(network: Network, tier: FabricTier, shape: tuple[int, ...]) -> Network:
    """A network with the rings of a slice of a torus."""
    wide = [(length, closed) for length, closed in zip(shape, tier.closes(shape), strict=True) if length > 1]
    if not wide:
        return network
    longest, closed = max(wide)
    return replace(
        network,
        rings=sum(1.0 if around else 0.5 for _, around in wide),
        hops=float(sum(length - 1 for length, _ in wide)),
        longest=float(longest),
        closed=closed,
    )


def wiring(system: System) -> Wiring:
    """What is narrower or faster than the outermost fabric: cards bridged in twos or fours, and the way between the
    sockets of a host whose cards meet on PCIe, which all of them share."""
    if not system.tiers:
        return ALIKE
    inner, outer = system.tiers[0], system.tiers[-1]
    found = ALIKE
    if inner is not outer and inner.fabric in BRIDGED and (inner.bytes_per_s or 0.0) > (outer.bytes_per_s or 0.0):
        speed = inner.bytes_per_s or 0.0
        found = replace(
            found,
            near=float(inner.chips),
            near_bytes_per_s=speed,
            near_pair_bytes_per_s=inner.pairwise_bytes_per_s or speed,
        )
    sockets = system.host.sockets or 1
    if outer.fabric == "pcie" and sockets > 1:
        side = math.ceil(system.chips_per_host / sockets)
        found = replace(found, trunk=float(side), trunk_bytes_per_s=SOCKETS_BYTES_PER_S)
    return found


def _slice(system: System, tier: FabricTier, chips: int) -> tuple[int, ...]:
    """The legal slice of that many chips whose axes differ least; the next larger where there is none."""
    axes = len(tier.shape)
    shapes = [s[:axes] for s in system.slices() if len(s) >= axes]
    enough = [s for s in shapes if math.prod(s) >= chips] or [tier.shape]
    return min(enough, key=lambda s: (math.prod(s), max(s), s))


def levels(n: Network, ranks: Real, stride: Real = 1.0) -> tuple[Level, ...]:
    """What a group of `ranks`, `stride` apart, meets on its way out: bridged neighbours where there are any, the fabric
    of a domain, the network between domains; a tier that joins no more than the one before has nothing to do.

    Torus: a slice that is known owns its axes; else a group of neighbours owns one axis, Λ / axes, a group further
    apart the others, all of them where its neighbours are alone. Full mesh: Λ (n - 1) / (Ω - 1) for a group of n. The
    rest is `Wiring`: groups that cross to the other side of a domain share the way there, min(stride, trunk) of them;
    groups whose ranks lie s domains apart cross from leaf to leaf, min(s, leaf) of them over the leaf /
    oversubscription links up of a rail. A rank uses its own card: those of a domain work for the group together.
    """
    w = n.wiring
    together = np.maximum(np.minimum(ranks, n.domain / stride), 1.0)
    rate = n.link_bytes_per_s * _part(n, together, stride)
    if np.any(w.trunk):
        shared = w.trunk_bytes_per_s / np.minimum(stride, np.maximum(w.trunk, 1.0))
        crosses = (np.asarray(w.trunk) > 0) & np.asarray(together * stride > w.trunk)
        rate = np.where(crosses, np.minimum(rate, shared), rate)
    nic = n.nic_bytes_per_s * _spine(n, ranks, stride, np.maximum(stride / n.domain, 1.0))
    network = Level(ranks, nic, _rounds(ranks / together), network=True)
    paired = (np.asarray(n.mesh) > 0) | (np.asarray(n.axes) > 0)
    if not np.any(w.near):
        return Level(together, rate, _hops(n, together, stride), paired), network
    close = np.clip(w.near / stride, 1.0, together)
    near = np.minimum(w.near_bytes_per_s, w.near_pair_bytes_per_s * np.maximum(close - 1.0, 1.0))
    return (
        Level(close, near, _rounds(close), np.asarray(w.near_pair_bytes_per_s) < w.near_bytes_per_s),
        Level(together, rate, _hops(n, together / close, stride), paired),
        network,
    )


def _spine(n: Network, ranks: Real, stride: Real, flows: Real) -> Real:
    """Share of its NIC that a rank keeps where `flows` groups cross each leaf's links up; 1 below one leaf."""
    w = n.wiring
    if not w.blocking:
        return 1.0
    spans = np.asarray(ranks * stride / n.domain > w.leaf)
    kept = np.minimum(1.0, w.leaf / (w.oversubscription * np.minimum(flows, w.leaf)))
    return np.where(spans, kept, 1.0)


def leaf_share(n: Network, ranks: Real, stride: Real) -> Real:
    """Share of its NIC that a rank keeps in an all-to-all, whose bytes for other leaves share the links up."""
    if not n.wiring.blocking:
        return 1.0
    away = 1.0 - n.wiring.leaf / np.maximum(ranks * stride / n.domain, n.wiring.leaf)
    own = _spine(n, ranks, stride, np.maximum(stride / n.domain, 1.0))
    return np.minimum(_spine(n, ranks, stride, np.maximum(away, 1e-9) * n.wiring.leaf) / own, 1.0)


def _rounds(parts: Real) -> Real:
    """Steps of a ring of so many parts, or of a tree where it takes fewer: min(n - 1, 2.5 log2 n)."""
    return np.minimum(parts - 1.0, TREE_STEPS * np.log2(parts))


def _hops(n: Network, ranks: Real, stride: Real) -> Real:
    """Steps inside a domain; on a torus as many as its axes are long."""
    if np.ndim(n.axes) == 0 and not float(n.axes):
        return _rounds(ranks)
    axes = np.maximum(n.axes, 1.0)
    grid = np.where(np.asarray(ranks) > NEIGHBOURS, axes * (ranks ** (1.0 / axes) - 1.0), ranks - 1.0)
    grid = np.where((np.asarray(n.hops) > 0) & (np.asarray(stride) == 1), n.hops, grid)
    return np.where(np.asarray(n.axes) > 0, grid, _rounds(ranks))


def _part(n: Network, ranks: Real, stride: Real) -> Real:
    if np.ndim(n.axes) == 0 and not float(n.axes) and np.ndim(n.mesh) == 0 and not float(n.mesh):
        return 1.0
    axes = np.maximum(n.axes, 1.0)
    far = np.asarray(stride) > 1
    alone = np.where(np.asarray(n.rings) > 0, n.rings, np.where(np.asarray(ranks) > NEIGHBOURS, axes, 1.0))
    torus = np.where(far, np.maximum(axes - 1.0, 1.0), alone) / axes
    mesh = np.clip((ranks - 1.0) / np.maximum(n.domain - 1.0, 1.0), 1.0 / np.maximum(n.domain - 1.0, 1.0), 1.0)
    return np.where(np.asarray(n.axes) > 0, torus, np.where(np.asarray(n.mesh) > 0, mesh, 1.0))


def trunk_rate(n: Network, ranks: Real, stride: Real) -> Real:
    """Bytes/s of a rank in an all-to-all over the way between the sides of a domain: `trunk` devices send
    (ranks - side) / (ranks - 1) of what they send to the other side."""
    w = n.wiring
    side = np.maximum(w.trunk / stride, 1.0)
    other = np.maximum(ranks - side, 0.0) / np.maximum(ranks - 1.0, 1.0)
    crosses = (np.asarray(w.trunk) > 0) & np.asarray(ranks * stride > w.trunk)
    return np.where(crosses, w.trunk_bytes_per_s / np.maximum(w.trunk * other, 1e-9), np.inf)
