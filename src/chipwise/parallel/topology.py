"""Collectives over the tiers of a system: every algorithm that its fabric allows, the fastest one by size.

For training, whose groups span hosts, and for `kernel` on tori and across domains: what `parallel.collective` (one
domain, measured) cannot say. The two are not merged: the numbers here are believed or fitted to whole training steps
(`calibrate.training_rates`), those there to single collectives, and a step tells no kind of exchange from another.

S bytes is the buffer of each rank (all-reduce, all-to-all), the output (all-gather) or the input
(reduce-scatter), the message (broadcast, p2p). Latency is per hop of a ring and per doubling of a tree; all
figures broadcast. Contention is in the bandwidths (`parallel.network`): of ranks of a group, and of groups that lie
between each other's ranks and do the same at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.system_spec import System, Tier
from chipwise.errors import UsageError
from chipwise.parallel.collective import Kind
from chipwise.parallel.network import ALIKE, Network, Tiered, Wiring, all_to_all, group_rate
from chipwise.units import Array, Real

__all__ = [
    "Exchange",
    "Latency",
    "Topology",
    "algorithms",
    "exchange_time",
    "fastest",
    "system_topology",
    "wiring",
]

# Between two sockets, one direction: about two thirds of three UPI links of 16 GT/s, 32 GB/s each (assumed).
SOCKETS_BYTES_PER_S = 60e9
BRIDGED = ("bridge", "mesh", "nvswitch", "switched")


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds: to start, per neighbour that a ring passes, per doubling of a tree, per hop of the network; and
    the shares of bandwidth that collectives reach."""

    base_s: Real = 6e-6
    step_s: Real = 1.2e-6
    hop_s: Real = 2.5e-6
    network_s: Real = 8e-6
    link: Real = 0.75
    net: Real = 0.8


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
    uneven = wiring(system) if tier is system.tiers[-1] else ALIKE
    network = Network(tier.bytes_per_s, float(tier.chips), nic, axes, mesh, reduces, uneven)
    if not tier.torus:
        return Topology(network, pair)
    shape = _slice(system, tier, min(chips, tier.chips))
    return Topology(network, pair, shape, tier.closes(shape))


def wiring(system: System) -> Wiring:
    """What is narrower or faster than the outermost fabric: cards bridged in twos or fours, and the way between the
    sockets of a host whose cards meet on PCIe, which all of them share."""
    if not system.tiers:
        return ALIKE
    inner, outer = system.tiers[0], system.tiers[-1]
    found = ALIKE
    if (
        inner is not outer
        and inner.fabric in BRIDGED
        and (inner.bytes_per_s or 0.0) > (outer.bytes_per_s or 0.0)
    ):
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


def _slice(system: System, tier: Tier, chips: int) -> tuple[int, ...]:
    """The legal slice of that many chips whose axes differ least; the next larger where there is none."""
    axes = len(tier.shape)
    shapes = [s[:axes] for s in system.slices() if len(s) >= axes]
    enough = [s for s in shapes if math.prod(s) >= chips] or [tier.shape]
    return min(enough, key=lambda s: (math.prod(s), max(s), s))


def algorithms(
    kind: Kind,
    num_bytes: Real,
    ranks: Real,
    rate: Tiered,
    p: Latency,
    *,
    reduces: Real = 0.0,
    calls: Real = 1.0,
) -> dict[str, Real]:
    """Seconds by algorithm of a collective that is made in `calls` pieces, `num_bytes` in all; everything broadcasts,
    what does not apply is infinite, one rank is free.

    S bytes, B = `rate.inside`, r ranks. Inside a domain ring b + t steps + t (r - 1) / r S / B, with t = 2
    trips for all-reduce, else 1; all-reduce also one-shot b + hop + (r - 1) S / B, tree b + 2 log2 r hop + 2 S / B,
    in-switch b + 2 hop + (1 + 1 / r) S / B where `reduces`. Across domains hierarchical: t (r - 1) / r S over the
    slower of the fabric and of the NICs that work together, t log2 r hops of the network.
    """
    s, r = num_bytes, np.maximum(ranks, 1.0)
    trips = 2.0 if kind == "all_reduce" else 1.0
    part, levels = trips * (r - 1.0) / r, np.log2(r)
    ring = calls * (p.base_s + trips * rate.steps * p.step_s) + part * s / rate.inside
    far = calls * (p.base_s + trips * levels * p.network_s) + part * s / rate.bytes_per_s
    found = {"ring": np.where(rate.leaves, np.inf, ring), "hierarchical": np.where(rate.leaves, far, np.inf)}
    if kind == "all_reduce":
        near = {
            "one-shot": calls * (p.base_s + p.hop_s) + (r - 1.0) * s / rate.inside,
            "tree": calls * (p.base_s + 2.0 * levels * p.hop_s) + 2.0 * s / rate.inside,
        }
        if np.any(reduces):
            near["in-switch"] = calls * (p.base_s + 2.0 * p.hop_s) + (1.0 + 1.0 / r) * s / rate.inside
        found |= {name: np.where(rate.leaves, np.inf, t) for name, t in near.items()}
    return {name: np.where(r > 1.0, t, 0.0) for name, t in found.items()}


def fastest(kind: Kind, num_bytes: Real, ranks: Real, rate: Tiered, p: Latency, *, calls: Real = 1.0) -> Real:
    """Seconds of the fastest of `algorithms`: what a library that chooses by size takes."""
    found = list(algorithms(kind, num_bytes, ranks, rate, p, calls=calls).values())
    best = found[0]
    for other in found[1:]:
        best = np.minimum(best, other)
    return best


def exchange_time(
    kind: Kind, num_bytes: Real, ranks: int, t: Topology, p: Latency | None = None, *, stride: int = 1
) -> Exchange:
    """Seconds of one collective of `ranks` chips, `stride` apart (1: neighbours), by every algorithm that applies; zero
    for one rank. The `stride` groups in between do the same at once.

    Rings, trees and sums in the switch as in `algorithms`. Torus: one ring per axis, all axes at work, 2 sum
    (L - 1) steps; an axis that does not close halves its rate.
    """
    p = p or Latency()
    size: Array = np.asarray(num_bytes, dtype=float)
    if ranks <= 1:
        return Exchange({"direct": np.zeros(size.shape)})
    rate = group_rate(t.network, float(ranks), float(stride), p.link, p.net)
    leaves = ranks * stride > float(t.network.domain)
    if kind == "p2p":
        over = rate.across if leaves else np.minimum(rate.inside, p.link * t.pair_bytes_per_s)
        return Exchange({"direct": p.base_s + (p.network_s if leaves else 0.0) + size / over})
    if t.torus and not leaves and stride == 1:
        return Exchange({"torus": _torus(kind, size, ranks, t, p)})
    if kind == "all_to_all":
        moved = all_to_all(
            size / ranks, ranks - 1.0, float(ranks), t.network, float(stride), p.link, p.net, 0.0
        )
        if leaves:
            # every rank's own bytes cross: unlike routed tokens, none serves several ranks of a domain
            away = size * (1.0 - float(rate.together) / ranks)
            moved = np.maximum(moved, away / float(rate.across))
        steps = p.network_s * math.log2(ranks) if leaves else (ranks - 1) * p.step_s / 4.0
        return Exchange({"direct": p.base_s + steps + np.asarray(moved)})
    if kind == "broadcast":
        return Exchange(_broadcast(size, ranks, rate, p))
    found = algorithms(kind, size, float(ranks), rate, p, reduces=t.network.reduces)
    return Exchange({n: np.asarray(v) for n, v in found.items() if np.isfinite(v).all()})


def _broadcast(s: Array, r: int, rate: Tiered, p: Latency) -> dict[str, Array]:
    levels = math.log2(r)
    if rate.leaves:
        return {"tree": p.base_s + levels * p.network_s + s / float(rate.bytes_per_s)}
    return {
        "tree": p.base_s + levels * p.hop_s + s / float(rate.inside),
        "ring": p.base_s + (r - 1) * p.step_s + s / float(rate.inside),
    }


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
