"""Attention: of one new token per sequence, or of a few guessed ones, the cache is read once, in parallel slices; of
prompts there are many new tokens per sequence, and scores never leave the chip.

B sequences, H heads, K kv heads, D head dim, q new and kv visible tokens per sequence.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.residency import PROMPT_FOUND, missed
from chipwise.cost.simt.tiles import waves
from chipwise.units import Real
from chipwise.values import dataclass

GROUP_ROWS = 16.0
"""rows: of the matrix unit, into which grouped heads are packed. Source: PTX ISA: mma.m16n8k16."""


@dataclass(frozen=True, slots=True)
class DecodeParameters:
    """Fitted numbers of decode attention; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | memory_share | of bandwidth | streaming the cache |
    | compute_share | of dense peak | products on padded rows |
    | load_bytes_per_clock | B/clock/unit | rate at which one unit takes in keys and values |
    | slice | tokens | shortest slice of a sequence worth a block of its own |
    | occupancy | blocks per unit | how many slices the library aims for; near 0 = it does not split |
    | block_s | s of a unit | fixed work per block |
    | quantisation | 0..1 | part of the last wave that is lost |
    | cache_full, cache_empty | of the cache | working set that is found wholly, not at all |
    | passes | ratio | extra reads and writes of the new q, k, v by the runtime |
    | start_s | s | launch to finish of an empty call, merging of slices included |
    | softness | exponent | of units against memory |
    | ahead | 0..1 | part of the launch that a host hides by running ahead: queues without captured graphs |
    | widest | heads | of a group that share a block: beyond that each head reads the cache on its own |
    """

    memory_share: Real
    compute_share: Real
    load_bytes_per_clock: Real
    slice: Real
    occupancy: Real
    block_s: Real
    quantisation: Real
    cache_full: Real
    cache_empty: Real
    passes: Real
    start_s: Real
    softness: Real
    ahead: Real = 0.0
    widest: Real = np.inf


def decode_attention(
    batch: Real,
    kv: Real,
    heads: Real,
    kv_heads: Real,
    head_dim: Real,
    cache_bytes: Real,
    rates: Rates,
    p: DecodeParameters,
    *,
    window: Real = 0.0,
    value_dim: Real | None = None,
    queries: Real = 1.0,
    resident: Real = 0.0,
) -> Cost:
    """t = start_s + passes + <units, memory>_softness, less the launch that is hidden: ahead x the shorter of
    start_s and the rest.

    memory: keys and values seen (at most the window) over memory_share x bandwidth; with `resident` = 1 (a
    hot loop) only what the cache does not hold. units: B K blocks, each sequence cut into
    s = occupancy units / (B K) slices of at least `slice` tokens; a block takes its tokens x
    max(bytes / load rate, products of rows padded to 16) + block_s. `value_dim` differs from `head_dim` for
    latent caches, whose values are part of the keys: pass 0. `queries` per sequence, guesses to be verified, share a
    read of the cache as grouped heads do: they are rows of the same product.
    """
    value = head_dim if value_dim is None else value_dim
    reach = np.where(np.asarray(window) > 0, window, np.inf)
    seen = np.minimum(kv, reach)
    token_bytes = (head_dim + value) * cache_bytes
    total = batch * kv_heads * seen * token_bytes
    found = resident * (1.0 - missed(total, rates.cache_bytes, p.cache_full, p.cache_empty))
    output = np.where(np.asarray(value) > 0, value, head_dim)
    passing = batch * queries * heads * (head_dim + output) * 2.0
    memory_s = (total * (1.0 - found) + passing) / (rates.memory_bytes_per_s * p.memory_share)
    groups = np.where(np.asarray(heads <= p.widest * kv_heads), kv_heads, heads)
    blocks = batch * groups
    slices = np.minimum(np.maximum(p.occupancy * rates.units / blocks, 1.0), np.maximum(seen / p.slice, 1.0))
    rows = np.ceil(queries * heads / groups / GROUP_ROWS) * GROUP_ROWS
    multiply_s = 2.0 * (head_dim + output) * rows * rates.units / (rates.flops_per_s * p.compute_share)
    load_s = token_bytes / (p.load_bytes_per_clock * rates.clock_hz)
    one = seen / slices * np.maximum(load_s, multiply_s) + p.block_s
    seconds = waves(blocks * slices / rates.units, p.quantisation) * one
    loading = np.asarray(load_s > multiply_s)
    body = soft_maximum(
        {"compute": np.where(loading, 0.0, seconds), "on-chip": np.where(loading, seconds, 0.0), "memory": memory_s},
        cast(float, p.softness),
    )
    projected = batch * queries * (heads * head_dim + kv_heads * (head_dim + value)) * 2.0
    work = body + Cost({"memory": p.passes * projected / rates.memory_bytes_per_s})
    hidden = p.ahead * np.minimum(p.start_s, work.total_s)
    return work + Cost({"launch": p.start_s - hidden}, {"launch": hidden})


SELECTED_SHARE = 0.63
"""share of dense peak: of products with entries that every query selects for itself. Source: FlashMLA's README (640
TFLOPS of prompts on H800: 0.65) and vllm-project/vllm pull request 33451 (B200: 8192 queries of 128 heads, 2048 entries
each, in 3.33 ms: 0.61)."""

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
    | least_heads | heads | of a query that selects its entries: kernels fill up to so many; 0: they tile such prompts \
    as others |
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
    least_heads: Real = 0.0


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
    # a part of a prompt ends where its share of the queries does: on average over the parts half way back to the first
    end = kv - q * (1.0 - np.minimum(batch, 1.0)) / 2.0
    longest = ROWS * np.minimum(end, reach) * pair_s + p.tile_s
    seconds = np.maximum(longest, mean + p.tail * longest * (1.0 - np.minimum(longest / mean, 1.0)))
    token_bytes = 2.0 * batch * q * (heads + kv_heads) * (head_dim + value)
    moved = token_bytes + batch * kv * kv_heads * (head_dim + value) * cache_bytes
    traffic = moved * missed(token_bytes, rates.cache_bytes, *PROMPT_FOUND)
    body = soft_maximum(
        {"compute": seconds, "memory": traffic / (rates.memory_bytes_per_s * p.memory_share)}, cast(float, p.softness)
    )
    projected = batch * q * (heads * head_dim + kv_heads * (head_dim + value)) * 2.0
    extra = {"memory": p.passes * projected / rates.memory_bytes_per_s, "launch": p.start_s}
    return body + Cost(extra)


def selected_attention(tokens: Real, heads: Real, depth: Real, top_k: Real, rates: Rates, p: PromptParameters) -> Cost:
    """Prompts whose queries, `tokens` in all, each select `top_k` entries of a latent cache, which their heads share.

    No two queries share a tile: its rows are the heads of one query, filled up to `least_heads`, and all top_k entries
    are multiplied: t = start_s + 2 tokens ceil(H / least) least top_k (D + Dv) / (SELECTED_SHARE peak), `depth` =
    D + Dv. To how few heads a rank is cut makes no difference below `least_heads`.
    """
    least = np.maximum(p.least_heads, 1.0)
    products = tokens * np.ceil(heads / least) * least * top_k
    return Cost({"compute": 2.0 * products * depth / (SELECTED_SHARE * rates.flops_per_s), "launch": p.start_s})


def _padded(dim: Real) -> Real:
    padded: Real = np.ceil(dim / 16.0) * 16.0
    return padded
