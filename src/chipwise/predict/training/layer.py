"""Seconds of one mean layer and of the head, per rank and micro-batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.parallel.collective import crossings, dispatch, exchange
from chipwise.parallel.overlap import uncovered
from chipwise.predict.training.operators import TrainWork
from chipwise.predict.training.saved import cheap_bytes, saved_bytes
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread, Transformer
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.backward import GRADIENTS

TENSOR_HOST = 1.25
"""ratio: of host work under tensor parallelism, where collectives are started too. Chosen: on published runs that
host work holds up, not fitted; moves small models cut by tensors."""
GRAPH_HOST = 0.36
"""ratio: of host work where software captures graphs. Chosen: on published runs that host work holds up, not fitted;
moves small micro-batches under CUDA graphs."""
HOOK_S = 1.5e-3
"""seconds: of host work and start-up in which a hook gathers one matrix of an expert. Source: by hand from one
published step (github modelscope/ms-swift, Megatron-SWIFT quick start: Qwen3-30B-A3B under ZeRO-3 on 16 A800, 91 s for
55,296 matrices gathered, of which products take 5 s)."""
LOOP_S = 0.31e-3
"""seconds: in which Python runs the forward pass of one expert, which waits for the rows that chose it, so that host
and device take turns. Source: docs-benchmarks/experts-backends of Hugging Face (Qwen1.5-MoE-A2.7B, 24 layers of 60
experts, prompts of 128 and 512 tokens: 480 and 523 ms eager, 77 and 80 ms grouped). With `HOOK_S` the step that it
names takes 90 of 91 s; moves `experts=loop`, and software whose experts are modules in a list."""
STASH_EXPOSED = 0.1
"""share: of the traffic of activations to host memory and back that the step waits for. Chosen: copies run beside the
layers but for the last; moves steps that stash, by a tenth of that traffic."""
UNPACK = 4.0
"""ratio: of the time that bytes of unpacked weights take, as look-ups limit it. Source: one published cell, Qwen-14B
in 4 bits on an A100."""
RING_EXPOSED = 0.1
"""share: of the traffic of ring attention that is waited for where the core is long enough to hide it. Chosen: the
last block has nothing behind it; moves context parallelism, by a tenth of that traffic."""


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
    loop_s: Real
    stash_s: Real

    @property
    def device_s(self) -> Real:
        """All that the device does."""
        work = self.products_s + self.core_s + self.passes_s + self.recompute_s
        return work + self.tp_s + self.experts_s + self.cp_s

    @property
    def total_s(self) -> Real:
        """<device, host>_4 (9), and what experts one by one and fetching from host memory add."""
        return _soft4(self.device_s, self.host_s) + self.loop_s + self.stash_s


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """Seconds that exchanges of one mean layer take alone, per rank and micro-batch: an all-reduce of tensor
    parallelism, K and V of all ranks that meet three times, and an all-to-all of tokens and their experts."""

    tensor_s: Real
    context_s: Real
    experts_s: Real


def traffic_of(t: Transformer, s: TrainSpread, c: Cluster, r: TrainRates, copies: Real = 0.0) -> LayerTraffic:
    """The exchanges of layouts `s`: of 2 x h bytes between tp ranks (7), of x / t tokens of 2 h bytes (8; `copies` as
    in `Recipe`), and of 3 (c - 1) / c of 2 kv_width c x / t bytes, once forward and twice backward."""
    tensor = exchange("all_reduce", 2.0 * s.tokens * t.hidden, s.tp, c.network, r.of("all_reduce")).total_s
    held = 3.0 * 2.0 * t.kv_width * t.core_share * s.tokens * s.cp / s.tp
    p = r.of("all_gather")
    context = exchange("all_gather", held, s.cp, c.network, p, stride=s.tp, calls=3.0).total_s
    if np.ndim(t.moe_share) == 0 and not float(t.moe_share):
        return LayerTraffic(tensor, context, 0.0)
    payload = s.tokens / s.tp * 2.0 * t.expert_width
    p = replace(r.of("all_to_all"), link_share=r.all_to_all, pair_share=r.all_to_all, net_share=r.all_to_all_net)
    away = None
    if np.any(copies):
        domains = np.maximum(s.ep / c.domain, 1.0)
        away = np.where(np.asarray(copies) > 0, t.top_k * (1.0 - 1.0 / domains), crossings(t.top_k, domains))
    return LayerTraffic(tensor, context, dispatch(payload, t.top_k, s.ep, c.network, p, away=away).total_s)


def layer_time(
    t: Transformer,
    s: TrainSpread,
    c: Cluster,
    recipe: Recipe,
    r: TrainRates,
    work: TrainWork,
    traffic: LayerTraffic | None = None,
) -> LayerTime:
    """(2)-(9): forward and backward of the mean layer; `traffic` where its exchanges are priced already.

    Products: forward F; backward the gradients of inputs and of weights, 2 F (adapters: F, frozen weights). A layer
    that is run again is so up to the last tensor that its backward pass reads, the inputs of its last product, where
    software stops there: PyTorch's checkpoints that are not reentrant ("early stop"), and compilers. Passes forward
    besides, of an objective, count as what is run again, to their end.
    """
    traffic = traffic or traffic_of(t, s, c, r, recipe.copies)
    forward = work.forward_s / r.linear + r.expert_loss * work.routed_s
    back = np.where(np.asarray(s.adapter) > 0, 1.0, GRADIENTS)
    products = forward + (work.input_s + work.weight_s) / r.linear + r.expert_loss * work.routed_back_s
    core, core_back = _cores(r, work)
    passes = r.passes * work.pass_s
    cheap = passes * cheap_bytes(t, s, recipe) / saved_bytes(t, s, recipe)
    once = forward - recipe.stops * work.last_s / r.linear + work.narrow_in_s
    again = s.full * (once + core + passes) + (1.0 - s.full) * s.selective * (core + cheap)
    besides = s.forwards * (forward + core + passes + work.narrow_in_s)
    local = np.maximum(t.experts / s.ep, 1.0)
    host = r.host_s * (1.0 + (s.full + s.forwards) / 3.0) + t.moe_share * (
        r.moe_host_s + (1.0 - recipe.grouped) * local * r.expert_host_s
    )
    host = host * np.where(np.asarray(s.tp) > 1, TENSOR_HOST, 1.0)
    matrices = t.moe_share * local * (t.expert_gates + 1.0)
    passes_run = 2.0 + s.full + s.forwards  # passes: backward takes the host as long as forward
    loop = recipe.looped * t.moe_share * local * passes_run * LOOP_S
    hooked = (np.asarray(recipe.hooked) > 0) & (np.asarray(s.zero) >= 3) & np.asarray(s.shard > 1)
    host = host + np.where(hooked, passes_run * matrices * HOOK_S, 0.0)
    host = host * np.where(np.asarray(s.adapter) > 0, 1.0 + recipe.adapter_passes, 1.0)
    host = np.where(
        np.asarray(recipe.compiled) > 0, 0.0, host * np.where(np.asarray(recipe.graphs) > 0, GRAPH_HOST, 1.0)
    )
    found = LayerTime(
        products_s=products,
        core_s=core + core_back,
        passes_s=(1.0 + back) * passes + _unpacked(t, s, c, recipe, r) + work.narrow_in_s + work.narrow_back_s,
        recompute_s=again + besides,
        tp_s=_tensor(s, recipe, r, traffic.tensor_s),
        experts_s=_dispatch(t, s, recipe, r, traffic.experts_s),
        cp_s=context_time(s, recipe, r, work, traffic),
        host_s=host,
        loop_s=loop,
        stash_s=0.0,
    )
    return replace(found, stash_s=_stashed(t, s, c, recipe, found.device_s)) if np.any(s.stash) else found


def _stashed(t: Transformer, s: TrainSpread, c: Cluster, recipe: Recipe, device_s: Real) -> Real:
    """Seconds that a layer waits for its activations in host memory: they go out behind its forward pass and come back
    behind its backward pass, which has 2 of 3 parts of the work (adapters: 1 of 2) and what is run again, but for
    `STASH_EXPOSED`."""
    saved = saved_bytes(t, s, recipe) - s.selective * cheap_bytes(t, s, recipe)
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    kept = s.full * 2.0 * s.tokens * t.hidden / tsp + (1.0 - s.full) * saved
    moved = s.stash * kept / c.host_bytes_per_s
    forward = device_s / (np.where(np.asarray(s.adapter) > 0, 2.0, 3.0) + s.full)
    out, back = (uncovered(moved, cover, STASH_EXPOSED) for cover in (forward, device_s - forward))
    return out + back


def _unpacked(t: Transformer, s: TrainSpread, c: Cluster, recipe: Recipe, r: TrainRates) -> Real:
    """Frozen weights of less than a byte (QLoRA) are written out in 16 bit before each use: forward, backward, and
    when recomputed.

    Per parameter 0.53 bytes are read and 2 written, of all weights a rank works with (FSDP unpacks what it gathered,
    not its shard alone), once per pass and micro-batch. A product of x tokens takes 4 x FLOPs per parameter
    meanwhile: on an H100 some 23 ps at 4,096 tokens against 4 ps. It weighs more in micro-batches of few tokens. DoRA
    reads weights and writes and reads their norms' operands, 6 bytes per parameter, as often.
    """
    params = t.layer_params / s.tp + t.expert_params / np.maximum(s.ep, s.tp)
    once = UNPACK * params * (recipe.frozen_bytes + 2.0) / (r.memory * c.memory_bytes_per_s)
    adapter = np.asarray(s.adapter) > 0
    packed = adapter & (np.asarray(recipe.frozen_bytes) < 1.0)
    norms = np.where(adapter, recipe.dora * 6.0 * params / (r.memory * c.memory_bytes_per_s), 0.0)
    return (2.0 + s.full + s.forwards) * (np.where(packed, once, 0.0) + norms)


def _tensor(s: TrainSpread, recipe: Recipe, r: TrainRates, one_s: Real) -> Real:
    """(7) Four all-reduces per layer (or the same bytes as reduce-scatter and all-gather), two more if recomputed, and
    of a pass forward besides; exposed share where software can hide them."""
    exposed = np.where(np.asarray(recipe.fused) > 0, r.tp_exposed, 1.0)
    return (4.0 + 2.0 * s.full + 2.0 * s.forwards) * one_s * exposed


def _dispatch(t: Transformer, s: TrainSpread, recipe: Recipe, r: TrainRates, one_s: Real) -> Real:
    """(8) Dispatch and combine, forward and backward: four all-to-alls, two of a pass forward besides; hidden behind
    another micro-batch where software runs two at a time."""
    if np.ndim(t.moe_share) == 0 and not float(t.moe_share):
        return 0.0
    exposed = np.where(np.asarray(recipe.fused) > 0, 0.5 + 0.5 * r.tp_exposed, 1.0)
    exposed = np.where(np.asarray(recipe.hides_experts) > 0, 0.0, exposed)
    return np.where(np.asarray(t.moe_share) > 0, t.moe_share * (4.0 + 2.0 * s.forwards) * one_s * exposed, 0.0)


def _cores(r: TrainRates, work: TrainWork) -> tuple[Real, Real]:
    """Seconds of the attention core, forward and backward."""
    return work.core_s / r.core, work.core_back_s / r.core


def context_time(s: TrainSpread, recipe: Recipe, r: TrainRates, work: TrainWork, traffic: LayerTraffic) -> Real:
    """Exposed seconds of K and V on their way. Ring: what the core does not hide, and a tenth of the rest. All-gather:
    before the core starts, exposed as collectives of tensor parallelism are."""
    core, core_back = _cores(r, work)
    context = traffic.context_s * (1.0 + s.forwards / 3.0)
    ring = uncovered(context, core + core_back, RING_EXPOSED)
    exposed = np.where(np.asarray(recipe.fused) > 0, r.tp_exposed, 1.0)
    return np.where(np.asarray(s.gather) > 0, exposed * context, ring)


def head_time(s: TrainSpread, r: TrainRates, work: TrainWork) -> Real:
    """(10) Logits in 16 bit of the tokens that are `scored`, forward and both gradients, and the loss; passes forward
    besides have one of three."""
    return s.scored * (1.0 + s.forwards / 3.0) * (work.head_s / r.linear + r.passes * work.loss_s)
