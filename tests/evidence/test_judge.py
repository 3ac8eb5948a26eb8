"""From a figure to an estimate: low <= mid <= high, whatever is done to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.evidence.discrepancy import LEAN, Scatter
from chipwise.evidence.judge import Estimate, basis_of, chance, judge, summed

positive = st.floats(1e-9, 1e9)


@given(st.floats(-1.0, 1.0), st.floats(1e-6, 3.0), positive, positive)
def test_intervals_hold_their_middle(mean: float, sd: float, mid: float, factor: float) -> None:
    found = judge(mid, (mean, sd), "modelled")
    for estimate in (found, found.scaled(factor), found.inverse(factor), found.inverse(factor).scaled(factor)):
        assert 0 < estimate.low <= estimate.mid <= estimate.high
        assert estimate.low < estimate.high
        assert estimate.basis == found.basis
        assert estimate.provisional == found.provisional


@given(positive, positive)
def test_scaling_and_inverting_are_arithmetic(mid: float, factor: float) -> None:
    found = Estimate(mid, 0.5 * mid, 3.0 * mid, "modelled")
    scaled, inverse = found.scaled(factor), found.inverse(factor)
    assert (scaled.low / scaled.mid, scaled.high / scaled.mid) == pytest.approx((0.5, 3.0))
    assert (inverse.low / inverse.mid, inverse.high / inverse.mid) == pytest.approx((1 / 3, 2.0))
    back = inverse.inverse(factor)
    assert (back.mid, back.low, back.high) == pytest.approx((found.mid, found.low, found.high))


def test_ends_hold_four_fifths_of_a_normal_logarithm() -> None:
    found = judge(10.0, (0.0, 0.3), "calibrated")
    assert math.log(found.high / 10.0) == pytest.approx(1.2816 * 0.3)
    assert chance(found.high, found.mid, found.low, found.high) == pytest.approx(0.9, abs=1e-4)
    assert chance(found.low, found.mid, found.low, found.high) == pytest.approx(0.1, abs=1e-4)
    assert chance(10.0, found.mid, found.low, found.high) == found.kept(10.0) == 0.5


def test_middle_interval_and_chance_are_of_one_distribution() -> None:
    """Where known levels lie moves ends; half of the outcomes lie below the middle that is printed all the same."""
    found = judge(10.0, (0.2, 0.3), "calibrated")
    assert found.mid == 10.0
    assert math.log(found.high / 10.0) == pytest.approx(0.2 + 1.2816 * 0.3)
    assert math.log(10.0 / found.low) == pytest.approx(1.2816 * 0.3 - 0.2)
    assert found.kept(10.0) == found.inverse(1.0).kept(0.1) == 0.5
    assert found.kept(found.low) == pytest.approx(0.1, abs=1e-4)
    assert found.kept(found.high) == pytest.approx(0.9, abs=1e-4)


def test_half_of_what_known_levels_lie_at_moves_ends() -> None:
    spread = Scatter(np.array([0.4]), np.array([0.08]), np.array([0.01]), np.array([True]))
    assert spread.around(-1.0) == pytest.approx((-0.4 * LEAN, 0.3))
    found = judge(10.0, spread.around(), "calibrated")
    lies, end = spread.ends()[:, 0]
    assert found.high == pytest.approx(10.0 * end)
    assert lies == pytest.approx(math.exp(0.2))


def test_sums_keep_what_is_played_through() -> None:
    """The sum of figures with normal logarithms: one alone exactly, alike ones as one, others by their variances."""
    centres, wide = np.array([0.2, 0.5, 0.1]), np.array([0.25, 0.15, 0.4])
    one = float(summed(centres[:1], wide[:1], np.eye(1), 0.9))
    assert one == pytest.approx(0.2 * math.exp(1.28155 * 0.25), rel=1e-4)
    assert float(summed(centres, wide, np.eye(3), 0.5)) > centres.sum()
    alike = float(summed(centres, wide, np.ones((3, 3)), 0.9))
    assert alike == pytest.approx(float(np.sum(centres * np.exp(1.28155 * wide))), rel=0.01)
    half = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    rng = np.random.default_rng(0)
    for likeness in (np.eye(3), half):
        logs = rng.multivariate_normal(np.zeros(3), likeness * np.outer(wide, wide), 400_000)
        sums = (centres * np.exp(logs)).sum(axis=1)
        for sure in (0.5, 0.9, 0.99):
            said = float(summed(centres, wide, likeness, sure))
            assert said == pytest.approx(float(np.quantile(sums, sure)), rel=0.01)
            assert said < alike or sure != 0.9


def test_no_end_is_beyond_what_physics_leaves() -> None:
    found = judge(10.0, (0.0, 1.0), "modelled", least=9.0, most=10.5)
    assert (found.low, found.high) == (9.0, 10.5)
    beyond = judge(10.0, (0.0, 1.0), "modelled", least=12.0, most=8.0)
    assert (beyond.low, beyond.high) == (10.0, 10.0), "a bound that the middle breaks moves no middle"


def test_words_of_what_a_figure_rests_on() -> None:
    assert [basis_of(near) for near in ("own", "chip", "stack", "kind")] == [
        "measured",
        "calibrated",
        "modelled",
        "modelled",
    ]
