"""Fleets whose failures were published: facts of `data/failures.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import check_known
from chipwise.values import dataclass

TABLE = "catalog/data/failures.toml"


@dataclass(frozen=True, slots=True)
class FailingFleet:
    """Servers with so many `chips` each that were watched for `days`, in which so many `failures` took one away, for
    `repair_h` in the mean (0: not said). `scatter` is the variance over the mean of the servers away at once."""

    id: str
    name: str
    servers: int
    chips: int
    days: float
    failures: int
    source: str
    date: str
    repair_h: float = 0.0
    scatter: float = 1.0

    def bunch(self, servers: float) -> float:
        """The scatter of so many servers: part of a fleet meets that part of those that fail together."""
        return 1.0 + (self.scatter - 1.0) * min(servers / self.servers, 1.0)

    @property
    def chip_mtbf_h(self) -> float:
        """Hours between failures of one chip."""
        return self.servers * self.chips * self.days * 24.0 / self.failures


@per_snapshot
def failing_fleets() -> Mapping[str, FailingFleet]:
    """All fleets by id."""
    document = parse(shipped_text(TABLE))
    return MappingProxyType(
        {name: record(FailingFleet, entry, f"{TABLE}: {name}", id=name) for name, entry in document.items()}
    )


def failing_fleet(name: str) -> FailingFleet:
    """The fleet of that id. Raises `UnknownNameError` with the nearest."""
    fleets = failing_fleets()
    check_known("fleet of known failures", (name,), fleets)
    return fleets[name]
