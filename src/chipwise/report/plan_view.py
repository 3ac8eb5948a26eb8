"""Plans as a table: what to rent, what it does, what it costs, and why."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.report.memory_view import memory_view
from chipwise.report.records import Figure, ModelRecord, PlanRecord, PlanReport, PriceRecord, RefusalRecord
from chipwise.report.table import Table
from chipwise.units import format_bytes, format_count, format_number, format_seconds

__all__ = ["breakdown_view", "cache_text", "model_line", "plan_view", "span"]

SHOWN = 10
RESOURCE = {
    "compute": "FLOPs",
    "memory": "memory bandwidth",
    "on-chip": "on-chip bandwidth",
    "network": "link speed",
    "launch": "kernel launch rate",
    "host": "host speed",
}
# reasons in the words of a table's foot
GROUPS = {
    "SLO": "slower than asked",
    "MEMORY": "does not fit",
    "BUDGET": "above the limit",
    "NO_COST_MODEL": "not timed yet",
    "NO_RUNTIME": "no runtime",
}


def model_line(m: ModelRecord) -> str:
    """One line: name, parameters, weights and what is beside them, cache."""
    active = "" if m.active_params > 0.8 * m.params else f" ({format_count(m.active_params)} active)"
    beside = "".join(f" + {name} {format_bytes(size)}" for name, size in m.beside_bytes.items())
    weights = f"{m.precision} {format_bytes(m.weight_bytes)}{beside}"
    return f"{m.name}   {format_count(m.params)} parameters{active}   {weights}   {cache_text(m)}"


def cache_text(m: ModelRecord) -> str:
    """What a token adds to the cache, and that it is less beyond the windows where there are any."""
    if m.kv_bytes_in_window > m.kv_bytes_per_token:
        return f"KV {m.kv_bytes_in_window:,.0f} B/token, {m.kv_bytes_per_token:,.0f} beyond its windows"
    return f"KV {m.kv_bytes_per_token:,.0f} B/token"


def plan_view(report: PlanReport, command: str, *, everything: bool = False) -> Table:
    """The ranked plans. `command` is the estimate that reproduces the first, for the last line."""
    plans = report.plans if everything else report.plans[:SHOWN]
    columns = ("#", "plan", "$/h", "$/M out", "TTFT", "TPOT", "tok/s/chip", "bound by", "runtime", "basis")
    rows = [_row(p) for p in plans]
    foot = []
    front = [str(p.rank) for p in report.plans if p.on_front]
    if len(front) > 1:
        foot.append(f"front, cost against speed: {', '.join(front)}")
    first = report.plans[0]
    if first.ties:
        foot.append(f"tie with #1 within the intervals: {', '.join(map(str, first.ties))}")
    if len(plans) < len(report.plans):
        more = ", ".join(f"{p.chips}x {p.chip}" for p in report.plans[SHOWN : SHOWN + 8])
        foot.append(f"{len(report.plans) - len(plans)} more chips (--all): {more}, ...")
    foot += _refusals(report.refused)
    notes: dict[str, list[str]] = {}
    for plan in plans:
        if plan.note:
            notes.setdefault(plan.note, []).append(f"#{plan.rank}")
    foot += [f"{', '.join(ranks)}: {note}" for note, ranks in notes.items()]
    foot.append(f"why #1: {_why(first)}")
    foot.append(f"assumed: {'; '.join((*_asked(report), *report.assumptions))}")
    foot.append(f"next: {command}")
    right = frozenset(("#", "$/h", "$/M out", "tok/s/chip"))
    return Table(columns, rows, (model_line(report.model), ""), tuple(foot), right)


def breakdown_view(plan: PlanRecord) -> tuple[Table, Table]:
    """Where the time of a token and the memory of a device go."""
    times = Table(
        ("resource", "share of time", "10 % more of it gives"),
        [
            (RESOURCE.get(name, name), f"{share:.1%}", f"+{_gain(share):.1%} tokens/s")
            for name, share in plan.shares.items()
        ],
        (f"what an output token of {plan.chips}x {plan.chip} ({plan.layout.label}) costs in machine time",),
        foot=_money(plan),
        right=frozenset(("share of time", "10 % more of it gives")),
    )
    return times, memory_view(plan.memory, plan.layout.label, plan.runtime)


def _money(p: PlanRecord) -> tuple[str, ...]:
    if p.price is None or p.usd_per_million_in is None:
        return (f"price of {p.chip}: not known here",)
    per_million = f"$/M tokens: {_range(p.usd_per_million_in)} in, {_range(p.usd_per_million_out)} out"
    stale = ", no offer of the last 90 days" if p.price.stale else ""
    dates = f", {span(p.price.oldest, p.price.newest)}" if p.price.newest else ""
    return (f"{_price(p.price)} $/h ({p.price.basis}{dates}{stale}); {per_million}",)


def span(oldest: str, newest: str) -> str:
    """`2026-06 to 2026-11`, or the one date."""
    return newest if oldest == newest else f"{oldest} to {newest}"


def _row(p: PlanRecord) -> tuple[str, ...]:
    replicas = f"{p.replicas} x ({p.layout.label})" if p.replicas > 1 else p.layout.label
    name = f"{p.chips}x {p.chip}  {replicas}  {p.precision}  b{p.batch:.0f}"
    return (
        str(p.rank),
        name,
        _price(p.price),
        _range(p.usd_per_million_out),
        _time(p.ttft_s),
        _time(p.tpot_s),
        f"{p.tokens_per_s_per_chip.mid:,.0f}",
        f"{p.bound} {p.shares[p.bound]:.0%}",
        p.runtime,
        p.tpot_s.basis,
    )


def _price(price: PriceRecord | None) -> str:
    if price is None:
        return "-"
    stale = "*" if price.stale else ""
    if price.low == price.high:
        return f"{format_number(price.mid)}{stale}"
    return f"{format_number(price.low)}-{format_number(price.high)}{stale}"


def _range(figure: Figure | None) -> str:
    return "-" if figure is None else f"{format_number(figure.low, 2)}-{format_number(figure.high, 2)}"


def _time(figure: Figure) -> str:
    """All three numbers in the unit of the middle one."""
    unit = format_seconds(figure.mid).split()[-1]
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    mid, low, high = (format_number(x * scale) for x in (figure.mid, figure.low, figure.high))
    return f"{mid} [{low}-{high}] {unit}"


def _refusals(refused: Sequence[RefusalRecord]) -> list[str]:
    lines = []
    for reason, words in GROUPS.items():
        chips = [r.chip for r in refused if r.reason == reason]
        if chips:
            more = f" and {len(chips) - 6} more" if len(chips) > 6 else ""
            if len(chips) == 1:
                more = f" ({next(r.detail for r in refused if r.reason == reason)})"
            lines.append(f"{words}: {', '.join(chips[:6])}{more}")
    lines += [f"{r.chip}: {r.detail}" for r in refused if r.reason not in GROUPS]
    return lines


def _why(p: PlanRecord) -> str:
    gains = [
        f"10 % more {RESOURCE.get(name, name)} would give +{_gain(share):.1%} tokens/s"
        for name, share in list(p.shares.items())[:2]
    ]
    return f"{p.bound} takes {p.shares[p.bound]:.0%} of the machine time of a token; {', '.join(gains)}"


def _gain(share: float, more: float = 0.1) -> float:
    """Throughput gained when a resource with that share of the time becomes 10 % faster."""
    return 1.0 / (1.0 - share * (1.0 - 1.0 / (1.0 + more))) - 1.0


def _asked(report: PlanReport) -> tuple[str, ...]:
    w = report.workload
    lengths = f"{w.prompt_tokens:,.10g} tokens in, {w.output_tokens:,.10g} out"
    load = f"{w.rate_per_s:g} requests/s" if w.rate_per_s else "replicas at full load"
    ttft = f"TTFT {format_seconds(w.ttft_s)}" if w.ttft_s else "no TTFT limit"
    tpot = f"TPOT {format_seconds(w.tpot_s)}" if w.tpot_s else "no TPOT limit"
    asked = [f"{w.task}: {lengths}"]
    if w.task == "serve":
        asked += [load, ttft, tpot]
    stale = (
        ["* = no offer of the last 90 days"] if any(p.price and p.price.stale for p in report.plans) else []
    )
    return (*asked, *stale)
