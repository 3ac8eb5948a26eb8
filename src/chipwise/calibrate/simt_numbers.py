"""Fitted kernel numbers as the cost model asks for them: by runtime, chip, and the types of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.catalog.chip import Chip
from chipwise.cost.efficiency import Efficiency
from chipwise.cost.simt.family import Labels, SimtParameters
from chipwise.cost.simt.rates import generation
from chipwise.units import Array

__all__ = ["Memo", "attention_library", "expert_library", "latent_library", "simt_parameters"]

RUNTIMES = {"vllm-legacy": "vllm"}
"""Runtimes that run another's kernels."""

# Kernel libraries that a runtime picks by default: by generation of chips, "" = any other.
_ATTENTION: Mapping[str, Mapping[str, str]] = {
    "vllm": {"hopper": "fa3", "blackwell": "trtllm_mha", "blackwell_ultra": "trtllm_mha", "": "fa2"},
    "sglang": {
        "hopper": "fa3",
        "blackwell": "trtllm_mha",
        "blackwell_ultra": "trtllm_mha",
        "blackwell_rtx": "flashinfer",
        "": "fa2",
    },
    "trtllm": {"": "trtllm"},
}
_LATENT: Mapping[str, Mapping[str, str]] = {
    "sglang": {
        "hopper": "fa2",
        "blackwell": "trtllm_mla",
        "blackwell_ultra": "trtllm_mla",
        "blackwell_rtx": "triton",
        "": "fa2",
    },
    "trtllm": {"": "trtllm"},
}
_ALL_REDUCE: Mapping[str, str] = {
    "vllm": "vLLM_custom_graph",
    "sglang": "SGLang_CustomAllReduce_graph",
    "trtllm": "TRTLLM",
}
NEVER_S = 1.0  # start of an all-reduce kernel that a runtime does not have
_LATENT_AS = {"vllm": "sglang"}  # no measured rows: the same kernel libraries


def attention_library(runtime: str, gen: str) -> str:
    """The attention kernels of a runtime on a generation of chips."""
    table = _ATTENTION.get(runtime, {})
    return table.get(gen, table.get("", "other"))


def latent_library(runtime: str, gen: str) -> str:
    """The same for latent attention."""
    table = _LATENT.get(_LATENT_AS.get(runtime, runtime), {})
    return table.get(gen, table.get("", "other"))


def expert_library(runtime: str, gen: str, dtype: str) -> str:
    """The grouped products of a runtime."""
    data_centre = gen in ("blackwell", "blackwell_ultra")
    if gen.startswith("cdna"):
        return "fmoe"
    if dtype in ("int4_wo", "int8_wo"):
        return "trtllm" if data_centre and runtime == "sglang" else "marlin"
    if data_centre:
        return "trtllm"
    if dtype == "w4a16":
        return "triton" if gen == "hopper" else "marlin"
    if dtype in ("b16", "fp8_block"):
        return "triton"
    return "cutlass"


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
    run = RUNTIMES.get(runtime, runtime)
    known = {c.id: c for c in chips}
    seen: Memo = {} if memo is None else memo

    @cache
    def find(group: str, labels: Labels) -> Mapping[str, Array]:
        new = [c for c in known if (group, run, c, labels) not in seen]
        if new:
            columns = effects[group].values(_labels(group, run, [known[c] for c in new], dict(labels)))
            if dict(labels).get("algorithm") == "direct" and run not in _ALL_REDUCE:
                columns["direct_s"] = np.array(NEVER_S)
            each = {k: np.broadcast_to(v, len(new)) for k, v in columns.items()}
            for i, c in enumerate(new):
                seen[group, run, c, labels] = {k: float(column[i]) for k, column in each.items()}
        rows = [seen[group, run, c.id, labels] for c in chips]
        return {k: np.array([row[k] for row in rows]) for k in rows[0]}

    return SimtParameters(find, rest, None if alone else rest.launch_s)


def _labels(
    group: str, runtime: str, chips: Sequence[Chip], said: Mapping[str, str]
) -> dict[str, NDArray[np.str_]]:
    """Labels of one kind of operator on several chips."""
    gens = [generation(c.id) for c in chips]
    latent = group == "simt.latent_decode"
    common = {"launch": "graph", "runtime": _LATENT_AS.get(runtime, runtime) if latent else runtime, **said}
    return {
        "chip": np.array([c.id for c in chips]),
        "vendor": np.array([c.vendor.lower() for c in chips]),
        "generation": np.array(gens),
        "library": np.array([_library(group, runtime, g, said) for g in gens]),
        "fabric": np.array(["link" if c.scaleup and c.scaleup.bytes_per_s else "pcie" for c in chips]),
        "routed": np.full(len(chips), "no"),
        **{k: np.full(len(chips), v) for k, v in common.items()},
    }


def _library(group: str, runtime: str, gen: str, said: Mapping[str, str]) -> str:
    if group == "simt.prompt":
        return attention_library(runtime, gen)
    if group == "simt.decode":
        return f"{runtime}/{attention_library(runtime, gen)}"
    if group == "simt.latent_prompt":
        return latent_library(runtime, gen)
    if group == "simt.latent_decode":
        return f"{_LATENT_AS.get(runtime, runtime)}/{latent_library(runtime, gen)}"
    if group == "simt.experts":
        return expert_library(runtime, gen, said["dtype"])
    if group == "collective":
        return _ALL_REDUCE.get(runtime, "NCCL") if said["algorithm"] == "direct" else "NCCL"
    return "fused"
