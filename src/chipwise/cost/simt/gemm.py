"""Matrix products with weights: C[m, n] = A[m, k] x W[k, n], batch times.

m rows (tokens), n output and k input features.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import FOUND, missed
from chipwise.cost.simt.tiles import TILES, tiled
from chipwise.units import Real
from chipwise.values import dataclass

THROTTLE_S = 2e-3
"""seconds: up to which a chip runs on its boost clock and on charge; then the power limit sets the pace. Chosen: a
couple of milliseconds, beyond which timed products slow down; moves which products are throttled, by how much is
fitted."""
POWER_SOFTNESS = 4.0
"""exponent: of energy against time at the power limit. Chosen: a corner as round as the roofline's; moves products
within a tenth of the limit, by at most 19 %."""


@dataclass(frozen=True, slots=True)
class Operands:
    """Bytes per element of weights (scales included), activations and outputs, and where they are found.

    `weight_copies` is how many equal weights are cycled through before this one is used again: 1 = a hot
    loop, infinity = cold, as between the layers of a model. `activations_cached` is 1 where the operator
    before has just written the input and the next one reads the output, 0 where a benchmark rotates them.
    `split_limit` is how often the library may split k: scaled narrow formats do not (1). `passing_bytes` replaces
    the bytes of inputs and outputs where these are not the matrices themselves: a convolution gathers its windows
    from a smaller input.
    """

    weight: Real = 2.0
    activation: Real = 2.0
    output: Real = 2.0
    weight_copies: Real = np.inf
    activations_cached: Real = 1.0
    split_limit: Real = 16.0
    passing_bytes: Real | None = None


@dataclass(frozen=True, slots=True)
class GemmParameters:
    """Fitted numbers of matrix products; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | compute_share | of dense peak | what the inner loop of a full tile sustains |
    | memory_share | of bandwidth | what streaming weights sustains |
    | load_bytes_per_clock | B/clock/unit | rate at which one unit fills its tiles from the cache |
    | prologue | elements of k | start and end of one tile |
    | start_s | s | launch to finish of an empty kernel |
    | joule_per_flop | J | energy of one operation: caps the rate of chips with a low power limit |
    | throttle | of the time | slowdown of products much longer than 2 ms |
    | quantisation | 0..1 | part of the last wave that is lost |
    | cache_share | of the cache | what a working set may fill and still be found |
    | softness | exponent | of the soft maximum of units and memory |
    | ahead | 0..1 | part of the launch that a host hides by running ahead: queues without captured graphs |
    """

    compute_share: Real
    memory_share: Real
    load_bytes_per_clock: Real
    prologue: Real
    start_s: Real
    joule_per_flop: Real
    throttle: Real
    quantisation: Real
    cache_share: Real
    softness: Real
    ahead: Real = 0.0


def gemm(
    m: Real,
    n: Real,
    k: Real,
    operands: Operands,
    rates: Rates,
    p: GemmParameters,
    *,
    batch: Real = 1.0,
    sizes: tuple[tuple[int, int], ...] = TILES,
) -> Cost:
    """t = start_s + <units, memory>_softness, less the launch that is hidden: ahead x the shorter of the two.

    units: the best tiling (see `tiles.tiled`) and the power limit, (tiling^4 + (energy / power)^4)^(1/4), times
    1 + throttle t / (t + 2 ms). memory: bytes that miss the
    cache over memory_share x bandwidth; weights miss when weight_copies x weights + activations + outputs
    outgrow cache_share x cache, activations when they alone do. Dims, rates and parameters broadcast.

    Ignores: reads repeated because a wave's operands do not fit the cache (no gain on measured rows),
    bank conflicts of odd dims, and which of a library's kernels its heuristic picks, which is most of the
    scatter that is left.
    """
    unit = tiled(
        m,
        n,
        k,
        batch,
        rates.units,
        rates.flops_per_s * p.compute_share / rates.units,
        p.load_bytes_per_clock * rates.clock_hz,
        operands.activation,
        operands.weight,
        p.prologue,
        p.quantisation,
        operands.split_limit,
        sizes,
    )
    # the work's energy over the power limit; idle units draw none of it
    energy_s = 2.0 * batch * m * n * k * p.joule_per_flop / rates.power_w
    seconds = unit.seconds * (1.0 + (energy_s / unit.seconds) ** POWER_SOFTNESS) ** (1.0 / POWER_SOFTNESS)
    seconds = seconds * (1.0 + p.throttle * seconds / (seconds + THROTTLE_S))
    weight_bytes = batch * n * k * operands.weight
    passing_bytes = operands.passing_bytes
    if passing_bytes is None:
        passing_bytes = batch * m * (k * operands.activation + n * operands.output)
    full, empty = (share * p.cache_share for share in FOUND)
    # of two activations none is a weight: endless copies of no bytes are no number
    cycle = operands.weight_copies * np.maximum(weight_bytes, 1.0) + passing_bytes
    weights_missed = missed(cycle, rates.cache_bytes, full, empty)
    passing_missed = np.maximum(
        missed(passing_bytes, rates.cache_bytes, full, empty), 1.0 - operands.activations_cached
    )
    traffic = weight_bytes * weights_missed + passing_bytes * passing_missed
    body = soft_maximum(
        {"units": seconds, "memory": traffic / (rates.memory_bytes_per_s * p.memory_share)}, cast(float, p.softness)
    )
    exposed, behind = (
        {
            "compute": np.where(unit.load_bound, 0.0, found["units"]),
            "on-chip": np.where(unit.load_bound, found["units"], 0.0),
            "memory": found["memory"],
        }
        for found in (body.exposed, body.hidden)
    )
    body = Cost(exposed, behind)
    hidden = p.ahead * np.minimum(p.start_s, body.total_s)
    return body + Cost({"launch": p.start_s - hidden}, {"launch": hidden})
