"""`fleet`: many demands on what one owns, rents and calls. Candidates are what the search finds for each demand on each
chip; the assignment of all of them to the hours of a day is a mixed-integer programme (`search.assignment`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.api.portfolio_cards import CardPart, Sleeper
from chipwise.api.portfolio_chain import CalledModel, TimedChain
from chipwise.api.portfolio_ways import DAY_S, Candidates, Demand, FleetAsked, FleetWay, candidates_of, taken_by
from chipwise.api.requests.planning import PlanRequest
from chipwise.errors import InfeasibleError
from chipwise.predict.training.course import MONTH_S
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanRecord
from chipwise.report.portfolio import (
    API,
    OWN,
    RENT,
    REPLICAS,
    ChainTimeRecord,
    DemandRecord,
    FleetRecord,
    PlacedApiRecord,
    PlacedNetworkRecord,
    PlacementRecord,
    PortfolioReport,
    SharingRecord,
    SliceRecord,
    SupplyRecord,
    TurnRecord,
    dollars,
)
from chipwise.report.records import Figure, LayoutRecord
from chipwise.search.assignment import (
    GROWS_USD,
    GROWS_WATTS,
    HOUR_S,
    NEARLY,
    Assigned,
    AssignmentProblem,
    assign,
    least_more,
)
from chipwise.units import Array, duration_words
from chipwise.values import dataclass

MOST_ASKED = 4
"""Supplies of which a machine more and fewer is asked, the busiest first."""
OWN_WORDS = "replicas move between demands from one slice to the next, and the time to load a model is not counted"

SHARING_WORDS = (
    "who shares a card's time takes turns with those that have work, at random moments, and keeps its targets at its "
    "peak; switches between them are not counted"
)
ADAPTER_WORDS = (
    "adapters of one model are served together, at the strictest targets of them and the mean of their lengths; the "
    "time of their products is not counted"
)
REPLICA_WORDS = (
    "demands that the same replicas serve are asked about as one: the mean of their lengths and the strictest targets, "
    "tightened for those whose requests are longer than the mean"
)
SLEEPING_WORDS = (
    "of models that sleep by turns the one awake works until it has no request under way, then the one that has waited "
    "longest wakes: a router of yours says so"
)
CHAIN_WORDS = (
    "of a chain the mean times of its steps add up: errors of language models as far as the model of error correlates "
    "them, others fully on one kind of chip and independently on several"
)
CALLS_WORDS = (
    "of several calls at once of a language model the last waits for the prompts of the others, as if one replica had "
    "them all"
)
BATCH_WORDS = "several calls at once of a network are one batch"
PREEMPTED_WORDS = (
    "replicas there have the capacity that lost work and new starts leave, and while one is away others serve its "
    "requests"
)
OF_CHAINS = ", but in chains, where an API takes the times that you say of it"
PIECES_WORDS = "what a step passes on piece by piece is taken up while the next piece is written"
POOLED_WORDS = "requests to a network wait in one queue before as many replicas as its peak takes"


def portfolio(asked: FleetAsked) -> PortfolioReport:
    """The cheapest assignment that places most, the higher priorities first, and what would change it. Raises
    `InfeasibleError` where nothing can be placed, `MissingExtraError` without SciPy, and the errors of the demands'
    own questions."""
    candidates = candidates_of(asked)
    if not candidates.ways:
        why = "; ".join(f"{name}: {said}" for name, said in candidates.never.items())
        raise InfeasibleError(f"no demand has a candidate: {why}", f"alone: {asked.demands[0].command}")
    problem = replace(_problem(asked, candidates.ways), clashes=candidates.clashes)
    found = assign(problem, asked.effort)
    if found is None:
        what = f"no assignment was found within {asked.effort.seconds:g} s"
        raise InfeasibleError(what, "--seconds gives it more time")
    return _AssignedFleet(asked, candidates, problem, found).report()


def _problem(asked: FleetAsked, ways: Sequence[FleetWay]) -> AssignmentProblem:
    """The arrays of the assignment."""
    slices = asked.slices
    need = np.ones((len(asked.demands), slices))
    for d, demand in enumerate(asked.demands):
        if demand.rates_per_s:
            need[d] = np.repeat(demand.rates_per_s, slices // len(demand.rates_per_s))
        elif demand.tokens:
            after = (np.arange(slices) * 24.0 / slices - demand.hours[0]) % 24.0
            need[d] = after + 24.0 / slices <= demand.hours[1] + 1e-9
    columns: Mapping[str, Any] = {
        name: np.array([getattr(w, name) for w in ways])
        for name in ("demand", "supply", "rate", "chips", "usd_per_h", "watts", "whole", "held", "card")
    }
    return AssignmentProblem(
        hours=np.full(slices, 24.0 / slices),
        need=need,
        amount=np.array([demand.tokens for demand in asked.demands]),
        priority=np.array([float(demand.priority) for demand in asked.demands]),
        chain=np.unique([demand.whole for demand in asked.demands], return_inverse=True)[1],
        room=np.array([s.room for s in asked.supplies]),
        machine=np.array([float(s.per_machine) for s in asked.supplies]),
        mixed=asked.mixed,
        max_usd_per_h=asked.max_usd_per_h,
        max_watts=asked.max_watts,
        **columns,
    )


@dataclass(frozen=True)
class _AssignedFleet:
    """An assignment with what it was made of, and what is said of it."""

    asked: FleetAsked
    candidates: Candidates
    problem: AssignmentProblem
    found: Assigned

    @property
    def ways(self) -> Sequence[FleetWay]:
        """All candidates."""
        return self.candidates.ways

    def report(self) -> PortfolioReport:
        """The answer."""
        asked, found = self.asked, self.found
        placements = self._placements()
        demands = tuple(self._demand(name, placements) for name in asked.chains)
        return PortfolioReport(
            fleet=FleetRecord(
                usd_per_h=found.usd_per_day / 24.0,
                usd_per_day=found.usd_per_day,
                bound_usd_per_day=found.bound_usd_per_day,
                gap=found.gap,
                placements=placements,
                unplaced=tuple(d for d in demands if not d.placed),
            ),
            demands=demands,
            supplies=tuple(self._supplies()),
            slices=tuple(self._slices()),
            candidates=len(self.ways),
            days_per_month=MONTH_S / DAY_S,
            assumptions=tuple(self._assumptions()),
            apart=self.candidates.apart,
        )

    def _work(self, units: Array) -> Array:
        """What every candidate does in a day, for serving requests, for jobs tokens."""
        rates = np.array([w.rate for w in self.ways])
        return np.asarray(rates * HOUR_S * (units @ self.problem.hours))

    def _placements(self) -> tuple[PlacementRecord, ...]:
        units, work = self.found.units, self._work(self.found.units)
        usd = self.problem.usd_per_h * (units @ self.problem.hours)
        of_demand = [work[self.problem.demand == d].sum() for d in range(len(self.asked.demands))]
        rows = [k for k in range(len(self.ways)) if units[k].max() > 1e-9]
        rows.sort(key=lambda k: (self.ways[k].demand, -work[k]))
        return tuple(
            self._placement(rank, k, float(work[k] / of_demand[self.ways[k].demand]), float(usd[k]))
            for rank, k in enumerate(rows, 1)
        )

    def _placement(self, rank: int, k: int, share: float, usd: float) -> PlacementRecord:
        way, units = self.ways[k], self.found.units[k]
        demand, supply, plan = self.asked.demands[way.demand], self.asked.supplies[way.supply], way.plan
        replicas = float(units.max()) * way.replicas if way.chips else 0.0
        layout, spread = _layout(way, replicas)
        peak = float(np.minimum(units * way.rate, self.problem.need[way.demand]).max())
        return PlacementRecord(
            rank=rank,
            demand=demand.name,
            supply=supply.name,
            kind=supply.kind,
            model=demand.question.model,
            chip=supply.chip,
            chips=round(float(units.max()) * (way.chips / way.pooled if way.part is None else 1.0)),
            replicas=replicas,
            layout=layout,
            spread=spread,
            runtime=plan.runtime if plan else "",
            precision=plan.precision if plan else "",
            converted=isinstance(plan, PlanRecord) and plan.converted,
            share=share,
            rate_per_s=float(units.max() * way.rate) if demand.tokens else peak,
            usd_per_h=usd / 24.0,
            usd_per_day=usd,
            per_slice=tuple(float(n) * (way.replicas if way.chips else way.rate) for n in units),
            requests_per_s=() if demand.tokens or demand.training else self._requests(k),
            note=plan.note if isinstance(plan, PlanRecord) else "",
            adapters=demand.adapters,
            sharing=self._sharing(way, way.part) if way.part else self._same(way),
            network=PlacedNetworkRecord(plan.batch, plan.spread, plan.offload) if isinstance(plan, MediaPlan) else None,
            api=_placed_api(way),
        )

    def _same(self, way: FleetWay) -> SharingRecord | None:
        """How replicas serve several demands, next to its cheapest replica alone; None where they do not."""
        if way.pool is None or not isinstance(way.plan, PlanRecord):
            return None
        alone = [w for w in self.ways if w.demand == way.demand and w.supply == way.supply and w.card < 0]
        plan = min(alone, key=lambda w: (w.usd_per_h, w.chips)).plan if alone else way.plan
        others = tuple(self.asked.demands[d].name for d in way.pool.demands if d != way.demand)
        assert isinstance(plan, PlanRecord)
        return SharingRecord(
            how=REPLICAS,
            share="",
            others=others,
            part=way.pooled,
            memory=1.0,
            active=1.0,
            ttft_s=way.plan.ttft_s,
            ttft_alone_s=plan.ttft_s,
            tpot_s=way.plan.tpot_s,
            tpot_alone_s=plan.tpot_s,
        )

    def _sharing(self, way: FleetWay, part: CardPart) -> SharingRecord:
        card = [w for w in self.ways if w.card == way.card and w is not way]
        here, alone = _times_of(part.plan), _times_of(part.small.alone)
        return SharingRecord(
            how=part.how,
            share=part.told,
            others=tuple(self.asked.demands[w.demand].name for w in card),
            part=way.chips,
            memory=part.memory,
            active=part.active,
            ttft_s=here[0],
            ttft_alone_s=alone[0],
            tpot_s=here[1],
            tpot_alone_s=alone[1],
            turn=_turn_record(part.asleep) if part.asleep else None,
        )

    def _requests(self, k: int) -> tuple[float, ...]:
        """Requests per second of a candidate in each slice: its part of what all of the demand carry there."""
        d = self.ways[k].demand
        carried = self.problem.rate[:, None] * self.found.units
        most = np.maximum(carried[self.problem.demand == d].sum(axis=0), NEARLY)
        return tuple((self.problem.need[d] * carried[k] / most).tolist())

    def _demand(self, name: str, placements: Sequence[PlacementRecord]) -> DemandRecord:
        """What is said of a demand by itself, or of a chain."""
        at = self.asked.chains[name]
        some = [self.asked.demands[d] for d in at]
        demand, placed = some[0], bool(self.found.placed[at[0]])
        why, least = "", tuple[str, ...]()
        if name in self.candidates.never:
            why = self.candidates.never[name]
        elif not placed:
            limits = np.isfinite([self.asked.max_usd_per_h, self.asked.max_watts]).any()
            within = ", within the limits of the fleet," if limits else ""
            why = f"there is not enough supply{within} for it and those of higher or equal priority"
            least = tuple(self._least(at))
        names = [d.name for d in some]
        return DemandRecord(
            name,
            ", ".join(d.question.model for d in some),
            demand.step.chain.asked if demand.step else demand.asked,
            demand.priority,
            placed,
            sum(p.usd_per_day for p in placements if p.demand in names),
            why,
            least,
            demand.command,
            self._chain_times(at) if placed and demand.step else (),
        )

    def _chain_times(self, steps: Sequence[int]) -> tuple[ChainTimeRecord, ...]:
        """The time of a chain next to each of its limits, with the candidates in use that are slowest together."""
        used = [way for way, units in zip(self.ways, self.found.units, strict=True) if units.max() > NEARLY]
        some = [self.asked.demands[d] for d in steps]
        ways = [[w for w in used if w.demand == d] for d in steps]
        taken = tuple(tuple(taken_by(self.asked, w) for w in its) for its in ways)
        named = [d.step for d in some if d.step]
        timed = TimedChain(named[0].chain, tuple(step.name for step in named), taken)
        return timed.records([d.question.model for d in some])

    def _least(self, at: Sequence[int]) -> Iterator[str]:
        """What would place a demand, all steps of it, with all that are placed, by asking of each thing that may
        grow."""
        wanted = self.found.placed.copy()
        wanted[list(at)] = True
        for p, supply in enumerate(self.asked.supplies):
            usable = (np.isin(self.problem.demand, at) & (self.problem.supply == p)).any()
            if (
                supply.chips is not None
                and usable
                and (more := least_more(self.problem, wanted, p, self.asked.further))
            ):
                count = round(more.more)
                yield f"{count * supply.per_machine:,} more {supply.chip} in {supply.name}"
        if np.isfinite(self.asked.max_usd_per_h):
            more = least_more(self.problem, wanted, GROWS_USD, self.asked.further)
            if more:
                yield f"usd_per_h = {self.asked.max_usd_per_h + more.more:,.2f}"
        if np.isfinite(self.asked.max_watts):
            more = least_more(self.problem, wanted, GROWS_WATTS, self.asked.further)
            if more:
                yield f"watts = {self.asked.max_watts + more.more:,.0f}"

    def _supplies(self) -> Iterator[SupplyRecord]:
        """What each supply does, and what a machine more or fewer of it would do."""
        units, hours = self.found.units, self.problem.hours
        busy = np.array(
            [
                (self.problem.chips[self.problem.supply == p][:, None] * units[self.problem.supply == p]).sum(axis=0)
                for p in range(len(self.asked.supplies))
            ]
        )
        limited = [p for p, s in enumerate(self.asked.supplies) if s.chips is not None]
        limited = sorted(limited, key=lambda p: -busy[p].max())[:MOST_ASKED]
        usd = self.problem.usd_per_h * (units @ hours)
        for p, supply in enumerate(self.asked.supplies):
            more = fewer = None
            if p in limited:
                more = self._with_machines(p, supply.room + supply.per_machine)
                fewer = self._with_machines(p, supply.room - supply.per_machine * (supply.spare == 0))
            yield SupplyRecord(
                name=supply.name,
                kind=supply.kind,
                chip=supply.chip,
                machines=supply.machines,
                per_machine=supply.per_machine,
                most_chips=float(busy[p].max()),
                mean_chips=float(busy[p] @ hours / 24.0),
                usd_per_day=float(usd[self.problem.supply == p].sum()),
                more_saves=self._saved(more),
                more_places=self._only(more, self.found),
                fewer_costs=None if fewer is None else max(0.0, -self._change(fewer)),
                fewer_loses=self._only(self.found, fewer),
            )

    def _with_machines(self, p: int, room: float) -> Assigned | None:
        """The assignment with another room of a supply."""
        rooms = self.problem.room.copy()
        rooms[p] = max(room, 0.0)
        return assign(replace(self.problem, room=rooms), self.asked.further)

    def _change(self, other: Assigned) -> float:
        """Dollars a day that another assignment saves; differences within what both may be off are none."""
        saved = self.found.usd_per_day - other.usd_per_day
        off = max(self.found.gap * self.found.usd_per_day, other.gap * other.usd_per_day)
        return saved if abs(saved) > off else 0.0

    def _saved(self, more: Assigned | None) -> float | None:
        if more is None or more.placed.sum() != self.found.placed.sum():
            return None
        return max(self._change(more), 0.0)

    def _only(self, one: Assigned | None, other: Assigned | None) -> tuple[str, ...]:
        """Demands that one assignment places and another does not."""
        if one is None or other is None:
            return ()
        lost = [d.whole for d, a, b in zip(self.asked.demands, one.placed, other.placed, strict=True) if a and not b]
        return tuple(dict.fromkeys(lost))

    def _slices(self) -> Iterator[SliceRecord]:
        kinds = np.array([self.asked.supplies[w.supply].kind for w in self.ways])
        replicas = np.array([w.replicas if w.chips else 0 for w in self.ways])
        for s, start in enumerate(np.cumsum(self.problem.hours) - self.problem.hours):
            units = self.found.units[:, s]
            busy = self.problem.chips * units
            runs = []
            for d, demand in enumerate(self.asked.demands):
                mine = self.problem.demand == d
                count, called = (replicas * units)[mine].sum(), units[mine & (kinds == API)].sum()
                said = [f"{count:,.0f}"] if count else []
                said += ["API"] if called > 1e-9 else []
                runs += [f"{demand.name} {' + '.join(said)}"] if said else []
            yield SliceRecord(
                float(start),
                float(busy[kinds == OWN].sum()),
                float(busy[kinds == RENT].sum()),
                float(self.problem.usd_per_h @ units),
                ", ".join(runs),
            )

    def _called_words(self) -> Iterator[str]:
        """What is assumed of APIs."""
        sold = [s for s in self.asked.supplies if s.kind == API]
        if sold:
            said = any(s.ttft_s is not None for s in sold)
            yield "speed and terms of APIs are not compared with the targets" + (OF_CHAINS if said else "")
        yield from self.candidates.unsold

    def _shared_words(self) -> list[str]:
        """What is assumed of cards that demands share."""
        used = [w for w, units in zip(self.ways, self.found.units, strict=True) if units.any()]
        shared = [w.part for w in used if w.part]
        same = REPLICA_WORDS if any(w.pool for w in used) else ""
        awake = SHARING_WORDS if any(part.asleep is None for part in shared) else ""
        turns = SLEEPING_WORDS if any(part.asleep for part in shared) else ""
        return [said for said in (awake, turns, same) if said]

    def _assumptions(self) -> Iterator[str]:
        kinds = {s.kind for s in self.asked.supplies}
        if OWN in kinds:
            free = "nothing (usd_per_kwh: their power)"
            yield f"machines that you own cost {'their power' if self.asked.usd_per_kwh else free}"
        if self.asked.slices > 1:
            yield OWN_WORDS
        if RENT in kinds:
            yield "chips are rented by the hour on demand, each replica's machines at their own price"
        for s in self.asked.supplies:
            if s.preempt_s < np.inf:
                often = f"every {duration_words(s.preempt_s)} in the mean"
                back = f"another is there after {duration_words(s.wait_s)}"
                yield f"each machine of {s.name} is taken away {often}, {back}: {PREEMPTED_WORDS}"
        yield from self._called_words()
        yield "every replica takes its share of the load at the utilisation that plans are given"
        yield from self._shared_words()
        yield from _chain_words(self.asked.demands)
        if any(d.adapters for d in self.asked.demands):
            yield ADAPTER_WORDS
        if any(d.tokens for d in self.asked.demands):
            yield "jobs run at the throughput that is reached with the probability asked"
            yield "jobs due within a day come again every day, others do a part of it every day"
        if np.isfinite(self.asked.max_usd_per_h):
            yield f"at most {dollars(self.asked.max_usd_per_h)}/h at any time"
        if np.isfinite(self.asked.max_watts):
            yield f"at most {self.asked.max_watts:,.0f} W of owned machines, at the upper end of what they draw"


def _chain_words(demands: Sequence[Demand]) -> Iterator[str]:
    """What is assumed of chains."""
    steps = [d.step for d in demands if d.step]
    written, made = ([s for s in steps if bool(s.output) == tokens] for tokens in (True, False))
    said = {
        CHAIN_WORDS: any(not step.alone for step in steps),
        POOLED_WORDS: bool(made),
        CALLS_WORDS: any(step.calls > 1 for step in written),
        BATCH_WORDS: any(step.calls > 1 for step in made),
        PIECES_WORDS: any(step.passes < step.output for step in steps if not step.last),
    }
    yield from (words for words, told in said.items() if told)


def _placed_api(way: FleetWay) -> PlacedApiRecord | None:
    """Whose tokens a candidate calls; None on chips."""
    if way.sold is None:
        return None
    times = (way.plan.ttft_s.mid, way.plan.tpot_s.mid) if isinstance(way.plan, CalledModel) else (None, None)
    a = way.sold
    usd = a.usd_per_million_in, a.usd_per_million_out
    return PlacedApiRecord(a.provider, a.model, a.base_url, a.key, *usd, a.date, *times)


def _times_of(plan: PlanRecord | MediaPlan) -> tuple[Figure, Figure | None]:
    """The times to the first token and per token of a plan, of a network that of a request."""
    return (plan.latency_s, None) if isinstance(plan, MediaPlan) else (plan.ttft_s, plan.tpot_s)


def _turn_record(asleep: Sleeper) -> TurnRecord:
    assert asleep.turn is not None
    turn = asleep.turn
    return TurnRecord(
        asleep.move_s, turn.mean_s, turn.within_s(0.95), turn.wakes_per_s * HOUR_S, turn.left, asleep.weight_bytes
    )


def _layout(way: FleetWay, replicas: float) -> tuple[LayoutRecord | None, str]:
    """The layout of a candidate, and so many of it in words; of tokens none."""
    plan = way.plan
    if isinstance(plan, PlanRecord):
        return plan.layout, f"{replicas:,.0f} x {plan.layout.each if way.part is None else way.part.label}"
    if plan is None or isinstance(plan, CalledModel):
        return None, "as much as is wanted"
    if isinstance(plan, MediaPlan):
        return None, f"{replicas:,.0f} x {way.part.label if way.part else plan.spread or 1}"
    degrees = plan.layout
    return LayoutRecord(degrees.tp, degrees.pp, degrees.dp, degrees.ep, degrees.label), degrees.label


def placed_options(question: PlanRequest, row: Mapping[str, Any], replicas: int, rate: str | None) -> dict[str, Any]:
    """The options that name the deployment of a placement, a row of the answer, with so many replicas at a rate."""
    part = {"share": row["sharing"]["share"] or None} if row.get("sharing") else {}
    if row.get("network"):
        chips = round(row["chips"] / row["replicas"]) * replicas
        each = {"chip": row["chip"], "chips": chips, "replicas": replicas, "spare": 0, "runtime": row["runtime"]}
        return {**question.deployed_network({**each, **row["network"]}), **part, "rate": rate}
    alone = {"replicas": replicas, "spare": 0, "prompt_workers": 0, "concurrency": 1.0}
    found = replace(question, rate=rate).deployed({**row, **alone})
    return {**found, **part, "replicas": replicas, "concurrency": None, "rate": rate}
