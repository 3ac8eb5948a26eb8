"""What a layer saves for its backward pass, and what its element-wise kernels touch."""

from __future__ import annotations

import numpy as np

from chipwise.predict.training.values import Recipe, Spread, Transformer
from chipwise.units import Real

__all__ = ["cheap_bytes", "saved_bytes", "score_bytes", "touched_bytes"]


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
    return np.where(np.asarray(recipe.flash) > 0, light, score_bytes(t, s))


def score_bytes(t: Transformer, s: Spread) -> Real:
    """Saved bytes of scores that are written: softmax 2, its dropout 2 and mask 1 for each."""
    return 5.0 * t.core_share * t.heads * s.seq * s.tokens / s.tp


def touched_bytes(t: Transformer, s: Spread, recipe: Recipe) -> Real:
    """Bytes of one pass of a layer's element-wise kernels: what it saves; scores that are written as often as softmax
    and dropout touch them; not the copies of tokens for their experts, which the grouped products make."""
    more = np.where(np.asarray(recipe.flash) > 0, 0.0, recipe.score_passes - 1.0)
    permuted = s.tokens * t.moe_share * 4.0 * t.top_k * t.expert_width / s.tp
    return saved_bytes(t, s, recipe) + more * score_bytes(t, s) - permuted
