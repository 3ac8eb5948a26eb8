"""The levels of a deployment on the axes of the model of error (`evidence.discrepancy`): the same names for a plan and
for the measured rows behind the model."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import own_kernels
from chipwise.workload.graph import Graph

Levels = Mapping[str, str]
"""Levels by axis; one that is left out is of nobody who measured."""


def _libraries(chip: Chip) -> str:
    """Whose libraries run on what kind of chip: those of one vendor's GPUs, CPUs and other accelerators have nothing in
    common that a measured one would tell of another."""
    return f"{chip.software_vendor} {chip.kind}"


def served_axes(chip: Chip, runtime: str, graph: Graph, *, apart: bool = False, lone: bool = False) -> Levels:
    """Of a served language model: `apart` where prompts have workers of their own, `lone` for one user at a desk."""
    model = graph.model
    return {
        "vendor": _libraries(chip),
        "chip": chip.software_id,
        "runtime": runtime,
        "family": model.architecture,
        "experts": "experts" if graph.routed else "dense",
        "format": model.precision.name,
        "model": f"{model.architecture}-{model.layers}x{model.hidden}",
        "mode": "apart" if apart else "together",
        "users": "one" if lone else "",
    }


def compared_axes(chip: Chip, runtime: str, precision: str) -> Levels:
    """What deployments of one model may differ in, who measures them and what they run being the same."""
    levels = {"vendor": _libraries(chip), "chip": chip.software_id, "runtime": runtime, "format": precision}
    return {**levels, "mode": "together"}


def served_family(runtime: str) -> str:
    """The family of figures of a runtime: engines of a desk bring kernels of their own, and were measured alone."""
    return "desk" if own_kernels(runtime) else "serving"


def trained_axes(chip: Chip, trainer: str, *, experts: bool, method: str, precision: str) -> Levels:
    """Of a training run."""
    return {
        "vendor": _libraries(chip),
        "chip": chip.software_id,
        "trainer": trainer,
        "experts": "experts" if experts else "dense",
        "method": method,
        "precision": precision,
    }


def chip_axes(chip: Chip, **more: str) -> Levels:
    """Of a chip and whatever else is known."""
    return {"vendor": _libraries(chip), "chip": chip.software_id, "generation": chip.base_generation, **more}
