"""What agents get: every verb's answer in short, a few kilobytes instead of the whole record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chipwise.evidence.claim import Rival
from chipwise.evidence.item import Item
from chipwise.evidence.match import TITLES, Match
from chipwise.mcp.short import Short, model_text, refusals_of, rounded
from chipwise.report.catalogue import (
    CHIPS,
    MODELS,
    NETWORKS,
    ChipRecord,
    ChipsReport,
    EvidenceReport,
    ModelsReport,
)
from chipwise.report.desk import DESK, LocalRecord, LocalReport, local_verdict
from chipwise.report.evidence import NOTICE, RESULTS, ClaimReport, MatchReport
from chipwise.report.fit import FITS, FitRecord, FitReport
from chipwise.report.kernel import KERNELS, AmdahlReport, KernelRecord, KernelReport
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.media import MEDIA, MediaPlan, MediaReport, media_words
from chipwise.report.media import verdict as media_verdict
from chipwise.report.plans import PLANS, ExplainReport, PlanRecord, PlanReport, cheaper, verdict
from chipwise.report.records import ModelRecord, NetworkRecord
from chipwise.report.reinforce import REINFORCED, RlPlanRecord, RlReport, rl_verdict
from chipwise.report.statements import StatementsReport
from chipwise.report.training import TRAINING, TrainPlanRecord, TrainReport, train_verdict

SHOWN = 4  # plans in full
RUN = 6  # models in full that a machine runs
FITTED = 12  # chips in full of those that were asked whether they hold a model
LISTED = 20  # chips in full of a catalogue
NAMED = 8  # chips by name

PLAN = Short(
    "PlanLine",
    PlanRecord,
    PLANS,
    "A plan. Times in milliseconds, `low` to `high` hold 80 % of outcomes; `basis`: measured > published > "
    "calibrated > modelled. `bound` names what takes most of a token's time, with its share; "
    "`ten_percent_more_gives` the gain in tokens per second if that resource were 10 % faster. `kv` is the "
    "format of the cache; `replicas` count `spare` ones; `prompt_workers` run prefill for all of them (0: "
    "there is one pool). `memory_gb` is of one device; `p95_ms` is what 95 % of requests do not exceed, not there "
    "where its formula does not hold.",
)
FIT = Short(
    "FitLine",
    FitRecord,
    FITS,
    "Whether the model fits on a count of a chip; `tight`: under 10 % of memory left for the cache.",
)
LOCAL = Short(
    "LocalLine",
    LocalRecord,
    DESK,
    "A model on a machine of one user, in the format chosen for it. `tokens_per_s` of one user and `ttft_s` as ranges, "
    "`memory_gb` on the first card, `host_gb` in the memory of the computer; `commands` start it, by engine; `usd` is "
    "its price where one asked what to buy.",
)
REINFORCE = Short(
    "RlLine",
    RlPlanRecord,
    REINFORCED,
    "A way to run reinforcement learning: seconds of a step and of its parts, `days` and `usd` of all steps.",
)
TRAIN = Short(
    "TrainLine",
    TrainPlanRecord,
    TRAINING,
    "A way to train: step in seconds, `days` and `usd` with the failures that are to be expected.",
)
KERNEL = Short(
    "KernelLine",
    KernelRecord,
    KERNELS,
    "An operator on a chip: time in microseconds and at the roofline, and what the time is made of.",
)
CHIP = Short(
    "ChipLine",
    ChipRecord,
    CHIPS,
    "A chip: usable memory, peaks that are dense, link speed one direction, list price of one chip on demand.",
)
MODEL = Short(
    "ModelLine",
    ModelRecord,
    MODELS,
    "A model in figures.",
)
MEDIUM = Short(
    "MediaLine",
    MediaPlan,
    MEDIA,
    "A network without tokens on chips: `latency_s` of a request for `batch` samples, `step_s` of its most frequent "
    "part, `samples_per_s` of all chips, `memory_gb` of one device.",
)
NETWORK = Short(
    "NetworkLine",
    NetworkRecord,
    NETWORKS,
    "A built-in network that generates no tokens, and what one request of it computes.",
)
RESULT = Short(
    "ResultLine",
    Item,
    RESULTS,
    "A result; `per_chip` are tokens per second of one chip.",
)

if TYPE_CHECKING:
    PlanLine = Any
    FitLine = Any
    LocalLine = Any
    TrainLine = Any
    RlLine = Any
    KernelLine = Any
    ChipLine = Any
    ModelLine = Any
    MediaLine = Any
    NetworkLine = Any
    ResultLine = Any
else:
    PlanLine = PLAN.line
    FitLine = FIT.line
    LocalLine = LOCAL.line
    TrainLine = TRAIN.line
    RlLine = REINFORCE.line
    KernelLine = KERNEL.line
    ChipLine = CHIP.line
    ModelLine = MODEL.line
    MediaLine = MEDIUM.line
    NetworkLine = NETWORK.line
    ResultLine = RESULT.line


@dataclass(frozen=True, slots=True)
class PlansAnswer:
    """Plans by dollars, for one local user by speed. Ties lie within each other's intervals; `cheaper` says what would
    make the first plan cheaper."""

    verdict: str
    model: str
    plans: tuple[PlanLine, ...]
    more_chips_with_plans: tuple[str, ...]
    cheaper: tuple[str, ...]
    without_plan: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]
    cpu_instead: AmdahlReport | None = field(default=None)


@dataclass(frozen=True, slots=True)
class MediaAnswer:
    """A network that generates no tokens on chips, the best first; of one chip its seconds by part and bytes by use.
    `changes`: options that would change the first plan, with how many times as many samples its chips then make."""

    verdict: str
    model: str
    plans: tuple[MediaLine, ...]
    more_chips: tuple[str, ...]
    stage_s: dict[str, float]
    memory_bytes: dict[str, float]
    without_plan: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]
    changes: dict[str, float]


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


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """What a machine runs, those of the highest published score first, or what to buy."""

    verdict: str
    machine: str
    context: int
    prompt_tokens: float
    models: tuple[LocalLine, ...]
    more: tuple[str, ...]
    refused: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]


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


@dataclass(frozen=True, slots=True)
class RlAnswer:
    """Plans of reinforcement learning, ranked."""

    verdict: str
    model: str
    steps: int
    plans: tuple[RlLine, ...]
    more_plans: int
    without_plan: dict[str, tuple[str, ...]]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """One operator on some chips."""

    operator: str
    kernels: tuple[KernelLine, ...]
    refused: dict[str, str]
    lessons: tuple[str, ...]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChipsAnswer:
    """Chips; `figures` of those asked for by name, each with its grade where it is no datasheet's."""

    chips: tuple[ChipLine, ...]
    found: int
    more: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelsAnswer:
    """Models; `found` counts those beyond the limit too."""

    models: tuple[ModelLine, ...]
    found: int
    networks: tuple[NetworkLine, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """Results; `found` counts those beyond the limit too."""

    results: tuple[ResultLine, ...]
    found: int
    notice: str


@dataclass(frozen=True, slots=True)
class MatchLine:
    """A result, and on which of the eight axes it is the same as the plan, near, different or unknown."""

    result: ResultLine
    verdict: str
    axes: dict[str, str]
    reasons: dict[str, str]


@dataclass(frozen=True, slots=True)
class MatchAnswer:
    """The nearest results, and tokens per second of the plan at full load: by the model, and moved towards what was
    measured as far as that is near (`weight` of 1 would be all the way); `interval` is to hold 80 %."""

    verdict: str
    matches: tuple[MatchLine, ...]
    predicted_tokens_per_s: float | None
    anchored_tokens_per_s: float | None
    interval: tuple[float, float] | None
    weight: float
    conditions: str
    notice: str
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RivalLine:
    """A rival: the measured ratio per chip, what it becomes at your workload step by step, and the verdict."""

    result: ResultLine
    measured_ratio: float
    ratio_at_your_workload: float | None
    steps: tuple[str, ...]
    verdict: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """Whether a benchmark lead is advice for the workload: only where the axes support it. A ratio below 1.2 ties."""

    verdict: str
    supported: bool
    result: ResultLine
    axes: dict[str, str]
    reasons: dict[str, str]
    rivals: tuple[RivalLine, ...]
    not_in_the_ratios: tuple[str, ...]
    notice: str


def media_answer(report: MediaReport) -> MediaAnswer:
    """The answer about a network that generates no tokens in short, whatever was asked of it."""
    alone = report.plans[0] if len(report.plans) == 1 else None
    return MediaAnswer(
        " ".join(media_verdict(report)),
        ", ".join(media_words(report)),
        MEDIUM.many(report.plans[:FITTED]),
        tuple(f"{p.chips}x {p.chip}: {p.verdict}" for p in report.plans[FITTED:]),
        {name: rounded(seconds) for name, seconds in alone.stages.items()} if alone else {},
        {name: rounded(size) for name, size in alone.memory.items()} if alone else {},
        refusals_of(report.refused),
        report.assumptions,
        {change.options: rounded(change.more_per_chip) for change in report.changes},
    )


def plans_answer(report: PlanReport) -> PlansAnswer:
    """The answer to plan, compare and estimate in short."""
    chips = len(report.plans) + len(report.refused)
    return PlansAnswer(
        " ".join((*verdict(report), f"{len(report.plans)} of {chips} chips have a plan.")),
        model_text(report.model),
        PLAN.many(report.plans[:SHOWN]),
        tuple(f"{p.chips}x {p.chip}" for p in report.plans[SHOWN : SHOWN + NAMED]),
        tuple(cheaper(report)),
        refusals_of(report.refused),
        report.assumptions,
    )


def explain_answer(report: ExplainReport) -> PlansAnswer:
    """The same of explain, with when a CPU would do a request sooner."""
    return replace(plans_answer(report), cpu_instead=report.amdahl)


def fit_answer(report: FitReport) -> FitAnswer:
    """The answer to fit in short."""
    fits = [f for f in report.fits if f.verdict != "no"]
    said = f"{len(fits)} of {len(report.fits)} chips hold it"
    if fits:
        least = min(fits, key=lambda f: f.chips)
        said += f"; fewest: {least.chips}x {least.chip}"
    return FitAnswer(
        said,
        model_text(report.model),
        report.context,
        report.sequences,
        FIT.many(report.fits[:FITTED]),
        tuple(f"{f.chips}x {f.chip}: {f.verdict}" for f in report.fits[FITTED:]),
        refusals_of(report.refused),
        report.assumptions,
    )


def local_answer(report: LocalReport) -> LocalAnswer:
    """The answer to local in short."""
    more = tuple(
        f"{r.item or r.model}: {r.model if r.item else r.precision}, {rounded(r.tokens_per_s.mid):g} tokens/s"
        for r in report.models[RUN:]
    )
    return LocalAnswer(
        local_verdict(report),
        report.machine,
        report.context,
        report.prompt_tokens,
        LOCAL.many(report.models[:RUN]),
        more,
        refusals_of(report.refused),
        report.assumptions,
    )


def train_answer(report: TrainReport) -> TrainAnswer:
    """The answer to train_plan in short."""
    return TrainAnswer(
        train_verdict(report),
        model_text(report.model),
        report.tokens,
        TRAIN.many(report.plans[:SHOWN]),
        max(0, len(report.plans) - SHOWN),
        refusals_of(report.refused),
        report.assumptions,
    )


def rl_answer(report: RlReport) -> RlAnswer:
    """The answer to rl in short."""
    return RlAnswer(
        rl_verdict(report),
        model_text(report.model),
        report.steps,
        REINFORCE.many(report.plans[:SHOWN]),
        max(0, len(report.plans) - SHOWN),
        refusals_of(report.refused),
        report.assumptions,
    )


def kernel_answer(report: KernelReport) -> KernelAnswer:
    """The answer to kernel in short."""
    return KernelAnswer(
        report.operator,
        KERNEL.many(report.kernels),
        {r.chip: r.detail for r in report.refused},
        report.lessons,
        report.assumptions,
    )


def chips_answer(report: ChipsReport) -> ChipsAnswer:
    """The answer to chips in short."""
    more = tuple(c.id for c in report.chips[LISTED:])
    return ChipsAnswer(CHIP.many(report.chips[:LISTED]), report.found, more)


def models_answer(report: ModelsReport) -> ModelsAnswer:
    """The answer to models in short."""
    return ModelsAnswer(MODEL.many(report.models), report.found, NETWORK.many(report.networks))


def evidence_answer(report: EvidenceReport) -> EvidenceAnswer:
    """The answer to evidence in short."""
    return EvidenceAnswer(RESULT.many(report.items), report.found, report.notice)


def match_answer(report: MatchReport) -> MatchAnswer:
    """The answer to evidence_match in short."""
    a = report.anchored
    first = "no results"
    if report.matches:
        first = f"nearest: {report.matches[0].item.id}, {report.matches[0].verdict}"
    elif report.measured:
        first = f"measured, not predicted: {report.benchmark} of MLPerf, {len(report.measured)} best results by chip"
    return MatchAnswer(
        verdict="; ".join(filter(None, (report.note, first))),
        matches=tuple(map(_match, report.matches)),
        predicted_tokens_per_s=rounded(a.model) if a else None,
        anchored_tokens_per_s=rounded(a.value) if a and a.used else None,
        interval=(rounded(report.interval[0]), rounded(report.interval[1])) if report.interval else None,
        weight=rounded(a.weight) if a else 0.0,
        conditions=report.layout,
        notice=NOTICE,
        measured=tuple(map(_measured, report.measured[:FITTED])),
    )


def _measured(i: Item) -> str:
    """A measured result in one line."""
    latency = i.unit.startswith("Latency")
    rate = i.result if latency else i.speed or 0.0
    unit = "tokens/s" if i.per_chip is not None else i.unit
    each = "" if latency else " a chip"
    where = f"{i.scenario}, {i.chips or '?'} chips, {i.round} ({i.id})"
    return f"{i.chip or i.part}: {rounded(rate):,.6g} {unit}{each}, {where}"


def claim_answer(report: ClaimReport) -> ClaimAnswer:
    """The answer to check_claim in short."""
    claim = report.claim
    against = "; ".join(f"against {r.item.chip}: {r.verdict}" for r in claim.rivals)
    return ClaimAnswer(
        verdict=f"{claim.verdict}. {against}" if against else claim.verdict,
        supported=claim.supported,
        result=RESULT(report.item),
        axes=_axes(claim.match),
        reasons=_reasons(claim.match),
        rivals=tuple(map(_rival, claim.rivals)),
        not_in_the_ratios=claim.cautions,
        notice=NOTICE,
    )


def statements_answer(report: StatementsReport) -> dict[str, Any]:
    """The answer to check_statement in short: of a list the verdicts alone."""
    if not report.asked:
        return {"statements": {s.text: s.verdict for s in report.statements}, "note": report.note}
    found = [
        {
            "statement": s.text,
            "verdict": s.verdict,
            "confidence": s.confidence,
            "because": s.because,
            "figures": {f.what: f.shown for f in s.figures},
            "basis": [*s.basis, *s.sources],
            "shown_by": list(s.commands),
        }
        for s in report.statements
    ]
    said = f"{found[0]['verdict']}: {found[0]['because']}" if found else report.note
    return {
        "verdict": said,
        "statements": found,
        "would_answer_it": list(report.commands),
        "nearest": list(report.nearest),
        "note": report.note if found else "",
    }


def launch_answer(report: LaunchReport) -> dict[str, Any]:
    """The answer to launch: the files by name. They are to be read before they are run."""
    return {
        "verdict": f"{len(report.files)} files start plan {report.plan} with {report.tool}; read them before they run",
        "files": {file.name: file.text for file in report.files},
        "scripts": [file.name for file in report.files if file.script],
    }


def table_answer(report: Any) -> dict[str, Any]:
    """Any answer as its first tables say it: what stands above, the columns with a row of text each, what stands
    below."""
    found: dict[str, Any] = {}
    for number, table in enumerate(report.tables()[:2]):
        end = str(number + 1) if number else ""
        found |= {
            f"verdict{end}": " ".join(line for line in table.head if line),
            f"columns{end}": list(table.columns),
            f"rows{end}": [list(row) for row in table.rows[:LISTED]],
            f"notes{end}": [line for line in table.foot if line],
        }
        if len(table.rows) > LISTED:
            found[f"more_rows{end}"] = len(table.rows) - LISTED
    return found


def _match(m: Match) -> MatchLine:
    return MatchLine(RESULT(m.item), m.verdict, _axes(m), _reasons(m))


def _axes(m: Match) -> dict[str, str]:
    return {TITLES[a.name]: a.mark for a in m.axes}


def _reasons(m: Match) -> dict[str, str]:
    """Why, for the axes that are not the same."""
    return {TITLES[a.name]: a.reason for a in m.axes if a.mark != "same"}


def _rival(r: Rival) -> RivalLine:
    steps = tuple(
        f"{TITLES[s.axis]}: {s.change}: "
        + ("not predicted" if s.ratio is None else f"{s.ratio:.2f}x")
        + (" (reverses)" if s.reverses else "")
        for s in r.steps
    )
    carried = None if r.carried is None else rounded(r.carried)
    return RivalLine(RESULT(r.item), rounded(r.measured), carried, steps, r.verdict)


KINDS: Mapping[type, Callable[[Any], Any]] = {MediaReport: media_answer, ExplainReport: explain_answer}
"""Answers that have a short form of their own, whatever verb gave them."""
