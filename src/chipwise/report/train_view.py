"""Plans for training as tables."""

from __future__ import annotations

from chipwise.report.plan_view import model_line
from chipwise.report.records import Figure
from chipwise.report.table import Table
from chipwise.report.train_records import TakeoverRecord, TrainPlanRecord, TrainReport
from chipwise.report.train_shares import WAITING
from chipwise.units import format_bytes, format_count, format_number, format_seconds

__all__ = ["duration", "scaling_view", "train_view"]

SHOWN = 12
MANY = 8  # stages listed one by one
DAY_S = 86400.0


def train_view(report: TrainReport, *, everything: bool = False) -> Table:
    """The ranked plans, turnaround beside cost."""
    plans = report.plans if everything else report.plans[:SHOWN]
    columns = ("#", "plan", "step", "tokens/s", "MFU", "time", "$", "memory", "bound by", "basis")
    foot = []
    front = [str(p.rank) for p in report.plans if p.on_front]
    if len(front) > 1:
        foot.append(f"front, cost against turnaround: {', '.join(front)}")
    if len(plans) < len(report.plans):
        foot.append(f"{len(report.plans) - len(plans)} more (--all){_firsts(report)}")
    if report.plans:
        foot.append(_outcome(report.plans[0]))
        foot.append(_memory(report.plans[0]))
        foot += [f"why #1: {line}" for line in report.plans[0].why]
    foot += [_takeover(report, chip, over) for chip, over in report.takes_over.items()]
    for refusal in report.refused[:6]:
        foot.append(f"{refusal.chip}: {refusal.detail}")
    foot.append(f"assumed: {'; '.join(report.assumptions)}")
    right = frozenset(("#", "tokens/s", "MFU", "memory"))
    title = f"{report.task}: {format_count(report.tokens)} tokens"
    head = (model_line(report.model), title, "")
    return Table(columns, [_row(p) for p in plans], head, tuple(foot), right, report.plans)


def _firsts(report: TrainReport) -> str:
    """Where each chip comes first, where there are several."""
    first: dict[str, int] = {}
    for p in report.plans:
        first.setdefault(p.chip, p.rank)
    listed = ", ".join(f"#{rank} {chip}" for chip, rank in first.items())
    return f"; first of each chip: {listed}" if len(first) > 1 else ""


def _outcome(p: TrainPlanRecord) -> str:
    """What a plan comes to besides its step."""
    parts = [
        f"{format_count(p.tokens_per_day)} tokens a day",
        f"HFU {p.hfu:.0%}",
        f"goodput {p.goodput:.1%} with a checkpoint every {duration(p.checkpoint_s / DAY_S)}",
    ]
    if p.energy_kwh is not None:
        parts.append(f"at most {format_count(p.energy_kwh)} kWh by the chips' power limits")
    return f"#1: {', '.join(parts)}"


def _memory(p: TrainPlanRecord) -> str:
    """Memory of the fullest stage by use, and of all stages."""
    used = [f"{name} {format_bytes(v)}" for name, v in p.memory.items() if v >= 0.5e6]
    text = f"#1 memory: {', '.join(used)}"
    if len(p.stages) < 2:
        return text
    totals = [format_bytes(sum(stage.values())) for stage in p.stages]
    if len(totals) > MANY:
        totals = [*totals[: MANY // 2], "...", *totals[-2:]]
    return f"{text}; by stage {', '.join(totals)}"


def _takeover(report: TrainReport, chip: str, over: TakeoverRecord) -> str:
    """Where waiting takes over in strong scaling, and what chips wait for."""
    if over.chips:
        parts = sorted(over.shares.items(), key=lambda i: -i[1])
        told = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.005)
        return (
            f"{chip}: the {over.cause} takes over at {over.chips:,} chips, strong scaling: {told} of a step"
        )
    most = max((s.chips for s in report.scaling if s.chip == chip), default=0)
    return f"{chip}: up to {most:,} chips at most half of a step is waiting for one another"


def scaling_view(report: TrainReport) -> Table:
    """Scaling curves: the best layout of each count."""
    rows = [
        (
            s.chip,
            s.kind,
            f"{s.chips:,}",
            s.label,
            format_seconds(s.step_s),
            format_count(s.tokens_per_s),
            f"{s.efficiency:.0%}",
            *(f"{s.shares[name]:.0%}" for name in WAITING),
        )
        for s in report.scaling
    ]
    columns = ("chip", "scaling", "chips", "layout", "step", "tokens/s", "efficiency", *WAITING)
    right = frozenset(("chips", "step", "tokens/s", "efficiency", *WAITING))
    return Table(
        columns, rows, ("scaling at the best layout of each count", ""), right=right, records=report.scaling
    )


def _row(p: TrainPlanRecord) -> tuple[str, ...]:
    name = f"{p.chips:,}x {p.chip}  {p.layout.label}  {p.precision}"
    return (
        str(p.rank),
        name,
        format_seconds(p.step_s.mid),
        format_count(p.tokens_per_s.mid),
        f"{p.mfu:.0%}",
        _range(p.days),
        "-" if p.usd is None else _dollars(p.usd),
        f"{format_bytes(p.memory_bytes)} of {format_bytes(p.capacity_bytes)}",
        f"{p.bound} {p.shares[p.bound]:.0%}",
        p.days.basis,
    )


def _range(f: Figure) -> str:
    size, unit = _unit(f.mid)
    low, mid, high = (format_number(v / size) for v in (f.low, f.mid, f.high))
    return f"{mid} {unit} [{low}-{high}]"


def duration(days: float) -> str:
    """Days in the unit that people would use: `14.5 min`, `3.2 h`, `640 d`."""
    size, unit = _unit(days)
    return f"{format_number(days / size)} {unit}"


def _unit(days: float) -> tuple[float, str]:
    """(days of the unit, its name)."""
    units = ((2.0, 1.0, "d"), (1.0 / 24.0, 1.0 / 24.0, "h"), (60.0 / DAY_S, 60.0 / DAY_S, "min"))
    return next(((size, name) for start, size, name in units if days >= start), (1.0 / DAY_S, "s"))


def _dollars(f: Figure) -> str:
    return f"{format_count(f.low, 2)}-{format_count(f.high, 2)}"
