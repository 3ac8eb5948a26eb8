"""Plans for reinforcement learning: sampling and training on one fleet, what is said of each."""

from __future__ import annotations

from dataclasses import field

from chipwise.report.plan import CHIP, RANK, Plan, Ranking
from chipwise.report.records import SCHEMA_VERSION, Figure, ModelRecord, RefusalRecord
from chipwise.report.table import Column, Table
from chipwise.report.training import TrainLayoutRecord, duration
from chipwise.units import format_count, format_seconds
from chipwise.values import dataclass

SHOWN = 12


@dataclass(frozen=True, slots=True)
class RlPlanRecord(Plan):
    """A way to run the loop. `placement` together: all chips sample, then train; apart: `train_chips` and
    `rollout_chips` work side by side, training one step behind. `layout` of training, its degrees in `training`; `tp`,
    `pp` and `replicas` of the engines that sample in `rollout_precision`, `concurrency` of each at the beginning of a
    step. `step_s` of the loop, `parts` of it in seconds (rollout, scoring, training, sync, swap); apart the longer of
    rollout and of scoring with training counts. `tokens_per_s` are sampled. `idle`: the share in which one side waits
    for the other, `drained`: the share of sampling in which engines run with less than half of their sequences.
    `host_bytes` that a chip's host holds while the chip samples."""

    placement: str
    train_chips: int
    rollout_chips: int
    layout: str
    tp: int
    concurrency: float
    trainer: str
    rollout_precision: str
    step_s: Figure
    tokens_per_s: Figure
    parts: dict[str, float]
    idle: float
    drained: float
    days: Figure
    usd: Figure | None
    host_bytes: float
    why: tuple[str, ...]
    training: TrainLayoutRecord
    pp: int = 1

    @property
    def engine(self) -> str:
        """The layout of an engine."""
        return f"tp{self.tp}" + (f" pp{self.pp}" if self.pp > 1 else "")


@dataclass(frozen=True, slots=True, repr=False)
class RlReport(Ranking[RlPlanRecord]):
    """The answer to `rl`: plans, cheapest first."""

    model: ModelRecord
    steps: int
    answers: int
    plans: tuple[RlPlanRecord, ...]
    refused: tuple[RefusalRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """What to take, how long it runs and its bottleneck."""
        return _verdict(self)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per plan."""
        head = (
            self.model.line,
            f"rl: {self.steps:,} steps of {self.answers:,} answers",
            "",
            " ".join(self.verdict()),
            "",
        )
        first = self.plans[0]
        parts = ", ".join(f"{name} {format_seconds(s)}" for name, s in first.parts.items() if s)
        foot = [f"#1 step: {parts}", *(f"why #1: {line}" for line in first.why)]
        foot += [f"{r.chip}: {r.detail}" for r in self.refused[:SHOWN]]
        foot.append(f"assumed: {'; '.join(self.assumptions)}")
        return (Table.of(self.plans[:SHOWN], REINFORCED, head, foot, values=self.plans),)


def _fleet(p: RlPlanRecord) -> str:
    if p.placement == "together":
        return p.machines
    return f"{p.rollout_chips:,} + {p.train_chips:,}x {p.chip}"


def _time(f: Figure) -> str:
    return f"{duration(f.mid)} [{duration(f.low)} to {duration(f.high)}]"


REINFORCED = (
    RANK,
    Column("sampling + training", _fleet),
    CHIP,
    Column("", "chips", short="chips", scale=0),
    Column("placement", "placement", short="placement"),
    Column("", "train_chips", short="train_chips", scale=0),
    Column("", "rollout_chips", short="rollout_chips", scale=0),
    Column("engines", lambda p: f"{p.replicas:,} x {p.engine}", spare=1),
    Column("training", "layout", prose=True, spare=2, short="layout"),
    Column("step", "step_s.mid", format_seconds, right=True),
    Column("", "step_s", short="step_s"),
    Column("rollout", lambda p: p.parts["rollout"], format_seconds, right=True),
    Column("train", lambda p: p.parts["scoring"] + p.parts["training"], format_seconds, right=True),
    Column("tokens/s", "tokens_per_s.mid", format_count, right=True, spare=3),
    Column("", "tokens_per_s", short="tokens_per_s"),
    Column("time", "days", _time, right=True, spare=1, short="days"),
    Column("$", "usd", lambda f: format_count(f.mid), right=True, short="usd"),
    Column("", "parts", short="seconds_of_step"),
    Column("", "bound", short="bottleneck"),
    Column("", "why", short="why"),
)
"""What is said of a plan for reinforcement learning."""


def _longest(bound: str) -> str:
    """What takes the longest, as the subject of a sentence."""
    return {"rollout": "Sampling takes", "training": "Scoring and training take"}.get(
        bound, f"{bound.capitalize()} takes"
    )


def _verdict(report: RlReport) -> tuple[str, ...]:
    p = report.plans[0]
    cost = "no price is known" if p.usd is None else f"about ${format_count(p.usd.mid)}"
    engines = f"{p.replicas:,} {p.runtime} engine{'s' if p.replicas > 1 else ''} at {p.engine}"
    how = f"{p.trainer} with {engines} on the same chips, in turn"
    if p.placement == "apart":
        chips = f"{p.train_chips:,} chip{'s' if p.train_chips > 1 else ''}"
        others = f"{p.rollout_chips:,} other{'s' if p.rollout_chips > 1 else ''}"
        how = f"{p.trainer} on {chips}, and {engines} on {others}, one step off policy"
    took = f"{_time(p.days)} for {report.steps:,} steps of {format_seconds(p.step_s.mid)}"
    return f"Take {p.machines}: {how}: {took}, {cost}.", f"{_longest(p.bound)} most of a step."
