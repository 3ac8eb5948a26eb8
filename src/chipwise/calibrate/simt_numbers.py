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

__all__ = [
    "Memo", "attention_library", "chip_labels", "expert_library", "kernel_type", "latent_library", "library_facts",
    "library_of", "measured_runtime", "simt_parameters",
]  # fmt: skip

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
_TYPED = ("simt.gemm", "simt.batched_gemm", "simt.experts")
# Types of products: the unit that they need, and the type they have on chips without it.
_NEEDS: Mapping[str, tuple[str, str]] = {
    "fp8": ("fp8", "int8_wo"),
    "fp8_block": ("fp8", "int8_wo"),
    "int8": ("int8", "int8_wo"),
    "nvfp4": ("fp4", "int4_wo"),
    "mxfp4": ("fp4", "int4_wo"),
    "w4a8": ("fp8", "int4_wo"),
}
_PACKS = ("trtllm/trtllm", 32.0)  # heads per kv head that TensorRT-LLM's decode kernels pack
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
            each_label = _labels(group, run, [known[c] for c in new], dict(labels))
            algorithm = dict(labels).get("algorithm", "ring")
            columns = effects[group].values(each_label) | library_facts(group, each_label, algorithm)
            each = {k: np.broadcast_to(v, len(new)) for k, v in columns.items()}
            for i, c in enumerate(new):
                seen[group, run, c, labels] = {k: float(column[i]) for k, column in each.items()}
        rows = [seen[group, run, c.id, labels] for c in chips]
        return {k: np.array([row[k] for row in rows]) for k in rows[0]}

    return SimtParameters(find, rest, None if alone else rest.launch_s)


def chip_labels(chips: Sequence[Chip]) -> dict[str, NDArray[np.str_]]:
    """What fitted numbers tell chips apart by."""
    return {
        "chip": np.array([c.id for c in chips]),
        "vendor": np.array([c.vendor.lower() for c in chips]),
        "generation": np.array([generation(c.id) for c in chips]),
        "fabric": np.array(["link" if c.scaleup and c.scaleup.bytes_per_s else "pcie" for c in chips]),
    }


def measured_runtime(group: str, runtime: str) -> str:
    """The runtime whose measured rows stand for those of `runtime` in a group of operators."""
    run = RUNTIMES.get(runtime, runtime)
    return _LATENT_AS.get(run, run) if group == "simt.latent_decode" else run


def library_facts(
    group: str, labels: Mapping[str, NDArray[np.str_]], algorithm: str = "ring"
) -> dict[str, Array]:
    """Quantities of a formula that no fit tells: what a library's kernels can do at all."""
    if group == "simt.decode":
        return {"widest": np.where(labels["library"] == _PACKS[0], _PACKS[1], np.inf)}
    if group == "collective" and algorithm == "direct":
        known = np.isin(labels["runtime"], list(_ALL_REDUCE))
        return {} if known.all() else {"direct_s": np.array(NEVER_S)}
    return {}


def kernel_type(dtype: str, chip: Chip, group: str) -> str:
    """What the kernels of a chip make of a type: where its matrix unit has none for it, weights are widened to 16 bit
    and multiplied so (Marlin and its like)."""
    needs, widened = _NEEDS.get(dtype, ("", ""))
    if not needs or needs in chip.matrix:
        return dtype
    return "w4a16" if widened == "int4_wo" and group == "simt.experts" else widened


def library_of(group: str, runtime: str, gen: str, dtype: str = "", algorithm: str = "ring") -> str:
    """The library that a runtime takes by default for a group of operators, as fitted numbers name it."""
    run = RUNTIMES.get(runtime, runtime)
    if group == "simt.prompt":
        return attention_library(run, gen)
    if group == "simt.decode":
        return f"{run}/{attention_library(run, gen)}"
    if group == "simt.latent_prompt":
        return latent_library(run, gen)
    if group == "simt.latent_decode":
        return f"{_LATENT_AS.get(run, run)}/{latent_library(run, gen)}"
    if group == "simt.experts":
        return expert_library(run, gen, dtype)
    if group == "collective":
        return _ALL_REDUCE.get(run, "NCCL") if algorithm == "direct" else "NCCL"
    return "fused"


def _labels(
    group: str, runtime: str, chips: Sequence[Chip], said: Mapping[str, str]
) -> dict[str, NDArray[np.str_]]:
    """Labels of one kind of operator on several chips."""
    of = chip_labels(chips)
    algorithm, dtype = said.get("algorithm", "ring"), said.get("dtype", "")
    common = {"launch": "graph", "runtime": measured_runtime(group, runtime), **said}
    found = {**of, **{k: np.full(len(chips), v) for k, v in common.items()}}
    if dtype and group in _TYPED:
        found["dtype"] = np.array([kernel_type(dtype, c, group) for c in chips])
    types = found.get("dtype", np.full(len(chips), dtype)).tolist()
    gens = of["generation"].tolist()
    library = [library_of(group, runtime, g, t, algorithm) for g, t in zip(gens, types, strict=True)]
    return {**found, "library": np.array(library)}
