"""`plan`: the best plan of every chip for a workload. This page is the architecture in order:

configuration -> model -> graph -> deployments -> candidates -> predictions -> choices -> estimates -> report
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from chipwise.api.alternatives import levers
from chipwise.api.answering import Preferred, ranked
from chipwise.api.candidates import CandidateFormat, Market, Space, converted, formats
from chipwise.api.context import Context
from chipwise.api.deciding import apis, decision
from chipwise.api.desk import assembled, machine_record, token_s
from chipwise.api.estimating import AskedLoad, asked
from chipwise.api.infeasible import kept_with, no_plan, refusal_record, unmet, ways_out, wider
from chipwise.api.nearest import beside_published
from chipwise.api.over_time import over_time
from chipwise.api.placing import Given, Terms
from chipwise.api.remedies import Unmet
from chipwise.api.scaling import start_up_s
from chipwise.api.scaling_day import DayHeld, over_a_day
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.failures import failing_fleets
from chipwise.catalog.machine import DESKS, Machine, parse_machine
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Pricing, Rent
from chipwise.catalog.system import systems_for
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError, shorten
from chipwise.parallel.layout import Layout, Reason
from chipwise.predict.fleet import Day, at_most_away, over_day
from chipwise.report.assemble import cheapest_plan, fully_ready, goal, model_record, rank_plans, workload_record
from chipwise.report.energy import Powered
from chipwise.report.plans import LeverRecord, PlanRecord, PlanReport, UpRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.choose import Refusal
from chipwise.search.deployments import few_of, machine_for
from chipwise.search.reach import NOWHERE, Reach
from chipwise.search.space import FEW_WORDS, Limits
from chipwise.search.targets import meets
from chipwise.units import format_number
from chipwise.values import dataclass
from chipwise.workload.curve import RateCurve
from chipwise.workload.workload import Workload


def plan(
    model: str,
    workload: Workload,
    terms: Terms | None = None,
    *,
    chips: Sequence[str] = (),
    limits: Limits | None = None,
    curve: RateCurve | None = None,
    published: bool = True,
) -> PlanReport:
    """The best plan of every chip, ranked, with what was refused and why, what would make the first cheaper, and tokens
    from an API. Arguments and errors are those of `PlansAsked.of`; raises `InfeasibleError` where no chip has a plan
    too."""
    asked = PlansAsked.of(model, workload, terms, chips, limits, curve=curve, published=published)
    return ranked(asked).whole()


SLOWER = 1.05
"""ratio: how far the passes of the parts of a machine alone may be above the pace that is wanted. Chosen: what a whole
prediction adds to them only makes it slower; moves how many placements are predicted in full."""


def desk_plan(
    model: str, workload: Workload, terms: Terms, machine: Machine, *, every: bool = True
) -> tuple[PlanRecord | None, Space]:
    """The plan that comes first on the parts of a machine, None where there is none, and what the search has found; of
    formats of 4 bits and more alone unless `every` one is of use. Raises `InfeasibleError` where no format can be had
    there; `UsageError` and `UnknownNameError` for bad input."""
    asked = replace(PlansAsked.at_desk(model, workload, terms, machine), every=every)
    found = asked.candidates()
    return next(iter(rank_plans(found.plans, asked.workload)), None), found.space


@dataclass(frozen=True)
class PlansFound:
    """What the search has found, and the best plans of it, in no order. `firm`: what it has found for targets that hold
    as surely as was asked, where `space` is what there is for less (None: it is that)."""

    space: Space
    plans: list[PlanRecord]
    firm: Space | None = None

    @property
    def workload(self) -> Workload:
        """What these plans are for."""
        return self.space.workload

    @property
    def less(self) -> bool:
        """Whether they are for less certainty than was asked."""
        return self.firm is not None and self.workload.confidence < self.firm.workload.confidence


@dataclass(frozen=True)
class PlansAsked:
    """A question about plans of a language model, read (`answering.Choosing`): what is searched where, the machine
    whose parts one user has together, the arrivals of a day, whether published results stand beside, and whether
    `every` format is tried."""

    model: str
    terms: Terms
    context: Context
    market: Market
    machine: Machine | None
    curve: RateCurve | None = None
    published: bool = True
    every: bool = True

    @classmethod
    def of(
        cls,
        model: str,
        workload: Workload,
        terms: Terms | None = None,
        chips: Sequence[str] = (),
        limits: Limits | None = None,
        *,
        curve: RateCurve | None = None,
        published: bool = True,
    ) -> PlansAsked:
        """The best plan of every chip.

        `chips` (names or TOML files) or the chips that one has (`limits.have`; they cost nothing) restrict the search.
        All software that can run the model is tried, unless the terms name one. The best plan of each chip is listed,
        or of what `limits.by` says; of chips that one has the best of each layout and format. The arrivals of a day
        (`curve`) are what a fleet sized for the rate is judged on. `published`: the nearest published results stand
        beside the first plans and move nothing in them. Raises `UsageError`, `UnknownNameError`; `InfeasibleError`
        where the watts feed no chip.
        """
        terms, limits = terms or Terms(), limits or limits_for(workload.task)
        have = limits.have
        terms = replace(terms, runtime=terms.named)
        context = terms.context(model, workload, owned=bool(have))
        workload = context.workload
        machine = _machine(limits, workload, terms)
        wanted = [terms.chip(c) for c in have or chips or _everything(workload)]
        nobodys = not (have or chips) and workload.task != "local"
        limits = bounded(limits, wanted, context.numbers, context.basis if nobodys else None)
        market = Market(wanted, terms.runtime, terms.policy, limits, named=bool(have or chips))
        return cls(model, terms, context, market, machine, curve, published)

    @classmethod
    def at_desk(cls, model: str, workload: Workload, terms: Terms, machine: Machine) -> PlansAsked:
        """The same of the parts of one machine. Raises `UsageError`, `UnknownNameError`."""
        context = terms.context(model, workload, owned=True)
        host = machine.host
        parts = [*machine.cards, *([(host.chip, host.sockets)] if host and not host.assumed else [])]
        limits = replace(limits_for("local"), have={c.id: n for c, n in parts}, first_alone=True)
        wanted = [terms.card(c) for c, _ in parts]
        return cls(model, terms, context, Market(wanted, terms.runtime, terms.policy, limits), machine)

    @property
    def workload(self) -> Workload:
        """What is asked of the model."""
        return self.context.workload

    def candidates(self) -> PlansFound:
        """What the search finds; where targets that hold as surely as asked are not to be had within the limits, or
        cost `sure` times as much as likely ones and nobody named that certainty, what it finds for less."""
        found = self._found()
        if self.workload.task == "local" or not found.space.searched:
            return found
        return self._likely(found) or self._nearest(found) or found

    def _likely(self, found: PlansFound) -> PlansFound | None:
        """Plans that keep their targets with the probability `likely`, where the rest of what was asked costs too much
        or is not to be had, and was not named; not where they in turn cost too much beside the likeliest."""
        p, w = preferences(), self.workload
        dollars = w.job is not None and w.job.max_usd is not None  # of which no chance is told
        if w.firm or dollars or w.confidence <= p.likely:
            return None
        best = next(iter(rank_plans(found.plans, w)), None)
        if best and self.market.limits.have:  # whoever owns chips pays nothing for certainty
            return None
        if best and best.keeps_targets(w.confidence) and best.load >= p.idle * w.utilisation:
            return None
        space = found.space.anew(replace(w, confidence=p.likely), self.market.limits)
        plans = space.plans()
        other = next(iter(rank_plans(plans, space.workload)), None)
        keeps = other is not None and other.keeps_targets(p.likely)
        if other is None or not keeps or (best is not None and not _pays(best, other, w)):
            return None
        return PlansFound(space, plans, found.space)

    def _nearest(self, found: PlansFound) -> PlansFound | None:
        """Where there is no plan at all, those that take all that the limits allow."""
        if found.plans:
            return None
        space = found.space.anew(self.workload, replace(self.market.limits, nearest=True))
        plans = space.plans()
        return PlansFound(space, plans, found.space) if plans else None

    def _found(self) -> PlansFound:
        """What the search finds; the parts of a machine together are one of the plans."""
        room = np.inf if self.machine is None else self.machine.memory_bytes
        several = self.workload.task == "local" and max(self.market.limits.have.values(), default=1) > 1
        asked = self.model, self.context, self.terms, self.market.chips, room
        tried = formats(*asked, every=self.every, several=several)
        first = self.market.limits.first_alone
        space = Space.over(self.market, _widest_first(tried) if first else tried)
        plans = space.plans()
        if self.machine is None or self.machine.alone:
            return PlansFound(space, plans)
        cards = self.machine.cards
        if first and len(cards) == 1 and space.ready(cards[0][0].id):
            return PlansFound(space, plans)  # what lies on the host is read more slowly
        together = _jointly(self, self.machine, space)
        if isinstance(together, PlanRecord):
            together = _used(together, self.machine)
            key = together.chip, together.runtime, together.precision
            plans = [*(p for p in plans if (p.chip, p.runtime, p.precision) != key), together]
        elif isinstance(together, Refusal):
            space.refusals[self.machine.name] = together
            space.rejected[together.reason] += 1
        else:
            space.never.append(together)
        return PlansFound(space, plans)

    def choice(self, found: PlansFound) -> Preferred[PlanRecord]:
        """The plans in order, with the day that they go through and how surely their replicas are up; what is said of
        how they were timed where a log drives the load, over which the first are simulated."""
        plans, curve = found.plans, self.curve
        if not plans:
            return Preferred()
        if curve is None:
            return self._ordered(found.space, [_with_up(p) for p in plans])

        def dated(p: PlanRecord) -> PlanRecord:
            return _with_up(replace(p, day=self.day(p, curve)))

        workload = found.workload
        in_order = rank_plans([dated(p) for p in plans], workload)
        replicated = _replicated(self.model, workload, self.terms, self.market.limits)
        return Preferred(*over_a_day(in_order, DayHeld(curve, workload, *replicated, self.terms.scaling, dated)))

    def refusal(self, found: PlansFound) -> InfeasibleError:
        """Why nothing is left, with what would be within a larger budget, and what works."""
        space, name = found.space, self.context.found.graph.model.name
        question = self._unmet(space)
        short, ways = list(space.refusals.values()), self._ways(space, question)
        return no_plan(name, question, space.rejected, short, space.never, ways)

    def _unmet(self, space: Space) -> Unmet[Workload]:
        """The question as it is asked again of the chips that came nearest."""
        short, timed = list(space.refusals.values()), self.curve is not None
        return unmet(self.market, space.formats, short, self._dearer(space), timed=timed)

    def _dearer(self, space: Space) -> PlanRecord | None:
        """The cheapest plan above a limit of dollars; None without such a limit."""
        limits, job = self.market.limits, self.workload.job
        if limits.max_usd_per_h is None and (job is None or job.max_usd is None):
            return None
        unlimited = replace(self.market, limits=replace(limits, max_usd_per_h=None))
        free = [replace(one, context=one.context.without_budget()) for one in space.formats]
        priced = [p for p in Space.over(unlimited, free).plans() if p.price]
        return min(priced, key=PlanRecord.usd, default=None)

    def _ways(self, space: Space, question: Unmet[Workload]) -> list[str]:
        """Changes with which a question without a plan has one, and an API within the limits."""
        if space.never and not space.refusals:
            return [*wider(self.market, space.formats), *self._called()]
        return [*ways_out(question, self.market, space.formats), *self._called()]

    def _called(self) -> list[str]:
        """The cheapest API of the model, where it carries the load for no more than the limit of dollars per hour."""
        most, name = self.market.limits.max_usd_per_h, self.context.found.graph.model.name
        if most is None:
            return []
        sold = apis(None, name, self.workload, self.context.today)
        paid = [(api.usd_per_h, api.provider) for api in sold if api.usd_per_h is not None]
        return [f"the API of {who} at ${format_number(usd)}/h" for usd, who in paid[:1] if usd <= most]

    def start_s(self, p: PlanRecord) -> float:
        """Seconds until one more replica of a plan serves; 0 where it has one, or is a machine of parts."""
        chip = next((c for c in self.market.chips if c.id == p.chip), None)
        if p.parts or p.replicas == 1 or chip is None:
            return 0.0
        if self.terms.scaling.start_s is not None:
            return self.terms.scaling.start_s
        chips = p.chips / p.replicas
        each = sum(size for kind, size in p.memory.items.items() if kind.startswith("weights"))
        return start_up_s(each * chips * chip.devices_per_package, chip, chips, p.replica_hosts)

    def day(self, p: PlanRecord, curve: RateCurve) -> Day:
        """A plan under a day's arrivals, with replicas started ahead by the time that they take."""
        day, start_s = _day(p, curve, self.workload), self.start_s(p)
        return day.led(start_s) if start_s else day

    def _ordered(self, space: Space, plans: list[PlanRecord]) -> Preferred[PlanRecord]:
        """The plans in order; where a log drives the load the first are simulated."""
        workload, limits = space.workload, self.market.limits
        in_order = rank_plans(plans, workload)
        if not workload.driven or workload.log is None or workload.log.rate_per_s is None:
            return Preferred(in_order)
        several = space.formats and limits.by == "chip" and not limits.have
        others = space.software(in_order[0]) if several else []
        replicated = _replicated(self.model, workload, self.terms, limits)
        return Preferred(*over_time(plans, others, workload, *replicated, self.terms.scaling))

    def record(self, found: PlansFound, chosen: Preferred[PlanRecord]) -> PlanReport:
        """The answer with plans in order, and published results beside the first."""
        space, in_order, timed = found.space, chosen.plans, chosen.said
        context, market, workload = self.context, self.market, found.workload
        model = model_record(context.found.graph, context.found.config)
        first, planned = in_order[0], {p.chip for p in in_order}
        kept = first.keeps_targets(workload.confidence)
        missing = (refusal_record(r, workload) for c, r in space.refusals.items() if c not in planned)
        least, saves = (None, 0.0) if timed else cheapest_plan(first, [p for _, p in space.found], workload)
        stored = _stored(space, first) if first.converted and not timed else []
        surer, ways = self._otherwise_kept(found, first)
        return PlanReport(
            model=model,
            workload=workload_record(workload),
            plans=beside_published(in_order, model, workload, context.today) if self.published else in_order,
            refused=(*space.never, *missing),
            considered=space.considered,
            rejected={r.value: n for r, n in space.rejected.most_common() if r is not Reason.OK},
            assumptions=self.assumptions(in_order, timed),
            as_stored=next(iter(rank_plans(stored, workload)), None),
            owned=bool(market.limits.have),
            cheapest=least,
            saves=saves,
            kept=kept,
            ways=ways,
            surer=surer,
            by=market.limits.by,
            max_watts=market.limits.max_watts,
        )

    def _otherwise_kept(self, found: PlansFound, first: PlanRecord) -> tuple[PlanRecord | None, tuple[str, ...]]:
        """Where the first plan keeps no targets, or does less surely than was asked, the first that does so; else the
        changes with which targets are."""
        asked = self.workload.confidence
        if first.keeps_targets(asked) or (not found.less and first.keeps_targets(found.workload.confidence)):
            return None, ()
        before = rank_plans(found.firm.plans(), self.workload) if found.firm else []
        surer = next((p for p in before if p.keeps_targets(asked)), None)
        if surer or first.peak:
            return surer, ()
        if found.firm is not None and not before:
            return None, tuple(self._ways(found.firm, self._unmet(found.firm)))
        nearest = before[0] if before else first
        return None, tuple(kept_with(self.market, (found.firm or found.space).formats, nearest))

    def assumptions(self, plans: Sequence[PlanRecord], timed: Sequence[str]) -> tuple[str, ...]:
        """What is assumed of the workload and the search."""
        limits = self.market.limits
        every = "of all software that can run the model, the best on each chip"
        watts = f"at most {limits.max_watts or 0.0:,.0f} W at the plugs with every chip at its power limit"
        said = {
            every: not self.market.runtime,
            f"at most {limits.max_devices} devices per replica (SRAM only: more)": True,
            watts: limits.max_watts,
            FEW_WORDS: limits.few,
        }
        return (
            *self.context.assumptions(plans, self.market.chips),
            *timed,
            *self.terms.said,
            *(words for words, holds in said.items() if holds),
        )

    def beside(self, found: PlansFound, chosen: Preferred[PlanRecord], report: PlanReport) -> PlanReport:
        """The report with the best plan on the first one's chip under each other software, what would make the first
        cheaper, tokens of the model from an API, and whether to take those. What formulas say of changes is not held
        against what was simulated."""
        space, timed = found.space, bool(chosen.said)
        first = report.plans[0]
        its = next((c for c in self.market.chips if c.id == first.chip), None)
        cheaper: tuple[LeverRecord, ...] = ()
        if its and not timed:
            context = space.context(first.precision)
            market, priced = replace(self.market, chips=[its], runtime=first.runtime), space.on(its, context)

            def again(changed: Context, every: bool) -> list[PlanRecord]:
                if every:
                    return priced.anew(changed.workload, self.market.limits).plans()
                return Space.over(market, [CandidateFormat(changed)]).plans()

            cheaper = levers(first, its, context, self.model, again)
        day = self.context.today
        sold = apis(first, report.model.name, found.workload, day)
        return replace(
            report,
            software=_other_software(space, report.plans, timed=timed),
            levers=cheaper,
            apis=sold,
            decision=decision(
                report.plans,
                sold,
                self.context.pricing,
                found.workload,
                day,
                otherwise=space.otherwise,
                named=self.market.named,
            ),
        )


def _pays(best: PlanRecord, likely: PlanRecord, w: Workload) -> bool:
    """Whether plans that are `likely` to keep their targets are to be preferred to the `best` that was found: it costs
    too many times as much for being as sure as asked, or they do not for being surer than it."""
    before, after = (goal(one, w, paid=True) for one in (best, likely))
    if before is None or after is None:
        return False
    p = preferences()
    dear = p.sure_named if w.exacting or w.job is not None else p.sure
    if best.keeps_targets(w.confidence):
        return after.mid * dear <= before.mid
    return after.mid <= before.mid * dear


def _stored(space: Space, first: PlanRecord) -> list[PlanRecord]:
    """The plans with the weights as they are stored; beside one with a price of today those with such a price."""
    plans = space.plans(stored=True)
    if first.price and not first.price.stale:
        return [p for p in plans if p.price and not p.price.stale]
    return plans


def _other_software(space: Space, in_order: Sequence[PlanRecord], *, timed: bool) -> tuple[PlanRecord, ...]:
    """The best plan on the first one's chip under each other software, ranked behind those in order."""
    first = in_order[0]
    if timed or first.parts or not space.formats:
        return ()
    others = rank_plans(space.software(first), space.workload)
    return tuple(replace(p, rank=len(in_order) + p.rank, ties=(), on_front=False) for p in others)


def _replicated(
    model: str, workload: Workload, terms: Terms, limits: Limits
) -> tuple[Callable[[PlanRecord], AskedLoad | None], Callable[[PlanRecord], int]]:
    """A plan as the deployment of one of its replicas, None where it is none of one kind of chip, and how many of them
    the limits allow."""

    def asking(plan: PlanRecord) -> AskedLoad | None:
        if plan.parts or plan.prompt_workers:
            return None
        degrees = {name: float(getattr(plan.layout, name)) for name in ("tp", "pp", "dp", "ep")}
        precision = plan.precision if plan.converted else terms.precision
        own = replace(terms, runtime=plan.runtime, precision=precision, pricing=_paid(plan, terms, limits))
        try:
            return asked(model, workload, Given(plan.chip, Layout(**degrees)), own)
        except (UsageError, UnknownNameError, InfeasibleError):
            return None  # a chip that its file alone names, or a layout that only a fleet has

    def most(plan: PlanRecord) -> int:
        chips = limits.chips(plan.chip) / (plan.chips // plan.replicas)
        paid = np.inf
        if limits.max_usd_per_h is not None and plan.price is not None:
            paid = limits.max_usd_per_h * plan.replicas / plan.price.mid
        return int(min(chips, paid, 10.0**6))

    return asking, most


def _paid(plan: PlanRecord, terms: Terms, limits: Limits) -> Pricing | None:
    """How the chips of a plan are paid: not those that one has, of plans by provider at the plan's own."""
    if limits.have or terms.pricing is None or plan.price is None or limits.by != "provider":
        return None if limits.have else terms.pricing
    return replace(terms.pricing, provider=plan.price.provider)


def _machine(limits: Limits, workload: Workload, terms: Terms) -> Machine | None:
    """The machine of a local user, None for chips that are to be had."""
    if workload.task != "local" or not limits.have:
        return None
    text = "+".join(f"{n}x{chip}" for chip, n in limits.have.items())
    return parse_machine(text, limits.host_memory, terms.part)


def _jointly(asked: PlansAsked, machine: Machine, space: Space) -> PlanRecord | Refusal | RefusalRecord:
    """The plan on all parts of a machine at once, in the first format that fits and keeps the targets at a pace to
    read, which is added to those that were tried; else what is in reach where one fits, or why none does."""
    workload, terms, cards = asked.workload, asked.terms, [c for c, _ in machine.cards]
    tried = formats(asked.model, asked.context, terms, cards, machine.memory_bytes, every=asked.every)
    why, reach = "", NOWHERE
    for one in _widest_first(tried):
        context = one.context
        try:
            there = assembled(context, machine, terms, reads=one.reads)
            if asked.market.limits.first_alone and (slow := token_s(context, there)) > SLOWER / workload.pace_per_s:
                reach = reach.better(Reach(np.inf, slow, np.inf, 0.0))
                continue
            record = machine_record(context, machine, there)
        except (InfeasibleError, UsageError) as error:
            why = why or error.what
            continue
        first_s, further_s = record.ttft_s.mid, record.tpot_s.mid if record.tpot_s else 0.0
        paced = fully_ready(replace(record, chance=None), workload)
        if not meets(np.array([[first_s]]), np.array([[further_s]]), workload).all() or not paced:
            met = workload.ttft_s is None or first_s <= workload.ttft_s
            reach = reach.better(Reach(first_s, further_s, further_s if met else np.inf, 0.0))
            continue
        space.formats.append(one)
        if one.stored:
            return record
        return converted(record, context.found.graph.model.name)
    if reach is not NOWHERE:
        return Refusal(machine.name, Reason.SLO, reach)
    return RefusalRecord(machine.name, Reason.MEMORY.name, why)


def _widest_first(tried: Iterable[CandidateFormat]) -> Iterator[CandidateFormat]:
    """Formats from the widest that files have; wide weights as stored, which are read more slowly, behind it."""
    stored = []
    for one in tried:
        if one.stored and one.place:
            stored.append(one)
            continue
        if one.at_last:
            yield from stored
            stored = []
        yield one
    yield from stored


def _used(plan: PlanRecord, machine: Machine) -> PlanRecord:
    """The plan of a machine under the names of the parts that hold some of the model; where that is one card, as the
    plan of that card."""
    held = {part.chip for part in plan.parts}
    host = [machine.host.chip.id] if machine.host else []
    idle = [name for name in (*(c.id for c, _ in machine.cards), *host) if name not in held]
    if not idle:
        return plan
    name = "+".join(f"{p.count}x{p.chip}" if p.count > 1 else p.chip for p in plan.parts)
    note = "; ".join(filter(None, (plan.note, f"all of it fits without {', '.join(idle)}")))
    used = replace(plan, chip=name, chips=sum(p.count for p in plan.parts), note=note)
    alone = len(plan.parts) == 1 and plan.parts[0].count == 1
    return replace(used, note=f"all of it fits without {', '.join(idle)}", parts=(), placed=None) if alone else used


def bounded(
    limits: Limits,
    wanted: Sequence[Chip],
    numbers: Parameters,
    basis: Callable[[str], Rent | OwnCosts | None] | None = None,
) -> Limits:
    """The limits with how many of each chip their watts feed, in the machines that hold them; of chips without a
    published power limit none. Of chips that nobody named, whose prices are told (`basis`), those made for desks are
    taken in small numbers. Raises `InfeasibleError` where not one chip is fed, with the watts that one takes."""
    if basis is not None:
        limits = replace(limits, few=few_of(wanted, basis))
    if limits.max_watts is None:
        return limits
    chips: dict[str, int] = {}
    alone: dict[str, float] = {}
    for chip in wanted:
        system = machine_for(chip)
        each = system.chips_per_host if system else 1
        powered = Powered.of(chip, each, system, numbers)
        chips[chip.id] = powered.machine.fed(limits.max_watts, powered.limit_w, each) if powered else 0
        if powered:
            alone[chip.id] = float(powered.machine.wall_w(powered.limit_w, 1))
    if not any(chips.values()):
        what = f"{limits.max_watts:,.0f} W at the plugs feed not one of {shorten(', '.join(chips), 60)}"
        if not alone:
            raise InfeasibleError(what, "leave --max-watts out: their power limits are not published")
        least = min(alone, key=lambda name: alone[name])
        hint = f"--max-watts {ceil(alone[least])} feeds one {least} in its machine"
        raise InfeasibleError(what, hint)
    return replace(limits, fed=chips)


def limits_for(task: str) -> Limits:
    """What a plan may use where nothing was said: up to 8 devices of a local user's machine, else 64 a replica."""
    return Limits(max_devices=8 if task == "local" else 64)


def _day(p: PlanRecord, curve: RateCurve, workload: Workload) -> Day:
    """The plan under a day's arrivals."""
    carrying = p.replicas - p.spare
    usd = p.price.mid / p.replicas if p.price else float("nan")
    return over_day(curve, p.largest_requests_per_s / carrying, p.replicas, usd, workload.output_tokens, p.spare)


def _with_up(p: PlanRecord) -> PlanRecord:
    """A plan with how surely its replicas are up, where some are spare."""
    return replace(p, up=_up(p)) if p.spare else p


def _up(p: PlanRecord) -> UpRecord | None:
    """How often the replicas of a plan that carry the load are all up, with its spare ones and without, where failures
    are those of the fleet whose repairs are known."""
    fleet = next((f for f in failing_fleets().values() if f.repair_h), None)
    if fleet is None or p.parts:
        return None
    # a host takes all replicas with it that it holds
    together = max(p.replicas / p.hosts, 1.0)
    mean = p.chips / fleet.chip_mtbf_h * fleet.repair_h * together
    share = at_most_away(mean, max(fleet.bunch(p.hosts), together), p.spare)
    return UpRecord(float(share[-1]), float(share[0]), fleet.chip_mtbf_h, fleet.repair_h, fleet.id)


def _everything(workload: Workload) -> list[str]:
    """All chips on the market; for a local user those that are in machines one has at home or at a desk."""
    market = list(load_chips().market())
    if workload.task != "local":
        return market
    return [c for c in market if any(s.form in DESKS for s in systems_for(c))]
