"""One operator on one or several chips, everything visible: time and place on the roofline, parts, traffic, mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, field, replace
from typing import ClassVar

from chipwise.report import figures
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION, Figure, RefusalRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_number, format_seconds
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class LevelRecord:
    """Bytes of the operator through one level of memory; `time_s` is what its rate alone would take (None: no
    rate is published)."""

    name: str
    bytes: float
    bytes_per_mac: float
    time_s: float | None
    note: str


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """An operator on one chip.

    `intensity` and `ridge` in FLOP per byte of main memory: left of the ridge the roofline is memory.
    `exposed_s` adds up to the time; `hidden_s` passes behind it. `mapping` holds the figures behind
    `mapping_text`. Collectives have no FLOPs: their ridge is 0 and their levels are links.
    """

    chip: str
    family: str
    time_s: Figure
    bound: str
    exposed_s: dict[str, float]
    hidden_s: dict[str, float]
    flops: float
    bytes: float
    intensity: float
    ridge: float
    roofline_s: float
    peak_flops_per_s: float
    flops_per_s: float
    share_of_peak: float
    bytes_per_s: float
    mapping_text: str
    mapping: dict[str, float]
    levels: tuple[LevelRecord, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class KernelReport(Answer[KernelRecord]):
    """The answer to `kernel`; `seconds` is the time on the first chip."""

    rows: ClassVar[str] = "kernels"

    operator: str
    seconds: float
    dims: dict[str, float]
    dtype: str
    kernels: tuple[KernelRecord, ...]
    refused: tuple[RefusalRecord, ...]
    lessons: tuple[str, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per chip, and what its time is made of."""
        exchange = not self.kernels[0].flops
        tables = [_times(self, exchange=exchange), Table.of(_parts(self.kernels), PARTS)]
        if not exchange:
            tables.append(_levels(self.kernels))
        return (*tables[:-1], replace(tables[-1], foot=_foot(self)))


@dataclass(frozen=True, slots=True)
class AmdahlRecord:
    """A CPU against one accelerator, and both: `together_s` with the serial part on the CPU. `faster` is the fastest of
    the three, a machine of both as `CHIP+CPU`. Above `crossover_fraction` of serial work the CPU is faster than the
    accelerator alone; below `least_work` operations even with nothing serial (None: it never is overtaken)."""

    chip: str
    cpu_s: float
    chip_s: float
    together_s: float
    faster: str
    crossover_fraction: float
    least_work: float | None
    serial_ratio: float
    parallel_ratio: float


@dataclass(frozen=True, slots=True)
class AmdahlReport:
    """The answer to `kernel amdahl`."""

    cpu: str
    serial_fraction: float
    work: float
    chips: tuple[AmdahlRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)


def _bottleneck(k: KernelRecord) -> str:
    return f"{k.bound} {k.exposed_s[k.bound] / k.time_s.mid:.0%}"


def _exposed_us(k: KernelRecord) -> dict[str, float]:
    return {name: seconds * 1e6 for name, seconds in k.exposed_s.items() if seconds}


def _side(k: KernelRecord) -> str:
    return f"{format_number(k.ridge)}: {'compute' if k.intensity >= k.ridge else 'memory'}"


KERNELS = (
    Column("chip", "chip", short="chip"),
    Column("time", "time_s", figures.seconds, right=True, short="time_us", scale=1e6),
    Column("", "time_s.basis", short="basis"),
    Column("", "roofline_s", short="roofline_us", scale=1e6),
    Column("bottleneck", _bottleneck),
    Column("", "bound", short="bottleneck"),
    Column("TFLOP/s", "flops_per_s", lambda v: format_number(v / 1e12), right=True, spare=2),
    Column("of peak", "share_of_peak", "{:.1%}".format, right=True, short="share_of_peak"),
    Column("GB/s", "bytes_per_s", lambda v: format_number(v / 1e9), right=True, spare=1),
    Column("", _exposed_us, short="exposed_us"),
    Column("FLOP/B", "intensity", format_number, right=True, short="flop_per_byte"),
    Column("ridge", _side, spare=3),
    Column("", "ridge", short="ridge_flop_per_byte"),
    Column("roofline", "roofline_s", format_seconds, right=True),
    Column("basis", "time_s.basis"),
    Column("", "mapping_text", short="mapping"),
    Column("", "notes", short="notes"),
)
"""What is said of an operator on a chip."""

EXCHANGES = (
    Column("chip", "chip"),
    Column("time", "time_s", figures.seconds, right=True),
    Column("bottleneck", lambda k: _bottleneck(k).replace("launch", "latency")),
    Column("GB/s on the wire", "bytes_per_s", lambda v: format_number(v / 1e9), right=True),
    Column("of the link", lambda k: f"{k.share_of_peak:.1%} {k.levels[0].name}", right=True),
    Column("wire bytes", "bytes", format_bytes, right=True, spare=2),
    Column("at link speed", "roofline_s", format_seconds, right=True, spare=1),
    Column("basis", "time_s.basis"),
)
"""What is said of an exchange among chips."""

PARTS = (
    Column("chip", "chip"),
    Column("resource", "resource"),
    Column("exposed", "exposed_s", format_seconds, right=True),
    Column("hidden", "hidden_s", format_seconds, right=True),
    Column("share of time", "share_of_time", "{:.1%}".format, right=True),
    Column("1 % more of it gives", "share_of_time", lambda share: f"{share:.2f} %", right=True),
)
"""Exposed seconds add up to the time; with the soft maximum a share is also an elasticity."""

LEVELS = (
    Column("chip", "chip"),
    Column("level", "name"),
    Column("bytes", "bytes", format_bytes, right=True),
    Column("B per MAC", "bytes_per_mac", "{:.4f}".format, right=True),
    Column("alone takes", "time_s", format_seconds, right=True),
    Column("how", "note", prose=True),
)
"""Bytes through each level of memory."""


def _times(report: KernelReport, *, exchange: bool) -> Table:
    if exchange:
        return Table.of(report.kernels, EXCHANGES, (report.operator, ""))
    first = report.kernels[0]
    work = f"{format_number(first.flops / 1e9)} GFLOP   {format_bytes(first.bytes)}"
    return Table.of(report.kernels, KERNELS, (f"{report.operator}   {report.dtype}   {work}", ""))


def _parts(kernels: Sequence[KernelRecord]) -> list[dict[str, str | float]]:
    rows: list[dict[str, str | float]] = []
    for k in kernels:
        for name in dict.fromkeys((*k.exposed_s, *k.hidden_s)):
            # rounded to picoseconds: a soft maximum leaves a residue of what is hidden
            exposed, hidden = (round(parts.get(name, 0.0), 12) for parts in (k.exposed_s, k.hidden_s))
            if exposed + hidden > 0.0:
                times = {"exposed_s": exposed, "hidden_s": hidden, "share_of_time": exposed / k.time_s.mid}
                rows.append({"chip": k.chip, "resource": name, **times})
    return rows


def _levels(kernels: Sequence[KernelRecord]) -> Table:
    # of work on rows a multiply-accumulate is no measure
    products = any(k.share_of_peak > 0.0 and "width" not in k.mapping for k in kernels)
    rows = [{"chip": k.chip, **asdict(v)} for k in kernels for v in k.levels]
    return Table.of(rows, [c for c in LEVELS if products or c.get != "bytes_per_mac"])


def _foot(report: KernelReport) -> tuple[str, ...]:
    lines = [f"{k.chip}: {k.mapping_text}" for k in report.kernels]
    lines += [f"{k.chip}: {note}" for k in report.kernels for note in k.notes]
    lines += [f"{r.chip}: {r.detail}" for r in report.refused]
    lines += [f"why: {lesson}" for lesson in report.lessons]
    if any(k.time_s.provisional for k in report.kernels):
        lines.append("intervals of what is not calibrated are priors: their coverage is not tested")
    lines.append(f"assumed: {'; '.join(report.assumptions)}")
    return tuple(lines)


def _fastest(r: AmdahlRecord) -> str:
    return "both" if r.together_s < min(r.cpu_s, r.chip_s) else "CPU" if r.cpu_s <= r.chip_s else "chip"


AMDAHL = (
    Column("chip", "chip"),
    Column("on the CPU", "cpu_s", format_seconds, right=True),
    Column("on the chip", "chip_s", format_seconds, right=True),
    Column("together", "together_s", format_seconds, right=True),
    Column("fastest", _fastest),
    Column("", "faster"),
    Column("CPU wins from serial share", "crossover_fraction", "{:.3%}".format, right=True),
    Column(
        "or below operations", lambda r: "never" if r.least_work is None else format_number(r.least_work), right=True
    ),
    Column("one thread", "serial_ratio", "{:.3f}x".format, right=True, spare=2),
    Column("all threads", "parallel_ratio", lambda v: f"{format_number(v)}x", right=True, spare=1),
)
"""What is said of a chip against a CPU."""


def amdahl_view(report: AmdahlReport) -> Table:
    """Each chip against the CPU and with it, and where it stops winning alone."""
    work = f"{format_number(report.work)} operations, {report.serial_fraction:.3%} of them serial; CPU: {report.cpu}"
    foot = (
        f"one thread, all threads: rate of the chip over that of {report.cpu}",
        "a core runs one thread fast (high clock, several operations at once, caches ahead of need); a GPU runs one "
        "slowly and hides that behind tens of thousands of others",
        f"assumed: {'; '.join(report.assumptions)}",
    )
    return Table.of(report.chips, AMDAHL, (work, ""), foot)
