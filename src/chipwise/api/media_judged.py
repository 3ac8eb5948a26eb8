"""How surely figures of models that generate no tokens are known: the figure by which each is judged, and how near the
rows of the fit are."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.api.tactics import Level
from chipwise.calibrate.fit_media import media_seen
from chipwise.calibrate.fit_tuned import tuned_numbers
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.evidence.judge import TUNED, Estimate, Nearness, tier_factors
from chipwise.workload.workload import Task

LATENCY, STEP, MEMORY = "media_s", "media_s trained", "media_bytes"
LEVELS: Mapping[Task, str] = {"batch": "", "serve": " served", "local": " alone"}
"""Suffix of the figure by which times of tuned software are judged: what bounds them."""


def figured(task: Task, level: Level, *, trained: bool = False) -> str:
    """The figure by which times are judged: steps of training, whose backward pass and optimizer no kernel was timed
    for, scatter more than requests."""
    if level == "tuned":
        return LATENCY + TUNED + LEVELS[task]
    return STEP if trained else LATENCY


def tier(chip: Chip, runtime: MediaRuntime, numbers: Parameters, level: Level = "stock") -> Nearness:
    """How near the rows of the fit are: this chip under this runtime, its generation, other chips; of tuned software
    this chip, others of its vendor, other chips."""
    if level == "tuned":
        chips, market = numbers.derived(tuned_numbers).chips, load_chips()
        if chip.software_id in chips:
            return "chip"
        vendors = {market[name].software_vendor for name in chips if name in market}
        return "vendor" if chip.software_vendor in vendors else "kind"
    known = numbers.derived(media_seen)
    if f"runtime={runtime.id}" not in known:
        return "kind"
    if f"chip={chip.software_id}" in known:
        return "chip"
    return "generation" if f"generation={chip.base_generation}" in known else "kind"


def judged(name: str, mid: float, near: Nearness) -> Estimate:
    """A figure with the interval of its tier."""
    f = tier_factors(name, near)
    return Estimate(
        mid, mid * f.low, mid * f.high, "modelled" if near == "kind" else "calibrated", not f.tested
    )
