"""Element-wise work, norms and softmax: bytes in and out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import missed
from chipwise.units import Real

CACHE_FULL = 0.3
"""share of the cache: up to which a hot loop finds its rows whole. Chosen: replacement is not LRU, so less than a
full cache; moves kernels on rows between a third and the whole of the cache."""


@dataclass(frozen=True, slots=True)
class PointwiseParameters:
    """`memory_share` of bandwidth; `passes` reads and writes per compulsory one (unfused norms read twice);
    `load_bytes_per_clock` B per clock and unit through the cache; `cache_empty` of the cache, the working set
    that a hot loop no longer finds; `start_s` s per kernel; `softness` exponent."""

    memory_share: Real
    passes: Real
    load_bytes_per_clock: Real
    cache_empty: Real
    start_s: Real
    softness: Real


def pointwise(num_bytes: Real, rates: Rates, p: PointwiseParameters, *, resident: Real = 0.0) -> Cost:
    """t = start_s + <cache, memory>_softness with `passes` x `num_bytes` through both.

    `resident` = 1 in a hot loop, where a working set below cache_empty x cache is partly found. Ignores
    exponentials and few long rows; both within the scatter of measured norms and softmaxes.
    """
    moved = num_bytes * p.passes
    absent = 1.0 - resident * (1.0 - missed(moved, rates.cache_bytes, CACHE_FULL, p.cache_empty))
    body = soft_maximum(
        {
            "on-chip": moved / (p.load_bytes_per_clock * rates.clock_hz * rates.units),
            "memory": moved * absent / (rates.memory_bytes_per_s * p.memory_share),
        },
        cast(float, p.softness),
    )
    return body + Cost({"launch": p.start_s})
