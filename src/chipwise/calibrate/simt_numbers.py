"""Fitted kernel numbers as the cost model asks for them: by runtime, chip, and the types of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import kernel_library, kernels_of, load_runtimes
from chipwise.cost.efficiency import Efficiency
from chipwise.cost.simt.family import Labels, SimtParameters
from chipwise.units import Array

__all__ = ["Memo", "simt_parameters"]

NEVER_S = 1.0  # start of an all-reduce kernel that a runtime does not have

Memo = dict[tuple[str, str, str, Labels], dict[str, float]]
"""Quantities of one formula on one chip: by group, runtime, chip and labels."""


def simt_parameters(
    effects: Mapping[str, Effects],
    rest: Efficiency,
    runtime: str,
    chips: Sequence[Chip],
    *,
    alone: bool = False,
    memo: Memo | None = None,
) -> SimtParameters:
    """The numbers of `runtime` on `chips`, one per chip, from fitted effects. Kernels are launched by graphs:
    those of a model, or, `alone`, one that runs again and again on its own. `memo` remembers across calls."""
    run = kernels_of(runtime)
    known = {c.software_id: c for c in chips}
    seen: Memo = {} if memo is None else memo

    @cache
    def find(group: str, labels: Labels) -> Mapping[str, Array]:
        new = [c for c in known if (group, run, c, labels) not in seen]
        if new:
            columns = effects[group].values(_labels(group, run, [known[c] for c in new], dict(labels)))
            if dict(labels).get("algorithm") == "direct" and not kernel_library("all_reduce", run, ""):
                columns["direct_s"] = np.array(NEVER_S)
            each = {k: np.broadcast_to(v, len(new)) for k, v in columns.items()}
            for i, c in enumerate(new):
                seen[group, run, c, labels] = {k: float(column[i]) for k, column in each.items()}
        rows = [seen[group, run, c.software_id, labels] for c in chips]
        return {k: np.array([row[k] for row in rows]) for k in rows[0]}

    return SimtParameters(find, rest, None if alone else rest.launch_s)


def _labels(
    group: str, runtime: str, chips: Sequence[Chip], said: Mapping[str, str]
) -> dict[str, NDArray[np.str_]]:
    """Labels of one kind of operator on several chips."""
    gens = [c.generation for c in chips]
    named = _latent_as(runtime) if group == "simt.latent_decode" else runtime
    common = {"launch": "graph", "runtime": named, **said}
    return {
        "chip": np.array([c.software_id for c in chips]),
        "vendor": np.array([c.software_vendor for c in chips]),
        "generation": np.array(gens),
        "library": np.array([_library(group, runtime, g, said) for g in gens]),
        "fabric": np.array(["link" if c.scaleup and c.scaleup.bytes_per_s else "pcie" for c in chips]),
        "routed": np.full(len(chips), "no"),
        **{k: np.full(len(chips), v) for k, v in common.items()},
    }


def _latent_as(runtime: str) -> str:
    """The runtime whose measured rows of latent attention stand for those of another."""
    known = load_runtimes().get(runtime)
    return (known.latent_as if known else "") or runtime


def _library(group: str, runtime: str, gen: str, said: Mapping[str, str]) -> str:
    if group in ("simt.prompt", "simt.decode"):
        found = kernel_library("attention", runtime, gen) or "other"
        return found if group == "simt.prompt" else f"{runtime}/{found}"
    if group in ("simt.latent_prompt", "simt.latent_decode"):
        found = kernel_library("latent_attention", runtime, gen) or "other"
        return found if group == "simt.latent_prompt" else f"{_latent_as(runtime)}/{found}"
    if group == "simt.experts":
        return kernel_library("experts", runtime, gen, said["dtype"])
    if group == "collective":
        own = kernel_library("all_reduce", runtime, gen) if said["algorithm"] == "direct" else ""
        return own or "NCCL"
    return "fused"
