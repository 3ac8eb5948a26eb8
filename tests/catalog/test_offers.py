"""Offers against the table that they were made from, and the price ranges built on them."""

from __future__ import annotations

import csv
import datetime as dt
from pathlib import Path

import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.offer import Offer, load_offers, price_range

TRUTH = Path(__file__).parents[2].parent / "shared" / "truth" / "offers.csv"
TODAY = dt.date(2026, 11, 21)


def table() -> list[dict[str, str]]:
    if not TRUTH.is_file():
        pytest.skip(f"no {TRUTH}: the source table is not beside this checkout")
    with TRUTH.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text(value: float | None) -> float | str:
    return "" if value is None else value


def test_offers_equal_the_table() -> None:
    rows = table()
    assert len(load_offers()) == len(rows) == 173
    for offer, row in zip(load_offers(), rows, strict=True):
        assert [offer.provider, offer.instance, offer.chip, offer.region] == [
            row[c] for c in ("provider", "instance", "chip", "region")
        ]
        memory = None if offer.host_memory_bytes is None else offer.host_memory_bytes / 2**30
        for value, column in (
            (offer.chips, "chips"),
            (offer.vcpus, "vcpus"),
            (memory, "host_mem_gib"),
            (offer.usd_per_h, "on_demand_usd_per_hour"),
            (offer.spot_usd_per_h, "spot_usd_per_hour"),
        ):
            assert text(value) == (float(row[column]) if row[column] else ""), (row["row_id"], column)
        if row["usd_per_device_hour"]:
            assert offer.usd_per_chip_h == pytest.approx(
                float(row["usd_per_device_hour"]), rel=2e-3, abs=6e-5
            )
        else:
            assert offer.usd_per_chip_h is None
        assert row["date"].startswith(offer.date)
        assert bool(offer.date) == bool(row["date"])
        assert offer.source


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
    assert found.low < found.median < found.high
    assert found.high / found.low == pytest.approx(4.6, abs=0.1)
    assert (found.providers, found.offers, found.newest) == (10, 18, "2026-11-09")
    assert not found.stale
    assert 0 < found.stale_offers < found.offers


def test_the_median_is_over_providers() -> None:
    prices: dict[str, list[float]] = {}
    for offer in load_offers():
        if offer.chip == "rtx-pro-6000-server" and offer.usd_per_chip_h is not None:
            prices.setdefault(offer.provider, []).append(offer.usd_per_chip_h)
    found = price_range("rtx-pro-6000-server", TODAY)
    assert found is not None
    assert found.providers == len(prices) == 3
    assert found.offers == sum(len(group) for group in prices.values())


def test_prices_go_stale() -> None:
    assert price_range("trainium1", dt.date(2026, 7, 21)).stale is False  # type: ignore[union-attr]
    assert price_range("trainium1", dt.date(2026, 10, 18)).stale is False  # type: ignore[union-attr]
    assert price_range("trainium1", dt.date(2026, 10, 19)).stale is True  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("date", "first", "stale"),
    [
        ("2026-09", dt.date(2026, 9, 1), False),
        ("2026", dt.date(2026, 1, 1), True),
        ("2026-11-09", dt.date(2026, 11, 9), False),
        ("", None, True),
    ],
)
def test_a_vague_date_counts_as_the_first_day_it_can_mean(
    date: str, first: dt.date | None, stale: bool
) -> None:
    offer = Offer("p", "i", "t4", 1, None, None, 1.0, None, "", date, "s", True, "")
    assert offer.earliest_day == first
    assert offer.stale(TODAY) is stale


def test_shares_and_bare_gpus_do_not_count() -> None:
    third = next(o for o in load_offers() if o.chips is None)
    assert third.usd_per_chip_h is None
    bare = [o for o in load_offers() if not o.host_included]
    assert len(bare) == 2
    t4 = price_range("t4", TODAY)
    assert t4 is not None
    assert t4.low > min(o.usd_per_chip_h or 9 for o in bare)
