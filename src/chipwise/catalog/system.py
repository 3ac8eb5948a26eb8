"""The systems on offer, and what a user says to have.

A `System` tells which chips one host holds, what joins them and how fast, which slices are legal, and where
each figure comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.parsed import parse
from chipwise.catalog.rented import NAMES, rented, words_in
from chipwise.catalog.snapshot import per_snapshot, shipped_names, shipped_text
from chipwise.catalog.system_reader import SystemEntry, system_entries
from chipwise.catalog.system_spec import ScaleOut, System
from chipwise.errors import UnknownNameError, UsageError, listed, shorten


class Yard(Mapping[str, System]):
    """Systems by id in the order of the files, each read when it is first asked for: most questions need a few."""

    def __init__(self, entries: Mapping[str, SystemEntry]) -> None:
        self.entries = entries
        self._read: dict[str, System] = {}
        self._held: dict[str, list[str]] = {}
        for name, entry in entries.items():
            for chip in entry.members:
                self._held.setdefault(chip, []).append(name)

    def __getitem__(self, name: str) -> System:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = self.entries[name].system()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def holding(self, chip_id: str) -> tuple[System, ...]:
        """The systems that hold a chip; an option of a product is in the machines of the product."""
        return tuple(self[name] for name in self._held.get(chip_id.partition(":")[0], ()))


@per_snapshot
def load_systems() -> Yard:
    """All bundled systems by id, in the order of their files; a table is read when its system is asked for."""
    entries: dict[str, SystemEntry] = {}
    for path in shipped_names("catalog/data/systems", ".toml"):
        file = path.rpartition("/")[2]
        for name, entry in system_entries(shipped_text(path), file, load_chips()).items():
            if name in entries:
                raise UsageError(f"{file}: system '{name}' stands in another file too")
            entries[name] = entry
    return Yard(entries)


def counted_chip(name: str, find: Callable[[str], Chip]) -> tuple[Chip, int]:
    """The chip of a name, which `find` knows, and how many of it: 1, or those of the machine or server that is called
    so (p5.48xlarge, DGX H100). Raises `UnknownNameError` as `find` does."""
    try:
        chip = find(name)
        kind = words_in(name)[0]
        if kind not in _servers():
            return chip, 1
        servers = (s for s in load_systems().values() if s.form == "server" and s.id.split("-")[0] == kind)
        held = {each for s in servers for member, each in s.members if member == chip.id}
        return chip, held.pop() if len(held) == 1 else 1
    except UnknownNameError:
        machines = rented(name)
        if len({(m.chip, m.chips) for m in machines}) != 1:
            raise
        return find(machines[0].chip), machines[0].chips


@per_snapshot
def _servers() -> frozenset[str]:
    """First words of the names of servers that hold several of a chip."""
    return frozenset(parse(shipped_text(NAMES))["servers"])


def get_system(name: str) -> System:
    """The bundled system of that id (case is ignored). Raises `UnknownNameError` with the nearest names."""
    table = load_systems()
    found = table.get(name.strip().lower())
    if found is None:
        raise UnknownNameError("system", name, table, listed("systems"))
    return found


def systems_for(chip_id: str) -> tuple[System, ...]:
    """The bundled systems that hold a chip. Raises `UnknownNameError` for a chip that does not exist."""
    return load_systems().holding(get_chip(chip_id).id)


def with_own_links(system: System, chip: Chip) -> System:
    """The system with the links that the user gave its chip: the outermost fabric, the network; over a bus at what its
    cards reach there."""
    scaleout = system.scaleout
    tiers = tuple(
        replace(t, bytes_per_s=chip.over_bus(t.bytes_per_s)) if t.fabric == "pcie" else t for t in system.tiers
    )
    if "link" in chip.own and chip.scaleup is not None and tiers:
        speed = chip.scaleup.bytes_per_s
        pair = chip.scaleup.pairwise_bytes_per_s or speed
        tiers = (replace(tiers[-1], bytes_per_s=speed, pairwise_bytes_per_s=pair),)
    if "scaleout" in chip.own:
        scaleout = ScaleOut("given", chip.scaleout_bytes_per_s)
    return replace(system, tiers=tiers, scaleout=scaleout)


_JOINED = re.compile(r"\+(?=\s*\S)")
NOTHING: Mapping[str, Chip] = MappingProxyType({})
_HAVE = re.compile(r"(\d+)\s*[xX×*]\s*(\S.*)|([^\W\d_].*)")


def _parts(text: str) -> list[str]:
    """Chips that are joined by a plus, unless a chip is called so (`xeon-8480+`)."""
    match = _HAVE.fullmatch(text.strip())
    if match is not None and "+" in text:
        try:
            counted_chip(match.group(2) or match.group(3), get_chip)
        except UnknownNameError:
            return _JOINED.split(text)
    return [text]


def parse_have(text: str, own: Mapping[str, Chip] = NOTHING) -> tuple[tuple[str, int], ...]:
    """`2xrtx-4090,rtx-3090` as ((chip id, count), ...), in that order; a chip named twice is added up, one without a
    count is one, and a machine for rent (`p5.48xlarge`) is the chips in it. Parts may be joined by `+` too, as in
    machines (`rtx-4090+epyc-9654`). Of two chips of a name the user's `own` is meant.

    Raises `UsageError` for an empty text, a count of 0 or a part that is not `COUNTxCHIP`; `UnknownNameError`
    for a chip that does not exist, with the nearest names.
    """
    counts: dict[str, int] = {}
    for part in (one for group in text.split(",") for one in _parts(group)):
        match = _HAVE.fullmatch(part.strip())
        if match is None:
            shown = shorten(part) or shorten(text)
            raise UsageError(
                f"cannot read '{shown}' as chips", "write COUNTxCHIP, as in 2xrtx-4090,1xrtx-3090", field="have"
            )
        name = match.group(2) or match.group(3)
        chip, each = (own[name], 1) if name in own else counted_chip(name, get_chip)
        written = match.group(1) or "1"
        count = int(written) if len(written) < 10 else 0
        if count < 1:
            raise UsageError(f"cannot count '{shorten(part)}'", "write how many you have, at least 1")
        counts[chip.id] = counts.get(chip.id, 0) + count * each
    return tuple(counts.items())
