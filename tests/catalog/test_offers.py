"""Offers against the tables that they were made from, which of them count, and the price ranges built on them."""

from __future__ import annotations

import csv
import datetime as dt

import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.offer import Offer, counted, in_force, load_offers, offers_of, read_offers, write_offers
from chipwise.catalog.price import Rent, price_range
from chipwise.catalog.snapshot import shipped_text
from chipwise.errors import UsageError
from truth import rows_of

TODAY = dt.date(2026, 11, 21)
CALLED = {"vast.ai (cheapest)": "vast.ai", "runpod (cheapest cloud)": "runpod-community", "verda (datacrunch)": "verda"}


def shipped() -> tuple[Offer, ...]:
    """All rows of the bundled table, what newer rows replaced included."""
    rows = csv.DictReader(shipped_text("catalog/data/offer_sources.csv").splitlines())
    return read_offers(shipped_text("catalog/data/offers.csv"), "offers.csv", {row["key"]: row["ref"] for row in rows})


def test_offers_equal_the_tables() -> None:
    first, more = rows_of("offers.csv"), rows_of("offers_more.csv")
    assert len(shipped()) == len(first) + len(more) == 173 + 394
    for offer, row in zip(shipped(), (*first, *more), strict=True):
        provider = CALLED.get(row["provider"], row["provider"]).replace(" ", "-")
        assert (offer.provider, offer.chip) == (provider, row["chip"])
        each = {"on_demand_usd_per_hour": offer.usd_per_chip_h, "spot_usd_per_hour": offer.spot_usd_per_chip_h}
        for column, usd in each.items():
            said = float(row[column]) / float(row["chips"]) if row[column] and row["chips"] else None
            assert usd == (None if said is None else pytest.approx(said, rel=1e-5)), (row["row_id"], column)
        assert row["date"].startswith(offer.date)
        assert bool(offer.date) == bool(row["date"])
        assert offer.source
        assert " id " not in offer.source
        if row.get("doubtful") not in (None, "", "order size"):
            assert offer.doubt == row["doubtful"]
    for offer, row in zip(shipped()[len(first) :], more, strict=True):
        if offer.unit is not None and "1-Click" not in row["instance"]:
            assert offer.unit == int(row["smallest_rentable"]), row["row_id"]


def test_a_price_per_chip_is_ordered_in_the_sizes_that_a_provider_rents() -> None:
    """DigitalOcean rents one or eight MI300X: four that share a machine pay for eight."""
    found = {o.chips: o for o in offers_of("mi300x") if o.provider == "digitalocean" and not o.doubt}
    assert set(found) == {1, 8}
    assert found[8].usd_per_h == pytest.approx(8 * found[1].usd_per_h)
    rent = Rent("mi300x", tuple(found.values()), stale=False)
    assert [rent.hour(n, n).billed for n in (1, 2, 4, 8)] == [1, 8, 8, 8]
    assert rent.hour(3).billed == 3, "three machines of one"


def test_a_newer_row_of_the_same_provider_chip_and_size_replaces_older_ones() -> None:
    def row(date: str, rent: float | None, spot: float | None = None, doubt: str = "") -> Offer:
        return Offer("p", date, "t4", 1, None, None, rent, spot, "", date, "s", unit=1, doubt=doubt)

    old, new, shaky = row("2026-01", 1.0, 0.5), row("2026-09", 2.0), row("2026-10", 9.0, doubt="a quote")
    machine = Offer("p", "m", "t4", 8, 96, None, 5.0, None, "", "2025", "s")
    kept = in_force((old, new, shaky, machine))
    assert [(o.instance, o.usd_per_h, o.spot_usd_per_h) for o in kept] == [
        ("2026-01", None, 0.5), ("2026-09", 2.0, None), ("2026-10", 9.0, None), ("m", 5.0, None)
    ]  # fmt: skip
    hours = {(o.usd_per_h, o.date) for o in offers_of("a100-sxm4-80gb") if o.provider == "runpod-secure"}
    assert hours == {(1.79, "2026-11-09")}


def test_stale_and_doubtful_offers_count_only_where_nothing_else_does() -> None:
    for chip in load_chips():
        quotes, stale = counted(offers_of(chip), TODAY)
        assert not any(o.doubt or not o.host_included for o in quotes)
        assert all(o.stale(TODAY) == stale for o in quotes)
    quotes, stale = counted(offers_of("trainium1"), TODAY)
    assert quotes
    assert stale


def test_a_table_is_read_as_it_was_written() -> None:
    assert read_offers(write_offers(load_offers()), "again") == load_offers()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("provider,chip,chips,price\n", "unknown column 'price'"),
        ("provider,chip,chips\n", "no column 'date'"),
        ("provider,chip,chips,date\n,t4,1,2026\n", "line 2: no provider"),
        ("provider,chip,chips,date,on_demand_usd_per_h\np,t4,1,2026,cheap\n", "line 2: on_demand_usd_per_h must be"),
        ("provider,chip,chips,date\np,t4,1.5,2026\n", "chips must be a whole number"),
        ("provider,chip,chips,date\np,t4,1,yesterday\n", "'yesterday' is not a day"),
    ],
)
def test_a_table_that_is_wrong_says_where(text: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        read_offers(text, "mine.csv")


def test_offers_name_chips_that_can_be_rented() -> None:
    for offer in load_offers():
        assert load_chips()[offer.chip].rentable, offer


def test_announced_and_unpriced_chips_have_no_range() -> None:
    for chip in load_chips().values():
        if not chip.rentable:
            assert price_range(chip.id, TODAY) is None
    assert price_range("trainium3", TODAY) is None
    assert price_range("no-such-chip", TODAY) is None


def test_range_of_a_common_chip() -> None:
    found = price_range("h100-sxm5-80gb", TODAY)
    assert found is not None
    assert found.low < found.picked < found.high
    assert 3.0 < found.picked < 4.5, "one H100 is rented alone, whatever whole nodes cost"
    assert not found.stale
    assert (found.newest, found.providers) == ("2026-11-09", 17)


def test_prices_go_stale() -> None:
    for day, stale in ((dt.date(2026, 7, 21), False), (dt.date(2026, 10, 18), False), (dt.date(2026, 10, 19), True)):
        assert price_range("trainium1", day).stale is stale  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("date", "first", "stale"),
    [
        ("2026-09", dt.date(2026, 9, 1), False),
        ("2026", dt.date(2026, 1, 1), True),
        ("2026-11-09", dt.date(2026, 11, 9), False),
        ("", None, True),
    ],
)
def test_a_vague_date_counts_as_the_first_day_it_can_mean(date: str, first: dt.date | None, stale: bool) -> None:
    offer = Offer("p", "i", "t4", 1, None, None, 1.0, None, "", date, "s")
    assert offer.earliest_day == first
    assert offer.stale(TODAY) is stale


def test_shares_and_bare_gpus_do_not_count() -> None:
    third = next(o for o in load_offers() if o.chips is None)
    assert third.usd_per_chip_h is None
    bare = [o for o in load_offers() if not o.host_included]
    assert len(bare) == 2
    assert not {o.instance for o in bare} & {o.instance for o in counted(offers_of("t4"), TODAY)[0]}
