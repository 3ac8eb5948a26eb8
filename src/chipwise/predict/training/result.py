"""From step time to what people ask: rates, utilisation by convention, time to train, goodput, energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from chipwise.predict.training.values import Cluster, TrainSpread, Transformer
from chipwise.units import Real

Convention = Literal["model", "causal", "hardware"]
"""How FLOPs of a step are counted. `model`: 6 per parameter and token, and all pairs of the attention core (12 L
s a d); PaLM's MFU, NeMo, llm-foundry. `causal`: half of the pairs (MaxText since July 2025). `hardware`: what
runs, with recomputation (HFU; Narayanan et al. 2021: 96 b s L h^2 (1 + s / 6h + V / 16 L h))."""


def step_flops(t: Transformer, s: TrainSpread, convention: Convention = "model") -> Real:
    """FLOPs of a step over all devices, a multiply-add as two.

    3 passes over layers, head and cores; with recomputation one more forward pass over the recomputed share of the
    layers (`hardware` only). Passes forward besides, of an objective, count; a head that makes no logits does not.
    Adapters: frozen weights need no gradient of weights, 2 passes.
    """
    tokens = s.global_batch * s.seq
    layers = 2.0 * (t.active_params - t.table_params)
    seen = (1.0 - t.window_share) * s.seen + t.window_share * np.minimum(t.window, s.seen)
    core = 4.0 * t.layers * t.core_share * seen * t.core_width
    if convention == "causal":
        core = core * (1.0 - 0.5 * t.causal)
    passes = np.where((np.asarray(s.adapter) > 0), 2.0, 3.0) + s.forwards
    again = layers * s.full + core * np.maximum(s.full, s.selective) if convention == "hardware" else 0.0
    return tokens * ((layers + s.scored * 2.0 * t.table_params) * passes + (3.0 + s.forwards) * core + again)


def peak_share(t: Transformer, s: TrainSpread, c: Cluster, device_s: Real, convention: Convention = "model") -> Real:
    """The share of `device_s` seconds of all devices that the FLOPs of a step take at dense peaks: products at that of
    their type, the attention core at that of 16 bit where the products' is slower."""
    every = step_flops(t, s, convention)
    products = step_flops(replace(t, core_share=0.0), s, convention)
    return (products / c.narrow + (every - products) / np.fmax(c.wide, c.narrow)) / device_s


def young_daly(save_s: Real, mtbf_s: Real) -> Real:
    """Seconds of work between checkpoints that lose the least, to first order: sqrt(2 save mtbf) - save, at least the
    save itself. Source: Young 1974 (the root), Daly 2006 (less the save)."""
    return np.maximum(np.sqrt(2.0 * save_s * mtbf_s) - save_s, save_s)


def goodput(chips: Real, chip_mtbf_h: Real, save_s: Real, restart_s: Real, interval_s: Real | None = None) -> Real:
    """Share of the time that makes progress: failures of any chip stop all of them.

    M = chip_mtbf / chips; each failure loses half an interval with its save and the restart, each interval one save:
    (1 - ((interval + save) / 2 + restart) / M) interval / (interval + save), at least 0. The interval is Young's and
    Daly's unless given. Chips that only slow down are in the step time (`straggle_s`).
    """
    mtbf_s = chip_mtbf_h * 3600.0 / chips
    interval = young_daly(save_s, mtbf_s) if interval_s is None else interval_s
    lost = (0.5 * (interval + save_s) + restart_s) / mtbf_s
    return np.clip((1.0 - lost) * interval / (interval + save_s), 0.0, 1.0)
