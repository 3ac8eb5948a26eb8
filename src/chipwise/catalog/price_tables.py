"""Price tables: tokens from an API, purchases that were read, and the stated assumptions of owning."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from chipwise.catalog.chip import Provenance, Source
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text

__all__ = ["ApiPrice", "Assumption", "Capex", "load_assumptions", "load_capex", "load_token_prices"]


@dataclass(frozen=True, slots=True)
class ApiPrice:
    """The price of tokens from a vendor's API, in dollars per million. It is no cost of a chip."""

    provider: str
    chip: str
    model: str
    input_usd_per_million: float
    output_usd_per_million: float
    cached_usd_per_million: float | None
    max_input_tokens: int | None
    deprecation_date: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Assumption:
    """A stated default of owning, and where it comes from."""

    value: float
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Capex:
    """A purchase price that was read, for `chips` chips: `card` alone, or the whole `machine`."""

    chip: str
    covers: Literal["card", "machine"]
    chips: int
    low_usd: float
    high_usd: float
    kind: str
    provenance: Provenance

    @property
    def usd_per_chip(self) -> float:
        """Middle of the range, per chip."""
        return (self.low_usd + self.high_usd) / 2 / self.chips


@per_snapshot
def load_assumptions() -> Mapping[str, Assumption]:
    """The stated defaults of owning, by name."""
    document = _ownership()
    return MappingProxyType(
        {
            name: Assumption(float(row["value"]), _provenance(row, document))
            for name, row in document["assumptions"].items()
        }
    )


@per_snapshot
def load_capex() -> tuple[Capex, ...]:
    """All purchase prices that were read."""
    document = _ownership()
    return tuple(
        Capex(
            chip=row["chip"],
            covers=row["covers"],
            chips=row["chips"],
            low_usd=float(row["usd"][0]),
            high_usd=float(row["usd"][1]),
            kind=row["kind"],
            provenance=_provenance(row, document),
        )
        for row in document["capex"]
    )


@per_snapshot
def load_token_prices() -> tuple[ApiPrice, ...]:
    """All token prices, in the order of the file."""
    text = shipped_text("catalog/data/token_prices.csv")
    return tuple(
        ApiPrice(
            provider=row["provider"],
            chip=row["chip"],
            model=row["model"],
            input_usd_per_million=float(row["usd_per_m_input"]),
            output_usd_per_million=float(row["usd_per_m_output"]),
            cached_usd_per_million=float(row["usd_per_m_cached_input"])
            if row["usd_per_m_cached_input"]
            else None,
            max_input_tokens=int(row["max_input_tokens"]) if row["max_input_tokens"] else None,
            deprecation_date=row["deprecation_date"] or None,
            source=Source(
                " ".join(part for part in (row["source"], row["vendor_page"]) if part), "2026-11-20"
            ),
        )
        for row in csv.DictReader(io.StringIO(text))
    )


@per_snapshot
def _ownership() -> dict[str, Any]:
    return parse(shipped_text("catalog/data/ownership.toml"))


def _provenance(row: Mapping[str, Any], document: Mapping[str, Any]) -> Provenance:
    listed = (document["sources"][key] for key in row["sources"])
    return Provenance(
        tuple(Source(s["ref"], s.get("date")) for s in listed), row["grade"], row.get("note", "")
    )
