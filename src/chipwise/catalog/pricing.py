"""How a user pays for chips: one choice for a whole plan, turned into a price basis for each chip."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from chipwise.catalog.chips import load_chips
from chipwise.catalog.price import NoPriceError, Own, Rent, own_basis, rent_basis

__all__ = ["Pricing"]


@dataclass(frozen=True)
class Pricing:
    """`rent` on demand, `spot`, or `own`. `provider` and `region` narrow offers; `figures` replaces those of
    owning by name: `capex_usd` of a chip, `power_w`, `years`, `utilisation`, `usd_per_kwh`, `pue`, ..."""

    kind: Literal["rent", "spot", "own"] = "rent"
    provider: str = ""
    region: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

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
