"""What was measured on the user's own machine, as records and tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_number, format_seconds

__all__ = ["ProbeReport", "RateRecord", "TaskRecord", "probe_view"]


@dataclass(frozen=True, slots=True)
class RateRecord:
    """What one kind of operator reaches in one type: `start_s` before it does anything, then FLOP/s of its products and
    bytes/s of its operands (None: the times show no such limit). `tasks` gave the numbers; `error` is the median of
    |predicted / timed - 1| over those that they had not seen (None: none was held out)."""

    operator: str
    dtype: str
    flops_per_s: float | None
    bytes_per_s: float | None
    start_s: float
    tasks: int
    error: float | None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task that no number had seen: seconds predicted and timed, and the spread of its samples."""

    task: str
    predicted_s: float
    timed_s: float
    spread: float


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """A machine that was measured. `kept` is its id in the user's store, "" where it was not kept; `whole`: nothing cut
    the probe short. `error` is over all `unseen` tasks."""

    backend: str
    software: str
    device: str
    chip: str
    threads: int
    date: str
    rates: tuple[RateRecord, ...]
    stream_bytes_per_s: float
    cache_bytes_per_s: float
    cache_bytes: float
    copy_s: float
    tasks: int
    error: float | None
    unseen: tuple[TaskRecord, ...]
    whole: bool
    kept: str = ""
    store: str = ""
    notes: tuple[str, ...] = field(default=())


RATES = (
    Column("operator", "operator"),
    Column("type", "dtype"),
    Column("products", "flops_per_s", lambda v: f"{format_number(v)}FLOP/s", right=True),
    Column("operands", "bytes_per_s", lambda v: f"{format_bytes(v)}/s", right=True),
    Column("start", "start_s", format_seconds, right=True),
    Column("timed", "tasks", right=True),
    Column("off, unseen", "error", lambda v: f"{v:.0%}", right=True),
)


def probe_view(report: ProbeReport) -> Table:
    """What the machine reaches, kind by kind, and how far its own predictions are off."""
    threads = f", {report.threads} thread{'s' if report.threads > 1 else ''}" if report.threads else ""
    head = [f"{report.chip}: {report.software} on {report.device}{threads}, {report.date}"]
    if report.error is not None:
        head.append(
            f"{len(report.unseen)} shapes that these numbers had not seen are predicted {report.error:.0%} off (median)"
        )
    if not report.whole:
        head.append("cut short: what was timed by then is used")
    foot = [
        f"copies: {format_bytes(report.stream_bytes_per_s)}/s in memory, {format_bytes(report.cache_bytes_per_s)}/s "
        f"within {format_bytes(report.cache_bytes)} of cache, the smallest in {format_seconds(report.copy_s)}",
        "FLOP/s and bytes/s are what is reached, not peaks; bytes in and out count once each",
        *report.notes,
    ]
    if report.kept:
        foot.append(f"kept as {report.kept}: {report.store}")
    return Table.of(report.rates, RATES, tuple(head), foot)
