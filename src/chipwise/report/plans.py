"""Plans for serving: what is said of each, the sentence that opens the answer, and one plan from inside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from statistics import NormalDist
from typing import ClassVar

from chipwise.catalog.chips import get_chip
from chipwise.catalog.preferences import preferences
from chipwise.evidence.axes import compared_axes, served_family
from chipwise.evidence.discrepancy import apart_of
from chipwise.predict.fleet import Day
from chipwise.report import figures
from chipwise.report.answer import Tabled
from chipwise.report.decision import ApiRecord, DecisionRecord, dated, decided, sells
from chipwise.report.fit import memory_view, parts_view
from chipwise.report.kernel import AmdahlReport, amdahl_view
from chipwise.report.plan import (
    CHIP,
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
    front_words,
    gain,
    legend,
    notes,
    peak_words,
    scaling_words,
    steadier,
    taken,
)
from chipwise.report.records import (
    SCHEMA_VERSION,
    Figure,
    JobRecord,
    LayoutRecord,
    MemoryRecord,
    ModelRecord,
    NearestRecord,
    PartRecord,
    PlacedRecord,
    PriceRecord,
    RefusalRecord,
    TailRecord,
    WorkloadRecord,
)
from chipwise.report.simulated import FollowingRecord, PeakRecord
from chipwise.report.table import DASH, Column, Table
from chipwise.search.space import By
from chipwise.units import amount, duration_words, format_count, format_number, format_seconds
from chipwise.values import dataclass

SHOWN = 10
MORE = 8  # plans not shown that are named
NAMED = 3  # plans whose nearest published result is spelt out
QUANTILES = ("p50", "p95", "p99")
FEEDING = " (filling the tiles of products takes longer than multiplying them, as with few rows for each expert)"


@dataclass(frozen=True, slots=True)
class UpRecord:
    """The share of the time in which all replicas that carry the load are up, with the spare ones and `without`, where
    chips fail and hosts are back as in the `fleet`."""

    share: float
    without: float
    chip_mtbf_h: float
    repair_h: float
    fleet: str


@dataclass(frozen=True, slots=True, repr=False)
class PlanRecord(Plan, Tabled):
    """A plan for a language model and what it is predicted to do. Throughput is of all replicas at the load asked for,
    or full.

    `precision` is that of the weights, `kv` that of the cache. `replicas` count `spare` ones, without which the
    load is carried too; `largest_requests_per_s` is what they sustain within the targets, `capacity` the same with its
    interval (None: no rate was given); both are all that is sustained where no target was asked, and a load that was
    asked has no interval. The largest falls by `rate_slope` per cent where passes take one per cent longer (1: no
    target bounds it); `prompt_workers` run
    prefill for all of them (0: there is one pool). `tpot_s` includes the share of other requests' prompts
    (None: an answer of one token), `decode_s` does not; `prompt_share` is the share of time that goes into
    prompts. `tails` by quantile ("p95"), `day` where a curve of rates was given. `chance` is the probability that the
    least certain target or the deadline of a `job` holds (None: none was asked), `hosts` the machines that hold all
    chips, `replica_hosts` those that one replica spans, over a network of `network_bytes_per_s` a chip each way (None:
    none is known), `energy` what they draw (None: no power limit is known). `converted`: weights are not as the
    checkpoint has them, although no format was asked for. `parts` are the cards and the processor of a machine that
    share the model (none: it lies on one kind of chip), as `placed` says; `memory` is then that of the first.
    `memory_range` are the bytes that a device needs at its load, with `memory_chance` the probability that they fit.
    `scaling` is how replicas may follow a log or a day with the targets held (None: not looked for, or all have to
    run); `up` how often all are up that carry the load (None: no replica is spare); `peak` what a simulation of the
    busiest slice of a day says of it (None: not simulated); `untested` what makers of its software do not vouch
    for.
    """

    layout: LayoutRecord
    kv: str
    batch: float
    concurrency: float
    ttft_s: Figure
    tpot_s: Figure | None
    decode_s: float
    prefill_s: float
    tokens_per_s: Figure
    tokens_per_s_per_chip: Figure
    tokens_per_s_per_user: Figure | None
    requests_per_s: float
    largest_requests_per_s: float
    prompt_share: float
    usd_per_million_in: Figure | None
    usd_per_million_out: Figure | None
    kwh_per_million_out: Figure | None
    memory: MemoryRecord
    memory_range: Figure
    tails: dict[str, TailRecord] = field(default_factory=dict)
    nearest: NearestRecord | None = None
    day: Day | None = None
    spare: int = 0
    prompt_workers: int = 0
    note: str = ""
    system: str = ""
    replica_hosts: int = 1
    network_bytes_per_s: float | None = None
    converted: bool = False
    job: JobRecord | None = None
    on_front: bool = False
    parts: tuple[PartRecord, ...] = ()
    placed: PlacedRecord | None = None
    capacity: Figure | None = None
    memory_chance: float = 1.0
    rate_slope: float = 1.0
    scaling: FollowingRecord | None = None
    up: UpRecord | None = None
    peak: PeakRecord | None = None
    untested: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """Its figures, and where time and memory go, as `explain` shows them."""
        return breakdown_view(self)

    @property
    def machines(self) -> str:
        """Its chips; a machine of parts says itself how many of what."""
        return self.chip if self.parts else f"{self.chips}x {self.chip}"

    @property
    def group(self) -> int:
        """Chips that share a machine: those that exchange the most."""
        return max(self.layout.tp, 1)

    def answer_s(self, output_tokens: float) -> float:
        """Seconds of a whole answer of so many tokens."""
        return self.ttft_s.mid + (output_tokens - 1.0) * (self.tpot_s.mid if self.tpot_s else 0.0)

    def usd(self) -> float:
        """Dollars of its job, else per hour; infinite where no price is known."""
        if self.price is None:
            return math.inf
        return self.job.usd.mid if self.job and self.job.usd else self.price.mid

    @property
    def load(self) -> float:
        """The part of the load that it could carry within the targets that it carries."""
        return self.requests_per_s / self.largest_requests_per_s

    @property
    def pace(self) -> Figure:
        """What a user waits for: time per token, or where the answer is a single one the time to it."""
        return self.ttft_s if self.tpot_s is None else self.tpot_s

    @property
    def spread(self) -> str:
        """Replicas and what each is cut over: `tp4`, `2 x tp4 + 1 spare`, `3 x tp1 + 1 for prompts`."""
        carrying = self.replicas - self.spare
        if carrying == 1 and not (self.spare or self.prompt_workers):
            return self.layout.label
        spare = f" + {self.spare} spare" if self.spare else ""
        prompts = f" + {self.prompt_workers} for prompts" if self.prompt_workers else ""
        return f"{carrying} x {self.layout.each}{spare}{prompts}"


@dataclass(frozen=True, slots=True)
class LeverRecord:
    """A change that makes the first plan cheaper: the options that ask for it, what it means, the plan on the same chip
    with it, the share of the cost that it `saves`, the `chance` that the targets then hold, and the checkpoint that
    somebody `published` for it."""

    options: str
    words: str
    chips: int
    spread: str
    price: PriceRecord | None
    saves: float
    chance: float | None = None
    published: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class PlanReport(Ranking[PlanRecord]):
    """The answer to `plan`, `estimate` and `compare`: a plan for each chip. `as_stored` is the best one with weights as
    the checkpoint has them, where the first converts them; `owned`: plans are of chips that the user has; `levers` are
    changes that would make the first cheaper, `apis` sell tokens of the same weights, `decision` is whether to call
    one, rent or own (None: no rate, or nothing is paid). `cheapest` is the cheapest plan of those that could come
    first, where it is another, and `saves` the share of the cost of the first. `kept`: a plan keeps the targets as
    surely as was asked; else the likeliest stands first, and `ways` are changes with which one would. `surer` is the
    first plan for the usual certainty, where that costs so much that plans are for less; `ways` those to it, where it
    is not to be had within the limits. `by`: what plans
    are the best of. `software` are the best plans on the chip of the first under other software, their ranks behind
    those of `plans`. `max_watts`: the limit at the plugs (None: none was asked)."""

    inside: ClassVar[bool] = True

    model: ModelRecord
    workload: WorkloadRecord
    plans: tuple[PlanRecord, ...]
    refused: tuple[RefusalRecord, ...]
    considered: int
    rejected: dict[str, int]
    assumptions: tuple[str, ...]
    as_stored: PlanRecord | None = None
    owned: bool = False
    levers: tuple[LeverRecord, ...] = ()
    apis: tuple[ApiRecord, ...] = ()
    decision: DecisionRecord | None = None
    cheapest: PlanRecord | None = None
    saves: float = 0.0
    kept: bool = True
    by: By = "chip"
    software: tuple[PlanRecord, ...] = ()
    ways: tuple[str, ...] = ()
    surer: PlanRecord | None = None
    max_watts: float | None = None
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """What to take, what it does, how sure that is, and what else there is."""
        return _verdict(self)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The ranked plans; of one deployment that was asked about its figures too. `command` looks into the first."""
        first = plan_view(self, command, everything=everything)
        return (first, *breakdown_view(self.plans[0])) if self.considered <= 1 else (first,)

    def titled(self) -> Mapping[str, Sequence[str]]:
        """Lines of its own kind under their title, where a page shows no further tables."""
        return {}

    @property
    def sure(self) -> float:
        """The probability with which plans were to keep their targets."""
        return self.workload.confidence


@dataclass(frozen=True, slots=True, repr=False)
class ExplainReport(PlanReport):
    """One plan, and, where a serial part was named, when a CPU would do a request of this size sooner."""

    amdahl: AmdahlReport | None = None

    @classmethod
    def of(cls, report: PlanReport, amdahl: AmdahlReport | None) -> ExplainReport:
        """A report with more to it."""
        return cls(**{f.name: getattr(report, f.name) for f in fields(report)}, amdahl=amdahl)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """One plan from inside."""
        more = () if self.amdahl is None else (amdahl_view(self.amdahl),)
        return (*breakdown_view(self.plans[0]), *more)


def _unsized(report: PlanReport) -> bool:
    """Whether plans are of the user's own chips, and ranked by how much they do."""
    w = report.workload
    return report.owned and w.task != "local" and w.rate_per_s is None and w.tokens is None


def _priced(report: PlanReport) -> bool:
    """Whether plans are compared by price: those without one are then listed apart."""
    return report.workload.task != "local" and any(p.price for p in report.plans)


def _name(p: PlanRecord) -> str:
    return f"{p.machines} {p.spread} {p.precision} on {p.runtime}"


def _formats(p: PlanRecord) -> str:
    return p.precision if p.kv in ("bf16", "fp16") else f"{p.precision}, kv {p.kv}"


def _batch(p: PlanRecord) -> str | None:
    """Sequences that decode at once; an answer of one token leaves nothing to decode."""
    return None if p.tpot_s is None else count_words(p.batch)


def count_words(mean: float) -> str:
    """A mean of counts without parts, two digits of one below 1."""
    return f"{mean:,.0f}" if mean >= 1.0 else f"{mean:.2g}"


def _price(price: PriceRecord) -> str:
    return f"{figures.number(price)}{'*' if price.stale else ''}"


def _per_request(p: PlanRecord) -> Figure | None:
    """Dollars per thousand requests, of an answer of one token: there a token is a request."""
    if p.price is None or p.tpot_s is not None:
        return None
    rate, price, scale = p.tokens_per_s, p.price, 1000.0 / 3600.0
    mid, low, high = (scale * usd for usd in (price.mid / rate.mid, price.low / rate.high, price.high / rate.low))
    return Figure(mid, low, high, rate.basis, rate.provisional)


def _p95_ms(p: PlanRecord) -> dict[str, float | None]:
    tail = p.tails.get("p95")
    times = {} if tail is None else {"ttft": tail.ttft_s, "tpot": tail.tpot_s}
    return {name: None if seconds is None else seconds * 1e3 for name, seconds in times.items()}


def _joules(p: PlanRecord) -> Figure | None:
    return None if p.energy is None else p.energy.joules_per_token


def _wall(p: PlanRecord) -> Figure | None:
    return None if p.energy is None else p.energy.wall_w


def _gains(p: PlanRecord) -> dict[str, str]:
    return {name: f"+{gain(share):.1%}" for name, share in p.shares.items()}


def _ties(p: PlanRecord) -> tuple[int, ...]:
    return p.ties[:MORE]


def _nearest(p: PlanRecord) -> str:
    n = p.nearest
    return "" if n is None else f"{n.label} ({n.result}): {n.verdict}"


PLANS = (
    RANK,
    Column("", _name, short="plan"),
    Column("plan", lambda p: f"{p.machines} {_formats(p)}"),
    CHIP,
    Column("", "chips", short="chips"),
    Column("", "replicas", short="replicas"),
    Column("", "spare", short="spare"),
    Column("", "prompt_workers", short="prompt_workers"),
    Column("layout", "spread", spare=1),
    Column("", "layout.label", short="layout"),
    Column("batch", _batch, right=True, spare=9),
    Column("", "precision", short="precision"),
    Column("", "kv", short="kv"),
    Column("runtime", "runtime", spare=7, short="runtime"),
    Column("provider", "price.provider", spare=11),
    Column("", "system", short="system"),
    Column("", "concurrency", short="concurrency"),
    USD_PER_H,
    Column("$/M in", "usd_per_million_in", figures.number, right=True, spare=10),
    Column("$/M out", "usd_per_million_out", figures.number, right=True, spare=6, short="usd_per_million_out"),
    DONE_IN,
    TOTAL_USD,
    Column("$/k requests", _per_request, figures.number, right=True),
    Column("TTFT, ms", "ttft_s", figures.milliseconds, right=True, short="ttft_ms", scale=1e3),
    Column("TPOT, ms", "tpot_s", figures.milliseconds, right=True, short="tpot_ms", scale=1e3),
    Column("", "tokens_per_s", short="tokens_per_s"),
    Column("tok/s/chip", "tokens_per_s_per_chip.mid", lambda v: format_number(v, 4), right=True, spare=4,
           short="tokens_per_s_per_chip"),
    Column("tok/s/user", "tokens_per_s_per_user.mid", lambda v: format_number(v, 2), right=True, spare=8),
    Column("chance", "chance", lambda v: f"{chance_percent(v)} %", right=True, short="chance_of_targets"),
    Column("", "hosts", short="hosts"),
    Column("", _joules, short="joules_per_token"),
    Column("W", _wall, figures.number, right=True, short="wall_w"),
    Column("requests/s", "requests_per_s", format_number, right=True, short="requests_per_s"),
    Column("max req/s", "largest_requests_per_s", format_number, right=True, spare=4,
           short="largest_requests_per_s"),
    Column("", _p95_ms, short="p95_ms"),
    Column("bottleneck", "bottleneck", spare=3, short="bottleneck"),
    Column("", "shares", short="shares_of_time"),
    Column("", _gains, short="ten_percent_more_gives"),
    Column("", "memory.verdict", short="memory"),
    Column("", "memory.items", short="memory_gb", scale=1e-9),
    Column("basis", "pace.basis", spare=1, short="basis"),
    Column("", "pace.provisional", short="provisional"),
    Column("", "on_front", short="on_front"),
    Column("", _ties, short="ties_with"),
    Column("", _nearest, short="nearest_measurement"),
    Column("", "note", short="note"),
)  # fmt: skip
"""What is said of a plan, most important first where a line is short."""

ONE_TOKEN = "answers of one token: nothing is decoded, so there is no TPOT, no batch and no price of output tokens"


def _columns(report: PlanReport) -> list[Column]:
    """What is said of each plan of this report."""
    # without a load plans are ranked by what a token costs, and each carries another load
    w = report.workload
    unsized = w.task in ("serve", "batch") and w.rate_per_s is None and w.tokens is None
    per_token = report.considered > 1 and unsized and not report.owned
    left_out, hidden = _left_out(report), _hidden(report, per_token=per_token)
    kept = {report.by, *(["$/M out"] if per_token else [])}

    def spare(c: Column) -> int:
        if c.head in kept:
            return 0
        # nobody waits for one request of a batch
        waits = ("TTFT, ms", "TPOT, ms") if w.task == "batch" else ()
        less = dict.fromkeys(("$/h", "basis", *waits), 2) | {"requests/s": 1}
        return less.get(c.head, c.spare) if per_token else c.spare

    return [
        replace(c, head="" if c.head in hidden else c.head, spare=spare(c)) for c in PLANS if c.head not in left_out
    ]


def _left_out(report: PlanReport) -> set[str]:
    """Columns of what nobody asked about."""
    alone = all(p.tpot_s is None for p in report.plans)
    left_out = {"TPOT, ms", "batch", "$/M out", "tok/s/user"} if alone else {"$/k requests"}
    # nobody waits for one request of a job
    left_out |= {"done in", "$ total"} if report.workload.tokens is None else {"TTFT, ms", "TPOT, ms"}
    left_out |= set() if report.by == "provider" else {"provider"}
    if report.owned:
        left_out |= {"$/h", "$/M in", "$/M out", "$/k requests", "$ total"}
    return left_out


def _hidden(report: PlanReport, *, per_token: bool) -> set[str]:
    """Columns that other formats show, but no table."""
    hidden = set() if _unsized(report) or per_token else {"requests/s"}
    # of a load that was asked for not itself is a result, but how much more could be
    fleet = report.workload.rate_per_s is not None and report.considered > 1
    hidden |= {"tok/s/chip" if fleet else "max req/s"}
    hidden |= {"chance"} if all(p.chance is None for p in report.plans) else set()
    return hidden | (set() if report.max_watts else {"W"})


def plan_view(report: PlanReport, command: str = "", *, everything: bool = False) -> Table:
    """The ranked plans under the verdict. `command` looks into the first, for the last line."""
    plans = report.plans if everything else [p for p in report.plans if p.price or not _priced(report)][:SHOWN]
    columns = _columns(report)
    head = (report.model.line, "", *report.verdict(), "")
    foot = _foot(report, plans, command, everything=everything or report.considered == 1)
    return Table.of(plans, columns, head, foot, values=report.plans)


def _verdict(report: PlanReport) -> tuple[str, ...]:
    first = report.plans[0]
    verb, chips, hour = taken(first, f"{first.spread}, {_formats(first)}", owned=report.owned)
    # nothing was chosen where one deployment was asked about
    what = at(chips, hour)
    openings: tuple[str, ...] = (f"{verb}{what}" if report.considered > 1 else what,)
    if report.decision is not None:
        what_to_do, *rest = decided(report.decision, _cheapest_api(report), chips, hour)
        openings = (what_to_do, *_below_api(report), *rest)
    if not report.kept:
        missed = f"No plan meets {_asked_of(report)} with {report.workload.confidence:.0%} probability"
        missed += " where the peak of the day is simulated" if first.peak and not first.peak.holds else ""
        works = f"; what works: {', or '.join(report.ways)}" if report.ways else ""
        openings = (f"{missed}{works}. Nearest: {what}",)
    found = founded(first, first.pace.basis, [part.chip for part in first.parts])
    found += f" Its makers do not vouch for {' and '.join(first.untested)}." if first.untested else ""
    return (*openings, _does(report), *follows(report.plans), found, *_certainty(report), *_alternatives(report))


ARRANGED = "--disaggregate"
"""What a lever may ask for that changes neither targets nor load nor weights, nor assumes anything of them."""


def _below_api(report: PlanReport) -> list[str]:
    """That machines cost less than the API that is called, where the same work is arranged otherwise on them."""
    decision = report.decision
    lever = next((one for one in report.levers if one.options == ARRANGED), None)
    if decision is None or decision.choice != "api" or lever is None or lever.price is None:
        return []
    api, rent = decision.api_usd_per_month, decision.rent_usd_per_month
    if api is None or rent is None or rent * (1.0 - lever.saves) >= api:
        return []
    usd = decision.usd_words(rent * (1.0 - lever.saves))
    return [
        f"Machines cost less than the API with {lever.options} ({lever.words}): {usd} {decision.span} for "
        f"{lever.chips}x {report.plans[0].chip} ({lever.spread})."
    ]


def _certainty(report: PlanReport) -> list[str]:
    """What the usual certainty costs, where plans are for less; else what the confidence costs beyond even odds, where
    it is most of the plan."""
    usual = f"{preferences().confidence:.0%}"
    if report.surer is not None:
        p, asks = report.surer, f"--confidence {usual}"
        return [f"With {usual} probability ({asks}): {p.machines} ({p.spread}){_cost(report, p, ', ')}."]
    if report.kept and report.ways:
        return [f"{usual} probability is out of reach; what would give it: {', or '.join(report.ways)}."]
    even = next((lever for lever in report.levers if lever.options.startswith("--confidence")), None)
    if even is None:
        return []
    chance = preferences().even if even.chance is None else even.chance
    return _saved(report, even, f"{chance_percent(chance)}% probability")


def _saved(report: PlanReport, lever: LeverRecord, gives: str, then: str = "") -> list[str]:
    """What a plan with a change costs, where that saves enough to stand in the verdict."""
    first = report.plans[0]
    if lever.saves < preferences().costly or first.price is None or lever.price is None:
        return []
    return [
        f"With {gives} ({lever.options}): {lever.chips}x {first.chip} ({lever.spread}), ${figures.mid(lever.price)}/h, "
        f"${format_number(first.price.mid - lever.price.mid)}/h less{then}."
    ]


def _cheapest_api(report: PlanReport) -> ApiRecord | None:
    return next(iter(report.apis), None)


def _asked_of(report: PlanReport) -> str:
    """What plans had to keep, in words."""
    w = report.workload
    if w.task == "batch":
        return f"the deadline of {duration_words(w.deadline_s or 0.0)}"
    named = {"to the first token": w.ttft_s, "per token": w.tpot_s, "for a whole answer": w.e2e_s}
    return " and ".join(f"{format_seconds(s)} {words}" for words, s in named.items() if s)


def _cost(report: PlanReport, p: PlanRecord, lead: str) -> str:
    """What a plan costs, behind what leads to it; nothing for chips that the user has."""
    return "" if report.owned else lead + cost_words(p.price, p.chips)


def _does(report: PlanReport) -> str:
    """Load and times of the first plan, how likely it keeps the targets, and how much more it could carry."""
    first, w = report.plans[0], report.workload
    speed = f"{format_seconds(first.ttft_s.mid)} to the first token"
    if first.tpot_s is not None:
        speed += f" and {format_seconds(first.tpot_s.mid)} per token after it"
    if first.job is not None and w.tokens is not None:
        return _finishes(report, first.job, w.tokens)
    does = "It serves" if w.task == "serve" else "It completes"
    full = _unsized(report) and report.considered > 1
    most, load = ("up to ", " at full load") if full else ("", "")
    load += f" (with --rate at most {w.utilisation:.0%} of it are used)" if full and w.task == "serve" else ""
    said = f"{does} {most}{amount(first.requests_per_s, 'request')}/s{load} at {speed}"
    if w.task == "local":
        said = f"One user waits {speed}"
    said += _targets(w, first)
    if w.rate_per_s is not None and report.considered > 1:
        said += f". Load: {first.load:.0%} of its maximum"
        carrying = first.replicas - first.spare
        # where one replica fewer would take more than is allowed, that decides their number
        one_less = first.load * carrying / max(carrying - 1, 1)
        said += f" (limit: --utilisation {w.utilisation:.0%})" if carrying > 1 and one_less > w.utilisation else ""
    return f"{said}."


def _targets(w: WorkloadRecord, first: PlanRecord) -> str:
    """The targets, and how surely the first plan keeps them; "" without any."""
    limits = {"TTFT": w.ttft_s, "TPOT": None if first.tpot_s is None else w.tpot_s, "answer": w.e2e_s}
    of = "mean " if w.percentile is None else f"p{w.percentile * 100:g} "
    of = "" if w.task == "local" else of
    named = [f"{of}{name} under {format_seconds(s)}" for name, s in limits.items() if s and w.task != "batch"]
    if not named:
        return ""
    said = " and ".join(named)
    return (
        f". Targets: {said}" if first.chance is None else f". {said[0].upper()}{said[1:]}: met {_surely(first.chance)}"
    )


def _finishes(report: PlanReport, job: JobRecord, tokens: float) -> str:
    first, w = report.plans[0], report.workload
    surely = "" if first.chance is None else _surely(first.chance)
    return f"{finishes(f'writes {format_count(tokens)} tokens', job, w.deadline_s, surely)}."


def _surely(chance: float) -> str:
    return f"with {chance_percent(chance)}% probability"


def _alternatives(report: PlanReport) -> list[str]:
    """The best plan with the checkpoint as it is, one with a smaller published checkpoint where that saves much,
    and plans that the prediction cannot tell from the first."""
    first, lines = report.plans[0], list[str]()
    if report.as_stored is not None:
        stored = report.as_stored
        lines.append(
            f"If you keep {stored.precision}: {stored.machines} ({stored.spread})"
            f"{_cost(report, stored, ', ')}; {first.precision} {first.keeps}."
        )
    ready = next((lever for lever in report.levers if lever.published), None)
    if ready is not None:
        weights, _, keeps = ready.words.partition(": ")
        lines += _saved(report, ready, weights, f"; {ready.options.split()[-1]} {keeps}")
    by_rank = {p.rank: p for p in report.plans}
    if report.cheapest is not None and report.saves >= preferences().told:
        lines.append(_dearer(report.cheapest, first, report))
    lines += _several(report)
    said = None if report.cheapest is None else report.cheapest.machines
    tied = [_apart(p, first) for rank in first.ties if (p := by_rank.get(rank)) and p.machines != said]
    alike = "About as fast" if report.workload.task == "local" else "About the same cost"
    if report.owned:
        alike = "About as good" if report.workload.rate_per_s else "About the same throughput"
    return lines + tied_words(tied, alike)


def _several(report: PlanReport) -> list[str]:
    """The best plan on chips that are surer to be had than those of the first."""
    found = steadier(report.plans, lambda p: p.keeps_targets(report.workload.confidence))
    if found is None:
        return []
    words, p = found
    return [f"{words}: {p.machines} ({p.spread}){_cost(report, p, ', ')}."]


def _apart(p: PlanRecord, first: PlanRecord) -> str:
    """The machines of a plan, and how it runs where the first has the same."""
    name = p.machines
    return f"{name} ({p.spread}, {p.precision})" if name == first.machines else name


def _dearer(least: PlanRecord, first: PlanRecord, report: PlanReport) -> str:
    """What it costs that the first plan is not the cheapest, and why it is first."""
    pairs = (
        (least.pace.basis == "modelled", first.pace.basis == "modelled", "has not been measured"),
        (bool(least.price and least.price.stale), bool(first.price and first.price.stale), "has an old price"),
        (least.layout.pp > 1, first.layout.pp > 1, "runs in pipeline stages"),
        (least.converted, first.converted, "converts the weights"),
        (bool(least.untested), bool(first.untested), "runs on software whose makers do not vouch for it"),
    )
    why = [words for its, mine, words in pairs if its and not mine]
    billed = [p.price.billed if p.price else p.chips for p in (least, first)]
    if not why and least.hosts > first.hosts:
        why = [f"takes {least.hosts} hosts, not {first.hosts}"]
    elif not why and billed[0] > billed[1]:
        why = [f"pays for {billed[0]} chips, not {billed[1]}"]
    elif not why and least.pace.mid > first.pace.mid * preferences().tie:
        why = ["is slower"]
    reason = f", but it {' and '.join(why)}" if why else ", but its machines come from a marketplace"
    cost = f"{_cost(report, least, ', ')}, {report.saves:.0%} less ({_how_likely(least, first, report.saves)})"
    return f"Cheapest: {least.machines} {least.precision}{cost}{reason}."


def _how_likely(least: PlanRecord, first: PlanRecord, saves: float) -> str:
    """How probable it is that a plan whose predicted cost is less by `saves` does cost less: errors that both share, as
    those of one runtime on one chip, cancel."""
    mine, other = (compared_axes(get_chip(p.chip), p.runtime, p.precision) for p in (least, first))
    family = served_family(first.runtime)
    likely = NormalDist().cdf(-math.log1p(-saves) / max(apart_of(mine, other, family), 1e-9))
    return f"{100.0 * min(likely, 0.99):.0f}% likely to be so"


def tied_words(names: Sequence[str], alike: str = "About the same cost") -> list[str]:
    """Plans that are `alike` the first, in a sentence; none where there are none."""
    names = list(dict.fromkeys(names))
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [f"{alike}: {', '.join(names[:NAMED])}{more}."]


def _foot(report: PlanReport, plans: Sequence[PlanRecord], command: str, *, everything: bool) -> list[str]:
    """What is said below the plans: what would make the first cheaper, what it rests on, what was asked and what else
    there is; on request all of that, how plans were ranked, refusals one by one, what is to be known of other plans,
    and all assumptions."""
    # how a configuration was read is said in any case
    said = report.assumptions if everything else report.model.assumptions
    assumed = f"assumed: {'; '.join([*_asked(report), *said])}"
    last = [f"next: {command}"] if command else []
    if everything:
        more = [*_software(report), *cheaper(report), _legend(plans), *ranking(report, plans)]
        return [*more, *first_plan(report, plans), assumed, *last]
    alone = [ONE_TOKEN] if any(p.tpot_s is None for p in plans) else []
    few = _unpriced(report) if len(_without_price(report)) <= NAMED else []
    few += _refusals(report.refused) if len(report.refused) <= SHOWN else []
    foot = [_legend(plans), *alone, *_briefly(report), *_of_first(report), *few, assumed]
    return [*foot, *_unsaid(report, plans), *last]


def _of_first(report: PlanReport) -> list[str]:
    """What the first plan rests on, and what is to be known of it."""
    first, w = report.plans[0], report.workload
    near = [f"#1: closest published result: {text}" for text in _published([first])]
    note = first.note
    if report.as_stored is not None:  # said of it above
        note = note.partition(f"{first.precision} instead of the checkpoint's format")[0].rstrip("; ")
    return [
        *near,
        *(_hosts(first) if first.replica_hosts > 1 else []),
        *(_tails(first) if w.percentile else []),
        *_spare(first),
        *peak_words(report.plans),
        *scaling_words([first]),
        *_day(first),
        *notes([(1, note)]),
    ]


def _briefly(report: PlanReport) -> list[str]:
    """What would make the first plan cheaper, in a line; and an API that was not named above."""
    saves = [f"{lever.saves:.0%} with {lever.options}" for lever in report.levers]
    said = [f"cheaper{_each(report)} than #1 by {', '.join(saves)} (--all: what each asks for)"] if saves else []
    return said if _called(report) else [*said, *_apis(report)]


def _each(report: PlanReport) -> str:
    """What is cheaper where no load says how many machines run."""
    return "" if report.workload.rate_per_s or report.workload.tokens else " per token"


def _called(report: PlanReport) -> bool:
    """Whether the verdict names an API."""
    return report.decision is not None and report.decision.api_usd_per_month is not None


def _unsaid(report: PlanReport, plans: Sequence[PlanRecord]) -> Iterator[str]:
    """What else there is, on request."""
    without, out = _without_price(report), len(report.refused)
    left = len(report.plans) - len(plans) - len(without)
    kind = "chip" if len({p.chip for p in report.plans}) == len(report.plans) else "plan"
    parts = {
        f"{left} more {kind}{'s' * (left > 1)}": left > 0,
        f"{len(without)} without a known price": len(without) > NAMED,
        f"{out} chip{'s' * (out > 1)} without a plan": out > SHOWN,
        "other software": _software(report),
        "latency percentiles": not report.workload.percentile and _tails(report.plans[0]),
        "terms of the API": _called(report),
        "how plans were ranked": len(report.plans) > 1,
        "all assumptions": report.assumptions,
    }
    if said := [words for words, there in parts.items() if there]:
        yield f"more with --all: {', '.join(said)}"


def _software(report: PlanReport) -> list[str]:
    """What the chip of the first plan does under other software; not what takes a multiple of the chips."""
    first, w = report.plans[0], report.workload
    said = []
    for p in report.software:
        if p.chips > preferences().most_chips * first.chips:
            continue
        sure = "" if p.keeps_targets(w.confidence) or p.chance is None else f", {chance_percent(p.chance)}%"
        pace = f"{format_seconds(p.pace.mid)} {'per token' if p.tpot_s else 'to the first token'}"
        rate = f"{format_number(p.requests_per_s)} requests/s" if _unsized(report) else pace
        rate = f"done in {duration_words(p.job.hours.mid * 3600.0)}" if p.job else rate
        cost = _cost(report, p, ", ").partition(" at ")[0]
        said.append(f"{p.runtime} {p.machines} ({p.spread}){cost}, {rate}{sure}")
    return [f"{first.chip} with other software: {'; '.join(said)}"] if said else []


def ranking(report: PlanReport, plans: Sequence[PlanRecord]) -> list[str]:
    """How the `plans` that are shown were ranked, what is not among them and why, and what is to be known of some."""
    first, said = report.plans[0], [f"ranked: {_ranked(report)}"] if report.considered > 1 else []
    said += [] if report.owned else front_words(report.plans, "no plan is both cheaper and faster")
    if first.ties:
        p = preferences()
        said.append(f"at the cost of #1 within {p.equal:.0%}: {', '.join(map(str, first.ties))}")
    said += [ONE_TOKEN] if any(p.tpot_s is None for p in plans) else []
    said += [*_unpriced(report), *_refusals(report.refused)]
    return [*said, *notes((p.rank, p.note) for p in plans)]


def _without_price(report: PlanReport) -> list[PlanRecord]:
    """Plans of which no price is known, where it is of others."""
    return [p for p in report.plans if p.price is None] if _priced(report) else []


def _unpriced(report: PlanReport) -> list[str]:
    """Plans that are not compared with the others, because no price is known."""
    without = _without_price(report)
    if not without:
        return []
    named = ", ".join(f"{p.machines} ({p.spread})" for p in without[:NAMED])
    more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
    said = [f"not compared, no price known: {named}{more} (give one: --price-of {without[0].chip}=USD)"]
    sold = [api for api in report.apis if api.chip in {p.chip for p in without}]
    return said + [f"{api.chip}, not for rent: {sells(api)}{dated(api.date, api.age_days)}" for api in sold]


def first_plan(report: PlanReport, plans: Sequence[PlanRecord]) -> list[str]:
    """The published results nearest to the first plans, and of the first one machines, tails, day and bottleneck."""
    first = report.plans[0]
    near = _published(plans[:NAMED])
    said = [f"{', '.join(ranks)}: closest published result: {text}" for text, ranks in near.items()]
    return [
        *said,
        *_hosts(first),
        *_tails(first),
        *_spare(first),
        *peak_words(report.plans),
        *scaling_words(report.plans),
        *_day(first),
        f"why #1: {_why(first)}",
    ]


def _hosts(p: PlanRecord) -> list[str]:
    """What the first plan asks of the network between its hosts."""
    if p.hosts <= 1:
        return []
    if p.replica_hosts == 1:
        return [
            f"hosts of #1: {p.hosts}; each replica stays inside one, so the network between them sees requests only"
        ]
    speed = "" if p.network_bytes_per_s is None else f" at {format_number(p.network_bytes_per_s * 8e-9)} Gb/s a chip"
    return [
        f"hosts of #1: {p.hosts}; each replica spans {p.replica_hosts}, with the network between them calculated{speed}"
    ]


def cheaper(report: PlanReport) -> list[str]:
    """What would make the first plan cheaper, a line for each, and what an API asks for the same tokens."""
    first, said = report.plans[0], []
    for lever in report.levers:
        cost = "" if lever.price is None else f", ${figures.mid(lever.price)}/h"
        if first.job is not None and first.job.usd is not None:
            cost = f", ${format_number(first.job.usd.mid * (1.0 - lever.saves))} for the job"
        plan = f"{lever.chips}x {first.chip} ({lever.spread}){cost}"
        each = _each(report)
        said.append(f"{lever.saves:.0%} cheaper{each} with {lever.options} ({lever.words}): {plan}")
    return [*said, *_apis(report)]


def _apis(report: PlanReport) -> Iterator[str]:
    """What an API asks for the same tokens."""
    first = report.plans[0]
    for api in report.apis[:1]:
        rate = "" if api.usd_per_h is None else f", ${format_number(api.usd_per_h)}/h at this load"
        above = None if first.job or not report.kept else api.break_even_per_s
        less = "" if above is None else f"; #1 costs less above {format_number(above)} requests/s"
        if report.workload.tokens is not None:
            requests = report.workload.tokens / report.workload.output_tokens
            rate = f", ${format_number(requests * api.usd_per_request)} for the job"
        elif above is None and first.price is not None and report.kept:
            less = "; #1 costs more at every rate that it serves"
        yield f"as an API: {sells(api)}{rate}{dated(api.date, api.age_days)}{less} (speed and terms not compared)"


SHARES = (
    Column("resource", "resource", lambda name: RESOURCE.get(name, name)),
    Column("share of time", "share_of_time", "{:.1%}".format, right=True),
    Column("10 % more of it gives", "tokens_per_s_gained_by_10_percent", "+{:.1%} tokens/s".format, right=True),
)  # fmt: skip


def breakdown_view(plan: PlanRecord) -> tuple[Table, ...]:
    """What the plan does, where the time of a token and the memory of a device go."""
    rows = [
        {"resource": name, "share_of_time": share, "tokens_per_s_gained_by_10_percent": gain(share)}
        for name, share in plan.shares.items()
    ]
    head = (f"where the time of an output token goes on {plan.machines} ({plan.layout.label})", "")
    times = Table.of(rows, SHARES, head, _money(plan))
    parts = (parts_view(plan.parts),) if plan.parts else ()
    return (_figures_view(plan), times, *parts, memory_view(plan.memory, plan.layout.label, plan.runtime))


def _money(p: PlanRecord) -> tuple[str, ...]:
    if p.price is None or p.usd_per_million_in is None:
        return (f"price of {p.chip}: not known here",)
    out = "-" if p.usd_per_million_out is None else figures.number(p.usd_per_million_out)
    stale = f", none from the last {preferences().stale_days:.0f} days" if p.price.stale else ""
    price = f"${_price(p.price)}/h ({p.price.basis}{_picked(p)}{stale})"
    return (f"{price}; $/M tokens: {figures.number(p.usd_per_million_in)} in, {out} out",)


def _picked(p: PlanRecord) -> str:
    """The offer that was picked, in words."""
    if p.price is None or not p.price.provider:
        return ""
    said = (p.price.provider, p.price.instance, p.price.region, p.price.date or "undated")
    whole = f", {p.price.billed} chips billed" if p.price.billed > p.chips else ""
    return f"; picked: {' '.join(filter(None, said))}{whole}"


def span(oldest: str, newest: str) -> str:
    """`2026-06 to 2026-11`, or the one date."""
    return newest if oldest == newest else f"{oldest} to {newest}"


FIGURES = (
    Column("figure", "label"),
    Column("mean", "shown", right=True),
    Column("80 % interval", "interval"),
    *(Column(q, f"shown_{q}", right=True, spare=1) for q in QUANTILES),
    Column("basis", "basis"),
    Column("means", "means", prose=True),
)
"""Columns of every figure of one plan; its rows write each number in its own unit."""

DEFINED = (
    ("ttft_s", "TTFT", "arrival to first token: queue, own prompt, host, stream"),
    ("tpot_s", "TPOT", "per token after the first, pauses for other requests' prompts included"),
    ("decode_s", "TPOT without prompts", "one pass of decoding alone"),
    ("tokens_per_s_per_user", "tokens/s per user", "1 / TPOT"),
    ("tokens_per_s_per_chip", "tokens/s per chip", "output tokens"),
    ("tokens_per_s", "tokens/s, all chips", "output tokens"),
    ("usd_per_million_in", "$/M tokens in", "share of the cost spent on prefill"),
    ("usd_per_million_out", "$/M tokens out", "share of the cost spent on decoding"),
    ("energy.joules_per_token", "J per token", "chips alone, per output token"),
    ("energy.joules_per_token_wall", "J per token, wall", "with hosts, fans and power supplies, without cooling"),
    ("energy.chip_w", "W per chip", "on average"),
    ("energy.wall_w", "W at the wall", "whole machines, without cooling"),
)
"""Figures of a plan: field, name, meaning."""


def _figures_view(p: PlanRecord) -> Table:
    """Times with their quantiles, throughput, cost and energy."""
    load = f"prefill takes {p.prompt_share:.0%} of the time" if p.prompt_share else "decoding only"
    load = f"{amount(p.requests_per_s, 'request')}/s; {load}"
    if p.largest_requests_per_s > p.requests_per_s * 1.001:
        most = format_number(p.largest_requests_per_s) if p.capacity is None else figures.number(p.capacity)
        load += f"; at most {most} requests/s{'' if p.chance is None else ' within the targets'}"
    foot = [load]
    if any(t.tpot_s is None or t.ttft_s is None for t in p.tails.values()):
        foot.append("percentiles left out: outside the range of the formula, use chipwise simulate")
    if p.nearest is not None:
        n = p.nearest
        foot.append(f"closest published result: {n.label}, {n.tokens_per_s:,.0f} tokens/s: {n.verdict}")
        if n.weight:
            foot.append(f"adjusted for it ({n.weight:.0%} of its error): {n.anchored_tokens_per_s:,.0f} tokens/s")
    title = f"{p.machines}  {p.layout.label}  {p.precision}  {p.runtime}  {count_words(p.concurrency)} in flight"
    rows = [row for field, *words in DEFINED if (row := _figure(p, field, *words))]
    values = [{k: v for k, v in r.items() if k in ("figure", "mid", "low", "high", "basis", *QUANTILES)} for r in rows]
    return Table.of(rows, FIGURES, (title, ""), foot, values=values)


def _figure(p: PlanRecord, field: str, label: str, means: str) -> dict[str, object]:
    """A figure with its quantiles, as numbers and as text; empty where the plan has none."""
    value, field = Column("", field).value(p), field.rpartition(".")[2]
    if value is None or (field == "decode_s" and p.tpot_s is None):
        return {}
    write = format_seconds if field.endswith("_s") and "per" not in field else format_number
    row: dict[str, object] = {"figure": field, "label": label, "means": means}
    row |= {f"shown_{q}": "" for q in QUANTILES}
    if not isinstance(value, Figure):
        return row | {"mid": value, "shown": write(value), "interval": "", "basis": ""}
    tails = {q: getattr(t, field, None) for q, t in p.tails.items() if q in QUANTILES}
    if field in ("ttft_s", "tpot_s"):
        row |= {f"shown_{q}": DASH if (t := tails.get(q)) is None else format_seconds(t) for q in QUANTILES}
    ends = f"{write(value.low)} - {write(value.high)}"
    row |= {"mid": value.mid, "low": value.low, "high": value.high, "basis": value.basis, **tails}
    asked = field in ("tokens_per_s", "tokens_per_s_per_chip") and value.low == value.high
    return row | {"shown": write(value.mid), **({"interval": "as asked", "basis": ""} if asked else {"interval": ends})}


def _published(plans: Sequence[PlanRecord]) -> dict[str, list[str]]:
    """The nearest results of the first plans, by what they are good for."""
    found: dict[str, list[str]] = {}
    for p in plans:
        if p.nearest is not None:
            moved = p.nearest.anchored_tokens_per_s / p.tokens_per_s.mid - 1.0
            by = f"; adjusted for it: {moved:+.0%} tokens/s" if p.nearest.weight else ""
            found.setdefault(f"{p.nearest.label}: {p.nearest.verdict}{by}", []).append(f"#{p.rank}")
    return found


def _tails(p: PlanRecord) -> list[str]:
    """Quantiles of the first plan, as far as a formula holds."""
    said = []
    for name, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s")):
        found = {q: getattr(p.tails[q], key) for q in ("p95", "p99") if q in p.tails}
        known = [f"{q} {format_seconds(t)}" for q, t in found.items() if t is not None]
        if found and not (key == "tpot_s" and p.tpot_s is None):
            said.append(
                f"{name} {', '.join(known) if known else 'outside the range of the formula (chipwise simulate)'}"
            )
    return [f"latency percentiles of #{p.rank}: {'; '.join(said)}"] if said else []


def _spare(p: PlanRecord) -> list[str]:
    u = p.up
    if u is None:
        return []
    said = f"enough replicas for the load are up {u.share:.2%} of the time, {u.without:.2%} without spare ones"
    return [
        f"spare of #{p.rank}: {said} (a chip fails every {u.chip_mtbf_h:,.0f} h and its host is back after "
        f"{u.repair_h:g} h, as in {u.fleet})"
    ]


def _day(p: PlanRecord) -> list[str]:
    if p.day is None:
        return []
    return [day_words(p.rank, p.day, paid=p.price is not None, follows=p.scaling is None)]


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
        f"10 % more {RESOURCE.get(name, name)}: +{gain(share):.1%} tokens/s"
        for name, share in list(p.shares.items())[:2]
    ]
    what = f"{p.bound}{FEEDING}" if p.bound == "on-chip" else p.bound
    return f"{p.shares[p.bound]:.0%} of the time is {what}; {', '.join(gains)}"


def _asked(report: PlanReport) -> tuple[str, ...]:
    w = report.workload
    lengths = f"{w.prompt_tokens:,.10g} tokens in, {w.output_tokens:,.10g} out"
    load = f"{amount(w.rate_per_s, 'request')}/s" if w.rate_per_s else "replicas at full load"
    if report.considered <= 1 and not w.rate_per_s:
        load = f"{amount(report.plans[0].concurrency, 'request')} in flight in a replica"
    of = "" if w.percentile is None else f"p{w.percentile * 100:g} "
    ttft = f"{of}TTFT {format_seconds(w.ttft_s)}" if w.ttft_s else "no TTFT limit"
    tpot = f"{of}TPOT {format_seconds(w.tpot_s)}" if w.tpot_s else "no TPOT limit"
    asked = [f"{w.task}: {lengths}"]
    if w.task == "serve":
        asked += [load, ttft, tpot]
    if w.e2e_s:
        asked.append(f"{of}answer within {format_seconds(w.e2e_s)}")
    if w.tokens:
        asked.append(f"a job of {format_count(w.tokens)} output tokens")
    if w.deadline_s:
        asked.append(f"done in {duration_words(w.deadline_s)}")
    if w.max_usd:
        asked.append(f"for at most ${format_number(w.max_usd)} even where it takes as long as the interval says")
    return tuple(asked)


def _ranked(report: PlanReport) -> str:
    """The order of the plans in words (`assemble.rank_plans`)."""
    w, p = report.workload, preferences()
    if w.task == "local":
        by = "by the time of a whole answer (TTFT and all its tokens), shortest first"
        return f"{by}; of those within {p.equal:.0%} of each other the cheapest"
    sized = w.task == "serve" and w.rate_per_s is not None
    priced = any(plan.price for plan in report.plans)
    by = "$/h" if sized else "$ per output token, prompts included"
    if not priced:
        by = "chips for the load"
    what = "the targets" if w.task == "serve" else "the deadline" if w.deadline_s else ""
    kept = f"plans that meet {what} with {w.confidence:.0%} probability, then " if what else ""
    unpriced = (
        "" if report.owned else "; chips without a price are listed separately" if priced else "; no price is known"
    )
    best = f"the cheapest ({by})" if sized or priced else "most requests per second"
    return (
        f"{kept}{best}; within {p.equal:.0%} of it the strongest evidence (measured, recent price), then the fewest "
        f"hosts and chips billed, then more replicas; each weakness that a plan avoids may cost {p.evidence:.0%} more; "
        f"no plan stands above one that is no dearer, no slower and no less likely{unpriced}"
    )


def _legend(plans: Sequence[PlanRecord]) -> str:
    stale = any(p.price and p.price.stale for p in plans)
    signs = {
        "chance: that the targets are met": any(p.chance is not None for p in plans),
        "2 x tp4: two replicas of four devices": any(p.replicas > 1 for p in plans),
    }
    return legend("; ".join(words for words, used in signs.items() if used), stale=stale)
