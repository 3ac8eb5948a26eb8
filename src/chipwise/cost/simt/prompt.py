"""Attention of prompts: many new tokens per sequence, scores never leave the chip.

B sequences, H heads, K kv heads, D head dim, q new and kv visible tokens per sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import PROMPT_FOUND, missed
from chipwise.units import Real

ROWS = 128.0
"""rows: queries of one tile. Source: Dao, 2023 (FlashAttention-2, section 3.3: blocks of 64 or 128)."""
EDGE = 32.0
"""keys: of a block at the edge of a tile. Chosen: the step in which kernels walk over keys there; moves nothing by
itself, as the number of blocks is fitted."""
EXPONENTIALS_PER_CLOCK = 16.0
"""count per clock: of one unit's special-function lanes. Source: CUDA C++ Programming Guide, throughput of native
arithmetic instructions: 16 per SM."""
OVERLAP = 3.0
"""exponent: of products against exponentials, which run in different pipes. Chosen: what FlashAttention-3 hides of
one behind the other is most, not all; moves prompts of narrow heads by up to 26 %."""


@dataclass(frozen=True, slots=True)
class PromptParameters:
    """Fitted numbers of prompt attention; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | compute_share | of dense peak | of the two products |
    | exponential_share | ratio | softmax work per (query, key) pair over one exponential of 16 per clock |
    | edge_blocks | 32 keys | keys that a tile works on beyond those it may see |
    | tile_s | s of a unit | fixed work per tile of 128 queries |
    | tail | 0..1 | part of the longest tile that the last wave waits for |
    | memory_share | of bandwidth | |
    | passes | ratio | extra reads and writes of q, k, v by the runtime: rotary, cache update, casts |
    | start_s | s | launch to finish of an empty call |
    | softness | exponent | of units against memory |
    """

    compute_share: Real
    exponential_share: Real
    edge_blocks: Real
    tile_s: Real
    tail: Real
    memory_share: Real
    passes: Real
    start_s: Real
    softness: Real


def prompt_attention(
    batch: Real,
    q: Real,
    kv: Real,
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    pairs: Real,
    cache_bytes: Real,
    rates: Rates,
    p: PromptParameters,
    *,
    window: Real = 0.0,
    causal: Real = 1.0,
    value_dim: Real | None = None,
) -> Cost:
    """t = start_s + passes + <units, memory>_softness.

    `pairs` are the (query, key) pairs of one sequence (`workload.op.causal_pairs`), `cache_bytes` the bytes
    per element of keys and values. A pair costs a unit max-like(2 (D + Dv) / flops, share / (16 clock)).
    Tiles of 128 queries of one head: padded rows x (mean keys + half a causal tile + edge) per pair, plus
    tile_s; units finish when the mean is done or, with few tiles, when the longest tile is. D is padded to
    16. Ignores split keys for few long sequences and packing of grouped heads into a tile (prompt kernels
    rarely do either).
    """
    value = head_dim if value_dim is None else value_dim
    depth = _padded(head_dim) + _padded(value)
    unit_flops = rates.flops_per_s * p.compute_share / rates.units
    multiply_s = 2.0 * depth / unit_flops
    exponential_s = p.exponential_share / (EXPONENTIALS_PER_CLOCK * rates.clock_hz)
    pair_s = (multiply_s**OVERLAP + exponential_s**OVERLAP) ** (1.0 / OVERLAP)
    tiles = batch * heads * np.ceil(q / ROWS)
    keys = pairs / q + np.where(np.asarray(causal) > 0, np.minimum(ROWS, q) / 2.0, 0.0) + EDGE * p.edge_blocks
    mean = tiles * (ROWS * keys * pair_s + p.tile_s) / rates.units
    reach = np.where(np.asarray(window) > 0, window + ROWS, np.inf)
    longest = ROWS * np.minimum(kv, reach) * pair_s + p.tile_s
    seconds = np.maximum(longest, mean + p.tail * longest * (1.0 - np.minimum(longest / mean, 1.0)))
    token_bytes = 2.0 * batch * q * (heads + kv_heads) * (head_dim + value)
    moved = token_bytes + batch * kv * kv_heads * (head_dim + value) * cache_bytes
    traffic = moved * missed(token_bytes, rates.cache_bytes, *PROMPT_FOUND)
    body = soft_maximum(
        {"compute": seconds, "memory": traffic / (rates.memory_bytes_per_s * p.memory_share)},
        cast(float, p.softness),
    )
    projected = batch * q * (heads * head_dim + kv_heads * (head_dim + value)) * 2.0
    extra = {"memory": p.passes * projected / rates.memory_bytes_per_s, "launch": p.start_s}
    return body + Cost(extra)


def _padded(dim: Real) -> Real:
    padded: Real = np.ceil(dim / 16.0) * 16.0
    return padded
