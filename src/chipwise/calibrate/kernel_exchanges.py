"""Questions about collectives -> labels of their fitted numbers, the network they meet on, and seconds by
`parallel.collective`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_questions import Questions
from chipwise.catalog.chip import Chip
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.parallel.collective import (
    CollectiveParameters,
    Kind,
    Traffic,
    direct_all_reduce,
    exchange,
    traffic,
)
from chipwise.parallel.network import Network
from chipwise.predict.exchange import device_network
from chipwise.units import Real

__all__ = ["FABRICS", "exchange_cost", "exchange_labels", "exchange_tiers", "network_of"]

FABRICS = ("link", "pcie", "pairs")
"""What joins the ranks of a question: the fabric of their chips, the host's bus, or links between two with the bus
between pairs."""

PCIE_BYTES_PER_S = 16e9  # nominal PCIe 3 x16, one direction: where a chip names no host link
CARDS = 8.0  # that meet on the bus of one host
_FORMULA_OF: Mapping[str, Kind] = {"expert_exchange": "all_to_all"}  # by kernels and numbers of its own


def exchange_labels(
    asked: Questions, chip: NDArray[np.str_], fabric: NDArray[np.str_]
) -> dict[str, NDArray[np.str_]]:
    """kind, library, fabric and routed of every question; `chip` and `fabric` are those of its chips."""
    routed = np.isin(asked["kind"], list(_FORMULA_OF))
    return {
        "kind": np.where(routed, "exchange", asked["kind"]),
        "library": np.where(asked["library"] == "", "NCCL", asked["library"]),
        "fabric": np.where(routed, "exchange", np.where(asked["fabric"] == "pcie", "pcie", fabric)),
        "routed": np.where(routed, chip, "no"),
    }


def network_of(asked: Questions, chips: Sequence[Chip]) -> Network:
    """What the ranks of every question meet on, `chips` being those of each: as many as `domain` says, or as the fabric
    joins; beyond it the network cards, or, where ranks meet on a bus, the bus again."""
    each = {chip.id: chip for chip in chips}
    codes = np.array([list(each).index(chip.id) for chip in chips], dtype=np.intp)
    device = Device.stack([Device.of(chip) for chip in each.values()]).take(codes)
    bus = np.array([_bus(chip) for chip in each.values()])[codes]
    fabric = np.array([bool(c.scaleup and c.scaleup.bytes_per_s) for c in each.values()])[codes]
    slow = (asked["fabric"] == "pcie") | ~fabric
    pairs = asked["fabric"] == "pairs"
    own = np.isfinite(device.scaleout_bytes_per_s) & (asked["fabric"] != "pcie") & ~pairs
    joined = np.where(pairs, 2.0, np.where(slow, np.fmax(device.domain, CARDS), device.domain))
    found = device_network(device)
    w = found.wiring
    alike = slow | (np.asarray(w.near_pair_bytes_per_s) >= w.near_bytes_per_s)
    return replace(
        found,
        link_bytes_per_s=np.where(slow, bus, found.link_bytes_per_s),
        domain=np.minimum(asked["domain"], joined),
        nic_bytes_per_s=np.where(own, device.scaleout_bytes_per_s, bus),
        wiring=w if np.all(alike) else replace(w, near=np.where(alike, 0.0, w.near)),
    )


def exchange_cost(asked: Questions, network: Network, values: Mapping[str, Real]) -> Cost:
    """Latency under "launch", transfer under "network", of questions that are `alike`."""
    p = CollectiveParameters(**{f.name: values[f.name] for f in fields(CollectiveParameters)})
    if str(asked["algorithm"][0]) == "direct":
        found = direct_all_reduce(asked["bytes"], asked["ranks"], network, p)
    else:
        found = exchange(_kind(asked), asked["bytes"], asked["ranks"], network, p)
    return Cost({"launch": found.latency_s, "network": found.transfer_s})


def exchange_tiers(asked: Questions, network: Network) -> tuple[Traffic, ...]:
    """Bytes and steps of questions that are `alike`, tier by tier."""
    return traffic(_kind(asked), asked["bytes"], asked["ranks"], network)


def _kind(asked: Questions) -> Kind:
    name = str(asked["kind"][0])
    return _FORMULA_OF.get(name, cast(Kind, name))


def _bus(chip: Chip) -> float:
    return float(chip.host.bytes_per_s) if chip.host and chip.host.bytes_per_s else PCIE_BYTES_PER_S
