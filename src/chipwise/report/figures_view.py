"""Every figure of one plan with its definition, interval and quantiles."""

from __future__ import annotations

from chipwise.report.records import Figure, PlanRecord
from chipwise.report.table import Table
from chipwise.units import format_number, format_seconds

__all__ = ["figures_view"]

QUANTILES = ("p50", "p95", "p99")


def figures_view(p: PlanRecord) -> Table:
    """Times with their quantiles, throughput, cost and energy."""
    columns = ("figure", "mean", "80 % interval", *QUANTILES, "basis", "means")
    rows = [
        _time(
            "TTFT",
            p.ttft_s,
            p,
            "ttft_s",
            "arrival to first token: queue, own prompt in its passes, host, stream",
        ),
        *_further(p),
        _count("tokens/s per chip", p.tokens_per_s_per_chip, "output tokens"),
        _count("tokens/s in all", p.tokens_per_s, f"{format_number(p.requests_per_s)} requests/s"),
    ]
    if p.usd_per_million_in is not None and p.usd_per_million_out is not None:
        rows.append(_count("$/M tokens in", p.usd_per_million_in, "for the machine time of prompts"))
        rows.append(_count("$/M tokens out", p.usd_per_million_out, "for the machine time of decoding"))
    if p.kwh_per_million_out is not None:
        rows.append(
            _count("kWh/M tokens out", p.kwh_per_million_out, "chips alone; between all idle and all at TDP")
        )
    load = f"prompts take {p.prompt_share:.0%} of the time" if p.prompt_share else "of decoding alone"
    if p.largest_requests_per_s > p.requests_per_s * 1.001:
        load += f"; at most {format_number(p.largest_requests_per_s)} requests/s within the targets"
    foot = [load]
    if any(t.tpot_s is None or t.ttft_s is None for t in p.tails.values()):
        foot.append("quantiles left out: only a simulation could say")
    if p.nearest is not None:
        n = p.nearest
        foot.append(f"nearest published: {n.label}, {n.tokens_per_s:,.0f} tokens/s: {n.verdict}")
        if n.weight:
            foot.append(
                f"anchored to published rows ({n.weight:.0%} of their own error of prediction): "
                f"{n.anchored_tokens_per_s:,.0f} tokens/s"
            )
    right = frozenset(("mean", *QUANTILES))
    return Table(columns, rows, (_title(p), ""), (*foot, ""), right, _records(p))


def _title(p: PlanRecord) -> str:
    return (
        f"{p.chips}x {p.chip}  {p.layout.label}  {p.precision}  {p.runtime}  {p.concurrency:,.0f} in flight"
    )


def _further(p: PlanRecord) -> list[tuple[str, ...]]:
    """Times of tokens after the first, where there are any."""
    if p.tpot_s is None or p.tokens_per_s_per_user is None:
        return []
    return [
        _time("TPOT", p.tpot_s, p, "tpot_s", "per further token, others' prompts in between included"),
        ("TPOT without prompts", format_seconds(p.decode_s), *[""] * 5, "a pass of decoding alone"),
        _count("tokens/s per user", p.tokens_per_s_per_user, "1 / TPOT"),
    ]


def _time(name: str, f: Figure, p: PlanRecord, field: str, text: str) -> tuple[str, ...]:
    tails = [getattr(p.tails[q], field) if q in p.tails else None for q in QUANTILES]
    shown = ["-" if t is None else format_seconds(t) for t in tails]
    return (
        name,
        format_seconds(f.mid),
        f"{format_seconds(f.low)} - {format_seconds(f.high)}",
        *shown,
        f.basis,
        text,
    )


def _count(name: str, f: Figure, text: str) -> tuple[str, ...]:
    span = f"{format_number(f.low)} - {format_number(f.high)}"
    return (name, format_number(f.mid), span, "", "", "", f.basis, text)


def _records(p: PlanRecord) -> list[dict[str, object]]:
    """The same as numbers, in SI units or as the name says."""
    names = (
        "ttft_s",
        "tpot_s",
        "tokens_per_s_per_user",
        "tokens_per_s_per_chip",
        "tokens_per_s",
        "usd_per_million_in",
        "usd_per_million_out",
        "kwh_per_million_out",
    )
    found: list[dict[str, object]] = []
    for name in names:
        f: Figure | None = getattr(p, name)
        if f is not None:
            tails = {q: getattr(t, name, None) for q, t in p.tails.items()}
            found.append(
                {"figure": name, "mid": f.mid, "low": f.low, "high": f.high, "basis": f.basis, **tails}
            )
    found.append({"figure": "decode_s", "mid": p.decode_s})
    return found
