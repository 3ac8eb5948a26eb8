"""Models that generate no tokens: time, throughput and memory of a request on chips, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chipwise.catalog.system import load_systems
from chipwise.report import figures
from chipwise.report.answer import Answer
from chipwise.report.plans import GROUPS
from chipwise.report.records import (
    SCHEMA_VERSION,
    EnergyRecord,
    Figure,
    PriceRecord,
    Quantified,
    RefusalRecord,
)
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_count, format_number, format_seconds

__all__ = ["MEDIA", "MediaPlan", "MediaReport", "media_view", "media_words", "verdict"]

SHOWN = 12
FIRST = 6  # chips that are named of those refused for one reason


@dataclass(frozen=True, slots=True)
class MediaPlan(Quantified):
    """A pipeline on chips.

    `batch` samples take `latency_s` on one replica of `chips`; `samples_per_s` of all `replicas`, and
    `tokens_per_s` where samples are texts or said in words; `step_s` is one call
    of the part that is called most often (a denoising step, a training step), `it_per_s` how many pass per second.
    `shares` of the latency by resource, `stages` its seconds by part of the model. `memory` are bytes of one device by
    kind, `memory_bytes` their sum, `memory_range` the same with its interval; `spread` says how devices share the work.
    `energy` counts joules per sample, None where the chip's power limit is not published.
    `note`: of a plan that does not fit, what would.
    """

    chip: str
    chips: int
    runtime: str
    precision: str
    spread: str
    offload: str
    batch: int
    replicas: int
    latency_s: Figure
    step_s: Figure
    it_per_s: Figure
    samples_per_s: Figure
    tokens_per_s: Figure | None
    bound: str
    shares: dict[str, float]
    stages: dict[str, float]
    memory_bytes: float
    memory_range: Figure
    memory: dict[str, float]
    capacity_bytes: float
    verdict: str
    flops_per_s: float
    share_of_peak: float
    energy: EnergyRecord | None
    price: PriceRecord | None
    usd_per_1000: Figure | None
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class MediaReport(Answer):
    """The answer to `plan`, `estimate`, `explain` and `fit` about a model that generates no tokens, best plan first.

    `unit` is what one sample is; `settings` are the sizes it was asked with; `flops` of one request.
    """

    model: str
    unit: str
    trained: bool
    parameters: int
    flops: float
    settings: Mapping[str, float]
    plans: tuple[MediaPlan, ...]
    refused: tuple[RefusalRecord, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)


def _timed(p: MediaPlan) -> bool:
    """Whether operators are known, and not weights alone."""
    return p.flops_per_s > 0.0


def _latency(p: MediaPlan) -> Figure | None:
    return p.latency_s if _timed(p) else None


def _step(p: MediaPlan) -> float | None:
    return p.step_s.mid if _timed(p) else None


def _rate(p: MediaPlan) -> Figure | None:
    return p.samples_per_s if _timed(p) else None


def _usd(p: MediaPlan) -> Figure | None:
    return p.usd_per_1000 if _timed(p) else None


def _count(p: MediaPlan) -> int:
    return p.chips * p.replicas


def _spread(p: MediaPlan) -> str | None:
    return p.spread or None


def _offloaded(p: MediaPlan) -> str | None:
    return None if p.offload == "none" else p.offload


def _bottleneck(p: MediaPlan) -> str | None:
    return f"{p.bound} {p.shares[p.bound]:.0%}" if _timed(p) else None


def _fits(p: MediaPlan) -> str:
    return p.verdict if p.verdict != "no" else f"no, {format_bytes(p.memory_bytes - p.capacity_bytes)} short"


def _cost(p: MediaPlan) -> str | None:
    usd = _usd(p)
    return None if usd is None else f"${figures.mid(usd)}"


MEDIA = (
    Column("chip", "chip", short="chip"),
    Column("count", _count, right=True, short="chips"),
    Column("spread", _spread, spare=2, short="spread"),
    Column("batch", "batch", right=True, short="batch"),
    Column("time", _latency, figures.seconds, right=True, short="latency_s"),
    Column("step", _step, format_seconds, right=True, spare=3, short="step_s"),
    Column("samples/s", _rate, figures.number, right=True, short="samples_per_s"),
    Column("memory", "memory_bytes", format_bytes, right=True),
    Column("fits", _fits),
    Column("offload", _offloaded, short="offload"),
    Column("", "memory_bytes", short="memory_gb", scale=1e-9),
    Column("bottleneck", _bottleneck, spare=1, short="bottleneck"),
    Column("per 1,000", _cost, right=True),
    Column("", _usd, short="usd_per_1000"),
    Column("runtime", "runtime", spare=4, short="runtime"),
    Column("", "verdict", short="verdict"),
    Column("basis", "latency_s.basis", short="basis", spare=5),
)
"""What is said of a plan."""

SOMETIMES = ("spread", "offload")
"""Columns that are left out where no plan has any of it."""


def verdict(report: MediaReport) -> str:
    """One sentence that could stand alone."""
    if not report.plans:
        return f"{report.model}: nothing that was asked about runs it."
    p = report.plans[0]
    if not _timed(p):
        fits = sum(plan.verdict != "no" for plan in report.plans)
        room = f"{format_bytes(p.memory_bytes)} of {format_bytes(p.capacity_bytes)}"
        return f"{report.model} fits on {fits} of {len(report.plans)} chips: {p.chips}x {p.chip}, {room}; not timed."
    together = f"a batch of {p.batch} {report.unit}s" if p.batch != 1 else f"1 {report.unit}"
    what = "one training step" if report.trained else together
    many = f"{p.replicas} x " if p.replicas > 1 else ""
    cost = f", {_cost(p)} per 1,000" if p.usd_per_1000 else ""
    each = f"{figures.seconds(p.latency_s)} for {what}"
    if p.verdict == "no":
        short = format_bytes(p.memory_bytes - p.capacity_bytes)
        return f"{report.model} does not fit {p.chips}x {p.chip}: {short} short" + (
            f"; {p.note}." if p.note else "."
        )
    how = p.runtime + (f", offload {p.offload}" if p.offload != "none" else "")
    return f"{report.model} on {many}{p.chips}x {p.chip} ({how}): {each}{cost}; bottleneck: {p.bound}."


def media_words(report: MediaReport) -> tuple[str, ...]:
    """Name, parameters, work of a request, and the sizes that it was asked with."""
    sizes = (
        f"{name.removesuffix('_bytes').replace('_', ' ')} {format_bytes(value)}"
        if name.endswith("_bytes")
        else f"{name} {value:g}"
        for name, value in report.settings.items()
    )
    work = f"{format_number(report.flops / 1e12)} TFLOP a request" if report.flops else "operations not known"
    return report.model, f"{format_count(report.parameters)} parameters", work, *sizes


def media_view(report: MediaReport, *, everything: bool = False) -> tuple[Table, ...]:
    """A line per plan under the verdict; of a single plan its parts and its memory."""
    count, work, *sizes = media_words(report)[1:]
    head = (verdict(report), f"{count}, {work}" + (f"; {', '.join(sizes)}" if sizes else ""), "")
    foot = _refused(report.refused, everything=everything)
    if report.assumptions:
        foot.append(f"assumed: {'; '.join(report.assumptions)}")
    plans = report.plans if everything else report.plans[:SHOWN]
    columns = [c for c in MEDIA if c.head not in SOMETIMES or any(c.value(p) is not None for p in plans)]
    first = Table.of(plans, columns, head, foot)
    if len(report.plans) != 1:
        return (first,)
    p = report.plans[0]
    memory = _memory_table(p)
    if not _timed(p):
        return first, memory
    seconds = [
        {"part": name, "seconds": value, "share": value / p.latency_s.mid} for name, value in p.stages.items()
    ]
    parts = Table.of(
        seconds,
        (
            Column("part", "part"),
            Column("time", "seconds", format_seconds, right=True),
            Column("share", "share", "{:.0%}".format, right=True),
        ),
        ("time by part of the model", ""),
    )
    return first, parts, memory


def _refused(refused: Sequence[RefusalRecord], *, everything: bool) -> list[str]:
    """A line for each reason with the chips that it holds for, those in servers for rent first."""

    def at_home(r: RefusalRecord) -> bool:
        return not any("rent" in system.offered for system in load_systems().holding(r.chip))

    grouped: dict[str, list[RefusalRecord]] = {}
    for r in sorted(refused, key=at_home):
        words = r.detail if r.reason == "NO_RUNTIME" else GROUPS.get(r.reason, r.detail)
        grouped.setdefault(words, []).append(r)
    lines = []
    for words, members in grouped.items():
        shown = [r.chip for r in (members if everything else members[:FIRST])]
        more = f" and {len(members) - len(shown)} more (--all)" if len(members) > len(shown) else ""
        said = f"{words}: {', '.join(shown)}{more}"
        lines.append(said if len(members) > 1 else f"{shown[0]}: {members[0].detail}")
    return lines


def _memory_table(p: MediaPlan) -> Table:
    kinds = [{"use": name, "bytes": value} for name, value in p.memory.items()]
    return Table.of(
        kinds,
        (Column("use", "use"), Column("bytes", "bytes", format_bytes, right=True)),
        (f"memory of one device, of {format_bytes(p.capacity_bytes)}", ""),
    )
