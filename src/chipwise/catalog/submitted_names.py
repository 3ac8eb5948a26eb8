"""Names of accelerators as submitters of benchmarks write them -> ids of the catalogue, and the power bins that they
run them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from chipwise.catalog.chips import exact_chip, get_chip
from chipwise.catalog.parsed import parse
from chipwise.catalog.published import load_inference_results
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError
from chipwise.values import dataclass

_TABLE = "catalog/data/submitted_names.toml"

MAKERS = re.compile(
    r"^(nvidia|amd|intel\(r\)|intel|google|qualcomm|habana)\s+|\b(instinct|geforce|gpu|cloud ai)\b", re.I
)
# 1000 W parts of a 700 W chip are another power bin, not another chip
NOISE = re.compile(
    r"-(cts|nps\d|spx|trt|pg\d+|\d+w|aarch64)\b|\b\d+ ?gb( hbm\w*)?\b|-\d+gb|\(.*?\)|\bhbm\w*|\bx\d+\b", re.I
)


@dataclass(frozen=True, slots=True)
class PowerBin:
    """A chip with a power limit of `from_w` watts or more: what that means."""

    chip: str
    from_w: float
    note: str


@per_snapshot
def _patterns() -> Mapping[re.Pattern[str], str]:
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


def chip_of(name: str) -> str:
    """The id of the chip that a submitter's name means, "" where the catalogue does not hold it."""
    if not name.strip():
        return ""
    known = _published().get(_plain(name))
    if known is not None:
        return known
    for pattern, chip in _patterns().items():
        if pattern.search(name):
            return chip
    shorter = NOISE.sub(" ", MAKERS.sub(" ", name)).strip(" -")
    for candidate in (name, shorter, shorter.replace(" ", "-")):
        try:
            return exact_chip(candidate).id
        except UnknownNameError:
            continue
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _published() -> dict[str, str]:
    """Names of parts in the bundled table, with their chips."""
    return {_plain(r.accelerator): r.chip for r in load_inference_results().values() if r.accelerator}
