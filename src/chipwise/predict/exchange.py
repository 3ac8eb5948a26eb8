"""Which numbers an exchange takes, and which network it meets: where `cost` and `parallel` meet."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters
from chipwise.cost.simt.family import SimtParameters
from chipwise.parallel.collective import (
    CollectiveParameters,
    Comm,
    Kind,
    Transfer,
    crossings,
    dispatch,
    exchange,
)
from chipwise.parallel.layout import Layout
from chipwise.parallel.network import ALIKE, Network, Wiring
from chipwise.predict.overheads import Overheads
from chipwise.units import Real


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
    own = comm.kind == "all_reduce" and isinstance(costs, SimtParameters)
    stride = np.asarray(layout.devices) / 2.0 if comm.axis == "pp" else 1.0
    found: Transfer = exchange(
        comm.kind,
        comm.payload_bytes,
        comm.ranks,
        network,
        numbers,
        stride=stride,
        direct=exchange_numbers(comm.kind, costs, overheads, direct=True) if own else None,
    )
    return found.latency_s, found.transfer_s


def _away(copies: Real, domains: Real, *, each: bool | NDArray[np.bool_]) -> Real:
    """Times that a token crosses the network to its k = `copies` experts in D `domains`: k (1 - 1 / D) where every copy
    does, else once to each other domain that holds any of them (`crossings`)."""
    return np.where(each, copies * (1.0 - 1.0 / np.asarray(domains)), crossings(copies, domains))
