"""Fitted kernel numbers as the cost model asks for them: by runtime, chip, and the types of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.runtime import kernel_era, kernel_library, kernels_of
from chipwise.catalog.runtime_spec import Operator, Runtime
from chipwise.catalog.software import all_software
from chipwise.cost.roofline import Efficiency
from chipwise.cost.simt.family import Labels, SimtParameters
from chipwise.units import Array, Real

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
_LEAST_HEADS: Mapping[str, float] = {"flashmla_sm90": 64.0, "flashmla_sm100": 128.0}
"""Heads of a query that selects its entries, to which FlashMLA's kernels fill up. Source: sgl-project/sglang,
nsa_backend.py (_forward_flashmla_sparse), and vllm-project/vllm, flashmla_sparse.py (prefill_padding)."""
NEVER_S = 1.0  # start of an all-reduce kernel that a runtime does not have
STAGED: Mapping[str, float] = {
    "link_share": 1.0,
    "pair_share": 1.0,
    "base_s": 5e-6,
    "step_s": 2e-6,
    "sharpness": 0.85,
    "direct_s": NEVER_S,
}
"""Exchanges of cards that reach each other through the host's memory, in the units of `CollectiveParameters`. Source:
nccl-tests of RTX 4090 that users published: four cards, tinygrad/open-gpu-kernel-modules pull request 22 (19 us for 32
kB, 153 us for 1 MB, 12.7 GB/s on the bus beyond 4 MB); eight, NVIDIA/nccl issue 1530 (40 us for 8 bytes); no kernel
reads its peers' memory there. Move exchanges of such cards alone."""

FILLING = "load_bytes_per_clock"
"""What a unit takes from cache for tiles of products."""
UNCODED = 0.95
"""ratio: of memory to its label, below which codes lie among the data. Chosen: with them software finds 15/16 (46,068
MiB of 48 GiB on A40, L20 and L40S), without them 0.98 at least; moves how fast such boards read weights."""

Memo = dict[tuple[str, str, str, Labels], dict[str, float]]
"""Quantities of one formula on one chip: by group, runtime and age of its kernels, chip and labels."""


def simt_parameters(
    effects: Mapping[str, Effects],
    rest: Efficiency,
    runtime: str,
    chips: Sequence[Chip],
    *,
    alone: bool = False,
    software: str = "",
    memo: Memo | None = None,
) -> SimtParameters:
    """The numbers of `runtime` on `chips`, one per chip, from fitted effects. Kernels are launched by graphs:
    those of a model, or, `alone`, one that runs again and again on its own. `software` is its date, "" the newest;
    `memo` remembers across calls."""
    run, era = kernels_of(runtime), kernel_era(software)
    name = f"{run} {era}" if era else run
    known = {_alike(c): c for c in chips}
    seen: Memo = {} if memo is None else memo

    @cache
    def find(group: str, labels: Labels) -> Mapping[str, Array]:
        new = [c for c in known if (group, name, c, labels) not in seen]
        if new:
            each = _columns(effects, group, run, era, [known[c] for c in new], labels)
            for i, c in enumerate(new):
                seen[group, name, c, labels] = {k: float(column[i]) for k, column in each.items()}
        rows = [seen[group, name, _alike(c), labels] for c in chips]
        return {k: np.array([row[k] for row in rows]) for k in rows[0]}

    return SimtParameters(find, rest, None if alone else rest.launch_s)


def _columns(
    effects: Mapping[str, Effects], group: str, run: str, era: str, chips: Sequence[Chip], labels: Labels
) -> dict[str, Array]:
    """Quantities of one formula, one per chip: fitted ones, and what libraries, links and caches make of them."""
    asked = dict(labels)
    dtype, algorithm = asked.get("dtype", ""), asked.get("algorithm", "ring")
    each_label = _labels(group, run, chips, asked, era)
    each_label["chip"] = _measured(effects[group], chips, dtype)
    columns = effects[group].values(each_label) | library_facts(group, each_label, algorithm)
    each = {k: np.broadcast_to(v, len(chips)) for k, v in columns.items()}
    if group == "collective":
        each = through_host(each, chips)
    if group == "simt.gemm":
        each = from_cache(each, effects[group], chips)
    if group in _TYPED:
        each["widened"] = np.array([float(_stored_only(dtype, c, run)) for c in chips])
    if group == "simt.gemm":
        blocks = dtype == "fp8_block"
        each["one_tile"] = np.array(
            [float(blocks and bool(kernel_library("block_product", run, c.generation))) for c in chips]
        )
    return each


def through_host(values: Mapping[str, Real], chips: Sequence[Chip]) -> dict[str, Array]:
    """Numbers of exchanges, one per chip, with those of cards that reach each other through the host's memory alone;
    cards with a bridge keep the numbers of links, beyond it too."""
    staged = np.array([chip.staged_bytes_per_s is not None and not _linked(chip) for chip in chips])
    return {k: np.where(staged, STAGED.get(k, np.nan), v) if k in STAGED else np.asarray(v) for k, v in values.items()}


def from_cache(values: Mapping[str, Array], effects: Effects, chips: Sequence[Chip]) -> dict[str, Array]:
    """Numbers of products, one per chip, with the cache of each chip.

    Where units of a generation fill tiles at less than those of other generations, the cache that they share gives no
    more. Slices of a generation's caches are alike (NVIDIA A100 whitepaper: 40 MB read at 5,120 bytes a clock), so
    chips that were not measured give a unit more by their bytes of cache per unit over those of chips that were, up to
    what units take in other generations.
    """
    most, measured = effects.quantities[FILLING].mid, set(effects.keys_of("chip"))
    per_unit: dict[str, float] = {}
    for chip in map(load_chips().__getitem__, measured):
        per_unit[chip.generation] = max(per_unit.get(chip.generation, 0.0), _cache_per_unit(chip))
    more = [
        1.0 if chip.software_id in measured else _cache_per_unit(chip) / (per_unit.get(chip.generation) or np.inf)
        for chip in chips
    ]
    filling = values[FILLING]
    limit = np.maximum(most, filling)
    return {**values, FILLING: np.clip(filling * np.maximum(more, 1.0), filling, limit)}


def _cache_per_unit(chip: Chip) -> float:
    return (chip.cache_bytes or 0.0) / (chip.matrix_unit.units or np.inf)


def _measured(effects: Effects, chips: Sequence[Chip], dtype: str) -> NDArray[np.str_]:
    """Names of chips as numbers know them: of one that was not measured, the first with numbers of its own for a type
    and the same units at the same clock, which is another board of the same die."""
    keys = {key for _, level, key in effects.table if level in ("chip", "chip+dtype")}
    have = {key.partition("+")[0] for key in keys if not dtype or key.endswith(f"+{dtype}")}

    measured = set(effects.keys_of("chip"))

    def name(chip: Chip) -> str:
        if chip.software_id in measured or not chip.matrix_unit:
            return chip.software_id
        found = (o for o in sorted(have) if _die(chip) == _die(load_chips().get(o)))
        return next(found, chip.software_id)

    return np.array([name(c) for c in chips])


def _die(chip: Chip | None) -> tuple[object, ...]:
    """What boards of one die have in common."""
    if chip is None:
        return ()
    unit = chip.matrix_unit
    return chip.generation, chip.core, unit.units, unit.peak_clock_hz


def _alike(chip: Chip) -> str:
    """One name for chips that the same numbers hold of: one software, units for the same types, joined alike."""
    return f"{chip.software_id} {' '.join(sorted(chip.matrix))} {_halved(chip)} {_fabric(chip)}"


def chip_labels(chips: Sequence[Chip]) -> dict[str, NDArray[np.str_]]:
    """What fitted numbers tell chips apart by."""
    return {
        "chip": np.array([c.software_id for c in chips]),
        "vendor": np.array([c.software_vendor for c in chips]),
        "generation": np.array([c.generation for c in chips]),
        "sums": np.array(["half" if _halved(c) else "whole" for c in chips]),
        "fabric": np.array(["link" if _linked(c) else "pcie" for c in chips]),
        "memory": np.array([_memory(c) for c in chips]),
    }


def _halved(chip: Chip) -> bool:
    """Whether matrix units sum 16-bit products in fp32 at half of their rate: what feeds them is made for all of it."""
    return chip.matrix.get("fp16/fp16", 0.0) > 1.5 * chip.matrix.get("fp16", np.inf)


def _memory(chip: Chip) -> str:
    """Stacked memory, memory on a board, or that with codes kept among the data, which software cannot use."""
    memory = chip.memory
    coded = memory.kind == "ddr" and memory.found_bytes < UNCODED * (memory.label_bytes or 0.0)
    return f"{memory.kind}, codes" if coded else memory.kind


def _linked(chip: Chip) -> bool:
    return bool(chip.scaleup and chip.scaleup.bytes_per_s)


def _fabric(chip: Chip) -> str:
    linked = "link" if _linked(chip) else "pcie"
    return linked if chip.staged_bytes_per_s is None else f"{linked}, staged"


def measured_runtime(group: str, runtime: str) -> str:
    """The runtime whose measured rows stand for those of `runtime` in a group of operators."""
    run = kernels_of(runtime)
    known = all_software(Runtime).get(run)
    return (known.latent_as if known and group == "simt.latent_decode" else "") or run


def library_facts(group: str, labels: Mapping[str, NDArray[np.str_]], algorithm: str = "ring") -> dict[str, Array]:
    """Quantities of a formula that no fit tells: what a library's kernels can do at all."""
    if group == "simt.decode":
        return {"widest": np.where(labels["library"] == _PACKS[0], _PACKS[1], np.inf)}
    if group == "simt.latent_prompt":
        each = zip(labels["runtime"].tolist(), labels["generation"].tolist(), strict=True)
        kernels = [kernel_library("selected_prompt", run, gen) for run, gen in each]
        return {"least_heads": np.array([_LEAST_HEADS.get(name, 0.0) for name in kernels])}
    if group == "collective" and algorithm == "direct":
        known = all(kernel_library("all_reduce", run, "") for run in set(labels["runtime"].tolist()))
        return {} if known else {"direct_s": np.array(NEVER_S)}
    return {}


def kernel_type(dtype: str, chip: Chip, group: str, runtime: str = "") -> str:
    """What the kernels of a chip make of a type: where its matrix unit has none for it, or `runtime` none for that
    unit, weights are widened to 16 bit and multiplied so (Marlin and its like)."""
    needs, widened = _NEEDS.get(dtype, ("", ""))
    if not needs or (needs in chip.matrix and not _stored_only(dtype, chip, runtime)):
        return dtype
    return "w4a16" if widened == "int4_wo" and group == "simt.experts" else widened


def _stored_only(dtype: str, chip: Chip, runtime: str) -> bool:
    """Whether software stores weights of a type on a chip and multiplies them in 16 bits, as its table of formats
    says."""
    known = all_software(Runtime).get(runtime)
    rule = known.rule(chip) if known else None
    return bool(rule and dtype in rule.weights_only and dtype not in {weight for weight, _ in rule.native})


def library_of(group: str, runtime: str, gen: str, dtype: str = "", algorithm: str = "ring", software: str = "") -> str:
    """The library that a runtime takes by default for a group of operators, as fitted numbers name it."""
    if group in ("simt.prompt", "simt.decode", "simt.latent_prompt", "simt.latent_decode"):
        kinds: tuple[Operator, ...] = ("latent_attention",) if "latent" in group else ("attention",)
        if group == "simt.latent_prompt":
            kinds = ("latent_prompt", *kinds)
        each = (kernel_library(kind, runtime, gen, software=software) for kind in kinds)
        found = next(filter(None, each), "other")
        return f"{measured_runtime(group, runtime)}/{found}" if group.endswith("decode") else found
    if group == "simt.experts":
        return kernel_library("experts", runtime, gen, dtype, software=software)
    if group == "collective":
        return (kernel_library("all_reduce", runtime, gen) if algorithm == "direct" else "") or "NCCL"
    return "fused"


def _labels(
    group: str, runtime: str, chips: Sequence[Chip], said: Mapping[str, str], software: str
) -> dict[str, NDArray[np.str_]]:
    """Labels of one kind of operator on several chips."""
    of = chip_labels(chips)
    algorithm, dtype = said.get("algorithm", "ring"), said.get("dtype", "")
    common = {"launch": "graph", "runtime": measured_runtime(group, runtime), "routed": "no", **said}
    found = {**of, **{k: np.full(len(chips), v) for k, v in common.items()}}
    if dtype and group in _TYPED:
        found["dtype"] = np.array([kernel_type(dtype, c, group, runtime) for c in chips])
    types = found.get("dtype", np.full(len(chips), dtype)).tolist()
    gens = of["generation"].tolist()
    library = [library_of(group, runtime, g, t, algorithm, software) for g, t in zip(gens, types, strict=True)]
    return {"library": np.array(library), **found}
