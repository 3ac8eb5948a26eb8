"""Rental offers: dated list prices of whole instances, and the range that they give for a chip.

List prices are no guarantee. One and the same chip differed 4.6 times between providers in 2026, prices rose
during that year, and some offers come from secondary pages; so offers are shown as a range with its dates,
and never ranked on a difference below `PRICE_NOISE`. A few chips are sold only through reservations and have
no price at all.

What is counted: `chips` are chips of the catalogue, packages. A TPU slice name counts TensorCores for v2 to
v4 and v5p (`tpu-v4-8` is four chips) and chips for v5e and v6e; a TPU v7x chip and an MI250X are one chip
although software sees two devices; for CPU instances a chip is a socket, priced as the nearest one in the
catalogue.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from chipwise.catalog.snapshot import per_snapshot, shipped_text

__all__ = ["PRICE_NOISE", "STALE_DAYS", "Offer", "PriceRange", "load_offers", "price_range"]

PRICE_NOISE = 0.25
"""Relative difference below which two prices count as the same."""

STALE_DAYS = 90
"""Days after which an offer no longer says what a chip costs today."""

JOINED = ("tpu-", "gb200-", "gb300-")
"""Chips whose machines, rented together, form one scale-up domain: slices of TPUs, racks of NVLink."""

_GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Offer:
    """One instance for rent, in US dollars per hour for the whole instance.

    None = not published; `chips` is None where an instance is a share of a chip. `date` is what is known of
    the day of the quote: "2026-07-20", "2026-09", "2026" or "". `host_included` is false where the host is
    billed on top.
    """

    provider: str
    instance: str
    chip: str
    chips: int | None
    vcpus: int | None
    host_memory_bytes: float | None
    usd_per_h: float | None
    spot_usd_per_h: float | None
    region: str
    date: str
    source: str
    host_included: bool
    note: str

    @property
    def usd_per_chip_h(self) -> float | None:
        """On-demand price of one chip with its share of the host."""
        return self.usd_per_h / self.chips if self.usd_per_h is not None and self.chips else None

    @property
    def spot_usd_per_chip_h(self) -> float | None:
        """Spot price of one chip with its share of the host."""
        return self.spot_usd_per_h / self.chips if self.spot_usd_per_h is not None and self.chips else None

    @property
    def holds_any(self) -> bool:
        """Whether a group of any size can be rented of it: a price per chip without a stated host (the provider
        puts as many as asked into one machine), or machines that join into one domain (`JOINED`)."""
        return (self.chips == 1 and self.vcpus is None) or self.chip.startswith(JOINED)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions that the quote names, none where it names none."""
        return tuple(filter(None, self.region.split("/")))

    @property
    def earliest_day(self) -> dt.date | None:
        """The first day that `date` can mean; None for an undated offer."""
        if not self.date:
            return None
        year, month, day = ([int(part) for part in self.date.split("-")] + [1, 1])[:3]
        return dt.date(year, month, day)

    def stale(self, today: dt.date) -> bool:
        """Whether the quote may be older than `STALE_DAYS`; undated offers are."""
        day = self.earliest_day
        return day is None or (today - day).days > STALE_DAYS


@dataclass(frozen=True, slots=True)
class PriceRange:
    """What one chip costs on demand, in US dollars per hour, over all offers that state it.

    `low` and `high` span all offers; `median` is taken over providers (each by the median of its own offers),
    so that one with many sizes does not outvote the rest. `oldest` and `newest` are dates as known, "" if no
    offer has one. `stale` means that not one of the offers is surely recent; `stale_offers` counts those that
    are not, so a range with a fresh quote still shows how much of it is old.
    """

    chip: str
    low: float
    high: float
    median: float
    providers: int
    offers: int
    oldest: str
    newest: str
    stale_offers: int

    @property
    def stale(self) -> bool:
        """No offer of the range is within `STALE_DAYS`."""
        return self.stale_offers == self.offers


def _rows(name: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(shipped_text(f"catalog/data/{name}").splitlines())


def _number(text: str) -> float | None:
    return float(text) if text else None


@per_snapshot
def load_offers() -> tuple[Offer, ...]:
    """All bundled offers, in the order of the table; read once."""
    sources = {row["key"]: row["ref"] for row in _rows("offer_sources.csv")}
    offers = []
    for row in _rows("offers.csv"):
        memory = _number(row["host_mem_gib"])
        offers.append(
            Offer(
                provider=row["provider"],
                instance=row["instance"],
                chip=row["chip"],
                chips=int(row["chips"]) if row["chips"] else None,
                vcpus=int(row["vcpus"]) if row["vcpus"] else None,
                host_memory_bytes=None if memory is None else memory * _GIB,
                usd_per_h=_number(row["on_demand_usd_per_h"]),
                spot_usd_per_h=_number(row["spot_usd_per_h"]),
                region=row["region"],
                date=row["date"],
                source=sources[row["source"]],
                host_included=row["host_included"] != "no",
                note=row["note"],
            )
        )
    return tuple(offers)


@per_snapshot
def price_range(chip_id: str, today: dt.date) -> PriceRange | None:
    """The on-demand range of a chip, judged on the day `today`; None where no offer has a price.

    Offers without their host and offers of a share of a chip are left out. Announced chips have no offers.
    """
    by_provider: dict[str, list[float]] = {}
    dated: list[tuple[dt.date, str]] = []
    stale = 0
    for offer in load_offers():
        price = offer.usd_per_chip_h
        if offer.chip != chip_id or price is None or not offer.host_included:
            continue
        by_provider.setdefault(offer.provider, []).append(price)
        stale += offer.stale(today)
        if offer.earliest_day is not None:
            dated.append((offer.earliest_day, offer.date))
    if not by_provider:
        return None
    prices = [price for group in by_provider.values() for price in group]
    return PriceRange(
        chip=chip_id,
        low=min(prices),
        high=max(prices),
        median=median(median(group) for group in by_provider.values()),
        providers=len(by_provider),
        offers=len(prices),
        oldest=min(dated)[1] if dated else "",
        newest=max(dated)[1] if dated else "",
        stale_offers=stale,
    )
