"""The numbers of local runtimes' own kernels: what is fitted to published local speeds, and the model made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectGroup, EffectLevel, Effects, Quantity
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import kernel_library, kernels_of
from chipwise.catalog.runtime_spec import Policies, Runtime
from chipwise.cost.local import LocalModel, LocalNumbers

# Where llama-bench of Llama 2 7B Q4_0, 512 tokens, told more than a prior before this fit, as quoted by others
# (ggml-org/llama.cpp discussions 15021 ROCm and 10879 Vulkan): 0.07 of the 8-bit peak of MI300X, 0.04 of Arc's.
_KNOWN = {"hip+cdna3": math.log(0.07 / 0.25), "vulkan+xe2": math.log(0.04 / 0.15)}
# STREAM reaches about three quarters of a processor's channels, as cost.cpu has it; GPUs reach more of theirs.
_CHANNELS = {"cpu": math.log(0.75 / 0.85)}
_VENDORS = {"intel": math.log(0.15 / 0.25)}  # assumed: SYCL's kernels leave more of Arc's matrix units idle
_BACKEND = EffectLevel(("backend",), 0.3)
_GENERATION = EffectLevel(("generation",), 0.25)

LOCAL = EffectGroup(
    "local",
    # priors: round figures of ggml's and MLX's published benchmarks; softmax: an exponent is a few instructions of
    # lanes that do a thirtieth of the matrix unit's operations
    {
        "stream": Quantity(
            0.85,
            0.1,
            "share of bandwidth, weights",
            (EffectLevel(("generation",), 0.1), EffectLevel(("backend",), 0.1, _CHANNELS)),
            0.05,
            1.0,
        ),
        "cache": Quantity(0.7, 0.2, "share of bandwidth, keys and values", (), 0.05, 1.0),
        "kernel_s": Quantity(
            4e-6,
            0.4,
            "s from one kernel to the next",
            (_BACKEND, _GENERATION, EffectLevel(("runtime",), 0.3), EffectLevel(("era",), 0.3)),
            1e-8,
            1e-3,
        ),
        "barrier_s": Quantity(
            1e-9, 0.7, "s per thread of a processor squared, until all have met", (), 1e-12, 1e-6
        ),
        "lanes": Quantity(
            0.35,
            0.4,
            "share of the vector peak, few rows",
            (EffectLevel(("backend",), 0.4), _GENERATION),
            1e-3,
            1.0,
        ),
        "packed": Quantity(
            0.25,
            0.5,
            "share of the 8-bit peak, packed weights",
            (
                EffectLevel(("tiles",), 0.4, {"lanes": math.log(0.6 / 0.25)}),
                EffectLevel(("vendor",), 0.5, _VENDORS),
                EffectLevel(("backend", "generation"), 0.4, _KNOWN),
                EffectLevel(("chip",), 0.2),
            ),
            1e-3,
            1.0,
        ),
        "half": Quantity(
            0.45,
            0.3,
            "share of the 16-bit peak, 16-bit weights",
            (
                EffectLevel(("tiles",), 0.2, {"lanes": math.log(0.7 / 0.45)}),
                EffectLevel(("backend", "generation"), 0.3),
            ),
            1e-2,
            1.0,
        ),
        "rows": Quantity(64.0, 0.7, "rows at which a product runs at half of its rate", (), 1.0, 2e3),
        "attention": Quantity(
            0.2, 0.5, "share of the 16-bit peak, attention of prompts", (_BACKEND,), 5e-3, 1.0
        ),
        "softmax": Quantity(300.0, 0.7, "operations of the matrix unit per score", (), 1.0, 1e4),
        "pipelined": Quantity(0.6, 0.5, "share of what stages could save", (), 0.01, 1.0),
    },
    "published local speeds, llama.cpp, MLX and others (2023 to 2026); fitted (2026-11)",
)
"""What kernels of local runtimes reach, shared over backends (cuda, metal, vulkan, hip, cpu), vendors and generations,
with an era of software: before captured graphs the host started every kernel. A part without rows keeps what its
relatives have."""


def local_labels(
    runtime: Runtime, backend: str, chips: Sequence[Chip], software: str = ""
) -> dict[str, NDArray[np.str_]]:
    """What fitted numbers tell chips apart by; "" as `backend` is the default of each chip, as `software`, the date of
    the runtime, the newest. `era`: "eager" where the host starts every kernel of a pass that decodes; only kernels of
    a chip's default backend are captured. `tiles`: "lanes" where `_on_lanes`, whose rate stands in for that of
    matrix units and is easier to reach (assumed)."""
    usual = [next(iter(runtime.backends_on(c)), "") for c in chips]
    eras = [kernel_library("decode_pass", runtime.id, c.generation, software=software) for c in chips]
    found = {
        "chip": [c.software_id for c in chips],
        "vendor": [c.software_vendor for c in chips],
        "generation": [c.generation for c in chips],
        "tiles": ["lanes" if _on_lanes(c) else "" for c in chips],
        "backend": [backend or own for own in usual],
        "runtime": [kernels_of(runtime.id)] * len(chips),
        "era": [era if backend in ("", own) else "" for era, own in zip(eras, usual, strict=True)],
    }
    return {name: np.array(values) for name, values in found.items()}


def _on_lanes(chip: Chip) -> bool:
    """Whether a GPU multiplies tiles on its lanes, as Apple's before M5: it has no rate in 8 bit, and in 16 bit no more
    than two numbers in place of one of 32."""
    lanes, tiles = chip.vector.get("fp32"), chip.peak("fp16")
    return (
        chip.family == "simt"
        and chip.peak("int8") is None
        and tiles is not None
        and tiles <= 2.0 * (lanes or 0.0)
    )


def local_model(
    effects: Effects, runtime: Runtime, chips: Sequence[Chip], policies: Policies | None, software: str = ""
) -> LocalModel:
    """Kernels of a runtime on some chips under its policies, by default its own on each of them."""
    backend = policies.backend if policies else ""
    values = effects.values(local_labels(runtime, backend, chips, software))
    each = np.ones(len(chips))
    numbers = LocalNumbers(**{name: value * each for name, value in values.items()})
    known = policies or runtime.policies
    micro = min(known.micro_batch_tokens or known.max_batched_tokens, known.max_batched_tokens)
    sorting = [kernel_library("experts", runtime.id, c.generation, software=software) for c in chips]
    sorts = np.array([float(library == "host_sorted") for library in sorting])
    return LocalModel(numbers, float(micro), unfused=runtime.unfused_experts, sorts=sorts)
