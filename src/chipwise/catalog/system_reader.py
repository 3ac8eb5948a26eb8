"""Strict reader of system files: the bundled ones and the user's own.

```toml
[sources]
guide = { ref = "Vendor, user guide, chapter 2", date = "2026-11-20" }

[my-box]
name = "The box under my desk"
chip = "rtx-4090"            # mixed: chips = [{ chip = "rtx-4090", count = 2 }, ...]
chips_per_host = 4
tiers = [{ name = "PCIe", fabric = "pcie", chips = 4 }]
max_power_W = 2200
sources = ["guide"]
grade = "datasheet"
own = [{ figures = ["max_power_W"], grade = "assumed", note = "size of the power supply" }]
```

With `each = ["rtx-4070", ...]` in place of `chip` a table stands for one system per chip, named `my-box-rtx-4070`;
`{chip}` in its name is the name of the chip.

One direction and 10^9 bytes in `GBps`, 2^30 in `GiB`. Speeds that are left out are the chip's own. `sources`
and `grade` hold for all figures of the system except those in `own`, and a tier may carry its own; a file
without them is its own source, graded `assumed`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from chipwise.catalog.chip import Chip, Provenance, Source
from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import Values, known_keys, read_sources
from chipwise.catalog.system_spec import Fabric, FabricTier, Form, Host, Reserve, ScaleOut, System, WrapRule
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.units import GIB
from chipwise.values import dataclass

_IDENTITY = ("name", "form", "chip", "chips_per_host", "chips", "offered", "sources", "grade", "note", "own")
_FIGURES = (
    "tiers", "scaleout_kind", "scaleout_GBps", "host_cpu", "host_sockets", "host_numa_nodes",
    "host_memory_GiB", "host_GBps", "max_power_W", "memory_options_GiB", "reserves",
)  # fmt: skip
_TIER = (
    "name", "fabric", "chips", "GBps", "pairwise_GBps", "shape", "wrap", "slices", "cube", "largest_slice",
    "sources", "grade", "note",
)  # fmt: skip
_ID = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*")


def system_entries(text: str, origin: str, chips: Mapping[str, Chip]) -> dict[str, SystemEntry]:
    """The systems of a TOML text by id, unread. Raises `UsageError` for a text that is no such file."""
    try:
        document = parse(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{origin}: not valid TOML: {error}") from None
    sources = read_sources(document.pop("sources", {}), origin)
    if not document:
        raise UsageError(f"{origin}: no systems", "write one table per system: [my-box]")
    entries: dict[str, SystemEntry] = {}
    for name, table in document.items():
        if not isinstance(table, dict):
            raise UsageError(f"{origin}: '{shorten(name, 40)}' is not a table", "write one per system: [my-box]")
        each = table.get("each", [""])
        if not isinstance(each, list) or not all(isinstance(chip, str) for chip in each):
            raise UsageError(f"{origin}: system '{shorten(name, 40)}': each must be a list of chips")
        for chip in each:
            row = {key: value for key, value in table.items() if key != "each"} | ({"chip": chip} if chip else {})
            entry = SystemEntry(f"{name}-{chip}" if chip else name, row, origin, sources, chips)
            entries[entry.name] = entry
    return entries


@dataclass(frozen=True)
class SystemEntry:
    """One system of a file, not read yet."""

    name: str
    row: Mapping[str, Any]
    origin: str
    sources: Mapping[str, Source]
    chips: Mapping[str, Chip]

    @property
    def members(self) -> tuple[str, ...]:
        """The chips that it holds, as far as its table can be read."""
        row = self.row
        mixed = row.get("chips", []) if "chip" not in row else [row]
        found = [e.get("chip") for e in mixed if isinstance(e, dict)] if isinstance(mixed, list) else []
        return tuple(str(chip) for chip in found)

    def system(self) -> System:
        """The checked value. Raises `UsageError` for an unknown key (naming the nearest), a missing or malformed value,
        sizes that do not nest or multiply out, or a chip for rent that is only announced; `UnknownNameError` for a chip
        that does not exist."""
        return _Row(self.name, self.row, self.origin, self.sources, self.chips).system()


class _Row(Values):
    """One table on its way to a `System`; carries what its messages need."""

    def __init__(
        self, name: str, row: Mapping[str, Any], origin: str, sources: Mapping[str, Source], chips: Mapping[str, Chip]
    ) -> None:
        super().__init__(f"{origin}: system '{shorten(name, 40)}'")
        self.id, self.origin = name, origin
        if not _ID.fullmatch(name):
            raise self.fail("an id is made of a-z, 0-9, '-' and '.'")
        self.row = known_keys(row, (*_IDENTITY, *_FIGURES), self.where)
        self.sources, self.chips = sources, chips

    def system(self) -> System:
        """The checked value."""
        row = self.row
        members = self.members()
        origin = Provenance((Source(self.origin, None),), "assumed")
        default = self.provenance(row, self.sources, origin)
        figures: dict[str, object] = {key: row[key] for key in _FIGURES if key in row}
        own = self.own(row, figures, self.sources, default)
        chips = [self.chips[chip] for chip, _ in members]
        tiers = []
        for index, entry in enumerate(self.array(row, "tiers")):
            tiers.append(self.tier(entry, chips))
            figures[f"tiers.{index}"] = entry
            own[f"tiers.{index}"] = self.provenance(entry, self.sources, own.get("tiers", default))
        system = System(
            id=self.id,
            name=self.text(row, "name", self.id).replace("{chip}", chips[0].name),
            form=cast(Form, self.choice(row, "form", get_args(Form), "server")),
            members=members,
            tiers=tuple(tiers),
            scaleout=self.scaleout(chips),
            host=self.host(chips),
            max_power_w=self.number(row, "max_power_W"),
            memory_options_bytes=tuple(n * GIB for n in self.numbers(row, "memory_options_GiB")),
            reserves=tuple(self.reserve(entry) for entry in self.array(row, "reserves")),
            offered=tuple(str(way) for way in self.array(row, "offered", ["buy"])),
            default=default,
            own=own,
            figures=figures,
        )
        for what, hint in _faults(system, self.chips):
            raise self.fail(what, hint)
        return system

    def members(self) -> tuple[tuple[str, int], ...]:
        row = self.row
        if ("chip" in row) == ("chips" in row):
            raise self.fail("give either chip or chips", "chips = [{ chip = ..., count = ... }] for a mixed machine")
        if "chip" in row:
            pairs = [(self.text(row, "chip"), self.count(row, "chips_per_host", 1))]
        else:
            entries = [known_keys(e, ("chip", "count"), f"{self.where}, chips") for e in self.array(row, "chips")]
            pairs = [(self.text(entry, "chip"), self.count(entry, "count", 1)) for entry in entries]
            if not pairs or len({chip for chip, _ in pairs}) < len(pairs) or "chips_per_host" in row:
                raise self.fail("chips must list each chip of a host once, without chips_per_host")
        for chip, _ in pairs:
            if chip not in self.chips:
                raise UnknownNameError(f"chip in {self.where}:", chip, self.chips)
        return tuple(pairs)

    def tier(self, entry: object, chips: Sequence[Chip]) -> FabricTier:
        table = known_keys(entry, _TIER, f"{self.where}, tier")
        fabric = cast(Fabric, self.choice(table, "fabric", get_args(Fabric)))
        inherited = "GBps" not in table
        total = self.giga(table, "GBps")
        pair: float | None = None
        if inherited and fabric == "pcie":
            total = _slowest(chip.host.bytes_per_s if chip.host else None for chip in chips)
        elif inherited:
            total = _slowest(chip.scaleup.bytes_per_s if chip.scaleup else None for chip in chips)
            pair = _slowest(chip.scaleup.pairwise_bytes_per_s if chip.scaleup else None for chip in chips)
        if "pairwise_GBps" in table:
            pair = self.giga(table, "pairwise_GBps")
        elif fabric in ("nvswitch", "switched", "bridge", "pcie") and pair is None:
            pair = total  # one port into a switch: a pair may use all of it
        return FabricTier(
            name=self.text(table, "name", fabric),
            fabric=fabric,
            chips=self.count(table, "chips"),
            bytes_per_s=total,
            pairwise_bytes_per_s=pair,
            inherited=inherited,
            shape=self.shape(table.get("shape", [])),
            wrap=cast(WrapRule, self.choice(table, "wrap", get_args(WrapRule), "never")),
            slices=tuple(self.shape(shape) for shape in self.array(table, "slices")),
            cube=self.count(table, "cube", 0),
            largest_slice=self.count(table, "largest_slice", 0),
        )

    def scaleout(self, chips: Sequence[Chip]) -> ScaleOut | None:
        if "scaleout_kind" not in self.row:
            if "scaleout_GBps" in self.row:
                raise self.fail("scaleout_GBps needs scaleout_kind", "such as 'InfiniBand NDR' or 'EFA'")
            return None
        given = self.giga(self.row, "scaleout_GBps")
        kind = self.text(self.row, "scaleout_kind")
        own = _slowest(chip.scaleout_bytes_per_s for chip in chips)
        return ScaleOut(kind, own if given is None else given, given is None)

    def host(self, chips: Sequence[Chip]) -> Host:
        row = self.row
        memory: tuple[float, float, float] | None = None
        if "host_memory_GiB" in row:
            value = row["host_memory_GiB"]
            sizes = tuple(self.positive(n, "host_memory_GiB") for n in (value if isinstance(value, list) else [value]))
            if len(sizes) not in (1, 3) or list(sizes) != sorted(sizes):
                raise self.fail("host_memory_GiB is one size, or least, typical and most")
            memory = (sizes[0] * GIB, sizes[len(sizes) // 2] * GIB, sizes[-1] * GIB)
        link = self.giga(row, "host_GBps")
        if link is None:
            link = _slowest(chip.host.bytes_per_s if chip.host else None for chip in chips)
        return Host(
            cpu=self.text(row, "host_cpu", ""),
            sockets=self.count(row, "host_sockets") if "host_sockets" in row else None,
            numa_nodes=self.count(row, "host_numa_nodes") if "host_numa_nodes" in row else None,
            memory_bytes=memory,
            link_bytes_per_s=link,
        )

    def reserve(self, entry: object) -> Reserve:
        table = known_keys(entry, ("up_to_GiB", "share", "GiB"), f"{self.where}, reserves")
        up_to = self.number(table, "up_to_GiB")
        share = self.number(table, "share") or 0.0
        if share > 1:
            raise self.fail(f"reserves: a share of {share:g} is more than the whole")
        return Reserve(math.inf if up_to is None else up_to * GIB, share, (self.number(table, "GiB") or 0.0) * GIB)


def _slowest(speeds: Iterable[float | None]) -> float | None:
    """The lowest of the speeds; None if one is not known."""
    known_speeds = list(speeds)
    return None if None in known_speeds else min(speed for speed in known_speeds if speed is not None)


def _tier_faults(tier: FabricTier, system: System, chips: Mapping[str, Chip]) -> Iterator[tuple[str, str]]:
    """What is wrong with a tier beside hosts, as a torus or a count, and with its slices."""
    whole, part = max(tier.chips, system.chips_per_host), min(tier.chips, system.chips_per_host)
    if whole % part:
        yield f"tier '{tier.name}' of {tier.chips} chips splits hosts of {system.chips_per_host}", ""
    yield from _torus_faults(tier, chips[system.chip]) if tier.torus else _count_faults(tier)
    for shape in tier.slices:
        if math.prod(shape) > tier.chips:
            yield f"tier '{tier.name}': slice {list(shape)} is larger than {tier.chips} chips", ""


def _member_faults(system: System, chips: Mapping[str, Chip]) -> Iterator[tuple[str, str]]:
    """What is wrong with how a system is offered, and with what it holds."""
    for way in system.offered:
        if way not in ("rent", "buy"):
            yield f"offered says '{way[:20]}'", "rent, buy or both"
    for name, _ in system.members:
        if "rent" in system.offered and not chips[name].rentable:
            yield f"{name} is only announced and cannot be rented", "take 'rent' out of offered"
    if system.mixed and any(tier.fabric not in ("pcie", "ethernet") for tier in system.tiers):
        yield "different chips are joined over PCIe or Ethernet only", ""


def _faults(system: System, chips: Mapping[str, Chip]) -> Iterator[tuple[str, str]]:
    """What is wrong with a system, each as (what, hint); nothing for a sound one."""
    yield from _member_faults(system, chips)
    if not system.tiers and system.chips_per_host > 1:
        yield f"{system.chips_per_host} chips and no tier", "say what joins them: tiers = [...]"
    inner = 1
    for tier in system.tiers:
        if tier.chips <= inner or tier.chips % inner:
            yield f"tier '{tier.name}' of {tier.chips} chips does not nest around {inner}", ""
        yield from _tier_faults(tier, system, chips)
        inner = tier.chips
    if system.tiers and system.chips < system.chips_per_host:
        yield (f"a host has {system.chips_per_host} chips, but the tiers join only {system.chips}", "add an outer tier")


def _torus_faults(tier: FabricTier, chip: Chip) -> Iterator[tuple[str, str]]:
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


def _count_faults(tier: FabricTier) -> Iterator[tuple[str, str]]:
    if tier.shape or tier.cube or tier.wrap != "never" or any(len(shape) != 1 for shape in tier.slices):
        yield f"tier '{tier.name}': only a torus has a shape", "list the counts on offer as [[1], [2], [4]]"
