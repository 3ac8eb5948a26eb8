"""Prices: the arithmetic worked by hand, the rule that splits an hour over tokens, the tables."""

import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chipwise.catalog.chips import load_chips
from chipwise.catalog.machine import parse_machine
from chipwise.catalog.offer import Offer, load_offers
from chipwise.catalog.price import (
    Pricing,
    Rent,
    capex_for,
    load_assumptions,
    load_capex,
    own_basis,
    own_usd_per_h,
    rent_basis,
    split_usd_per_million,
)
from chipwise.catalog.regions import region_of
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
    assert basis.usd_per_h(1) == pytest.approx(1.30)
    assert set(basis.assumed) == {"idle_power_share", "host_share", "host_usd", "network_share"}
    assert "capex_usd" in own_basis("rtx-4090").assumed
    assert own_basis("h100-sxm5-80gb").capex_usd == pytest.approx(285000 / 8)
    assert own_basis("h100-sxm5-80gb").power_w == pytest.approx(1.4 * 700.0)
    assert own_basis("h100-sxm5-80gb", wall_power_ratio=1.0).power_w == pytest.approx(700.0)
    assert own_basis("rtx-4090").years == load_assumptions()["years"].value == 4


def test_machines_are_bought_whole():
    """A rack of 72 is paid for three of its chips, a server of eight for nine as two; who names a price of his own pays
    chip by chip, as do cards."""
    assert own_basis("mi300x").hour(2).billed == 8, "nobody sells a module of a board"
    assert own_basis("rtx-4090").hour(2).billed == 2
    rack, server = own_basis("gb200-nvl72"), own_basis("h100-sxm5-80gb")
    assert rack.hour(3).billed == 72
    assert server.hour(9).billed == 16
    assert server.hour(9).mid == pytest.approx(float(server.usd_per_h(16)))
    assert server.hour(12, 6).billed == 16  # one group of six in each
    assert server.hour(32, 16).billed == 32  # a group over two
    assert own_basis("h100-sxm5-80gb", capex_usd=30_000).hour(3).billed == 3
    assert own_basis("rtx-4090").hour(3).billed == 3
    assert server.hour(np.array([1.0, 8.0, 9.0])).billed == pytest.approx([8.0, 8.0, 16.0])


def test_a_purchase_is_of_machines():
    """By hand: cards take a host at its least or its share, whole servers bring it; several take a network."""
    cards, server, mine = (own_basis("rtx-4090"), own_basis("h100-sxm5-80gb"), own_basis("h100", capex_usd=30e3))
    assert cards.purchase(1) == pytest.approx(3000 + 4500), "the least that a machine costs"
    assert cards.purchase(8) == pytest.approx(8 * 3000 * 1.27)
    assert cards.purchase(9) == pytest.approx((9 * 3000 + 2 * 4500) * 1.05)
    assert server.purchase(8) == pytest.approx(285_000)
    assert server.purchase(16) == pytest.approx(2 * 285_000 * 1.05)
    assert mine.purchase(16) == pytest.approx(16 * 30e3), "the user's price is with all that"
    assert mine.machines(16) == 0


def test_what_cannot_be_owned_says_why():
    with pytest.raises(UsageError, match="give what you pay"):
        own_basis("mi325x")
    with pytest.raises(UsageError, match="one of years"):
        own_basis("rtx-4090", lifetime=3)
    with pytest.raises(UsageError, match="power of tpu-v5e"):
        own_basis("tpu-v5e", capex_usd=10_000)
    for figure in ({"utilisation": 0.0}, {"utilisation": 1.5}, {"years": 0.0}, {"pue": 0.5}, {"capex_usd": -1.0}):
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


BOUGHT = {"h200-sxm-141gb": 370_000 / 8, "b200-sxm": 515_000 / 8, "rtx-4090": 3000, "rtx-3090": 1330,
          "gb10-dgx-spark": 4349.5, "m5-max": 3999, "m5-max:64gb": 3499, "rtx-3060-12gb": 225}  # fmt: skip


def test_purchases_carry_their_source():
    chips = load_chips()
    for entry in load_capex():
        assert entry.chip in chips or (entry.covers == "machine" and parse_machine(entry.chip).name == entry.chip)
        assert 0 < entry.low_usd <= entry.usd <= entry.high_usd
        assert entry.chips >= 1
        assert entry.covers in ("card", "machine")
        assert all(source.ref for source in entry.provenance.sources)
        recalled = entry.provenance.sources[0].ref.startswith(("recalled", "general"))
        assert recalled == (entry.provenance.grade == "recalled"), entry.item
    assert capex_for("h100-sxm5-80gb").covers == "machine"
    # the newest of what is sold now: no launch price, no used card where new ones are sold
    found = {chip: capex_for(chip).usd_per_chip for chip in BOUGHT}
    assert found == {chip: pytest.approx(usd) for chip, usd in BOUGHT.items()}
    assert set(load_assumptions()) == {
        "years", "utilisation", "usd_per_kwh", "pue", "other_opex_share", "idle_power_share", "wall_power_ratio",
        "host_share", "host_usd", "network_share",
    }  # fmt: skip
    assert all(assumption.provenance.note for assumption in load_assumptions().values())


DAY = dt.date(2026, 11, 21)


def offer(provider: str, usd: float, chips: int = 1, unit: int | None = None, vcpus: int | None = 8) -> Offer:
    return Offer(provider, f"{chips}x", "t4", chips, vcpus, None, usd, None, "", "2026-11-01", "s", unit=unit)


def test_the_offer_picked_worked_by_hand():
    # one chip: a asks 1, b 2, c 3, d 4, e 5, and f rents eight for 16
    singles = [offer(p, usd, unit=1) for p, usd in zip("abcde", (1.0, 2.0, 3.0, 4.0, 5.0), strict=True)]
    rent = Rent("t4", (*singles, offer("f", 16.0, chips=8)), stale=False)
    one, eight = rent.hour(1), rent.hour(8, 8)
    # f forces eight times the chips: five providers count, one of them may undercut the pick
    assert (one.low, one.mid, one.high, one.billed) == (1.0, 2.0, 5.0, 1)
    assert rent.quotes[one.offer].provider == "b"
    # for eight: 8, 16 (b), 16 (f), 24, 32, 40
    assert (eight.low, eight.mid, eight.high, eight.billed) == (8.0, 16.0, 40.0, 8)
    # three chips of a host of four are twice too many at most, nine chips in eights are not
    hosts = Rent("t4", (offer("a", 8.0, chips=4), offer("b", 30.0, chips=1)), stale=False)
    assert (hosts.hour(3).mid, hosts.hour(3).billed) == (8.0, 4)
    # where everyone rents more than twice the chips, the cheapest bill
    nodes = Rent("t4", (offer("a", 80.0, chips=8), offer("b", 60.0, chips=8)), stale=False)
    assert (nodes.hour(1).mid, nodes.hour(1).high, nodes.hour(1).billed) == (60.0, 80.0, 8)


def test_the_smallest_order_is_billed():
    rent = Rent("t4", (offer("a", 2.0, unit=16),), stale=False)
    assert [(rent.hour(n).mid, rent.hour(n).billed) for n in (1, 16, 17)] == [(32.0, 16), (32.0, 16), (64.0, 32)]


def test_one_h200_costs_what_one_h200_costs():
    rent = rent_basis("h200-sxm-141gb", DAY)
    one = rent.hour(1)
    assert 3.5 < one.mid < 5.0
    assert one.billed == 1
    picked = rent.quotes[one.offer]
    assert picked.provider
    assert not picked.stale(DAY)
    assert picked.usd_per_chip_h == one.mid


def test_a_group_is_rented_in_one_machine():
    rent = rent_basis("trainium1", DAY)
    assert rent.hour(1, 1).mid < 2.0, "trn1.2xlarge holds one chip"
    assert (rent.hour(4, 4).low, rent.hour(4, 4).billed) == (21.5, 16)
    assert rent_basis("trainium1", DAY, spot=True).hour(4, 4).low == pytest.approx(2.15)
    inferentia = rent_basis("inferentia2", DAY)
    six, twelve = (next(o.usd_per_h for o in inferentia.quotes if o.chips == n) for n in (6, 12))
    assert inferentia.hour(4, 4).low == pytest.approx(six)
    assert twelve < 3 * six
    assert inferentia.hour(12, 4).low == pytest.approx(twelve), "six chips hold one group of four"
    # no machine known holds eight: the price per chip stands
    assert rent_basis("tpu-v6e", DAY).hour(8, 8).mid == pytest.approx(8 * 2.7)


def test_renting_broadcasts_and_never_gets_cheaper():
    for chip in load_chips():
        try:
            rent = rent_basis(chip, DAY)
        except UsageError:
            continue
        for group in (1.0, 4.0, 8.0):
            counts = np.arange(1.0, 41.0) * group
            many = rent.hour(counts, group)
            each = [rent.hour(n, group) for n in counts]
            assert many.mid == pytest.approx([h.mid for h in each])
            assert np.all(np.diff(many.mid) >= -1e-9), (chip, group)
            assert np.all((many.low <= many.mid) & (many.mid <= many.high) & (many.billed >= counts))
            paid = [rent.quotes[int(i)].usd_per_chip_h for i in many.offer]
            assert many.mid == pytest.approx(many.billed * paid), "the price is that of the offer picked"


def test_renting_from_some_providers():
    rent = rent_basis("h100-sxm5-80gb", DAY, providers=("aws",))
    prices = [o.usd_per_h for o in load_offers() if o.provider == "aws" and o.chip == "h100-sxm5-80gb"]
    assert set(prices) >= {o.usd_per_h for o in rent.quotes}
    hour = rent.hour(8, 8)
    assert hour.low == hour.mid == hour.high, "one provider stands for itself"
    both = Pricing(provider="aws, GCP").basis("h100-sxm5-80gb", DAY)
    assert set(both.providers) == {"aws", "gcp"}
    assert Pricing(provider="runpod").providers == ("runpod-community", "runpod-secure")
    with pytest.raises(UnknownNameError, match="unknown provider 'runpo'"):
        Pricing(provider="runpo")


def test_the_users_own_price_stands_before_offers():
    basis = Pricing(given={"H100": 2.0, "mi455x": 6.0}).basis("h100-sxm5-80gb", DAY)
    hour = basis.hour(np.array([1.0, 8.0]), 8.0)
    assert hour.mid.tolist() == [2.0, 16.0]
    assert not basis.stale
    assert Pricing(given={"H100": 2.0}).basis("mi300x", DAY).quotes[0].provider != "your price"
    with pytest.raises(UnknownNameError, match="h1000"):
        Pricing(given={"h1000": 2.0})


def test_unknown_providers_and_regions_are_named():
    with pytest.raises(UnknownNameError, match="unknown provider 'lamda'") as provider:
        Pricing(provider="lamda")
    assert "lambda" in provider.value.nearest
    with pytest.raises(UnknownNameError, match="unknown price of aws in 'us-east1'") as region:
        Pricing(provider="aws", region="us-east1")
    assert "us-east-1" in region.value.nearest
    with pytest.raises(UnknownNameError, match=r"known are .*us-east-1") as gap:
        Pricing(provider="aws", region="mars-1")
    assert "without --region" in gap.value.hint
    found = Pricing(region="us-east5").basis("tpu-v6e", DAY)
    assert found is not None
    assert all("us-east5" in quote.region for quote in found.quotes)


def test_prices_of_the_nearest_regions_stand_in_where_none_is_known():
    europe = Pricing(provider="azure", region="northeurope")
    assert europe.regions
    assert {region_of(region).part for region in europe.regions} == {"europe"}
    quotes = europe.basis("h100-nvl-94gb", DAY).quotes
    assert {quote.region for quote in quotes} <= {"uksouth", "westeurope"}, "the nearest to Dublin"
    away = Pricing(provider="aws", region="eu-central-1").basis("h100-sxm5-80gb", DAY)
    assert isinstance(away, Rent)
    assert away.wanted == "eu-central-1"
    assert {quote.provider for quote in away.quotes} == {"aws"}
    far = {quote.region: region_of("eu-central-1").km(region_of(quote.region)) for quote in away.quotes}
    sold = rent_basis("h100-sxm5-80gb", DAY, providers=("aws",)).quotes
    every = [region_of("eu-central-1").km(region_of(r)) for quote in sold for r in quote.regions]
    assert set(far.values()) == {min(every)}, "not the cheapest"
    known = Pricing(provider="aws", region="us-east-1").basis("h100-sxm5-80gb", DAY)
    assert isinstance(known, Rent)
    assert known.wanted == ""


def test_a_region_that_no_cloud_has_is_refused_and_a_part_of_the_world_is_all_in_it():
    with pytest.raises(UnknownNameError, match="unknown region 'eu-central-9'") as wrong:
        Pricing(region="eu-central-9")
    assert "eu-central-1" in wrong.value.nearest
    europe = Pricing(region="europe")
    assert {"eu", "westeurope"} <= set(europe.regions)
    assert europe.basis("h100-sxm5-80gb", DAY).wanted == ""
    located = {r for o in load_offers() for r in o.regions} - {"global", "any", "all"}
    assert not [r for r in located if region_of(r) is None]


def test_what_is_not_for_rent_says_so():
    with pytest.raises(UsageError, match="give what you pay: --price-of CHIP=USD"):
        rent_basis("m3-ultra", DAY)
    with pytest.raises(UsageError, match="h100-sxm5-80gb nobody"):
        rent_basis("h100-sxm5-80gb", DAY, providers=("nobody",))


def _offers(*rows: tuple[str, float]) -> tuple[Offer, ...]:
    return tuple(
        Offer(provider, "one", "h100-sxm5-80gb", 1, None, None, usd, None, "", "2026-11-01", "", unit=1)
        for provider, usd in rows
    )


def test_a_marketplace_undercuts_and_is_not_picked():
    """Nobody orders many alike on a marketplace: the cheapest provider is taken, and where there is none the middle."""
    mixed = Rent("h100-sxm5-80gb", _offers(("vast.ai", 1.0), ("hyperstack", 3.0), ("aws", 7.0)), stale=False)
    assert mixed.hour(4).mid == pytest.approx(12.0)
    assert mixed.hour(4).low == pytest.approx(4.0)
    alone = Rent("h100-sxm5-80gb", _offers(("vast.ai", 1.0), ("runpod-community", 1.5)), stale=False)
    assert alone.hour(4).mid == pytest.approx(6.0)
    assert Rent("h100-sxm5-80gb", _offers(("vast.ai", 1.0)), stale=False).hour(4).mid == pytest.approx(4.0)


def test_a_marketplace_counts_among_those_who_rent():
    """Of eight who rent single cards, from 2 dollars on, the second cheapest is picked, number (8 - 1) // 4 = 1. A
    marketplace makes nine, and undercuts: number 8 // 4 - 1 = 1, though it rents out whole machines alone."""
    rent = _offers(*((name, 2.0 + i) for i, name in enumerate("abcdefgh")))
    whole = Offer("vast.ai", "8x", rent[0].chip, 8, None, None, 8.0, None, "", "2026-11-01", "", unit=8)
    alone, beside = (Rent(rent[0].chip, offers, stale=False) for offers in (rent, (*rent, whole)))
    assert alone.hour(1).mid == pytest.approx(3.0)
    assert beside.hour(1).mid == pytest.approx(3.0)
    assert Rent(rent[0].chip, rent[:4], stale=False).hour(1).mid == pytest.approx(2.0)


QUOTE = st.tuples(
    st.sampled_from(("vast.ai", "runpod-community", "aws", "gcp", "lambda", "hyperstack", "oracle", "azure")),
    st.sampled_from((1, 2, 4, 8)),
    st.floats(0.5, 12.0),
)


SWITCHED = [
    ("aws", 1, 3.0),
    ("aws", 8, 1.0),
    ("gcp", 1, 1.0),
    ("lambda", 1, 2.0),
    ("azure", 1, 2.0),
    ("oracle", 1, 2.0),
]
"""From three chips on the cheapest of the first provider is a machine that is mostly idle."""
LATE = [*SWITCHED[2:], ("hyperstack", 1, 2.0), ("vast.ai", 8, 1.0)]
"""A marketplace comes close at four chips only."""


@given(st.lists(QUOTE, min_size=1, max_size=12), st.sampled_from((1.0, 2.0, 4.0, 8.0)))
@example(SWITCHED, 1.0)
@example(LATE, 1.0)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_more_chips_never_cost_less(quotes: list[tuple[str, int, float]], group: float) -> None:
    """Whichever providers sell whichever machines at whichever prices."""
    offers = tuple(
        Offer(p, f"{n}", "h100-sxm5-80gb", n, None, None, usd * n, None, "", "2026-11-01", "", unit=None)
        for p, n, usd in quotes
    )
    hour = Rent("h100-sxm5-80gb", offers, stale=False).hour(np.arange(1.0, 65.0) * group, group)
    for figure in (hour.low, hour.mid, hour.high):
        assert np.all(np.diff(figure) >= -1e-9)
