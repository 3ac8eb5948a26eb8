"""Which part of a working set is found in the last-level cache."""

from __future__ import annotations

import numpy as np

from chipwise.units import Real

__all__ = ["missed"]


def missed(working_set_bytes: Real, cache_bytes: Real, full: Real, empty: Real) -> Real:
    """Part of the accesses that go to memory when a loop touches `working_set_bytes` again and again.

    0 up to `full` x cache, 1 from `empty` x cache, linear between: replacement is neither perfect nor LRU.
    An infinite working set (other layers in between) is always missed.
    """
    fill = working_set_bytes / cache_bytes
    # clipped before the division: infinite working sets are allowed
    part: Real = (np.minimum(np.maximum(fill, full), empty) - full) / (empty - full)
    return part
