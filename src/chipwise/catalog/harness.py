"""Benchmark clients and what they add to the traffic that they are named after: facts of `data/harnesses.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError

__all__ = ["NO_HARNESS", "Harness", "get_harness", "harness_of", "load_harnesses", "noted_harness"]

TABLE = "catalog/data/harnesses.toml"


@dataclass(frozen=True, slots=True)
class Harness:
    """A benchmark client. `waves` requests are sent by each client in a run; lengths are drawn evenly from `shortest`
    of the nominal length to all of it; `server`: requests pass HTTP and a tokeniser. `assumed`: taken of tables of
    measurements whose source names none; `noted_as`: what such a table says beside the rows that it was taken with it.
    """

    id: str
    name: str
    start: Literal["burst", "batch", "poisson"]
    waves: float
    shortest: float
    server: bool
    source: str
    date: str
    named_by: tuple[str, ...] = ()
    assumed: bool = False
    noted_as: tuple[str, ...] = ()

    @property
    def first_wave(self) -> float:
        """Share of a run that waits for the prompts of a common start: of half of them on average, 1 / (2 waves), or of
        all, 1 / waves, where a batch goes on as one; 0 for arrivals at a rate."""
        return {"burst": 0.5, "batch": 1.0}.get(self.start, 0.0) / self.waves if self.id else 0.0

    @property
    def meaning(self) -> str:
        """What it adds, in words."""
        start = {
            "burst": "all clients start at once",
            "batch": "requests start together and get their first tokens together",
            "poisson": "requests arrive at random",
        }[self.start]
        drawn = (
            ""
            if self.shortest == 1.0
            else f", lengths drawn from {self.shortest:g} of the nominal one to all"
        )
        return f"{self.name}: {start}{drawn}{'' if self.server else ', no server between'}"

    @property
    def mean_length(self) -> float:
        """Mean over nominal lengths."""
        return 0.5 * (1.0 + self.shortest)


NO_HARNESS = Harness("", "users, not a benchmark", "poisson", 1.0, 1.0, True, "", "")
"""What every plan assumes."""


@per_snapshot
def load_harnesses() -> Mapping[str, Harness]:
    """All bundled harnesses by id."""
    table = parse(shipped_text(TABLE))
    found = {name: record(Harness, row, f"{TABLE}: {name}", id=name) for name, row in table.items()}
    for h in found.values():
        if not h.waves >= 1 or not 0 < h.shortest <= 1:
            raise UsageError(f"{TABLE}: {h.id}: a value is out of range", "see the head of the file")
    return MappingProxyType(found)


def get_harness(name: str | None) -> Harness:
    """The harness of that id; without one none. Raises `UnknownNameError`, naming the nearest."""
    if not name or name == "none":
        return NO_HARNESS
    known = load_harnesses()
    if name not in known:
        raise UnknownNameError("harness", name, known)
    return known[name]


def harness_of(source: str) -> Harness:
    """The harness that the source of a table of measurements names, else the one that is assumed of such tables."""
    words = set(re.split(r"[^a-z0-9_]+", source.lower()))
    known = load_harnesses().values()
    named = (h for h in known if words & set(h.named_by))
    return next(named, next((h for h in known if h.assumed), NO_HARNESS))


def noted_harness(note: str) -> Harness:
    """The harness that a note beside a measured row says it was taken with, else none."""
    return next((h for h in load_harnesses().values() if any(x in note for x in h.noted_as)), NO_HARNESS)
