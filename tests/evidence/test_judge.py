"""From a figure to an estimate: low <= mid <= high, whatever is done to it."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.evidence.judge import APART, Estimate, Factors, Nearness, judge, reach, tier_factors

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


@pytest.mark.parametrize("figure", [*FIGURES, *(f + APART for f in FIGURES)])
def test_further_away_is_never_surer(figure: str) -> None:
    tiers = [tier_factors(figure, nearness) for nearness in get_args(Nearness)]
    for near, far in pairwise(tiers):
        assert far.low <= near.low
        assert far.high >= near.high
    assert not tiers[-1].tested, "nothing was measured on other kinds of chips"


def test_a_tier_without_rows_is_the_next_nearer_one_widened() -> None:
    table = {
        ("tpot_s", "chip"): Factors(0.8, 1.25, 300, 20),
        ("tpot_s", "vendor"): Factors(0.9, 1.4, 300, 20),
    }
    vendor, runtime = tier_factors("tpot_s", "vendor", table), tier_factors("tpot_s", "runtime", table)
    assert (vendor.low, vendor.high, vendor.tested) == (0.8, 1.4, True)
    assert runtime.low < 0.8
    assert runtime.high > 1.4
    assert not runtime.tested


def test_few_cells_are_trusted_less() -> None:
    few, many = Factors(0.8, 1.25, 180, 8), Factors(0.8, 1.25, 2000, 20)
    assert many.for_few() == many
    # Student's t with 7 degrees of freedom at 90 %: 1.415
    assert few.for_few().high == pytest.approx(1.25 ** (1.415 / 1.2816 * (1 + 1 / 8) ** 0.5), rel=1e-3)
    assert few.for_few().low < 0.8
    assert (few.for_few().rows, few.for_few().cells) == (180, 8)


def test_only_known_figures_are_judged() -> None:
    with pytest.raises(KeyError):
        judge("watts", 1.0)


def test_a_tier_that_was_not_measured_is_no_wider_than_the_next_that_was() -> None:
    table = {("x", "chip"): Factors(0.8, 2.0, 300, 20), ("x", "kind"): Factors(0.7, 2.5, 300, 20)}
    for tier in ("vendor", "runtime", "generation"):
        found = tier_factors("x", tier, table)
        assert (found.low, found.high) >= (0.7, 2.0), tier
        assert found.high <= 2.5, tier
    assert tier_factors("x", "kind", table) == Factors(0.7, 2.5, 300, 20)
    alone = {("x", "chip"): Factors(0.8, 2.0, 300, 20)}
    assert tier_factors("x", "kind", alone).high > 3.0, "nothing further was measured: it widens"


@given(st.sampled_from(FIGURES), positive, st.floats(1.0, 30.0))
def test_steeper_is_less_sure(figure: str, mid: float, slope: float) -> None:
    flat, steep = judge(figure, mid), judge(figure, mid, power=float(reach(slope)))
    assert steep.low <= flat.low * (1 + 1e-12)
    assert steep.high >= flat.high * (1 - 1e-12)
    assert steep.provisional == flat.provisional


@pytest.mark.parametrize(("slope", "power"), [(0.0, 0.5), (1.0, 1.0), (3.0, 5.0), (7.0, 25.0)])
def test_errors_of_passes_and_of_anything_else_add_up(slope: float, power: float) -> None:
    assert reach(slope) ** 2 == pytest.approx(power)
