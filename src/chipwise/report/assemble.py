"""From values of the rooms below to the records that people and programs read: models, memory, prices, plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from chipwise.catalog.configs import ModelConfig
from chipwise.catalog.offer import MARKETPLACES
from chipwise.catalog.price import OwnCosts, Rent, split_usd_per_million
from chipwise.evidence.anchors import Correction
from chipwise.evidence.discrepancy import Scatter
from chipwise.evidence.judge import Basis, Estimate, Nearness, basis_of, chance, judge
from chipwise.parallel.layout import Layout
from chipwise.parallel.memory import KEPT_FREE, MemoryAccount
from chipwise.predict.energy import Use
from chipwise.predict.rounds import kept_up
from chipwise.predict.service import Prediction, Stretch
from chipwise.report.energy import JOULE_PER_KWH, Powered, energy_record
from chipwise.report.plan import numbered, saving
from chipwise.report.plans import PlanRecord
from chipwise.report.records import (
    Figure,
    JobRecord,
    LayoutRecord,
    MemoryRecord,
    ModelRecord,
    PriceRecord,
    TailRecord,
    WorkloadRecord,
    figure,
)
from chipwise.search.evaluate import Bounds
from chipwise.search.prefer import Contenders, order, pareto
from chipwise.search.space import Deployment
from chipwise.values import dataclass
from chipwise.workload.gguf import narrow
from chipwise.workload.graph import Graph
from chipwise.workload.lengths import PrefixCache
from chipwise.workload.model import Model
from chipwise.workload.workload import Workload


def model_record(graph: Graph, config: ModelConfig) -> ModelRecord:
    """A model in figures."""
    model = graph.model
    return ModelRecord(
        name=model.name,
        architecture=model.architecture,
        params=graph.parameters,
        active_params=graph.active_params(),
        layers=graph.layers,
        precision=model.precision.name,
        weight_bytes=graph.weight_bytes,
        kv_bytes_per_token=graph.kv_bytes_per_token(),
        kv_bytes_in_window=float(graph.kv_bytes(2.0)) - float(graph.kv_bytes(1.0)),
        beside_bytes={e.name: e.calls * e.weight_bytes for e in graph.extras if e.calls},
        max_context=model.max_context,
        origin=config.origin,
        assumptions=model.assumptions,
    )


def workload_record(w: Workload) -> WorkloadRecord:
    """What was asked."""
    prefix = w.prefix or PrefixCache()
    return WorkloadRecord(
        w.task,
        w.prompt_tokens,
        w.output_tokens,
        w.rate_per_s,
        w.ttft_s,
        w.tpot_s,
        w.served.prompt_cv,
        w.served.output_cv,
        prefix.cached_share,
        prefix.common_tokens,
        w.e2e_s,
        w.percentile,
        w.confidence,
        w.utilisation,
        *((w.job.tokens, w.job.deadline_s, w.job.max_usd) if w.job else ()),
    )


def layout_record(layout: Layout) -> LayoutRecord:
    """One layout."""
    tp, pp, dp, ep = (int(np.asarray(layout.part(p)).item()) for p in ("tp", "pp", "dp", "ep"))
    return LayoutRecord(tp, pp, dp, ep, Layout(tp, pp, dp, ep).label())


def memory_record(account: MemoryAccount, dp: int = 1, sequences: float = 1.0) -> MemoryRecord:
    """The account of one device; `cache_tokens` counts all attention replicas."""

    def one(value: object) -> float:
        return float(np.asarray(value).reshape(-1)[0])

    used = [i for i in account.items if i.name != KEPT_FREE and one(i.bytes) > 0]
    return MemoryRecord(
        items={i.name: one(i.bytes) for i in used},
        basis={i.name: i.policy for i in used},
        capacity_bytes=one(account.capacity_bytes),
        withheld_bytes=one(account.of(KEPT_FREE)),
        cache_bytes=one(account.cache_bytes),
        cache_tokens=whole(one(account.tokens) * dp),
        verdict=account.verdict(sequences).value,
    )


def whole(value: float) -> int | None:
    """A count, or None where nothing limits it."""
    return int(value) if np.isfinite(value) else None


def price_record(basis: Rent | OwnCosts | None, chips: int, group: int = 1) -> PriceRecord | None:
    """What `chips` of a chip cost on that basis, every `group` of them in one machine, or None where no price is
    known."""
    if basis is None:
        return None
    hour = basis.hour(chips, group)
    usd = float(hour.low), float(hour.mid), float(hour.high)
    billed = round(float(hour.billed))
    if isinstance(basis, OwnCosts):
        assumed = f" (assumed: {', '.join(basis.assumed)})" if basis.assumed else ""
        words = f"owned, {basis.utilisation:.0%} in use: capital, power and cooling{assumed}"
        return PriceRecord(*usd, words, billed, "", "", "", "", 1, stale=False, use=basis.utilisation)
    offer = basis.quotes[int(np.asarray(hour.offer))]
    words = f"{'spot price' if basis.spot else 'on-demand list price'} of whole instances, range over providers"
    places = offer.provider, offer.instance, offer.region, offer.date
    place = PriceRecord(*usd, words, billed, *places, offer.smallest, stale=basis.stale)
    return replace(place, sellers=len(basis.providers), wanted=basis.wanted)


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """Replicas: those that carry the load, spare ones, and workers for prompts alone, which may have a layout of their
    own. `largest_per_s` is what each replica can carry (0: what it does), which falls by `slope` per cent where passes
    take one longer, and `stretch` what these do to times (None: that is still to be asked); `harnessed`: under a
    benchmark client whose runs were fitted; `driven`: at a load that is given, not as full as they get; `in_step`: by
    clients whose requests of equal lengths may start together, and stay so."""

    carrying: int = 1
    spare: int = 0
    prompt_workers: int = 0
    largest_per_s: float = 0.0
    slope: float = 1.0
    prompt_layout: Layout | None = None
    harnessed: bool = False
    driven: bool = False
    in_step: bool = False
    stretch: Stretch | None = None

    @property
    def paced(self) -> bool:
        """Whether a rate is given: what they carry is then no question, what they could carry is."""
        return self.driven and self.largest_per_s > 0.0

    @property
    def longer(self) -> Stretch:
        """What longer passes do to times; where nobody said it, what they do to clients who wait for their answers."""
        return self.stretch or Stretch()

    def devices(self, layout: Layout) -> int:
        """Devices of all of them, replicas in a layout."""
        prompts = self.prompt_layout or layout
        replicas = (self.carrying + self.spare) * int(layout.devices)
        return replicas + self.prompt_workers * int(np.asarray(prompts.devices).reshape(-1)[0])


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far the figures of a deployment may be off: its passes (`further`, time per token), the time to the `first`
    token, its throughput (`whole`) and the bytes that it holds (`memory`)."""

    first: Scatter
    further: Scatter
    whole: Scatter
    memory: Scatter


@dataclass(frozen=True, slots=True)
class Deployed:
    """A candidate as it is asked for: `fleet` of the `layout` on a `deployment`, of a `model` under a `workload`.
    `near` says what was measured near it, `doubt` how far its figures may be off, `by` what runs of the user's own
    leave of that."""

    deployment: Deployment
    layout: Layout
    fleet: ReplicaSet
    model: Model
    workload: Workload
    near: Nearness
    doubt: Doubt
    by: Correction = Correction()


@dataclass(frozen=True, slots=True)
class Performance:
    """What a candidate does at its load: `prediction` and `bounds` hold a single number in each figure, of all replicas
    that carry the load, `memory` is of one device. `drawn` says how chips turn work into watts, and what those that
    carry the load do (None: no power limit is known)."""

    prediction: Prediction
    bounds: Bounds
    memory: MemoryAccount
    tails: Mapping[str, TailRecord]
    drawn: tuple[Powered, Use] | None


def one(value: object) -> float:
    """The number of an array that holds one."""
    return float(np.asarray(value).reshape(-1)[0])


def _shares(exposed: Mapping[str, object]) -> dict[str, float]:
    """Shares of the exposed time by cause, the largest first."""
    seconds = {k: one(v) for k, v in exposed.items()}
    total = sum(seconds.values())
    return {k: v / total for k, v in sorted(seconds.items(), key=lambda kv: -kv[1]) if v > 0}


def _most(per_s: float, slope: float, faster: float, peak: float) -> float:
    """Requests/s that are not exceeded where passes are at most so many times faster: shorter ones leave room for
    larger batches within the targets, up to the peak."""
    if slope * math.log(faster) < math.log(peak / per_s):
        return per_s * float(faster**slope)
    return peak


def _job(
    w: Workload, concurrency: float, tokens: Estimate, price: PriceRecord | None
) -> tuple[JobRecord | None, Estimate | None]:
    """The job with its dollars, and its hours, whose last round takes as long as a full one; None without one."""
    if w.job is None or w.pieces is None:
        return None, None
    amount = w.pieces * w.output_tokens / float(kept_up(w.pieces, concurrency))
    return job_record(amount, tokens, price), tokens.inverse(amount / 3600.0)


def _timed(
    mid: float, spread: Scatter, powers: tuple[float, float], *, passes: Scatter, basis: Basis, least: float = 0.0
) -> Estimate:
    """A time whose ends are those of `passes` at either power of their length; endless where it is not known."""
    if not np.isfinite(mid):
        return Estimate(mid, mid, mid, basis)
    lower, upper = (
        judge(mid, spread.carrying(passes, x).around(), basis, provisional=not bool(spread.known[0]), least=least)
        for x in powers
    )
    return Estimate(mid, lower.low, upper.high, basis, lower.provisional)


def _latencies(
    of: Deployed, does: Performance, first: Scatter, passes: Scatter, basis: Basis
) -> tuple[Estimate, Estimate | None, tuple[Estimate, Estimate | None]]:
    """The times to the first token and per further one (None: an answer has one token), and those that targets bound:
    these, or the percentile that was asked for."""
    prediction, bounds, fleet, w = does.prediction, does.bounds, of.fleet, of.workload
    timed, stretch = partial(_timed, passes=passes, basis=basis), fleet.longer
    ahead = one(prediction.in_step_s) / one(prediction.ttft_s) if fleet.in_step else 1.0
    ttft = timed(one(prediction.ttft_s), first, stretch.first, least=one(bounds.ttft_s))
    ttft, tpot = ttft.reaching(ahead, of.by.first), None
    if w.output_tokens > 1.0:
        tpot = timed(one(prediction.tpot_s), passes, stretch.further, least=one(bounds.tpot_s))
    if w.percentile is None:
        return ttft, tpot, (ttft, tpot)
    first_s, further_s = _tail(does.tails.get(f"p{w.percentile * 100:g}"))
    slow = timed(first_s, first, stretch.bounded_first).reaching(ahead, of.by.first)
    return ttft, tpot, (slow, tpot and timed(further_s, passes, stretch.bounded_further))


def _as_asked(made: Figure, *, given: bool) -> Figure:
    """A load that was `given` has no interval."""
    return replace(made, low=made.mid, high=made.mid) if given else made


def _untested(of: Deployed) -> tuple[str, ...]:
    """What the makers of its software do not vouch for."""
    return of.deployment.runtime.untested(of.deployment.chip, of.model.architecture)


def plan_record(of: Deployed, does: Performance, price: PriceRecord | None) -> PlanRecord:
    """The plan of a candidate that does so at its load and costs so much (None: no price is known)."""
    deployment, layout, fleet, workload, near = of.deployment, of.layout, of.fleet, of.workload, of.near
    prediction, bounds, memory = does.prediction, does.bounds, does.memory

    layout_ = layout_record(layout)
    package = deployment.chip.devices_per_package
    chips = fleet.devices(layout) // package
    hosts = _hosts(deployment, fleet, layout)
    requests = one(prediction.requests_per_s)
    largest = max(fleet.carrying * fleet.largest_per_s, requests)
    by, doubt = of.by, of.doubt
    basis = by.basis() or basis_of(near)

    passes, first = doubt.further.shrunk(by.further), doubt.first.shrunk(by.first)

    given = workload.rate_per_s is not None or fleet.paced  # what is carried is then no question, what could be is
    faster = one(bounds.requests_per_s) / requests  # than predicted, at most

    def rate(per_s: float, slope: float) -> Estimate:
        most = _most(per_s, slope, max(faster, 1.0), one(bounds.peak_per_s))
        around = doubt.whole.shrunk(by.further).around(-slope)
        return judge(per_s, around, basis, provisional=not bool(passes.known[0]), most=most)

    tokens = rate(requests, 1.0 if given else fleet.slope).scaled(workload.output_tokens)
    capacity = figure(rate(largest, fleet.slope)) if given and (workload.limited or fleet.paced) else None
    made = _as_asked(figure(tokens), given=given)
    ttft, tpot, bounded = _latencies(of, does, first, passes, basis)
    per_request = (
        one(prediction.prefill_s) / layout_.pp,
        workload.output_tokens
        * one(prediction.decode_s)
        * layout_.dp
        * fleet.carrying
        / max(one(prediction.batch), 1e-9),
    )
    paid = 1.0 if price is None else _paid_share(chips, price, full=_full(workload) and not fleet.driven)
    into, out = _usd_per_million(price, paid, tokens, requests, per_request, workload)
    if workload.output_tokens <= 1.0:
        out = None  # the one token comes with the prompt
    shares = _shares(prediction.cost.exposed)
    energy = None
    if does.drawn is not None:
        working = fleet.carrying * int(layout.devices) / fleet.devices(layout)
        powered, use = does.drawn
        energy = energy_record(powered, use * working, chips, hosts, tokens, workload.output_tokens)
    # whole sequences: a lone one stays alone, although the mean in flight counts the next one's prefill
    held = max(1.0, float(np.floor(one(prediction.resident))))
    taken = _held(memory, held / layout_.dp / fleet.carrying, doubt.memory)
    job, hours = _job(workload, one(prediction.concurrency), tokens, price)
    carried = judge(1.0, passes.of_passes().around(), basis).kept(fleet.longer.room)
    return PlanRecord(
        chip=deployment.chip.id,
        chips=chips,
        replicas=fleet.carrying + fleet.spare,
        layout=layout_,
        precision=of.model.precision.name,
        kv=of.model.precision.kv.name,
        runtime=deployment.runtime.id,
        batch=one(prediction.batch) / fleet.carrying,
        concurrency=one(prediction.concurrency) / fleet.carrying,
        ttft_s=figure(ttft),
        tpot_s=None if tpot is None else figure(tpot),
        decode_s=one(prediction.decode_s),
        prefill_s=one(prediction.prefill_s),
        tokens_per_s=made,
        tokens_per_s_per_chip=made.each(chips),
        tokens_per_s_per_user=None if tpot is None else figure(tpot.inverse(1.0)),
        requests_per_s=requests,
        largest_requests_per_s=largest,
        prompt_share=min(one(prediction.utilisation), 1.0),
        price=price,
        usd_per_million_in=into,
        usd_per_million_out=out,
        kwh_per_million_out=None if energy is None else _kwh(energy.joules_per_token),
        bound=next(iter(shares)),
        shares=shares,
        memory=memory_record(memory, layout_.dp, held),
        memory_range=figure(taken),
        memory_chance=taken.kept(one(memory.capacity_bytes)),
        tails=dict(does.tails),
        spare=fleet.spare,
        prompt_workers=fleet.prompt_workers,
        note=deployment.note,
        untested=_untested(of),
        system=deployment.system.id if deployment.system else "",
        chance=_chance(workload, *bounded, hours, carried),
        job=job,
        hosts=hosts,
        replica_hosts=_hosts(deployment, ReplicaSet(), layout),
        network_bytes_per_s=_network(deployment, layout),
        energy=energy,
        capacity=capacity,
        rate_slope=fleet.slope,
    )


def job_record(amount: float, rate: Estimate, price: PriceRecord | None) -> JobRecord:
    """Hours of a job of so many tokens or samples at that many per second, and its dollars by the second."""
    hours = rate.inverse(amount / 3600.0)
    return JobRecord(figure(hours), dollars(hours, price))


def dollars(hours: Estimate, price: PriceRecord | None, beside: float = 0.0) -> Figure | None:
    """What so many hours cost at the price that is quoted, with dollars `beside`; None where no price is known. What
    other sellers ask is no doubt about it."""
    if price is None:
        return None
    mid, low, high = (price.mid * length + beside for length in (hours.mid, hours.low, hours.high))
    return Figure(mid, low, high, hours.basis, hours.provisional)


def _tail(tail: TailRecord | None) -> tuple[float, float]:
    """Seconds to the first token and per further one of a percentile, without end where they are not known."""
    if tail is None:
        return np.inf, np.inf
    return tail.ttft_s or np.inf, np.inf if tail.tpot_s is None else tail.tpot_s


def _chance(
    w: Workload, first: Estimate, further: Estimate | None, hours: Estimate | None, carried: float
) -> float | None:
    """The probability that the least certain of the targets holds, which bound these times to the `first` token and per
    `further` one: no more than that with which a given rate is `carried`; None without a target."""
    if w.job is not None and w.job.deadline_s is not None and hours is not None:
        return hours.kept(w.job.deadline_s / 3600.0)
    one, more = (1.0, first), [(w.output_tokens - 1.0, further)] if further else []

    def kept(target: float, *parts: tuple[float, Estimate]) -> float:
        """Of a target of a sum of so many of each."""
        ends = (sum(n * getattr(e, end) for n, e in parts) for end in ("mid", "low", "high"))
        return chance(target, *ends)

    chances = [] if w.ttft_s is None else [kept(w.ttft_s, one)]
    chances += [] if w.tpot_s is None or further is None else [kept(w.tpot_s, (1.0, further))]
    chances += [] if w.e2e_s is None else [kept(w.e2e_s, one, *more)]
    return min(*chances, carried) if chances else None


def _held(account: MemoryAccount, sequences: float, spread: Scatter) -> Estimate:
    """Bytes that a device needs for so many sequences: weights and cache are counted, all else may be off."""
    counted = one(account.of("weights"))
    e = judge(
        max(one(account.total_bytes - account.of(KEPT_FREE)) - counted, 1.0),
        spread.around(),
        "modelled",
        provisional=not spread.known[0],
    )
    counted += sequences * one(account.sequence_bytes)
    mid, low, high = (counted + x for x in (e.mid, e.low, e.high))
    return Estimate(mid, low, high, e.basis, e.provisional)


def _hosts(d: Deployment, fleet: ReplicaSet, layout: Layout) -> int:
    """Machines that hold all replicas, whole ones in each where they fit."""
    held = d.system.chips_per_host if d.system else 1
    total = 0
    for count, each in ((fleet.carrying + fleet.spare, layout), (fleet.prompt_workers, fleet.prompt_layout or layout)):
        chips = int(np.asarray(each.devices).reshape(-1)[0]) // d.chip.devices_per_package or 1
        total += -(-count // (held // chips)) if chips <= held else count * -(-chips // held)
    return total


def _network(d: Deployment, layout: Layout) -> float | None:
    """Bytes per second of a chip in each direction between the hosts of a replica, as calculated with: those of the
    scale-up domain where it holds all of them; None where none is known."""
    joined = layout.devices <= np.asarray(d.device.domain)
    speeds = np.where(joined, d.device.link_bytes_per_s, d.device.scaleout_bytes_per_s)
    speed = float(np.ravel(speeds)[0]) * d.chip.devices_per_package
    return speed if np.isfinite(speed) else None


def _kwh(joules: Figure) -> Figure:
    """Kilowatt-hours of the chips per million output tokens."""
    low, mid, high = (x * 1e6 / JOULE_PER_KWH for x in (joules.low, joules.mid, joules.high))
    return Figure(mid, low, high, joules.basis, joules.provisional)


def _full(w: Workload) -> bool:
    """Whether replicas run full, as without a rate; those of a job end with it."""
    return w.rate_per_s is None and w.task != "local" and w.job is None


def _paid_share(chips: int, price: PriceRecord, *, full: bool) -> float:
    """The share of what is paid that the tokens of a plan bear. Replicas that run full are as many as fill a machine: a
    plan bears its share of it, else all."""
    return chips / price.billed if full else 1.0


def _usd_per_million(
    price: PriceRecord | None,
    paid: float,
    tokens: Estimate,
    requests_per_s: float,
    machine_s: tuple[float, float],
    workload: Workload,
) -> tuple[Figure | None, Figure | None]:
    """Dollars per million input and output tokens by the one rule of `catalog.price`: each kind pays for its
    share of the machine seconds of a request (`machine_s`: prefill, decode), idle time included. Of the price the
    share `paid` counts."""
    if price is None:
        return None, None
    share = machine_s[0] / sum(machine_s)

    def split(usd_per_h: float, faster: float) -> tuple[float, float]:
        paid_s = 1.0 / (requests_per_s * faster)  # of the whole fleet, per request
        lengths = workload.prompt_tokens, workload.output_tokens
        into, out = split_usd_per_million(usd_per_h, paid_s * share, paid_s * (1.0 - share), *lengths)
        return float(into), float(out)

    mid = split(price.mid * paid, 1.0)
    low = split(price.low * paid, tokens.high / tokens.mid)
    high = split(price.high * paid, tokens.low / tokens.mid)
    into, out = (Figure(*three, tokens.basis, tokens.provisional) for three in zip(mid, low, high, strict=True))
    return into, out


def contenders(plans: Sequence[PlanRecord], workload: Workload) -> Contenders:
    """What plans are compared by (`search.prefer`): what the user pays. One local user waits for a whole answer;
    serving a given rate costs dollars per hour; else dollars per output token, prompts included; where nothing is paid,
    chips that carry the rate, or tokens per second. Plans without a price come after the others, by their chips; of one
    user those of fewer than 4 bits a weight after the others that are fast enough, and then those that are not.
    """
    local = workload.task == "local"
    paid = not local and any(p.price for p in plans)
    goals = [goal(p, workload, paid=paid) for p in plans]
    # to eight digits: beyond those a load that was searched for is not known, and would rank by chance
    cost = [float(p.chips if g is None else f"{g.mid:.8g}") for p, g in zip(plans, goals, strict=True)]
    times = [] if workload.task == "batch" else [[p.ttft_s.mid for p in plans], [p.pace.mid for p in plans]]
    if local:
        usd = list(map(PlanRecord.usd, plans))
        times, size = [*times, usd], [usd, [float(p.chips) for p in plans]]
    else:
        size = [list(map(float, row)) for row in zip(*map(_size, plans), strict=True)]
    return Contenders.of(
        cost,
        times=times,
        chance=[p.chance for p in plans],
        doubts=[doubts(p) for p in plans],
        size=size,
        group=_groups(plans, goals, workload),
    )


def _groups(plans: Sequence[PlanRecord], goals: Sequence[Figure | None], w: Workload) -> list[float]:
    """The group of each plan: known cost before none; of one user what is fast enough, the same in fewer than 4 bits a
    weight, and what is too slow."""
    if w.task != "local":
        return [float(g is None) for g in goals]
    return [float(narrow(p.precision)) if fully_ready(p, w) else 2.0 for p in plans]


def fully_ready(p: PlanRecord, w: Workload) -> bool:
    """Whether a plan keeps what was asked, for one user at the pace that he wants."""
    paced = w.task != "local" or p.tpot_s is None or p.tpot_s.mid <= 1.0 / w.pace_per_s
    return paced and p.keeps_targets(w.confidence)


def _size(p: PlanRecord) -> tuple[float, ...]:
    """What makes a plan of many users simpler: fewer hosts, billed chips, more replicas, fewer stages."""
    billed = p.price.billed if p.price else p.chips
    return p.hosts, billed, p.spare - p.replicas, p.layout.pp, p.layout.dp


def doubts(plan: PlanRecord) -> int:
    """How many things speak against a plan: that nobody measured such, that its price is old, that it is rented from
    whoever offers a machine, that it runs in stages, that its weights are converted, that the makers of its software
    do not vouch for the model or the chip."""
    price = plan.price
    return (
        (plan.pace.basis == "modelled")
        + bool(price and price.stale)
        + bool(price and price.provider in MARKETPLACES)
        + (plan.layout.pp > 1)
        + plan.converted
        + len(plan.untested)
    )


def rank_plans(plans: Sequence[PlanRecord], workload: Workload) -> tuple[PlanRecord, ...]:
    """Plans in order (`search.prefer`), numbered, with the front and the ties marked."""
    if not plans:
        return ()
    c, confidence = contenders(plans, workload), workload.confidence
    priced = np.array([p.price.mid if p.price else np.inf for p in plans])
    front = pareto(
        priced if workload.task == "local" else np.where(c.group == 0, c.cost, np.inf),
        np.array([p.pace.mid for p in plans]),
    )
    places = order(c, confidence)
    ordered = [replace(plans[place], on_front=bool(front[place])) for place in places]
    return numbered(ordered, c.take(places), confidence)


def cheapest_plan(
    first: PlanRecord, plans: Sequence[PlanRecord], workload: Workload
) -> tuple[PlanRecord | None, float]:
    """The cheapest of all plans that may come before or behind the `first`, and what share of its cost that saves; None
    where nothing does."""
    every = [first, *plans]
    local = workload.task == "local"
    return (None, 0.0) if local else saving(every, contenders(every, workload), workload.confidence)


def goal(plan: PlanRecord, w: Workload, *, paid: bool) -> Figure | None:
    """What a user pays with, less is better: seconds of an answer for a lone one; of a given rate dollars per hour, or
    chips where nothing is `paid`; else dollars per million tokens, or seconds per token. None where no price is
    known."""
    if w.task == "local":
        first = plan.ttft_s
        if plan.tpot_s is None:
            return first
        t, out = plan.tpot_s, w.output_tokens - 1.0
        return Figure(
            first.mid + out * t.mid, first.low + out * t.low, first.high + out * t.high, t.basis, t.provisional
        )
    if not paid and w.driven:
        chips = float(plan.chips)
        return Figure(chips, chips, chips, plan.pace.basis, False)
    if not paid:
        tokens = plan.tokens_per_s
        return Figure(1 / tokens.mid, 1 / tokens.high, 1 / tokens.low, tokens.basis, tokens.provisional)
    if w.driven:
        price = plan.price
        return Figure(price.mid, price.low, price.high, "published", False) if price else None
    if plan.price is None:
        return None
    # all that a request costs, per output token: the split between input and output does not rank
    tokens, share = plan.tokens_per_s, _paid_share(plan.chips, plan.price, full=_full(w))
    mid, low, high = (
        share * usd / 3600.0 / rate * 1e6
        for usd, rate in ((plan.price.mid, tokens.mid), (plan.price.low, tokens.high), (plan.price.high, tokens.low))
    )
    return Figure(mid, low, high, tokens.basis, tokens.provisional)
