"""Where regions of clouds are: names as AWS, Google Cloud, Azure and smaller sellers write them, recalled from their
pages (2026), with the part of the world and the place, to a degree. A row without a place is a whole part."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping

import numpy as np

from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

EARTH_KM = 6371.0
"""km: mean radius of the earth. Source: IUGG; moves nothing but which region is nearest."""


@dataclass(frozen=True, slots=True)
class Region:
    """A `part` of the world, and the degrees north and east of a place in it; None: all of it."""

    part: str
    latitude: float | None
    longitude: float | None

    @property
    def whole(self) -> bool:
        """Whether it is a whole part of the world."""
        return self.latitude is None

    def km(self, other: Region | None) -> float:
        """How far it is to another on the sphere: 0 where one of them is the whole part that the other is in, infinite
        where that is not known."""
        if other is None or (self.part != other.part and (self.whole or other.whole)):
            return math.inf
        degrees = [self.latitude, self.longitude, other.latitude, other.longitude]
        placed = [x for x in degrees if x is not None]
        if len(placed) < len(degrees):
            return 0.0
        a, b, c, d = np.radians(placed)
        half = np.sin((c - a) / 2) ** 2 + np.cos(a) * np.cos(c) * np.sin((d - b) / 2) ** 2
        return float(2.0 * EARTH_KM * np.arcsin(np.sqrt(half)))


@per_snapshot
def load_regions() -> Mapping[str, Region]:
    """Regions by name."""

    def degrees(text: str) -> float | None:
        return float(text) if text else None

    rows = csv.DictReader(shipped_text("catalog/data/regions.csv").splitlines())
    return {r["region"]: Region(r["part"], degrees(r["latitude"]), degrees(r["longitude"])) for r in rows}


def region_of(name: str) -> Region | None:
    """Where a region is, by the name in an offer, which may say more in brackets; None where that is not known."""
    return load_regions().get(name.partition(" ")[0])
