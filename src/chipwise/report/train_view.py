"""Plans for training as tables."""

from __future__ import annotations

from collections import Counter

from chipwise.report.plan_view import model_line
from chipwise.report.records import Figure
from chipwise.report.table import Table
from chipwise.report.train_notes import dollars, footnotes, unit_of
from chipwise.report.train_records import TrainPlanRecord, TrainReport
from chipwise.report.train_shares import OVERHEADS, overhead
from chipwise.search.training import FITS, RISKY
from chipwise.units import format_bytes, format_count, format_number, format_seconds

__all__ = ["layout_views", "scaling_view", "train_view"]

SHOWN = 12
ABOVE = 1.005  # efficiency that is printed as more than 100 %
# What a layout does for want of memory, by its word in the label.
SPARED = {
    "recompute": "recompute",
    "optimiser in host": "keep the optimiser in host memory",
    "fsdp": "cut weights",
}
OF_EACH = 2  # plans of each chip, where there are several


def train_view(report: TrainReport, command: str = "", *, everything: bool = False) -> Table:
    """The ranked plans, turnaround beside cost. `command` shows the first alone, for the last line."""
    plans = _shown(report, everything)
    columns = ("#", "plan", "step", "tokens/s", "MFU", "time", "$", "memory", "bound by", "basis")
    right = frozenset(("#", "tokens/s", "MFU", "memory"))
    head = (model_line(report.model), f"{report.task}: {format_count(report.tokens)} tokens", "")
    foot = footnotes(report, plans, command) if plans else []
    return Table(columns, [_row(p) for p in plans], head, tuple(foot), right, report.plans)


def _shown(report: TrainReport, everything: bool) -> list[TrainPlanRecord]:
    """The first plans; of more than two chips the best of each."""
    if everything or len({p.chip for p in report.plans}) <= 2:
        return list(report.plans if everything else report.plans[:SHOWN])
    seen: Counter[str] = Counter()
    found = []
    for p in report.plans:
        seen[p.chip] += 1
        found += [p] if seen[p.chip] <= OF_EACH else []
    return found


def layout_views(p: TrainPlanRecord) -> tuple[Table, Table]:
    """One layout in full: where the time of a step and the memory of every pipeline stage go."""
    label = f"{p.chips:,}x {p.chip} ({p.layout.label}, {p.layout.micro_batches:,} micro-batches)"
    times = Table(
        ("resource", "share of a step", "time"),
        [(name, f"{share:.1%}", format_seconds(share * p.step_s.mid)) for name, share in p.shares.items()],
        (f"where a step of {label} goes", ""),
        right=frozenset(("share of a step", "time")),
        records=[{"resource": n, "share": s, "seconds": s * p.step_s.mid} for n, s in p.shares.items()],
    )
    stages = p.stages or (p.memory,)
    uses = [name for name in p.memory if any(stage[name] >= 0.5e6 for stage in stages)]
    memory = Table(
        ("stage", *uses, "in all", "of memory"),
        [
            (
                str(i + 1),
                *(format_bytes(stage[name]) for name in uses),
                format_bytes(sum(stage.values())),
                f"{sum(stage.values()) / p.capacity_bytes:.0%}",
            )
            for i, stage in enumerate(stages)
        ],
        (f"memory of a device by pipeline stage: {FITS:.0%} is aimed at, {RISKY:.0%} is the limit", ""),
        right=frozenset(("stage", *uses, "in all", "of memory")),
        records=[{"stage": i + 1, **stage} for i, stage in enumerate(stages)],
    )
    return times, memory


def scaling_view(report: TrainReport) -> Table:
    """Scaling curves: the best layout of each count; parts of a step add up to it."""
    rows = [
        (
            s.chip,
            s.kind,
            f"{s.chips:,}",
            s.label,
            format_seconds(s.step_s),
            format_count(s.tokens_per_s),
            f"{s.efficiency:.0%}",
            f"{1.0 - overhead(s.shares):.0%}",
            *(f"{s.shares[name]:.0%}" for name in OVERHEADS),
        )
        for s in report.scaling
    ]
    figures = ("efficiency", "compute+memory", *OVERHEADS)
    columns = ("chip", "scaling", "chips", "layout", "step", "tokens/s", *figures)
    right = frozenset(("chips", "step", "tokens/s", *figures))
    foot = tuple(
        line for chip in dict.fromkeys(s.chip for s in report.scaling) for line in _bases(report, chip)
    )
    return Table(
        columns, rows, ("scaling at the best layout of each count", ""), foot, right, records=report.scaling
    )


def _bases(report: TrainReport, chip: str) -> list[str]:
    """What efficiency is relative to, and why it exceeds that."""
    lines = []
    for kind in dict.fromkeys(s.kind for s in report.scaling if s.chip == chip):
        first, *rest = [s for s in report.scaling if (s.chip, s.kind) == (chip, kind)]
        above = [s for s in rest if s.efficiency >= ABOVE]
        text = f"{chip}, {kind}: efficiency against {first.chips:,} chips"
        if above:
            spared = [
                name for sign, name in SPARED.items() if sign in first.label and sign not in above[0].label
            ]
            needs = f"{first.chips:,} {' and '.join(spared)}, more need not"
            text += f"; above 100%: {needs if spared else 'more have room for a faster layout'}"
        lines.append(text)
    return lines


def _row(p: TrainPlanRecord) -> tuple[str, ...]:
    name = f"{p.chips:,}x {p.chip}  {p.layout.label}  {p.precision}"
    return (
        str(p.rank),
        name,
        format_seconds(p.step_s.mid),
        format_count(p.tokens_per_s.mid),
        f"{p.mfu:.0%}",
        _range(p.days),
        "-" if p.usd is None else dollars(p.usd.low, p.usd.mid, p.usd.high),
        f"{format_bytes(p.memory_bytes)} of {format_bytes(p.capacity_bytes)}"
        + (f", {p.verdict}" if p.verdict != "fits" else ""),
        f"{p.bound} {p.shares[p.bound]:.0%}",
        p.days.basis,
    )


def _range(f: Figure) -> str:
    size, unit = unit_of(f.mid)
    low, mid, high = (format_number(v / size) for v in (f.low, f.mid, f.high))
    return f"{mid} {unit} [{low}-{high}]"
