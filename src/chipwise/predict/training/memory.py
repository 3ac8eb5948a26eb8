"""Bytes of a device by use, for the first and the last pipeline stage; one layout or a million."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallel.pipeline import held_micro_batches, stage_layers
from chipwise.predict.training.saved import cheap_bytes, saved_bytes
from chipwise.predict.training.values import ADAPTER_SHARE, Recipe, Spread, Transformer
from chipwise.units import Real

__all__ = ["MemoryRates", "MemoryUse", "activation_bytes", "memory_use", "state_bytes"]


# Of a device that talks to no other: a CUDA context and the allocator's slack, no buffers of collectives (assumed; an
# 8B with adapters in 16.2 GiB on one card, torchtune's README, leaves 1 GiB beyond weights).
LONE_BYTES = 1.5e9


@dataclass(frozen=True, slots=True)
class MemoryRates:
    """What is fitted: bytes of context, libraries and buffers where devices exchange anything, and how much more than
    their sum tensors take (fragmentation, temporaries)."""

    base_bytes: Real = 6.0e9
    state: Real = 1.1
    activation: Real = 1.1


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes by use on the fuller of the first and the last stage; they add up to `total_bytes`."""

    weights: Real
    gradients: Real
    optimiser: Real
    gathered: Real
    activations: Real
    logits: Real
    overhead: Real

    @property
    def total_bytes(self) -> Real:
        """All of it."""
        state = self.weights + self.gradients + self.optimiser + self.gathered
        return state + self.activations + self.logits + self.overhead


def state_bytes(t: Transformer, s: Spread, recipe: Recipe) -> tuple[Real, Real, Real, Real]:
    """(M1) Weights, gradients, optimiser state and what FSDP gathers, bytes per device of a stage with a table.

    Per parameter: weights 2; gradients 4 (bf16 training) or 2 (fp16 under ZeRO); master weights and both
    moments 12, of fp16 under ZeRO 16 with a gradient copy. ZeRO-1 cuts the optimiser by z, ZeRO-2 gradients
    too, FSDP all three, and holds two gathered layers and the tables in 16 bit, or its whole stage in a
    pipeline. Adapters: weights in their own type, 1 % of parameters trained.
    """
    layers = stage_layers(t.layers, s.pp, s.vp)
    routed = layers * t.expert_params / np.maximum(s.ep, s.tp)
    copies = np.maximum(s.dp * s.cp * s.tp / np.maximum(s.ep, s.tp), 1.0)
    tables = np.where(np.asarray(s.pp) > 1, 1.0, 2.0 - t.tied) * t.table_params / s.tp
    dense = layers * t.layer_params / s.tp + tables
    z = np.where(np.asarray(s.zero) >= 1, np.clip(s.shard, 1.0, s.dp * s.cp), 1.0)
    ze = np.where(np.asarray(s.zero) >= 1, np.minimum(copies, z), 1.0)
    fsdp, two = np.asarray(s.zero) >= 3, np.asarray(s.zero) >= 2
    short = (np.asarray(recipe.half_gradients) > 0) & (np.asarray(s.zero) >= 1)
    grad, moments = np.where(short, 2.0, 4.0), np.where(short, 16.0, 12.0)
    grad = np.where(fsdp, 4.0, grad)
    # FSDP keeps fp32 shards as its weights
    weight = np.where(fsdp, 0.0, 2.0)
    adapter = np.asarray(s.adapter) > 0
    trained = np.where(adapter, ADAPTER_SHARE, 1.0)
    cut = dense / z + routed / ze
    whole = dense + routed
    weights = np.where(adapter, recipe.frozen_bytes * np.where(fsdp, cut, whole), weight * whole)
    gradients = trained * grad * np.where(two, cut, whole)
    optimiser = trained * (1.0 - s.offload) * moments * cut
    one = t.layer_params / s.tp + t.expert_params / np.maximum(s.ep, s.tp)
    flowing = np.where(np.asarray(s.pp) > 1, 6.0 * whole, 8.0 * one + 6.0 * tables)
    flowing = np.where(adapter, 4.0 * one, flowing)
    return weights, gradients, optimiser, np.where(fsdp, flowing, 0.0)


def activation_bytes(t: Transformer, s: Spread, recipe: Recipe) -> Real:
    """(M2) Saved activations of the first stage: micro-batches held x layers x bytes per layer.

    Per layer A = `saved_bytes`; selective recomputation drops `cheap_bytes`; full keeps the input, 2 x h / t_sp,
    and one layer at a time whole.
    """
    saved = saved_bytes(t, s, recipe)
    kept = saved - s.selective * cheap_bytes(t, s, recipe)
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    layers = stage_layers(t.layers, s.pp, s.vp)
    held = held_micro_batches(s.micro_batches, s.pp, s.vp, s.in_flight)
    per_layer = s.full * 2.0 * s.tokens * t.hidden / tsp + (1.0 - s.full) * kept
    return held * layers * per_layer + np.where(np.asarray(s.full) > 0, saved, 0.0)


def memory_use(t: Transformer, s: Spread, recipe: Recipe, r: MemoryRates) -> MemoryUse:
    """(M1)-(M4). Logits, 6 bytes per token and vocabulary entry, stand on the last stage, which holds one
    micro-batch of activations where the first holds many: the fuller of the two counts."""
    weights, gradients, optimiser, gathered = state_bytes(t, s, recipe)
    first = activation_bytes(t, s, recipe)
    logits = 6.0 * s.tokens * t.vocab / s.tp
    held = held_micro_batches(s.micro_batches, s.pp, s.vp, s.in_flight)
    last = first / np.maximum(held, 1.0) + logits
    alone = np.asarray(s.pp) <= 1
    on_last = alone | np.asarray(last > first)
    activations = np.where(alone, first, np.where(on_last, last - logits, first))
    shown = np.where(on_last, logits, 0.0)
    state = weights + gradients + optimiser + gathered
    more = (r.state - 1.0) * state + (r.activation - 1.0) * (activations + shown)
    base = np.where(np.asarray(s.devices) > 1, r.base_bytes, np.minimum(LONE_BYTES, r.base_bytes))
    return MemoryUse(weights, gradients, optimiser, gathered, activations, shown, base + more)
