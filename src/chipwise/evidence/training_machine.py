"""The devices of a row of training measurements, and what joined them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.errors import UsageError
from chipwise.evidence.rows import Row
from chipwise.evidence.training_models import number
from chipwise.predict.training.cluster import cluster
from chipwise.predict.training.values import Cluster

__all__ = ["Machine", "at_jean_zay", "row_chip", "row_machine"]

# Chips that the catalogue does not hold, by words of the accelerator's name: the nearest that it does.
NEAREST: tuple[tuple[str, str], ...] = (
    ("A800", "a100-sxm4-80gb"),
    ("H100-SXM5-96GB", "h100-sxm5-80gb"),
    ("H20", "h200-sxm-141gb"),
    ("H800", "h100-sxm5-80gb"),
    ("V100", "v100-sxm2-32gb"),
    ("MI250", "mi210"),
)
GIGABIT = 1e9 / 8.0
USUAL_NIC = 100.0 * GIGABIT  # per chip, where neither the row nor the catalogue names a network

# Words of an interconnect -> share of the number in them that one chip gets, in Gb/s.
NETWORKS: tuple[tuple[str, float], ...] = (
    (r"(\d+) Gb/s IB per node", 1.0 / 8.0),
    (r"(\d+) Gbps RoCE node-node", 1.0 / 8.0),
    (r"4x(\d+)Gb RoCE per node", 0.5),
    (r"(\d+)Gb/s RDMA per GPU", 1.0),
    (r"(\d+)Gb/s CX-7 per GPU", 1.0),
    (r"8x HDR(\d+) IB per node", 1.0),
)
HALVED = (
    "wide",
    "narrow",
    "memory_bytes",
    "memory_bytes_per_s",
    "link_bytes_per_s",
    "nic_bytes_per_s",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The cluster of a row; `exact`: its chip is in the catalogue; `per_chip`: devices that layouts count."""

    cluster: Cluster
    devices: float
    per_chip: float
    guessed: tuple[str, ...]


def at_jean_zay(row: Row) -> bool:
    """Whether it ran on Jean Zay, whose network, clocks and repeats are known from BigScience's notes."""
    return row.get("system") == "Jean Zay"


def row_chip(row: Row) -> tuple[Chip, bool]:
    """The chip of a row, and whether it is the very one. Raises `UsageError` for one that nobody knows."""
    name = (row.get("chip") or "").strip()
    if name:
        return get_chip(name), True
    text = row.get("accelerator", "")
    found = next((chip for word, chip in NEAREST if word in text), None)
    if found is None:
        raise UsageError(f"no chip for '{text[:60]}'", "name one: chipwise chips list")
    return get_chip(found), False


def row_machine(row: Row, chip: Chip, dtype: str, *, exact: bool, cores: bool) -> Machine:
    """Devices as layouts count them (`cores`: two NeuronCores per chip). Raises `UsageError`."""
    chips = number(row, "chips_total")
    if chips is None:
        raise UsageError(f"{row.get('row_id', 'row')}: no chips_total", "say how many chips")
    per_chip = 2.0 if cores and chip.devices_per_package == 1 else 1.0
    domain, nic = _joined(row, chips, chip.scaleup.domain if chip.scaleup else 8)
    old = "fp16" in row.get("precision", "").lower() or chip.id.startswith(("v100", "mi100"))
    made = cluster(chip, dtype, domain=domain, nic_bytes_per_s=nic, half="fp16" if old else "bf16")
    if per_chip > 1:
        # each device has half of everything
        made = replace(made, **{n: getattr(made, n) / 2.0 for n in HALVED}, domain=made.domain * 2.0)
    guessed: list[str] = []
    if not exact:
        guessed.append(f"{row.get('accelerator', '?')} taken as {chip.id}")
    if not exact and "HBM2e" in row.get("accelerator", ""):
        # 500 W instead of 700 W: 0.85 of the clock is a guess
        slow = {"wide": 0.85 * made.wide, "narrow": 0.85 * made.narrow}
        made = replace(made, memory_bytes_per_s=2.4e12, memory_bytes=96e9, **slow)
    if not np.isfinite(made.nic_bytes_per_s):
        made = replace(made, nic_bytes_per_s=USUAL_NIC)
        if chips * per_chip > made.domain:
            guessed.append("network of 100 Gb/s per chip")
    return Machine(made, chips * per_chip, per_chip, tuple(guessed))


def _joined(row: Row, chips: float, usual: int) -> tuple[float | None, float | None]:
    """(chips of a scale-up domain, network bytes/s per chip) as the row words them; None: as usual."""
    text = " ".join(row.get(k, "") for k in ("interconnect", "system", "host_network", "notes"))
    domain: float | None = None
    nic: float | None = None
    slices = re.match(r"(\d+)x[ -]?v\d", row.get("system", ""))
    if slices:
        domain = chips / float(slices.group(1))
    elif "torus" in text.lower() or row.get("chip", "").startswith("tpu"):
        domain = max(chips, 1.0)
    elif "nodes of 4" in text:
        # four adapters of 100 Gb/s, of which NCCL used one: an all-reduce over 16 nodes ran at 110 Gb/s per node
        # (BigScience, experiments/bandwidth)
        domain, nic = 4.0, 110.0 / 4.0 * GIGABIT
    elif at_jean_zay(row):
        domain, nic = 8.0, 50.0 * GIGABIT
    elif "DGX-1 " in text or "V100" in row.get("accelerator", ""):
        domain = min(8.0, float(usual)) if "DGX-2" not in text else 16.0
    for pattern, share in NETWORKS:
        match = re.search(pattern, text)
        if match:
            nic = float(match.group(1)) * share * GIGABIT
    if "EFA 800" in text:
        nic = 800.0 / 16.0 * GIGABIT
    per_node = number(row, "chips_per_node")
    if per_node and domain is None and usual < 72:
        domain = min(float(usual), per_node)
    return domain, nic
