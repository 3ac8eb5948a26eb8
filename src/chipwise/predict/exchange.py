"""Which numbers an exchange takes, and which network it meets: where `cost` and `parallel` meet."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters
from chipwise.cost.simt.family import SimtParameters
from chipwise.parallel.collective import CollectiveParameters, Comm, Kind, Transfer, crossings, dispatch, exchange
from chipwise.parallel.layout import Layout
from chipwise.parallel.network import ALIKE, Network, Wiring
from chipwise.predict.overheads import Overheads
from chipwise.units import Real

PACKED_BYTES = 16.0
"""bytes: kernels of a runtime's own all-reduce move 16 at once and leave smaller exchanges to the library. Source:
vllm-project/vllm custom_all_reduce.py (should_custom_ar); sgl-project/sglang pull request 16483, where padding two sums
of 4 bytes to 16 gave 6 % more tokens; moves one user's time per token of models with a norm over all heads."""


def exchange_numbers(
    kind: Kind, costs: CostParameters, overheads: Overheads, *, direct: bool = False
) -> CollectiveParameters:
    """Of GPUs those fitted to measured collectives of NCCL and its like, or, `direct`, of the runtime's own all-reduce;
    of other families what is believed of their links."""
    if not isinstance(costs, SimtParameters):
        return overheads.links
    values = costs.find("collective", (("kind", kind), ("algorithm", "direct" if direct else "ring")))
    return CollectiveParameters(**{f.name: values[f.name] for f in fields(CollectiveParameters)})


def device_network(d: Device) -> Network:
    """What a device's figures say: neighbours that meet faster or over links of their own, a fabric, a network.

    Devices without a link exchange nothing, and without a network none leaves its domain: there the rates only keep the
    arithmetic finite.
    """
    link = np.where(np.isfinite(d.link_bytes_per_s), d.link_bytes_per_s, 1.0)
    nic = np.where(np.isfinite(d.scaleout_bytes_per_s), d.scaleout_bytes_per_s, link)
    near = np.where(np.isfinite(d.near_bytes_per_s), d.near_bytes_per_s, link)
    pair = np.where(np.isfinite(d.pairwise_bytes_per_s), d.pairwise_bytes_per_s, near)
    alike = (np.asarray(d.near_domain) >= d.domain) & (pair >= near)
    paths = ALIKE if np.all(alike) else Wiring(d.near_domain, near, pair)
    return Network(link, d.domain, nic, wiring=paths)


def comm_time(
    comm: Comm, layout: Layout, network: Network, costs: CostParameters, overheads: Overheads
) -> tuple[Real, Real]:
    """(latency seconds, transfer seconds) of one exchange of a layout; both zero for a single rank. Stages of a replica
    that outgrows its domain hand over through the network."""
    numbers = exchange_numbers(comm.kind, costs, overheads)
    if np.any(np.asarray(comm.copies) > 0):
        domains = np.maximum(np.asarray(comm.ranks) / network.domain, 1.0)
        away = _away(comm.copies, domains, each=comm.each)
        one = comm.payload_bytes / np.maximum(comm.copies, 1.0)
        routed = dispatch(one, comm.copies, comm.ranks, network, numbers, away=away)
        return routed.latency_s, routed.transfer_s
    stride = np.asarray(layout.devices) / 2.0 if comm.axis == "pp" else 1.0

    def by(direct: CollectiveParameters | None) -> Transfer:
        size = comm.payload_bytes
        return exchange(comm.kind, size, comm.ranks, network, numbers, stride=stride, direct=direct)

    packed = np.asarray(comm.payload_bytes) >= PACKED_BYTES
    if comm.kind != "all_reduce" or not isinstance(costs, SimtParameters) or not packed.any():
        found = by(None)
        return found.latency_s, found.transfer_s
    own = by(exchange_numbers(comm.kind, costs, overheads, direct=True))
    if packed.all():
        return own.latency_s, own.transfer_s
    library = by(None)
    return (np.where(packed, own.latency_s, library.latency_s), np.where(packed, own.transfer_s, library.transfer_s))


def _away(copies: Real, domains: Real, *, each: bool | NDArray[np.bool_]) -> Real:
    """Times that a token crosses the network to its k = `copies` experts in D `domains`: k (1 - 1 / D) where every copy
    does, else once to each other domain that holds any of them (`crossings`)."""
    return np.where(each, copies * (1.0 - 1.0 / np.asarray(domains)), crossings(copies, domains))
