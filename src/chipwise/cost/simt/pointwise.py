"""Element-wise work, norms and softmax: bytes in and out; and turning 16-bit activations into a narrow type before a
product, a kernel of its own."""

from __future__ import annotations

from typing import cast

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import FOUND, missed
from chipwise.units import Real
from chipwise.values import dataclass

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


@dataclass(frozen=True, slots=True)
class QuantiseParameters:
    """`start_s` s per call; `row_unit_s` s of one compute unit per row (one block per row: vLLM's per-token
    kernels); `memory_share` of the bandwidth while reading 2 and writing 1 byte per element."""

    start_s: Real
    row_unit_s: Real
    memory_share: Real


CACHE_GAIN = 3.0
"""ratio: bandwidth of a last-level cache over that of the memory behind it. Chosen: vendors give a few times as much,
2 to 5; moves kernels that quantise what is still in cache."""


def quantise(rows: Real, columns: Real, rates: Rates, p: QuantiseParameters, needed: Real = 1.0) -> Cost:
    """needed x (start_s + rows row_unit_s / units + 3 rows columns / (memory_share x bandwidth)).

    The bytes cost a third where input and output fit the cache, since the operator before has just written
    them.

    `needed` is 1 where the runtime quantises, 0 where it does not (a fused or static input), so that a list
    of products broadcasts. Ignores fusion with the norm before it, which hides most of it.
    """
    moved = 3.0 * rows * columns
    away = missed(moved, rates.cache_bytes, *FOUND)
    slow = (away + (1.0 - away) / CACHE_GAIN) / (rates.memory_bytes_per_s * p.memory_share)
    return Cost(
        {
            "launch": needed * p.start_s,
            "on-chip": needed * rows * p.row_unit_s / rates.units,
            "memory": needed * moved * slow,
        }
    )
