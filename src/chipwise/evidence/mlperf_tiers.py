"""How far a prediction of a run with samples of fixed size can be off: 80 % of log(measured / predicted), by tier.

A tier is what the fit had seen near a run: other benchmarks on the same chip, other chips of the vendor, no chip
of the vendor; and, above these, a measured row of the same chip and benchmark (an anchor).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np

from chipwise.catalog.chips import load_chips
from chipwise.evidence.judge import COVERAGE, conformal
from chipwise.evidence.mlperf_rows import Run
from chipwise.units import Array

__all__ = ["Tier", "interval", "spreads", "tier_name", "tier_of"]

MANY = 20
"""Rows below which quantiles are not trusted; those of the tier before, widened, stand in for them."""

UNSEEN = (-0.8, 0.8)
"""Interval of a scenario of which too few cells were seen."""

NARROWEST = 0.02
"""An interval never shrinks to nothing."""

FURTHER = 1.3
"""Widening of a tier that was never measured, over the one before it: judgement."""

Tier = Literal["own", "chip", "vendor", "kind"]
Spread = tuple[float, float]
FAR: tuple[Tier, ...] = ("vendor", "kind")


def tier_of(run: Run, seen: Collection[str]) -> Tier:
    """What a fit on `seen` chips (its own cell left out) knows of a run."""
    if run.chip.id in seen:
        return "chip"
    chips = load_chips()
    vendors = {chips[name].vendor for name in seen if name in chips}
    return "vendor" if run.chip.vendor in vendors else "kind"


def tier_name(run: Run, nearness: Tier) -> str:
    """The key of a tier: as in "fixed.Server.chip"."""
    return f"fixed.{run.scenario}.{nearness}"


def spreads(runs: Sequence[Run], tiers: Sequence[Tier], residuals: Array) -> Mapping[str, Spread]:
    """Ends that hold 80 % of log(measured / predicted): by scenario where the chip was seen (or the cell, with an
    anchor), and for what is further away one factor by which these are widened ("fixed.vendor").

    The factor is the 80 % quantile of max(r / low, r / high) over the tier's residuals r (a normalised conformal
    score). Tiers of fewer rows than are trusted have no entry.
    """
    names = np.array([tier_name(run, tier) for run, tier in zip(runs, tiers, strict=True)])
    found: dict[str, Spread] = {}
    for name in dict.fromkeys(names.tolist()):
        here = residuals[names == name]
        if name.endswith((".own", ".chip")) and len(here) >= MANY:
            found[name] = conformal(here)
    for tier in FAR:
        far = [i for i, known in enumerate(tiers) if known == tier]
        if len(far) >= MANY:
            ends = np.array([interval(runs[i], "chip", found) for i in far])
            score = np.max(residuals[far][:, None] / ends, axis=1)
            factor = max(1.0, float(np.quantile(score, COVERAGE, method="higher")))
            found[f"fixed.{tier}"] = (factor, factor)
    return found


def interval(run: Run, nearness: Tier, table: Mapping[str, Spread]) -> Spread:
    """The interval of a run as logarithms of factors on its prediction."""
    near: Tier = "own" if nearness == "own" and tier_name(run, "own") in table else "chip"
    low, high = table.get(tier_name(run, near), UNSEEN)
    wider = 1.0
    for tier in FAR:
        if nearness in FAR and (tier == "vendor" or nearness == "kind"):
            known = table.get(f"fixed.{tier}")
            wider = max(wider, known[0]) if known else wider * FURTHER
    return min(low, -NARROWEST) * wider, max(high, NARROWEST) * wider
