"""Exchanges between ranks: one model over kinds, algorithms, fabrics and tiers.

S bytes is what nccl-tests and frameworks call the size: the buffer of each rank for all-reduce, the output of
all-gather, the input of reduce-scatter, the send buffer of all-to-all, the message of p2p and broadcast. A group of r
ranks is joined tier by tier: bridged neighbours where there are any, the fabric of a domain (switch, mesh, torus, bus),
the network between domains, on which every rank has its own card. h ranks are together inside a tier, and the tier
joins n such parts to h n.

Algorithms are those that move least (Thakur, Rabenseifner and Gropp, 2005), tier by tier: scatter and sum inside, all-
reduce the h parts further out, each over another port, gather inside. Bytes through a port of a tier, one direction:

    all_reduce                   2 (n - 1) / n  S / h
    all_gather, reduce_scatter   (n - 1) / n  S / h
    all_to_all                   h (n - 1) / r  S
    broadcast, p2p               S / h

Over all tiers they add up to what a single one would carry, and a tier that a group has just outgrown carries little:
time is continuous there. Pieces follow each other through the tiers, so that transfer is the slowest one's,
X = max bytes / (share x bytes/s), and

    L = base + sum over tiers of step x trips x k,   k = min(n - 1, 2.5 log2 n): rings, of many parts trees
    t = (L^q + X^q)^(1/q)

with trips 2 for all-reduce, else 1; of all-to-all k = log2 n, of a torus the hops along its axes. q < 1: chunks that
fill a pipeline, and protocols that trade rate for latency, are chosen between both ends; the best chunk costs
(sqrt L + sqrt X)^2, q = 1/2. Runtimes sum small buffers by a kernel of their own that reads its peers' memory
(`direct`): in one phase (r - 1) S on the wire, in two the bytes of a ring; the fastest is taken.

Seconds, bytes, bytes/s; everything broadcasts. Numbers are values passed in, by fabric and library
(`calibrate/data/priors.toml`). Ignored: sums in the switch beyond a larger share of the link, ranks that start
late, other traffic than that of the groups in between, which do the same (`parallel.network`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chipwise.parallel.network import Level, Network, leaf_share, levels, trunk_rate
from chipwise.units import Real
from chipwise.values import dataclass

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "p2p"]
KINDS: tuple[Kind, ...] = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "p2p")

DIRECT_BYTES = 64.0 * 2**20
"""bytes: the largest buffer that runtimes sum by kernels of their own; beyond it they call the library. Source: vllm-
project/vllm all_reduce_utils.py (symmetric memory on eight H100)."""
LEAST_S = 1e-15
"""seconds: of a latency, for ratios. Exact: guards a division, below any time."""
TWO_PHASES = 1.7
"""ratio: of a direct all-reduce in two phases (scatter and sum, gather) to one in one. Chosen: the second needs no
sum, so less than 2; moves all-reduces of middle size between few ranks."""


@dataclass(frozen=True, slots=True)
class Comm:
    """One exchange of a sharded graph: `payload_bytes` is S of its group of `ranks`; `axis` is the part of the layout
    that it serves. With `copies` > 0 it takes routed tokens to their experts or back: S is what a rank has for all the
    ranks that hold one of them, so many on average; `each`: every copy crosses the network by itself, as in kernels
    for few tokens.
    """

    kind: Kind
    payload_bytes: Real
    ranks: Real
    axis: str
    copies: Real = 0.0
    each: bool | NDArray[np.bool_] = False


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
    """Numbers of one fabric under one library; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | link_share | of link bandwidth | that a group of many ranks reaches, large messages |
    | pair_share | of link bandwidth | that two ranks reach; groups in between: linear in 1 / r |
    | base_s | s | to start and end |
    | step_s | s | each step inside a domain |
    | sharpness | exponent | of the sum of latency and transfer |
    | net_share | of a card's bandwidth | that is reached between domains |
    | net_s | s | each step between domains |
    | direct_s | s | start and end of a kernel that reads its peers' memory; infinite: there is none |
    """

    link_share: Real = 0.75
    pair_share: Real = 0.6
    base_s: Real = 5e-6
    step_s: Real = 1e-6
    sharpness: Real = 0.7
    net_share: Real = 0.8
    net_s: Real = 8e-6
    direct_s: Real = np.inf


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an exchange puts on one tier: bytes through a port, at least so many bytes/s of it, steps."""

    num_bytes: Real
    level: Level
    steps: Real

    @property
    def least_s(self) -> Real:
        """Seconds at full rate."""
        seconds: Real = self.num_bytes / self.level.bytes_per_s
        # without a network nothing is known of what leaves a domain; nothing may leave all the same
        return np.where(np.asarray(self.num_bytes) > 0, seconds, 0.0) if self.level.network else seconds


def wire_bytes(kind: Kind, num_bytes: Real, ranks: Real) -> Real:
    """Bytes through one chip's ports per direction: all-reduce 2 (r - 1) / r of S, p2p and broadcast S, others
    (r - 1) / r; none of one rank."""
    if kind in ("p2p", "broadcast"):
        return num_bytes * np.clip(np.asarray(ranks) - 1.0, 0.0, 1.0)
    moved: Real = (2.0 if kind == "all_reduce" else 1.0) * num_bytes * (ranks - 1.0) / ranks
    return moved


def traffic(kind: Kind, num_bytes: Real, ranks: Real, network: Network, stride: Real = 1.0) -> tuple[Traffic, ...]:
    """Bytes and steps of an exchange of `ranks`, `stride` devices apart, tier by tier from the inside."""
    r = np.maximum(np.asarray(ranks, dtype=float), 1.0)
    trips = 2.0 if kind == "all_reduce" else 1.0
    found = []
    held: Real = 1.0
    for level in levels(network, r, stride):
        parts = level.ranks / held
        if kind == "all_to_all":
            moved = num_bytes * (level.ranks - held) / r
            found.append(Traffic(moved, _for_all(network, level, r, stride), np.log2(parts)))
        else:
            found.append(Traffic(wire_bytes(kind, num_bytes / held, parts), level, trips * level.steps))
        held = level.ranks
    return tuple(found)


def exchange(
    kind: Kind,
    num_bytes: Real,
    ranks: Real,
    network: Network,
    p: CollectiveParameters,
    *,
    stride: Real = 1.0,
    calls: Real = 1.0,
    direct: CollectiveParameters | None = None,
) -> Transfer:
    """Seconds of one exchange of `num_bytes` in `calls` pieces between `ranks`, `stride` devices apart; the groups in
    between do the same at once. Zero for one rank. `direct`: the numbers of a runtime's own all-reduce, which sums
    pieces of at most 64 MiB inside a domain. The equations are above.
    """
    found = _seconds(kind, traffic(kind, num_bytes, ranks, network, stride), p, calls)
    if direct is None or kind != "all_reduce":
        return found
    own = direct_all_reduce(num_bytes, ranks, network, direct, stride=stride, calls=calls)
    small = np.asarray(num_bytes) <= DIRECT_BYTES * calls
    return _faster(replace(own, latency_s=np.where(small, own.latency_s, np.inf)), found)


def direct_all_reduce(
    num_bytes: Real, ranks: Real, network: Network, p: CollectiveParameters, *, stride: Real = 1.0, calls: Real = 1.0
) -> Transfer:
    """Seconds of an all-reduce by a kernel that reads its peers' memory, infinite beyond one domain: the better of one
    phase, L = direct_s and (r - 1) S on the wire, and of two, 1.7 direct_s and the bytes of a ring."""
    *_, inside, outside = levels(network, np.maximum(np.asarray(ranks, dtype=float), 1.0), stride)
    r = outside.ranks
    rate = _share("all_reduce", inside, p) * inside.bytes_per_s
    once = _joined(calls * p.direct_s, (r - 1.0) * num_bytes / rate, p.sharpness)
    twice = _joined(calls * TWO_PHASES * p.direct_s, wire_bytes("all_reduce", num_bytes, r) / rate, p.sharpness)
    found = _faster(once, twice)
    never = np.where(r > inside.ranks, np.inf, 1.0)
    return Transfer(np.where(r > 1.0, never * found.latency_s, 0.0), np.where(r > 1.0, found.transfer_s, 0.0))


def crossings(copies: Real, domains: Real) -> Real:
    """Expected number of other domains that hold any of a token's k = `copies` experts, of D `domains` alike:
    (D - 1) (1 - (1 - 1 / D)^k)."""
    found: Real = (domains - 1.0) * (1.0 - (1.0 - 1.0 / np.asarray(domains)) ** copies)
    return found


def dispatch(
    payload_bytes: Real,
    copies: Real,
    ranks: Real,
    network: Network,
    p: CollectiveParameters,
    *,
    stride: Real = 1.0,
    away: Real | None = None,
) -> Transfer:
    """Seconds of an all-to-all of routed tokens: each rank sends `payload_bytes` to `copies` of the `ranks` on average.

    Every copy but the rank's own crosses the fabric. Over the rank's own card `away` of them cross to other domains; by
    default a token crosses once to each other domain that holds any of its experts (`crossings`), and is spread there
    over the fabric. Else as an all-to-all.
    """
    tiers = traffic("all_to_all", payload_bytes, ranks, network, stride)
    r, g = tiers[-1].level.ranks, tiers[-2].level.ranks
    sent = np.minimum(copies, r) * payload_bytes * (r - 1.0) / r
    crossing = crossings(copies, np.maximum(r / g, 1.0)) if away is None else away
    parts = []
    held: Real = 1.0
    for t in tiers:
        share = (t.level.ranks - held) / np.maximum(g - 1.0, 1.0)
        parts.append(
            replace(t, num_bytes=crossing * payload_bytes if t.level.network else sent * np.minimum(share, 1.0))
        )
        held = t.level.ranks
    return _seconds("all_to_all", tuple(parts), p, 1.0)


def _seconds(kind: Kind, tiers: tuple[Traffic, ...], p: CollectiveParameters, calls: Real) -> Transfer:
    """L and X of all tiers, joined; nothing for one rank."""
    alone = np.asarray(tiers[-1].level.ranks) <= 1.0
    if np.all(alone):
        return Transfer(np.zeros(alone.shape), np.zeros(alone.shape))
    latency: Real = p.base_s
    moved: Real = 0.0
    for t in tiers:
        share = p.net_share if t.level.network else _share(kind, t.level, p)
        latency = latency + (p.net_s if t.level.network else p.step_s) * t.steps
        moved = np.maximum(moved, t.least_s / share)
    found = _joined(calls * latency, moved, p.sharpness)
    return Transfer(np.where(alone, 0.0, found.latency_s), np.where(alone, 0.0, found.transfer_s))


def _share(kind: Kind, level: Level, p: CollectiveParameters) -> Real:
    """Share of the link: a + (b - a) 2 / r with a of many ranks and b of two, b at least a / 2 so that more ranks are
    never faster. One stream reaches a; links from chip to chip, of which a group uses as many as it has, (a + b) / 2.
    """
    wide = np.minimum(p.link_share, 1.0)
    if kind in ("p2p", "broadcast"):
        return wide
    pair = np.clip(p.pair_share, 0.5 * wide, 1.0)
    reached: Real = wide + (pair - wide) * np.where(level.direct, 0.5, 2.0 / np.maximum(level.ranks, 2.0))
    return reached


def _for_all(n: Network, level: Level, ranks: Real, stride: Real) -> Level:
    """The rate of a tier where every rank sends to every other: the port, or what the way to the other side of a
    domain, the middle of a torus, or the links up of a leaf let through for each."""
    if level.network:
        return replace(level, bytes_per_s=level.bytes_per_s * leaf_share(n, ranks, stride))
    rate = level.bytes_per_s
    if np.any(n.wiring.trunk):
        rate = np.minimum(rate, trunk_rate(n, level.ranks, stride))
    if np.any(n.axes):
        axes = np.maximum(n.axes, 1.0)
        longest = np.where(np.asarray(n.longest) > 0, n.longest, level.ranks ** (1.0 / axes))
        # a quarter of the longest ring's traffic crosses its middle; both directions are in the rate
        middle = (n.link_bytes_per_s / axes) * (8.0 if n.closed else 4.0) / np.maximum(longest, 1.0)
        rate = np.where(np.asarray(n.axes) > 0, np.minimum(rate, middle), rate)
    return replace(level, bytes_per_s=rate)


def _joined(latency: Real, transfer: Real, q: Real) -> Transfer:
    """(L^q + X^q)^(1/q), shared out as L^q to X^q."""
    start = np.maximum(latency, LEAST_S)
    ratio = (transfer / start) ** q
    total = start * (1.0 + ratio) ** (1.0 / q)
    first = total / (1.0 + ratio)
    return Transfer(first, total - first)


def _faster(one: Transfer, other: Transfer) -> Transfer:
    first = one.total_s <= other.total_s
    return Transfer(np.where(first, one.latency_s, other.latency_s), np.where(first, one.transfer_s, other.transfer_s))
