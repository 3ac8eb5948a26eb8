"""Plans for training: what is said of each, how it scales, and the lines that say how to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from chipwise.catalog.preferences import preferences
from chipwise.catalog.trainer import get_trainer
from chipwise.predict.training.objective import NEXT
from chipwise.report.plan import CHIP, RANK, Plan, Ranking, chance_percent, front_words
from chipwise.report.records import SCHEMA_VERSION, Figure, ModelRecord, PriceRecord, RefusalRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_count, format_number, format_seconds
from chipwise.values import dataclass

MANY = 8  # stages listed one by one
REFUSED = 8  # chips without a plan that are named
SHOWN = 12
OF_EACH = 2  # plans of each chip, where there are several
DAY_S = 86400.0
HALF = 0.5  # of a step
OVERHEADS = ("host", "fabric", "network", "bubble", "optimiser", "stragglers")  # all but compute and memory
ABOVE = 1.005  # efficiency that is printed as more than 100 %
# What a layout does for want of memory, by its word in the label.
SPARED = {"recompute": "recompute", "optimiser in host": "keep the optimiser in host memory", "fsdp": "shard weights"}
SHARDING = ("none", "zero-1", "zero-2", "fsdp")  # by stage of ZeRO


@dataclass(frozen=True, slots=True)
class TrainLayoutRecord:
    """How the work is spread. `sharding`: none, zero-1 or fsdp, with the ranks that it cuts over. `schedule` of the
    pipeline (empty: one stage); `context`: ring or all-gather (empty: cp 1); `offload`: the share of the optimiser
    that is kept in host memory, `stash` that of what layers save for their backward pass."""

    tp: int
    pp: int
    vp: int
    cp: int
    ep: int
    dp: int
    micro_batch: int
    micro_batches: int
    sharding: str
    shard_ranks: int
    recompute: str
    label: str
    schedule: str = ""
    context: str = ""
    offload: float = 0.0
    stash: float = 0.0


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """A part of a run: its tokens, sequences of a step (a ramp: those that it begins with), its layout, tokens per
    second while it runs, and days with what failures and evaluation take."""

    name: str
    tokens: float
    seq: int
    global_batch: int
    label: str
    tokens_per_s: float
    days: float


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run besides its steps. A checkpoint: its bytes, seconds until it is written, for which the run stops
    (`block_s`); `restart_s` after a failure, `start_s` once; `stops` to be expected; `steady`: the share of the time in
    which the spare hosts replace all that are being repaired, `spares_advised` those with which progress costs
    least. `progress_low` and `progress_high` are the ends of 80 % of its goodput, by the chance of failures.
    `evaluation`: time for it over that of steps. `data_bytes_per_s` that are read; `storage_bytes` of all checkpoints
    that are kept."""

    checkpoint_bytes: float
    save_s: float
    block_s: float
    restart_s: float
    start_s: float
    stops: float
    steady: float
    spares: int
    spares_advised: int
    evaluation: float
    data_bytes_per_s: float
    storage_bytes: float
    storage_usd: float
    progress_low: float
    progress_high: float
    phases: tuple[PhaseRecord, ...]


@dataclass(frozen=True, slots=True)
class TrainPlanRecord(Plan):
    """A plan and what it is predicted to do.

    `stack` is the trainer, which `runtime` says too; `replicas` are those of the model. `mfu` counts 6 FLOPs per
    active parameter and token (adapters: 4) and all pairs of the attention core, over the dense peak of the type that
    each runs in; `hfu` counts what runs, recomputation included; `tflops_per_chip` counts as the trainer does that
    logs it. `verdict`: fits, tight, or over where the memory of a run that is known to fit is predicted too large.
    `chance`: that it is done by the deadline, None without one. `instead_of`: the usual trainer of the chip, where the
    plan takes another; `policy`: how memory is kept otherwise than the trainer does (`--memory`), because that takes
    `own_policy_s` for a step, with something in host memory, or, None, does not fit; `hosts` that hold its chips;
    `measured`: several runs of its trainer on such chips were.
    `goodput` is the share of the time that makes progress under failures; `days` and the cost include it. `shares` are
    parts of the step by cause; of communication that nothing hides, `network` is what shrinks with the bandwidth of
    scale-out links, `fabric` the rest. `memory` are bytes by use of the fullest pipeline stage, `stages` those of
    each, first to last; `host_bytes` is the host memory that a device needs for what is offloaded. `ties` are the
    first plans of other chips that cost as much (`preferences().equal`), or take as long where no price is known.
    `energy_kwh` is what the chips draw over all `days`, `energy` their power. `run` is what there is besides steps.
    """

    system: str
    layout: TrainLayoutRecord
    stack: str
    global_batch: int
    seq: int
    step_s: Figure
    tokens_per_s: Figure
    tokens_per_day: float
    mfu: float
    hfu: float
    tflops_per_chip: float
    goodput: float
    checkpoint_s: float
    days: Figure
    usd: Figure | None
    energy_kwh: float | None
    memory: dict[str, float]
    memory_bytes: float
    memory_range: Figure
    memory_chance: float
    capacity_bytes: float
    verdict: str
    why: tuple[str, ...]
    on_front: bool = False
    stages: tuple[dict[str, float], ...] = ()
    host_bytes: float = 0.0
    run: RunRecord | None = None
    instead_of: str = ""
    policy: str = ""
    own_policy_s: float | None = None
    measured: bool = False


@dataclass(frozen=True, slots=True)
class ScalingRecord:
    """One point of a scaling curve: the best layout of a count of chips. `shares` are parts of the step by cause."""

    chip: str
    kind: str
    chips: int
    label: str
    step_s: float
    tokens_per_s: float
    efficiency: float
    shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class TakeoverRecord:
    """The first count of strong scaling where compute and memory take less than half of a step (0: none that was
    tried), what takes most of the rest, and the shares of all of it: host, fabric, network, bubble, optimiser,
    stragglers."""

    chips: int
    cause: str
    shares: dict[str, float]


@dataclass(frozen=True, slots=True, repr=False)
class TrainReport(Ranking[TrainPlanRecord]):
    """The answer to `plan --task train` and `finetune`. `takes_over` names, per chip, where strong
    scaling ends. `limits` are those of the question (days, usd, usd_per_h), which middle values keep; `kept`: whether
    the first plan keeps the deadline with the probability `confidence`; `owned`: chips are those that the user has.
    `cheapest` is the cheapest plan of those that could come first, where it is another, and `saves` the share of the
    cost of the first that it saves. `objective`: what is learned, of `predict.training.objective.OBJECTIVES`."""

    model: ModelRecord
    task: str
    tokens: float
    plans: tuple[TrainPlanRecord, ...]
    refused: tuple[RefusalRecord, ...]
    scaling: tuple[ScalingRecord, ...]
    takes_over: dict[str, TakeoverRecord]
    considered: int
    rejected: dict[str, int]
    assumptions: tuple[str, ...]
    limits: dict[str, float] = field(default_factory=dict)
    confidence: float = 0.0
    kept: bool = True
    owned: bool = False
    cheapest: TrainPlanRecord | None = None
    saves: float = 0.0
    objective: str = NEXT
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The ranked plans, one layout in full where it is alone, how it scales. `command` shows the first alone."""
        several = len(self.plans) > 1
        first = train_view(self, command if several else "", everything=everything)
        alone = () if several or not self.plans else layout_views(self.plans[0])
        return (first, *alone, *((scaling_view(self),) if self.scaling else ()))

    def verdict(self) -> tuple[str, ...]:
        """What to take, how long it runs and what it costs, how sure that is."""
        return _verdict(self)

    @property
    def sure(self) -> float:
        """The probability with which plans were to keep the deadline."""
        return self.confidence


def overhead(parts: Mapping[str, float]) -> float:
    """The share of a step that is neither compute nor memory."""
    return sum(parts[name] for name in OVERHEADS)


def takeover(strong: Sequence[ScalingRecord]) -> TakeoverRecord:
    """Where compute and memory take less than half of a step, in strong scaling; what takes most of the rest."""
    for s in sorted(strong, key=lambda s: s.chips):
        if overhead(s.shares) > HALF:
            parts = {name: s.shares[name] for name in OVERHEADS}
            return TakeoverRecord(s.chips, max(parts, key=lambda name: parts[name]), parts)
    return TakeoverRecord(0, "", {})


def taking(cause: str) -> str:
    """A cause with its verb: `compute takes`, `stragglers take`."""
    return f"{cause} {'take' if cause == 'stragglers' else 'takes'}"


def _range(f: Figure) -> str:
    size, unit = _unit_of(f.mid)
    low, mid, high = (format_number(v / size) for v in (f.low, f.mid, f.high))
    return f"{mid} {unit} [{low}-{high}]"


def _dollars(f: Figure) -> str:
    """`1.08 M [640 k-3.2 M]`."""
    return f"{format_count(f.mid)} [{format_count(f.low, 2)}-{format_count(f.high, 2)}]"


def _memory_of(p: TrainPlanRecord) -> str:
    text = f"{format_bytes(p.memory_bytes)} of {format_bytes(p.capacity_bytes)}"
    return text + (f", {p.verdict}" if p.verdict != "fits" else "")


def _named(p: TrainPlanRecord) -> str:
    return f"{p.machines} {p.stack}" if p.instead_of else p.machines


TRAINING = (
    RANK,
    Column("plan", _named),
    CHIP,
    Column("", "chips", short="chips", scale=0),
    Column("", "system", short="system"),
    Column("trainer", "stack", spare=3, short="trainer"),
    Column("layout", "layout.label", prose=True, short="layout"),
    Column("precision", "precision", spare=8, short="precision"),
    Column("step", "step_s.mid", format_seconds, right=True, spare=2),
    Column("", "step_s", short="step_s"),
    Column("tokens/s", "tokens_per_s.mid", format_count, right=True, spare=7),
    Column("", "tokens_per_s", short="tokens_per_s"),
    Column("MFU", "mfu", "{:.0%}".format, right=True, spare=9, short="mfu"),
    Column("", "goodput", short="goodput"),
    Column("time", "days", _range, right=True, short="days"),
    Column("", "chance", short="chance"),
    Column("$", "usd", _dollars, right=True, short="usd"),
    Column("memory", _memory_of, right=True, spare=6),
    Column("", "bound", short="bottleneck"),
    Column("bottleneck", "bottleneck", spare=5),
    Column("", "shares", short="shares_of_time"),
    Column("", "verdict", short="memory"),
    Column("", "why", short="why"),
    Column("", "step_s.basis", short="basis"),
    Column("basis", "days.basis", spare=4),
    Column("", "on_front", short="on_front"),
    Column("", "ties", short="ties"),
)
"""What is said of a plan for training."""


def _verdict(report: TrainReport) -> tuple[str, ...]:
    if not report.plans:
        return ("No plan.",)
    p = report.plans[0]
    cost = "on chips that you have" if report.owned else "no price is known"
    cost = cost if p.usd is None else f"about ${format_count(p.usd.mid)}"
    took = f"{duration(p.days.mid)} [{duration(p.days.low)} to {duration(p.days.high)}]"
    instead = f" instead of {p.instead_of}" if p.instead_of else ""
    does, what = "Train on", f"{p.machines} with {p.stack}{instead} ({p.layout.label}, {p.precision})"
    most = report.limits.get("days")
    if most is not None and not report.kept:
        asked = f"the deadline of {duration(most)} with {report.confidence:.0%} probability"
        does = f"No plan meets {asked}; nearest:"
    said = (f"{does} {what}: {took}, {cost}, MFU {p.mfu:.0%}.", *_risk(report, p))
    if report.cheapest is None or report.saves < preferences().told:
        return said
    return (*said, _dearer(report.cheapest, p, report.saves))


def over(p: TrainPlanRecord) -> bool:
    """Whether the development of a plan's trainer has ended."""
    return get_trainer(p.stack).ended is not None


def _dearer(least: TrainPlanRecord, first: TrainPlanRecord, saves: float) -> str:
    """What it costs that the first plan is not the cheapest, and why it is first."""
    price, own = least.price, first.price
    pairs = (
        (not least.measured and first.measured, f"{least.stack} was never measured there"),
        (over(least) and not over(first), f"development of {least.stack} has ended"),
        (bool(price and price.stale) and not (own and own.stale), "its price is old"),
        (least.days.mid > first.days.mid, f"it takes {duration(least.days.mid)}"),
        (least.hosts > first.hosts, f"it takes {least.hosts} hosts, not {first.hosts}"),
        (bool(least.instead_of) and not first.instead_of, f"{first.stack} is the usual trainer"),
    )
    why = next((words for holds, words in pairs if holds), "its machines come from a marketplace")
    cost = "" if least.usd is None else f", about ${format_count(least.usd.mid)}"
    return f"Cheapest: {least.machines} with {least.stack}{cost}, {saves:.0%} less, but {why}."


def _risk(report: TrainReport, p: TrainPlanRecord) -> Iterator[str]:
    """How likely the deadline holds, what host memory it needs, on what evidence, and how old the price is."""
    most = report.limits.get("days")
    if most is not None and p.chance is not None:
        yield f"It is done within {duration(most)} with {chance_percent(p.chance)}% probability."
    if p.host_bytes:
        yield f"It needs {format_bytes(p.host_bytes)} of host memory for each device."
    if p.policy:
        yield f"It keeps {p.policy} (--memory sets it){_otherwise(p)}."
    sure = "a trainer and chip that were measured" if p.measured else "nobody measured this trainer on this chip"
    price = "" if p.price is None else _offer(p.price)
    tested = "; no measurement tests the interval, which is provisional" if p.days.provisional else ""
    yield f"Evidence: {p.days.basis} ({sure}{tested}){price}."


def _otherwise(p: TrainPlanRecord) -> str:
    """What the defaults of the trainer would cost."""
    own = p.own_policy_s
    if own is None:
        return f": with the defaults of {p.stack} it does not fit"
    slower = own / p.step_s.mid
    far = f": with the defaults of {p.stack}, partly in host memory, a step takes {slower:.2g}x as long"
    return far if slower > 1.0 else ""


def _offer(price: PriceRecord) -> str:
    """Who asks the price, and since when."""
    seller = f" at {price.provider}" if price.provider and not price.use else ""
    if price.stale:
        return f"; no price from the last {preferences().stale_days:.0f} days{seller}"
    return f"; price of {price.date}{seller}" if price.date else ""


def _learned(report: TrainReport) -> str:
    return report.task if report.objective == NEXT else f"{report.task} ({report.objective})"


def train_view(report: TrainReport, command: str = "", *, everything: bool = False) -> Table:
    """The ranked plans, turnaround with cost. `command` shows the first alone, for the last line."""
    plans = _shown(report, everything)
    asked = (report.model.line, f"{_learned(report)}: {format_count(report.tokens)} tokens", "")
    head = (*asked, " ".join(report.verdict()), "") if plans else asked
    foot = _footnotes(report, plans, command, everything=everything) if plans else []
    why = _places(report)
    columns = [*TRAINING[:-4], Column("why here", lambda p: why.get(p.rank), spare=1), *TRAINING[-4:]]
    if report.owned:  # nothing is paid for them
        columns = [c for c in columns if c.head not in ("$", "why here")]
    return Table.of(plans, columns, head, foot, values=report.plans)


def _places(report: TrainReport) -> dict[int, str]:
    """Why each plan stands where it does, by rank: what it costs more than the cheapest of those that are left, and
    what it is chosen for among those that count as the same."""
    noise = preferences().equal if report.limits else preferences().sooner
    found = {}
    for at, plan in enumerate(report.plans):
        left = [(p.usd.mid, p.days.mid) for p in report.plans[at:] if p.usd is not None]
        if plan.usd is None or not left:
            continue
        least = min(usd for usd, _ in left)
        soonest = min(days for usd, days in left if usd <= least * (1.0 + noise))
        over = plan.usd.mid / least - 1.0
        what = "soonest left" if plan.days.mid <= soonest else "surer"
        found[plan.rank] = "cheapest left" if over < CHEAPEST else f"{what}, {over:+.0%} $"
    return found


CHEAPEST = 0.005
"""share of the cost: below it a plan is called the cheapest. Exact: whole percent, as they are printed."""


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


SHARES = (
    Column("resource", "resource"),
    Column("share of a step", "share", "{:.1%}".format, right=True),
    Column("time", "seconds", format_seconds, right=True),
)


def layout_views(p: TrainPlanRecord) -> tuple[Table, Table]:
    """One layout in full: where the time of a step and the memory of every pipeline stage go."""
    label = f"{p.machines} ({p.layout.label}, {p.layout.micro_batches:,} micro-batches)"
    parts = [{"resource": n, "share": s, "seconds": s * p.step_s.mid} for n, s in p.shares.items()]
    times = Table.of(parts, SHARES, (f"where a step of {label} goes", ""))
    stages = p.stages or (p.memory,)
    columns = (
        Column("stage", "stage", right=True),
        *(Column(name, name, format_bytes, right=True) for name in p.memory if _large(stages, name)),
        Column("total", lambda row: _total(row), format_bytes, right=True),
        Column("of memory", lambda row: _total(row) / p.capacity_bytes, "{:.0%}".format, right=True),
    )
    rows = [{"stage": i + 1, **stage} for i, stage in enumerate(stages)]
    head = f"memory of a device by pipeline stage: {_room()}"
    return times, Table.of(rows, columns, (head, ""))


def _room() -> str:
    """What a layout may use of a memory."""
    p = preferences()
    return f"{p.training_aim:.0%} is the aim, {p.training_limit:.0%} is the limit"


def _large(stages: Sequence[Mapping[str, float]], name: str) -> bool:
    """Whether any stage uses at least half a megabyte for it."""
    return any(stage[name] >= 0.5e6 for stage in stages)


def _total(row: Mapping[str, float]) -> float:
    return sum(size for name, size in row.items() if name != "stage")


SCALING = (
    Column("chip", "chip"),
    Column("scaling", "kind"),
    Column("chips", "chips", "{:,}".format, right=True),
    Column("layout", "label", prose=True, spare=1),
    Column("step", "step_s", format_seconds, right=True),
    Column("tokens/s", "tokens_per_s", format_count, right=True),
    Column("efficiency", "efficiency", "{:.0%}".format, right=True),
    Column("compute+memory", lambda s: 1.0 - overhead(s.shares), "{:.0%}".format, right=True),
    *(Column(name, f"shares.{name}", "{:.0%}".format, right=True, spare=2) for name in OVERHEADS),
)
"""What is said of a point of a scaling curve."""


def scaling_view(report: TrainReport) -> Table:
    """Scaling curves: the best layout of each count; parts of a step add up to it."""
    chips = dict.fromkeys(s.chip for s in report.scaling)
    foot = [line for chip in chips for line in _bases(report, chip)]
    return Table.of(report.scaling, SCALING, ("scaling at the best layout of each count", ""), foot)


def _bases(report: TrainReport, chip: str) -> list[str]:
    """What efficiency is relative to, and why it exceeds that."""
    lines = []
    for kind in dict.fromkeys(s.kind for s in report.scaling if s.chip == chip):
        first, *rest = [s for s in report.scaling if (s.chip, s.kind) == (chip, kind)]
        above = [s for s in rest if s.efficiency >= ABOVE]
        text = f"{chip}, {kind}: efficiency against {first.chips:,} chips"
        if above:
            spared = [name for sign, name in SPARED.items() if sign in first.label and sign not in above[0].label]
            needs = f"{first.chips:,} {' and '.join(spared)}, more need not"
            text += f"; above 100%: {needs if spared else 'more have room for a faster layout'}"
        lines.append(text)
    return lines


def _ranking(report: TrainReport, shown: Sequence[TrainPlanRecord]) -> list[str]:
    """How the plans were ranked, and which are on the front or tie."""
    ties = report.plans[0].ties
    said = [f"ranked: {_ranked(report)}; why here: against the cheapest of the rows from there on"]
    said += front_words(report.plans, "cost against time", {p.rank for p in shown})
    if ties:
        said.append(f"the same cost as #1, within {preferences().equal:.0%}: {', '.join(map(str, ties))}")
    return said


def _footnotes(report: TrainReport, shown: Sequence[TrainPlanRecord], command: str, *, everything: bool) -> list[str]:
    """The lines, top to bottom: what the first plan does and what it rests on; on request how plans were ranked, its
    memory, its checkpoints, and where scaling ends. `command` shows the first plan alone."""
    first = report.plans[0]
    everything = everything or len(report.plans) == 1
    last = [f"next: {command}"] if command else []
    few = report.refused if everything else report.refused[:REFUSED]
    refused = [f"{refusal.chip}: {refusal.detail}" for refusal in few]
    if everything:
        why = [f"why #1: {line}" for line in first.why]
        over = [_takeover(report, chip, over) for chip, over in report.takes_over.items()]
        rest = [_outcome(first), *_run(first), _memory(first), *why, *over, *refused]
        assumed = f"assumed: {'; '.join(report.assumptions)}"
        return [_legend(shown), *_ranking(report, shown), *rest, assumed, *last]
    left, out = len(report.plans) - len(shown), len(report.refused) - len(few)
    more = {
        f"{left} more plan{'s' * (left > 1)}": left,
        f"{out} more chip{'s' * (out > 1)} without a plan": out > 0,
        "how plans were ranked": True,
        "memory and checkpoints of #1": True,
        f"{len(report.assumptions) - ASSUMED} more assumptions": len(report.assumptions) > ASSUMED,
    }
    return [
        _legend(shown),
        _outcome(first),
        f"why #1: {'; '.join(first.why[:WHY])}",
        *refused,
        f"assumed: {'; '.join(report.assumptions[:ASSUMED])}",
        f"more with --all: {', '.join(words for words, there in more.items() if there)}",
        *last,
    ]


WHY, ASSUMED = 2, 4
"""unit: reasons, assumptions. Chosen: a foot of about eight lines; moves what only `--all` shows."""


def _legend(plans: Sequence[TrainPlanRecord]) -> str:
    """The signs of the table in words."""
    layouts = [p.layout for p in plans]
    names = {"tp": "tensor", "pp": "pipeline", "vp": "virtual stages", "cp": "context", "ep": "experts", "dp": "data"}
    used = [f"{k} {what}" for k, what in names.items() if any(getattr(at, k) > 1 for at in layouts)]
    signs = [f"parallelism: {', '.join(used)}"] if used else []
    signs += ["b: sequences per micro-batch", "mid [low-high] is an 80 % interval, of $ at the price that is named"]
    if any(p.verdict == "tight" for p in plans):
        signs.append(f"tight: more memory than is aimed at: {_room()}")
    return f"how to read: {'; '.join(signs)}"


def _ranked(report: TrainReport) -> str:
    """The order in words, and what was asked for."""
    p, limited = preferences(), bool(report.limits)
    noise = p.equal if limited else p.sooner
    what = "$" if any(plan.usd for plan in report.plans) else "time"
    then = "hosts" if "days" in report.limits else "the sooner"
    by = f"least {what} (within {noise:.0%}: evidence, then {then})"
    by += ", plans without a price last" if what == "$" else ""
    if "days" in report.limits:
        by = f"what is done in time with {report.confidence:.0%} probability, then {by}"
    names = {"days": "time", "usd": "$", "usd_per_h": "$/h"}
    said = {k: duration(v) if k == "days" else format_count(v) for k, v in report.limits.items()}
    limits = [f"median {names[k]} at most {text}" for k, text in said.items()]
    return f"{by}; {', '.join(limits)}" if limits else by


def _outcome(p: TrainPlanRecord) -> str:
    """Tokens a day, utilisation, goodput and energy of a plan."""
    saved = (
        f"with a checkpoint every {duration(p.checkpoint_s / DAY_S)}"
        if p.checkpoint_s < p.days.mid * DAY_S
        else "without a checkpoint before its end"
    )
    ends = f" [{p.run.progress_low:.1%}-{p.run.progress_high:.1%}]" if p.run else ""
    ends = "" if len({f"{x:.1%}" for x in (p.run.progress_low, p.run.progress_high)} if p.run else ()) == 1 else ends
    parts = [
        f"{format_count(p.tokens_per_day)} tokens a day",
        f"HFU {p.hfu:.0%}",
        f"goodput {p.goodput:.1%}{ends} {saved}",
    ]
    if p.energy_kwh is not None:
        parts.append(f"about {format_count(p.energy_kwh)} kWh drawn by the chips")
    if p.energy is not None:
        parts.append(f"{format_count(p.energy.wall_w.mid / 1e3)} kW at the wall")
    return f"#1: {', '.join(parts)}"


def _run(p: TrainPlanRecord) -> Iterator[str]:
    """What a run is besides its steps."""
    r = p.run
    if r is None:
        return
    parts = [
        f"a checkpoint of {format_bytes(r.checkpoint_bytes)} is written in {format_seconds(r.save_s)}, for "
        f"{format_seconds(r.block_s)} of which the run stops",
        f"{format_number(r.stops)} stops are expected, {format_seconds(r.restart_s)} to go on after each",
        f"{format_seconds(r.start_s)} to start",
        f"data read at {format_bytes(r.data_bytes_per_s)}/s",
        f"checkpoints kept: {format_bytes(r.storage_bytes)}, ${format_count(r.storage_usd)}",
    ]
    if r.evaluation:
        parts.append(f"evaluation takes {r.evaluation:.1%} more")
    yield f"#1 run: {', '.join(parts)}"
    if r.steady < 1.0 or r.spares:
        by = f"{r.spares} stand by, so that the run goes on {r.steady:.1%} of the time"
        yield f"#1 hosts: {by}; with {r.spares_advised} progress costs least"
    if len(r.phases) > 1:
        for each in r.phases:
            batch = f"{each.global_batch:,} x {each.seq:,} tokens per step"
            what = f"{each.name}: {format_count(each.tokens)} tokens, {batch}, {each.label}"
            yield f"#1 {what}, {format_count(each.tokens_per_s)} tokens/s, {duration(each.days)}"


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
        said = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.005)
        takes = "take" if over.cause == "stragglers" else "takes"
        return f"{chip}: the {over.cause} {takes} over at {over.chips:,} chips, strong scaling: {said} of a step"
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
        + ([f"stash={at.stash:.0f}"] if at.stash else [])
    )


def duration(days: float) -> str:
    """Days in the unit that people would use: `14.5 min`, `3.2 h`, `640 d`."""
    size, unit = _unit_of(days)
    return f"{format_number(days / size)} {unit}"


def _unit_of(days: float) -> tuple[float, str]:
    """(days of the unit, its name)."""
    units = ((2.0, 1.0, "d"), (1.0 / 24.0, 1.0 / 24.0, "h"), (60.0 / DAY_S, 60.0 / DAY_S, "min"))
    return next(((size, name) for start, size, name in units if days >= start), (1.0 / DAY_S, "s"))
