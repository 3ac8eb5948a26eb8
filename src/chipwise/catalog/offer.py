"""Rental offers: dated list prices of whole instances or of single chips, and who may be believed today.

List prices are no guarantee. One and the same chip differed 4.6 times between providers in 2026, prices rose
during that year, and some offers come from secondary pages; so a price is shown with its range and its date,
and never ranked on a difference below `equal` (`preferences`). A few chips are sold only through reservations and have
no price at all.

What is counted: `chips` are chips of the catalogue, packages. A TPU slice name counts TensorCores for v2 to
v4 and v5p (`tpu-v4-8` is four chips) and chips for v5e and v6e; a TPU v7x chip and an MI250X are one chip
although software sees two devices; for CPU instances a chip is a socket, priced as the nearest one in the
catalogue.

The shipped table is `data/offers.csv`; the user's own, of the same columns, stands beside his evidence
(`own_table`). A newer row of the same provider, chip and size replaces older ones, whichever table it is in.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from chipwise.catalog.files import data_dir, read_text
from chipwise.catalog.parsed import parse
from chipwise.catalog.preferences import preferences
from chipwise.catalog.snapshot import current, own_exists, per_snapshot, shipped_text
from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass

LARGEST_BYTES = 64_000_000
"""Of a table of prices."""
MARKETPLACES = frozenset(("vast.ai", "runpod-community", "akash", "openrelay"))
"""Providers of single machines of others: nobody can order many alike of them."""
CLOUDS = frozenset(("aws", "azure", "gcp", "oracle"))
"""Providers with regions full of each kind of machine: what one of them alone rents out is not rare."""
JOINED = ("tpu-", "gb200-", "gb300-")
"""Chips whose machines, rented together, form one scale-up domain: slices of TPUs, racks of NVLink."""

COLUMNS = (
    "provider", "instance", "chip", "chips", "unit", "vcpus", "host_mem_gib", "on_demand_usd_per_h",
    "spot_usd_per_h", "region", "date", "source", "host_included", "doubt", "note",
)  # fmt: skip
"""Columns of a table of offers. `unit`: smallest order of an offer that is priced per chip; blank: the
instance itself. `doubt`: why the price is listed but not counted."""

_GIB = 2.0**30


def earliest_day(date: str) -> dt.date | None:
    """The first day that "2026-07-20", "2026-09" or "2026" can mean; None for ""."""
    if not date:
        return None
    year, month, day = ([int(part) for part in date.split("-")] + [1, 1])[:3]
    return dt.date(year, month, day)


def age_days(date: str, today: dt.date) -> int | None:
    """Days since the first day that a date can mean; None for ""."""
    day = earliest_day(date)
    return None if day is None else (today - day).days


@dataclass(frozen=True, slots=True)
class Offer:
    """One instance for rent, in US dollars per hour for the whole instance.

    None = not published; `chips` is None where an instance is a share of a chip. `unit` is the smallest order of
    an offer priced per chip, None where the instance is what one orders. `date` is what is known of the day of the
    quote: "2026-07-20", "2026-09", "2026" or "". `host_included` is false where the host is billed on top; `doubt`
    says why a price does not count ("" = it does).
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
    host_included: bool = True
    note: str = ""
    unit: int | None = None
    doubt: str = ""

    @property
    def priced(self) -> bool:
        """Whether it says a price."""
        return self.usd_per_h is not None or self.spot_usd_per_h is not None

    @property
    def usd_per_chip_h(self) -> float | None:
        """On-demand price of one chip with its share of the host."""
        return self.usd_per_h / self.chips if self.usd_per_h is not None and self.chips else None

    @property
    def spot_usd_per_chip_h(self) -> float | None:
        """Spot price of one chip with its share of the host."""
        return self.spot_usd_per_h / self.chips if self.spot_usd_per_h is not None and self.chips else None

    @property
    def smallest(self) -> int:
        """Chips of the smallest order."""
        return self.unit or self.chips or 1

    @property
    def holds_any(self) -> bool:
        """Whether a group of any size can be rented of it: a price per chip (the provider puts as many as asked
        into one machine), or machines that join into one domain (`JOINED`)."""
        return self.unit is not None or self.chip.startswith(JOINED)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions that the quote names, none where it names none."""
        return tuple(filter(None, self.region.split("/")))

    @property
    def earliest_day(self) -> dt.date | None:
        """The first day that `date` can mean; None for an undated offer."""
        return earliest_day(self.date)

    def stale(self, today: dt.date) -> bool:
        """Whether the quote may be older than `stale_days` (`preferences`); undated offers are."""
        age = age_days(self.date, today)
        return age is None or age > preferences().stale_days

    @property
    def size(self) -> tuple[str, str, int | None, bool]:
        """What a newer row has to share with this one to replace it: provider, chip, chips, priced per chip."""
        return self.provider, self.chip, self.chips, self.unit is not None


def own_table() -> Path:
    """The user's own table of offers; it need not exist."""
    return data_dir() / "offers.csv"


@per_snapshot
def load_offers() -> tuple[Offer, ...]:
    """All offers in force: the bundled table and the user's own, without what newer rows replaced."""
    sources = {
        row["key"]: row["ref"] for row in csv.DictReader(shipped_text("catalog/data/offer_sources.csv").splitlines())
    }
    shipped = read_offers(shipped_text("catalog/data/offers.csv"), "offers.csv", sources)
    return in_force((*chain.from_iterable(map(_as_sold, shipped)), *own_offers()))


def _as_sold(offer: Offer) -> tuple[Offer, ...]:
    """The machines that one can order, where a provider's price is told per chip and it does not sell every number."""
    sold = _order_sizes().get(offer.provider, {})
    if offer.unit != 1 or offer.chip not in sold.get("chips", ()):
        return (offer,)
    usd = (offer.usd_per_h, offer.spot_usd_per_h)
    return tuple(
        replace(offer, chips=n, unit=None, usd_per_h=usd[0] and n * usd[0], spot_usd_per_h=usd[1] and n * usd[1])
        for n in sold["sizes"]
    )


@per_snapshot
def _order_sizes() -> Mapping[str, Mapping[str, Any]]:
    """Chips and the numbers of them that a provider rents together, by provider."""
    return parse(shipped_text("catalog/data/order_sizes.toml"))


def offers_of(chip_id: str) -> tuple[Offer, ...]:
    """The offers in force of one chip."""
    return _by_chip().get(chip_id, ())


def rare(chip_id: str) -> bool:
    """Whether a chip is for rent by marketplaces alone, or besides by one provider alone that is none of `CLOUDS`:
    how many such machines are free nobody says, and no other has one."""
    sellers = {o.provider for o in offers_of(chip_id)} - MARKETPLACES
    return len(sellers) <= 1 and not sellers & CLOUDS


@per_snapshot
def _by_chip() -> Mapping[str, tuple[Offer, ...]]:
    found: dict[str, tuple[Offer, ...]] = {}
    for offer in load_offers():
        found[offer.chip] = (*found.get(offer.chip, ()), offer)
    return found


def own_offers() -> tuple[Offer, ...]:
    """The rows of the user's own table; none where there is none, or a saved answer was made without one."""
    path = own_table()
    known = str(path) in current().given if current().given else own_exists(path)
    return read_offers(read_text(path, LARGEST_BYTES, "your own table of prices"), str(path)) if known else ()


def _newest(table: Sequence[Offer]) -> dict[tuple[object, ...], dt.date]:
    """The day of the newest price of a provider, chip and size, on demand and spot apart."""
    newest: dict[tuple[object, ...], dt.date] = {}
    for o in table:
        for kind, usd in (("rent", o.usd_per_h), ("spot", o.spot_usd_per_h)):
            if usd is not None and not o.doubt:
                key = (*o.size, kind)
                newest[key] = max(newest.get(key, dt.date.min), o.earliest_day or dt.date.min)
    return newest


def in_force(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Offers without the prices that a newer row of the same provider, chip and size replaces, in their order.

    On-demand and spot prices replace each other apart; a doubtful row replaces none. Of one instance in
    one region on one day the last row stands.
    """
    table = tuple({(*o.size, o.instance, o.region, o.date, o.doubt): o for o in offers}.values())
    newest = _newest(table)
    kept = []
    for o in table:
        day = o.earliest_day or dt.date.min
        rent, spot = (day < newest.get((*o.size, kind), dt.date.min) for kind in ("rent", "spot"))
        left = o
        if rent or spot:
            usd, on_spot = None if rent else o.usd_per_h, None if spot else o.spot_usd_per_h
            left = replace(o, usd_per_h=usd, spot_usd_per_h=on_spot)
        if left.priced or not o.priced:
            kept.append(left)
    return tuple(kept)


def counted(offers: Iterable[Offer], today: dt.date, *, spot: bool = False) -> tuple[tuple[Offer, ...], bool]:
    """Of the offers of a chip those that price it on a day, and whether they are stale.

    They state a price of whole chips with their host, and nothing speaks against it; those of the last `stale_days`,
    and older ones only where there is none.
    """
    priced = tuple(
        o
        for o in offers
        if o.host_included and not o.doubt and (o.spot_usd_per_chip_h if spot else o.usd_per_chip_h) is not None
    )
    fresh = tuple(o for o in priced if not o.stale(today))
    return (fresh, False) if fresh else (priced, True)


def read_offers(text: str, origin: str, sources: Mapping[str, str] | None = None) -> tuple[Offer, ...]:
    """The offers of a CSV text with `COLUMNS`; those after `chips` may be missing. `sources` are citations by key.

    Raises `UsageError`, naming file, line and column, for an unknown or missing column or a value that is none.
    """
    reader = csv.DictReader(io.StringIO(text))
    header = tuple(reader.fieldnames or ())
    strange = [c for c in header if c not in COLUMNS]
    missing = [c for c in ("provider", "chip", "chips", "date") if c not in header]
    if strange or missing:
        wrong = f"unknown column '{shorten(strange[0], 40)}'" if strange else f"no column '{missing[0]}'"
        raise UsageError(f"{origin}: {wrong}", f"columns: {', '.join(COLUMNS)}")
    return tuple(_offer(row, f"{origin}, line {reader.line_num}", sources) for row in reader if any(row.values()))


def _offer(row: Mapping[str, str | None], where: str, sources: Mapping[str, str] | None) -> Offer:
    def text(column: str) -> str:
        return (row.get(column) or "").strip()

    def number(column: str) -> float | None:
        said = text(column)
        try:
            value = float(said) if said else None
        except ValueError:
            value = -1.0
        if value is not None and not 0 < value < 1e9:
            raise UsageError(f"{where}: {column} must be a positive number, not '{shorten(said, 40)}'")
        return value

    def count(column: str) -> int | None:
        value = number(column)
        if value is not None and value != int(value):
            raise UsageError(f"{where}: {column} must be a whole number, not {value:g}")
        return None if value is None else int(value)

    for column in ("provider", "chip"):
        if not text(column):
            raise UsageError(f"{where}: no {column}")
    memory, source = number("host_mem_gib"), text("source")
    offer = Offer(
        provider=text("provider"),
        instance=text("instance"),
        chip=text("chip"),
        chips=count("chips"),
        vcpus=count("vcpus"),
        host_memory_bytes=None if memory is None else memory * _GIB,
        usd_per_h=number("on_demand_usd_per_h"),
        spot_usd_per_h=number("spot_usd_per_h"),
        region=text("region"),
        date=text("date"),
        source=sources[source] if sources is not None else source,
        host_included=text("host_included") != "no",
        note=text("note"),
        unit=count("unit"),
        doubt=text("doubt"),
    )
    try:
        _ = offer.earliest_day
    except ValueError:
        raise UsageError(f"{where}: date '{shorten(offer.date, 40)}' is not a day", "as in 2026-11-20") from None
    return offer


def write_offers(offers: Iterable[Offer]) -> str:
    """The same as CSV text, which `read_offers` reads."""

    def plain(value: float | None) -> str:
        return "" if value is None else f"{value:.10g}"

    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for o in offers:
        memory = None if o.host_memory_bytes is None else o.host_memory_bytes / _GIB
        rows.writerow((
            o.provider, o.instance, o.chip, plain(o.chips), plain(o.unit), plain(o.vcpus), plain(memory),
            plain(o.usd_per_h), plain(o.spot_usd_per_h), o.region, o.date, o.source,
            "" if o.host_included else "no", o.doubt, o.note,
        ))  # fmt: skip
    return out.getvalue()
