"""Layers over the chips of a dataflow machine: how many chips a network takes, and what a token crosses."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real

__all__ = ["chips_for", "crossings"]

FILL = 0.85  # part of a memory that weights take up beside activations, cache and instructions


def chips_for(weight_bytes: Real, chip_bytes: Real, least: Real = 1.0) -> Real:
    """Chips whose memory holds the weights at 85 %, at least `least`."""
    chips: Real = np.maximum(np.ceil(weight_bytes / (FILL * chip_bytes)), least)
    return chips


def crossings(layers: Real, chips: Real) -> Real:
    """Times that a token moves from one group of chips to the next: between layers where a layer fills a chip
    or more, between chips where one holds several layers."""
    moves: Real = np.minimum(layers, chips) - 1.0
    return np.maximum(moves, 0.0)
