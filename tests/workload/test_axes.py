"""Sizes on named axes: arithmetic, uneven cuts, replication, arrays of layouts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.workload.axes import ONE, Axis, Sizes

H, K, D = Axis("H"), Axis("K"), Axis("D")
FULL = {"H": 64, "K": 8, "D": 128}

small = st.integers(1, 300)


def test_sums_and_products_are_those_of_the_numbers() -> None:
    size = 2 * (H + 3 * K) * D + 5 * ONE
    assert Sizes(FULL).whole(size) == 2 * (64 + 24) * 128 + 5
    assert size.axes == {"H", "K", "D"}
    assert ONE.axes == frozenset()
    assert Sizes({}).whole(ONE) == 1


@given(small, small, small, st.integers(1, 9), st.integers(1, 9))
def test_whole_is_a_ring_homomorphism(h: int, k: int, d: int, a: int, b: int) -> None:
    sizes = Sizes({"H": h, "K": k, "D": d})
    left, right = H * a + K, D * b + ONE
    assert sizes.whole(left + right) == sizes.whole(left) + sizes.whole(right)
    assert sizes.whole(left * right) == sizes.whole(left) * sizes.whole(right)
    assert sizes.whole(left * right) == sizes.whole(right * left)
    assert sizes.local(left * right) == pytest.approx(sizes.whole(left * right))


@given(st.integers(1, 1000), st.integers(1, 64))
def test_a_rank_holds_the_ceiling(units: int, parts: int) -> None:
    held = Sizes({"H": units}, {"H": float(parts)}).local(H)
    assert held == math.ceil(units / parts)
    # all units have a place, and no rank could hold less in an even cut
    assert held * parts >= units
    assert (held - 1) * parts < units


def test_an_axis_with_fewer_units_than_parts_is_replicated() -> None:
    sizes = Sizes(FULL, {"K": 32.0, "H": 32.0})
    assert sizes.local(K) == 1
    assert sizes.local(H) == 2


def test_only_the_axes_that_are_named_are_cut() -> None:
    sizes = Sizes(FULL, {"H": 8.0})
    assert sizes.local(H * D) == 8 * 128
    assert sizes.local(K * D) == 8 * 128
    assert (sizes.parts("H"), sizes.parts("K")) == (8.0, 1.0)
    assert Sizes({"D": 4}, {"H": 8.0}).parts("H") == 1.0, "an axis that the block lacks is in no parts"


def test_an_array_of_cuts_equals_one_cut_at_a_time() -> None:
    cuts = np.array([1.0, 2.0, 3.0, 8.0, 16.0])
    size = H * D + 2 * K * D
    together = Sizes(FULL, {"H": cuts, "K": cuts}).local(size)
    one_by_one = [Sizes(FULL, {"H": float(c), "K": float(c)}).local(size) for c in cuts]
    assert np.array_equal(together, one_by_one)


def test_cuts_of_different_shape_broadcast() -> None:
    sizes = Sizes(FULL, {"H": np.array([[1.0], [2.0]]), "K": np.array([1.0, 2.0, 4.0])})
    assert np.shape(sizes.local(H * K)) == (2, 3)
    assert np.asarray(sizes.local(H * K))[1, 2] == 32 * 2
