"""One operator on several chips as tables: time and place on the roofline, parts, traffic, mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from chipwise.report.kernel_records import AmdahlReport, KernelRecord, KernelReport
from chipwise.report.records import Figure
from chipwise.report.table import Table
from chipwise.units import format_bytes, format_number, format_seconds

__all__ = ["amdahl_view", "kernel_view"]


def kernel_view(report: KernelReport) -> tuple[Table, ...]:
    """Times first, then what they are made of, then bytes per level."""
    exchange = not report.kernels[0].flops
    tables = [_exchanges(report) if exchange else _times(report), _parts(report.kernels)]
    if not exchange:
        tables.append(_levels(report.kernels))
    return (*tables[:-1], replace(tables[-1], foot=_foot(report)))


def _times(report: KernelReport) -> Table:
    columns = (
        "chip",
        "time",
        "bound by",
        "TFLOP/s",
        "of peak",
        "GB/s",
        "FLOP/B",
        "ridge",
        "roofline",
        "basis",
    )
    rows = [
        (
            k.chip,
            _time(k.time_s),
            f"{k.bound} {k.exposed_s[k.bound] / k.time_s.mid:.0%}",
            format_number(k.flops_per_s / 1e12),
            f"{k.share_of_peak:.1%}",
            format_number(k.bytes_per_s / 1e9),
            format_number(k.intensity),
            f"{format_number(k.ridge)}: {'compute' if k.intensity >= k.ridge else 'memory'}",
            format_seconds(k.roofline_s),
            k.time_s.basis,
        )
        for k in report.kernels
    ]
    first = report.kernels[0]
    head = (
        f"{report.operator}   {report.dtype}   {format_number(first.flops / 1e9)} GFLOP   {format_bytes(first.bytes)}",
        "",
    )
    right = frozenset(("TFLOP/s", "of peak", "GB/s", "FLOP/B", "roofline"))
    return Table(columns, rows, head, right=right, records=report.kernels)


def _exchanges(report: KernelReport) -> Table:
    columns = (
        "chip",
        "time",
        "bound by",
        "GB/s on the wire",
        "of the link",
        "wire bytes",
        "at link speed",
        "basis",
    )
    rows = [
        (
            k.chip,
            _time(k.time_s),
            f"{'latency' if k.bound == 'launch' else k.bound} {k.exposed_s[k.bound] / k.time_s.mid:.0%}",
            format_number(k.bytes_per_s / 1e9),
            f"{k.share_of_peak:.1%} {k.levels[0].name}",
            format_bytes(k.bytes),
            format_seconds(k.roofline_s),
            k.time_s.basis,
        )
        for k in report.kernels
    ]
    return Table(columns, rows, (report.operator, ""), right=frozenset(columns[3:-1]), records=report.kernels)


def _parts(kernels: Sequence[KernelRecord]) -> Table:
    """Exposed seconds add up to the time; with the soft maximum a share is also an elasticity."""
    rows, records = [], []
    for k in kernels:
        for name in dict.fromkeys((*k.exposed_s, *k.hidden_s)):
            exposed, hidden = (_whole_ps(parts.get(name, 0.0)) for parts in (k.exposed_s, k.hidden_s))
            share = exposed / k.time_s.mid
            if exposed + hidden > 0.0:
                shown = (format_seconds(exposed), format_seconds(hidden), f"{share:.1%}", f"{share:.2f} %")
                rows.append((k.chip, name, *shown))
                records.append({"chip": k.chip, "resource": name, "exposed_s": exposed, "hidden_s": hidden})
    columns = ("chip", "resource", "exposed", "hidden", "share of time", "1 % more of it gives")
    return Table(columns, rows, right=frozenset(columns[2:]), records=records)


def _whole_ps(seconds: float) -> float:
    """Rounded to picoseconds: a soft maximum leaves crumbs of what is hidden."""
    return round(seconds, 12)


def _levels(kernels: Sequence[KernelRecord]) -> Table:
    # of work on rows a multiply-accumulate is no measure
    products = any(k.share_of_peak > 0.0 and "width" not in k.mapping for k in kernels)
    rows = [
        (
            k.chip,
            v.name,
            format_bytes(v.bytes),
            f"{v.bytes_per_mac:.4f}" if products else "-",
            "-" if v.time_s is None else format_seconds(v.time_s),
            v.note,
        )
        for k in kernels
        for v in k.levels
    ]
    columns = ("chip", "level", "bytes", "B per MAC", "alone takes", "how")
    records = [
        {"chip": k.chip, **{f.name: getattr(v, f.name) for f in fields(v)}} for k in kernels for v in k.levels
    ]
    return Table(columns, rows, right=frozenset(columns[2:5]), records=records)


def _foot(report: KernelReport) -> tuple[str, ...]:
    lines = [f"{k.chip}: {k.mapping_text}" for k in report.kernels]
    lines += [f"{k.chip}: {note}" for k in report.kernels for note in k.notes]
    lines += [f"{r.chip}: {r.detail}" for r in report.refused]
    lines += [f"why: {lesson}" for lesson in report.lessons]
    if any(k.time_s.provisional for k in report.kernels):
        lines.append("intervals of what is not calibrated are priors: their coverage is not tested")
    lines.append(f"assumed: {'; '.join(report.assumptions)}")
    return tuple(lines)


def amdahl_view(report: AmdahlReport) -> Table:
    """Where each chip stops winning over the CPU."""
    rows = [
        (
            r.chip,
            format_seconds(r.cpu_s),
            format_seconds(r.chip_s),
            r.faster,
            f"{r.crossover_fraction:.3%}",
            "never" if r.least_work is None else f"{r.least_work:,.3g}",
            f"{r.serial_ratio:.3f} x",
            f"{format_number(r.parallel_ratio)} x",
        )
        for r in report.chips
    ]
    columns = (
        "chip",
        f"on {report.cpu}",
        "on the chip",
        "faster",
        "stops winning at serial part",
        "and below operations",
        "one thread",
        "all threads",
    )
    head = (f"{report.work:,.3g} operations, {report.serial_fraction:.3%} of them serial", "")
    foot = (
        f"one thread, all threads: rate of the chip over that of {report.cpu}",
        "a core runs one thread fast (high clock, several operations at once, caches ahead of need); a GPU runs one "
        "slowly and hides that behind tens of thousands of others",
        f"assumed: {'; '.join(report.assumptions)}",
    )
    return Table(columns, rows, head, foot, frozenset(columns[1:3] + columns[4:]), report.chips)


def _time(figure: Figure) -> str:
    """All three numbers in the unit of the middle one."""
    unit = format_seconds(figure.mid).split()[-1]
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    mid, low, high = (format_number(x * scale) for x in (figure.mid, figure.low, figure.high))
    return f"{mid} [{low}-{high}] {unit}"
