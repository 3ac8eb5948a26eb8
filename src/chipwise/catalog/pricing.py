"""How a user pays for chips: one choice for a whole plan, turned into a price basis for each chip."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from chipwise.catalog.chips import load_chips
from chipwise.catalog.offer import load_offers
from chipwise.catalog.price import NoPriceError, Own, Rent, own_basis, rent_basis
from chipwise.errors import UnknownNameError

__all__ = ["Pricing"]


@dataclass(frozen=True)
class Pricing:
    """`rent` on demand, `spot`, or `own`. `provider` and `region` narrow offers; `figures` replaces those of
    owning by name: `capex_usd` of a chip, `power_w`, `years`, `utilisation`, `usd_per_kwh`, `pue`, ...

    Raises `UnknownNameError` for a provider without offers, or a region in which it (or nobody) has one."""

    kind: Literal["rent", "spot", "own"] = "rent"
    provider: str = ""
    region: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.provider:
            providers = {o.provider for o in load_offers()}
            if self.provider not in providers:
                raise UnknownNameError("provider", self.provider, providers, "see chipwise offers")
        if self.region:
            offers = (o for o in load_offers() if self.provider in ("", o.provider))
            regions = {region for o in offers for region in o.regions}
            if self.region not in regions:
                kind = f"region of {self.provider}" if self.provider else "region"
                raise UnknownNameError(kind, self.region, regions, "see chipwise offers")

    def basis(self, chip_id: str, today: dt.date) -> Rent | Own | None:
        """What a chip costs this user; None where no price is known.

        Raises `UsageError` for a figure of owning that makes no sense or does not exist.
        """
        if chip_id not in load_chips():
            return None
        try:
            if self.kind == "own":
                return own_basis(chip_id, **self.figures)
            spot = self.kind == "spot"
            return rent_basis(chip_id, today, provider=self.provider, region=self.region, spot=spot)
        except NoPriceError:
            return None
