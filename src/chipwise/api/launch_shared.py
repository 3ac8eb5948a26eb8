"""What launch files say of a chip that a deployment has a part of: the share of the memory, and its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.api.requests.parts import shared
from chipwise.catalog.chip import Chip
from chipwise.catalog.override import Share
from chipwise.catalog.runtime_spec import Policies
from chipwise.report.launch.spec import SharedCard


def share_of(request: Mapping[str, Any]) -> Share:
    """The share of its chip that a question asks about."""
    said = request.get("share")
    return shared(said, "--share") if said else Share()


def card_of(report: Mapping[str, Any], rank: int) -> SharedCard | None:
    """The card of a placement of a fleet, None where it is its own."""
    rows = report["fleet"]["placements"]
    row = next(r for r in rows if r["rank"] == rank)
    if not row.get("sharing"):
        return None
    card = [r for r in rows if r.get("sharing") and _on(r) == _on(row)]
    before = [r["sharing"]["memory"] for r in card if r["rank"] < rank]
    cuts = tuple(filter(None, map(_instance, card)))
    others, asleep = tuple(row["sharing"]["others"]), bool(row["sharing"].get("turn"))
    taken = 0.0 if asleep else sum(before)
    return SharedCard(others, _instance(row), cuts, len(before), taken, asleep)


def _on(row: Mapping[str, Any]) -> tuple[str, set[str]]:
    """The supply of a shared card, and the demands on it."""
    return row["supply"], {row["demand"], *row["sharing"]["others"]}


def _instance(row: Mapping[str, Any]) -> str:
    return str(row["sharing"]["share"].partition("mig=")[2])


def memory_told(
    share: Share, policies: Policies, chip: Chip, several: bool, weights: float, taken: float
) -> float:
    """The share of its base that the runtime is told: what it reserves has no option of its own where the base is
    the memory before loading (SGLang: 1 - reserved / free, as it sets the share itself). On a part of a chip it is
    that part of what the runtime finds there, where others have `taken` theirs before; an instance is found as a chip.
    """
    part = share.of(chip)
    whole = part if share.instance else chip
    capacity, found = _bytes(part), _bytes(whole)
    outside = policies.context_bytes + (policies.collective_bytes if several else 0.0)
    free = capacity / chip.devices_per_package - outside
    told = policies.memory_share
    if policies.memory_base == "free_before_load" and free > 0.0:
        told = max(told - policies.reserved_bytes / free, 0.0)
    elif capacity == found or not found:
        return told
    if policies.memory_base == "free_after_load":
        left = found * (1.0 - taken) - weights
        return round(min(told * max(capacity - weights, 0.0) / left, 1.0), 3) if left > 0.0 else told
    return round(told * (capacity / found if found else 1.0), 3)


def _bytes(chip: Chip) -> float:
    return chip.memory.usable_bytes or chip.memory.label_bytes or 0.0
