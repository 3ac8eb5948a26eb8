"""Processors of hosts by what one thread of them does: facts of `data/processors.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.system import load_systems
from chipwise.errors import UnknownNameError, UsageError
from chipwise.units import Array, parse_quantity
from chipwise.values import dataclass

TABLE = "catalog/data/processors.toml"
REFERENCE = "xeon-8480"  # in the hosts of most H100 and H200, on which what the host does was measured
CLOCKS = (0.5e9, 10e9)
"""Hz: clocks that can be asked. Chosen: a board's and none that exists; moves what is refused."""


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor: the clock of one core at its highest, and work per clock over that of Zen 4 and Golden Cove."""

    name: str
    boost_ghz: float
    per_clock: float
    words: Sequence[str] = field(default_factory=tuple)
    source: str = ""

    @property
    def speed(self) -> float:
        """Work of one thread over that of the reference."""
        reference = load_processors()[REFERENCE]
        return self.boost_ghz * self.per_clock / (reference.boost_ghz * reference.per_clock)


@per_snapshot
def load_processors() -> Mapping[str, Processor]:
    """All processors by their ids. Raises `UsageError` for a table that cannot be read."""
    table = parse(shipped_text(TABLE))
    sources = table.pop("sources")
    found = {name: record(Processor, row, f"processors.toml: {name}") for name, row in table.items()}
    if strange := sorted({p.source for p in found.values()} - set(sources)):
        raise UsageError(f"processors.toml: unknown source {strange[0]}", f"one of {', '.join(sources)}")
    return MappingProxyType(found)


def get_processor(asked: str) -> Processor:
    """The processor of that id or name, or one of the best cores at a clock: `4.2GHz`. Raises `UnknownNameError`,
    `UsageError` for a clock that no processor has."""
    if re.fullmatch(r"\s*[\d.]+\s*[gm]hz\s*", asked.lower()):
        hertz = parse_quantity(asked, "Hz", "host", low=CLOCKS[0], high=CLOCKS[1])
        return Processor(f"a processor of {hertz / 1e9:g} GHz", hertz / 1e9, 1.0)
    known = load_processors()
    found = known.get(asked.strip().lower()) or _named(asked)
    if found is None:
        raise UnknownNameError("processor", asked, known, f"one of {', '.join(known)}, or its clock, as in 4.2GHz")
    return found


def host_speed(asked: str, chips: Sequence[Chip]) -> Array:
    """Work of one thread of the host of each chip over that of the reference: of the processor that is `asked`, or of
    the first system that holds the chip and names one; 1 where none does."""
    if asked:
        return np.full(len(chips), get_processor(asked).speed)
    return np.array([_usual_speed(chip.like or chip.id) for chip in chips])


@per_snapshot
def _usual_speed(chip: str) -> float:
    """The speed of the host of the first system that holds a chip and names a processor known here; 1 without one."""
    holding = (s for s in load_systems().holding(chip) if any(member == chip for member, _ in s.members))
    hosts = filter(None, (_named(system.host.cpu) for system in holding))
    return next((host.speed for host in hosts), 1.0)


def _named(text: str) -> Processor | None:
    """The processor all of whose words begin a word of a text."""
    said = re.findall(r"[a-z]*\d+[a-z]*|[a-z]+", text.lower())
    known = load_processors().values()
    return next((p for p in known if all(any(s.startswith(w) for s in said) for w in p.words)), None)
