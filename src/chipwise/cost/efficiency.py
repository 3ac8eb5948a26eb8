"""The fitted numbers that a roofline needs, as plain values: shares of peaks, and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Efficiency:
    """Shares of the peaks that code reaches on one family of chips, and the time to start a kernel.

    `compute` by data type for products with weights; `attention_compute` for scores and weighted sums of
    prompts; `expert_compute` multiplies `compute` for grouped products. `memory` for weights,
    `expert_memory` for weights of experts, `cache_memory` for keys and values, `pass_memory` for element-wise
    passes. `softness` is the exponent of the soft maximum.
    """

    compute: Mapping[str, float]
    attention_compute: float
    expert_compute: float
    memory: float
    expert_memory: float
    cache_memory: float
    pass_memory: float
    launch_s: float
    softness: float

    def take(self, _: object) -> Efficiency:
        """The same for any selection of chips: nothing here differs between chips of a family."""
        return self


PEAKS = Efficiency(
    compute=dict.fromkeys(("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4"), 1.0),
    attention_compute=1.0,
    expert_compute=1.0,
    memory=1.0,
    expert_memory=1.0,
    cache_memory=1.0,
    pass_memory=1.0,
    launch_s=0.0,
    softness=16.0,
)
"""shares of peaks, seconds, exponent: the roofline itself, for what no fit knows. Exact: all shares are 1 and nothing
is started; the exponent rounds the corner by 4 %."""
