"""Guards on systems: sizes nest and multiply out, a torus is as its chip says, nothing unreleased is let."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from chipwise.catalog.chip import Chip
from chipwise.catalog.system_spec import System, Tier

__all__ = ["faults"]


def faults(system: System, chips: Mapping[str, Chip]) -> Iterator[tuple[str, str]]:
    """What is wrong with a system, each as (what, hint); nothing for a sound one."""
    for way in system.offered:
        if way not in ("rent", "buy"):
            yield f"offered says '{way[:20]}'", "rent, buy or both"
    for name, _ in system.members:
        if "rent" in system.offered and not chips[name].rentable:
            yield f"{name} is only announced and cannot be rented", "take 'rent' out of offered"
    if system.mixed and any(tier.fabric not in ("pcie", "ethernet") for tier in system.tiers):
        yield "different chips are joined over PCIe or Ethernet only", ""
    if not system.tiers and system.chips_per_host > 1:
        yield f"{system.chips_per_host} chips and no tier", "say what joins them: tiers = [...]"
    inner = 1
    for tier in system.tiers:
        if tier.chips <= inner or tier.chips % inner:
            yield f"tier '{tier.name}' of {tier.chips} chips does not nest around {inner}", ""
        whole, part = max(tier.chips, system.chips_per_host), min(tier.chips, system.chips_per_host)
        if whole % part:
            yield f"tier '{tier.name}' of {tier.chips} chips splits hosts of {system.chips_per_host}", ""
        yield from _torus_faults(tier, chips[system.chip]) if tier.torus else _count_faults(tier)
        for shape in tier.slices:
            if math.prod(shape) > tier.chips:
                yield f"tier '{tier.name}': slice {list(shape)} is larger than {tier.chips} chips", ""
        inner = tier.chips
    if system.tiers and system.chips < system.chips_per_host:
        yield (
            f"a host has {system.chips_per_host} chips, but the tiers join only {system.chips}",
            "add an outer tier",
        )


def _torus_faults(tier: Tier, chip: Chip) -> Iterator[tuple[str, str]]:
    axes = 2 if tier.fabric == "torus2d" else 3
    where = f"tier '{tier.name}'"
    if len(tier.shape) != axes or math.prod(tier.shape) != tier.chips:
        yield f"{where}: shape {list(tier.shape)} is not {axes} axes of {tier.chips} chips", ""
    said = re.search(r"([23])D torus", chip.scaleup.topology) if chip.scaleup else None
    if chip.kind == "tpu" and said and int(said.group(1)) != axes:
        yield f"{where}: {chip.id} forms a {said.group(0)}, not {axes} axes", ""
    if tier.cube and (axes != 3 or not 0 < tier.largest_slice <= tier.chips):
        yield f"{where}: cubes need three axes and a largest_slice of at most {tier.chips}", ""
    if any(len(shape) != axes for shape in tier.slices):
        yield f"{where}: every slice has {axes} axes", ""


def _count_faults(tier: Tier) -> Iterator[tuple[str, str]]:
    if tier.shape or tier.cube or tier.wrap != "never" or any(len(shape) != 1 for shape in tier.slices):
        yield f"tier '{tier.name}': only a torus has a shape", "list the counts on offer as [[1], [2], [4]]"
