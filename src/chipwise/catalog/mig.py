"""Instances that a chip can be cut into, each with compute and memory of its own (MIG): facts of `data/mig.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text

TABLE = "catalog/data/mig.toml"


@dataclass(frozen=True, slots=True)
class _Cuts:
    """How some chips can be cut: an entry of the table."""

    chips: tuple[str, ...]
    units: int
    memory: int
    profiles: Mapping[str, tuple[int, int]]
    source: str
    date: str
    whole: float = 1.0


@dataclass(frozen=True, slots=True)
class Instance:
    """A profile: the share of a chip's compute (`compute`), of its memory and bandwidth (`memory`), and the `parts` of
    its units and of its memory that it takes of all that can be dealt out (1, 1)."""

    name: str
    compute: float
    memory: float
    parts: tuple[float, float]


@per_snapshot
def _by_chip() -> Mapping[str, tuple[Instance, ...]]:
    found: dict[str, tuple[Instance, ...]] = {}
    for name, entry in parse(shipped_text(TABLE)).items():
        cuts = record(_Cuts, entry, f"{TABLE}: {name}")
        sizes = [(n, units / cuts.units, parts / cuts.memory) for n, (units, parts) in cuts.profiles.items()]
        cut = tuple(Instance(n, cuts.whole * u, m, (u, m)) for n, u, m in sizes)
        found |= dict.fromkeys(cuts.chips, cut)
    return found


def instances_of(chip: str) -> tuple[Instance, ...]:
    """The profiles of a chip by id, small ones first; none where it cannot be cut."""
    return _by_chip().get(chip, ())


def fit_together(instances: Iterable[Instance]) -> bool:
    """Whether one chip holds all of these instances at once."""
    some = tuple(instances)
    return all(sum(i.parts[axis] for i in some) <= 1.0 + 1e-9 for axis in (0, 1))
