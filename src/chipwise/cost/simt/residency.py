"""Which part of a working set is found in the last-level cache."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real

FOUND = (0.25, 1.25)
"""shares of the cache: up to which a working set is found whole, and from which on not at all. Chosen: one cache
wide, since replacement is not LRU; products scale them by the fitted `cache_share`; moves operators whose operands
are about as large as the cache."""
EXPERTS_FOUND = (0.5, 1.5)
"""shares of the cache: the same of experts' weights, and of what passes between their two products. Chosen: one cache
wide, by hand, no source is known; moves layers of experts about as large as the cache."""
PROMPT_FOUND = (0.175, 0.875)
"""shares of the cache: the same of prompts and their outputs. Chosen: 0.7 of FOUND, by hand, no source is known;
moves prompts of about as many bytes as the cache."""


def missed(working_set_bytes: Real, cache_bytes: Real, full: Real, empty: Real) -> Real:
    """Part of the accesses that go to memory when a loop touches `working_set_bytes` again and again.

    0 up to `full` x cache, 1 from `empty` x cache, linear between.
    An infinite working set (other layers in between) is always missed.
    """
    fill = working_set_bytes / cache_bytes
    # clipped before the division: infinite working sets are allowed
    part: Real = (np.minimum(np.maximum(fill, full), empty) - full) / (empty - full)
    return part
