"""Bytes of a device by use, for every pipeline stage and for the fullest; one layout or a million.

What software keeps is its policy (`Recipe`); how much more its allocator and libraries take is fitted (`MemoryRates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.parallel.memory import MemoryAccount, MemoryItem
from chipwise.parallel.pipeline import held_micro_batches, stage_layers
from chipwise.predict.training.saved import cheap_bytes, saved_bytes
from chipwise.predict.training.values import Recipe, TrainSpread, Transformer
from chipwise.units import Array, Real
from chipwise.values import dataclass

LONE_BYTES = 1.5e9
"""bytes: of a device that talks to no other, a CUDA context and the allocator's slack, no buffers of collectives.
Chosen: an 8B with adapters in 16.2 GiB on one card (torchtune's README) leaves 1 GiB beyond weights; moves what fits
one card by as much."""
VEE = 0.3
"""share of the bubble: below which a schedule is V-shaped and puts the first and the last layers on the first stage.
Chosen: between ZB-V's 0.2 and zero-bubble H1's third; moves nothing between those two."""


@dataclass(frozen=True, slots=True)
class MemoryRates:
    """What is fitted: bytes of context, libraries and buffers where devices exchange anything, and how much more than
    their sum trained state and activations take (fragmentation, temporaries)."""

    base_bytes: Real = 3.0e9
    state: Real = 1.05
    activation: Real = 1.05


_State = tuple[Real, Real, Real, Real]
"""Bytes of weights, gradients and optimiser state, and of what FSDP gathers."""
USES: Mapping[str, str] = {
    "weights": "trainer: cut by tp, pp and ep, under FSDP by its shards too",
    "gradients": "trainer: cut by ZeRO-2 and FSDP",
    "optimiser": "trainer: cut by ZeRO",
    "gathered": "trainer: what FSDP gathers",
    "activations": "layout: recompute, and the schedule's micro-batches",
    "logits": "trainer: the loss",
    "overhead": "trainer: context, libraries and buffers",
}
"""What takes memory of a device in training, and by which policy."""


@dataclass(frozen=True, slots=True)
class _Share:
    """Parameters of a rank: those it holds without ZeRO, those it keeps of them under ZeRO, those of tables among the
    former, and of one layer."""

    whole: Real
    cut: Real
    tables: Real
    layer: Real


def _share(t: Transformer, s: TrainSpread) -> _Share:
    """A stage with a table (one stage alone: both). Experts are cut by ep over the ranks of a stage, else by tp; ZeRO
    cuts over z ranks, experts over as many as hold copies of them."""
    layers = stage_layers(t.layers, s.pp, s.vp)
    parts = np.maximum(s.ep, s.tp)
    routed = layers * t.expert_params / parts
    copies = np.maximum(s.dp * s.cp * s.tp / parts, 1.0)
    tables = np.where(np.asarray(s.pp) > 1, 1.0, 2.0 - t.tied) * t.table_params / s.tp
    dense = layers * t.layer_params / s.tp + tables
    z = np.where(np.asarray(s.zero) >= 1, np.clip(s.shard, 1.0, s.dp * s.cp), 1.0)
    ze = np.where(np.asarray(s.zero) >= 1, np.minimum(copies, z), 1.0)
    one = t.layer_params / s.tp + t.expert_params / parts
    return _Share(dense + routed, dense / z + routed / ze, tables, one)


def trained_type(recipe: Recipe) -> Real:
    """Bytes of a weight that the optimiser updates, of an adapter of its gradient too: fp32 where the trainer keeps a
    master copy (PEFT, Megatron-Bridge), else the type of the model (torchtune)."""
    return np.where(np.asarray(recipe.master) > 0, 4.0, 2.0)


def state_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> _State:
    """(M1) Weights, gradients, optimiser state and what FSDP gathers, bytes per device of a stage with a table.

    A frozen `reference` of the objective: 2 per parameter, cut as weights are. Per trained parameter: weights 2;
    `gradient`; `master` + `moments`. ZeRO-1 cuts the optimiser by z, ZeRO-2 gradients too, FSDP all three, whose master
    copy is its weights, and holds gathered layers, or its whole stage in a pipeline. Adapters: frozen layers in their
    own type, tables in 16 bit; their own weights, gradients (`trained_type`) and moments. Offload takes the optimiser's
    state to the host, of FSDP weights and gradients too. Source: Rajbhandari et al., 2020.
    """
    p = _share(t, s)
    fsdp, two = np.asarray(s.zero) >= 3, np.asarray(s.zero) >= 2
    adapter = np.asarray(s.adapter) > 0
    here = 1.0 - s.offload
    own = np.where(np.asarray(recipe.master) > 0, 0.0, 2.0)  # FSDP's shards are its master copy
    weights = np.where(fsdp, here * own * p.cut, 2.0 * p.whole)
    summed = np.where(two, p.cut, p.whole) * np.where(fsdp, here, 1.0)
    summed = np.where(np.asarray(recipe.released) > 0, p.layer + p.tables, summed)
    weights = weights + 2.0 * s.reference * np.where(fsdp, p.cut, p.whole)
    gradients = recipe.gradient * summed
    optimiser = here * (recipe.master + recipe.moments) * p.cut
    flowing = np.where(
        np.asarray(s.pp) > 1,
        np.minimum(recipe.gathered, 6.0) * p.whole,
        recipe.gathered * p.layer + recipe.gathered_table * p.tables,
    )
    if not np.any(adapter):
        return weights, gradients, optimiser, np.where(fsdp, flowing, 0.0)
    trained = 2.0 * trained_type(recipe) + recipe.moments
    kept = np.where(fsdp, p.cut, p.whole)
    frozen = (recipe.frozen_bytes + (2.0 - recipe.frozen_bytes) * p.tables / p.whole) * kept
    # two layers as they are stored, a third of one unpacked, and a table; frozen weights have no gradients
    unpacked = np.where(np.asarray(recipe.frozen_bytes) < 1.0, 2.0 / 3.0, 0.0)
    lean = (2.0 * recipe.frozen_bytes + unpacked) * p.layer + 2.0 * np.minimum(p.tables, t.table_params / s.tp)
    return (
        np.where(adapter, np.where(fsdp, here, 1.0) * frozen, weights),
        np.where(adapter, 0.0, gradients),
        np.where(adapter, here * trained * s.adapter * np.where(fsdp, p.cut, p.whole), optimiser),
        np.where(fsdp, np.where(adapter, lean, flowing), 0.0),
    )


def least_held(
    t: Transformer, base: TrainSpread, devices: Array, homes: Array, recipe: Recipe, r: MemoryRates, *, fsdp: bool
) -> tuple[TrainSpread, Array, Array]:
    """Layouts that cut what is trained evenly over each count of devices, legal or not, one for each share of the
    optimiser in host memory (`homes`) and, with `fsdp`, for sharded weights too; bytes of a device that no layout of
    that kind goes below, and bytes of host memory that each needs at least. Nothing is gathered or saved."""
    n = np.repeat(devices, (1 + fsdp) * len(homes))
    zero, offload = np.resize(np.repeat([0.0, 3.0][: 1 + fsdp], len(homes)), len(n)), np.resize(homes, len(n))
    whole = zero >= 3.0
    model, data = np.where(whole, 1.0, n), np.where(whole, n, 1.0)
    s = replace(base, tp=model, ep=model, dp=data, shard=data, zero=zero, offload=offload)
    weights, gradients, optimiser, _ = state_bytes(t, s, recipe)
    summed = np.where(np.asarray(recipe.released) > 0, 0.0, gradients)
    held = used(s, (weights, summed, optimiser, 0.0), 0.0, 0.0, r).total_bytes
    return s, np.broadcast_to(np.asarray(held), n.shape), np.broadcast_to(host_bytes(t, s, recipe), n.shape)


def host_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> Real:
    """Bytes of host memory that one device needs: offloaded optimiser state with its gradients in fp32, under FSDP the
    weights too, and activations that wait there."""
    p = _share(t, s)
    adapter, fsdp = np.asarray(s.adapter) > 0, np.asarray(s.zero) >= 3
    state = (recipe.master + recipe.moments + 4.0 + np.where(fsdp, 2.0, 0.0)) * p.cut
    trained = 2.0 * trained_type(recipe) + recipe.moments
    light = trained * s.adapter * p.cut + np.where(fsdp, recipe.frozen_bytes, 0.0) * p.cut
    saved, layers = _kept_layers(t, s, recipe, saved_bytes(t, s, recipe))
    return s.offload * np.where(adapter, light, state) + s.stash * saved * np.maximum(layers - 2.0, 0.0)


def activation_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> Real:
    """(M2) Saved activations of the first stage: micro-batches held x layers x bytes per layer, less what is stashed in
    host memory.

    Per layer A = `saved_bytes`; selective recomputation drops `cheap_bytes`; full keeps the input, 2 x h / t_sp,
    and one layer at a time whole.
    """
    saved = saved_bytes(t, s, recipe)
    per_layer, layers = _kept_layers(t, s, recipe, saved)
    # one layer's are in use, the next one's on their way
    here = layers - s.stash * np.maximum(layers - 2.0, 0.0)
    return here * per_layer + np.where(np.asarray(s.full) > 0, saved, 0.0)


def _kept_layers(t: Transformer, s: TrainSpread, recipe: Recipe, saved: Real) -> tuple[Real, Real]:
    """Bytes that a layer, which saves so many, keeps until its backward pass, and how many layers of micro-batches the
    first stage keeps."""
    kept = saved - s.selective * cheap_bytes(t, s, recipe)
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    held = held_micro_batches(s.micro_batches, s.pp, s.vp, s.in_flight)
    per_layer = s.full * 2.0 * s.tokens * t.hidden / tsp + (1.0 - s.full) * kept
    return per_layer, held * stage_layers(t.layers, s.pp, s.vp)


def logit_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> Real:
    """(M3) Logits of a micro-batch: `loss` bytes per token and entry of the vocabulary, which is cut by tensor
    parallelism unless the software gathers them for the loss."""
    cut = np.where(np.asarray(recipe.whole_logits) > 0, 1.0, s.tp)
    return s.scored * recipe.loss * s.tokens * t.vocab / cut


@dataclass(frozen=True, slots=True)
class _Passing:
    """What passes leave in memory: bytes `saved` on the first stage, which holds so many micro-batches (`held`), and of
    logits where the head is."""

    saved: Real
    logits: Real
    held: Real

    @classmethod
    def of(cls, t: Transformer, s: TrainSpread, recipe: Recipe) -> _Passing:
        held = held_micro_batches(s.micro_batches, s.pp, s.vp, s.in_flight)
        return cls(activation_bytes(t, s, recipe), logit_bytes(t, s, recipe), held)


def memory_use(t: Transformer, s: TrainSpread, recipe: Recipe, r: MemoryRates) -> MemoryAccount:
    """(M1)-(M4). Logits stand on the last stage, which holds one
    micro-batch of activations where the first holds many: the fuller of the two counts."""
    return _either_end(s, state_bytes(t, s, recipe), r, _Passing.of(t, s, recipe))


def _either_end(s: TrainSpread, state: _State, r: MemoryRates, passing: _Passing) -> MemoryAccount:
    first, logits, held = passing.saved, passing.logits, passing.held
    last = first / np.maximum(held, 1.0) + logits / r.activation
    alone = np.asarray(s.pp) <= 1
    on_last = alone | np.asarray(last > first)
    activations = np.where(alone, first, np.where(on_last, first / np.maximum(held, 1.0), first))
    return used(s, state, activations, np.where(on_last, logits, 0.0), r)


def used(s: TrainSpread, state: _State, saved: Real, logits: Real, r: MemoryRates) -> MemoryAccount:
    """(M4) Each with what tensors take beyond their sum (frozen weights are loaded once), and what is no tensor."""
    weights, gradients, optimiser, gathered = state
    base = np.where(np.asarray(s.devices) > 1, r.base_bytes, np.minimum(LONE_BYTES, r.base_bytes))
    sizes = (
        np.where(np.asarray(s.adapter) > 0, 1.0, r.state) * weights,
        *(r.state * size for size in (gradients, optimiser, gathered)),
        r.activation * saved,
        logits,
        base,
    )
    items = zip(USES.items(), sizes, strict=True)
    return MemoryAccount(tuple(MemoryItem(name, size, policy) for (name, policy), size in items))


def held_on(stage: Real, s: TrainSpread) -> Real:
    """Micro-batches whose activations a stage (from 0) holds at most.

    1F1B p - i; interleaved (2 (p - i - 1) + (v - 1) p + 1) / v, in chunks of a v-th; V-shaped the same on all, counted
    as interleaved; GPipe all; never more than there are. Source: Narayanan et al., 2021 (warm-up of the schedules);
    Qi et al., 2024.
    """
    p, v, m = s.pp, np.maximum(s.vp, 1.0), s.micro_batches
    first = held_micro_batches(m, p, v, s.in_flight)
    left = p - stage
    chunks = np.where(np.asarray(v) > 1, (2.0 * (left - 1.0) + (v - 1.0) * p + 1.0) / v, left)
    alike = _vee(s) | (np.asarray(s.in_flight) <= 0)
    return np.where(alike, first, np.minimum(chunks, m))


def _vee(s: TrainSpread) -> NDArray[np.bool_]:
    """Where a schedule is V-shaped."""
    balanced = np.asarray((s.in_flight > 0.0) & (s.in_flight < 1.0))
    alike = np.asarray(s.vp == 2.0) & np.asarray(s.pp > 1.0)
    found: NDArray[np.bool_] = alike & (np.asarray(s.bubble < VEE) | balanced)
    return found


def fullest(t: Transformer, s: TrainSpread, recipe: Recipe, r: MemoryRates) -> MemoryAccount:
    """The fuller of the first and the last stage: `memory_use`, and where the last stage holds more than one
    micro-batch (interleaved, GPipe) or the first also has the head (V-shaped), that."""
    passing, state = _Passing.of(t, s, recipe), state_bytes(t, s, recipe)
    usual = _either_end(s, state, r, passing)
    if not np.any(np.asarray(s.pp > 1.0) & (np.asarray(s.vp > 1.0) | np.asarray(s.in_flight <= 0.0))):
        return usual
    vee = _vee(s)
    # the last stage has one table, as the first has, unless both are on the first
    same = None if np.any(vee) else state
    last = _stage(t, s, recipe, r, np.where(vee, 0.0, s.pp - 1.0), passing, same)
    more = np.asarray(s.pp > 1.0) & np.asarray(last.total_bytes > usual.total_bytes)
    pairs = zip(last.items, usual.items, strict=True)
    return MemoryAccount(tuple(replace(a, bytes=np.where(more, a.bytes, b.bytes)) for a, b in pairs))


def stage_memory(t: Transformer, s: TrainSpread, recipe: Recipe, r: MemoryRates) -> tuple[MemoryAccount, ...]:
    """Every stage of one layout, first to last; inner ones have no table, only the last (V-shaped: the first) has
    logits. Each counts the layers of the largest."""
    stages = round(float(np.asarray(s.pp)))
    if stages <= 1:
        return (memory_use(t, s, recipe, r),)
    passing = _Passing.of(t, s, recipe)
    return tuple(_stage(t, s, recipe, r, float(i), passing) for i in range(stages))


def _stage(
    t: Transformer,
    s: TrainSpread,
    recipe: Recipe,
    r: MemoryRates,
    stage: Real,
    passing: _Passing,
    state: _State | None = None,
) -> MemoryAccount:
    """One stage, with its `state` where that is known: a table at either end, both on the first of a V; logits where
    the head is."""
    vee, i = _vee(s), np.asarray(stage)
    first, last = i <= 0.0, np.asarray(i >= s.pp - 1.0)
    tables = np.where(vee, np.where(first, 2.0 - t.tied, 0.0), np.where(first | last, 1.0, 0.0))
    state = state or state_bytes(replace(t, vocab=tables * t.vocab), s, recipe)
    saved = passing.saved * held_on(i, s) / passing.held
    logits = np.where(np.where(vee, first, last), passing.logits, 0.0)
    return used(s, state, saved, logits, r)
