"""Seconds of one mean layer and of the head, per rank and micro-batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.parallel.collective import dispatch, exchange
from chipwise.predict.training.values import Cluster, Rates, Recipe, Spread, Transformer
from chipwise.units import Real

__all__ = ["LayerTime", "cheap_bytes", "gemm", "head_time", "layer_time", "saved_bytes"]

TILE = 128.0
BLOCK_KERNELS = 10.0  # element-wise kernels of a layer that are started one by one
# Host work, chosen on runs that are bound by it, not fitted: more under tensor parallelism (collectives are launched
# too), less where software captures graphs.
TENSOR_HOST = 1.25
GRAPH_HOST = 0.36
RING_EXPOSED = 0.1  # of the traffic of ring attention, where the core is long enough to hide it: assumed
EXPERT_WIDTH = 2048.0  # of the experts that φ is quoted for
MISALIGNED = 11.0  # unfused cores whose head size is no multiple of 8 fall off the matrix unit


def gemm(m: Real, n: Real, k: Real, peak: Real, c: Cluster, r: Rates, entry_bytes: Real) -> Real:
    """(1) t0 + <2 tiles 128^2 k / (ε_c P), β (m k + k n + m n) / (ε_m B)>_4.

    tiles = ceil(m / 128) ceil(n / 128) + tail x those of one wave. The soft maximum is fourth power because
    two square roots are cheap.
    """
    # + tail: the last wave of tiles leaves units idle; a wave is 2 tiles of 128 x 128 on every unit
    padded = np.ceil(m / TILE) * np.ceil(n / TILE) + r.tail * 2.0 * c.units
    compute = 2.0 * (TILE * TILE) * padded * k / (r.linear * peak)
    memory = entry_bytes * (m * k + k * n + m * n) / (r.memory * c.memory_bytes_per_s)
    return r.kernel_s + _soft4(compute, memory)


def _soft4(a: Real, b: Real) -> Real:
    """(a^4 + b^4)^(1/4)."""
    a2, b2 = a * a, b * b
    return np.sqrt(np.sqrt(a2 * a2 + b2 * b2))


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Seconds of one layer and micro-batch by cause; `device_s` is what host work overlaps with."""

    products_s: Real
    core_s: Real
    passes_s: Real
    recompute_s: Real
    tp_s: Real
    experts_s: Real
    cp_s: Real
    host_s: Real

    @property
    def device_s(self) -> Real:
        """All that the device does."""
        work = self.products_s + self.core_s + self.passes_s + self.recompute_s
        return work + self.tp_s + self.experts_s + self.cp_s

    @property
    def total_s(self) -> Real:
        """<device, host>_4: (9)."""
        return _soft4(self.device_s, self.host_s)


def saved_bytes(t: Transformer, s: Spread, recipe: Recipe) -> Real:
    """(5) Bytes that a layer saves for its backward pass, per rank and micro-batch.

    x {10 h / t_sp + [2 mixer_in + 2 mixer_out + (2 gates + 2) f] / t + 5 a s / t if scores are written,
    8 a / t (softmax statistics) if not}; of experts κ copies, and 4 κ h for permuted tokens. For GPT this is
    34 s b h + 5 a s^2 b (Korthikanti et al., 2022).
    """
    x, h = s.tokens, t.hidden
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    dense = t.dense_share * (2.0 * t.gates + 2.0) * t.ffn
    wide = (2.0 * t.expert_gates + 2.0) * (t.top_k * t.expert_ffn + t.shared_ffn)
    routed = t.moe_share * (wide + 4.0 * t.top_k * t.expert_width)
    scores = t.core_share * t.heads * np.where(np.asarray(recipe.flash) > 0, 8.0, 5.0 * s.seq)
    return x * (10.0 * h / tsp + (2.0 * t.mixer_in + 2.0 * t.mixer_out + dense + routed + scores) / s.tp)


def cheap_bytes(t: Transformer, s: Spread, recipe: Recipe) -> Real:
    """Saved bytes per layer that selective recomputation drops: scores where they are written, else outputs of norms
    and activation functions."""
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    wide = t.dense_share * t.ffn + t.moe_share * (t.top_k * t.expert_ffn + t.shared_ffn)
    light = s.tokens * (4.0 * t.hidden / tsp + 2.0 * wide / s.tp)
    return np.where(np.asarray(recipe.flash) > 0, light, _score_bytes(t, s))


def _score_bytes(t: Transformer, s: Spread) -> Real:
    """Saved bytes of scores that are written: softmax 2, its dropout 2 and mask 1 for each."""
    return 5.0 * t.core_share * t.heads * s.seq * s.tokens / s.tp


def layer_time(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates) -> LayerTime:
    """(2)-(9): forward and backward of the mean layer.

    Products: forward F; backward the gradients of inputs and of weights, 2 F (adapters: F, frozen weights).
    """
    x, h, tp = s.tokens, t.hidden, s.tp
    beta = recipe.operand_bytes
    mixer = gemm(x, t.mixer_in / tp, h, c.narrow, c, r, beta) + gemm(
        x, h, t.mixer_out / tp, c.narrow, c, r, beta
    )
    dense = gemm(x, t.gates * t.ffn / tp, h, c.narrow, c, r, beta)
    dense = t.dense_share * (dense + gemm(x, h, t.ffn / tp, c.narrow, c, r, beta))
    routed = _experts(t, s, c, recipe, r)
    forward = mixer + dense + routed
    back = np.where(np.asarray(s.adapter) > 0, 1.0, 2.0)
    core, core_back = _core(t, s, c, recipe, r)
    saved = saved_bytes(t, s, recipe)
    more = np.where(np.asarray(recipe.flash) > 0, 0.0, recipe.score_passes - 1.0)
    touched = saved + more * _score_bytes(t, s)
    passes = r.passes * touched / (r.memory * c.memory_bytes_per_s) + BLOCK_KERNELS * r.kernel_s
    cheap = passes * cheap_bytes(t, s, recipe) / saved
    again = s.full * (forward + core + passes) + (1.0 - s.full) * s.selective * (core + cheap)
    host = r.host_s * (1.0 + s.full / 3.0) + t.moe_share * r.moe_host_s
    host = host * np.where(np.asarray(tp) > 1, TENSOR_HOST, 1.0)
    host = np.where(
        np.asarray(recipe.compiled) > 0, 0.0, host * np.where(np.asarray(recipe.graphs) > 0, GRAPH_HOST, 1.0)
    )
    return LayerTime(
        products_s=forward * (1.0 + back),
        core_s=core + core_back,
        passes_s=(1.0 + back) * passes + _unpacked(t, s, c, recipe, r),
        recompute_s=again,
        tp_s=_tensor(t, s, c, recipe, r),
        experts_s=_dispatch(t, s, c, recipe, r),
        cp_s=_context(t, s, c, recipe, r, core + core_back),
        host_s=host,
    )


def _unpacked(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates) -> Real:
    """Frozen weights of less than a byte (QLoRA) are written out in 16 bit before each use: forward, backward, and
    when recomputed.

    Per parameter 0.53 bytes are read and 2 written, of all weights a rank works with (FSDP unpacks what it gathered,
    not its shard alone), once per pass and micro-batch. A product of x tokens takes 4 x FLOPs per parameter
    meanwhile: on an H100 some 23 ps at 4,096 tokens against 2 ps, so that unpacking is a few percent of a step, and
    about what larger micro-batches in the freed memory win back. It weighs more in micro-batches of few tokens.
    """
    params = t.layer_params / s.tp + t.expert_params / np.maximum(s.ep, s.tp)
    once = params * (recipe.frozen_bytes + 2.0) / (r.memory * c.memory_bytes_per_s)
    packed = (np.asarray(s.adapter) > 0) & (np.asarray(recipe.frozen_bytes) < 1.0)
    return np.where(packed, (2.0 + s.full) * once, 0.0)


def _experts(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates) -> Real:
    """(3) Loss x products of the local experts, each with M_e = x κ e / (E t) rows, and the shared ones.

    One grouped kernel: its weights are all local experts' and its rows are padded per expert. What permutation
    and uneven groups cost weighs more where experts are narrow: 1 + (φ - 1) sqrt(2048 / f).
    """
    if np.ndim(t.moe_share) == 0 and not float(t.moe_share):
        return 0.0
    x, h, beta = s.tokens, t.hidden, recipe.operand_bytes
    local = np.maximum(t.experts / s.ep, 1.0)
    rows = x / s.tp * t.top_k / local
    width = t.expert_gates * t.expert_ffn
    inner = t.expert_width
    full = np.ceil(np.maximum(rows, 1.0) / TILE) * TILE
    flops = 2.0 * local * full * inner * (width + t.expert_ffn)
    moved = local * (rows * (2.0 * inner + width + t.expert_ffn) + inner * (width + t.expert_ffn))
    grouped = 2.0 * r.kernel_s + _soft4(
        flops / (r.linear * c.narrow), beta * moved / (r.memory * c.memory_bytes_per_s)
    )
    shared = gemm(x, t.expert_gates * t.shared_ffn / s.tp, h, c.narrow, c, r, beta)
    shared = shared + gemm(x, h, t.shared_ffn / s.tp, c.narrow, c, r, beta)
    loss = 1.0 + (r.expert_loss - 1.0) * np.sqrt(EXPERT_WIDTH / np.maximum(t.expert_ffn, 1.0))
    return np.where(np.asarray(t.moe_share) > 0, t.moe_share * (loss * grouped + shared), 0.0)


def _core(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates) -> tuple[Real, Real]:
    """(4) Forward and backward of the attention core; it stays in 16 bit.

    Fused: half of the pairs if causal, 4 FLOPs per pair and value, backward 2.5 times. Unfused: all pairs,
    slower below head size 128 (P √(d / 128)), backward twice.
    """
    seen = (1.0 - t.window_share) * s.seq + t.window_share * np.minimum(2.0 * t.window, s.seq)
    flops = 4.0 * s.tokens * seen * t.core_width * t.core_share / s.tp
    odd = (np.asarray(t.head_dim) % 8 != 0) & (np.asarray(t.head_dim) % 1 == 0)
    aligned = np.where(odd, MISALIGNED, 1.0)
    fused = flops * (1.0 - 0.5 * t.causal) / (r.core * c.wide)
    slow = np.sqrt(np.minimum(t.head_dim / 128.0, 1.0))
    written = flops * aligned / (r.unfused * c.wide * slow)
    flash = np.asarray(recipe.flash) > 0
    forward = np.where(flash, fused, written)
    return forward, forward * np.where(flash, 2.5, 2.0)


def _tensor(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates) -> Real:
    """(7) Four all-reduces of 2 x h bytes per layer (or the same bytes as reduce-scatter and all-gather), two
    more if recomputed; exposed share where software can hide them."""
    one = exchange("all_reduce", 2.0 * s.tokens * t.hidden, s.tp, c.network, r.of("all_reduce")).total_s
    exposed = np.where(np.asarray(recipe.fused) > 0, r.tp_exposed, 1.0)
    return (4.0 + 2.0 * s.full) * one * exposed


def _dispatch(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates) -> Real:
    """(8) Dispatch and combine, forward and backward: four all-to-alls of x / t tokens of 2 h bytes."""
    if np.ndim(t.moe_share) == 0 and not float(t.moe_share):
        return 0.0
    payload = s.tokens / s.tp * 2.0 * t.expert_width
    p = replace(
        r.of("all_to_all"), link_share=r.all_to_all, pair_share=r.all_to_all, net_share=r.all_to_all_net
    )
    one = dispatch(payload, t.top_k, s.ep, c.network, p).total_s
    exposed = np.where(np.asarray(recipe.fused) > 0, 0.5 + 0.5 * r.tp_exposed, 1.0)
    return np.where(np.asarray(t.moe_share) > 0, t.moe_share * 4.0 * one * exposed, 0.0)


def _context(t: Transformer, s: Spread, c: Cluster, recipe: Recipe, r: Rates, core: Real) -> Real:
    """K and V of all ranks meet once forward and twice backward: 3 (c - 1) / c of 2 kv_width c x / t bytes.

    Ring: what the core does not hide, and a tenth of the rest. All-gather: before the core starts, exposed as
    collectives of tensor parallelism are.
    """
    held = 3.0 * 2.0 * t.kv_width * t.core_share * s.tokens * s.cp / s.tp
    p = r.of("all_gather")
    moved = exchange("all_gather", held, s.cp, c.network, p, stride=s.tp, calls=3.0).total_s
    ring = np.maximum(moved - core, 0.0) + RING_EXPOSED * moved
    exposed = np.where(np.asarray(recipe.fused) > 0, r.tp_exposed, 1.0)
    return np.where(np.asarray(s.gather) > 0, exposed * moved, ring)


def head_time(t: Transformer, s: Spread, c: Cluster, r: Rates) -> Real:
    """(10) Logits in 16 bit, forward and both gradients, and the loss: 8 V / t + 6 h bytes per token."""
    product = gemm(s.tokens, t.vocab / s.tp, t.hidden, c.wide, c, r, 2.0)
    loss = r.passes * (8.0 * t.vocab / s.tp + 6.0 * t.hidden) * s.tokens / (r.memory * c.memory_bytes_per_s)
    return 3.0 * product + loss
