"""What stands below a table of training plans: how to read it, its order and limits, ties, and what to ask next."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.report.train_records import (
    SHARDING,
    TakeoverRecord,
    TrainLayoutRecord,
    TrainPlanRecord,
    TrainReport,
)
from chipwise.search.training import FITS, RISKY
from chipwise.units import format_bytes, format_count, format_number

__all__ = ["dollars", "duration", "footnotes", "kept", "unit_of"]

MANY = 8  # stages listed one by one
REFUSED = 8  # chips without a plan that are named
DAY_S = 86400.0


def footnotes(report: TrainReport, shown: Sequence[TrainPlanRecord], command: str) -> list[str]:
    """The lines, top to bottom; `command` shows the first plan alone."""
    first = report.plans[0]
    foot = [_legend(shown), f"ranked: {_ranked(report)}"]
    ranks = {p.rank for p in shown}
    front = [p.rank for p in report.plans if p.on_front]
    if len(front) > 1:
        hidden = len([r for r in front if r not in ranks])
        listed = ", ".join(str(r) for r in front if r in ranks)
        foot.append(f"front, cost against turnaround: {listed}" + (f", {hidden} more" if hidden else ""))
    if first.ties:
        foot.append(
            f"tie: {', '.join(map(str, first.ties))} may cost less than #1, as far as step times are known"
        )
    if len(shown) < len(report.plans):
        foot.append(f"{len(report.plans) - len(shown)} more (--all)")
    foot += [_outcome(first), _memory(first), *(f"why #1: {line}" for line in first.why)]
    foot += [_takeover(report, chip, over) for chip, over in report.takes_over.items()]
    foot += [f"{refusal.chip}: {refusal.detail}" for refusal in report.refused[:REFUSED]]
    if len(report.refused) > REFUSED:
        foot.append(f"{len(report.refused) - REFUSED} more chips without a plan (--format json)")
    foot.append(f"assumed: {'; '.join(report.assumptions)}")
    return [*foot, f"next: {command}"] if command else foot


def _legend(plans: Sequence[TrainPlanRecord]) -> str:
    """The signs of the table in words."""
    layouts = [p.layout for p in plans]
    names = {
        "tp": "tensor",
        "pp": "pipeline",
        "vp": "virtual stages",
        "cp": "context",
        "ep": "experts",
        "dp": "data",
    }
    used = [f"{k} {what}" for k, what in names.items() if any(getattr(at, k) > 1 for at in layouts)]
    signs = [f"ways to cut: {', '.join(used)}"] if used else []
    signs += [
        "b = sequences of a micro-batch",
        "mid [low-high] = 80 % interval, of $ with the range of prices",
    ]
    if any(p.verdict == "tight" for p in plans):
        signs.append(f"tight = memory of more than the {FITS:.0%} that is aimed at, {RISKY:.0%} is the limit")
    return f"read: {'; '.join(signs)}"


def _ranked(report: TrainReport) -> str:
    """The order in words, and what was asked for."""
    priced = any(p.usd for p in report.plans)
    by = "by middle $, those without a price last" if priced else "by time, the shortest first"
    names = {"days": "time", "usd": "$", "usd_per_h": "$/h"}
    said = {k: duration(v) if k == "days" else format_count(v) for k, v in report.limits.items()}
    limits = [f"middle {names[k]} at most {text}" for k, text in said.items()]
    return f"{by}; {', '.join(limits)}" if limits else by


def _outcome(p: TrainPlanRecord) -> str:
    """What a plan comes to besides its step."""
    saved = (
        f"with a checkpoint every {duration(p.checkpoint_s / DAY_S)}"
        if p.checkpoint_s < p.days.mid * DAY_S
        else "without a checkpoint before its end"
    )
    parts = [
        f"{format_count(p.tokens_per_day)} tokens a day",
        f"HFU {p.hfu:.0%}",
        f"goodput {p.goodput:.1%} {saved}",
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
    """Where something else than compute and memory takes over in strong scaling, and what."""
    if over.chips:
        parts = sorted(over.shares.items(), key=lambda i: -i[1])
        told = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.005)
        takes = "take" if over.cause == "stragglers" else "takes"
        return (
            f"{chip}: the {over.cause} {takes} over at {over.chips:,} chips, strong scaling: {told} of a step"
        )
    most = max((s.chips for s in report.scaling if s.chip == chip), default=0)
    return f"{chip}: up to {most:,} chips compute and memory take at least half of a step, strong scaling"


def kept(at: TrainLayoutRecord) -> str:
    """A layout as `--layout` takes it."""
    degrees = {name: getattr(at, name) for name in ("tp", "pp", "vp", "cp", "ep", "dp")}
    parts = [f"{name}={n}" for name, n in degrees.items() if n > 1]
    parts += [f"micro_batch={at.micro_batch}", f"zero={SHARDING.index(at.sharding)}"]
    parts += [f"shard={at.shard_ranks}"] if at.sharding == "fsdp" else []
    parts += [f"schedule={at.schedule}"] if at.schedule else []
    return ",".join(
        [*parts, f"recompute={at.recompute.removesuffix(' of layers')}", f"offload={at.offload:.0f}"]
    )


def duration(days: float) -> str:
    """Days in the unit that people would use: `14.5 min`, `3.2 h`, `640 d`."""
    size, unit = unit_of(days)
    return f"{format_number(days / size)} {unit}"


def unit_of(days: float) -> tuple[float, str]:
    """(days of the unit, its name)."""
    units = ((2.0, 1.0, "d"), (1.0 / 24.0, 1.0 / 24.0, "h"), (60.0 / DAY_S, 60.0 / DAY_S, "min"))
    return next(((size, name) for start, size, name in units if days >= start), (1.0 / DAY_S, "s"))


def dollars(low: float, mid: float, high: float) -> str:
    """`1.08 M [640 k-3.2 M]`."""
    return f"{format_count(mid)} [{format_count(low, 2)}-{format_count(high, 2)}]"
