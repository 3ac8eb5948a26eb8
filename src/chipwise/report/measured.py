"""What was measured on the user's own machine, as records and tables."""

from __future__ import annotations

from dataclasses import field

from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_flops, format_seconds
from chipwise.values import dataclass


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
    Column("products", "flops_per_s", format_flops, right=True),
    Column("operands", "bytes_per_s", lambda v: f"{format_bytes(v)}/s", right=True),
    Column("start", "start_s", format_seconds, right=True),
    Column("timed", "tasks", right=True),
    Column("off, unseen", "error", lambda v: f"{v:.0%}", right=True),
)


UNSURE = 0.3
"""Error on shapes that were not seen above which a probe says nothing about others."""


def probe_view(report: ProbeReport) -> Table:
    """What the machine reaches, kind by kind, and how far its own predictions are off."""
    threads = f", {report.threads} thread{'s' if report.threads > 1 else ''}" if report.threads else ""
    head = [f"{report.chip}: {report.software} on {report.device}{threads}, {report.date}"]
    if report.error is not None:
        head.append(
            f"{len(report.unseen)} shapes that these numbers had not seen are predicted {report.error:.0%} off (median)"
        )
        if report.error > UNSURE:
            head.append("too far off to rely on: measure with a longer --budget, and with nothing else running here")
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


@dataclass(frozen=True, slots=True)
class MeasuredOperatorRecord:
    """All calls of one operator in a pass: seconds predicted and measured, each call with a clock around it."""

    operator: str
    calls: int
    predicted_s: float
    measured_s: float


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One pass of a module. `measured_s` is the pass as a whole, without clocks in it, while freed memory stays with
    the process; `returned_s` the same where the C library gives it back to the system (None: not on this device).

    Memory includes weights (None: the system does not say): `measured_peak_bytes` of tensors, as predicted;
    `process_peak_bytes` with what libraries hold beside them and what was freed and not given back."""

    name: str
    predicted_s: float
    measured_s: float
    spread: float
    predicted_peak_bytes: float
    measured_peak_bytes: float | None
    operators: tuple[MeasuredOperatorRecord, ...]
    returned_s: float | None = None
    process_peak_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A user's module, predicted from what was measured of the machine's operators, and measured."""

    module: str
    software: str
    device: str
    threads: int
    weight_bytes: float
    passes: tuple[PassRecord, ...]
    notes: tuple[str, ...] = ()


OPERATORS = (
    Column("operator", "operator"),
    Column("calls", "calls", right=True),
    Column("predicted", "predicted_s", format_seconds, right=True),
    Column("measured", "measured_s", format_seconds, right=True),
    Column("ratio", lambda o: o.predicted_s / o.measured_s if o.measured_s else None, lambda v: f"{v:.2f}", right=True),
)
SHOWN = 12
NOTICED = 1.05
"""How much longer a pass takes with memory that is new to it before that is said."""


def model_view(report: ModelRun) -> tuple[Table, ...]:
    """A table for every pass: its operators, those that take longest first."""
    tables = []
    for p in report.passes:
        off = f"{p.predicted_s / p.measured_s - 1.0:+.0%}"
        head = [
            f"{report.module}, {p.name}: {format_seconds(p.predicted_s)} predicted, {format_seconds(p.measured_s)} "
            f"measured ({off}), {report.software} on {report.device}, {report.threads} threads",
            f"tensors at most: {format_bytes(p.predicted_peak_bytes)} predicted"
            + (f", {format_bytes(p.measured_peak_bytes)} measured" if p.measured_peak_bytes else ", not measured here"),
        ]
        if p.process_peak_bytes:
            head.append(
                f"the process took {format_bytes(p.process_peak_bytes)}: tensors, what libraries hold too, and "
                "what was freed and not given back"
            )
        if p.returned_s and p.returned_s > NOTICED * p.measured_s:
            head.append(
                f"{format_seconds(p.returned_s)} where freed memory goes back to the system, as glibc has it: preload "
                "jemalloc, or set MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_MMAP_MAX_=0"
            )
        foot = ["operators are measured with a clock around each, which adds some microseconds to every call"]
        left = len(p.operators) - SHOWN
        if left > 0:
            foot.insert(0, f"{left} more operators: --format json")
        tables.append(Table.of(p.operators[:SHOWN], OPERATORS, tuple(head), (*foot, *report.notes)))
    return tuple(tables)


@dataclass(frozen=True, slots=True)
class ServeReport:
    """What an endpoint did under a stated load; times are means and 99th percentiles in seconds over requests that were
    answered. `kept` is the id in the user's store, "" where it was not kept."""

    url: str
    model: str
    concurrency: float | None
    rate_per_s: float | None
    requests: int
    failed: int
    seconds: float
    input_tokens: float
    output_tokens: float
    tokens_per_s: float
    requests_per_s: float
    ttft_mean_s: float
    ttft_p99_s: float
    tpot_mean_s: float | None
    tpot_p99_s: float | None
    kept: str = ""
    store: str = ""
    notes: tuple[str, ...] = ()


def serve_view(report: ServeReport) -> Table:
    """The figures of an endpoint, one to a line."""
    load = f"{report.concurrency:g} at a time" if report.concurrency else f"{report.rate_per_s:g} requests/s"
    tpot = "-" if report.tpot_mean_s is None else format_seconds(report.tpot_mean_s)
    tail = "-" if report.tpot_p99_s is None else format_seconds(report.tpot_p99_s)
    rows = [
        ("time to first token", format_seconds(report.ttft_mean_s), format_seconds(report.ttft_p99_s)),
        ("time per further token", tpot, tail),
    ]
    head = (
        f"{report.model} at {report.url}: {report.requests} requests, {load}, "
        f"{report.input_tokens:.0f} tokens in and {report.output_tokens:.0f} out on average",
    )
    foot = [
        f"{report.tokens_per_s:.4g} tokens/s, {report.requests_per_s:.4g} requests/s over "
        f"{format_seconds(report.seconds)}",
        *([f"{report.failed} requests failed"] if report.failed else []),
        *report.notes,
    ]
    if report.kept:
        foot.append(f"kept as {report.kept}: {report.store}")
    return Table(("", "mean", "p99"), rows, head, tuple(foot), frozenset({"mean", "p99"}))
