"""What joins the chips of a collective: the fabric and the network of a catalogued system, or the chip's own links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.catalog.chip import Chip
from chipwise.catalog.system import systems_for, with_own_links
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.parallel.collective import Traffic
from chipwise.parallel.network import Network, system_network
from chipwise.predict.exchange import device_network
from chipwise.units import format_bytes, scalar
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Joined:
    """The network that ranks meet on, and its name."""

    network: Network
    name: str

    def described(self, tiers: Sequence[Traffic]) -> str:
        """Steps and bytes of an exchange on every tier that it uses."""
        names = ["fabric"] * (len(tiers) - 1) + ["network"]
        used = [(n, t) for n, t in zip(names, tiers, strict=True) if scalar(t.num_bytes) > 0.0]
        parts, held = [], 1.0
        for name, t in used:
            group = scalar(t.level.ranks) / held
            steps, moved = scalar(t.steps), format_bytes(scalar(t.num_bytes))
            rounds = "step" if steps == 1.0 else "steps"
            what = f"{group:,.0f} domains" if name == "network" else f"{group:,.0f} ranks"
            parts.append(f"{what}: {steps:,.3g} {rounds}, {moved} through each port")
            held = scalar(t.level.ranks)
        return f"{'; '.join(parts)}; over {self.name}"


def joining_system(chip: Chip, ranks: int) -> System | None:
    """The first system of a chip that joins so many, inside its fabric or over its network; None: none does."""
    for system in (with_own_links(s, chip) for s in systems_for(chip.software_id)):
        networked = system.scaleout is not None and system.scaleout.bytes_per_s is not None
        if not system.mixed and (ranks <= system.chips or networked):
            return system
    return None


def joined(chip: Chip, span: int, oversubscription: float = 1.0) -> Joined | None:
    """What `span` chips in a row meet on: a system of the catalogue, else, inside one domain, the chip's own links;
    None where it is not known, which a torus is not without its system."""
    system = joining_system(chip, span)
    if system is not None:
        network = system_network(system, span)
        wiring = replace(network.wiring, oversubscription=oversubscription)
        return Joined(replace(network, wiring=wiring), system.id)
    device = Device.of(chip)
    if span > device.domain or chip.family == "systolic":
        return None
    name = (chip.scaleup.topology or chip.scaleup.name) if chip.scaleup else "the host's bus"
    return Joined(device_network(device), name)


def limit(tiers: Sequence[Traffic]) -> tuple[str, float]:
    """The tier that an exchange would wait for at full rate, and those seconds."""
    seconds = [scalar(t.least_s) for t in tiers]
    slowest = max(range(len(tiers)), key=lambda i: seconds[i])
    return ("NIC" if tiers[slowest].level.network else "fabric"), seconds[slowest]
