"""Machines that clouds rent, by the names that clouds give them: `p5.48xlarge`, `a3-highgpu-8g`, `ND96isr_H100_v5`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chipwise.catalog.offer import load_offers
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import is_name
from chipwise.values import dataclass

NAMES = "catalog/data/chip_names.toml"
CLOUDS = frozenset(("aws", "azure", "gcp", "oracle"))
"""Whose machines have names of their own; elsewhere a name describes the machine."""
PREFIXES = frozenset(("standard", "tpu"))


@dataclass(frozen=True, slots=True)
class Rented:
    """A machine for rent: its name, who rents it, and the `chips` of the catalogue's `chip` in it."""

    name: str
    provider: str
    chip: str
    chips: int

    @property
    def priced(self) -> bool:
        """Whether its provider states a price of the chip."""
        offers = (o for o in load_offers() if (o.provider, o.chip) == (self.provider, self.chip))
        return any(o.usd_per_h is not None and not o.doubt for o in offers)


def rented(typed: str) -> tuple[Rented, ...]:
    """The machines that a name means: the one that is called so, else all of a series (`ND96isr`, `p5`), in the order
    of the table. Case and what stands between words do not matter."""
    asked = words_in(typed) if is_name(typed) else ()
    if not asked:
        return ()
    first, *others = asked
    alike = _machines().get(first[:2], {})
    if asked in alike:
        return (alike[asked],)
    return tuple(
        machine
        for words, machine in alike.items()
        if len(first) > 1 and words[0].startswith(first) and set(others) <= set(words[1:])
    )


def words_in(name: str) -> tuple[str, ...]:
    """The words of the name of a machine, those left out that clouds put before any."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    while len(words) > 1 and words[0] in PREFIXES:
        del words[0]
    return tuple(words)


@per_snapshot
def _machines() -> Mapping[str, Mapping[tuple[str, ...], Rented]]:
    """Every machine of a cloud once, by the words of its name, below the two letters that the name begins with."""
    rows: list[dict[str, Any]] = parse(shipped_text(NAMES))["machine"]
    listed = [
        *(
            Rented(o.instance, o.provider, o.chip, o.chips)
            for o in load_offers()
            if o.provider in CLOUDS and o.chips and o.unit is None
        ),
        *(Rented(name, row["provider"], row["chip"], row["chips"]) for row in rows for name in row["names"]),
    ]
    once = {words_in(machine.name): machine for machine in reversed(listed)}
    found: dict[str, dict[tuple[str, ...], Rented]] = {}
    for words, machine in reversed(once.items()):
        found.setdefault(words[0][:2], {})[words] = machine
    return found
