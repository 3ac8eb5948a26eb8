"""Bytes of every pipeline stage by use, and of the fullest one, with what each schedule makes its stages hold."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.parallel.pipeline import held_micro_batches
from chipwise.predict.training.memory import MemoryRates, MemoryUse, activation_bytes, memory_use, state_bytes
from chipwise.predict.training.values import Recipe, Spread, Transformer
from chipwise.units import Real

__all__ = ["fullest", "held_on", "stage_memory"]

VEE = 0.3  # of the bubble: V-shaped schedules leave less, and put the first and the last layers on the first stage


def held_on(stage: Real, s: Spread) -> Real:
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


def _vee(s: Spread) -> NDArray[np.bool_]:
    """Where a schedule is V-shaped."""
    balanced = np.asarray((s.in_flight > 0.0) & (s.in_flight < 1.0))
    alike = np.asarray(s.vp == 2.0) & np.asarray(s.pp > 1.0)
    found: NDArray[np.bool_] = alike & (np.asarray(s.bubble < VEE) | balanced)
    return found


def fullest(t: Transformer, s: Spread, recipe: Recipe, r: MemoryRates) -> MemoryUse:
    """The fuller of the first and the last stage: `memory_use`, and where the last stage holds more than one
    micro-batch (interleaved, GPipe) or the first also has the head (V-shaped), that."""
    usual = memory_use(t, s, recipe, r)
    if not np.any(np.asarray(s.pp > 1.0) & (np.asarray(s.vp > 1.0) | np.asarray(s.in_flight <= 0.0))):
        return usual
    last = _stage(t, s, recipe, r, np.where(_vee(s), 0.0, s.pp - 1.0))
    more = np.asarray(s.pp > 1.0) & np.asarray(last.total_bytes > usual.total_bytes)
    parts = {f.name: np.where(more, getattr(last, f.name), getattr(usual, f.name)) for f in fields(usual)}
    return MemoryUse(**parts)


def stage_memory(t: Transformer, s: Spread, recipe: Recipe, r: MemoryRates) -> tuple[MemoryUse, ...]:
    """Every stage of one layout, first to last; inner ones have no table, only the last (V-shaped: the first) has
    logits. Each counts the layers of the largest."""
    stages = round(float(np.asarray(s.pp)))
    if stages <= 1:
        return (memory_use(t, s, recipe, r),)
    return tuple(_stage(t, s, recipe, r, float(i)) for i in range(stages))


def _stage(t: Transformer, s: Spread, recipe: Recipe, r: MemoryRates, stage: Real) -> MemoryUse:
    """One stage: a table at either end, both on the first of a V; logits where the head is."""
    vee, i = _vee(s), np.asarray(stage)
    first, last = i <= 0.0, np.asarray(i >= s.pp - 1.0)
    tables = np.where(vee, np.where(first, 2.0 - t.tied, 0.0), np.where(first | last, 1.0, 0.0))
    state = state_bytes(replace(t, vocab=tables * t.vocab), s, recipe)
    held = held_micro_batches(s.micro_batches, s.pp, s.vp, s.in_flight)
    saved = activation_bytes(t, s, recipe) * held_on(i, s) / held
    logits = np.where(np.where(vee, first, last), 6.0 * s.tokens * t.vocab / s.tp, 0.0)
    base = r.base_bytes + (r.state - 1.0) * sum(state) + (r.activation - 1.0) * (saved + logits)
    return MemoryUse(*state, saved, logits, base)
