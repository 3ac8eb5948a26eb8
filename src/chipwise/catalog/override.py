"""A chip with figures replaced by the user's own.

Here too are the instances that a chip can be cut into, each with compute and memory of its own (MIG): facts of
`data/mig.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from chipwise.catalog.chip import Chip, Link, Provenance, Source
from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError, check_known, shorten
from chipwise.units import format_bytes, parse_quantity
from chipwise.values import dataclass

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


GIVEN = Provenance((Source("given by the user", None),), "assumed")

SETTABLE: Mapping[str, str] = {
    "memory": "B",
    "hbm": "B/s",
    "bandwidth": "B/s",
    "link": "B/s",
    "pairwise": "B/s",
    "scaleout": "B/s",
    "staged": "B/s",
    "host": "B/s",
    "tdp": "W",
    "system": "B",
} | dict.fromkeys(("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"), "FLOP/s")
"""What `--set` takes, with the dimension of each: memory capacity and bandwidth (`hbm` is `bandwidth`), links
per direction, matrix peaks by data type; `system` is what display and operating system keep of the memory; `staged` is
the rate of cards that reach each other through the host's memory alone, without the bridge that joins two of some."""
FIELDS: Mapping[str, str] = {
    "system": "system_bytes",
    "scaleout": "scaleout_bytes_per_s",
    "staged": "staged_bytes_per_s",
    "tdp": "tdp_w",
}
"""Of these the figures that are a field of the chip."""
BRIDGED = 2
"""cards: that a bridge joins. Exact: bridges have two ends; moves what `staged` means for cards that have one."""


def told(changes: Mapping[str, str] | None, what: str = "chips") -> tuple[str, ...]:
    """The user's own figures of `what` as a line of assumptions; none without any."""
    given = ", ".join(f"{name} {text}" for name, text in (changes or {}).items())
    return (f"{what}: {given}, as given",) if given else ()


@dataclass(frozen=True, slots=True)
class Share:
    """What other work leaves of a chip: a renderer, a desktop, other models. `gpu` of the time of its units and its
    memory's bandwidth, `memory_bytes` of its capacity, or the part `memory` of it (None: all of it); or an `instance`
    that it is cut into ("": it is whole)."""

    gpu: float = 1.0
    memory_bytes: float | None = None
    memory: float | None = None
    instance: str = ""

    def of(self, chip: Chip) -> Chip:
        """The chip as a program sees it that gets no more: every rate that any product runs at, its clock and its
        bandwidth less by the same factor, and a smaller memory; an instance has its own compute and bandwidth.

        Time is shared, so that work takes 1 / `gpu` as long; waits for the other program's kernels to end are left out.
        Raises `UsageError` for more memory than the chip has, and for an instance that it is not cut into.
        """
        if self == Share() or chip.kind == "cpu":
            return chip
        if self.instance:
            cut = self._cut(chip)
            return _left(chip, cut.compute, cut.memory, cut.memory * chip.memory.found_bytes)
        held = self.memory_bytes if self.memory is None else self.memory * chip.memory.found_bytes
        capacity = chip.memory.found_bytes
        if self.memory_bytes is not None and capacity and self.memory_bytes > capacity:
            what = f"--share memory={format_bytes(self.memory_bytes)}: {chip.id} has {format_bytes(capacity)}"
            raise UsageError(what, "at most what it has", field="share")
        return _left(chip, self.gpu, self.gpu, held)

    def _cut(self, chip: Chip) -> Instance:
        cuts = {cut.name: cut for cut in instances_of(chip.id)}
        if self.instance not in cuts:
            hint = f"one of {', '.join(cuts)}" if cuts else "gpu=50%,memory=50% shares its time"
            what = f"--share mig={shorten(self.instance)}: {chip.id} has no such instance"
            raise UsageError(what, hint, field="share")
        return cuts[self.instance]

    @property
    def words(self) -> tuple[str, ...]:
        """The share as a line of assumptions, with what a renderer that has the rest may take; none where nothing else
        runs."""
        if self == Share():
            return ()
        if self.instance:
            return (f"the chip is cut: the model gets its instance {self.instance} (MIG)",)
        parts = [f"{self.gpu:.0%} of the time of its units and of its bandwidth"] if self.gpu < 1.0 else []
        parts += [f"{format_bytes(self.memory_bytes)} of its memory"] if self.memory_bytes is not None else []
        parts += [f"{self.memory:.0%} of its memory"] if self.memory is not None else []
        said = f"the chip is shared: the model gets {' and '.join(parts)}"
        if self.gpu < 1.0:
            rest = 1.0 - self.gpu
            said += f"; while it works, a renderer's frame takes {1.0 / rest:.3g} times as long: 60 a second if it "
            said += f"takes {1e3 * rest / 60.0:.3g} ms alone"
        return (f"{said}; waits for other work are left out",)


def _left(chip: Chip, compute: float, bandwidth: float, held: float | None) -> Chip:
    """The chip with these parts of its rates and of its bandwidth, and so many bytes of memory (None: all)."""
    memory, unit = chip.memory, chip.matrix_unit
    changes: dict[str, Any] = {}
    if memory.bytes_per_s is not None:
        changes["bytes_per_s"] = memory.bytes_per_s * bandwidth
    if held:
        changes |= {"label_bytes": held, "usable_bytes": held}
    clocks = {
        name: value * compute
        for name in ("peak_clock_hz", "boost_clock_hz")
        if (value := getattr(unit, name)) is not None
    }
    return replace(
        chip,
        tiers=(replace(memory, **changes), *chip.tiers[1:]),
        matrix={name: rate * compute for name, rate in chip.matrix.items()},
        vector={name: rate * compute for name, rate in chip.vector.items()},
        matrix_unit=replace(unit, **clocks),
    )


def _unbridged(chip: Chip) -> Link | None:
    """The links of a chip, less a bridge between two."""
    return None if chip.scaleup is not None and chip.scaleup.domain == BRIDGED else chip.scaleup


def with_figures(chip: Chip, changes: Mapping[str, str]) -> Chip:
    """The chip with figures replaced, as in `{"hbm": "4TB/s", "bf16": "1.2 PFLOPS"}`.

    Raises `UnknownNameError` for a figure that cannot be set, `UsageError` for a value that is none.
    """
    fields: dict[str, Any] = {"own": dict(chip.own), "figures": dict(chip.figures), "matrix": dict(chip.matrix)}
    memory = chip.memory
    links = {"link": _unbridged(chip) if "staged" in changes else chip.scaleup, "host": chip.host}
    check_known("figure to set", changes, SETTABLE)
    for name, text in changes.items():
        value = parse_quantity(text, SETTABLE[name], name, low=0.0 if name == "system" else 1.0, high=1e20)
        if name == "memory":
            memory = replace(memory, label_bytes=value, usable_bytes=value)
        elif name in ("hbm", "bandwidth"):
            memory = replace(memory, bytes_per_s=value)
        elif name == "pairwise":
            links["link"] = replace(links["link"] or Link("given", value), pairwise_bytes_per_s=value)
        elif name in links:
            links[name] = replace(links[name] or Link("given", None, domain=8), bytes_per_s=value)
        elif name in FIELDS:
            fields[FIELDS[name]] = value
        else:
            fields["matrix"][name] = value
        fields["figures"][name] = text
        fields["own"][name] = GIVEN
    fields |= {"tiers": (memory, *chip.tiers[1:]), "scaleup": links["link"], "host": links["host"]}
    return replace(chip, name=f"{chip.name} ({', '.join(f'{k}={v}' for k, v in changes.items())})", **fields)
