"""Collectives over the fabric and the network of a catalogued system: every algorithm, the fastest one chosen."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.system import systems_for, with_own_links
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters
from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.parallel.network import group_rate
from chipwise.parallel.topology import Exchange, Latency, Topology, exchange_time, system_topology
from chipwise.units import scalar

__all__ = ["Across", "across", "direct_link", "joining_system"]


@dataclass(frozen=True, slots=True)
class Across:
    """Seconds of an exchange of `kind` by algorithm, the same of no bytes (what of it is latency), and where."""

    kind: str
    exchange: Exchange
    empty: Exchange
    topology: Topology
    system: System

    @property
    def listed(self) -> str:
        """Every algorithm with its time, the fastest first."""
        times = sorted(self.exchange.by_algorithm.items(), key=lambda i: scalar(i[1]))
        return ", ".join(f"{name} {scalar(t) * 1e6:,.0f} us" for name, t in times)

    def limit(self, ranks: int, apart: int) -> tuple[str, float]:
        """The link that limits it, and its bytes/s for a rank at full rate: the fabric, or across domains the network
        cards of the ranks there. Of an all-to-all what leaves the domain goes over the rank's own card."""
        network = self.topology.network
        rate, fabric = group_rate(network, ranks, apart, 1.0, 1.0), scalar(network.link_bytes_per_s)
        together = scalar(rate.together)
        if self.kind == "all_to_all":
            together = (ranks - 1.0) / max(ranks - together, 1.0)
        cards = scalar(rate.across) * together
        return ("NIC", cards) if bool(rate.leaves) and cards < fabric else ("fabric", fabric)


def joining_system(chip: Chip, ranks: int) -> System | None:
    """The first system of a chip that joins so many, inside its fabric or over its network; None: none does."""
    for system in (with_own_links(s, chip) for s in systems_for(chip.software_id)):
        networked = system.scaleout is not None and system.scaleout.bytes_per_s is not None
        if not system.mixed and (ranks <= system.chips or networked):
            return system
    return None


def direct_link(device: Device, ranks: float) -> float:
    """Bytes/s of a rank whose group owns its links: of links wired from chip to chip only those to the others."""
    direct = np.fmin(device.near_bytes_per_s, device.pairwise_bytes_per_s * max(ranks - 1.0, 1.0))
    return scalar(np.where(ranks <= device.near_domain, direct, device.link_bytes_per_s))


def across(
    kind: str,
    num_bytes: float,
    ranks: int,
    chip: Chip,
    system: System,
    numbers: Parameters,
    *,
    apart: int = 1,
    oversubscription: float = 1.0,
) -> Across:
    """One exchange on a system by every algorithm, its ranks `apart` chips from one another.

    The share of the link that collectives reach is the one fitted to the chip's family: of eight ranks on GPUs.
    """
    known: Kind = kind  # type: ignore[assignment]
    topology = system_topology(system, ranks * apart)
    wiring = replace(topology.network.wiring, oversubscription=oversubscription)
    topology = replace(topology, network=replace(topology.network, wiring=wiring))
    p = _latency(chip, numbers, Device.of(chip))
    found, empty = (exchange_time(known, size, ranks, topology, p, stride=apart) for size in (num_bytes, 0.0))
    return Across(kind, found, empty, topology, system)


def _latency(chip: Chip, numbers: Parameters, device: Device) -> Latency:
    costs = numbers.cost(chip.family, "vllm" if chip.family == "simt" else "any", [chip], alone=True)
    if not isinstance(costs, SimtParameters):
        o = numbers.overheads(chip.family, "any")
        return Latency(base_s=o.link_base_s, hop_s=o.link_hop_s, link=np.minimum(o.link_share, 1.0))
    values = costs.find("collective", (("kind", "all_reduce"), ("algorithm", "ring")))
    p = CollectiveParameters(
        **{f.name: float(np.ravel(values[f.name])[0]) for f in fields(CollectiveParameters)}
    )
    reached = float(p.link_share) * (min(float(device.domain), 8.0) / 4.0) ** float(p.rank_gain)
    return Latency(base_s=p.base_s, step_s=p.step_s, link=min(reached, 1.0))
