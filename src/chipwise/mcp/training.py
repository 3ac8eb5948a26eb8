"""Training plans in short."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.mcp.short import Range, model_text, range_of, refusals_of, rounded, span
from chipwise.report.train_records import TrainPlanRecord, TrainReport
from chipwise.report.train_view import duration

__all__ = ["TrainAnswer", "TrainLine", "train_answer"]

SHOWN = 5


@dataclass(frozen=True, slots=True)
class TrainLine:
    """A way to train: step in seconds, `days` and `usd` with the failures that are to be expected."""

    rank: int
    chip: str
    chips: int
    system: str
    layout: str
    precision: str
    step_s: Range
    tokens_per_s: Range
    mfu: float
    goodput: float
    days: Range
    usd: Range | None
    bound: str
    shares_of_time: dict[str, float]
    memory: str
    why: tuple[str, ...]
    basis: str
    on_front: bool
    ties: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TrainAnswer:
    """Plans of a training run, ranked."""

    verdict: str
    model: str
    tokens: float
    plans: tuple[TrainLine, ...]
    more_plans: int
    without_plan: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]
    details: TrainReport | None = field(default=None)


def train_answer(report: TrainReport) -> TrainAnswer:
    """The answer to train_plan in short."""
    verdict = "no plan"
    if report.plans:
        p = report.plans[0]
        dollars = f", {span(p.usd.low, p.usd.high)} $" if p.usd else ""
        took = f"{duration(p.days.low)} to {duration(p.days.high)}"
        verdict = f"#1 {p.chips}x {p.chip} {p.layout.label}: {took}{dollars}, MFU {p.mfu:.0%}"
    return TrainAnswer(
        verdict,
        model_text(report.model),
        report.tokens,
        tuple(map(_train, report.plans[:SHOWN])),
        max(0, len(report.plans) - SHOWN),
        refusals_of(report.refused),
        report.assumptions,
    )


def _train(p: TrainPlanRecord) -> TrainLine:
    return TrainLine(
        rank=p.rank,
        chip=p.chip,
        chips=p.chips,
        system=p.system,
        layout=p.layout.label,
        precision=p.precision,
        step_s=range_of(p.step_s),
        tokens_per_s=range_of(p.tokens_per_s),
        mfu=rounded(p.mfu),
        goodput=rounded(p.goodput),
        days=range_of(p.days),
        usd=range_of(p.usd) if p.usd else None,
        bound=p.bound,
        shares_of_time={name: rounded(share) for name, share in p.shares.items()},
        memory=p.verdict,
        why=p.why,
        basis=p.step_s.basis,
        on_front=p.on_front,
        ties=p.ties,
    )
