"""The numbers of local runtimes' own kernels: what is fitted to published local speeds, and the model made of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectGroup, Effects
from chipwise.calibrate.priors import priors
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import kernel_library, kernels_of
from chipwise.catalog.runtime_spec import Policies, Runtime
from chipwise.cost.local import LocalModel, LocalNumbers

LOCAL = EffectGroup(
    "local",
    priors("local"),
    "published local speeds, llama.cpp, MLX and others (2023 to 2026); fitted (2026-11)",
)
"""What kernels of local runtimes reach, shared over backends, vendors, generations and eras of software."""


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
