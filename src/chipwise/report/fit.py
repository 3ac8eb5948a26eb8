"""Memory: where a model fits, with what headroom, and what would make it fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from chipwise.errors import InfeasibleError
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION, LayoutRecord, MemoryRecord, ModelRecord, PartRecord, RefusalRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_seconds
from chipwise.values import dataclass

MOST = 12  # chips whose refusal or caveat is named


@dataclass(frozen=True, slots=True)
class FitRecord:
    """Whether a model fits on a count of a chip, and the smallest fixes where it does not (`mend`).

    `largest_batch` None: no cache limits it. `caveat` says why no known runtime launches the model there, ""
    where one does. `parts` are those of a machine that share the model, `memory` is then that of the first.
    """

    chip: str
    chips: int
    layout: LayoutRecord
    runtime: str
    verdict: str
    missing_bytes: float
    memory: MemoryRecord
    largest_batch: int | None
    largest_context: int
    mend: tuple[str, ...]
    caveat: str = ""
    parts: tuple[PartRecord, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class FitReport(Answer[FitRecord]):
    """The answer to `fit`: one line per chip at the smallest count that fits, or at the count asked for."""

    rows: ClassVar[str] = "fits"

    model: ModelRecord
    context: int
    sequences: int
    fits: tuple[FitRecord, ...]
    refused: tuple[RefusalRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """Where the model fits."""
        return (_where(self),)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per chip, and the memory of one alone."""
        sequences = f"{self.sequences} request{'s' if self.sequences != 1 else ''}"
        load = f"load: {sequences} of {self.context:,} tokens; figures per replica"
        foot = []
        caveats = [f for f in self.fits if f.caveat]
        if caveats:
            foot.append("memory computed, but no known software runs it:")
            foot += [f"  {f.chip}: {f.caveat}" for f in caveats[:MOST]]
        foot += [f"{r.chip}: {r.detail}" for r in self.refused[:MOST]]
        if self.assumptions:
            foot.append(f"assumed: {'; '.join(self.assumptions)}")
        table = Table.of(self.fits, FITS, (self.model.line, load, ""), foot)
        if len(self.fits) != 1:
            return (table,)
        f = self.fits[0]
        memory = memory_view(f.memory, f.layout.label, f.runtime)
        return (table, parts_view(f.parts), memory) if f.parts else (table, memory)

    @property
    def failure(self) -> InfeasibleError | None:
        """That nothing could be sized, or that nothing holds it."""
        if not self.fits:
            return InfeasibleError(f"{self.model.name}: nothing was sized", "the answer says why", answered=True)
        if any(f.verdict != "no" for f in self.fits):
            return None
        hint = "fewer tokens (--context), a narrower --precision or more chips"
        return InfeasibleError(_where(self).rstrip("."), hint, answered=True)


def _count(value: int | None) -> str:
    """A count, or `any` where nothing limits it."""
    return "any" if value is None else f"{value:,}"


def _verdict(f: FitRecord) -> str:
    return f.verdict if f.verdict != "no" else f"no, {format_bytes(f.missing_bytes)} short"


def _room(f: FitRecord) -> float | None:
    return f.memory.cache_bytes if f.memory.cache_bytes > 0 else None


def _fix(f: FitRecord) -> str | None:
    return " or ".join(f.mend) or None


FITS = (
    Column("chip", "chip", short="chip"),
    Column("count", "chips", right=True, short="chips"),
    Column("layout", "layout.label", spare=3),
    Column("", "layout.label", short="layout"),
    Column("", "runtime", short="runtime"),
    Column("fits", _verdict),
    Column("", "verdict", short="verdict"),
    Column("", "missing_bytes", short="missing_gb", scale=1e-9),
    Column("", "memory.items", short="memory_gb", scale=1e-9),
    Column("", "memory.capacity_bytes", short="capacity_gb", scale=1e-9),
    Column("left for cache", _room, format_bytes, right=True, spare=1),
    Column("cache tokens", lambda f: _count(f.memory.cache_tokens), right=True, spare=2),
    Column("batch", lambda f: _count(f.largest_batch), right=True),
    Column("", "largest_batch", short="largest_batch"),
    Column("context", "largest_context", "{:,}".format, right=True, short="largest_context", scale=0),
    Column("fix", _fix, prose=True),
    Column("", "mend", short="mend"),
    Column("", "caveat", short="caveat"),
)
"""What is said of a model on a chip."""


def _where(report: FitReport) -> str:
    name, good = report.model.name, [f for f in report.fits if f.verdict != "no"]
    if not good:
        nearest = min(report.fits, key=lambda f: f.missing_bytes, default=None)
        if nearest is None:
            return f"{name} fits on nothing that was asked about."
        fix = f"; {_fix(nearest)} would help" if nearest.mend else ""
        short = f"{format_bytes(nearest.missing_bytes)} short on {nearest.chips}x {nearest.chip}"
        return f"{name} does not fit: {short}{fix}."
    first = min(good, key=lambda f: (f.chips, -f.memory.cache_bytes))
    room = f"{format_bytes(first.memory.cache_bytes)} left for the cache on each"
    batch = "" if first.largest_batch is None else f", {first.largest_batch:,} such requests at once"
    many = len(report.fits)
    of = f"fits on {len(good)} of {many} chips, on the fewest with" if many > 1 else "fits on"
    return f"{name} {of} {first.chips}x {first.chip}: {room}{batch}."


def _used(p: PartRecord) -> float:
    return sum(p.memory.items.values())


PARTS = (
    Column("part", lambda p: f"{p.count}x {p.chip}" if p.count > 1 else p.chip),
    Column("holds", "holds", prose=True),
    Column("memory used", _used, format_bytes, right=True),
    Column("of", "memory.capacity_bytes", format_bytes, right=True),
    Column("left for cache", "memory.cache_bytes", format_bytes, right=True, spare=1),
    Column("per token", "decode_s", format_seconds, right=True),
)
"""What is said of a part of a machine that shares a model."""


def parts_view(parts: Sequence[PartRecord]) -> Table:
    """What lies where, and how long each part works on a token."""
    return Table.of(parts, PARTS, ("where the model lies; memory of one device of each part", ""))


def memory_view(m: MemoryRecord, layout: str, runtime: str) -> Table:
    """Every use with its basis; the uses, the cache and what is kept free add up to all."""
    rows = [{"use": kind, "bytes": size, "basis": m.basis[kind]} for kind, size in m.items.items()]
    said = f"room for {_count(m.cache_tokens)} tokens in one replica"
    sums = (
        ("cache", m.cache_bytes, said),
        ("kept free", m.withheld_bytes, f"{runtime}'s share of memory"),
        ("total", m.capacity_bytes, "usable"),
    )
    rows += [{"use": use, "bytes": size, "basis": basis} for use, size, basis in sums]
    columns = (
        Column("use", "use"),
        Column("bytes", "bytes", format_bytes, right=True),
        Column("basis", "basis", prose=True),
    )
    return Table.of(rows, columns, (f"memory of one device, {layout}", ""))
