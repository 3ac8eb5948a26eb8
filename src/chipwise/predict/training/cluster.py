"""Devices of a chip, and what joins them, as a training step sees them."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.errors import UsageError
from chipwise.parallel.network import ALIKE, Network, Wiring, wiring
from chipwise.predict.training.values import Cluster
from chipwise.values import dataclass

# Types that products with weights run in, by the precision of a training recipe.
COMPUTE = {"fp32": "fp32", "16": "bf16", "8": "fp8", "4": "fp4"}
HOST_BYTES_PER_S = 25e9
"""bytes per second: of a host link, where a chip names none. Chosen: what PCIe 4 x16 sustains of 32 GB/s; moves
offloading on those chips in proportion."""


@dataclass(frozen=True, slots=True)
class Wired(Cluster):
    """A cluster whose links are not all alike."""

    wiring: Wiring = ALIKE

    @property
    def network(self) -> Network:
        """The part that groups of ranks see."""
        link, nic = self.link_bytes_per_s, self.nic_bytes_per_s
        return Network(link, self.domain, nic, self.axes, self.mesh, wiring=self.wiring)

    @classmethod
    def of(cls, c: Cluster, wiring: Wiring) -> Wired:
        """The same cluster with other links."""
        return cls(**{f.name: getattr(c, f.name) for f in fields(Cluster)}, wiring=wiring)


def _wired(topology: str, domain: float) -> tuple[float, float]:
    """Axes of a torus (0: none), and whether every device is linked with every other (1)."""
    axes = 3.0 if "3d torus" in topology else 2.0 if "2d torus" in topology else 0.0
    return axes, 1.0 if "mesh" in topology and domain <= 8.0 else 0.0


def cluster(
    chip: Chip,
    dtype: str = "16",
    *,
    domain: float | None = None,
    nic_bytes_per_s: float | None = None,
    cores: bool = False,
    half: str = "bf16",
) -> Cluster:
    """Devices of `chip` computing in `dtype` ("fp32", "16", "8", "4"), joined as its data sheet says.

    `domain` and `nic_bytes_per_s` replace the usual fabric and network; `half` is the 16-bit type. With
    `cores` the devices that software sees in a package, else whole packages. A chip without a published
    network gets none (NaN). Raises `UsageError` where a chip has no published rate, capacity or bandwidth.
    """
    device = Device.of(chip)
    packages = 1.0 if cores else float(chip.devices_per_package)
    wide = device.matrix[half]
    narrow = device.matrix[COMPUTE[dtype]] if dtype != "16" else wide
    axes, mesh = _wired(chip.scaleup.topology.lower() if chip.scaleup else "", domain or 8.0)
    link = np.nan_to_num(float(device.link_bytes_per_s)) * packages or 1e9
    nic = nic_bytes_per_s if nic_bytes_per_s is not None else float(device.scaleout_bytes_per_s) * packages
    made = Cluster(
        wide=float(wide) * packages,
        narrow=float(narrow) * packages,
        memory_bytes=float(device.memory_bytes) * packages,
        memory_bytes_per_s=float(device.memory_bytes_per_s) * packages,
        link_bytes_per_s=link,
        domain=domain or float(device.domain) / packages,
        nic_bytes_per_s=nic,
        axes=axes,
        mesh=mesh,
        host_bytes_per_s=(chip.host.bytes_per_s if chip.host else None) or HOST_BYTES_PER_S,
    )
    for name, value in (
        ("rate", made.narrow if dtype == "fp32" else made.wide),
        ("memory", made.memory_bytes),
        ("bandwidth", made.memory_bytes_per_s),
    ):
        if not np.isfinite(value):
            raise UsageError(f"{chip.id}: its {name} is not published", "choose another chip, or set it")
    return made


def on_system(chip: Chip, system: System, dtype: str = "16", half: str = "bf16") -> Wired:
    """The same on a system of the catalogue: its outermost fabric, its network, cards that are bridged, and the memory
    that display and operating system leave.

    The speed is that of the outermost fabric, unless the user gave the chip another link."""
    tier = system.tiers[-1] if system.tiers else None
    nic = system.scaleout.bytes_per_s if system.scaleout else None
    made = cluster(
        chip,
        dtype,
        domain=float(tier.chips) if tier else 1.0,
        nic_bytes_per_s=np.nan if nic is None else nic,
        half=half,
    )
    left = float(made.memory_bytes) - system.reserved_bytes(float(made.memory_bytes))
    ram = system.host.memory_bytes[-1] if system.host.memory_bytes else np.inf
    made = replace(made, memory_bytes=left, host_memory_bytes=ram / system.chips_per_host)
    if tier is None or "link" in chip.own or tier.bytes_per_s is None:
        return Wired.of(made, ALIKE)
    paths = wiring(system)
    # an outer ring around a torus leaves most groups on the torus: the chip's own speed stays
    made = made if paths == ALIKE else replace(made, link_bytes_per_s=tier.bytes_per_s)
    return Wired.of(made, paths)
