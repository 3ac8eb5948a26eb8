"""Models that generate no tokens: time, throughput and memory of a request on chips, what it costs, and which chips to
take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import partial

from chipwise.catalog.media_runtime import get_media_runtime
from chipwise.catalog.offer import MARKETPLACES
from chipwise.catalog.preferences import preferences
from chipwise.catalog.system import load_systems
from chipwise.errors import InfeasibleError
from chipwise.predict.fleet import Day
from chipwise.report import figures
from chipwise.report.answer import Tabled
from chipwise.report.decision import ApiRecord, DecisionRecord, dated, decided, sells
from chipwise.report.plan import (
    DONE_IN,
    GROUPS,
    RANK,
    RESOURCE,
    TOTAL_USD,
    USD_PER_H,
    Plan,
    Ranking,
    at,
    chance_percent,
    cost_words,
    day_words,
    finishes,
    follows,
    founded,
    gain,
    legend,
    notes,
    peak_words,
    scaling_words,
    steadier,
    taken,
)
from chipwise.report.records import SCHEMA_VERSION, Figure, JobRecord, Quantified, RefusalRecord
from chipwise.report.simulated import FollowingRecord, PeakRecord
from chipwise.report.table import Column, Table
from chipwise.search.space import By
from chipwise.units import amount, duration_words, format_bytes, format_count, format_number, format_seconds
from chipwise.values import dataclass
from chipwise.workload.backward import LOGITS, SAVED, STATES
from chipwise.workload.workload import CONFIDENCE, Job

SHOWN = 12
NAMED = 3  # plans that are named of those that cost about the same
CHANGED = 3  # changes that are named below plans
UNNOTICED = 1e-3  # of a request: a wait that is shorter is not told
TIMED = 2  # tables of a plan whose operators are known
FIRST = 6  # chips that are named of those refused for one reason


@dataclass(frozen=True, slots=True, repr=False)
class MediaPlan(Plan, Tabled):
    """A pipeline on chips.

    `chips` are those of all `replicas`, of which `spare` ones stand by. `batch` samples take `latency_s` on one of
    them; `samples_per_s` of all that work, of a job on average until it is done, and
    `tokens_per_s` where samples are texts or said in words; `step_s` is one call
    of the part that is called most often (a denoising step, a training step), `it_per_s` how many pass per second.
    `shares` of the latency by resource, `stages` its seconds by part of the model. `memory` are bytes of one device by
    kind, `memory_bytes` their sum, `memory_range` the same with its interval, `memory_chance` the probability that they
    fit; `spread` says how devices share the work.
    `energy` counts joules per sample, None where the chip's power limit is not published.
    `wait_s` passes at the rate asked before the mean request is taken up, at most `wait_p99_s` for 99 of 100, never
    less than the mean; `answered_s` and `answered_p99_s` are the same with the time of the request. `load` is the part
    of what the plan could carry that the rate takes; `chance` that a request keeps the limit that was asked, its wait
    included, or a job its deadline; `job` says how long that takes. None where nothing was asked. `rank` in
    the answer, 0 where chips were compared and not chosen; `ties` are the ranks of plans that the prediction cannot
    tell from it. `hosts` that all replicas take together.
    `day` where a curve of rates was given: its tokens are samples. `note`: of a plan that does not fit, what would;
    of others what their figures are of.
    `host_bytes` wait in the memory of one host (parts that are offloaded or that the host computes, rows of tables that
    are hardly ever looked up, of all its devices), which has `host_capacity_bytes` for them; None where nothing waits
    or its memory is not known. `usual`: the software that runs on the chip where nobody says which; `ported`: a
    network has to be exported to that of the plan, or written again, and not to the usual one. `parts`: members of a
    sample of which `batch` are at work together (windows of a recording), 0 where a batch is of samples. `scaling` is
    how replicas may follow a log or a day with the target held (None: not looked for, or all have to run); `peak` what
    a simulation of the busiest slice of a day says (None: not simulated).
    """

    spread: str
    offload: str
    batch: int
    latency_s: Figure
    step_s: Figure
    it_per_s: Figure
    samples_per_s: Figure
    tokens_per_s: Figure | None
    stages: dict[str, float]
    memory_bytes: float
    memory_range: Figure
    memory_chance: float
    memory: dict[str, float]
    capacity_bytes: float
    verdict: str
    flops_per_s: float
    share_of_peak: float
    usd_per_1000: Figure | None
    load: float | None = None
    wait_s: float | None = None
    wait_p99_s: float | None = None
    answered_s: float | None = None
    answered_p99_s: float | None = None
    job: JobRecord | None = None
    spare: int = 0
    day: Day | None = None
    note: str = ""
    host_bytes: float = 0.0
    host_capacity_bytes: float | None = None
    usual: str = ""
    ported: bool = False
    parts: int = 0
    scaling: FollowingRecord | None = None
    peak: PeakRecord | None = None

    def tables(self) -> tuple[Table, ...]:
        """Its figures, and where time and memory go, as `estimate` shows them."""
        alike = SHOWN_ALIKE | {head for head in SOMETIMES if _empty(head, self)}
        shown = [c for c in MEDIA if c.head not in alike and c.value(self) is not None]
        return (
            Table.of([self], shown, (f"{self.machines}  {self.precision}  {self.runtime}", "")),
            *_parts_tables(self),
        )

    @property
    def largest_requests_per_s(self) -> float:
        """Samples a second that it could make at most."""
        return self.samples_per_s.mid

    @property
    def samples(self) -> int:
        """Samples that a batch makes."""
        return max(self.batch // self.parts, 1) if self.parts else self.batch

    @property
    def short_bytes(self) -> float:
        """What a device lacks, below 0 where room is left."""
        return self.memory_bytes - self.capacity_bytes

    @property
    def short_on_host_bytes(self) -> float:
        """What a host lacks, 0 where it holds what waits there or its memory is not known."""
        room = self.host_capacity_bytes
        return 0.0 if room is None else max(self.host_bytes - room, 0.0)


@dataclass(frozen=True, slots=True)
class MediaChange(Quantified):
    """One thing asked otherwise of a plan: `options` ask for it, `words` say what it means. Then a replica is of so
    many `chips` and takes `latency_s` for a `batch`, a device holds `memory_bytes`, and a chip makes `more_per_chip`
    times as many samples."""

    options: str
    words: str
    chips: int
    batch: int
    latency_s: Figure
    memory_bytes: float
    more_per_chip: float
    usd_per_1000: Figure | None


@dataclass(frozen=True, slots=True, repr=False)
class MediaReport(Ranking[MediaPlan]):
    """The answer to `plan`, `estimate`, `explain` and `fit` about a model that generates no tokens, best plan first.

    `unit` is what one sample is; `settings` are the sizes it was asked with; `flops` of one request. `rate_per_s` of
    samples, `limit_s` on the time of a request (of the mean one, or of the share `percentile`) and a `job` were asked
    of its plans, limits with a probability of `confidence`; None where nothing was. `owned`: the user has the chips,
    `together` is what those of several kinds make a second. `changes`: what else could be asked, most samples a chip
    first, and what the first plan would do then: software and formats that clearly help, of `explain` all of it.
    `nearest`: the published result nearest to the first plan, and what it is good for. `cheapest`: of all plans that
    keep what was asked the one that costs least (of one's own chips makes most), None where it is the first; `extra`:
    the part of its cost that the first plan costs more. `measured`: the best plan that rests on measurements, where the
    first does not. `decision`: what renting its chips costs and what owning them
    does (None: nothing is paid, or neither a rate nor a job was asked); `apis` read tokens with the same weights.
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
    rate_per_s: float | None = None
    limit_s: float | None = None
    percentile: float | None = None
    job: Job | None = None
    confidence: float = CONFIDENCE
    owned: bool = False
    together: Figure | None = None
    changes: tuple[MediaChange, ...] = ()
    nearest: str = ""
    cheapest: MediaPlan | None = None
    extra: float = 0.0
    measured: MediaPlan | None = None
    by: By = "chip"
    decision: DecisionRecord | None = None
    apis: tuple[ApiRecord, ...] = ()
    schema_version: str = field(default=SCHEMA_VERSION)

    @property
    def chosen(self) -> bool:
        """Whether plans were chosen, and not chips compared."""
        return bool(self.plans and self.plans[0].rank)

    @property
    def unpriced(self) -> bool:
        """Whether the first plan has no price."""
        return not self.plans or self.plans[0].price is None

    @property
    def kept(self) -> bool:
        """Whether the first of plans that were chosen fits, and keeps its targets as surely as asked."""
        if not self.plans or not self.plans[0].rank:
            return True
        first = self.plans[0]
        sure = first.keeps_targets(self.confidence)
        together = self.owned and self.job is not None and len(self.plans) > 1
        return first.verdict != "no" and (sure or together)

    def verdict(self) -> tuple[str, ...]:
        """What to take, what it does and how sure that is; of chips that were only compared, a sentence about the
        first."""
        return _verdict(self)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per plan; of a single one its parts and memory. `command` looks into the first that was chosen."""
        return media_view(self, command, everything=everything)

    @property
    def failure(self) -> InfeasibleError | None:
        """That none of the chips asked about holds it; of plans that were chosen, that none is as sure to keep what was
        asked."""
        if not self.chosen and all(p.verdict == "no" for p in self.plans):
            return InfeasibleError(f"{self.model} does not fit", "the answer says by how much", answered=True)
        return super(MediaReport, self).failure  # noqa: UP008 - slots make the class anew

    @property
    def sure(self) -> float:
        """The probability with which plans were to keep what was asked."""
        return self.confidence


@dataclass(frozen=True, slots=True, repr=False)
class MediaExplainReport(MediaReport):
    """One plan of a model that generates no tokens, and all that would change it."""

    @classmethod
    def of(cls, report: MediaReport, changes: tuple[MediaChange, ...]) -> MediaExplainReport:
        """A report with more to it."""
        return cls(**{f.name: getattr(report, f.name) for f in fields(report)} | {"changes": changes})

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The plan, its parts, what it waits for, its memory, and what would change it."""
        return media_explained(self)


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


def _one(p: MediaPlan) -> str:
    """The chips of one replica."""
    return f"{p.chips // p.replicas}x {p.chip}"


def _spread(p: MediaPlan) -> str | None:
    return p.spread or None


def _layout(p: MediaPlan) -> str:
    """Replicas, and what each is spread over."""
    return f"{p.replicas:,} x {p.spread or 1}"


def _offloaded(p: MediaPlan) -> str | None:
    return None if p.offload == "none" else p.offload


def _rank(p: MediaPlan) -> int | None:
    return p.rank or None


def _bottleneck(p: MediaPlan) -> str | None:
    return p.bottleneck if _timed(p) else None


def _fits(p: MediaPlan) -> str:
    return p.verdict if p.verdict != "no" else f"no, {_short(p)}"


def _short(p: MediaPlan) -> str:
    """What is missing of a plan that does not fit: on a device, else on its host."""
    if p.short_bytes > 0.0:
        return f"{format_bytes(p.short_bytes)} short"
    return f"{format_bytes(p.short_on_host_bytes)} short on the host"


def _hosted(p: MediaPlan) -> float | None:
    return p.host_bytes or None


def _cost(p: MediaPlan) -> str | None:
    usd = _usd(p)
    return None if usd is None else f"${figures.mid(usd)}"


MEDIA = (
    replace(RANK, get=_rank),
    Column("plan", "machines"),
    Column("chip", "chip", short="chip"),
    Column("count", "chips", right=True, short="chips"),
    Column("layout", _layout),
    Column("spread", _spread, spare=3, short="spread"),
    Column("batch", "batch", right=True, short="batch"),
    USD_PER_H,
    DONE_IN,
    TOTAL_USD,
    Column("time", _latency, figures.seconds, right=True, short="latency_s"),
    Column("step", _step, format_seconds, right=True, spare=5, short="step_s"),
    Column("samples/s", _rate, figures.number, right=True, short="samples_per_s"),
    Column("memory", "memory_bytes", format_bytes, right=True),
    Column("fits", _fits),
    Column("offload", _offloaded, short="offload"),
    Column("on the host", _hosted, format_bytes, right=True, spare=1),
    Column("", _hosted, short="host_gb", scale=1e-9),
    Column("", "memory_bytes", short="memory_gb", scale=1e-9),
    Column("bottleneck", _bottleneck, spare=2, short="bottleneck"),
    Column("per 1,000", _cost, right=True),
    Column("", _usd, short="usd_per_1000"),
    Column("runtime", "runtime", spare=4, short="runtime"),
    Column("", "verdict", short="verdict"),
    Column("", "chance", short="chance_of_target"),
    Column("", "load", short="load"),
    Column("", "wait_s", short="wait_s"),
    Column("", "wait_p99_s", short="wait_p99_s"),
    Column("basis", "latency_s.basis", short="basis", spare=1),
)
"""What is said of a plan."""

PEAK = "bf16"
"""The format whose peak operations are compared with."""
RESOURCES = (
    Column("resource", "resource", lambda name: RESOURCE.get(name, name)),
    Column("share of time", "share", "{:.1%}".format, right=True),
    Column("10 % more of it gives", "share", lambda share: f"+{gain(share):.1%} samples/s", right=True),
)
PARTS = (
    Column("part", "part"),
    Column("time", "seconds", format_seconds, right=True),
    Column("share", "share", "{:.0%}".format, right=True),
)
CHANGES = (
    Column("change", "options"),
    Column("time", "latency_s.mid", format_seconds, right=True),
    Column("samples", "more_per_chip", "x{:.2f}".format, right=True),
    Column("memory", "memory_bytes", format_bytes, right=True, spare=1),
    Column("per 1,000", lambda c: c.usd_per_1000 and f"${figures.mid(c.usd_per_1000)}", right=True),
    Column("means", "words", prose=True),
)
"""What is said of a change of a plan."""

SOMETIMES = ("spread", "offload", "on the host", "batch", "layout", "done in", "$ total")
"""Columns that are left out where no plan has any of it, or more than one sample or device."""
CHOSEN = frozenset({"chip", "count", "spread", "step", "fits"})
SHOWN_ALIKE = frozenset({"#", "plan", "layout", "$/h"})
"""Columns left out of plans that were chosen, and of chips that were compared."""


DISPENSABLE: Mapping[str, Callable[[MediaReport], bool]] = {
    "on the host": lambda report: True,
    "offload": lambda report: True,
    "batch": lambda report: len({p.batch for p in report.plans[:SHOWN]}) == 1,
    "basis": lambda report: True,
    "time": lambda report: report.job is not None,
    "$/h": lambda report: report.rate_per_s is None,
    "bottleneck": lambda report: True,
    "memory": lambda report: True,
    "runtime": lambda report: True,
}
"""Columns of plans that were chosen which a short line leaves out, the last ones first, and for which questions."""


def _verdict(report: MediaReport) -> tuple[str, ...]:
    if not report.plans:
        return (f"{report.model}: nothing that was asked about runs it.",)
    p = report.plans[0]
    if p.rank and p.verdict != "no":
        return _chosen(report, p)
    if not _timed(p):
        fits = sum(plan.verdict != "no" for plan in report.plans)
        room = f"{format_bytes(p.memory_bytes)} of {format_bytes(p.capacity_bytes)}"
        return (f"{report.model} fits on {fits} of {len(report.plans)} chips: {_one(p)}, {room}; not timed.",)
    together = "" if p.samples == 1 else "a batch of "
    what = "one training step" if report.trained else f"{together}{amount(p.samples, report.unit)}"
    what += f", {p.batch:,} of its {p.parts:,} windows at a time" if p.parts > p.batch > 1 else ""
    many = f"{p.replicas} x " if p.replicas > 1 else ""
    cost = f", {_cost(p)} per 1,000" if p.usd_per_1000 else ""
    each = f"{figures.seconds(p.latency_s)} for {what}"
    if p.verdict == "no":
        return (f"{report.model} does not fit {_one(p)}: {_short(p)}" + (f"; {p.note}." if p.note else "."),)
    how = ", ".join((_software(p.runtime), *_waits(p)))
    said = (f"{report.model} on {many}{_one(p)} ({how}): {each}{cost}; bottleneck: {p.bound}.",)
    return said if report.rate_per_s is None else (*said, _does(report, p))


def _chosen(report: MediaReport, p: MediaPlan) -> tuple[str, ...]:
    """The first of plans that were ranked, as of a language model: what to take and its price, what it does and how
    surely, what bounds it, what it costs more than the cheapest, and what costs about the same."""
    verb, chips, hour = taken(p, ", ".join(_how(p)), owned=report.owned, software=_software(p.runtime))
    start = verb if report.kept else f"No plan meets {_target(report)}; nearest: "
    by_rank = {other.rank: other.machines for other in report.plans}
    alike = [by_rank[rank] for rank in p.ties if rank in by_rank]
    paid = report.decision if report.kept else None
    return (
        *(decided(paid, next(iter(report.apis), None), chips, hour) if paid else (f"{start}{at(chips, hour)}",)),
        _does(report, p),
        *follows(report.plans),
        founded(p, p.latency_s.basis),
        *_together(report),
        *_dearer(report, p),
        *_several(report),
        *_measured(report, p),
        *_alike(alike, "speed" if report.owned or report.unpriced else "cost"),
    )


def _software(runtime: str) -> str:
    """The name of software in a sentence."""
    return get_media_runtime(runtime).name


def _how(p: MediaPlan) -> list[str]:
    """Layout, format, batches and what waits on the host, as words of a sentence."""
    how = [] if _empty("layout", p) else [_layout(p)]
    how += [f"{p.spare} spare"] if p.spare else []
    how += [p.precision]
    how += [f"batches of {p.batch:,}{' windows' if p.parts else ''}"] if p.batch > 1 else []
    return [*how, *_waits(p)]


def _target(report: MediaReport) -> str:
    """The target that no plan keeps, and how surely it was asked for."""
    job = report.job
    due_s = None if job is None else job.deadline_s
    what = f"the deadline of {duration_words(due_s)}" if due_s else format_seconds(report.limit_s or 0.0)
    some = "" if report.percentile is None else f" for {100.0 * report.percentile:g} of 100 requests"
    return f"{what}{some} with {report.confidence:.0%} probability"


def _dearer(report: MediaReport, p: MediaPlan) -> tuple[str, ...]:
    """What the first plan costs more than the cheapest that keeps the same, and why it comes first all the same."""
    c = report.cheapest
    if c is None or report.extra < preferences().told or not report.kept:
        return ()
    which = f"{c.machines} with {_software(c.runtime)} ({', '.join(_how(c))})"
    if report.owned and report.rate_per_s is None:
        less = f"{1.0 - 1.0 / (1.0 + report.extra):.1%} fewer {report.unit}s/s" if p.batch else ""
        return (f"That is {less} than the most, {which}, because {_because(p, c)}.",)
    if report.rate_per_s is not None and p.price is not None and c.price is not None:
        more = f"${p.price.mid - c.price.mid:,.3g}/h"
    else:
        more = f"{report.extra:.1%}"
    return (f"It costs {more} more than the cheapest, {which}, because {_because(p, c)}.",)


def _several(report: MediaReport) -> tuple[str, ...]:
    """The best plan on chips that are surer to be had than those of the first."""
    ranked = [p for p in report.plans if p.rank and p.verdict != "no"]
    found = None if report.owned or not report.kept else steadier(ranked, _timed)
    if found is None:
        return ()
    words, p = found
    return (f"{words}: {p.machines} ({', '.join(_how(p))}), {cost_words(p.price, p.chips)}.",)


def _because(p: MediaPlan, c: MediaPlan) -> str:
    """Why a plan comes before the cheapest, in the order of `search.prefer`."""

    def rented(plan: MediaPlan) -> bool:
        return plan.price is not None and plan.price.provider in MARKETPLACES

    reasons = (
        (c.latency_s.basis == "modelled" != p.latency_s.basis, "nothing like that was measured"),
        (_stale(c) and not _stale(p), "that price is old"),
        (rented(c) and not rented(p), "only a marketplace rents that out"),
        (c.host_bytes > 0.0 and not p.host_bytes, "that keeps parts on the host"),
        (c.ported and not p.ported, f"a network has to be ported to {_software(c.runtime)}"),
        (c.hosts > p.hosts, "it takes fewer hosts"),
        (_billed(c) > _billed(p), "it takes fewer chips"),
        (c.replicas < p.replicas, "of as many chips it has more replicas"),
        (c.runtime != p.runtime, f"{_software(p.runtime)} is the more usual software"),
        (c.offload != p.offload, "it keeps less on the host"),
        (c.batch > p.batch, "its batches are smaller"),
    )
    words = [words for holds, words in reasons if holds]
    return words[0] if words else "it answers sooner"


def _stale(p: MediaPlan) -> bool:
    return p.price is not None and p.price.stale


def _billed(p: MediaPlan) -> int:
    return p.chips if p.price is None else p.price.billed


def _alike(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Plans that cost about the same as the first, in a sentence; none where there are none."""
    if not names:
        return ()
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (f"About the same {what}: {', '.join(names[:NAMED])}{more}.",)


def _waits(p: MediaPlan) -> list[str]:
    """What waits on the host, as words of a sentence."""
    how = [f"offload {p.offload}"] if p.offload != "none" else []
    return how + ([f"{format_bytes(p.host_bytes)} on the host"] if p.host_bytes else [])


def _together(report: MediaReport) -> tuple[str, ...]:
    """What chips of several kinds do side by side."""
    rate, kinds = report.together, len(report.plans)
    if rate is None:
        return ()
    if report.job is not None:
        mid, low, high = (report.job.tokens / x for x in (rate.mid, rate.high, rate.low))
        took = Figure(mid, low, high, rate.basis, rate.provisional)
        return (f"All {kinds} kinds side by side are done in {figures.duration_words(took)}.",)
    by, unit = figures.per(rate.mid)
    return (f"All {kinds} kinds side by side deliver {amount(rate.mid * by, report.unit)}/{unit}.",)


def _measured(report: MediaReport, p: MediaPlan) -> tuple[str, ...]:
    """The best plan that rests on measurements, where the first does not."""
    best = report.measured
    if best is None:
        return ()
    cost = "" if report.owned else f", {cost_words(best.price, best.chips)}"
    with_ = "" if best.runtime == p.runtime else f" with {_software(best.runtime)}"
    return (f"Best plan with measurements behind it: {best.machines}{with_} ({_layout(best)}){cost}.",)


def _does(report: MediaReport, p: MediaPlan) -> str:
    """What a plan delivers, how long a request takes, whether that keeps the limit, how much more it could carry."""
    if p.job is not None and report.job is not None:
        due_s = report.job.deadline_s
        surely = "" if p.chance is None else f"with {chance_percent(p.chance)}% probability"
        job = replace(p.job, usd=None) if report.owned else p.job
        return f"{finishes(f'makes {amount(report.job.tokens, report.unit)}', job, due_s, surely)}."
    rate = p.samples_per_s.mid if report.rate_per_s is None else report.rate_per_s
    by, unit = figures.per(rate)
    each = (
        f"a batch takes {figures.seconds(p.latency_s)}"
        if p.samples > 1
        else f"each takes {figures.seconds(p.latency_s)}"
    )
    said = f"It delivers {amount(rate * by, report.unit)}/{unit}; {each}{_waiting(p)}"
    if report.limit_s is not None and p.chance is not None:
        some = "" if report.percentile is None else f" for {100.0 * report.percentile:g} of 100 requests"
        surely = f"met{some} with {chance_percent(p.chance)}% probability"
        sooner = p.answered_p99_s is not None and p.answered_p99_s < report.limit_s
        errs = ", errors of the prediction included" if sooner else ""
        said += f". Target of {format_seconds(report.limit_s)}: {surely}{errs}"
    if p.load is not None:
        said += f". Load: {p.load:.0%} of its maximum"
    if p.usd_per_1000 is not None and not report.owned:
        said += f". Cost: {_per_many(p.usd_per_1000)} {report.unit}s"
    return f"{said}."


def _per_many(usd: Figure) -> str:
    """Dollars per 1,000, or per million where that is less than a cent."""
    if usd.mid >= CENT:
        return f"${figures.number(usd)} per 1,000"
    million = Figure(1e3 * usd.mid, 1e3 * usd.low, 1e3 * usd.high, usd.basis, usd.provisional)
    return f"${figures.number(million)} per million"


CENT = 0.01
"""USD. Exact: what people read as money; moves words alone."""


def noticed(p: MediaPlan) -> bool:
    """Whether the mean request waits so long that it is worth a number."""
    return p.wait_s is not None and p.wait_s >= UNNOTICED * p.latency_s.mid


def _waiting(p: MediaPlan) -> str:
    """How long a request takes with its wait, of the mean one and of 99 of 100; a wait that nobody notices is no
    number."""
    if p.wait_p99_s is None or p.answered_s is None or p.answered_p99_s is None:
        return ""
    if p.wait_p99_s < UNNOTICED * p.latency_s.mid:
        return " with hardly any wait"
    mean = f"{format_seconds(p.answered_s)} with the mean wait" if noticed(p) else "hardly any mean wait"
    return f", {mean}; 99 of 100 take at most {format_seconds(p.answered_p99_s)}"


def media_words(report: MediaReport) -> tuple[str, ...]:
    """Name, parameters, work of a request, and the sizes that it was asked with."""
    sizes = (
        f"{name.removesuffix('_bytes').replace('_', ' ')} {format_bytes(value)}"
        if name.endswith("_bytes")
        else f"{name} {value:g}"
        for name, value in report.settings.items()
        if name not in (SAVED, LOGITS, STATES)  # the table of memory says what a step keeps
    )
    work = f"{format_number(report.flops / 1e12)} TFLOP a request" if report.flops else "operations not known"
    return report.model, f"{format_count(report.parameters)} parameters", work, *sizes


def media_view(report: MediaReport, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
    """A line per plan under the verdict; of a single plan its parts and its memory. `command` looks into the first of
    plans that were chosen, for the last line."""
    first = _plans_table(report, command, everything=everything)
    return (first, *_parts_tables(report.plans[0])) if len(report.plans) == 1 else (first,)


def media_explained(report: MediaExplainReport) -> tuple[Table, ...]:
    """The same of one plan, with what it waits for and what would change it."""
    first, *parts = media_view(report)
    if len(parts) < TIMED:
        return (first, *parts)
    return first, parts[0], _resource_table(report.plans[0]), parts[1], _change_table(report)


def _plans_table(report: MediaReport, command: str, *, everything: bool) -> Table:
    """A line per plan under the verdict, and how to read them below."""
    name, *words = media_words(report)
    chosen = report.chosen
    plans = report.plans if everything else report.plans[:SHOWN]
    about = (", ".join(words), "")
    head = (f"{name}   {about[0]}", "", *report.verdict(), "") if chosen else (*report.verdict(), *about)
    brief = chosen and not everything and len(report.refused) > SHOWN
    foot = [] if brief else _refused(report.refused)
    if chosen:
        foot = [*_ranking(report, plans, everything=everything), *foot]
        foot += [*peak_words(plans), *scaling_words(plans)]
        foot += _of_first(report)
    else:
        foot += dict.fromkeys(p.note for p in plans if p.note and p.verdict != "no")
    foot += _api_words(report)
    if report.nearest:
        foot.append(f"closest published result: {report.nearest}")
    if report.assumptions:
        foot.append(f"assumed: {'; '.join(report.assumptions)}")
    if brief:
        foot.append(_left_out(report, len(report.plans) - len(plans)))
    if command and chosen:
        foot.append(f"next: {command}")
    return Table.of(plans, _columns(report, plans), head, foot)


def _left_out(report: MediaReport, left: int) -> str:
    """What `--all` says beside, `left` plans among it."""
    parts = [f"{left} more chip{'s' * (left > 1)}"] if left else []
    out = f"{len(report.refused)} chips without a plan"
    return f"more with --all: {', '.join([*parts, out, 'how plans were ranked'])}"


def _of_first(report: MediaReport) -> Iterator[str]:
    """The day that the first plan goes through, and what would get more from its chips."""
    first, per = report.plans[0], (f"1,000 {report.unit}s", 1e3)
    if first.day is not None:
        yield day_words(1, first.day, paid=first.price is not None, per=per, follows=first.scaling is None)
    if report.changes:
        more = (f"x{c.more_per_chip:.2g} with {c.options}{_doubt(c)}" for c in report.changes[:CHANGED])
        yield f"more {report.unit}s from the chips of #1: {', '.join(more)}"


def _api_words(report: MediaReport) -> Iterator[str]:
    """The cheapest that sells the model by the token."""
    for api in report.apis[:1]:
        rate = "" if api.usd_per_h is None else f", ${api.usd_per_h:.3g}/h at this load"
        yield f"as an API: {sells(api)}{rate}{dated(api.date, api.age_days)} (speed and terms not compared)"


def _parts_tables(p: MediaPlan) -> tuple[Table, ...]:
    """Where time goes, which is not known of every network, and where memory goes."""
    memory = _memory_table(p)
    if not _timed(p):
        return (memory,)
    seconds = [
        {"part": name, "seconds": value, "share": value / p.latency_s.mid} for name, value in p.stages.items() if value
    ]
    return Table.of(seconds, PARTS, ("time by part of the model", "")), memory


def _columns(report: MediaReport, plans: Sequence[MediaPlan]) -> list[Column]:
    """What is shown of these plans: of those that were chosen, the count and the price of all replicas, and the samples
    of an hour or a second where no rate was asked that all of them carry."""
    chosen = bool(plans and plans[0].rank)
    left_out = CHOSEN if chosen else SHOWN_ALIKE
    left_out |= {head for head in SOMETIMES if all(_empty(head, p) for p in plans)}
    if report.owned:
        left_out |= {"$/h", "per 1,000", "$ total"}
    shown = [c for c in MEDIA if c.head not in left_out]
    return _of_load(report, plans, {c.head: c for c in shown if c.head}) if chosen else shown


def _of_load(report: MediaReport, plans: Sequence[MediaPlan], found: dict[str, Column]) -> list[Column]:
    """The columns of chosen plans, by their heads, as load and job ask for them; those that may be left out say in
    which order."""
    waits = report.rate_per_s is not None
    if waits or report.job is not None:
        del found["samples/s"]
    else:
        by, unit = figures.per(plans[0].samples_per_s.mid)
        head = f"{report.unit}s/{unit}"
        found["samples/s"] = replace(found["samples/s"], head=head, get=partial(_paced, by))
    if report.job is not None:
        found.pop("per 1,000", None)
    left = [name for name, wanted in DISPENSABLE.items() if wanted(report) and name != report.by]
    said = "batch takes" if any(p.samples > 1 for p in plans) else "time"
    found["time"] = replace(found["time"], head=f"{said}, no wait" if waits else said)
    return [replace(c, spare=left.index(name) + 1) if name in left else c for name, c in found.items()]


def _doubt(change: MediaChange) -> str:
    """What nobody looked at."""
    return " (quality not assessed)" if "not assessed" in change.words else ""


def _paced(by: float, p: MediaPlan) -> Figure:
    rate = p.samples_per_s
    return Figure(by * rate.mid, by * rate.low, by * rate.high, rate.basis, rate.provisional)


def _empty(head: str, p: MediaPlan) -> bool:
    """Whether a column of `SOMETIMES` says nothing of a plan."""
    alone = {"batch": p.batch == 1, "spread": not p.spread, "offload": p.offload == "none"}
    alone["on the host"] = not p.host_bytes
    alone |= {"done in": p.job is None, "$ total": p.job is None or p.job.usd is None}
    alone["layout"] = alone["spread"] and p.replicas == 1
    return alone[head]


def _ranking(report: MediaReport, plans: Sequence[MediaPlan], *, everything: bool) -> list[str]:
    """How to read the plans, and which are not among those that are shown; on request how they were ranked, and what is
    to be known of each."""
    replicated = "2 x ulysses=4: two replicas of four devices that share a sequence"
    spread = any(p.spread for p in plans)
    said = [legend(replicated if spread else "", stale=any(p.price and p.price.stale for p in plans))]
    if everything and not report.owned:
        said.append(_ranked_by(report))
    said += notes((p.rank, p.note) for p in (plans if everything else plans[:1]))
    batches = sorted({p.batch for p in plans})
    if len(batches) > 1 and not any(p.parts for p in plans):
        said.append(
            f"time is that of a whole batch, and batches are {batches[0]} to {batches[-1]}: --batch "
            f"{batches[0]} compares the same on all"
        )
    return said if everything or len(report.refused) > SHOWN else said + _left(report, plans)


def _left(report: MediaReport, plans: Sequence[MediaPlan]) -> list[str]:
    """How many plans there are beside those that are shown."""
    left = [p.machines for p in report.plans[len(plans) :]]
    if not left:
        return []
    more = f" and {len(left) - FIRST} more" if len(left) > FIRST else ""
    return [f"{len(left)} more chip{'s' if len(left) > 1 else ''} (--all): {', '.join(left[:FIRST])}{more}"]


def _ranked_by(report: MediaReport) -> str:
    """What plans whose chips are paid were ranked by."""
    by = "$/h" if report.rate_per_s is not None else f"$ per {report.unit}"
    due = report.job is not None and report.job.deadline_s is not None
    what = "the target" if report.limit_s is not None else "the deadline" if due else ""
    limit = f"plans that meet {what} with {report.confidence:.0%} probability, then " if what else ""
    near = preferences()
    served = "" if report.rate_per_s is None else ", software that is a server"
    return (
        f"ranked: {limit}the cheapest ({by}); within {near.equal:.0%} of it the strongest evidence (measured, recent "
        f"price, no marketplace, nothing kept on the host{served}), then fewer hosts and chips billed, more replicas, "
        f"the usual software; each weakness that a plan avoids may cost {near.evidence:.0%} more; no plan stands above "
        "one that is no dearer, no slower and no less likely, and clearly faster or cheaper; plans without a price last"
    )


def _refused(refused: Sequence[RefusalRecord]) -> list[str]:
    """A line for each reason with the chips that it holds for, those in servers for rent first."""

    def at_home(r: RefusalRecord) -> bool:
        return not any("rent" in system.offered for system in load_systems().holding(r.chip))

    grouped: dict[str, list[RefusalRecord]] = {}
    for r in sorted(refused, key=at_home):
        words = r.detail if r.reason == "NO_RUNTIME" else GROUPS.get(r.reason, r.detail)
        grouped.setdefault(words, []).append(r)
    lines = []
    for words, members in grouped.items():
        said = f"{words}: {', '.join(r.chip for r in members)}"
        lines.append(said if len(members) > 1 else f"{members[0].chip}: {members[0].detail}")
    return lines


def _resource_table(p: MediaPlan) -> Table:
    """What the time is spent on, and what more of it would give."""
    head = f"time by what it waits for; {p.share_of_peak:.0%} of the peak in {PEAK} is reached"
    ordered = sorted(p.shares.items(), key=lambda item: -item[1])
    return Table.of([{"resource": name, "share": share} for name, share in ordered], RESOURCES, (head, ""))


def _change_table(report: MediaExplainReport) -> Table:
    """What would change the plan."""
    head = ("what would change it, each alone; samples: those of a chip and second, over those of now", "")
    return Table.of(report.changes, CHANGES, head, () if report.changes else ("nothing that was tried",))


def _memory_table(p: MediaPlan) -> Table:
    kinds = [{"use": name, "bytes": value} for name, value in p.memory.items() if value]
    return Table.of(
        kinds,
        (Column("use", "use"), Column("bytes", "bytes", format_bytes, right=True)),
        (f"memory of one device, of {format_bytes(p.capacity_bytes)}", ""),
        _host_words(p),
    )


def _host_words(p: MediaPlan) -> tuple[str, ...]:
    """What waits on the host, and the room that it has; nothing where nothing waits."""
    if not p.host_bytes:
        return ()
    room = "" if p.host_capacity_bytes is None else f", of {format_bytes(p.host_capacity_bytes)} to spare"
    return (f"on the host: {format_bytes(p.host_bytes)}{room}",)
