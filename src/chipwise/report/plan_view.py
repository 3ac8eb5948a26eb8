"""Plans as a table: what to rent, what it does, what it costs, and why."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.catalog.offer import PRICE_NOISE
from chipwise.report.figures_view import figures_view
from chipwise.report.gain import gain
from chipwise.report.memory_view import memory_view
from chipwise.report.records import Figure, ModelRecord, PlanRecord, PlanReport, PriceRecord, RefusalRecord
from chipwise.report.table import Table
from chipwise.units import format_bytes, format_count, format_number, format_seconds

__all__ = ["breakdown_view", "cache_text", "model_line", "plan_view", "span"]

SHOWN = 10
MORE = 8  # plans not shown that are named
NAMED = 3  # plans whose nearest published result is spelt out
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
    "NO_PRICE": "no price known",
    "NO_COST_MODEL": "not timed yet",
    "NO_RUNTIME": "no runtime",
    "NO_MEMORY_FIGURE": "capacity or bandwidth not published",
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
    columns = (
        "#",
        "plan",
        "$/h",
        "$/M in",
        "$/M out",
        "TTFT",
        "TPOT",
        "tok/s/chip",
        "tok/s/user",
        "bound by",
        "runtime",
        "basis",
    )
    rows = [_row(p) for p in plans]
    foot = [_legend(plans), f"ranked: {_ranked(report)}"]
    front = [str(p.rank) for p in report.plans if p.on_front]
    if len(front) > 1:
        foot.append(f"front, no other plan is both cheaper and faster: {', '.join(front)}")
    unpriced = [str(p.rank) for p in plans if p.price is None]
    if unpriced and len(unpriced) < len(plans):
        foot.append(f"no price is known of {', '.join(unpriced)}: not compared in cost, and not on the front")
    first = report.plans[0]
    if first.ties:
        ties = ", ".join(map(str, first.ties))
        foot.append(f"tie: {ties} may be as good as #1, each lies inside the other's interval")
    if len(plans) < len(report.plans):
        left = report.plans[len(plans) :]
        more = ", ".join(f"{p.chips}x {p.chip}" for p in left[:MORE]) + (", ..." if len(left) > MORE else "")
        foot.append(f"{len(left)} more chip{'s' if len(left) > 1 else ''} (--all): {more}")
    foot += _refusals(report.refused)
    notes: dict[str, list[str]] = {}
    for plan in plans:
        if plan.note:
            notes.setdefault(plan.note, []).append(f"#{plan.rank}")
    foot += [f"{', '.join(ranks)}: {note}" for note, ranks in notes.items()]
    foot += [f"{', '.join(ranks)}: nearest published: {text}" for text, ranks in _published(plans).items()]
    foot += [*_tails(first), *_day(first)]
    foot.append(f"why #1: {_why(first)}")
    foot.append(f"assumed: {'; '.join((*_asked(report), *report.assumptions))}")
    foot.append(f"next: {command}")
    right = frozenset(("#", "$/h", "$/M in", "$/M out", "tok/s/chip", "tok/s/user"))
    return Table(columns, rows, (model_line(report.model), ""), tuple(foot), right, report.plans)


def breakdown_view(plan: PlanRecord) -> tuple[Table, Table, Table]:
    """What the plan does, where the time of a token and the memory of a device go."""
    times = Table(
        ("resource", "share of time", "10 % more of it gives"),
        [
            (RESOURCE.get(name, name), f"{share:.1%}", f"+{gain(share):.1%} tokens/s")
            for name, share in plan.shares.items()
        ],
        (f"what an output token of {plan.chips}x {plan.chip} ({plan.layout.label}) costs in machine time",),
        foot=_money(plan),
        right=frozenset(("share of time", "10 % more of it gives")),
        records=[
            {"resource": name, "share_of_time": share, "tokens_per_s_gained_by_10_percent": gain(share)}
            for name, share in plan.shares.items()
        ],
    )
    return figures_view(plan), times, memory_view(plan.memory, plan.layout.label, plan.runtime)


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
    cache = "" if p.kv in ("bf16", "fp16") else f"  kv {p.kv}"
    name = f"{p.chips}x {p.chip}  {p.spread}  {p.precision}{cache}  b{p.batch:.0f}"
    return (
        str(p.rank),
        name,
        _price(p.price),
        _range(p.usd_per_million_in),
        _range(p.usd_per_million_out),
        _time(p.ttft_s),
        "-" if p.tpot_s is None else _time(p.tpot_s),
        f"{p.tokens_per_s_per_chip.mid:,.0f}",
        "-" if p.tokens_per_s_per_user is None else format_number(p.tokens_per_s_per_user.mid, 2),
        f"{p.bound} {p.shares[p.bound]:.0%}",
        p.runtime,
        p.pace.basis,
    )


def _price(price: PriceRecord | None) -> str:
    if price is None:
        return "-"
    stale = "*" if price.stale else ""
    if price.low == price.high:
        return f"{format_number(price.mid)}{stale}"
    return f"{format_number(price.mid)} [{format_number(price.low)}-{format_number(price.high)}]{stale}"


def _range(figure: Figure | None) -> str:
    return "-" if figure is None else f"{format_number(figure.low, 2)}-{format_number(figure.high, 2)}"


def _time(figure: Figure) -> str:
    """All three numbers in the unit of the middle one."""
    unit = format_seconds(figure.mid).split()[-1]
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    mid, low, high = (format_number(x * scale) for x in (figure.mid, figure.low, figure.high))
    return f"{mid} [{low}-{high}] {unit}"


def _published(plans: Sequence[PlanRecord]) -> dict[str, list[str]]:
    """The nearest results of the first plans, by what they are good for."""
    found: dict[str, list[str]] = {}
    for p in plans[:NAMED]:
        if p.nearest is not None:
            moved = p.nearest.anchored_tokens_per_s / p.tokens_per_s.mid - 1.0
            by = f"; would move tokens/s by {moved:+.0%}" if p.nearest.weight else ""
            found.setdefault(f"{p.nearest.label}: {p.nearest.verdict}{by}", []).append(f"#{p.rank}")
    return found


def _tails(p: PlanRecord) -> list[str]:
    """Quantiles beside the means, as far as a formula holds."""
    said = []
    for name, field in (("TTFT", "ttft_s"), ("TPOT", "tpot_s")):
        found = {q: getattr(p.tails[q], field) for q in ("p95", "p99") if q in p.tails}
        known = [f"{q} {format_seconds(t)}" for q, t in found.items() if t is not None]
        if found:
            said.append(f"{name} {', '.join(known) if known else 'only a simulation could say'}")
    return [f"tails of #{p.rank}: {'; '.join(said)}"] if said else []


def _day(p: PlanRecord) -> list[str]:
    if p.day is None:
        return []
    d = p.day
    requests = f"{d.requests_per_day:,.0f} request" + ("" if round(d.requests_per_day) == 1 else "s")
    text = f"day of #{p.rank}: {requests}, used {d.mean_utilisation:.0%} on average"
    text += f" and {d.peak_utilisation:.0%} at the peak"
    if p.price is not None:
        text += (
            f"; {format_number(d.usd_per_day)} $ a day, {format_number(d.usd_per_m_tokens)} $/M out with all "
            f"replicas on, at least {format_number(d.scaled_usd_per_day)} $ and "
            f"{format_number(d.scaled_usd_per_m_tokens)} $/M if replicas followed the load"
        )
    return [text]


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
        f"10 % more {RESOURCE.get(name, name)} would give +{gain(share):.1%} tokens/s"
        for name, share in list(p.shares.items())[:2]
    ]
    return f"{p.bound} takes {p.shares[p.bound]:.0%} of the machine time of a token; {', '.join(gains)}"


def _asked(report: PlanReport) -> tuple[str, ...]:
    w = report.workload
    lengths = f"{w.prompt_tokens:,.10g} tokens in, {w.output_tokens:,.10g} out"
    load = f"{format_number(w.rate_per_s)} requests/s" if w.rate_per_s else "replicas at full load"
    of = "" if w.percentile is None else f"p{w.percentile * 100:g} "
    ttft = f"{of}TTFT {format_seconds(w.ttft_s)}" if w.ttft_s else "no TTFT limit"
    tpot = f"{of}TPOT {format_seconds(w.tpot_s)}" if w.tpot_s else "no TPOT limit"
    asked = [f"{w.task}: {lengths}"]
    if w.task == "serve":
        asked += [load, ttft, tpot]
    if w.e2e_s:
        asked.append(f"{of}answer within {format_seconds(w.e2e_s)}")
    return tuple(asked)


def _ranked(report: PlanReport) -> str:
    """The order of the plans in words (`assemble.rank_plans`)."""
    w = report.workload
    if w.task == "local":
        return "by the time of a whole answer, TTFT and all its tokens, the shortest first"
    if not any(p.price for p in report.plans):
        return "by tokens per second of the whole plan, the most first; no price is known"
    sized = w.task == "serve" and w.rate_per_s is not None
    by = "middle $/h" if sized else "middle $ per output token, prompts included"
    equal = (
        f"prices less than {PRICE_NOISE:.0%} above the cheapest of a run count as equal, the lower TPOT first"
    )
    return f"by {by}; {equal}; plans without a price last"


def _legend(plans: Sequence[PlanRecord]) -> str:
    """The signs of the table in words."""
    signs = ["b48 = 48 requests decoding at once in each replica", "mid [low-high] = 80 % interval"]
    if any(p.replicas > 1 for p in plans):
        signs.insert(0, "2 x (tp4) = two replicas of four devices")
    if any(p.price and p.price.stale for p in plans):
        signs.append("* = no offer of the last 90 days")
    return f"read: {'; '.join(signs)}"
