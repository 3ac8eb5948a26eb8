"""How surely figures of models that generate no tokens are known: the figure by which each is judged, and how near the
rows of the fit are."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.api.media_work import Work
from chipwise.api.tactics import Level
from chipwise.calibrate.fit_media import attended, media_seen
from chipwise.calibrate.fit_tuned import tuned_numbers
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.evidence.axes import Levels, chip_axes
from chipwise.evidence.discrepancy import Scatter, spread_of
from chipwise.evidence.judge import Basis, Estimate, Nearness, judge
from chipwise.workload.workload import Task

SCENARIOS: Mapping[Task, str] = {"batch": "Offline", "serve": "Server", "local": "SingleStream"}
"""Scenario of the submissions by which tuned software is judged: what bounds it."""
WORDS: Mapping[Nearness, Basis] = {"kind": "modelled"}
"""What a figure rests on, where that is not the rows of a fit."""


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


def levels(work: Work) -> Levels:
    """Where work lies on the axes of the model of error."""
    labels = work.labels
    attended_ = attended(*(labels[name] for name in ("runtime", "attends", "core")))
    return chip_axes(
        work.chip,
        runtime=work.runtime.id,
        model=work.pipeline.name,
        precision=labels["dtype"],
        phase=labels["phase"],
        unit=work.pipeline.unit,
        attends=attended_ if work.pipeline.attends else "none",
    )


def timed(work: Work, near: Nearness, mid: float) -> Estimate:
    """A time with its interval: of tuned software by submissions to MLPerf, of trainers by published runs, else by
    other people's benchmarks."""
    if work.trained is not None:
        return work.trained.judged(mid, "time")
    if work.asked.level == "tuned":
        scenario = SCENARIOS[work.asked.task]
        return _judged(mid, near, spread_of(chip_axes(work.chip, scenario=scenario), "tuned", "samples"))
    return _judged(mid, near, spread_of(levels(work), "media"))


def held(work: Work, near: Nearness, mid: float) -> Estimate:
    """Bytes with their interval."""
    if work.trained is not None:
        return work.trained.judged(mid, "memory")
    return _judged(mid, near, spread_of(levels(work), "media_memory"))


def _judged(mid: float, near: Nearness, spread: Scatter) -> Estimate:
    return judge(mid, spread.around(), WORDS.get(near, "calibrated"), provisional=not spread.known[0])
