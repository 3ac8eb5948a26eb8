"""`plan --task train|finetune`: which chips, how many, arranged how, for a budget of tokens.

configuration -> graph -> mean layer -> jobs (chip, count) -> layouts -> step time and memory -> records
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chipwise.api.loaded import Loaded, find_chip, load
from chipwise.api.train_chips import precisions_of
from chipwise.api.train_counts import batch_for, counts_to_try, next_count
from chipwise.api.train_course import Wanted, running_of
from chipwise.api.train_infeasible import blocker, excess, left_out, missed, nearest, tally
from chipwise.api.train_input import (
    BEST,
    PRECISIONS,
    USUAL,
    Ask,
    Pins,
    adapters_of,
    asked,
    check_counts,
    check_layout,
    pins_of,
)
from chipwise.api.train_job import Site, TrainSoftware, network_of, site_of
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import recalled_words
from chipwise.catalog.override import told
from chipwise.catalog.price import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.catalog.trainer import LOSSES, get_trainer, load_trainers
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.evidence.training_tiers import Tier, tier_of
from chipwise.predict.training.dims import transformer
from chipwise.report.assemble import model_record, price_record
from chipwise.report.energy import Powered
from chipwise.report.records import RefusalRecord
from chipwise.report.train_assemble import Running, TrainCase, plan_record, ranked, scaling_records
from chipwise.report.training import (
    HALF,
    ScalingRecord,
    TakeoverRecord,
    TrainPlanRecord,
    TrainReport,
    takeover,
)
from chipwise.search.training import (
    Job,
    Point,
    Priced,
    TrainReason,
    best,
    point,
    scaling,
    search,
    simplest,
)

__all__ = ["PRECISIONS", "Training", "situate", "train_plan"]

SCALING = (64, 256, 1024, 4096, 16384)
HORIZON = {"train": 90.0, "finetune": 7.0}  # days that a run should take at most, where no deadline is given
REMEDIES = 4  # doublings or halvings that a refusal tries
STANDSTILL = 0.01  # of the time makes progress: below it a run is not planned


@dataclass(frozen=True)
class Training:
    """A training run as it is asked about.

    `chips`: those named, else `USUAL`; or `have`, how many of each there are: they cost nothing, and each kind is
    planned alone. `counts` of chips (default: powers of two from 8 to 1,024, of fine-tuning from 1 to 8, on to 32,768
    where a deadline asks for more or nothing fits; of chips that one has up to all). `tokens`: 1 T, of fine-tuning
    100 M. `seq`: 4,096, or what the model reads where that is less. `global_batch` in sequences, 0: 4 M tokens, of
    fine-tuning 0.25 M, moved to what odd counts of chips share.
    `method`: full, lora (low-rank adapters on frozen weights; default of `finetune`) or qlora (on weights of 4 bits).
    `layout` fixes degrees by name (tp, pp, vp, cp, ep, dp, micro_batch, zero, shard), and schedule, recompute, offload
    and sequence; degrees count devices as software sees them. `trainer`: the usual one of each chip, tuned; one that
    is named keeps what its configurations set, recomputation only where that fits. `memory`: what it keeps otherwise
    than its policies say; `adapters`: their rank, targets, dora. `known_to_run`: of a run that exists
    neither memory nor a tp beyond the fabric refuses a layout; the one that needs the least memory is taken
    where none is predicted to fit. `network_figures` what is known of the network (nic, domain, oversubscription,
    leaf). `wanted`: what fails, where checkpoints are kept, phases, evaluation. `precision` best: bf16 and, of
    the narrower types that a chip has, the fastest. `deadline_days`, `max_usd` and `max_usd_per_h` drop plans.
    `curves` adds weak and strong scaling; `own_chips` are
    in no catalogue.
    """

    model: str
    chips: Sequence[str] = ()
    counts: Sequence[int] = ()
    task: Literal["train", "finetune"] = "train"
    tokens: float | None = None
    seq: int | None = None
    global_batch: int = 0
    precision: str = "bf16"
    method: str | None = None
    deadline_days: float | None = None
    max_usd: float | None = None
    max_usd_per_h: float | None = None
    max_chips: int | None = None
    have: Mapping[str, int] | None = None
    layout: Mapping[str, int | str] = field(default_factory=dict)
    trainer: str | None = None
    memory: Mapping[str, str] = field(default_factory=dict)
    adapters: Mapping[str, str] = field(default_factory=dict)
    known_to_run: bool = False
    wanted: Wanted = field(default_factory=Wanted)
    network_figures: Mapping[str, str] = field(default_factory=dict)
    pricing: Pricing = field(default_factory=Pricing)
    curves: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)
    today: date | None = None
    parameters: Parameters | None = None
    own_chips: Mapping[str, Chip] = field(default_factory=dict)

    def ask(self, context: int) -> Ask:
        """What is trained, with the defaults that blanks take; `context` is what the model reads at most. Raises
        `UsageError`, `UnknownNameError`."""
        found = asked(
            self.tokens, self.seq, self.global_batch, self.precision, self.task, self.method, context
        )
        return replace(found, adapters=adapters_of(self.adapters))

    @property
    def software(self) -> TrainSoftware:
        """The trainer and what is known of the network. Raises `UsageError`, `UnknownNameError`."""
        trainer = None if self.trainer is None else get_trainer(self.trainer).id
        figures = network_of(self.network_figures)
        return TrainSoftware(trainer, figures, self.known_to_run, self.memory, pins_of(self.layout))


def train_plan(run: Training) -> TrainReport:
    """The best layout of every chip and count of a run, ranked by cost (turnaround where no price is known).

    Raises `UsageError` for input that makes no sense, `InfeasibleError` where no plan is left; where memory is why, it
    names changes with which the run fits.
    """
    return _planned(run, refusing=True)


def _planned(run: Training, *, refusing: bool) -> TrainReport:
    """The same; `refusing`: a refusal names what would make the run fit."""
    found = load(run.model)
    if found.graph.encoder:
        raise UsageError(f"{found.graph.model.name} has an encoder, whose training is not timed yet")
    context = found.graph.model.max_context
    ask = run.ask(context)
    pins = pins_of(run.layout)
    check_counts((*run.counts, *(run.have or {}).values()))
    numbers = run.parameters or shipped_parameters()
    network = transformer(found.graph)
    software = run.software
    have, chips = run.have, run.chips
    wanted = run.wanted.on(run.pricing.kind if not have else "own")
    wanted.check(ask)
    when, prices = run.today or day(), None if have else run.pricing
    plans: list[TrainPlanRecord] = []
    refused: list[RefusalRecord] = []
    rejected: Counter[str] = Counter()
    curve: list[ScalingRecord] = []
    takes_over: dict[str, TakeoverRecord] = {}
    considered = 0
    moved: dict[int, int] = {}
    notes = [*found.notes, *_beside(found, ask), *told(run.changes), *told(run.network_figures, "network")]
    if not (chips or have):
        notes.append(f"chips: only {', '.join(USUAL)} are tried; name others with --chips")
    attempts = list(_tried(run, ask))
    for chip, each in attempts:
        try:
            site = site_of(chip, network, each, numbers, software)
        except UsageError as error:
            refused.append(RefusalRecord(chip.id, "NO_COST_MODEL", str(error)))
            continue
        cannot = "" if software.known else site.trainer.refusal(site.pinned(pins))
        if cannot and (site.named or len(attempts) == 1):
            raise UsageError(cannot, "leave it out, or name another --trainer", field="layout")
        if cannot:
            refused.append(RefusalRecord(chip.id, "TRAINER", f"{site.trainer.name}: {cannot}"))
            continue
        usual, dtype, kept = site.job, site.precision, site.pinned(pins)
        # adapters under a trainer that is not taken for them were never measured
        strange = ask.method == "qlora" or ask.method not in site.trainer.methods
        tier = tier_of(numbers, site.labels, packed=strange)
        if dtype != each.precision:
            notes.append(f"{chip.id} has no {each.precision}: {dtype}, its losses scaled")
        without: dict[TrainReason, list[int]] = {}
        own = None
        if have is not None:
            own = next(n for name, n in have.items() if find_chip(name, None, run.own_chips).id == chip.id)
        tried = counts_to_try(run.counts, "finetune" if ask.adapter else ask.task, run.max_chips, own, pins)
        for count in tried:
            job, devices = (
                _batched(site, ask, count, kept, fixed=bool(run.global_batch)),
                count * site.devices,
            )
            check_layout(kept, job, devices)
            verdicts, at, job = _searched(site, job, devices, pins)
            considered += verdicts.total()
            rejected.update({r.name: n for r, n in verdicts.items() if r is not TrainReason.OK})
            made = None
            running = None if at is None else running_of(site, job, at, ask, wanted, count)
            if at is not None and running is not None:
                case = _case(site, job, at, running, tier)
                basis = prices.basis(chip.id, when) if prices else None
                domain = max(int(at.spread.tp) // site.devices, 1)
                price = price_record(basis, count + _idle(site, wanted), domain) if basis else None
                powered = Powered.of(chip, count, site.system, numbers)
                made = plan_record(case, count, price, powered)
            if made is not None and made.goodput >= STANDSTILL:
                plans.append(made)
            else:
                why = TrainReason.FAILURES if made is not None else blocker(verdicts)
                why = TrainReason.MEMORY if at is not None and running is None else why
                without.setdefault(why, []).append(count)
            if job.global_batch != ask.batch:
                moved[count] = job.global_batch
            if count == tried[-1] and not (run.counts or have or TrainReason.NO_NETWORK in without):
                days = [p.days.high for p in plans if p.chip == chip.id]
                more = next_count(count, days, run.deadline_days, run.max_chips)
                tried += [more] if more else []
        refused += left_out(chip, usual, without, ask.method)
        if run.curves:
            strong = scaling_records(usual, chip.id, "strong", _strong(usual, kept))
            takes_over[chip.id] = takeover(strong)
            weak = scaling(usual, SCALING, weak=True, pins=kept)
            curve += [*strong, *scaling_records(usual, chip.id, "weak", weak)]
    plans = _fastest(plans) if ask.precision == BEST else plans
    if ask.precision == BEST:
        notes.append("what narrow types cost in quality is not assessed")
    every = plans
    given = {"days": run.deadline_days, "usd": run.max_usd, "usd_per_h": run.max_usd_per_h}
    limits = {name: most for name, most in given.items() if most is not None}
    plans = [p for p in plans if excess(p, limits) <= 1.0]
    refused += missed(every, limits)
    if not plans:
        what, hint = f"{found.graph.model.name}: no plan", nearest(every, refused, ask.batch)
        if refusing and run.counts and [r.reason for r in refused] == [TrainReason.MEMORY.name]:
            hint += _remedies(run, ask, next(c for c, _ in attempts if c.id == refused[0].chip))
        raise InfeasibleError(what, hint)
    shown = {p.chips for p in plans}
    if not (run.deadline_days or have):
        notes.append(f"horizon {HORIZON[ask.task]:g} d: slower plans come after (--deadline sets it)")
    notes += recalled_words(p.chip for p in plans)
    others = [f"{n:,} sequences per step on {c:,} chips" for c, n in moved.items() if c in shown]
    return TrainReport(
        model=model_record(found.graph, found.config),
        task=ask.task,
        tokens=ask.tokens,
        plans=ranked(plans, None if run.deadline_days or have else HORIZON[ask.task], run.deadline_days),
        refused=tuple(refused),
        scaling=tuple(curve),
        takes_over=takes_over,
        considered=considered,
        rejected=dict(rejected),
        assumptions=_assumptions(ask, wanted, (*notes, *others)),
        limits=limits,
    )


def _remedies(run: Training, ask: Ask, chip: Chip) -> str:
    """The single changes with which a chip and count would hold a run, as options: fewer bits, another trainer, the
    longest sequence, the fewest chips; empty where none of those does."""
    lighter = {"full": "lora", "lora": "qlora"} if ask.task == "finetune" else {}
    frugal = sorted(
        (t for t in load_trainers().values() if t.on(chip) and ask.method in t.methods),
        key=lambda t: (LOSSES[t.memory.loss], not t.stashes),
    )
    ways: list[list[tuple[str, Training]]] = [
        [(f"--method {m}", replace(run, method=m)) for m in [lighter.get(ask.method)] if m],
        [(f"--trainer {t.id}", replace(run, trainer=t.id)) for t in frugal[:2] if not run.trainer],
        [(f"--seq {n}", replace(run, seq=n)) for n in (ask.seq >> i for i in range(1, REMEDIES)) if n >= 512],
        [
            (f"--global-batch {n}", replace(run, global_batch=n))  # a step of which is one micro-batch
            for n in (ask.batch >> i for i in range(1, REMEDIES + 1))
            if run.trainer and not get_trainer(run.trainer).accumulates and n >= max(run.counts)
        ],
        [
            (f"--counts {n}", replace(run, counts=(n,)))
            for n in (max(run.counts) << i for i in range(1, REMEDIES + 1))
            if n <= (run.max_chips or n)
        ],
    ]
    found = (next((words for words, other in tried if _holds(other)), "") for tried in ways if not run.have)
    named = [words for words in found if words]
    return f"; it fits with {', or '.join(named)}" if named else ""


def _holds(run: Training) -> bool:
    """Whether there is a plan."""
    try:
        return bool(_planned(run, refusing=False).plans)
    except ChipwiseError:
        return False


def situate(run: Training, numbers: Parameters) -> tuple[Site, Point]:
    """Of a question about one count of one chip: where it runs, and the layout that the answer takes. Raises the errors
    of `train_plan`."""
    found = load(run.model)
    ask = run.ask(found.graph.model.max_context)
    chip = find_chip(run.chips[0], run.changes, run.own_chips)
    site = site_of(chip, transformer(found.graph), ask, numbers, run.software)
    pins, count = pins_of(run.layout), run.counts[0]
    job = _batched(site, ask, count, site.pinned(pins), fixed=bool(run.global_batch))
    check_layout(pins, job, count * site.devices)
    verdicts, at, job = _searched(site, job, count * site.devices, pins)
    if at is None:
        raise InfeasibleError(f"{found.graph.model.name}: no plan", blocker(verdicts).value)
    return replace(site, job=job), at


def _batched(site: Site, ask: Ask, count: int, pins: Pins, *, fixed: bool) -> Job:
    """The job with the sequences of a step that so many chips share; `fixed`: those that were asked for."""
    if fixed:
        return site.job
    ways = site.job.software
    return replace(
        site.job,
        global_batch=batch_for(ask.batch, count * site.devices, pins, accumulates=ways.accumulates),
    )


def _searched(
    site: Site, job: Job, devices: int, pins: Pins
) -> tuple[Counter[TrainReason], Point | None, Job]:
    """How many layouts on so many devices got which verdict, the best of them, and the job that it is of; None: none is
    legal. Of layouts as fast within a few percent the simplest is taken. What the trainer's configurations recompute is
    kept where that fits, else chosen, as where it fits only with something in host memory and that is slower; and where
    nothing fits under a trainer that nobody named, its loss is taken in chunks."""
    usual, free = site.pinned(pins), site.pinned(pins, recompute=False)
    ways = [(job, usual)] + [(job, free)] * (usual != free)
    if not (site.named or job.known):
        chunked = min(float(job.recipe.loss), LOSSES["chunked"])
        ways.append((replace(job, recipe=replace(job.recipe, loss=chunked)), free))
    found: list[tuple[bool, float, Job, Priced, NDArray[np.intp]]] = []
    for each, kept in ways:
        priced = search(each, devices, kept)
        chosen = best(each, priced, len(priced))
        if len(chosen):
            first = int(chosen[0])
            fits = bool(priced.memory_bytes[first] <= each.aim_bytes)
            found.append((not fits, float(priced.seconds[first]), each, priced, chosen))
            away = priced.spread.stash + priced.spread.offload
            if fits and (kept == free or not np.asarray(away)[first]):
                break
    if not found:
        return tally(priced), None, each
    fitting = [f for f in found if not f[0]]
    over, _, each, priced, chosen = min(fitting, key=lambda f: f[1]) if fitting else found[-1]
    return tally(priced), point(each, priced, int(chosen[0]) if over else simplest(priced, chosen)), each


def _tried(run: Training, ask: Ask) -> Iterator[tuple[Chip, Ask]]:
    """The chips that a run is planned on, each with the precisions that are tried there."""
    for name in run.have or run.chips or USUAL:
        chip = find_chip(name, run.changes, run.own_chips)
        narrow = precisions_of(chip) if ask.precision == BEST else (ask.precision,)
        for precision in narrow[:1] if ask.method == "qlora" else narrow:
            yield chip, replace(ask, precision=precision)


def _fastest(plans: Sequence[TrainPlanRecord]) -> list[TrainPlanRecord]:
    """Of every chip and count the plan in 16 bit, and the fastest in a narrower type where that is faster."""
    found: list[TrainPlanRecord] = []
    for p in plans:
        same = [q for q in plans if (q.chip, q.chips) == (p.chip, p.chips)]
        wide = next((q for q in same if q.precision in ("bf16", "fp16")), None)
        first = min(same, key=lambda q: q.days.mid)
        found += [p] if p is wide or p is first else []
    return found


def _idle(site: Site, wanted: Wanted) -> int:
    """Chips of the hosts that stand by."""
    return wanted.failures.spares * (site.system.chips_per_host if site.system else 1)


def _case(site: Site, job: Job, at: Point, running: Running, tier: Tier) -> TrainCase:
    """The best layout of a job, with all that its record says."""
    t = site.trainer
    return TrainCase(
        job, at, site.chip, site.system, t.id, site.precision, running, tier, site.devices, t.counts
    )


def _strong(job: Job, pins: Pins) -> list[Point]:
    """Strong scaling; where something else than work takes over between two counts, the one in between too."""
    found = scaling(job, SCALING, pins=pins)
    after = next((p.devices for p in found if p.overhead_share > HALF), 0)
    if after > SCALING[0]:
        found += scaling(job, (after // 2,), pins=pins)
    return sorted(found, key=lambda p: p.devices)


def _beside(found: Loaded, ask: Ask) -> Iterator[str]:
    """Where the run differs from what the model is published for."""
    model = found.graph.model
    if model.max_context and ask.seq > model.max_context:
        yield f"seq {ask.seq:,} is more than the {model.max_context:,} tokens that {model.name} can read"
    stored = model_record(found.graph, found.config).precision
    if not ask.adapter and ask.precision != BEST and stored not in (ask.precision, "bf16", "fp16"):
        yield f"trained in {ask.precision}, though published in {stored}: --precision sets it"


def _assumptions(ask: Ask, wanted: Wanted, notes: Sequence[str]) -> tuple[str, ...]:
    a = ask.adapters
    rank = f"rank {a.rank}, {a.targets}{', DoRA' if a.dora else ''}"
    what = {
        "full": "all weights trained, kept as the trainer does (--memory)",
        "lora": f"low-rank adapters ({rank}) on frozen weights",
        "qlora": f"low-rank adapters ({rank}) on frozen weights of 4 bits (nf4), unpacked for every pass; tables in "
        "16 bit",
    }[ask.method]
    flops, frozen = (4, " (frozen weights need no gradient)") if ask.adapter else (6, "")
    return (
        *notes,
        f"{ask.seq:,} tokens per sequence, {ask.batch:,} sequences per step",
        what,
        *wanted.told(),
        "tensor-parallel collectives overlapped as the software does, data loading hidden",
        f"MFU: {flops} FLOPs per active parameter and token{frozen}, all pairs of attention, over the dense "
        f"peak of {'the type' if ask.precision == BEST else ask.precision}",
    )
