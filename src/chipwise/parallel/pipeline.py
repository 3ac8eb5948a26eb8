"""Pipelines: how many layers the slowest stage holds, how long a batch takes, how much waits in memory."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real


def stage_layers(layers: Real, stages: Real, virtual: Real) -> Real:
    """Most layers on one stage: whole layers per virtual stage, rounded up."""
    chunks = np.maximum(stages * virtual, 1.0)
    return np.where(np.asarray(stages) > 1, np.ceil(layers / chunks - 1e-9) * virtual, layers)


def most_virtual(layers: Real, stages: Real) -> Real:
    """Most virtual stages of one stage: ceil(L / p), while each of the p v parts holds a layer, the embedding or the
    head: p v <= L + 2. Software counts the two as layers where a model is cut unevenly: 126 layers make 8 x 16 parts.
    """
    return np.minimum(np.ceil(layers / stages), np.floor((layers + 2.0) / stages))


def slowest_stage(layer_s: Real, head_s: Real, layers: Real, stages: Real, virtual: Real) -> Real:
    """Seconds of one micro-batch on the slowest stage: max(n l, last stage).

    n = `stage_layers`; the places that rounding leaves empty, n p - L, are taken from the last stage, which
    holds the head, as software does that counts embedding and head as layers.
    """
    most = stage_layers(layers, stages, virtual)
    spare = np.minimum(most * stages - layers, most)
    return np.maximum(most * layer_s, (most - spare) * layer_s + head_s)


def batch_time(stage_s: Real, ramp_s: Real, micro_batches: Real, stages: Real, virtual: Real, bubble: Real) -> Real:
    """Seconds of all micro-batches of a step: m stage + bubble (p - 1) / v ramp.

    `ramp_s` is the stage without the head, which the first stages do not have. `bubble` 1: 1F1B and GPipe;
    interleaving divides by v; schedules that fill it with weight gradients leave a share (zero-bubble H1: 1/3).
    """
    return micro_batches * stage_s + bubble * (stages - 1.0) / virtual * ramp_s


def held_micro_batches(micro_batches: Real, stages: Real, virtual: Real, share: Real) -> Real:
    """Micro-batches whose activations the first stage holds at most: 1F1B (share 1) min(p, m), with virtual stages
    times 1 + (p - 1) / (p v); V-shaped schedules that balance the stages a share of p; GPipe (0) all of them.
    Source: Korthikanti et al., 2022; Qi et al., 2024."""
    part = np.asarray(share)
    more = np.where((np.asarray(virtual) > 1) & (part >= 1), 1.0 + (stages - 1.0) / (stages * virtual), 1.0)
    held = np.maximum(stages * more * part, 1.0)
    return np.where(part > 0, np.minimum(held, micro_batches * 1.0), micro_batches)
