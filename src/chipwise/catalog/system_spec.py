"""A system as it is rented or owned: chips in hosts, the fabric that joins them, what surrounds them.

Facts only. A link speed is one direction, per chip; the pairwise speed stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from chipwise.catalog.chip import Provenance
from chipwise.errors import UnknownNameError, UsageError
from chipwise.values import dataclass

Fabric = Literal[
    "nvswitch", "switched", "mesh", "partial-mesh", "ring", "torus2d", "torus3d", "bridge", "pcie", "socket",
    "dragonfly", "tree", "ethernet",
]  # fmt: skip
"""How the chips of a tier are joined. `switched` is a switch other than NVSwitch, `mesh` a link between
every pair, `tree` a broadcast and reduction tree. A system without tiers joins nothing."""

WrapRule = Literal["never", "always", "full-axis", "whole-cubes"]
"""Where an axis of a slice closes into a ring: nowhere, everywhere, where it spans the whole pod, or on every
axis of a slice that is made of whole cubes."""

Form = Literal["server", "rack", "slice", "workstation", "desktop", "laptop", "board", "phone", "appliance"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FabricTier:
    """One level of scale-up fabric. `chips` counts all chips that it joins, inner tiers included.

    `bytes_per_s` is one direction, per chip, over all its ports on this tier; `pairwise_bytes_per_s` is what
    one pair of neighbours can use. None = not published. `inherited`: the speeds are the chip's own figures.
    A torus has the `shape` of the whole pod, the `slices` on offer below one cube (or all of them, where
    `cube` is 0), and from one cube on every product of whole cubes up to `largest_slice` chips. Other fabrics
    may list the counts on offer in `slices`.
    """

    name: str
    fabric: Fabric
    chips: int
    bytes_per_s: float | None
    pairwise_bytes_per_s: float | None
    inherited: bool = False
    shape: Shape = ()
    wrap: WrapRule = "never"
    slices: tuple[Shape, ...] = ()
    cube: int = 0
    largest_slice: int = 0

    @property
    def torus(self) -> bool:
        """Whether chips are joined to neighbours on a grid."""
        return self.fabric in ("torus2d", "torus3d")

    def closes(self, shape: Shape) -> tuple[bool, ...]:
        """Per axis of a slice, whether it wraps around. An axis of one or two chips gains nothing by it."""
        if self.wrap == "always":
            ring = [True] * len(shape)
        elif self.wrap == "full-axis":
            ring = [length == max(self.shape) for length in shape]
        elif self.wrap == "whole-cubes":
            ring = [self.cube > 0 and all(length % self.cube == 0 for length in shape)] * len(shape)
        else:
            ring = [False] * len(shape)
        return tuple(closed and length > 2 for closed, length in zip(ring, shape, strict=True))


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """The network beyond the scale-up fabric: one direction, per chip; None = not published."""

    kind: str
    bytes_per_s: float | None
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """The computer that holds the chips. Memory is per host: least, typical and most on offer."""

    cpu: str
    sockets: int | None
    numa_nodes: int | None
    memory_bytes: tuple[float, float, float] | None
    link_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Reserve:
    """Memory that display, operating system and driver keep: `fixed_bytes` plus `share` of a memory of at
    most `up_to_bytes`."""

    up_to_bytes: float
    share: float
    fixed_bytes: float


@dataclass(frozen=True, slots=True)
class System:
    """Chips in hosts, joined by a fabric. `members` lists (chip id, count) per host; more than one = mixed.

    `offered` says how one gets it ("rent", "buy"). `max_power_w` is of the whole system as sold, hosts
    included; None = not published. `memory_options_bytes` are the sizes on sale, per host, where the memory
    is chosen with the machine (unified memory, CPU servers). `provenance(figure)` gives source and grade of
    a figure named by its key in the catalogue file.
    """

    id: str
    name: str
    form: Form
    members: tuple[tuple[str, int], ...]
    tiers: tuple[FabricTier, ...]
    scaleout: ScaleOut | None
    host: Host
    max_power_w: float | None
    memory_options_bytes: tuple[float, ...]
    reserves: tuple[Reserve, ...]
    offered: tuple[str, ...]
    default: Provenance
    own: Mapping[str, Provenance] = field(default_factory=dict)
    figures: Mapping[str, object] = field(default_factory=dict)

    @property
    def chip(self) -> str:
        """The chip id; of a mixed machine the most frequent one."""
        return max(self.members, key=lambda member: member[1])[0]

    @property
    def mixed(self) -> bool:
        """Whether a host holds different chips."""
        return len(self.members) > 1

    @property
    def unified(self) -> bool:
        """Whether host and chips share one memory, of the sizes that the machine is sold with."""
        return bool(self.memory_options_bytes)

    @property
    def chips_per_host(self) -> int:
        """Chips in one host."""
        return sum(count for _, count in self.members)

    @property
    def chips(self) -> int:
        """Chips that the scale-up fabric joins at most."""
        return self.tiers[-1].chips if self.tiers else self.chips_per_host

    @property
    def hosts(self) -> int:
        """Hosts of the largest scale-up domain."""
        return math.ceil(self.chips / self.chips_per_host)

    def tier(self, chips: int) -> FabricTier | None:
        """The innermost tier that joins `chips` chips; None for one chip alone, or where none does."""
        if chips <= 1:
            return None
        return next((tier for tier in self.tiers if tier.chips >= chips), None)

    def slices(self) -> tuple[Shape, ...]:
        """The legal shapes, smallest first: lengths of the axes on a torus, `(count,)` elsewhere.

        A tier of another fabric around a torus appends its own length, as in (4, 4, 4) for four hosts of 4 x
        4 chips. Where a fabric accepts any count, powers of two and the whole domain are listed.
        """
        shapes: set[Shape] = set() if self.tiers else {(self.chips_per_host,)}
        inner: Shape = ()
        reached = 0
        for tier in self.tiers:
            if tier.torus:
                shapes.update(_torus_slices(tier))
                inner = tier.shape
            elif inner:
                shapes.add((*inner, tier.chips // math.prod(inner)))
            else:
                shapes.update(shape for shape in _counts(tier) if shape[0] > reached)
            reached = tier.chips
        return tuple(sorted(shapes, key=lambda shape: (math.prod(shape), shape)))

    def wraps(self, shape: Shape) -> tuple[bool, ...]:
        """Per axis of a legal shape, whether it closes into a ring. Raises `UsageError` for an illegal shape.

        Fabrics that are no torus have no axis to close: False, except a ring tier, which closes its own.
        """
        if shape not in self.slices():
            legal = ["x".join(map(str, legal)) for legal in self.slices()]
            shown = ", ".join(legal[:12]) + (", ..." if len(legal) > 12 else "")
            raise UsageError(f"{self.id} has no slice {'x'.join(map(str, shape))}", f"legal: {shown}")
        torus = next((tier for tier in self.tiers if tier.torus), None)
        if torus is None:
            return tuple(any(t.fabric == "ring" and t.chips == length for t in self.tiers) for length in shape)
        within = torus.closes(shape[: len(torus.shape)])
        return within + (self.tiers[-1].fabric == "ring",) * (len(shape) - len(within))

    def reserved_bytes(self, memory_bytes: float) -> float:
        """Bytes of a memory of `memory_bytes` that models cannot use; 0 where nothing is kept."""
        for rule in self.reserves:
            if memory_bytes <= rule.up_to_bytes:
                return min(memory_bytes, rule.fixed_bytes + rule.share * memory_bytes)
        return 0.0

    def provenance(self, figure: str) -> Provenance:
        """Source and grade of one figure: its own where it has one, else the system's.

        Inherited speeds are the chip's: ask the chip. Raises `UnknownNameError` for a figure not given here.
        """
        if figure not in self.figures:
            raise UnknownNameError(f"figure of {self.id}", figure, self.figures)
        return self.own.get(figure, self.default)


def _torus_slices(tier: FabricTier) -> set[Shape]:
    """The listed slices, and for pods of cubes every ordered product of whole cubes."""
    shapes = set(tier.slices) or (set() if tier.cube else {tier.shape})
    if tier.cube:
        most = tier.largest_slice // tier.cube**3
        for a in range(1, most + 1):
            for b in range(a, most // a + 1):
                shapes.update((a * tier.cube, b * tier.cube, c * tier.cube) for c in range(b, most // (a * b) + 1))
    return shapes


def _counts(tier: FabricTier) -> set[Shape]:
    """The listed counts, else powers of two up to the domain, and the domain."""
    if tier.slices:
        return set(tier.slices)
    return {(2**power,) for power in range(tier.chips.bit_length()) if 2**power <= tier.chips} | {(tier.chips,)}
