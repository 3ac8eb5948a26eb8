"""From a figure to an estimate: low <= mid <= high, whatever is done to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.evidence.judge import Estimate, judge

FIGURES = ("tpot_s", "ttft_s", "tokens_per_s")
positive = st.floats(1e-9, 1e9)


@given(st.sampled_from(FIGURES), positive, positive)
def test_intervals_hold_their_middle(figure: str, mid: float, factor: float) -> None:
    found = judge(figure, mid)
    for estimate in (
        found,
        found.scaled(factor),
        found.inverse(factor),
        found.inverse(factor).scaled(factor),
    ):
        assert 0 < estimate.low < estimate.mid < estimate.high
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


def test_the_interval_belongs_to_the_figure() -> None:
    tpot, ttft = judge("tpot_s", 1.0), judge("ttft_s", 1.0)
    assert ttft.high / ttft.low > tpot.high / tpot.low, "first tokens are harder to predict"
    assert tpot.basis == "modelled"
    assert tpot.provisional


def test_only_known_figures_are_judged() -> None:
    with pytest.raises(KeyError):
        judge("watts", 1.0)
