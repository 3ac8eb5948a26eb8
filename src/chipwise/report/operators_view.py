"""The inside of a plan as tables: its operators, and its figures under rising load."""

from __future__ import annotations

from chipwise.report.operators_records import LoadReport, OperatorsReport
from chipwise.report.plan_view import model_line
from chipwise.report.records import Figure
from chipwise.report.table import Table
from chipwise.units import format_bytes, format_number, format_seconds

__all__ = ["load_view", "operators_view"]


def operators_view(report: OperatorsReport) -> Table:
    """One line per operator and phase, longest first."""
    columns = (
        "phase",
        "operator",
        "times",
        "time",
        "share",
        "FLOPs",
        "bytes",
        "FLOP/B",
        "TFLOP/s",
        "bound by",
    )
    rows = [
        (
            o.phase,
            o.name,
            f"{o.repeats:g}",
            format_seconds(o.seconds),
            f"{o.share:.1%}",
            f"{o.flops:.3g}" if o.flops else "-",
            format_bytes(o.bytes) if o.bytes else "-",
            format_number(o.intensity) if o.intensity else "-",
            format_number(o.flops_per_s / 1e12) if o.peak_flops_per_s else "-",
            o.bound,
        )
        for o in report.operators
    ]
    p = report.plan
    head = (
        model_line(report.model),
        f"one device of {p.chips}x {p.chip}, {p.layout.label}: {report.decode_sequences:.3g} sequences decode with "
        f"{report.context_tokens:,.0f} tokens each; a chunk is {report.chunk_tokens:,.0f} tokens of a prompt",
        "",
    )
    foot = (
        f"a decode pass takes {format_seconds(report.decode_s)}, a chunk by itself {format_seconds(report.prefill_s)}",
        "riding with a decode pass a chunk takes less: weights are read once for both",
        "exchanges and the host have no FLOPs",
    )
    return Table(columns, rows, head, foot, frozenset(columns[2:9]), report.operators)


def load_view(report: LoadReport) -> Table:
    """One line per load."""
    columns = ("in flight", "requests/s", "TTFT", "TPOT", "tok/s", "tok/s per user", "$/M out", "bound by")
    rows = [
        (
            format_number(p.concurrency),
            format_number(p.requests_per_s),
            _time(p.ttft_s),
            "-" if p.tpot_s is None else _time(p.tpot_s),
            format_number(p.tokens_per_s.mid, 4),
            "-" if p.tokens_per_s_per_user is None else format_number(p.tokens_per_s_per_user),
            "-" if p.usd_per_million_out is None else format_number(p.usd_per_million_out.mid),
            p.bound,
        )
        for p in report.points
    ]
    p = report.plan
    asked = [f"{n} {format_seconds(t)}" for n, t in (("TTFT", report.ttft_s), ("TPOT", report.tpot_s)) if t]
    most = (
        "none of these loads"
        if report.within is None
        else f"{format_number(report.within)} requests in flight"
    )
    foot = (
        f"ends at: {report.limit}",
        *((f"means within {' and '.join(asked)} up to: {most}",) if asked else ()),
    )
    head = (model_line(report.model), f"one replica: {p.chips}x {p.chip}, {p.layout.label}", "")
    return Table(columns, rows, head, foot, frozenset(columns[:-1]), report.points)


def _time(figure: Figure) -> str:
    low, mid, high = (format_seconds(x) for x in (figure.low, figure.mid, figure.high))
    return f"{mid} [{low} to {high}]"
