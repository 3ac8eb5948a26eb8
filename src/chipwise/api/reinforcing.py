"""`rl`: sampling from the serving model, training from the training model, on one fleet, together or apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace

import numpy as np

from chipwise.api.answering import Preferred
from chipwise.api.loaded import Loaded, find_chip, load
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.train import Training, situate
from chipwise.api.train_input import BEST, PRECISIONS
from chipwise.api.train_job import Site
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import Pricing
from chipwise.catalog.runtime import Sampler, samplers_for
from chipwise.catalog.snapshot import today as day
from chipwise.errors import ChipwiseError, InfeasibleError, UnknownNameError, UsageError
from chipwise.evidence.judge import Estimate
from chipwise.evidence.tiers import Tier, trained_tier
from chipwise.parallel.memory import MemoryAccount
from chipwise.predict.training.rollout import (
    FORWARD,
    JUDGED,
    LOOP,
    LOOP_SPREAD,
    Answers,
    Decoder,
    Loop,
    handed_s,
    parked_s,
    rollout_s,
)
from chipwise.predict.training.values import Cluster
from chipwise.report.assemble import dollars, model_record, price_record
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord, figure
from chipwise.report.reinforce import RlPlanRecord, RlReport
from chipwise.report.train_assemble import layout_record, price_doubts
from chipwise.report.training import TrainLayoutRecord
from chipwise.search.prefer import Contenders, order
from chipwise.search.training import Point
from chipwise.units import format_bytes, format_seconds
from chipwise.values import dataclass

# Tensor parallelism and stages that engines are tried with; over several machines where one does not hold the model.
DEGREES = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4))
PLAIN = {"zero": 1, "vp": 1}
"""unit: layout. Chosen: recipes of volcengine/verl and NVIDIA-NeMo/RL under Megatron shard the optimiser alone and have
no virtual stages; moves layouts of loops whose trainer has fused kernels."""
HANDED = 2.0
"""bytes: of a parameter as engines take it, which narrow it themselves. Source: docs.nvidia.com/nemo/rl, fp8 (weights
are quantised from a higher precision as they are loaded)."""
FEWER = 4.0  # between the batches at which a pass is timed
DAY_S = 86400.0
WHY_IDLE = 0.05


@dataclass(frozen=True)
class AskedLoop:
    """A loop as it is asked about; fields are those of `RlRequest`."""

    model: str
    chips: tuple[str, ...]
    counts: tuple[int, ...]
    answers: Answers
    steps: int
    critic: bool = False
    reference: bool = True
    teacher: str = ""
    method: str = "full"
    placement: str = "best"
    train_share: float | None = None
    precision: str = "bf16"
    rollout_precision: str | None = None
    trainer: str | None = None
    runtime: str | None = None
    layout: Mapping[str, int | str] = field(default_factory=dict)
    pricing: Pricing = field(default_factory=Pricing)


@dataclass(frozen=True)
class _Engine:
    """An engine that samples: the plan of one replica, how it decodes, and the ends of its interval."""

    sampler: Sampler
    plan: PlanRecord
    decoder: Decoder
    low: float
    high: float

    @property
    def chips(self) -> int:
        return self.plan.chips


@dataclass(frozen=True)
class _Trained:
    """Training of a step on some chips: where, in which layout and how far off it may be; seconds of a step of the
    optimiser, seconds until engines have new weights, bytes of these, and seconds that a teacher takes to come from the
    host, read all answers and go back."""

    site: Site
    layout: TrainLayoutRecord
    tier: Tier
    memory: MemoryAccount
    seconds: float
    sync: float
    sync_bytes: float
    taught: float

    @property
    def state_bytes(self) -> float:
        """Bytes that leave a device while it samples."""
        return sum(float(np.asarray(self.memory.of(use))) for use in ("weights", "gradients", "optimiser"))


@dataclass(frozen=True)
class LoopsFound:
    """The ways to run a loop, in no order, and the chips that have none."""

    plans: list[RlPlanRecord]
    refused: list[RefusalRecord]


@dataclass(frozen=True)
class LoopAsked:
    """A question about a loop, read (`answering.Choosing`)."""

    loop: AskedLoop
    found: Loaded
    numbers: Parameters

    @classmethod
    def of(cls, loop: AskedLoop, numbers: Parameters | None = None) -> LoopAsked:
        """Raises `UsageError`, `UnknownNameError`."""
        found = load(loop.model)
        if loop.precision == BEST:
            names = ", ".join(PRECISIONS)
            raise UsageError("precision: a loop names what it trains in", f"one of {names}", field="precision")
        if found.graph.encoder:
            raise UsageError(f"{found.graph.model.name} has an encoder, whose training is not timed yet")
        return cls(loop, found, numbers or shipped_parameters())

    def candidates(self) -> LoopsFound:
        """Every chip at every count. Raises `UnknownNameError`, as what is unknown is so on every chip."""
        found = LoopsFound([], [])
        for name in self.loop.chips:
            self._add(find_chip(name), found)
        return found

    def _add(self, chip: Chip, found: LoopsFound) -> None:
        """Adds the ways on a chip to what was found, or why there is none."""
        try:
            engine = _engine(self.loop, chip, max(self.loop.counts))
        except UnknownNameError:
            raise
        except ChipwiseError as error:
            found.refused.append(RefusalRecord(chip.id, "ENGINE", f"nothing samples there: {error}"))
            return
        before, why = len(found.plans), dict[str, None]()
        for count in self.loop.counts:
            try:
                found.plans.extend(_plans(self.loop, chip, count, engine, self.numbers))
            except UnknownNameError:
                raise
            except ChipwiseError as error:
                why[f"not on {count:,}: {error}"] = None
        if why and len(found.plans) == before:
            found.refused.append(RefusalRecord(chip.id, "TRAINING", "; ".join(list(why)[-2:])))

    def choice(self, found: LoopsFound) -> Preferred[RlPlanRecord]:
        """The ways in the order of `search.prefer`."""
        return Preferred(_ranked(found.plans) if found.plans else ())

    def refusal(self, found: LoopsFound) -> InfeasibleError:
        """Why no chip has one."""
        hint = found.refused[0].detail if found.refused else "more chips with --counts"
        return InfeasibleError(f"{self.found.graph.model.name}: no plan", hint)

    def record(self, found: LoopsFound, chosen: Preferred[RlPlanRecord]) -> RlReport:
        """The answer with the plans in order."""
        return RlReport(
            model=model_record(self.found.graph, self.found.config),
            steps=self.loop.steps,
            answers=self.loop.answers.count,
            plans=chosen.plans,
            refused=tuple(found.refused),
            assumptions=_assumptions(self.loop, self.found.notes),
        )

    def beside(self, found: LoopsFound, chosen: Preferred[RlPlanRecord], report: RlReport) -> RlReport:
        """The same: nothing stands beside a loop."""
        return report


def _estimate(asked: AskedLoop, chip: Chip, degrees: tuple[int, int], concurrency: float | None) -> PlanRecord:
    a, (tp, pp) = asked.answers, degrees
    return (
        EstimateRequest(
            model=asked.model,
            chip=chip.id,
            tp=tp,
            pp=pp,
            in_=f"{a.prompt_tokens:.10g}",
            out=f"{a.tokens:.10g}",
            concurrency=concurrency,
            precision=asked.rollout_precision,
            runtime=asked.runtime,
            evidence="none",
        )
        .report()
        .plans[0]
    )


def _engine(asked: AskedLoop, chip: Chip, chips: int) -> _Engine:
    """The engine of the first software that samples there. Raises the errors of `samplers_for` and of `estimate`."""
    refusal: ChipwiseError | None = None
    for sampler in samplers_for(chip, asked.runtime):
        try:
            return _sized(replace(asked, runtime=sampler.id), sampler, chip, chips)
        except ChipwiseError as error:
            refusal = refusal or error
    assert refusal is not None  # there is one at least
    raise refusal


def _sized(asked: AskedLoop, sampler: Sampler, chip: Chip, chips: int) -> _Engine:
    """The degrees that decode fastest per chip, at as many sequences as a step gives an engine and its memory holds;
    stages where no machine alone holds the model; a pass is timed at a quarter, a sixteenth, ... of them. Raises the
    errors of `estimate`."""
    tried: list[tuple[float, tuple[int, int], PlanRecord]] = []
    refusal: ChipwiseError | None = None
    for degrees in DEGREES:
        if degrees[1] > 1 and tried:
            break
        try:
            full = _estimate(asked, chip, degrees, None)
        except ChipwiseError as error:
            refusal = error
            continue
        if full.chips > chips:
            break
        wanted = asked.answers.count * full.chips / chips
        most = max(full.batch, 1.0)
        one = full if wanted >= most else _estimate(asked, chip, degrees, max(wanted, 1.0))
        tried.append((one.batch / one.decode_s / full.chips, degrees, full))
    if not tried:
        raise refusal or UsageError(f"no engine on {chips} x {chip.id}", "more chips with --counts")
    _, degrees, full = max(tried, key=lambda t: t[0])
    most = max(full.batch, 1.0)
    batches = [most]
    while batches[-1] > 1.0:
        batches.append(max(batches[-1] / FEWER, 1.0))
    passes = [full.decode_s if b == most else _estimate(asked, chip, degrees, b).decode_s for b in batches]
    decoder = Decoder(np.array(batches[::-1]), np.maximum.accumulate(np.array(passes[::-1])), most, full.prefill_s)
    t = full.tpot_s or full.ttft_s
    return _Engine(sampler, full, decoder, t.low / t.mid, t.high / t.mid)


def _plans(asked: AskedLoop, chip: Chip, count: int, engine: _Engine, numbers: Parameters) -> Iterator[RlPlanRecord]:
    """Together, and apart at the split with the shortest step. Raises the errors of training where neither is."""
    if engine.chips > count:
        raise UsageError(f"an engine takes {engine.chips} chips", f"at least {engine.chips}")
    refusal: ChipwiseError | None = None
    if asked.placement != "apart":
        try:
            if not engine.sampler.parks:
                what = f"{engine.sampler.name} is not known to give up its memory while the chip trains"
                raise UsageError(what, "--placement apart")
            trained = _trained(asked, chip, count, engine, numbers)
            yield _record(asked, chip, (count, count), engine, trained, together=True)
        except ChipwiseError as error:
            if asked.placement == "together":
                raise
            refusal = error
    if asked.placement == "together":
        return
    made = []
    for train in _splits(asked, count, engine):
        try:
            trained = _trained(asked, chip, train, engine, numbers, count - train)
        except ChipwiseError as error:
            refusal = error
            continue
        made.append(_record(asked, chip, (train, count - train), engine, trained, together=False))
    if made:
        yield min(made, key=lambda p: p.step_s.mid)
    elif asked.placement == "apart" or refusal is not None:
        raise refusal or UsageError(
            f"{count} chips are not parted into engines of {engine.chips} and a trainer", "more chips with --counts"
        )


def _splits(asked: AskedLoop, count: int, engine: _Engine) -> list[int]:
    """Chips that train: those asked for, or eighths of all; the rest are whole engines."""
    if asked.train_share is not None:
        wanted = [round(asked.train_share * count)]
    else:
        wanted = sorted({round(count * i / 8) for i in (1, 2, 4, 6)})
    return [n for n in wanted if 1 <= n < count and (count - n) >= engine.chips and (count - n) % engine.chips == 0]


def _trained(
    asked: AskedLoop, chip: Chip, chips: int, engine: _Engine, numbers: Parameters, others: int = 0
) -> _Trained:
    """Training on the answers of a step: steps of the optimiser on sequences in which answers are packed, each as long
    as the longest; their batch is moved to what the chips share, seconds in proportion; `others` sample. Raises the
    errors of training, and `UsageError` where no network joins them."""
    a = asked.answers
    mean = a.prompt_tokens + a.tokens
    seq = round(a.prompt_tokens + (a.longest if a.cv else a.tokens))
    whole, answers = a.count * mean / seq, a.count // a.updates
    run = Training(
        asked.model,
        chips=(chip.id,),
        counts=(chips,),
        task="train" if asked.method == "full" else "finetune",
        seq=seq,
        documents={"mean": f"{mean:.10g}", "cv": f"{a.packed_cv:.10g}"},
        global_batch=_shared(whole / a.updates, answers),
        precision=asked.precision,
        method=asked.method,
        layout=asked.layout,
        trainer=asked.trainer,
    )
    try:
        site, at = _situated(run, numbers)
    except InfeasibleError:  # no ranks divide the answers: sequences are dealt out unevenly
        run = replace(run, global_batch=max(round(whole / a.updates / chips), 1) * chips)
        site, at = _situated(run, numbers)
    steps = whole / run.global_batch
    c = site.job.cluster
    weights = HANDED * float(site.job.network.params)
    joined = _joined(chip, c, (chips + others) * site.devices)
    sync = handed_s(weights, weights / engine.chips, at.devices, joined)
    return _Trained(
        site,
        layout_record(at.spread),
        trained_tier(numbers, site.labels, site.levels(asked.method)),
        at.memory,
        seconds=at.seconds * steps,
        sync=sync,
        sync_bytes=weights,
        taught=_taught(asked, run, float(c.host_bytes_per_s), numbers, steps) if asked.teacher else 0.0,
    )


def _shared(sequences: float, answers: int) -> int:
    """Sequences of a step of the optimiser: the divisor of its answers that is nearest to so many, so that ranks which
    share the ones share the others."""
    whole = [n for n in range(1, answers + 1) if answers % n == 0]
    return min(whole, key=lambda n: abs(float(np.log(n / sequences))))


def _situated(run: Training, numbers: Parameters) -> tuple[Site, Point]:
    """Where a run is at its best, by software with fused kernels as recipes lay it out (`PLAIN`) where that fits and
    nothing else is fixed. Raises the errors of training."""
    site, at = situate(run, numbers)
    if site.trainer.kind == "fused" and (float(at.spread.zero) > PLAIN["zero"] or float(at.spread.vp) > 1.0):
        with suppress(InfeasibleError):
            return situate(replace(run, layout={**PLAIN, **run.layout}), numbers)
    return site, at


def _taught(asked: AskedLoop, run: Training, host_bytes_per_s: float, numbers: Parameters, steps: float) -> float:
    """Seconds in which the teacher reads the answers: the forward pass of a run on its frozen weights, and the way from
    the host and back, where it waits meanwhile. Raises the errors of training."""
    frozen = replace(run, model=asked.teacher, task="finetune", method="lora", layout={}, trainer=None)
    _, at = situate(frozen, numbers)
    moved = 2.0 * float(np.asarray(at.memory.of("weights"))) / host_bytes_per_s
    return JUDGED * at.seconds * steps + moved


def _joined(chip: Chip, c: Cluster, devices: int) -> float:
    """Bytes/s of a device towards others, where so many of a chip are joined: the fabric's within its domain, else the
    network's. Raises `UsageError` where there is none."""
    rate = float(c.link_bytes_per_s if devices <= float(c.domain) else c.nic_bytes_per_s)
    if not (np.isfinite(rate) and rate > 0):
        raise UsageError(
            f"no network is known that joins {devices} devices of {chip.id}: new weights cannot reach the engines",
            f"use at most {float(c.domain):,.0f} devices",
        )
    return rate


def _record(
    asked: AskedLoop, chip: Chip, split: tuple[int, int], engine: _Engine, trained: _Trained, *, together: bool
) -> RlPlanRecord:
    """A plan, not ranked yet."""
    (train, sample), site = split, trained.site
    chips = train if together else train + sample
    replicas = max(sample // engine.chips, 1)
    took, drained = rollout_s(asked.answers, engine.decoder, replicas)
    models = 2.0 if asked.critic else 1.0  # trained; each scores once before, the reference besides
    scored = FORWARD * (models + float(asked.reference)) * trained.seconds
    loop = Loop(
        rollout=LOOP * took,
        scoring=LOOP * (trained.taught or scored),
        training=LOOP * models * trained.seconds,
        sync=trained.sync,
        swap=parked_s(trained.state_bytes, float(site.job.cluster.host_bytes_per_s)) if together else 0.0,
        together=together,
    )
    sums = (
        replace(loop, rollout=loop.rollout * a, scoring=loop.scoring * b, training=loop.training * b).total
        for a, b in ((engine.low, trained.tier.low), (engine.high, trained.tier.high))
    )
    away = (float(np.log(end / loop.total)) for end in sums)
    low, high = (loop.total * float(np.exp(np.copysign(np.hypot(a, LOOP_SPREAD), a))) for a in away)
    step = Estimate(loop.total, low, high, "modelled")
    days = step.scaled(asked.steps / DAY_S)
    tokens = asked.answers.count * asked.answers.tokens
    price = price_record(asked.pricing.basis(chip.id, day()), chips)
    names = ("rollout", "scoring", "training", "sync", "swap")
    parts = {name: float(getattr(loop, name)) for name in names}
    sides = {**parts, "training": parts["scoring"] + parts["training"]}  # what trains scores first
    return RlPlanRecord(
        hosts=-(-chips // (site.system.chips_per_host if site.system else 1)),
        chip=chip.id,
        chips=chips,
        placement="together" if together else "apart",
        train_chips=train,
        rollout_chips=sample,
        layout=trained.layout.label,
        training=trained.layout,
        tp=engine.plan.layout.tp,
        pp=engine.plan.layout.pp,
        replicas=replicas,
        concurrency=asked.answers.count / replicas,
        trainer=site.trainer.id,
        runtime=engine.plan.runtime,
        precision=asked.precision,
        rollout_precision=engine.plan.precision,
        step_s=figure(step),
        tokens_per_s=figure(step.inverse(tokens)),
        parts=parts,
        idle=loop.idle,
        drained=drained,
        days=figure(days),
        price=price,
        usd=dollars(days.scaled(24.0), price),
        host_bytes=trained.state_bytes * site.devices if together else 0.0,
        bound=max(sides, key=lambda name: sides[name]),
        why=(
            *_why(asked, engine, loop, drained, replicas),
            f"{format_bytes(trained.sync_bytes)} of new weights reach every engine at each step, in "
            f"{format_seconds(trained.sync)}; of answers only their token ids",
        ),
    )


def _why(asked: AskedLoop, engine: _Engine, loop: Loop, drained: float, replicas: int) -> Iterator[str]:
    """What a step is bound by, and what would change it."""
    a, d = asked.answers, engine.decoder
    learning = loop.scoring + loop.training
    yield f"rollout takes {loop.rollout / loop.total:.0%} of a step, scoring and training {learning / loop.total:.0%}"
    even, _ = rollout_s(replace(a, cv=0.0), d, replicas)
    if a.cv > 0:
        yield (
            f"answers of one length would take {LOOP * even / loop.rollout:.0%} of the rollout: in {drained:.0%} of it "
            f"engines run with less than half of their sequences"
        )
    each = a.count / replicas
    if each > d.most:
        yield f"memory holds {d.most:,.0f} of {each:,.0f} answers of an engine at once: the others wait"
    if loop.idle > WHY_IDLE:
        who = "training" if loop.rollout > learning else "sampling"
        yield f"chips of {who} wait {loop.idle:.0%} of a step for the other side"


def _ranked(plans: list[RlPlanRecord]) -> tuple[RlPlanRecord, ...]:
    """Plans in the order of `search.prefer`: least dollars, within `sooner` of them the best founded and soonest;
    unpriced last, by time."""
    days = np.array([p.days.mid for p in plans])
    usd = np.array([p.usd.mid if p.usd else np.nan for p in plans])
    free = np.isnan(usd)
    billed = np.array([float(p.price.billed if p.price else p.chips) for p in plans])
    contenders = Contenders.of(
        np.where(free, days, usd),
        times=days[None],
        doubts=[price_doubts(p.price) for p in plans],
        size=np.vstack([days, billed]),
        group=free.astype(float),
    )
    best = order(contenders, 0.0, preferences().sooner)
    return tuple(replace(plans[i], rank=rank + 1) for rank, i in enumerate(best))


def _assumptions(asked: AskedLoop, notes: tuple[str, ...]) -> tuple[str, ...]:
    a = asked.answers
    spread = f"deviation {a.cv:g} of the mean, cut at {a.longest:,.0f}" if a.cv else "all equal"
    scored = "by the policy" + (" and the reference model" if asked.reference else "")
    critic = ", a critic of the policy's size is trained too" if asked.critic else ""
    judged = f"answers are scored {scored}{critic}; rewards come from rules that take no chip"
    if asked.teacher:
        judged = (
            f"{asked.teacher} reads every answer once, on the chips that train, and its logits are matched: it has the "
            "policy's tokens, and waits in host memory meanwhile"
        )
    return (
        *notes,
        f"answers of {a.tokens:,.0f} tokens ({spread}), prompts of {a.prompt_tokens:,.0f}, each computed once",
        judged,
        f"{a.updates} step{'s' if a.updates > 1 else ''} of the optimiser on the answers of a step, packed into "
        "sequences as long as the longest; apart training is one step behind",
        "together the trainer's state waits in host memory while chips sample",
        f"sampling, scoring and training take {LOOP:g} times as long as alone, as in ten published loops of NeMo-RL; "
        "their scatter is in the interval",
    )
