"""Questions about collectives -> labels of their fitted numbers, and seconds by `parallel.collective`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_questions import Questions
from chipwise.catalog.chip import Chip
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.parallel.collective import CollectiveParameters, collective
from chipwise.units import Array, Real

__all__ = ["FORMULA_OF", "exchange_cost", "exchange_labels", "link_of"]

PCIE_BYTES_PER_S = 16e9  # nominal PCIe 3 x16, one direction: where a chip names no host link
FORMULA_OF = {"expert_exchange": "all_to_all"}
"""Kinds with kernels, and fitted numbers, of their own -> the kind whose formula they have."""


def exchange_labels(asked: Questions, fabric: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
    """kind, library and fabric of every question; `fabric` is what joins its chips where nothing else is said."""
    experts = np.isin(asked["kind"], list(FORMULA_OF))
    said = np.where((asked["fabric"] == "") | (asked["fabric"] == "link"), fabric, asked["fabric"])
    return {
        "kind": np.where(experts, "exchange", asked["kind"]),
        "library": np.where(asked["library"] == "", "NCCL", asked["library"]),
        "fabric": np.where(experts, "exchange", said),
    }


def exchange_cost(asked: Questions, chips: Sequence[Chip], values: Mapping[str, Real]) -> Cost:
    """Latency under "launch", transfer under "network"; `chips` are those of each question."""
    size = len(asked["op"])
    latency, transfer = np.empty(size), np.empty(size)
    link = link_of(asked, chips)
    groups = np.char.add(np.char.add(asked["kind"], "+"), asked["algorithm"])
    for group in np.unique(groups).tolist():
        at = np.flatnonzero(groups == group)
        name, algorithm = group.split("+")
        p = CollectiveParameters(
            **{f.name: np.broadcast_to(values[f.name], size)[at] for f in fields(CollectiveParameters)}
        )
        kind = FORMULA_OF.get(name, name)
        found = collective(kind, asked["bytes"][at], asked["ranks"][at], link[at], p=p, algorithm=algorithm)
        latency[at], transfer[at] = found.latency_s, found.transfer_s
    return Cost({"launch": latency, "network": transfer})


def link_of(asked: Questions, chips: Sequence[Chip]) -> Array:
    """Bytes/s of a rank, one direction: the fabric of its chip as far as it is wired to the others, else the bus."""
    keys = zip(chips, asked["fabric"].tolist(), asked["ranks"].tolist(), strict=True)
    memo: dict[tuple[str, str, float], float] = {}
    out = []
    for chip, fabric, ranks in keys:
        key = (chip.id, fabric, ranks)
        if key not in memo:
            memo[key] = _link(chip, fabric, ranks)
        out.append(memo[key])
    return np.array(out)


def _link(chip: Chip, fabric: str, ranks: float) -> float:
    if fabric in ("", "link") and chip.scaleup is not None and chip.scaleup.bytes_per_s is not None:
        device = Device.of(chip)
        direct = np.fmin(device.near_bytes_per_s, device.pairwise_bytes_per_s * max(ranks - 1.0, 1.0))
        return float(np.where(ranks <= device.near_domain, direct, device.link_bytes_per_s))
    return float(chip.host.bytes_per_s) if chip.host and chip.host.bytes_per_s else PCIE_BYTES_PER_S
