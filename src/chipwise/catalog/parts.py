"""Names of accelerators as submitters write them, and the power bins that they run them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from chipwise.catalog.chips import get_chip
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text

__all__ = ["PowerBin", "load_bins", "load_parts"]

_TABLE = "catalog/data/parts.toml"


@dataclass(frozen=True, slots=True)
class PowerBin:
    """A chip with a power limit of `from_w` watts or more: what that means."""

    chip: str
    from_w: float
    note: str


@per_snapshot
def load_parts() -> Mapping[re.Pattern[str], str]:
    """Ids of chips by a pattern of their names; the first that is found in a name is meant.

    Raises `UnknownNameError` for a chip that the catalogue does not hold.
    """
    rows = parse(shipped_text(_TABLE))["part"]
    return MappingProxyType({re.compile(r["pattern"], re.IGNORECASE): get_chip(r["chip"]).id for r in rows})


@per_snapshot
def load_bins() -> tuple[PowerBin, ...]:
    """Power bins beside those of data sheets."""
    rows = parse(shipped_text(_TABLE))["bin"]
    return tuple(PowerBin(get_chip(r["chip"]).id, float(r["from_W"]), r["note"]) for r in rows)
