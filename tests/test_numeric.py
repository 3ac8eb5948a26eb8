"""Halving brackets: many halvings asked at once end where one at a time does."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.numeric import crossing, root


@pytest.mark.parametrize("most", [1, 64, 512])
def test_middles_asked_together_end_where_one_at_a_time_does(most: int) -> None:
    rng = np.random.default_rng(1)
    low = rng.random((3, 9))
    high = low + rng.random((3, 9))
    at = low + (high - low) * rng.random((3, 9))
    calls: list[int] = []

    def keeps(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        return x < at

    one_by_one, together = root(lambda x: x < at, low, high, 34), crossing(keeps, low, high, 34, most)
    assert all(np.array_equal(a, b) for a, b in zip(one_by_one, together, strict=True))
    assert len(calls) == {1: 34, 64: 34, 512: 9}[most], calls
    assert sum(calls) >= 34
