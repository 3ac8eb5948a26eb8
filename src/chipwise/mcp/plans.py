"""Plans in short: what an agent needs to choose, a few kilobytes instead of the whole record."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.mcp.short import Range, model_text, range_of, refusals_of, rounded, span
from chipwise.report.explain_records import ExplainReport
from chipwise.report.gain import gain
from chipwise.report.kernel_records import AmdahlReport
from chipwise.report.records import Figure, FitRecord, FitReport, PlanRecord, PlanReport
from chipwise.units import format_number

__all__ = [
    "FitAnswer",
    "FitLine",
    "PlanLine",
    "PlansAnswer",
    "fit_answer",
    "plans_answer",
]

SHOWN = 5
FITS = 12
NAMED = 8


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A plan. Times in milliseconds, `low` to `high` hold 80 % of outcomes; `basis`: measured > published >
    calibrated > modelled. `bound` names what takes most of a token's time, with its share; `ten_percent_more_gives`
    the gain in tokens per second if that resource were 10 % faster. `kv` is the format of the cache; `replicas`
    count `spare` ones; `prompt_workers` work off prompts for all of them (0: there is one pool). `memory_gb` is of
    one device; `p95_ms` is what 95 % of requests do not exceed (null: only a simulation could say)."""

    rank: int
    plan: str
    chip: str
    chips: int
    replicas: int
    spare: int
    prompt_workers: int
    layout: str
    precision: str
    kv: str
    runtime: str
    system: str
    concurrency: float
    usd_per_h: Range | None
    usd_per_million_out: Range | None
    ttft_ms: Range
    tpot_ms: Range | None
    tokens_per_s: Range
    tokens_per_s_per_chip: float
    requests_per_s: float
    largest_requests_per_s: float
    p95_ms: dict[str, float | None]
    bound: str
    shares_of_time: dict[str, float]
    ten_percent_more_gives: dict[str, str]
    memory: str
    memory_gb: dict[str, float]
    basis: str
    provisional: bool
    on_front: bool
    ties_with: tuple[int, ...]
    nearest_measurement: str
    note: str


@dataclass(frozen=True, slots=True)
class PlansAnswer:
    """Plans by dollars, for one local user by speed. Ties lie within each other's intervals."""

    verdict: str
    model: str
    plans: tuple[PlanLine, ...]
    more_chips_with_plans: tuple[str, ...]
    without_plan: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]
    cpu_instead: AmdahlReport | None = field(default=None)
    details: PlanReport | None = field(default=None)


@dataclass(frozen=True, slots=True)
class FitLine:
    """Whether the model fits on so many of a chip; `tight`: under 10 % of memory left for the cache."""

    chip: str
    chips: int
    layout: str
    runtime: str
    verdict: str
    missing_gb: float
    memory_gb: dict[str, float]
    capacity_gb: float
    largest_batch: int | None
    largest_context: int
    mend: tuple[str, ...]
    caveat: str


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """Memory of the model by chip, at the smallest count that fits or the count asked for."""

    verdict: str
    model: str
    context: int
    sequences: int
    fits: tuple[FitLine, ...]
    more_chips: tuple[str, ...]
    without_answer: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]
    details: FitReport | None = field(default=None)


def plans_answer(report: PlanReport) -> PlansAnswer:
    """The answer to plan, compare, estimate and explain in short."""
    first = report.plans[0]
    shown = report.plans[:SHOWN]
    dollars = f", {span(first.price.low, first.price.high)} $/h" if first.price else ", no known price"
    verdict = (
        f"#1 {_name(first)}{dollars}: {_tpot(first)}TTFT {_ms(first.ttft_s)}, bound by {_bound(first)}; "
        f"{len(report.plans)} of {len(report.plans) + len(report.refused)} chips have a plan"
    )
    if first.ties:
        verdict += f"; within the intervals #1 is no better than #{', #'.join(map(str, first.ties[:NAMED]))}"
    return PlansAnswer(
        verdict,
        model_text(report.model),
        tuple(map(_plan, shown)),
        tuple(f"{p.chips}x {p.chip}" for p in report.plans[SHOWN : SHOWN + NAMED]),
        refusals_of(report.refused),
        report.assumptions,
        report.amdahl if isinstance(report, ExplainReport) else None,
    )


def fit_answer(report: FitReport) -> FitAnswer:
    """The answer to fit in short."""
    fits = [f for f in report.fits if f.verdict != "no"]
    verdict = f"{len(fits)} of {len(report.fits)} chips hold it"
    if fits:
        least = min(fits, key=lambda f: f.chips)
        verdict += f"; fewest: {least.chips}x {least.chip}"
    return FitAnswer(
        verdict,
        model_text(report.model),
        report.context,
        report.sequences,
        tuple(map(_fit, report.fits[:FITS])),
        tuple(f"{f.chips}x {f.chip}: {f.verdict}" for f in report.fits[FITS:]),
        refusals_of(report.refused),
        report.assumptions,
    )


def _plan(p: PlanRecord) -> PlanLine:
    return PlanLine(
        rank=p.rank,
        plan=_name(p),
        chip=p.chip,
        chips=p.chips,
        replicas=p.replicas,
        spare=p.spare,
        prompt_workers=p.prompt_workers,
        layout=p.layout.label,
        precision=p.precision,
        kv=p.kv,
        runtime=p.runtime,
        system=p.system,
        concurrency=rounded(p.concurrency),
        usd_per_h=Range.of(p.price.low, p.price.mid, p.price.high) if p.price else None,
        usd_per_million_out=range_of(p.usd_per_million_out) if p.usd_per_million_out else None,
        ttft_ms=range_of(p.ttft_s, 1e3),
        tpot_ms=None if p.tpot_s is None else range_of(p.tpot_s, 1e3),
        tokens_per_s=range_of(p.tokens_per_s),
        tokens_per_s_per_chip=rounded(p.tokens_per_s_per_chip.mid),
        requests_per_s=rounded(p.requests_per_s),
        largest_requests_per_s=rounded(p.largest_requests_per_s),
        p95_ms=_tail(p),
        bound=_bound(p),
        shares_of_time={name: rounded(share) for name, share in p.shares.items()},
        ten_percent_more_gives={name: f"+{gain(share):.1%}" for name, share in p.shares.items()},
        memory=p.memory.verdict,
        memory_gb={name: rounded(size / 1e9) for name, size in p.memory.items.items()},
        basis=p.pace.basis,
        provisional=p.pace.provisional,
        on_front=p.on_front,
        ties_with=p.ties[:NAMED],
        nearest_measurement=f"{p.nearest.label} ({p.nearest.result}): {p.nearest.verdict}"
        if p.nearest
        else "",
        note=p.note,
    )


def _fit(f: FitRecord) -> FitLine:
    return FitLine(
        chip=f.chip,
        chips=f.chips,
        layout=f.layout.label,
        runtime=f.runtime,
        verdict=f.verdict,
        missing_gb=rounded(f.missing_bytes / 1e9),
        memory_gb={name: rounded(size / 1e9) for name, size in f.memory.items.items()},
        capacity_gb=rounded(f.memory.capacity_bytes / 1e9),
        largest_batch=f.largest_batch,
        largest_context=f.largest_context,
        mend=f.mend,
        caveat=f.caveat,
    )


def _name(p: PlanRecord) -> str:
    return f"{p.chips}x {p.chip} {p.spread} {p.precision} on {p.runtime}"


def _bound(p: PlanRecord) -> str:
    return f"{p.bound} {p.shares.get(p.bound, 0.0):.0%}"


def _tail(p: PlanRecord) -> dict[str, float | None]:
    tail = p.tails.get("p95")
    if tail is None:
        return {}
    times = {"ttft": tail.ttft_s, "tpot": tail.tpot_s}
    return {name: None if seconds is None else rounded(seconds * 1e3) for name, seconds in times.items()}


def _tpot(p: PlanRecord) -> str:
    return "" if p.tpot_s is None else f"TPOT {_ms(p.tpot_s)}, "


def _ms(figure: Figure) -> str:
    return f"{format_number(figure.mid * 1e3)} [{span(figure.low * 1e3, figure.high * 1e3)}] ms"
