"""The numbers of one device, or of a stack of devices of one family, as cost models read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from chipwise.catalog.chip import Chip, Family, Link
from chipwise.catalog.system_spec import System
from chipwise.units import Real
from chipwise.values import dataclass

DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")

# What a product runs in where the chip has no unit for the type: operands are widened first.
FALLBACK: Mapping[str, tuple[str, ...]] = {
    "fp32": ("fp32", "tf32", "bf16", "fp16"),
    "tf32": ("tf32", "fp32", "bf16", "fp16"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("int8", "bf16", "fp16", "fp32"),
    "int4": ("bf16", "fp16", "fp32"),
    "fp4": ("fp4", "bf16", "fp16", "fp32"),
}

CACHE_BYTES = 8e6
"""bytes: last-level cache, where a vendor publishes none. Chosen: of the size that chips without a figure have, some
MB; moves what repeated operands find in cache."""
CLOCK_HZ = 1.7e9
"""clocks per second: where none is published. Chosen: of the size that accelerators of recent years have; moves the
units that are derived from a peak."""
UNIT_FLOPS = 16384.0
"""operations per clock and unit: dense 16-bit ones, where units are not counted. Chosen: between an SM, 4,096 to
8,192, and an array of 128 x 128, 32,768; moves into how many units a peak is divided, so how coarse waves are."""


@dataclass(frozen=True)
class Device:
    """What software sees as one device: a package's figures over its devices.

    `matrix` maps every data type to the rate at which a product of that type runs, in FLOP/s, with the
    fallback of types that the chip has no unit for. NaN = not published. `reserved_bytes` of the memory belong
    to display and operating system.

    `link_bytes_per_s` joins `domain` devices; up to `near_domain` of them meet faster, at `near_bytes_per_s`,
    of which one pair reaches `pairwise_bytes_per_s` (less than all where links are wired chip to chip).

    `units` (SMs, CUs, arrays) run at `clock_hz`, the clock at which the peak is stated, behind a last-level
    cache of `cache_bytes`, within `power_w`. Where a vendor does not publish them: 1.7 GHz, 8 MB, no limit, and
    as many units as do 16,384 16-bit operations per cycle each (twice those of Blackwell).
    """

    family: Family
    matrix: Mapping[str, Real]
    vector_flops_per_s: Real
    memory_bytes: Real
    reserved_bytes: Real
    memory_bytes_per_s: Real
    link_bytes_per_s: Real
    domain: Real
    near_bytes_per_s: Real
    near_domain: Real
    pairwise_bytes_per_s: Real
    scaleout_bytes_per_s: Real
    cache_bytes: Real = CACHE_BYTES
    units: Real = 1.0
    clock_hz: Real = CLOCK_HZ
    power_w: Real = np.inf

    @classmethod
    def of(cls, chip: Chip, reserved_bytes: float = 0.0, system: System | None = None) -> Device:
        """The device of a chip in a machine that keeps `reserved_bytes` of its memory for itself.

        Without a `system`, or with a link that the user gave, the chip's own link joins as many as it can, or the
        host's bus eight cards.
        """
        n = float(chip.devices_per_package)
        memory = chip.memory
        bounds = [b for b in (memory.label_bytes, memory.usable_bytes) if b is not None]
        near, far = _tiers(chip, system)
        network = chip.scaleout_bytes_per_s
        if system and system.scaleout and "scaleout" not in chip.own:
            network = system.scaleout.bytes_per_s
        return cls(
            family=chip.family,
            matrix={d: _part(_rate(chip, d), n) for d in DTYPES},
            vector_flops_per_s=_part(_number(chip.vector.get("fp32"), _rate(chip, "fp32")), n),
            memory_bytes=min(bounds) / n if bounds else np.nan,
            reserved_bytes=reserved_bytes / n,
            memory_bytes_per_s=_part(_number(memory.bytes_per_s), n),
            link_bytes_per_s=_part(_number(far.bytes_per_s), n),
            domain=far.domain * n,
            near_bytes_per_s=_part(_number(near.bytes_per_s), n),
            near_domain=near.domain * n,
            pairwise_bytes_per_s=_part(_number(near.pairwise_bytes_per_s, _number(near.bytes_per_s)), n),
            scaleout_bytes_per_s=_part(_number(network), n),
            cache_bytes=(chip.cache_bytes or CACHE_BYTES) / n,
            units=(chip.matrix_unit.units or _assumed_units(chip)) / n,
            clock_hz=_clock_hz(chip),
            power_w=(chip.tdp_w or np.inf) / n,
        )

    @classmethod
    def stack(cls, devices: Sequence[Device]) -> Device:
        """Devices of one family side by side, every figure an array."""
        columns: dict[str, Any] = {
            name: np.array([getattr(d, name) for d in devices], dtype=float) for name in _NUMBERS
        }
        matrix = {dtype: np.array([d.matrix[dtype] for d in devices], dtype=float) for dtype in DTYPES}
        return replace(devices[0], matrix=matrix, **columns)

    def take(self, index: np.ndarray) -> Device:
        """Of a stack: the devices at `index`, any shape."""
        columns: dict[str, Any] = {name: np.asarray(getattr(self, name))[index] for name in _NUMBERS}
        return replace(self, matrix={d: np.asarray(v)[index] for d, v in self.matrix.items()}, **columns)


def _clock_hz(chip: Chip) -> float:
    return chip.matrix_unit.peak_clock_hz or chip.matrix_unit.boost_clock_hz or CLOCK_HZ


def _assumed_units(chip: Chip) -> float:
    return float(np.fmax(1.0, np.round(_rate(chip, "bf16") / (UNIT_FLOPS * _clock_hz(chip)))))


_NUMBERS = tuple(f.name for f in fields(Device) if f.name not in ("family", "matrix"))


def _tiers(chip: Chip, system: System | None) -> tuple[Link, Link]:
    """The innermost fabric and the outermost one."""
    given = {"link", "pairwise", "host"} & set(chip.own)
    if system is not None and not given:
        links = [
            Link(
                t.name,
                chip.over_bus(t.bytes_per_s) if t.fabric == "pcie" else t.bytes_per_s,
                t.pairwise_bytes_per_s,
                domain=t.chips,
            )
            for t in system.tiers
        ]
        return (links[0], links[-1]) if links else (Link("none", None), Link("none", None))
    link = chip.scaleup
    if link is None or link.bytes_per_s is None:
        # cards without a fabric of their own meet over the host's bus, eight to a server at most
        bus = chip.over_bus(chip.host.bytes_per_s) if chip.host else None
        link = Link("bus", bus, domain=8 if bus is not None and chip.kind == "gpu" else 1)
    return link, link


def _part(value: float, devices: float) -> float:
    """A figure of one of the devices of a chip. What is unknown is the one `np.nan`, which devices that are the same
    have in common: so they are found equal."""
    return np.nan if np.isnan(value) else value / devices


def _number(value: float | None, default: float = np.nan) -> float:
    return default if value is None else value


def _rate(chip: Chip, dtype: str) -> float:
    """Products are made where the first of the types has a unit; on vector lanes in fp32 where that is faster."""
    for name in FALLBACK[dtype]:
        if name in chip.matrix:
            return chip.matrix[name]
        if name in chip.vector:
            return max(chip.vector[name], chip.vector.get("fp32", 0.0))
    return float(np.nan)
