"""`plan --task train|finetune`: which chips, how many, arranged how, for a budget of tokens.

configuration -> graph -> mean layer -> jobs (chip, count) -> layouts -> step time and memory -> records
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chipwise.api.answering import Preferred
from chipwise.api.loaded import Loaded, find_chip, load
from chipwise.api.remedies import working, works
from chipwise.api.train_counts import LARGE, batch_for, counts_to_try, grown_batch, next_count, with_filled
from chipwise.api.train_course import Wanted, running_of
from chipwise.api.train_infeasible import (
    LIMITS,
    blocker,
    excess,
    left_out,
    missed,
    nearest,
    needs,
    relaxed,
    tally,
    verdict_words,
)
from chipwise.api.train_input import (
    BEST,
    UNITS,
    USUAL,
    Ask,
    Pins,
    adapters_of,
    asked,
    check_counts,
    check_layout,
    check_pairs,
    documents_of,
    objective_of,
    pins_of,
    precisions_of,
)
from chipwise.api.train_job import Site, TrainSoftware, network_of, site_of
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import recalled_words
from chipwise.catalog.override import told
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Pricing, Rent
from chipwise.catalog.snapshot import today as day
from chipwise.catalog.trainer import KERNELS, LOSSES, Trainer, able_trainers, get_trainer, usual_trainer
from chipwise.errors import InfeasibleError, UsageError
from chipwise.evidence.tiers import Tier, trained_tier
from chipwise.parallel.layout import Reason
from chipwise.predict.training.dims import transformer
from chipwise.predict.training.objective import NEXT, OBJECTIVES
from chipwise.predict.training.values import Transformer
from chipwise.report.assemble import model_record, price_record
from chipwise.report.energy import Powered
from chipwise.report.records import PriceRecord, RefusalRecord
from chipwise.report.train_assemble import (
    ENDED,
    Aim,
    Running,
    TrainCase,
    cheapest_run,
    plan_record,
    rank_runs,
    scaling_records,
)
from chipwise.report.training import (
    HALF,
    ScalingRecord,
    TakeoverRecord,
    TrainPlanRecord,
    TrainReport,
    duration,
    takeover,
)
from chipwise.search.prefer import kept
from chipwise.search.training import (
    Point,
    PricedLayouts,
    Searching,
    TrainJob,
    best,
    least_seconds,
    point,
    scaling,
    search,
    side_by_side,
    simplest,
)
from chipwise.units import format_bytes, format_count, format_seconds
from chipwise.values import dataclass

SCALING = (64, 256, 1024, 4096, 16384)
USUAL_TRAINER = "usual"
CACHED = "contrastive-cached"  # whose loss takes a step in parts
REMEDIES = 4  # doublings or halvings that a refusal tries


@dataclass(frozen=True)
class Training:
    """A training run as it is asked about.

    `chips`: those named, else `USUAL`; or `have`, how many of each there are: they cost nothing, and each kind is
    planned alone. `counts` of chips (default: powers of two up to 1,024, of fine-tuning up to 8, on to 32,768 where a
    deadline asks for more or nothing fits; up to `max_chips`, or to all that one has). `tokens`: 1 T, of fine-tuning
    100 M, of pairs 170 G. `seq`: 4,096, or what the model reads where that is less. `global_batch` in sequences, 0: 4 M
    tokens, of fine-tuning 0.25 M, moved to what odd counts of chips share.
    `method`: full, lora (low-rank adapters on frozen weights; default of `finetune`) or qlora (on weights of 4 bits).
    `layout` fixes degrees by name (tp, pp, vp, cp, ep, dp, micro_batch, zero, shard), and schedule, recompute, offload
    and sequence; degrees count devices as software sees them. `trainer`: usual (the chip's usual one, tuned), best (of
    all that can, the one preferred), or the name of one, which keeps what its configurations set, recomputation only
    where that fits; None: usual where the question is of `one_run`, else best. `memory`: what it keeps otherwise than
    its policies say; `adapters`: their rank, targets, dora; `objective`: what is learned, of `OBJECTIVES` (None: what
    such a network is usually trained for); `documents`: mean and cv of the lengths of documents that are packed into a
    sequence. `known_to_run`: of a run that exists neither memory nor a tp beyond the fabric refuses a layout; the one
    that needs the least memory is taken where none is predicted to fit. `network_figures` what is known of the network
    (nic, domain, oversubscription, leaf). `wanted`: what fails, where checkpoints are kept, phases, evaluation.
    `precision` best: bf16 and, of the narrower types that a chip has, the fastest. `deadline_days`, `max_usd` and
    `max_usd_per_h` drop plans, and those that keep the deadline with the probability `confidence` (None: that of
    `preferences`) come first.
    `curves` adds weak and strong scaling; `own_chips` are in no catalogue.
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
    confidence: float | None = None
    max_usd: float | None = None
    max_usd_per_h: float | None = None
    max_chips: int | None = None
    have: Mapping[str, int] | None = None
    layout: Mapping[str, int | str] = field(default_factory=dict)
    trainer: str | None = None
    memory: Mapping[str, str] = field(default_factory=dict)
    adapters: Mapping[str, str] = field(default_factory=dict)
    objective: str | None = None
    documents: Mapping[str, str] = field(default_factory=dict)
    known_to_run: bool = False
    wanted: Wanted = field(default_factory=Wanted)
    network_figures: Mapping[str, str] = field(default_factory=dict)
    pricing: Pricing = field(default_factory=Pricing)
    curves: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)
    today: date | None = None
    parameters: Parameters | None = None
    own_chips: Mapping[str, Chip] = field(default_factory=dict)

    def ask(self, found: Loaded) -> Ask:
        """What is trained of a model, with the defaults that blanks take. Raises `UsageError`, `UnknownNameError`."""
        context = found.graph.model.max_context
        causal = bool(transformer(found.graph).causal)
        method = self.method or (None if causal else "full")
        made = asked(self.tokens, self.seq, self.global_batch, self.precision, self.task, method, context)
        objective = objective_of(self.objective, self.task, causal=causal)
        check_pairs(made.batch, pins_of(self.layout), OBJECTIVES[objective])
        usual = OBJECTIVES[objective].tokens if self.tokens is None and self.task == "train" else 0.0
        return replace(
            made,
            tokens=usual or made.tokens,
            adapters=adapters_of(self.adapters),
            document=documents_of(self.documents),
            objective=objective,
        )

    @property
    def software(self) -> TrainSoftware:
        """The trainer and what is known of the network. Raises `UsageError`, `UnknownNameError`."""
        named = self.trainer not in (None, BEST, USUAL_TRAINER)
        trainer = get_trainer(str(self.trainer)).id if named else None
        figures = network_of(self.network_figures)
        return TrainSoftware(trainer, figures, self.known_to_run, self.memory, pins_of(self.layout))

    @property
    def one_run(self) -> bool:
        """Whether the question is how a run goes, not what to choose: the run exists, or its chip, its count, and its
        layout or batch are all said."""
        one = len(self.have or self.chips) == 1 and len(self.counts) == 1
        return self.known_to_run or (one and bool(self.layout or self.global_batch))

    @property
    def compares(self) -> bool:
        """Whether other trainers than the usual one of a chip are tried wherever they may be better."""
        return self.trainer == BEST or (self.trainer is None and not self.one_run)

    @property
    def spares(self) -> bool:
        """Whether others are tried where the usual one cannot keep all on the chips."""
        return self.compares or (self.trainer is None and not self.known_to_run)

    @property
    def likely(self) -> float:
        """The probability with which a deadline is to hold."""
        return preferences().confidence if self.confidence is None else self.confidence

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are asked for, by name."""
        given = {name: getattr(self, limit.field) for name, limit in LIMITS.items()}
        return {name: most for name, most in given.items() if most is not None}

    def aim(self) -> Aim:
        """What its plans are ranked by. Raises `UsageError`, `UnknownNameError`."""
        bound = self.deadline_days is not None
        horizon = getattr(preferences(), f"horizon_{self.task}")
        return Aim(
            horizon_days=None if bound or self.have else horizon,
            deadline_days=self.deadline_days,
            confidence=self.likely,
            sooner=not self.limits,
            owned=bool(self.have),
        )


@dataclass(frozen=True)
class TrainingAsked:
    """A question about a training run, read (`answering.Choosing`): the run and what all its chips have in common."""

    run: Training
    found: Loaded
    ask: Ask
    pins: Pins
    numbers: Parameters
    network: Transformer
    software: TrainSoftware
    wanted: Wanted

    @classmethod
    def of(cls, run: Training) -> TrainingAsked:
        """Raises `UsageError`, `UnknownNameError`."""
        found = load(run.model)
        if found.graph.encoder:
            raise UsageError(f"{found.graph.model.name} has an encoder, whose training is not timed yet")
        ask = run.ask(found)
        check_counts((*run.counts, *(run.have or {}).values()))
        wanted = run.wanted.on(run.pricing.kind if not run.have else "own")
        wanted.check(ask)
        numbers = run.parameters or shipped_parameters()
        return cls(run, found, ask, pins_of(run.layout), numbers, _trained(found, ask), run.software, wanted)

    def tried(self, chip: Chip, ask: Ask) -> list[_Tried]:
        """The chip with each trainer that is tried there, the usual one first. Raises `UsageError`,
        `UnknownNameError`."""
        software = self.software
        each = [software]
        if self.run.spares:
            name = self.found.graph.model.name
            others = able_trainers(chip, ask.method, self.pins, **self._of(ask), model=name)[1:]
            each += [replace(software, trainer=t.id, named=False) for t in others]
            keeping = [s for s in each if not self._lacks(chip, ask, s)]
            each = keeping or each
        if lacks := self._lacks(chip, ask, each[0]):
            raise UsageError(lacks, "leave it out, or name another --trainer", field="memory")
        sites = [site_of(chip, self.network, ask, self.numbers, given) for given in each]
        # adapters under a trainer that is not taken for them, and other objectives, were never measured
        odd = ask.method == "qlora" or ask.objective != NEXT
        strange = [odd or ask.method not in site.trainer.methods for site in sites]
        return [
            _Tried(
                site,
                trained_tier(self.numbers, site.labels, site.levels(ask.method), packed=odd),
                trained_tier(self.numbers, site.labels, site.levels(ask.method), "memory"),
            )
            for site, odd in zip(sites, strange, strict=True)
        ]

    def _of(self, ask: Ask) -> dict[str, Any]:
        """What of a run tells its usual trainer."""
        return {"anew": ask.task == "train", "experts": bool(self.network.moe_share), "objective": ask.objective}

    def _lacks(self, chip: Chip, ask: Ask, given: TrainSoftware) -> str:
        """What of the policy of memory that is asked for a trainer cannot keep."""
        usual = usual_trainer(chip, ask.method, self.pins, **self._of(ask))
        trainer = get_trainer(given.trainer) if given.trainer else usual
        return "" if given.known else trainer.keeps(given.memory)

    @property
    def waits(self) -> bool:
        """Whether something is asked to wait in host memory, or not to."""
        return not {"offload", "stash"}.isdisjoint(self.pins)

    def basis(self, chip: Chip) -> Rent | OwnCosts | None:
        """What a chip costs; None: not known, or it is one's own."""
        return None if self.run.have else self.run.pricing.basis(chip.id, self.run.today or day())

    def in_time(self, running: Running | None, tier: Tier) -> float:
        """The probability that a run keeps the deadline, 1 where there is none."""
        days, late = running.days if running else np.inf, self.run.deadline_days
        if late is None:
            return 1.0
        return tier.scaled(days).kept(late)

    def price(self, site: Site, count: int, tp: int) -> PriceRecord | None:
        """What so many chips cost, with those that stand by; None: not known, or they are one's own."""
        idle = self.wanted.failures.spares * (site.system.chips_per_host if site.system else 1)
        return price_record(self.basis(site.chip), count + idle, max(tp // site.devices, 1))

    @cached_property
    def attempts(self) -> tuple[tuple[Chip, Ask], ...]:
        """The chips that the run is planned on, each with the precisions that are tried there. Raises
        `UnknownNameError`."""
        return tuple(_tried(self.run, self.ask))

    def candidates(self) -> _Outcome:
        """The best layout and trainer of every chip and count; with `--precision best` those in 16 bit, and those in
        the fastest narrower type where that is faster. Raises `UsageError` for what is fixed and cannot be."""
        alone = len(self.attempts) == 1
        found = _Outcome.joined([_on_chip(self, chip, each, alone=alone) for chip, each in self.attempts])
        if self.ask.precision == BEST:
            found.plans = _fastest(found.plans)
        return found

    def choice(self, found: _Outcome) -> Preferred[TrainPlanRecord]:
        """The plans that keep the limits, in the order of `prefer`."""
        aim, plans = self.run.aim(), self._within(found)
        if not plans:
            return Preferred()
        order = rank_runs(plans, aim)
        return Preferred(order, tuple(_said(order, self.ask, aim, found.moved)))

    def refusal(self, found: _Outcome) -> InfeasibleError:
        """Why no plan is left, with changes that were tried and with which there is one."""
        refused = [*found.refused, *self._missed(found, ())]
        hint = nearest(found.plans, refused, self.ask.batch)
        return InfeasibleError(f"{self.found.graph.model.name}: no plan", hint + _remedies(self, found.plans, refused))

    def record(self, found: _Outcome, chosen: Preferred[TrainPlanRecord]) -> TrainReport:
        """The answer with the plans in order."""
        order, ask, aim = chosen.plans, self.ask, self.run.aim()
        least, saves = cheapest_run(order[0], self._within(found), aim)
        return TrainReport(
            model=model_record(self.found.graph, self.found.config),
            task=ask.task,
            tokens=ask.tokens,
            plans=order,
            refused=(*found.refused, *self._missed(found, order)),
            scaling=tuple(found.scaling),
            takes_over=found.takes_over,
            considered=found.rejected.total(),
            rejected={r.name: n for r, n in found.rejected.items() if r is not Reason.OK},
            assumptions=self._assumptions(found, chosen),
            limits=self.run.limits,
            confidence=aim.confidence,
            owned=aim.owned,
            kept=self.keeps(order),
            cheapest=least,
            saves=saves,
            objective=ask.objective,
        )

    def beside(self, found: _Outcome, chosen: Preferred[TrainPlanRecord], report: TrainReport) -> TrainReport:
        """The answer with what the first plan's chips do in fewer bits and with memory kept otherwise."""
        fewer = tuple(_narrower(self, chosen.plans[0]))
        if fewer:
            said = replace(chosen, said=(*chosen.said, *fewer))
            report = replace(report, assumptions=self._assumptions(found, said))
        first, *others = report.plans
        kept_ = replace(first, why=(*first.why, *_otherwise(self, first)))
        return replace(report, plans=(kept_, *others))

    def keeps(self, order: Sequence[TrainPlanRecord]) -> bool:
        """Whether there is a plan, and the first keeps its deadline as surely as asked."""
        if not order:
            return False
        return order[0].chance is None or bool(kept(np.array(order[0].chance), self.run.likely))

    def _within(self, found: _Outcome) -> list[TrainPlanRecord]:
        """The plans that keep the limits."""
        return [p for p in found.plans if _within(p, self.run.limits, self.run.likely)]

    def _missed(self, found: _Outcome, plans: Sequence[TrainPlanRecord]) -> list[RefusalRecord]:
        """The chips all of whose plans are beyond the limits."""
        within = self._within(found)
        return missed([p for p in found.plans if p not in within], {p.chip for p in plans}, self.run.limits)

    def _assumptions(self, found: _Outcome, chosen: Preferred[TrainPlanRecord]) -> tuple[str, ...]:
        """What was assumed of the run and its chips."""
        run, loaded = self.run, self.found
        notes = [*loaded.notes, *_beside(loaded, self.ask), *told(run.changes)]
        notes += told(run.network_figures, "network")
        if said := ", ".join(f"{name}={self.pins[name]}" for name in KERNELS if name in self.pins):
            notes.append(f"kernels as given: {said}; set them in the trainer, no launch file does")
        if not (run.chips or run.have):
            notes.append(f"chips: only {', '.join(USUAL)} are tried; name others with --chips")
        if float(transformer(loaded.graph).moe_share):
            notes += _fused(chosen.plans, run.own_chips)
        moved = {p.chips for p in chosen.plans} <= {*found.moved}  # every count has a batch of its own
        usual = OBJECTIVES[self.ask.objective].tokens
        if run.tokens is None and run.task == "train" and usual:
            notes.append(f"{format_count(usual)} tokens, as published runs on pairs of texts took (--tokens)")
        notes += [*found.notes, *chosen.said]
        return _assumptions(self.ask, self.wanted, notes, moved=moved)


@dataclass(frozen=True)
class _Tried:
    """A chip with a trainer that is tried there, and how far off its step times and its memory (`held`) may be."""

    site: Site
    tier: Tier
    held: Tier

    @cached_property
    def floor(self) -> float:
        """Device-seconds of a sequence that it does not go below."""
        return least_seconds(self.site.job)


@dataclass(frozen=True)
class _Placed:
    """A count of chips with a trainer: its best layout, and the run on it (None: a phase has no layout), which may be
    `due`."""

    site: Site
    tier: Tier
    held: Tier
    job: TrainJob
    at: Point
    own_s: float | None
    running: Running | None
    chance: float
    due: bool

    @property
    def goes(self) -> bool:
        """Whether it makes progress."""
        return self.running is not None and self.running.course.progress >= preferences().standstill

    @property
    def days(self) -> float:
        """How long it takes."""
        return self.running.days if self.running else np.inf

    @property
    def away(self) -> bool:
        """Whether something waits in host memory."""
        return float(self.at.spread.offload + self.at.spread.stash) > 0.0

    @property
    def seen(self) -> bool:
        """Whether runs of the trainer on such chips were measured, which kept all on the device."""
        return self.tier.seen and not self.away

    def guarded(self, tier: Tier) -> bool:
        """Whether another trainer has to be better beyond its own error: nobody measured it, and this one is the usual,
        which was measured or runs experts, and keeps all on the device. The least of a dozen such predictions is too
        low, and no dense run tells how software runs experts. Of a run that has a deadline the chance to keep it holds
        that error: a later one never takes a trainer away."""
        if self.due:
            return False
        known = self.tier.seen or float(self.job.network.moe_share) > 0.0
        return self.site.usual and known and not tier.seen and not self.away

    def before(self, other: _Placed) -> bool:
        """Whether it is no later, no less likely in time and no worse founded than another."""
        mine = self.days * (self.tier.high if other.guarded(self.tier) else 1.0)
        its = other.days * (other.tier.high if self.guarded(other.tier) else 1.0)
        mine *= _over(self.site.trainer, other.site.trainer)
        return mine <= its and self.chance >= other.chance and self.seen >= other.seen

    def beaten(self, others: Sequence[_Placed]) -> bool:
        """Whether one of several is before it and it not before that one; the usual trainer is left to be weighed."""
        return not self.site.usual and any(p.before(self) and not self.before(p) for p in others)


def _over(trainer: Trainer, other: Trainer) -> float:
    """By which factor a trainer has to be faster than another: where its development is over and the other's goes on,
    by as much as it gives way to that."""
    return ENDED if trainer.ended and not other.ended else 1.0


@dataclass
class _Outcome:
    """What came of a chip in one type: plans, refusals, layouts considered, batches that were moved, scaling."""

    plans: list[TrainPlanRecord] = field(default_factory=list)
    refused: list[RefusalRecord] = field(default_factory=list)
    rejected: Counter[Reason] = field(default_factory=Counter)
    moved: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    scaling: list[ScalingRecord] = field(default_factory=list)
    takes_over: dict[str, TakeoverRecord] = field(default_factory=dict)

    @classmethod
    def joined(cls, several: Sequence[_Outcome]) -> _Outcome:
        """All that came of several."""
        found = cls()
        for one in several:
            found.plans += one.plans
            found.refused += one.refused
            found.rejected += one.rejected
            found.moved |= one.moved
            found.notes += one.notes
            found.scaling += one.scaling
            found.takes_over |= one.takes_over
        return found


def _said(order: Sequence[TrainPlanRecord], ask: Ask, aim: Aim, moved: Mapping[int, int]) -> Iterator[str]:
    """What is to be known of plans in order; `moved`: sequences of a step by the count of chips that moved them."""
    if ask.precision == BEST:
        yield "what narrow types cost in quality is not assessed"
    if aim.horizon_days:
        yield f"horizon {aim.horizon_days:g} d: slower plans come after (--deadline sets it)"
    yield from recalled_words(p.chip for p in order)
    yield from _lean(order, ask)
    yield from _ended(order)
    shown = {p.chips for p in order}
    for chips, batch in moved.items():
        why = "all that one pass of every rank holds, and nothing follows it in a step"
        if batch > ask.batch or not _one_pass(order, ask, chips):
            why = "for their ranks to share and stages to hardly wait"
        if chips in shown:
            yield f"{batch:,} sequences per step on {chips:,} chips, not {ask.batch:,}, {why}"


def _one_pass(order: Sequence[TrainPlanRecord], ask: Ask, chips: int) -> bool:
    """Whether a step of so many chips is one pass, by the trainer or the objective."""
    stacks = [get_trainer(p.stack) for p in order if p.chips == chips]
    return OBJECTIVES[ask.objective].whole or any(not t.accumulates for t in stacks)


def _narrower(q: TrainingAsked, first: TrainPlanRecord) -> Iterator[str]:
    """What as many chips, of those tried, as the first plan of a pre-training run takes do in the widest type of fewer
    bits, with scales by block where they have them, where that takes less by more than a change is worth naming for."""
    chip, ask = next((c, a) for c, a in q.attempts if c.id == first.chip)
    if ask.task != "train" or q.ask.precision != "bf16" or ask.method != "full" or q.run.known_to_run:
        return
    have = {chip.id: first.chips} if q.run.have else None
    same = replace(q, run=replace(q.run, counts=(first.chips,), have=have, curves=False))
    narrow = precisions_of(chip)[1:]
    for precision in [p for p in narrow if UNITS[p] == UNITS[narrow[0]]][-1:]:
        plans = _on_chip(same, chip, replace(ask, precision=precision), alone=False).plans
        p = min(plans, key=lambda p: p.days.mid, default=None)
        if p is not None and p.days.mid <= first.days.mid * (1.0 - preferences().told):
            usd = f" and about ${format_count(p.usd.mid)}" if p.usd else ""
            asked = f"--precision {precision}; quality not assessed"
            yield f"in {precision} the first plan's chips take {duration(p.days.mid)}{usd} ({asked})"


def _otherwise(q: TrainingAsked, first: TrainPlanRecord) -> Iterator[str]:
    """What a step of a full fine-tune takes at best on the first plan's chips with memory kept in each other way that
    its trainer has, and with its optimiser in host memory."""
    chip, ask = next((c, a) for c, a in q.attempts if c.id == first.chip)
    if (ask.task, ask.method) != ("finetune", "full") or q.run.known_to_run or ask.precision == BEST:
        return
    site = next(each.site for each in q.tried(chip, ask) if each.site.trainer.id == first.stack)
    devices = first.chips * site.devices
    found = [
        f"{words}: {_costs(job, search(job, devices, fixed))}"
        for job, fixed, words in _other_ways(q, site, first, devices)
    ]
    if found:
        yield f"memory kept otherwise (--memory), a step takes at best with {'; '.join(found)}"


def _other_ways(
    q: TrainingAsked, site: Site, first: TrainPlanRecord, devices: int
) -> Iterator[tuple[TrainJob, Pins, str]]:
    """How else than in a plan its trainer may keep memory, with what that fixes of a layout, in words."""
    pins = site.pinned(q.pins, recompute=False)
    jobs = site.kept(replace(site.job, global_batch=first.global_batch), devices)
    for job in jobs:
        if job.policy != first.policy:
            yield job, pins, job.policy or f"the defaults of {first.stack}"
    if site.trainer.offloads and not q.waits:
        away = {**pins, "offload": 1, **({"zero": 3} if devices == 1 else {})}
        yield jobs[0], away, "the optimiser in host memory (--layout offload=1)"


def _costs(job: TrainJob, priced: PricedLayouts) -> str:
    """Seconds and bytes of the best of layouts."""
    for at in best(job, priced):
        took, needs = float(priced.seconds[at]), float(priced.memory_bytes[at])
        return f"{format_seconds(took)}, {format_bytes(needs)}"
    return "does not fit"


def _within(p: TrainPlanRecord, limits: Mapping[str, float], confidence: float) -> bool:
    """Whether a plan keeps the limits at its middle values, or the deadline as surely as asked."""
    sure = p.chance is not None and bool(kept(np.array(p.chance), confidence))
    return excess(p, {k: v for k, v in limits.items() if not (sure and k == "days")}) <= 1.0


def _on_chip(q: TrainingAsked, chip: Chip, ask: Ask, *, alone: bool) -> _Outcome:
    """Plans on every count of a chip, in one type; `alone`: what the trainer cannot is the user's error, not a
    refusal of this chip."""
    out = _Outcome()
    try:
        tried = q.tried(chip, ask)
    except UsageError as error:
        out.refused.append(RefusalRecord(chip.id, "NO_COST_MODEL", str(error)))
        return out
    first = tried[0].site
    cannot = "" if q.run.known_to_run else first.trainer.refusal(first.pinned(q.pins))
    if cannot and len(tried) > 1:
        tried, cannot = tried[1:], ""  # these can
    if cannot and (first.named or alone):
        raise UsageError(cannot, "leave it out, or name another --trainer", field="layout")
    if cannot:
        out.refused.append(RefusalRecord(chip.id, "TRAINER", f"{first.trainer.name}: {cannot}"))
        return out
    if first.precision != ask.precision:
        out.notes.append(f"{chip.id} has no {ask.precision}: {first.precision}, its losses scaled")
    without = _on_counts(q, chip, tried, ask, first.trainer, out)
    out.refused += left_out(chip, first.job, without, ask.method, first.pinned(q.pins))
    if q.run.curves:
        _curves(q, chip, first, out)
    return out


def _on_counts(
    q: TrainingAsked, chip: Chip, tried: Sequence[_Tried], ask: Ask, usual: Trainer, out: _Outcome
) -> dict[Reason, list[int]]:
    """Adds the plans on every count of a chip that is asked for, or worth trying, to what came of it; the counts
    without one, by reason."""
    run, without = q.run, dict[Reason, list[int]]()
    counts = _counts(q, chip, ask)
    while counts:
        each = side_by_side([_on_count(q, tried, ask, count) for count in counts])
        for count, (placed, verdicts, rejected, batch) in zip(counts, each, strict=True):
            out.rejected += rejected
            if batch != ask.batch:
                out.moved[count] = batch
            made = [_record(q, p, count, usual) for p in placed if p.goes]
            out.plans += made
            if not made:
                without.setdefault(_why_none(placed, verdicts), []).append(count)
        enough = any(p.chance is None or kept(np.array(p.chance), run.likely) for p in out.plans)
        last = run.counts or run.have or Reason.NO_NETWORK in without
        more = None if last else next_count(counts[-1], run.max_chips, enough=enough)
        counts = [more] if more else []
    return without


def _counts(q: TrainingAsked, chip: Chip, ask: Ask) -> list[int]:
    """The counts of a chip to begin with: where nobody said how many, also those of the machines that are billed."""
    run, own = q.run, None
    if run.have is not None:
        own = next(n for name, n in run.have.items() if find_chip(name, None, run.own_chips).id == chip.id)
    task = "finetune" if ask.adapter else ask.task
    counts = counts_to_try(run.counts, task, run.max_chips, own, q.pins)
    return counts if run.counts else with_filled(counts, q.basis(chip), run.max_chips, q.pins)


def _why_none(placed: Sequence[_Placed], verdicts: Counter[Reason]) -> Reason:
    """Why so many chips have no plan: failures stop it, a phase has no layout, or none of its layouts is legal."""
    if any(p.running for p in placed):
        return Reason.FAILURES
    return Reason.MEMORY if placed else blocker(verdicts)


def _curves(q: TrainingAsked, chip: Chip, first: Site, out: _Outcome) -> None:
    """Adds weak and strong scaling under the first trainer to what came of a chip."""
    pins = first.pinned(q.pins)
    strong = scaling_records(first.job, chip.id, "strong", _strong(first.job, pins))
    weak = scaling(first.job, SCALING, weak=True, pins=pins)
    out.takes_over[chip.id] = takeover(strong)
    out.scaling += [*strong, *scaling_records(first.job, chip.id, "weak", weak)]


def _on_count(
    q: TrainingAsked, tried: Sequence[_Tried], ask: Ask, count: int
) -> Searching[tuple[list[_Placed], Counter[Reason], Counter[Reason], int]]:
    """The trainers that no other beats on so many chips, with their best layouts; the verdicts of the first and of
    all; and the sequences of a step. What cannot be sooner than one that is as well founded is not searched. Raises
    `UsageError` where what is fixed of a layout is illegal under the first."""
    found: list[_Placed] = []
    verdicts, rejected, batch = Counter[Reason](), Counter[Reason](), 0
    for each in tried:
        searched = yield from _worth(q, each, replace(ask, batch=batch or ask.batch), count, found, first=not batch)
        if searched is None:
            continue
        rejected += searched.verdicts
        if not batch:
            verdicts, batch = searched.verdicts, searched.job.global_batch
        if searched.at is not None:
            found.append(_placed(q, each, searched, searched.at, ask, count))
    going = [p for p in found if p.goes]
    return [p for p in going if not p.beaten(going)] or found, verdicts, rejected, batch


def _worth(
    q: TrainingAsked, each: _Tried, ask: Ask, count: int, found: Sequence[_Placed], *, first: bool
) -> Searching[_Searched | None]:
    """What a trainer has on so many chips: of the first in any case, and with a batch that may grow; of others with
    that batch where they can, and where it is not settled by what was found."""
    site, pins = each.site, each.site.pinned(q.pins)
    job = _batched(site, ask, count, pins, fixed=bool(q.run.global_batch))
    try:
        check_layout(pins, job, count * site.devices)
    except UsageError:
        if first:
            raise
        return None
    if first:
        found_ = yield from _grown(q, site, job, count)
        alone = found_.at is None and not (q.run.global_batch or job.software.accumulates)
        return (yield from _shrunk(q, site, job, count)) if alone else found_
    settled = not q.run.compares and any(p.goes and (q.waits or not p.away) for p in found)
    if settled or job.global_batch != ask.batch or _beaten(q, each, found):
        return None
    return (yield from _searched(site, job, count, q.pins))


def _placed(q: TrainingAsked, each: _Tried, found: _Searched, at: Point, ask: Ask, count: int) -> _Placed:
    """The best layout with the run on it."""
    running = running_of(each.site, found.job, at, ask, q.wanted, count)
    tier = each.tier.above(at.least_s / at.seconds)
    sure, due = q.in_time(running, tier), q.run.deadline_days is not None
    return _Placed(each.site, tier, each.held, found.job, at, found.own_s, running, sure, due)


def _beaten(q: TrainingAsked, each: _Tried, found: Sequence[_Placed]) -> bool:
    """Whether a trainer cannot be sooner than one found that is as well founded, even if nothing but its products and
    element-wise work took time. Phases have layouts of their own."""
    own = each.tier
    rivals = [
        p.at.seconds
        * p.at.devices
        / p.job.global_batch
        / (own.high if p.guarded(own) else 1.0)
        * _over(p.site.trainer, each.site.trainer)
        for p in found
        if p.goes and p.seen >= own.seen and p.tier.high <= own.high
    ]
    return bool(rivals) and not q.wanted.phases and each.floor >= min(rivals)


def _record(q: TrainingAsked, p: _Placed, count: int, usual: Trainer) -> TrainPlanRecord:
    """The record of what was found on so many chips."""
    assert p.running is not None  # it goes
    site = p.site
    case = TrainCase(
        p.job, p.at, site.chip, site.system, site.trainer.id, site.precision, p.running, p.tier, p.held, site.devices,
        site.trainer.counts,
    )  # fmt: skip
    powered = Powered.of(site.chip, count, site.system, q.numbers)
    made = plan_record(case, count, q.price(site, count, int(p.at.spread.tp)), powered)
    instead = "" if site.named or site.trainer is usual else usual.id
    return replace(
        made,
        chance=None if q.run.deadline_days is None else p.chance,
        instead_of=instead,
        own_policy_s=p.own_s,
        measured=p.seen,
    )


def _remedies(q: TrainingAsked, every: Sequence[TrainPlanRecord], refused: Sequence[RefusalRecord]) -> str:
    """The single changes that were tried and give a plan, as options; empty where none of those does. Of limits that
    nothing keeps: each alone as it would have to be, or more chips. Of a chip and count that do not hold a run: a
    lighter method, a trainer that keeps less, the longest sequence, the fewest chips."""
    run = q.run
    if every:
        ways = [*_relaxed(run, every), _more_chips(run)]
    elif (run.counts or run.have) and [r.reason for r in refused] == [Reason.MEMORY.name]:
        chip = next(c for c, _ in q.attempts if c.id == refused[0].chip)
        ways = _lighter(q, chip)
    else:
        return ""
    named = working(_kept, *ways)
    return f"; {works(named)}" if named else ""


def _kept(run: Training) -> bool:
    """Whether a run has a plan that keeps what it asks."""
    asked = TrainingAsked.of(run)
    return asked.keeps(asked.choice(asked.candidates()).plans)


def _relaxed(run: Training, every: Sequence[TrainPlanRecord]) -> Iterator[list[tuple[str, Training]]]:
    """Each limit as the plan that keeps the others needs it."""
    for name, limit in run.limits.items():
        others = {k: v for k, v in run.limits.items() if k != name}
        needed = [needs(p, name, run.likely) for p in every if _within(p, others, run.likely)]
        least = min((n for n in needed if n is not None and n > limit), default=None)
        if least is not None:
            words, changed = relaxed(name, least)
            yield [(words, replace(run, **changed))]


def _more_chips(run: Training) -> list[tuple[str, Training]]:
    """Twice as many chips, and so on, where their number is fixed."""
    factors = [1 << i for i in range(1, REMEDIES + 1)]
    if run.have:
        grown = [{name: n * k for name, n in run.have.items()} for k in factors]
        said = [",".join(f"{n}x{name}" for name, n in have.items()) for have in grown]
        return [(f"--have {text}", replace(run, have=have)) for text, have in zip(said, grown, strict=True)]
    most = max(run.counts, default=0)
    return [
        (f"--counts {most * k}", replace(run, counts=(most * k,)))
        for k in factors
        if most and most * k <= (run.max_chips or most * k)
    ]


def _lighter(q: TrainingAsked, chip: Chip) -> list[list[tuple[str, Training]]]:
    """What needs less memory, each kind of change from the smallest on."""
    run, ask, name = q.run, q.ask, q.found.graph.model.name
    lighter = {"full": "lora", "lora": "qlora"}.get(ask.method) if ask.task == "finetune" else None
    frugal = sorted(
        able_trainers(chip, ask.method, q.pins, anew=ask.task == "train", objective=ask.objective, model=name),
        key=lambda t: (LOSSES[t.memory.loss], not t.stashes),
    )
    named = None if run.trainer is None else run.software.trainer
    whole = OBJECTIVES[ask.objective].whole
    alone = whole or (named is not None and not get_trainer(named).accumulates)
    others = [] if run.compares else [t.id for t in frugal if t.id != named]
    batches = _halved(ask.batch, REMEDIES, max(run.counts, default=0))
    return [
        [(f"--method {lighter}", replace(run, method=lighter))] if lighter else [],
        [(f"--trainer {name}", replace(run, trainer=name)) for name in others],
        [(f"--seq {n}", replace(run, seq=n)) for n in _halved(ask.seq, REMEDIES - 1, 512)],
        # a step of which is one micro-batch
        [(f"--global-batch {n}", replace(run, global_batch=n)) for n in (batches if alone else [])],
        [(f"--objective {CACHED}", replace(run, objective=CACHED))] if whole else [],
        _more_chips(run),
    ]


def _halved(value: int, times: int, least: int) -> list[int]:
    """A number halved so many times, as long as it is not below the least."""
    return [n for n in (value >> i for i in range(1, times + 1)) if n >= least]


def _trained(found: Loaded, ask: Ask) -> Transformer:
    """The network that is trained: without a head of its own where no logits are made."""
    network = transformer(found.graph)
    return network if OBJECTIVES[ask.objective].scored else replace(network, tied=1.0)


def situate(run: Training, numbers: Parameters) -> tuple[Site, Point]:
    """Of a question about one count of one chip: where it runs, and the layout that the answer takes. Raises the errors
    of `train_plan`."""
    found = load(run.model)
    ask = run.ask(found)
    chip = find_chip(run.chips[0], run.changes, run.own_chips)
    site = site_of(chip, _trained(found, ask), ask, numbers, run.software)
    pins, count = pins_of(run.layout), run.counts[0]
    job = _batched(site, ask, count, site.pinned(pins), fixed=bool(run.global_batch))
    check_layout(pins, job, count * site.devices)
    [searched] = side_by_side([_searched(site, job, count, pins)])
    if searched.at is None:
        raise InfeasibleError(f"{found.graph.model.name}: no plan", verdict_words(blocker(searched.verdicts)))
    return replace(site, job=searched.job), searched.at


def _grown(q: TrainingAsked, site: Site, job: TrainJob, count: int) -> Searching[_Searched]:
    """What is found with the sequences of a step of a large pre-training run with which its pipeline hardly waits, and
    gradients and the optimiser, once a step, take little; as asked where they are fixed. Other layouts suit a larger
    batch."""
    found = yield from _searched(site, job, count, q.pins)
    small = float(job.network.params) < LARGE or q.ask.task != "train"
    batch = job.global_batch
    while not (found.at is None or small or q.run.global_batch or float(found.at.spread.zero) >= 3.0):
        time = found.at.time
        once = float(time.bubble_s + time.dp_s + time.optimiser_s) / found.at.seconds
        grown = grown_batch(found.job.global_batch, found.job.seq, once, site.labels["moe"])
        if grown <= batch:
            break
        batch = grown
        found = yield from _searched(site, replace(site.job, global_batch=grown), count, q.pins)
    return found


def _shrunk(q: TrainingAsked, site: Site, job: TrainJob, count: int) -> Searching[_Searched]:
    """What is found with the most sequences that one pass of every rank holds, halved from the usual ones on: where
    micro-batches of a step do not follow each other they are the step."""
    least = count * site.devices * job.objective.together
    for batch in _halved(job.global_batch, job.global_batch.bit_length(), least):
        found = yield from _searched(site, replace(site.job, global_batch=batch), count, site.pinned(q.pins))
        if found.at is not None:
            return found
    return (yield from _searched(site, job, count, site.pinned(q.pins)))


def _batched(site: Site, ask: Ask, count: int, pins: Pins, *, fixed: bool) -> TrainJob:
    """The job with the sequences of a step that so many chips share; `fixed`: those that were asked for."""
    if fixed:
        return site.job
    ways = site.job.software
    return replace(site.job, global_batch=batch_for(ask.batch, count * site.devices, pins, single=ways.single))


@dataclass(frozen=True)
class _Searched:
    """How many layouts got which verdict, the best of them (None: none is legal), the job that it is of, and seconds of
    a step as the trainer keeps its memory unless told (None: that does not fit)."""

    verdicts: Counter[Reason]
    at: Point | None
    job: TrainJob
    own_s: float | None


@dataclass(frozen=True)
class _Policy:
    """The layouts of a job under one policy of memory, the fastest that fit first."""

    job: TrainJob
    priced: PricedLayouts
    order: NDArray[np.intp]

    @property
    def first(self) -> int:
        """The place of the fastest."""
        return int(self.order[0])

    @property
    def fits(self) -> bool:
        """Whether it fits."""
        return bool(self.priced.memory_bytes[self.first] <= self.job.aim_bytes)

    def settles(self, *, asked_home: bool) -> bool:
        """Whether no leaner policy is tried: it fits, and keeps nothing on the host that is not asked to lie there."""
        spread = self.priced.spread
        return self.fits and (asked_home or not np.asarray(spread.stash + spread.offload)[self.first])

    @property
    def seconds(self) -> float:
        """Of its step."""
        return float(self.priced.seconds[self.first])


def _searched(site: Site, job: TrainJob, count: int, pins: Pins) -> Searching[_Searched]:
    """The best layout on so many chips.

    Of layouts as fast within a few percent the simplest is taken. What the trainer's configurations recompute and keep
    is kept where that fits on the device; else recomputation is chosen, then a leaner policy; and of what fits only
    with something in host memory the fastest is taken, all of one device's weights last.
    """
    devices = count * site.devices
    ways = _policies(site, job, devices, pins)
    asked_home = any(int(pins.get(name, 0)) for name in ("stash", "offload"))
    found: list[_Policy] = []
    verdicts: Counter[Reason] = Counter()
    for each, fixed in ways:
        priced = yield each, devices, fixed
        verdicts = verdicts or tally(priced)
        order = best(each, priced, len(priced))
        if len(order):
            found.append(_Policy(each, priced, order))
            if found[-1].settles(asked_home=asked_home):
                break
    own = ways[0][0]
    if not found:
        return _Searched(verdicts, None, own, None)
    own_s = min((one.seconds for one in found if one.fits and one.job is own), default=None)
    taken = min((one for one in found if one.fits), key=lambda one: one.seconds, default=found[-1])
    at = simplest(taken.priced, taken.order) if taken.fits else taken.first
    return _Searched(tally(taken.priced), point(taken.job, taken.priced, at), taken.job, own_s)


def _policies(site: Site, job: TrainJob, devices: int, pins: Pins) -> list[tuple[TrainJob, Pins]]:
    """How a trainer may keep memory, with what that fixes of a layout, its own way first."""
    usual, free = site.pinned(pins), site.pinned(pins, recompute=False)
    kept = site.kept(job, devices)
    ways = [(each, fixed) for each in kept for fixed in (usual, free)[usual == free :]]
    said = job.known or job.adapter or not {"stash", "offload", "zero"}.isdisjoint(pins)
    if devices == 1 and site.trainer.offloads and not said:
        ways += [(each, {**free, "zero": 3, "offload": 1}) for each in kept]
    return ways


def _tried(run: Training, ask: Ask) -> Iterator[tuple[Chip, Ask]]:
    """The chips that a run is planned on, each with a precision that is tried there."""
    for name in run.have or run.chips or USUAL:
        chip = find_chip(name, run.changes, run.own_chips)
        narrow = precisions_of(chip) if ask.precision == BEST else (ask.precision,)
        for precision in narrow[:1] if ask.method == "qlora" else narrow:
            yield chip, replace(ask, precision=precision)


def _fastest(plans: Sequence[TrainPlanRecord]) -> list[TrainPlanRecord]:
    """Of every chip and count the plans in 16 bit, and those in the fastest narrower type where that is faster."""
    found: list[TrainPlanRecord] = []
    for p in plans:
        same = [q for q in plans if (q.chip, q.chips) == (p.chip, p.chips)]
        first = min(same, key=lambda q: q.days.mid)
        found += [p] if p.precision in ("bf16", "fp16", first.precision) else []
    return found


def _strong(job: TrainJob, pins: Pins) -> list[Point]:
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


def _lean(plans: Sequence[TrainPlanRecord], ask: Ask) -> Iterator[str]:
    """Which trainers of plans keep less than fp32 of all weights that they train."""
    for name in dict.fromkeys(p.stack for p in plans if not ask.adapter):
        held = get_trainer(name).memory
        if not held.master or held.optimizer != "adamw":
            copy = "" if held.master else ", no copy of the weights in fp32"
            yield f"{name} keeps {held.optimizer}{copy} (--memory)"


def _fused(plans: Sequence[TrainPlanRecord], own: Mapping[str, Chip] | None) -> list[str]:
    """Which trainers of plans have kernels for experts in a narrow type that they lack in 16 bit."""
    on = (p for p in plans if get_trainer(p.stack).fuses_on(find_chip(p.chip, None, own), p.precision))
    return [
        f"in {precision} {name} runs experts by kernels that 16 bit lacks, which activate and quantise inside "
        "products, a layer at one start: they gain more than the peaks of the types"
        for precision, name in dict.fromkeys((p.precision, p.stack) for p in on)
    ]


def _ended(plans: Sequence[TrainPlanRecord]) -> Iterator[str]:
    """Which trainers of plans are developed no longer."""
    for name in dict.fromkeys(p.stack for p in plans):
        if said := get_trainer(name).ended:
            yield f"development of {name} ended on {said.date} ({said.ref.split()[0]})"


def _assumptions(ask: Ask, wanted: Wanted, notes: Sequence[str], *, moved: bool) -> tuple[str, ...]:
    """What was assumed; `moved`: every count has a batch of its own, which is said."""
    a = ask.adapters
    rank = f"rank {a.rank}, {a.targets}{', DoRA' if a.dora else ''}"
    what = {
        "full": "all weights trained, kept as the trainer does (--memory)",
        "lora": f"low-rank adapters ({rank}) on frozen weights",
        "qlora": f"low-rank adapters ({rank}) on frozen weights of 4 bits (nf4), unpacked for every pass; tables in "
        "16 bit",
    }[ask.method]
    packed = f" of documents, {ask.document:,.0f} tokens as seen by a token (attention masked between them)"
    pairs = "all pairs of attention" + (" within documents" if ask.document else "")
    what_for = OBJECTIVES[ask.objective]
    flops, frozen = (4, " (frozen weights need no gradient)") if ask.adapter else (6, "")
    flops += 2 * round(what_for.forwards)
    return (
        *notes,
        *([] if ask.objective == NEXT else [f"objective {ask.objective}: {what_for.what}"]),
        f"{ask.seq:,} tokens per sequence{packed if ask.document else ''}"
        + ("" if moved else f", {ask.batch:,} sequences per step"),
        what,
        *wanted.told(),
        "tensor-parallel collectives overlapped as the software does, data loading hidden",
        f"MFU: {flops} FLOPs per active parameter and token{frozen}, {pairs}, over the dense "
        f"peak of {'the type' if ask.precision == BEST else ask.precision}",
    )
