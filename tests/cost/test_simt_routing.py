"""Expected experts and rows of the busiest rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.cost.simt.routing import balanced, power_law, uniform


def test_few_tokens_hit_few_experts() -> None:
    assert balanced(1.0, 256.0, 8.0).distinct == 8
    assert uniform(1.0, 256.0, 8.0).distinct == pytest.approx(8)
    assert power_law(1.0, 256.0, 8.0).distinct == pytest.approx(8)


def test_many_tokens_hit_all() -> None:
    assert balanced(4096.0, 256.0, 8.0).distinct == 256
    assert uniform(4096.0, 256.0, 8.0).distinct == pytest.approx(256)


def test_uniform_matches_a_draw() -> None:
    rng = np.random.default_rng(0)
    hit = [len(np.unique([rng.choice(64, 4, replace=False) for _ in range(16)])) for _ in range(200)]
    assert float(uniform(16.0, 64.0, 4.0).distinct) == pytest.approx(np.mean(hit), rel=0.02)


def test_power_law_matches_a_draw() -> None:
    rng = np.random.default_rng(0)
    tokens, experts, k, a = 512.0, 256, 8.0, 1.2
    top = 0.8 * tokens
    hit = []
    for _ in range(200):
        u = rng.random(experts)
        load = (1 + u * (top ** (1 - a) - 1)) ** (1 / (1 - a))
        hit.append(np.sum(load / load.sum() * tokens * k >= 0.5))
    mid = power_law(tokens, float(experts), k, exponent=a)
    assert float(mid.distinct) == pytest.approx(np.mean(hit), rel=0.05)


@given(tokens=st.integers(1, 65536), experts=st.sampled_from([8, 64, 128, 256, 512]), ranks=st.sampled_from([1, 2, 8]))
def test_bounds(tokens: int, experts: int, ranks: int) -> None:
    k = 8.0
    for routing in (
        balanced(float(tokens), experts, k, ranks),
        uniform(float(tokens), experts, k, ranks),
        power_law(float(tokens), experts, k, ranks),
    ):
        assert 1 <= float(routing.distinct) <= experts / ranks + 1e-9
        assert tokens * k / ranks - 1e-6 <= float(routing.rows) <= tokens * k + 1e-6


def test_skew_crowds_one_rank() -> None:
    even = balanced(1024.0, 256.0, 8.0, 32.0)
    skewed = power_law(1024.0, 256.0, 8.0, 32.0)
    assert float(skewed.rows) > 1.5 * float(even.rows)
