"""The user's own offers: price tables of other tools, read whole or not at all, and single prices.

Three kinds of CSV are told apart by their columns: chipwise's own (`offer.COLUMNS`), SkyPilot's catalogues
(`catalogs/v*/PROVIDER/vms.csv`: InstanceType, AcceleratorName, AcceleratorCount, Price, SpotPrice, Region) and those of
gpuhunt (instance_name, gpu_name, gpu_count, gpu_memory, price, spot, location). Prices are US dollars per hour. The
network is used for a URL that was given, and never else.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from chipwise.catalog.chips import exact_chip, get_chip
from chipwise.catalog.files import read_text, write_own
from chipwise.catalog.offer import (
    COLUMNS,
    LARGEST_BYTES,
    Offer,
    in_force,
    load_offers,
    own_offers,
    own_table,
    read_offers,
    write_offers,
)
from chipwise.errors import CommandText, Sentence, Setting, UnknownNameError, UsageError, shorten
from chipwise.values import dataclass

WAIT_S = 30.0
KINDS = {
    "SkyPilot": ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region"),
    "gpuhunt": ("instance_name", "gpu_name", "gpu_count", "price", "location"),
    "chipwise": ("provider", "chip", "chips", "date"),
}
"""Columns by which a kind of table is known."""

PLAIN = {"a100": "a100-sxm4-40gb", "v100": "v100-sxm2-16gb"}
"""What SkyPilot means by a name without its memory, where chipwise's own name means the larger part."""


@dataclass(frozen=True)
class ImportedOffers:
    """Offers that were read; `unknown` counts the rows of accelerators that the catalogue does not hold, by name."""

    kind: str
    offers: tuple[Offer, ...]
    unknown: Mapping[str, int]


def text_of(source: str) -> str:
    """The text of a file, or of a URL that begins with http:// or https://.

    Raises `UsageError` for what cannot be read, or fetched, saying to download it.
    """
    if not re.match(r"https?://", source, re.IGNORECASE):
        return read_text(Path(source), LARGEST_BYTES, "a CSV table of prices")
    import urllib.error  # only here is the network used
    import urllib.request

    try:
        with urllib.request.urlopen(source, timeout=WAIT_S) as page:
            content = page.read(LARGEST_BYTES + 1)
    except (urllib.error.URLError, TimeoutError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        why = shorten(str(getattr(reason, "strerror", None) or reason), 100)
        raise UsageError(
            f"{shorten(source)}: cannot be fetched: {why}",
            Sentence("download it, then: ", CommandText("offers update --from FILE")),
        ) from None
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{shorten(source)}: more than {LARGEST_BYTES / 1e6:g} MB", "give one provider's table")
    try:
        return str(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"{shorten(source)}: not a text", "give the address of a CSV table") from None


def read_prices(text: str, origin: str, day: dt.date, provider: str = "") -> ImportedOffers:
    """The offers of a table of any known kind, read on `day`. `provider` names whose prices they are where the table
    does not; the folder or name of the file is tried first.

    Raises `UsageError`, naming the line, for a table of no known kind, a row that is wrong, or a chip of the user's
    table that does not exist: nothing is taken over then.
    """
    kind = _kind(text, origin)
    if kind == "chipwise":
        return ImportedOffers(kind, _own_offers(text, origin), {})
    rows = list(enumerate(csv.DictReader(io.StringIO(text)), start=2))
    read = _skypilot if kind == "SkyPilot" else _gpuhunt
    unknown: Counter[str] = Counter()
    found: dict[tuple[str, str, str, int], Offer] = {}
    named = kind == "gpuhunt" and all((row.get("provider") or "").strip() for _, row in rows)
    whose = provider or ("" if named else _provider_of(origin, kind))
    for line, row in rows:
        where = f"{shorten(origin)}, line {line}"
        name, offer = read(row, where, whose, day, origin)
        if offer is None:
            if name:
                unknown[name] += 1
            continue
        key = (offer.provider, offer.instance, offer.region, offer.chips or 0)
        seen = found.get(key)
        found[key] = offer if seen is None else _cheaper(seen, offer)
    return ImportedOffers(kind, tuple(_regions_joined(found.values())), dict(unknown.most_common()))


def _kind(text: str, origin: str) -> str:
    """Whose table it is, by its columns. Raises `UsageError` for nobody's."""
    header = next(csv.reader(io.StringIO(text)), [])
    kind = next((name for name, columns in KINDS.items() if set(columns) <= set(header)), "")
    if not kind:
        known = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in KINDS.items())
        raise UsageError(f"{shorten(origin)}: no table of prices that is known", f"by their columns: {known}")
    return kind


def _own_offers(text: str, origin: str) -> tuple[Offer, ...]:
    """The offers of a table as chipwise writes it. Raises `UsageError` for a chip by another name than its id."""
    offers = read_offers(text, origin)
    for chip in dict.fromkeys(offer.chip for offer in offers):
        if get_chip(chip).id != chip:
            raise UsageError(f"{origin}: chip '{chip}'", f"write it as {get_chip(chip).id}")
    return offers


def one_offer(chip: str, usd: float, provider: str, day: dt.date, **said: object) -> Offer:
    """A price of the user's: dollars per hour of `chips` chips (default 1: per chip, in orders of `unit`).

    Raises `UsageError` for a price or count that makes no sense, `UnknownNameError` for an unknown chip.
    """
    values = {"chips": 1, "unit": None, "spot": None, "region": "", "note": "", **said}
    row = {
        "provider": provider, "instance": "own price", "chip": get_chip(chip).id, "chips": values["chips"],
        "unit": values["unit"] or (1 if values["chips"] == 1 else ""), "on_demand_usd_per_h": usd,
        "spot_usd_per_h": values["spot"] or "", "region": values["region"], "date": day.isoformat(),
        "source": "given by the user", "note": values["note"],
    }  # fmt: skip
    out = io.StringIO()
    rows = csv.DictWriter(out, [c for c in COLUMNS if c in row])
    rows.writeheader()
    rows.writerow(row)
    return read_offers(out.getvalue(), "the offer")[0]


def keep(offers: Iterable[Offer]) -> tuple[Path, int]:
    """Add offers to the user's own table, in which newer ones replace older ones of the same provider, chip and size;
    returns the table and how many rows it has. It is written whole or not at all.

    Raises `UsageError` where it cannot be written.
    """
    path = own_table()
    kept = in_force((*own_offers(), *offers))
    write_own(path, write_offers(kept))
    return path, len(kept)


def _provider_of(origin: str, kind: str) -> str:
    """Whose prices a table holds, by its folder (SkyPilot) or its name (gpuhunt)."""
    parts = re.split(r"[/\\]", origin)
    name = parts[-2] if kind == "SkyPilot" and len(parts) > 1 else parts[-1].partition(".")[0]
    known = {o.provider for o in load_offers()}
    if name.lower() not in known:
        raise UsageError(
            f"{shorten(origin)}: it does not say whose prices these are",
            Sentence("add ", Setting("provider", "NAME"), ", as in ", Setting("provider", "aws")),
        )
    return name.lower()


Read = tuple[str, Offer | None]


def _skypilot(row: Mapping[str, str], where: str, provider: str, day: dt.date, origin: str) -> Read:
    """A row of SkyPilot's catalogue: the name of its accelerator, and the offer if that is a chip with a price."""
    name = (row["AcceleratorName"] or "").strip()
    if not name or not (row["Price"] or row.get("SpotPrice")):
        return "", None
    chip = _chip(PLAIN.get(name.lower(), name))
    count = _number(row["AcceleratorCount"], f"{where}: AcceleratorCount")
    if chip is None or count is None or count != int(count):
        return name, None  # a slice of a chip, or one that is not known
    return name, Offer(
        provider=provider,
        instance=row["InstanceType"],
        chip=chip,
        chips=int(count),
        vcpus=_whole(row.get("vCPUs"), f"{where}: vCPUs"),
        host_memory_bytes=_gib(row.get("MemoryGiB"), f"{where}: MemoryGiB"),
        usd_per_h=_number(row["Price"], f"{where}: Price"),
        spot_usd_per_h=_number(row.get("SpotPrice"), f"{where}: SpotPrice"),
        region=row["Region"],
        date=day.isoformat(),
        source=origin,
        host_included=bool(row["InstanceType"]),
    )


def _gpuhunt(row: Mapping[str, str], where: str, provider: str, day: dt.date, origin: str) -> Read:
    """A row of gpuhunt: the name of its accelerator, and the offer if that is a chip."""
    name, count = (row["gpu_name"] or "").strip(), _whole(row["gpu_count"], f"{where}: gpu_count")
    if not name or not count:
        return "", None
    memory = (row.get("gpu_memory") or "").strip()
    sized = f" {float(memory):g}GB" if re.fullmatch(r"\d+(\.\d+)?", memory) else ""
    form = " PCIe" if "pcie" in row["instance_name"].lower() else ""  # the name of the chip leaves it out
    known = (_chip(f"{name}{more}") for more in dict.fromkeys((form + sized, form, sized, "")))
    chip = next((found for found in known if found), None)
    price = _number(row["price"], f"{where}: price")
    if chip is None:
        return name, None
    spot = (row.get("spot") or "").strip().lower() in ("true", "1", "yes")
    return name, Offer(
        provider=(row.get("provider") or provider).lower(),
        instance=row["instance_name"],
        chip=chip,
        chips=count,
        vcpus=_whole(row.get("cpu"), f"{where}: cpu"),
        host_memory_bytes=_gib(row.get("memory"), f"{where}: memory"),
        usd_per_h=None if spot else price,
        spot_usd_per_h=price if spot else None,
        region=row["location"],
        date=day.isoformat(),
        source=origin,
    )


def _chip(name: str) -> str | None:
    try:
        return exact_chip(name).id
    except UnknownNameError:
        return None


def _number(text: str | None, what: str) -> float | None:
    said = (text or "").strip()
    if not said:
        return None
    try:
        value = float(said)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise UsageError(f"{what} must be a number of 0 or more, not '{shorten(said, 40)}'", "nothing was taken over")
    return value or None


def _whole(text: str | None, what: str) -> int | None:
    value = _number(text, what)
    return None if value is None else int(value)


def _gib(text: str | None, what: str) -> float | None:
    value = _number(text, what)
    return None if value is None else value * 2.0**30


def _cheaper(a: Offer, b: Offer) -> Offer:
    """Of two zones of a region the cheaper price of each kind."""

    def least(x: float | None, y: float | None) -> float | None:
        return min((v for v in (x, y) if v is not None), default=None)

    return replace(
        a, usd_per_h=least(a.usd_per_h, b.usd_per_h), spot_usd_per_h=least(a.spot_usd_per_h, b.spot_usd_per_h)
    )


def _regions_joined(offers: Iterable[Offer]) -> Iterator[Offer]:
    """Regions of one price in one row."""
    same: dict[Offer, list[str]] = {}
    for offer in offers:
        same.setdefault(replace(offer, region=""), []).append(offer.region)
    for offer, regions in same.items():
        yield replace(offer, region="/".join(filter(None, regions)))
