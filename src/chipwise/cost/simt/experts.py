"""Routed experts of one rank: two grouped products, one group per expert that has rows.

d hidden width, f width of one expert on this rank, rows = (token, expert) pairs on this rank.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import EXPERTS_FOUND, missed
from chipwise.cost.simt.routing import Routing
from chipwise.cost.simt.tiles import waves
from chipwise.units import Array, Real
from chipwise.values import dataclass

# Grouped kernels have tiles with few rows, since most experts get few.
GROUP_TILES: tuple[tuple[int, int], ...] = ((16, 128), (32, 128), (64, 128), (128, 128), (128, 256))


@dataclass(frozen=True, slots=True)
class ExpertParameters:
    """Fitted numbers of routed experts; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | compute_share | of dense peak | inner loop of a full tile |
    | memory_share | of bandwidth | streaming experts' weights |
    | load_bytes_per_clock | B/clock/unit | rate at which one unit fills its tiles |
    | prologue | elements of k | start and end of one tile |
    | partial | tiles per expert | rows of an expert do not fill its last tile |
    | quantisation | 0..1 | part of the last wave that is lost |
    | row_passes | ratio | reads and writes of d per row beyond the products: permute, quantise, combine |
    | token_passes | ratio | the same per token that enters, also those without a local expert |
    | expert_s | s | bookkeeping per expert of the model |
    | start_s | s | launch to finish of an empty layer: several kernels |
    | softness | exponent | of units against memory |
    | crowding | ratio | rows of the busiest rank beyond those of normal sums: see `routing.power_law` |
    """

    compute_share: Real
    memory_share: Real
    load_bytes_per_clock: Real
    prologue: Real
    partial: Real
    quantisation: Real
    row_passes: Real
    token_passes: Real
    expert_s: Real
    start_s: Real
    softness: Real
    crowding: Real = 0.7


def experts(
    routing: Routing,
    tokens: Real,
    hidden: Real,
    inter: Real,
    num_experts: Real,
    weight: Real,
    activation: Real,
    rates: Rates,
    p: ExpertParameters,
    *,
    gated: Real = 1.0,
    resident: Real = 0.0,
) -> Cost:
    """t = start_s + expert_s E + passes + <units, memory>_softness.

    Weights of the distinct experts are read once, (2 + gated) d f each; with `resident` = 1 (a hot loop) only
    what outgrows the cache. units: products [rows, d] x [d, (1 + gated) f] and [rows, f] x [f, d] in tiles of
    bm rows, max(distinct, rows / bm + partial x distinct) of them down, the best bm; a tile costs as in
    `tiles.tiled`. `tokens` are those that enter this rank's kernel, `weight` and `activation` bytes per
    element. Ignores overlap with shared experts and with the exchange between ranks.
    """
    h, rows = routing.distinct, routing.rows
    up = 1.0 + gated
    unit_flops = rates.flops_per_s * p.compute_share / rates.units
    unit_bytes = p.load_bytes_per_clock * rates.clock_hz
    best: Array = np.asarray(np.inf)
    load: Array = np.asarray(False)
    for bm, bn in GROUP_TILES:
        down = np.maximum(h, rows / bm + p.partial * h)
        multiply_s = 2.0 * bm * bn / unit_flops
        load_s = (bm * activation + bn * weight) / unit_bytes
        each = np.maximum(multiply_s, load_s)
        seconds: Real = 0.0
        for n, k in ((up * inter, hidden), (inter * 0.0 + hidden, inter)):
            rounds = waves(down * np.ceil(n / bn) / rates.units, p.quantisation)
            seconds = seconds + rounds * each * (k + p.prologue)
        better = seconds < best
        load = np.where(better, load_s > multiply_s, load)
        best = np.minimum(best, seconds)
    weight_bytes = h * (1.0 + up) * hidden * inter * weight
    cold = 1.0 - resident * (1.0 - missed(weight_bytes, rates.cache_bytes, *EXPERTS_FOUND))
    width = hidden * (4.0 + activation) + inter * (2.0 * up + activation)
    passing = rows * width
    traffic = weight_bytes * cold + passing * missed(passing, rates.cache_bytes, *EXPERTS_FOUND)
    body = soft_maximum(
        {
            "compute": np.where(load, 0.0, best),
            "on-chip": np.where(load, best, 0.0),
            "memory": traffic / (rates.memory_bytes_per_s * p.memory_share),
        },
        cast(float, p.softness),
    )
    passes = 2.0 * hidden * (rows * p.row_passes + tokens * p.token_passes) / rates.memory_bytes_per_s
    return body + Cost({"memory": passes, "launch": p.start_s + p.expert_s * num_experts})
