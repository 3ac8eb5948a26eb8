"""Prices: the arithmetic worked by hand, the rule that splits an hour over tokens, the tables."""

import datetime as dt
import math

import numpy as np
import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.offer import load_offers, price_range
from chipwise.catalog.price import (
    capex_for,
    load_assumptions,
    load_capex,
    load_token_prices,
    own_basis,
    own_usd_per_h,
    rent_basis,
    split_usd_per_million,
    token_prices_for,
    usd_per_million,
)
from chipwise.errors import UnknownNameError, UsageError

PLAIN = {"years": 4.0, "utilisation": 1.0, "usd_per_kwh": 0.1, "pue": 1.5}


def test_owning_a_busy_machine():
    # 35,040 USD over 4 years of 8,760 h = 1 USD/h; 2 kW x 1.5 x 0.1 USD/kWh = 0.30 USD/h
    assert own_usd_per_h(35040.0, 2000.0, **PLAIN) == pytest.approx(1.30)


def test_owning_a_machine_that_works_half_the_time():
    # per hour of work: purchase 2 USD; 0.30 at work; one idle hour at 30 % of it = 0.09
    half = {**PLAIN, "utilisation": 0.5}
    assert own_usd_per_h(35040.0, 2000.0, **half, idle_power_share=0.3) == pytest.approx(2.0 + 0.30 + 0.09)


def test_other_costs_are_a_share_of_the_purchase_per_year():
    # 10 % of 35,040 USD a year = 0.40 USD/h
    assert own_usd_per_h(35040.0, 2000.0, **PLAIN, other_opex_share=0.1) == pytest.approx(1.70)


def test_owning_broadcasts():
    many = own_usd_per_h(np.array([35040.0, 70080.0]), 2000.0, **PLAIN)
    assert many == pytest.approx([1.30, 2.30])


def test_throughput_alone():
    # 3.60 USD/h = 0.001 USD/s; 1,000 tokens/s: one dollar per million
    assert usd_per_million(3.6, 1000.0) == pytest.approx(1.0)
    assert usd_per_million(3.6, 0.0) == math.inf
    assert usd_per_million(np.array([3.6, 7.2]), 1000.0) == pytest.approx([1.0, 2.0])


def test_split_by_machine_seconds():
    # an hour: 1,200 s of prefill for 12 M tokens, 2,400 s of decode for 1 M
    into, out = split_usd_per_million(3.6, 1200.0, 2400.0, 12e6, 1e6)
    assert into == pytest.approx(0.1)
    assert out == pytest.approx(2.4)
    assert into * 12 + out * 1 == pytest.approx(3.6)


def test_idle_seconds_are_borne_in_proportion():
    into, out = split_usd_per_million(3.6, 600.0, 1200.0, 6e6, 0.5e6, other_s=1800.0)
    assert into * 6 + out * 0.5 == pytest.approx(3.6)
    assert into / out == pytest.approx((600 / 6e6) / (1200 / 0.5e6))


def test_split_without_tokens_of_a_kind():
    assert split_usd_per_million(3.6, 0.0, 3600.0, 0.0, 3.6e6) == (0.0, pytest.approx(1.0))
    assert split_usd_per_million(3.6, 1.0, 0.0, 0.0, 0.0)[0] == math.inf


def test_split_broadcasts():
    into, out = split_usd_per_million(np.array([3.6, 7.2]), 1200.0, 2400.0, 12e6, 1e6)
    assert into == pytest.approx([0.1, 0.2])
    assert out == pytest.approx([2.4, 4.8])


def test_own_basis_takes_the_users_figures_first():
    basis = own_basis("h100-sxm5-80gb", capex_usd=35040, power_w=2000, **PLAIN, other_opex_share=0.0)
    assert basis.usd_per_h == pytest.approx(1.30)
    assert basis.assumed == ("idle_power_share",)
    assert "capex_usd" in own_basis("rtx-4090").assumed
    assert own_basis("h100-sxm5-80gb").capex_usd == pytest.approx(270000 / 8)
    assert own_basis("h100-sxm5-80gb").power_w == load_chips()["h100-sxm5-80gb"].tdp_w
    assert own_basis("rtx-4090").years == load_assumptions()["years"].value == 4


def test_what_cannot_be_owned_says_why():
    with pytest.raises(UsageError, match="give what you pay"):
        own_basis("mi300x")
    with pytest.raises(UsageError, match="one of years"):
        own_basis("rtx-4090", lifetime=3)
    with pytest.raises(UsageError, match="power of m4-max"):
        own_basis("m4-max")
    for figure in (
        {"utilisation": 0.0},
        {"utilisation": 1.5},
        {"years": 0.0},
        {"pue": 0.5},
        {"capex_usd": -1.0},
    ):
        with pytest.raises(UsageError, match="makes no sense"):
            own_basis("rtx-4090", **figure)
    with pytest.raises(UsageError, match="makes no sense"):
        own_basis("rtx-4090", usd_per_kwh=math.nan)
    with pytest.raises(UnknownNameError, match="rtx-4090"):
        own_basis("rtx-4091")


@pytest.mark.parametrize(
    ("figure", "value"),
    [("utilisation", 0.0), ("utilisation", 1.5), ("years", 0.0), ("pue", 0.5), ("capex_usd", -1.0),
     ("usd_per_kwh", math.nan)],
)  # fmt: skip
def test_senseless_figures_of_owning(figure, value):
    with pytest.raises(UsageError, match=f"{figure} of .* makes no sense"):
        own_basis("rtx-4090", **{figure: value})


def test_purchases_carry_their_source():
    chips = load_chips()
    for entry in load_capex():
        assert entry.chip in chips
        assert 0 < entry.low_usd <= entry.high_usd
        assert entry.chips >= 1
        assert entry.covers in ("card", "machine")
        assert all(source.date for source in entry.provenance.sources)
    assert capex_for("h100-sxm5-80gb").covers == "machine"
    assert set(load_assumptions()) == {
        "years", "utilisation", "usd_per_kwh", "pue", "other_opex_share", "idle_power_share",
    }  # fmt: skip
    assert all(assumption.provenance.note for assumption in load_assumptions().values())


def test_token_prices():
    prices = load_token_prices()
    assert len(prices) == 24
    assert {price.chip for price in prices} == {"wse3-cs3", "groq-lpu1", "sn40l"}
    assert all(price.source.ref and price.output_usd_per_million > 0 for price in prices)
    big = next(p for p in token_prices_for("groq-lpu1") if p.model == "openai/gpt-oss-120b")
    found = (big.input_usd_per_million, big.output_usd_per_million, big.cached_usd_per_million)
    assert found == (0.15, 0.6, 0.075)
    assert token_prices_for("h100-sxm5-80gb") == ()


DAY = dt.date(2026, 11, 21)


def test_renting_is_the_range_of_the_offers():
    rent = rent_basis("h100-sxm5-80gb", DAY)
    found = price_range("h100-sxm5-80gb", DAY)
    assert (rent.low_usd_per_h, rent.mid_usd_per_h, rent.high_usd_per_h) == (
        found.low,
        found.median,
        found.high,
    )
    assert rent.oldest <= rent.newest
    assert not rent.stale


def test_renting_from_one_provider():
    rent = rent_basis("h100-sxm5-80gb", DAY, provider="aws")
    prices = [
        offer.usd_per_chip_h
        for offer in load_offers()
        if offer.provider == "aws" and offer.chip == "h100-sxm5-80gb" and offer.usd_per_chip_h
    ]
    assert (rent.low_usd_per_h, rent.high_usd_per_h, rent.offers) == (min(prices), max(prices), len(prices))
    assert rent_basis("trainium1", DAY, spot=True).low_usd_per_h < rent_basis("trainium1", DAY).low_usd_per_h


def test_what_is_not_for_rent_says_so():
    with pytest.raises(UsageError, match="give what you pay per hour"):
        rent_basis("m3-ultra", DAY)
    with pytest.raises(UsageError, match="h100-sxm5-80gb nobody"):
        rent_basis("h100-sxm5-80gb", DAY, provider="nobody")
