"""What a layer saves for its backward pass, and what its element-wise kernels touch."""

from __future__ import annotations

import numpy as np

from chipwise.predict.training.values import Recipe, TrainSpread, Transformer
from chipwise.units import Real


def saved_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> Real:
    """(5) Bytes that a layer saves for its backward pass, per rank and micro-batch.

    x {(4 + 2 o + 2 masks) h / t_sp + [2 mixer_in + o mixer_out + (2 gates + o) f] / t + 5 a s / t if scores are
    written, 8 a / t (softmax statistics) if not}; o = `operand` bytes of what products read; of experts κ copies, and
    (2 + o) κ h for permuted tokens. For GPT in 16 bit this is 34 s b h + 5 a s^2 b (Korthikanti et al., 2022).
    """
    return _saved(t, s, recipe, recipe.operand, recipe.masks)


def _saved(t: Transformer, s: TrainSpread, recipe: Recipe, o: Real, masks: Real) -> Real:
    x, h = s.tokens, t.hidden
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    dense = t.dense_share * (2.0 * t.gates + o) * t.ffn
    wide = (2.0 * t.expert_gates + o) * (t.top_k * t.expert_ffn + t.shared_ffn)
    routed = t.moe_share * (wide + (2.0 + o) * t.top_k * t.expert_width)
    scores = t.core_share * t.heads * np.where(np.asarray(recipe.flash) > 0, 8.0, 5.0 * s.seq)
    residual = (4.0 + 2.0 * o + 2.0 * masks) * h / tsp
    return x * (residual + (2.0 * t.mixer_in + o * t.mixer_out + dense + routed + scores) / s.tp)


def cheap_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> Real:
    """Saved bytes per layer that selective recomputation drops: scores where they are written, else outputs of norms
    and activation functions, or the share that software chooses by operator."""
    tsp = np.where(np.asarray(s.sequence) > 0, s.tp, 1.0)
    wide = t.dense_share * t.ffn + t.moe_share * (t.top_k * t.expert_ffn + t.shared_ffn)
    light = recipe.operand * s.tokens * (2.0 * t.hidden / tsp + wide / s.tp)
    more = np.maximum(light, recipe.dropped * saved_bytes(t, s, recipe)) if np.any(recipe.dropped) else light
    return np.where(np.asarray(recipe.flash) > 0, more, score_bytes(t, s))


def score_bytes(t: Transformer, s: TrainSpread) -> Real:
    """Saved bytes of scores that are written: softmax 2, its dropout 2 and mask 1 for each."""
    return 5.0 * t.core_share * t.heads * s.seq * s.tokens / s.tp


def touched_bytes(t: Transformer, s: TrainSpread, recipe: Recipe) -> Real:
    """Bytes of one pass of a layer's element-wise kernels: what it saves in 16 bit; scores that are written as often as
    softmax and dropout touch them; not the copies of tokens for their experts, which the grouped products make, nor
    what lies between those products where their kernels apply activations. Of adapters that are not fused, inputs and
    outputs of the products that have one."""
    more = np.where(np.asarray(recipe.flash) > 0, 0.0, recipe.score_passes - 1.0)
    inner = np.asarray(recipe.fused_experts) * (2.0 * t.expert_gates + 2.0) * t.expert_ffn
    permuted = s.tokens * t.moe_share * t.top_k * (4.0 * t.expert_width + inner) / s.tp
    beside = np.where(np.asarray(s.adapter) > 0, recipe.adapter_passes * _adapted(t) * s.tokens / s.tp, 0.0)
    return _saved(t, s, recipe, 2.0, 1.0) + more * score_bytes(t, s) - permuted + beside


def _adapted(t: Transformer) -> Real:
    """Bytes in 16 bit of inputs and outputs of a layer's products, per token."""
    ffn = (t.gates + 1.0) * (t.hidden + t.ffn)
    return 2.0 * (4.0 * t.hidden + t.mixer_in + t.mixer_out + t.dense_share * ffn)
