"""Collectives over the tiers of a system: every algorithm that its fabric allows, the fastest one by size.

S bytes is the buffer of each rank (all-reduce, all-to-all), the output (all-gather) or the input
(reduce-scatter), the message (broadcast, p2p). Latency is per hop of a ring and per doubling of a tree; all
figures broadcast. Contention inside a group is in the bandwidths (`parallel.network`); groups that share a
link are not told apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.system_spec import System, Tier
from chipwise.errors import UsageError
from chipwise.parallel.network import Network
from chipwise.units import Array, Real

__all__ = ["Exchange", "Latency", "Topology", "exchange_time", "system_topology"]

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "p2p"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds: to start, per neighbour that a ring passes, per doubling of a tree, per hop of the network; and
    the shares of bandwidth that collectives reach."""

    base_s: float = 6e-6
    step_s: float = 1.2e-6
    hop_s: float = 2.5e-6
    network_s: float = 8e-6
    link: float = 0.75
    net: float = 0.8


@dataclass(frozen=True, slots=True)
class Topology:
    """A system's fabric in numbers. `shape` and `wraps`: axes of a torus slice and whether they close;
    `pair_bytes_per_s`: what one pair can use."""

    network: Network
    pair_bytes_per_s: float
    shape: tuple[int, ...] = ()
    wraps: tuple[bool, ...] = ()

    @property
    def torus(self) -> bool:
        """Whether chips are joined to neighbours on a grid."""
        return bool(self.shape)


@dataclass(frozen=True)
class Exchange:
    """Seconds by algorithm, and the fastest one of each entry."""

    by_algorithm: Mapping[str, Array]

    @property
    def seconds(self) -> Array:
        """Of the fastest algorithm."""
        best: Array = np.min(np.stack(list(self.by_algorithm.values())), axis=0)
        return best

    @property
    def algorithm(self) -> NDArray[np.str_]:
        """Name of the fastest algorithm."""
        names = np.array(list(self.by_algorithm))
        chosen: NDArray[np.str_] = names[np.argmin(np.stack(list(self.by_algorithm.values())), axis=0)]
        return chosen


def system_topology(system: System, chips: int) -> Topology:
    """The fabric that `chips` chips of a system meet on. On a torus the most cube-like slice on offer.

    Raises `UsageError` where more chips are asked for than the fabric holds and no network joins several.
    """
    tier = system.tier(chips) or (system.tiers[-1] if system.tiers else None)
    nic = (system.scaleout.bytes_per_s if system.scaleout else None) or math.nan
    if tier is None or tier.bytes_per_s is None:
        if chips > 1 and not math.isfinite(nic):
            raise UsageError(f"{system.id} joins no chips at a published speed", "use one chip")
        return Topology(Network(1.0, 1.0, nic), nic)
    if chips > system.chips and not math.isfinite(nic):
        raise UsageError(
            f"{system.id} joins {system.chips:,} chips, not {chips:,}", f"use at most {system.chips:,}"
        )
    pair = tier.pairwise_bytes_per_s or tier.bytes_per_s
    axes = float(len(tier.shape)) if tier.torus else 0.0
    mesh = 1.0 if tier.fabric in ("mesh", "partial-mesh") else 0.0
    reduces = 1.0 if tier.fabric == "nvswitch" else 0.0
    network = Network(tier.bytes_per_s, float(tier.chips), nic, axes, mesh, reduces)
    if not tier.torus:
        return Topology(network, pair)
    shape = _slice(system, tier, min(chips, tier.chips))
    return Topology(network, pair, shape, tier.closes(shape))


def _slice(system: System, tier: Tier, chips: int) -> tuple[int, ...]:
    """The legal slice of that many chips whose axes differ least; the next larger where there is none."""
    axes = len(tier.shape)
    shapes = [s[:axes] for s in system.slices() if len(s) >= axes]
    enough = [s for s in shapes if math.prod(s) >= chips] or [tier.shape]
    return min(enough, key=lambda s: (math.prod(s), max(s), s))


def exchange_time(kind: Kind, num_bytes: Real, ranks: int, t: Topology, p: Latency | None = None) -> Exchange:
    """Seconds of one collective of `ranks` neighbours by every algorithm that applies; zero for one rank.

    Inside a domain (B = share x link): one-shot b + (r - 1) S / B; ring b + 2 (r - 1) step + 2 (r - 1) / r S / B;
    tree b + 2 log2 r hop + 2 S / B; in-switch b + 2 hop + (1 + 1 / r) S / B. Half of the wire and of the steps
    for all-gather and reduce-scatter. Across domains of d: (d - 1) / d S / B inside, twice for all-reduce, and
    a ring of the r / d pieces over every chip's own NIC. Torus: one ring per axis, all axes at work, 2 sum
    (L - 1) steps; an axis that does not close halves its rate.
    """
    p = p or Latency()
    size: Array = np.asarray(num_bytes, dtype=float)
    if ranks <= 1:
        return Exchange({"direct": np.zeros(size.shape)})
    d = int(min(ranks, float(t.network.domain)))
    inside = p.link * float(t.network.link_bytes_per_s)
    if float(t.network.mesh) > 0:
        inside = inside * (d - 1.0) / max(float(t.network.domain) - 1.0, 1.0)
    if kind == "p2p":
        rate = p.link * t.pair_bytes_per_s if ranks <= d else p.net * float(t.network.nic_bytes_per_s)
        return Exchange({"direct": p.base_s + size / rate})
    if ranks > d:
        return Exchange({"hierarchical": _across(kind, size, ranks, d, inside, t, p)})
    if t.torus:
        return Exchange({"torus": _torus(kind, size, ranks, t, p)})
    return Exchange(_inside(kind, size, ranks, inside, t, p))


def _inside(kind: Kind, s: Array, r: int, rate: float, t: Topology, p: Latency) -> dict[str, Array]:
    part, trips = (r - 1.0) / r, 2.0 if kind == "all_reduce" else 1.0
    levels = math.log2(r)
    if kind == "broadcast":
        return {
            "tree": p.base_s + levels * p.hop_s + s / rate,
            "ring": p.base_s + (r - 1) * p.step_s + s / rate,
        }
    if kind == "all_to_all":
        return {"direct": p.base_s + (r - 1) * p.step_s / 4.0 + part * s / rate}
    ring = p.base_s + trips * (r - 1) * p.step_s + trips * part * s / rate
    found: dict[str, Array] = {"ring": ring}
    if kind == "all_reduce":
        found["one-shot"] = p.base_s + p.hop_s + (r - 1.0) * s / rate
        found["tree"] = p.base_s + 2.0 * levels * p.hop_s + 2.0 * s / rate
        if float(t.network.reduces):
            found["in-switch"] = p.base_s + 2.0 * p.hop_s + (1.0 + 1.0 / r) * s / rate
    return found


def _across(kind: Kind, s: Array, r: int, d: int, inside: float, t: Topology, p: Latency) -> Array:
    nic = p.net * float(t.network.nic_bytes_per_s)
    groups = r / d
    trips = 2.0 if kind == "all_reduce" else 1.0
    apart = (groups - 1.0) / groups
    if kind == "all_to_all":
        return p.base_s + p.network_s * math.log2(groups) + np.maximum(s / inside, apart * s / nic)
    if kind == "broadcast":
        return p.base_s + p.network_s * math.log2(groups) + s / (nic * d) + s / inside
    local = trips * (d - 1.0) / d * s / inside + trips * (d - 1.0) * p.step_s
    return p.base_s + local + trips * apart * (s / d) / nic + trips * math.log2(groups) * p.network_s


def _torus(kind: Kind, s: Array, r: int, t: Topology, p: Latency) -> Array:
    axes = [(length, closed) for length, closed in zip(t.shape, t.wraps, strict=True) if length > 1]
    per_axis = p.link * float(t.network.link_bytes_per_s) / max(len(t.shape), 1)
    rate = sum(per_axis * (1.0 if closed else 0.5) for _, closed in axes)
    steps = sum(length - 1 for length, _ in axes)
    trips = 2.0 if kind == "all_reduce" else 1.0
    if kind == "all_to_all":
        # a quarter of the longest ring's traffic crosses its middle; both directions are in the rate
        longest, closed = max(axes)
        return p.base_s + steps * p.step_s / 2.0 + s * longest / (8.0 if closed else 4.0) / per_axis
    if kind == "broadcast":
        return p.base_s + steps * p.step_s + s / rate
    return p.base_s + trips * steps * p.step_s + trips * (r - 1.0) / r * s / rate
