"""What a fleet is asked, and its candidates: what the search finds for each demand on each chip, on chips that several
share, on replicas that serve several, and from APIs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from math import ceil, floor
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.api.deciding import apis
from chipwise.api.portfolio_cards import (
    MOST_SHARING,
    CardPart,
    SmallDemand,
    apart,
    cards,
    parts_of,
    resting,
    sleeper_of,
    whole,
)
from chipwise.api.portfolio_chain import LONGER, PARTS, CalledModel, ChainStep, Taken, TimedChain, asked_at, worth
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.api.scaling import start_up_s
from chipwise.catalog.chips import get_chip
from chipwise.catalog.price import Pricing, Rent
from chipwise.catalog.snapshot import today
from chipwise.errors import InfeasibleError, UsageError
from chipwise.predict.training.course import Failures
from chipwise.report.assemble import price_record
from chipwise.report.decision import ApiRecord
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanRecord
from chipwise.report.portfolio import API, OWN, RENT, pooled
from chipwise.report.records import Figure
from chipwise.report.training import TrainPlanRecord
from chipwise.search.assignment import HOUR_S, TIDY, Effort
from chipwise.values import dataclass
from chipwise.workload.workload import CONFIDENCE, UTILISATION

DAY_S = 24.0 * HOUR_S
WAIT_S = Failures().wait_s
"""seconds: until there is another machine in place of one that was taken away, as of training."""
MANY = 4096
"""Chips of a kind that a question asks about, so that none of its layouts is left out; the assignment counts them."""
MOST_LAYOUTS = 4
"""Layouts of a demand on a chip that are candidates: the smallest, and those that do most with a chip."""
END = NormalDist().inv_cdf(0.9)  # standard deviations from the middle of an interval to its end


@dataclass(frozen=True)
class Demand:
    """What is to run: a `question` that plans it alone, at its peak; `rates_per_s` in the slices of its day (none: a
    job), `tokens` of output a day of a job (of a network samples), which may run in `hours` (from, how many; all day:
    0, 24). `on` names the supplies that it may use (none: all), `adapters` those of one model that it serves together,
    `licence` is that of its weights ("": not said). A `step` of a chain has calls of its model for rates, and a target
    of the chain's in its question (None: it is one by itself)."""

    name: str
    question: PlanRequest | TrainRequest
    asked: str
    command: str
    priority: int = 0
    rates_per_s: tuple[float, ...] = ()
    tokens: float = 0.0
    hours: tuple[float, float] = (0.0, 24.0)
    on: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    licence: str = ""
    step: ChainStep | None = None

    @property
    def whole(self) -> str:
        """The name of what it is: that of the chain of which it is a step."""
        return self.step.chain.name if self.step else self.name

    @property
    def training(self) -> bool:
        """Whether it is a run of training, which keeps its chips all day."""
        return isinstance(self.question, TrainRequest)


@dataclass(frozen=True)
class Supply:
    """What demands may run on: `chips` of a `chip` that one owns or may rent (None: no limit) in machines of
    `per_machine`, of which `spare` stay free, or APIs of `providers` (none: any), of which one answers in `ttft_s` and
    `tpot_s` a token, as its user measured (None: not said). `pricing` says how it is paid. Each machine is taken away
    every `preempt_s` in the mean, and there is another after `wait_s`."""

    name: str
    kind: str
    chip: str = ""
    chips: int | None = None
    per_machine: int = 1
    spare: int = 0
    pricing: Pricing = field(default_factory=Pricing)
    providers: tuple[str, ...] = ()
    preempt_s: float = np.inf
    wait_s: float = WAIT_S
    ttft_s: float | None = None
    tpot_s: float | None = None

    def kept(self, chips: int, lost_s: float, start_s: float) -> float:
        """The share of its work that what runs on so many chips gets done: whichever of its machines is taken away,
        `lost_s` of work are lost, and it goes on `start_s` after there is another one."""
        often = ceil(chips / self.per_machine) / self.preempt_s
        return max(1.0 - often * lost_s, 0.0) / (1.0 + often * (self.wait_s + start_s))

    @property
    def room(self) -> float:
        """Chips that may be at work at once."""
        return np.inf if self.chips is None else float(max(self.chips - self.spare * self.per_machine, 0))

    @property
    def machines(self) -> int | None:
        """Machines that it has."""
        return None if self.chips is None else self.chips // self.per_machine


@dataclass(frozen=True)
class Pool:
    """Demands with one model, by number, that the same replicas may serve: the `question` about all of them, and the
    part of the requests that are of each."""

    demands: tuple[int, ...]
    question: PlanRequest
    parts: tuple[float, ...]


@dataclass(frozen=True)
class FleetAsked:
    """Demands and supplies, and what holds for all: dollars per hour at any time, watts of what one owns, the price of
    its power, whether a machine serves several demands; how long the assignment may take and how near it gets; and
    which demands the same replicas may serve, and the `licences` that weights may have (none: any)."""

    demands: tuple[Demand, ...]
    supplies: tuple[Supply, ...]
    max_usd_per_h: float = np.inf
    max_watts: float = np.inf
    usd_per_kwh: float = 0.0
    mixed: bool = True
    effort: Effort = Effort(30.0, 0.01)
    pools: tuple[Pool, ...] = ()
    licences: tuple[str, ...] = ()

    def allowed(self, demand: Demand, supply: Supply) -> bool:
        """Whether the licence of its weights lets a demand run there; an API has terms of its own."""
        return not self.licences or supply.kind == API or demand.licence in self.licences

    def question_of(self, row: Mapping[str, Any]) -> PlanRequest | TrainRequest:
        """What a placement, a row of the answer, is asked about: its demand, or all that the same replicas serve."""
        at = {d.name: i for i, d in enumerate(self.demands)}
        mine = at[row["demand"]]
        if not pooled(row):
            return self.demands[mine].question
        return next(pool.question for pool in self.pools if mine in pool.demands)

    @property
    def further(self) -> Effort:
        """How long each question about another supply may take."""
        return replace(self.effort, seconds=self.effort.seconds / 3.0)

    @property
    def chains(self) -> Mapping[str, tuple[int, ...]]:
        """Demands by what they are: one by itself, or the steps of a chain in their order."""
        found: dict[str, tuple[int, ...]] = {}
        for d, demand in enumerate(self.demands):
            found[demand.whole] = (*found.get(demand.whole, ()), d)
        return found

    @property
    def slices(self) -> int:
        """Slices of the day: those of the curves, and hours where a job has its own."""
        counts = [len(d.rates_per_s) or 1 for d in self.demands]
        counts += [24 for d in self.demands if d.tokens and d.hours[1] < 24.0]
        return int(np.lcm.reduce(counts))


@dataclass(frozen=True)
class FleetWay:
    """One candidate: a unit of a demand on a supply, which is so many `replicas`; or its `part` of a `card` that it
    shares with others, or of replicas that serve others too: of all requests of the `pool` the part `pooled`. Tokens
    of an API are `sold`."""

    demand: int
    supply: int
    rate: float
    chips: float
    usd_per_h: float
    watts: float
    replicas: int = 1
    whole: bool = True
    held: bool = False
    plan: PlanRecord | MediaPlan | TrainPlanRecord | CalledModel | None = None
    sold: ApiRecord | None = None
    card: int = -1
    part: CardPart | None = None
    pool: Pool | None = None
    pooled: float = 1.0


@dataclass(frozen=True)
class Candidates:
    """All `ways`; which of them together miss the target of a chain (`clashes`); why demands have none (`never`), what
    keeps demands from sharing a card (`apart`), and steps of chains that have some from an API (`unsold`)."""

    ways: Sequence[FleetWay]
    clashes: tuple[tuple[int, ...], ...]
    never: Mapping[str, str]
    apart: tuple[str, ...] = ()
    unsold: tuple[str, ...] = ()


def candidates_of(asked: FleetAsked) -> Candidates:
    """The candidates of all demands."""
    ways, never, unsold = _ways(asked)
    ways, alone = _shared(asked, [*ways, *_pooled(asked)]) if asked.mixed else (ways, ())
    ways, clashes = _chained(asked, ways, never)
    return Candidates(ways, clashes, never, tuple(alone), unsold)


def _ways(asked: FleetAsked) -> tuple[list[FleetWay], dict[str, str], tuple[str, ...]]:
    """All candidates, why demands have none, and why steps of chains that have some cannot call an API."""
    ways: list[FleetWay] = []
    never: dict[str, str] = {}
    unsold: list[str] = []
    for d, demand in enumerate(asked.demands):
        named = [p for p, s in enumerate(asked.supplies) if not demand.on or s.name in demand.on]
        usable = [p for p in named if asked.allowed(demand, asked.supplies[p])]
        why: list[str] = []
        if len(usable) < len(named):
            why.append(f"its licence, {demand.licence}, is none of {', '.join(asked.licences)}")
        kind = _trained if demand.training else _stepped if demand.step else _served
        mine = list(kind(asked, d, usable, why))
        if not mine:
            said = "; ".join(dict.fromkeys(why)) or "no supply can run it"
            never.setdefault(demand.whole, f"{demand.step.name}: {said}" if demand.step else said)
        ways += mine
        unsold += _unsold(asked, demand, why) if mine else []
    return ways, never, tuple(dict.fromkeys(unsold))


def _unsold(asked: FleetAsked, demand: Demand, why: Sequence[str]) -> list[str]:
    """Why a step of a chain calls no API, of all that is said of it."""
    sold = tuple(f"{supply.name}: " for supply in asked.supplies if supply.kind == API)
    if demand.step is None or not demand.step.output:
        return []
    return [f"{demand.name} does not call {said}" for said in why if said.startswith(sold)]


def _stepped(asked: FleetAsked, d: int, usable: Sequence[int], why: list[str]) -> Iterator[FleetWay]:
    """Candidates of a step of a chain: what the search finds for it at several targets of its own."""
    demand = asked.demands[d]
    question, step = demand.question, demand.step
    assert isinstance(question, PlanRequest)
    assert step is not None
    places = [p for p in usable if asked.supplies[p].kind != API]
    chips = list(dict.fromkeys(asked.supplies[p].chip for p in places))
    for p in usable:
        if asked.supplies[p].kind == API:
            yield from _called_step(asked, d, p, why)
    found = _at_targets(question, step, chips, why)
    seen = set()
    for p in places:
        for plan in found:
            way = _way(asked, d, p, plan) if plan.chip == asked.supplies[p].chip else None
            key = way and (p, plan.runtime, plan.precision, way.chips, way.rate, step.times(plan))
            if way and way.chips <= asked.supplies[p].room and key not in seen:
                seen.add(key)
                yield way


def _at_targets(
    question: PlanRequest, step: ChainStep, chips: Sequence[str], why: list[str]
) -> list[PlanRecord | MediaPlan]:
    """The plans of a step at ever tighter targets on the chips that keep them, but for those chips whose plans at hand
    take less already; at looser ones where no chip keeps the target of the chain alone. None of no chips."""
    found: list[PlanRecord | MediaPlan] = []
    least = dict.fromkeys(chips, np.inf)
    for part in PARTS if chips else ():
        slower = [chip for chip, taken in least.items() if taken > part]
        here = _asked_for(question, step, part, slower, why)
        for chip in slower:
            mine = [step.part(plan) for plan in here if plan.chip == chip]
            least = {**least, chip: min(mine)} if mine else {c: s for c, s in least.items() if c != chip}
        found += here
    for part in () if found or not chips else LONGER:
        found = found or _asked_for(question, step, part, chips, why)
    return found


def _asked_for(
    question: PlanRequest, step: ChainStep, part: float, chips: Sequence[str], why: list[str]
) -> list[PlanRecord | MediaPlan]:
    """The plans of a step that takes at most this part of its chain's target; none of no chips."""
    asked = [replace(question, **asked_at(question, said)) for said in step.targets(part)]
    return [plan for one in asked if chips for plan in _plans(one, chips, why)]


def _chained(
    asked: FleetAsked, ways: Sequence[FleetWay], never: dict[str, str]
) -> tuple[list[FleetWay], tuple[tuple[int, ...], ...]]:
    """The candidates without those that no chain has use for, and which of them clash, as together they miss the target
    of a chain; `never` takes up why a chain has none that keep it."""
    left = np.ones(len(ways), dtype=bool)
    clashes: list[tuple[int, ...]] = []
    for name, steps in asked.chains.items():
        found = _timed(asked, ways, steps)
        if found is None:
            continue
        chain, at = found
        left[[k for k, way in enumerate(ways) if way.demand in steps]] = False
        if said := chain.unreachable():
            never.setdefault(name, said)
            continue
        left[[k for its in at for k in its]] = True
        for clash in chain.clashes():
            mine = tuple(at[step][i] for step, i in clash)
            if len(mine) == 1:
                left[mine[0]] = False
            else:
                clashes.append(mine)
    return _left(ways, left, clashes)


def _left(
    ways: Sequence[FleetWay], left: NDArray[np.bool_], clashes: Sequence[tuple[int, ...]]
) -> tuple[list[FleetWay], tuple[tuple[int, ...], ...]]:
    """The candidates that are left, cards with all who share them, and the clashes between them."""
    gone = {way.card for way, is_left in zip(ways, left, strict=True) if not is_left} - {-1}
    left = left & np.array([way.card not in gone for way in ways], dtype=bool)
    number = np.cumsum(left) - 1
    kept = [tuple(int(number[k]) for k in clash) for clash in clashes if left[list(clash)].all()]
    return [way for way, is_left in zip(ways, left, strict=True) if is_left], tuple(kept)


def _timed(
    asked: FleetAsked, ways: Sequence[FleetWay], steps: Sequence[int]
) -> tuple[TimedChain, list[list[int]]] | None:
    """A chain with those candidates of its steps that are worth adding up, and which these are; None for a demand by
    itself, and where a step has none. Steps do not sleep by turns."""
    step = asked.demands[steps[0]].step
    if step is None:
        return None
    mine = [list(_awake(ways, d)) for d in steps]
    if not all(mine):
        return None
    taken = [[taken_by(asked, ways[k]) for k in its] for its in mine]
    kept = worth(taken)
    names = tuple(s.name for d in steps if (s := asked.demands[d].step))
    chain = TimedChain(step.chain, names, tuple(tuple(t[i] for i in its) for t, its in zip(taken, kept, strict=True)))
    return chain, [[ks[i] for i in its] for ks, its in zip(mine, kept, strict=True)]


def _awake(ways: Sequence[FleetWay], d: int) -> Iterator[int]:
    """The candidates of a demand in which it does not sleep by turns."""
    for k, way in enumerate(ways):
        if way.demand == d and (way.part is None or way.part.asleep is None):
            yield k


def taken_by(asked: FleetAsked, way: FleetWay) -> Taken:
    """The times of a candidate of a step of a chain, and what they cost."""
    demand = asked.demands[way.demand]
    assert demand.step is not None
    assert isinstance(way.plan, PlanRecord | MediaPlan | CalledModel)
    useful = min(way.rate, max(demand.rates_per_s))
    cost = (way.usd_per_h + TIDY * way.chips) / useful
    times, late = demand.step.times(way.plan), demand.step.late(way.plan)
    return Taken(way.plan, times, cost, (way.supply, way.card >= 0), late)


def _pooled(asked: FleetAsked) -> Iterator[FleetWay]:
    """Candidates that serve several demands with one model: of each replica a demand has its part of the requests."""
    number = count()
    for pool in asked.pools:
        first = pool.demands[0]
        on = asked.demands[first].on
        usable = [
            p
            for p, s in enumerate(asked.supplies)
            if s.kind != API and (not on or s.name in on) and asked.allowed(asked.demands[first], s)
        ]
        plans = _plans(pool.question, list(dict.fromkeys(asked.supplies[p].chip for p in usable)), [])
        for p in usable:
            mine = [plan for plan in plans if plan.chip == asked.supplies[p].chip]
            for way in _placed(asked, first, p, mine, []):
                card = next(number)
                for d, part in zip(pool.demands, pool.parts, strict=True):
                    each = {name: getattr(way, name) * part for name in ("rate", "chips", "usd_per_h", "watts")}
                    yield replace(way, demand=d, card=card, pool=pool, pooled=part, **each)


def _shared(asked: FleetAsked, ways: Sequence[FleetWay]) -> tuple[list[FleetWay], tuple[str, ...]]:
    """The candidates with those on shared cards, and what keeps demands from sharing one. Demands that one chip carries
    at their peak share chips that are had one by one."""
    found, why = list(ways), list[str]()
    known: dict[tuple[int, str], tuple[CardPart, ...]] = {}
    for p, supply in enumerate(asked.supplies):
        here = [(_smallest(asked, way), way) for way in ways if way.supply == p and _small(asked, way)]
        here.sort(key=lambda pair: -pair[0].answer_s)  # of each demand the fastest stays
        single = {small.demand: (small, way) for small, way in here}
        smalls = sorted((small for small, _ in single.values()), key=lambda s: s.rate)[:MOST_SHARING]
        if len(smalls) < 2:
            continue
        parts = _parts(supply.chip, smalls, known)
        why += apart(supply.chip, smalls, parts)
        first = max(w.card for w in found) + 1
        for number, card in enumerate(cards(list(filter(None, parts))), first):
            found += [_on_card(part, single[part.small.demand][1], number, card, supply) for part in card]
    return found, tuple(dict.fromkeys(why))


def _parts(
    chip: str, smalls: Sequence[SmallDemand], known: dict[tuple[int, str], tuple[CardPart, ...]]
) -> list[tuple[CardPart, ...]]:
    """The parts of a chip on which demands keep their targets, asleep only where some do not fit on it together;
    `known` keeps them for other supplies."""
    for small in smalls:
        if (small.demand, chip) not in known:
            known[small.demand, chip] = parts_of(small)
    parts = [known[small.demand, chip] for small in smalls]
    if not any(apart(chip, smalls, parts)):
        return parts
    for small in smalls:
        mine = known[small.demand, chip]
        if not any(part.asleep for part in mine) and (asleep := sleeper_of(small)):
            known[small.demand, chip] = (*mine, asleep)
    return [known[small.demand, chip] for small in smalls]


def _small(asked: FleetAsked, way: FleetWay) -> bool:
    """Whether one chip, had alone, carries the peak of a demand that is served."""
    rates = asked.demands[way.demand].rates_per_s
    alone = way.card < 0 and way.plan is not None and way.chips == 1.0
    stays = asked.supplies[way.supply].preempt_s == np.inf
    return bool(rates) and alone and stays and way.rate >= max(rates)


def _smallest(asked: FleetAsked, way: FleetWay) -> SmallDemand:
    demand = asked.demands[way.demand]
    assert isinstance(demand.question, PlanRequest)
    assert isinstance(way.plan, PlanRecord | MediaPlan)
    return SmallDemand(way.demand, demand.name, demand.question, way.plan, max(demand.rates_per_s))


def _on_card(part: CardPart, alone: FleetWay, number: int, card: Sequence[CardPart], supply: Supply) -> FleetWay:
    """A part of a shared card as a candidate: its part of one chip and its rent, by memory; on a chip that one owns
    the power that the demand would draw alone."""
    chips = part.memory / sum(other.memory for other in card)
    usd = alone.usd_per_h * (chips if supply.kind == RENT else 1.0)
    here = replace(alone, rate=part.small.rate, chips=chips, usd_per_h=usd, plan=part.plan, replicas=1)
    return replace(here, card=number, part=part)


def _served(asked: FleetAsked, d: int, usable: Sequence[int], why: list[str]) -> Iterator[FleetWay]:
    """Candidates of a demand that generates tokens: what the search finds for it on all chips at once."""
    question = asked.demands[d].question
    assert isinstance(question, PlanRequest)
    supplies = [asked.supplies[p] for p in usable]
    chips = dict.fromkeys(s.chip for s in supplies if s.kind != API)
    rented = ",".join(dict.fromkeys(s.chip for s in supplies if s.kind == RENT))
    plans = _plans(question, list(chips), why) if chips else []
    for p, supply in zip(usable, supplies, strict=True):
        if supply.kind == API:
            yield from _called(asked, d, p, rented, why)
        else:
            yield from _placed(asked, d, p, [plan for plan in plans if plan.chip == supply.chip], why)


def _placed(asked: FleetAsked, d: int, p: int, plans: Sequence[PlanRecord], why: list[str]) -> Iterator[FleetWay]:
    """Candidates of a demand on the chips of a supply, of which these are the plans."""
    supply = asked.supplies[p]
    paid = [way for plan in plans if (way := _way(asked, d, p, plan)) is not None]
    some = _useful([w for w in paid if w.chips <= supply.room])
    if paid and not some:
        least = min(w.chips for w in paid)
        why.append(f"a replica takes {least:g} chips, {supply.name} has {supply.room:g}")
    if plans and not paid:
        why.append(f"no price is known for {supply.chip} of {supply.name}")
    yield from some


def _plans(question: PlanRequest, chips: Sequence[str], why: list[str]) -> list[Any]:
    """The plans of a demand on as many chips of each kind as it wants that keep its targets."""
    try:
        report = replace(question, have=",".join(f"{MANY}x{c}" for c in chips)).ranked(None, published=False).report
    except InfeasibleError as error:
        why.append(error.what)
        return []
    sure = [p for p in report.plans if p.keeps_targets(report.sure) and whole(p)]
    why += [f"{r.chip}: {r.detail}" for r in report.refused]
    if not sure:
        why.append("no plan meets the targets as surely as was asked")
    return sure


def _way(asked: FleetAsked, d: int, p: int, plan: PlanRecord | MediaPlan) -> FleetWay | None:
    """A plan as a candidate on a supply; None where no price is known."""
    demand, supply = asked.demands[d], asked.supplies[p]
    question = demand.question
    each = plan.chips // plan.replicas
    if demand.step:
        rate = max(demand.rates_per_s) / (plan.replicas - plan.spare)  # its times are those at this load
    elif demand.tokens:
        made = plan.samples_per_s if isinstance(plan, MediaPlan) else plan.tokens_per_s
        rate = _surely(made, question) / plan.replicas
    else:
        assert isinstance(plan, PlanRecord)
        used = UTILISATION if question.values.get("utilisation") is None else question.values["utilisation"]
        rate = plan.largest_requests_per_s / (plan.replicas - plan.spare) * used
    watts = 0.0 if plan.energy is None else plan.energy.wall_w.high / plan.replicas
    if supply.kind == OWN:
        power = 0.0 if plan.energy is None else plan.energy.wall_w.mid / plan.replicas / 1000.0
        chips = _footprint(each, supply.per_machine)
        return FleetWay(d, p, rate, chips, power * asked.usd_per_kwh, watts, plan=plan)
    basis = supply.pricing.basis(supply.chip, today())
    price = price_record(basis, each, min(each, supply.per_machine)) if isinstance(basis, Rent) else None
    if price is None:
        return None
    rate *= _kept(supply, plan, question)
    replicas = max(floor(price.billed / each), 1)
    return FleetWay(
        d, p, rate * replicas, float(price.billed), price.mid, 0.0, replicas, plan=replace(plan, price=price)
    )


def _kept(supply: Supply, plan: PlanRecord | MediaPlan, question: Any) -> float:
    """The share of its work that a replica on a supply gets done: of requests that are under way when a machine goes
    half is done."""
    each = plan.chips // plan.replicas
    chip = get_chip(plan.chip)
    if isinstance(plan, MediaPlan):
        answer_s, held = plan.latency_s.mid, plan.memory_bytes
    else:
        answer_s, held = plan.answer_s(question.workload_of(question.task).output_tokens), resting(plan)[0]
    weights = held * each * chip.devices_per_package
    start_s = start_up_s(weights, chip, each, ceil(each / supply.per_machine))
    return supply.kept(each, answer_s / 2.0, start_s)


def _surely(figure: Figure, question: Any) -> float:
    """A throughput that is reached with the probability that was asked, by the interval."""
    sure = CONFIDENCE if question.confidence is None else question.values["confidence"]
    deviations = NormalDist().inv_cdf(sure) / END
    return float(figure.mid * (figure.low / figure.mid) ** deviations)


def _footprint(chips: int, machine: int) -> float:
    """Chips of machines that a replica takes, so that any number of them can be packed: a part of a machine that
    divides it, or whole machines."""
    if chips >= machine:
        return float(-(-chips // machine) * machine)
    return float(next(n for n in range(chips, machine + 1) if machine % n == 0))


def _useful(ways: list[FleetWay]) -> list[FleetWay]:
    """The candidates of a demand on a supply that no other beats: the one with the fewest chips, and those that do most
    for a chip."""
    kept = [
        w
        for w in ways
        if not any(
            o is not w and (o.chips, o.usd_per_h, -o.rate) <= (w.chips, w.usd_per_h, -w.rate)
            and o.chips <= w.chips and o.usd_per_h <= w.usd_per_h and o.rate >= w.rate
            and (o.chips, o.usd_per_h, o.rate) != (w.chips, w.usd_per_h, w.rate)
            for o in ways
        )
    ]  # fmt: skip
    kept = list({(w.chips, w.usd_per_h, w.rate): w for w in reversed(kept)}.values())[::-1]
    kept.sort(key=lambda w: w.chips)
    rest = sorted(kept[1:], key=lambda w: -w.rate / w.chips)
    return [*kept[:1], *rest[: MOST_LAYOUTS - 1]]


def _called(asked: FleetAsked, d: int, p: int, rented: str, why: list[str]) -> Iterator[FleetWay]:
    """Tokens of the demand's model from the cheapest API of a supply: as much of it as is wanted. A plan on `rented`
    chips (none: any for rent) is what they are compared with."""
    demand, supply = asked.demands[d], asked.supplies[p]
    question = demand.question
    assert isinstance(question, PlanRequest)
    try:
        report = replace(question, chips=rented or None).ranked(None, published=False).report
    except InfeasibleError as error:
        why.append(error.what)
        return
    priced = next((plan for plan in report.plans if plan.price), None)
    workload = question.workload_of(question.task)
    mine = apis(priced, report.model.name, workload, today(), supply.providers) if priced else ()
    if not mine:
        why.append(f"{supply.name}: no price of tokens of {report.model.name} is known")
        return
    rate = workload.output_tokens if demand.tokens else 1.0
    yield FleetWay(d, p, rate, 0.0, HOUR_S * mine[0].usd_per_request, 0.0, whole=False, sold=mine[0])


def _called_step(asked: FleetAsked, d: int, p: int, why: list[str]) -> Iterator[FleetWay]:
    """The same of a step of a chain, as fast as is said of the supply."""
    demand, supply = asked.demands[d], asked.supplies[p]
    question = demand.question
    assert isinstance(question, PlanRequest)
    if question.media(question.model):
        why.append(f"{supply.name}: no API of {question.model} is known, which generates no tokens")
        return
    if supply.ttft_s is None or supply.tpot_s is None:
        what = f"{supply.name}: its speed is not known, and a step of a chain needs it"
        why.append(f'{what} (measure it: ttft = "600ms", tpot = "12ms" and the provider in its [[supply]])')
        return
    free = replace(question, ttft=None, tpot=None, e2e=None, percentile=None, confidence=None)
    first, each = (Figure(s, s, s, "measured", False) for s in (supply.ttft_s, supply.tpot_s))
    alone = replace(demand, question=free)
    others = replace(asked, demands=(*asked.demands[:d], alone, *asked.demands[d + 1 :]))
    for way in _called(others, d, p, "", why):
        yield replace(way, plan=CalledModel(way.sold.provider if way.sold else supply.name, first, each))


def _trained(asked: FleetAsked, d: int, usable: Sequence[int], why: list[str]) -> Iterator[FleetWay]:
    """Candidates of a run of training: each count of chips with which it is done by its deadline."""
    question = asked.demands[d].question
    assert isinstance(question, TrainRequest)
    sure = CONFIDENCE if question.confidence is None else question.values["confidence"]
    for p in usable:
        supply = asked.supplies[p]
        if supply.kind == API:
            continue
        try:
            plans = _at(question, supply).ranked(published=False).report.plans
        except InfeasibleError as error:
            why.append(error.what)
            continue
        kept = [plan for plan in plans if plan.chance is None or plan.chance >= sure]
        if not kept:
            where = f"{supply.chip} of {supply.name}"
            why.append(f"{where}: no count of chips is done by the deadline as surely as asked")
        yield from (way for plan in kept if (way := _run(asked, d, p, plan)) is not None)


def _at(question: TrainRequest, supply: Supply) -> TrainRequest:
    """A run of training on the chips of a supply."""
    paid = supply.pricing
    if supply.kind == OWN:
        return replace(question, have=f"{supply.chips or MANY}x{supply.chip}")
    given = ",".join(f"{chip}={usd:.10g}" for chip, usd in paid.given.items()) or None
    failures = [f"{name}={value}" for name, value in (question.values["failures"] or {}).items()]
    if supply.preempt_s < np.inf:
        failures += [f"preempt={supply.preempt_s:.10g}s", f"wait={supply.wait_s:.10g}s"]
    return replace(
        question,
        failures=",".join(failures) or None,
        chips=supply.chip,
        price=paid.kind,
        provider=paid.provider,
        region=paid.region,
        price_of=given,
    )


def _run(asked: FleetAsked, d: int, p: int, plan: TrainPlanRecord) -> FleetWay | None:
    """A plan of training as a candidate; None where it has no price, or takes more chips than there are."""
    supply, power = asked.supplies[p], plan.energy.wall_w if plan.energy else None
    if supply.kind == OWN:
        chips = _footprint(plan.chips, supply.per_machine)
        usd = power.mid / 1000.0 * asked.usd_per_kwh if power else 0.0
        way = FleetWay(d, p, 1.0, chips, usd, power.high if power else 0.0, held=True, plan=plan)
    elif plan.price is not None:
        way = FleetWay(d, p, 1.0, float(plan.price.billed), plan.price.mid, 0.0, held=True, plan=plan)
    else:
        return None
    return way if way.chips <= supply.room else None


def check_names(asked: FleetAsked) -> None:
    """Raises `UsageError` for two demands or supplies of one name, and for a day cut too finely."""
    for what, names in (("demand", [d.name for d in asked.demands]), ("supply", [s.name for s in asked.supplies])):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise UsageError(f"two of {what} are called {twice}", "give each another name", field="fleet")
    if asked.slices > MOST_SLICES:
        what = f"the curves of the demands cut the day into {asked.slices} slices"
        raise UsageError(what, f"at most {MOST_SLICES}: give all the same number, e.g. 24", field="fleet")


MOST_SLICES = 96
"""Of a day: quarters of an hour."""
