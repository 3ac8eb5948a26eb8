"""Costs: exposed seconds that add up, and the soft maximum between maximum and sum."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.cost.cost import RESOURCES, Cost, soft_maximum

seconds = st.floats(1e-9, 10.0)
exponents = st.floats(1.0, 30.0)


def test_costs_add_by_resource() -> None:
    a = Cost({"compute": 1.0, "memory": 2.0}, {"memory": 0.5})
    b = Cost({"memory": 3.0, "launch": 0.25})
    total = a + b
    assert total.exposed == {"compute": 1.0, "memory": 5.0, "launch": 0.25}
    assert total.hidden == {"memory": 0.5}
    assert total.total_s == 6.25 == a.total_s + b.total_s


def test_adding_leaves_the_parts_alone() -> None:
    a = Cost({"compute": 1.0})
    _ = a + Cost({"compute": 2.0})
    assert a.exposed == {"compute": 1.0}


def test_a_cost_times_a_number_is_that_many() -> None:
    cost = Cost({"compute": 1.0, "memory": 2.0}, {"memory": 0.5})
    assert (cost * 3.0).exposed == {"compute": 3.0, "memory": 6.0}
    assert (3.0 * cost).hidden == {"memory": 1.5}
    assert (cost * 3.0).total_s == pytest.approx((cost + cost + cost).total_s)


def test_nothing_costs_nothing() -> None:
    assert Cost().total_s == 0
    assert (Cost() + Cost({"host": 1.0})).total_s == 1


def test_shares_and_bound() -> None:
    cost = Cost({"compute": 1.0, "memory": 3.0})
    assert (cost.share("memory"), cost.share("network")) == (0.75, 0.0)
    assert cost.bound == "memory"
    assert cost.bound in RESOURCES


def test_costs_of_arrays_broadcast() -> None:
    cost = Cost({"compute": np.array([1.0, 2.0])}) + Cost({"launch": 0.5}) * np.array([[1.0], [2.0]])
    assert np.asarray(cost.total_s).tolist() == [[1.5, 2.5], [2.0, 3.0]]


@given(seconds, seconds, seconds, exponents)
def test_exposed_parts_are_the_soft_maximum(a: float, b: float, c: float, q: float) -> None:
    times = {"compute": a, "memory": b, "on-chip": c}
    cost = soft_maximum(times, q)
    largest = max(times.values())
    direct = largest * sum((t / largest) ** q for t in times.values()) ** (1 / q)
    assert cost.total_s == pytest.approx(direct, rel=1e-12)
    assert largest * (1 - 1e-12) <= cost.total_s <= sum(times.values()) * (1 + 1e-12)
    for name, value in times.items():
        assert cost.exposed[name] + cost.hidden[name] == pytest.approx(value)
        assert 0 <= cost.exposed[name] <= value * (1 + 1e-12)


@given(seconds, seconds)
def test_from_the_sum_to_the_maximum(a: float, b: float) -> None:
    times = {"compute": a, "memory": b}
    assert soft_maximum(times, 1.0).total_s == pytest.approx(a + b)
    assert soft_maximum(times, 400.0).total_s == pytest.approx(max(a, b), rel=2e-3)
    totals = [soft_maximum(times, q).total_s for q in (1.0, 2.0, 4.0, 8.0)]
    assert all(x >= y * (1 - 1e-12) for x, y in pairwise(totals))


@given(st.floats(1e-6, 1e-2), st.floats(0.1, 10.0), st.floats(1.5, 8.0))
def test_shares_are_elasticities(a: float, ratio: float, q: float) -> None:
    times = {"compute": a, "memory": a * ratio}
    cost = soft_maximum(times, q)
    for name in times:
        h = 1e-5
        up = soft_maximum(times | {name: times[name] * np.exp(h)}, q).total_s
        down = soft_maximum(times | {name: times[name] * np.exp(-h)}, q).total_s
        assert cost.share(name) == pytest.approx((np.log(up) - np.log(down)) / (2 * h), abs=1e-6)


@pytest.mark.parametrize("q", [1.0, 3.0, 20.0])
def test_zero_times(q: float) -> None:
    assert soft_maximum({"compute": 0.0, "memory": 2.0}, q).total_s == pytest.approx(2.0)
    nothing = soft_maximum({"compute": 0.0, "memory": 0.0}, q)
    assert nothing.total_s == 0
    assert nothing.exposed == {"compute": 0.0, "memory": 0.0}


def test_tiny_times_do_not_underflow() -> None:
    cost = soft_maximum({"compute": 1e-30, "memory": 2e-30}, 20.0)
    assert cost.total_s == pytest.approx(2e-30, rel=1e-6)


def test_soft_maximum_of_arrays_equals_one_by_one() -> None:
    a, b = np.array([0.0, 1e-6, 3.0])[:, None], np.array([0.0, 2e-6])
    together = soft_maximum({"compute": a, "memory": b}, 3.0)
    for i in range(3):
        for j in range(2):
            alone = soft_maximum({"compute": float(a[i, 0]), "memory": float(b[j])}, 3.0)
            assert np.asarray(together.total_s)[i, j] == pytest.approx(float(alone.total_s))
            assert np.broadcast_to(together.exposed["memory"], (3, 2))[i, j] == pytest.approx(
                float(alone.exposed["memory"])
            )


def test_an_unknown_time_is_an_unknown_total() -> None:
    assert np.isnan(soft_maximum({"compute": np.nan, "memory": 1.0}, 3.0).total_s)
