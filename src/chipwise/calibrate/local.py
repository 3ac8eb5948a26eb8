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
from chipwise.cost.local import APART, LocalModel, LocalNumbers

LOCAL = EffectGroup(
    "local", priors("local"), "published local speeds, llama.cpp, MLX and others (2023 to 2026); fitted (2026-11)"
)
"""What kernels of local runtimes reach, shared over backends, vendors, generations and eras of software."""

FUSED = (0.0, np.inf, 1.0)
"""as `EXPERTS`. Source: ggml-org/llama.cpp, ggml-cuda, of today; moves experts whose library is not told."""
EXPERTS = {
    "host_sorted": (1.0, np.inf, 1.0),
    "single": (1.0, 1.0, APART),
    "single_prompts_unfused": (0.0, 2.0, APART),
    "single_prompts": (0.0, 2.0, 1.0),
}
"""0 or 1, tokens, ratio: by library `sorts`, `single_from` and `unfused` of `LocalModel`. Source: the comments of
catalog/data/software.toml on these libraries; moves experts of these."""


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
    than two numbers in place of one of 32 (figures are rounded)."""
    lanes, tiles = chip.vector.get("fp32"), chip.peak("fp16")
    return chip.family == "simt" and chip.peak("int8") is None and lanes is not None and (tiles or 0.0) <= 2.02 * lanes


def local_model(
    effects: Effects, runtime: Runtime, chips: Sequence[Chip], policies: Policies | None, software: str = ""
) -> LocalModel:
    """Kernels of a runtime on some chips under its policies, by default its own on each of them."""
    backend = policies.backend if policies else ""
    labels = local_labels(runtime, backend, chips, software)
    values = effects.values(labels)
    each = np.ones(len(chips))
    values["kernel_s"] = values["kernel_s"] + np.array([c.dispatch_s for c in chips])
    numbers = LocalNumbers(**{name: value * each for name, value in values.items()})
    known = policies or runtime.policies
    micro = min(known.micro_batch_tokens or known.max_batched_tokens, known.max_batched_tokens)
    experts = [
        kernel_library("experts", runtime.id, c.generation, software=software, backend=name)
        for c, name in zip(chips, labels["backend"].tolist(), strict=True)
    ]
    sorts, single, apart = (np.array(c) for c in zip(*(EXPERTS.get(e, FUSED) for e in experts), strict=True))
    unfused = np.maximum(apart, runtime.unfused_experts)
    return LocalModel(numbers, float(micro), unfused=unfused, sorts=sorts, single_from=single)
