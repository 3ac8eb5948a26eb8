"""The search: every layout of every chip under all software that can run the model, those that can come first, and
these as plans at the load that each carries: the given rate, or the best batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from chipwise.api.context import Context
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent
from chipwise.parallel.layout import Reason
from chipwise.predict.rounds import kept_up
from chipwise.predict.service import Loads, Prediction, Stretch
from chipwise.report.assemble import ReplicaSet
from chipwise.report.plans import PlanRecord
from chipwise.search.choose import BETWEEN, Choice, Chosen, Refusal, choose
from chipwise.search.evaluate import Evaluated, evaluate
from chipwise.search.prefer import Contenders, first, kept
from chipwise.search.reach import NOWHERE
from chipwise.search.space import Deployment, Group, Limits, candidates
from chipwise.search.targets import Caution, held, meets, slopes, stretched
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.workload import Workload


@dataclass(frozen=True)
class Priced:
    """A group that was priced, and how far that may be off. `again`: of chips of which other software was tried before,
    so that a deployment of which no layout is in question says nothing."""

    evaluated: Evaluated
    caution: Caution
    again: bool


@dataclass
class Found:
    """The choices that can come first and the nearest refusal of every chip, the candidates priced, and what they fell
    to. `priced` are the groups that all of it was chosen from, at `prices`."""

    prices: Mapping[str, Rent | OwnCosts | None] = field(default_factory=dict)
    choices: dict[str, list[Choice]] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    considered: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)
    priced: list[Priced] = field(default_factory=list)

    def anew(
        self, workload: Workload, limits: Limits, prices: Mapping[str, Rent | OwnCosts | None] | None = None
    ) -> Found:
        """What is chosen from the same candidates for targets that are to hold with another confidence, within other
        limits of chips and dollars, of no fewer, or at other prices."""
        prices = self.prices if prices is None else prices
        made, limits = Found(prices), limits.paid(prices)
        for one in self.priced:
            caution = replace(one.caution, confidence=workload.confidence)
            made.add(replace(one, caution=caution), workload, limits)
        for chip in made.choices:
            made.refusals.pop(chip, None)
        return made

    def on(self, chip: str) -> Found:
        """What was priced of one chip, of which nothing is chosen yet."""
        made = Found(self.prices)
        for one in self.priced:
            group = one.evaluated.group
            mine = np.array([d.chip.id == chip for d in group.deployments])[group.which]
            if mine.any():
                made.priced.append(replace(one, evaluated=one.evaluated.take(np.flatnonzero(mine)), again=True))
        return made

    def add(self, one: Priced, workload: Workload, limits: Limits) -> Chosen:
        """Choose from a group that was priced, and add what it has."""
        chosen = choose(one.evaluated, workload, self.prices, limits, one.caution)
        self.priced.append(one)
        self.considered += one.evaluated.plans
        self.rejected += chosen.counts
        for choice in chosen.choices:
            self.choices.setdefault(choice.deployment.chip.id, []).append(choice)
        group = one.evaluated.group
        tried = {group.deployments[i].chip.id for i in set(group.which.tolist())}
        for refusal in chosen.refusals:
            if one.again and refusal.chip not in tried:
                continue
            known = self.refusals.get(refusal.chip)
            self.refusals[refusal.chip] = known.closer(refusal) if known else refusal
        return chosen


def search(
    context: Context, offered: Sequence[Deployment], limits: Limits, prices: Mapping[str, Rent | OwnCosts | None]
) -> Found:
    """Search `offered`, which may hold several runtimes of a chip in order of preference: under the first every layout,
    under the others those that it leaves in question."""
    found, asked, limits = Found(prices), limits, limits.paid(prices)
    caution, place = context.caution(offered), {id(d): i for i, d in enumerate(offered)}

    def priced(group: Group, *, again: bool = False) -> Priced:
        rates = context.rates(group.deployments)
        own = caution.take(np.array([place[id(d)] for d in group.deployments], dtype=np.intp))
        return Priced(evaluate(context.found.graph, group, context.workload, *rates), own, again)

    usual = list({d.chip.id: d for d in reversed(offered)}.values())
    hopeless: dict[str, frozenset[tuple[int, ...]]] = {}
    for group in candidates(context.found.graph, tuple(usual), limits):
        chosen = found.add(priced(group), context.workload, limits)
        hopeless |= chosen.hopeless() if len(usual) < len(offered) else {}
    others = tuple(d for d in offered if not any(d is first for first in usual))
    for group in candidates(context.found.graph, others, limits, hopeless):
        found.add(priced(group, again=True), context.workload, limits)
    dear = [d.chip.id for d in usual if limits.chips(d.chip.id) < asked.chips(d.chip.id)]
    for chip in dear:  # more of it are not paid for, whatever stands in the way of so few
        why = found.refusals.get(chip, Refusal(chip, Reason.BUDGET, NOWHERE))
        found.refusals[chip] = replace(why, reason=Reason.BUDGET if why.reason is not Reason.SLO else why.reason)
    for chip in found.choices:
        found.refusals.pop(chip, None)
    return found


def shortlist(choices: Sequence[Choice], confidence: float) -> list[Choice]:
    """The choices of a chip, under several runtimes and formats, of which the best is still to be found: what was
    priced at a batch of the grid moves a little at the load that is carried. Costs no more than `evidence` above the
    cheapest that keeps the targets, or nearly does; where none does, the likeliest."""
    c = Contenders.join([choice.as_one for choice in choices])
    best = first(c, confidence)
    sure = kept(c.chance, confidence)
    if not sure.any():
        sure = c.chance >= c.chance[best]
    least = float(c.cost[sure].min())
    hoped = sure | kept(c.chance, confidence - BETWEEN)
    near = hoped & (c.cost <= least + preferences().evidence * abs(least))
    near[[best, int(np.argmin(c.cost))] if not kept(c.chance, confidence).any() else [best]] = True
    return [choice for choice, stays in zip(choices, near, strict=True) if stays]


STEPS, ROUNDS = 9, 4
"""Loads tried between two batches of the grid, and how often: to 1/4096 of their distance."""


def size_fleet(context: Context, choices: Sequence[Choice]) -> list[PlanRecord]:
    """Plans of choices: all replicas but the spare ones share the given rate, or run full. Those of all groups with one
    pool, or with two, are loaded together."""
    of_group: dict[int, list[Choice]] = {}
    for choice in choices:
        of_group.setdefault(id(choice.evaluated), []).append(choice)
    groups = [_loaded(context, mine) for mine in of_group.values()]
    found: dict[int, list[PlanRecord]] = {}
    for apart in (False, True):
        alike = [i for i, one in enumerate(groups) if (one.loads.prompts is not None) is apart]
        if not alike:
            continue
        together = Loads.join([groups[i].loads for i in alike])
        loaded, longer = _at_load(context.workload, together, [groups[i] for i in alike])
        quantiles = context.tails(together, loaded)
        ends = np.cumsum([len(groups[i].choices) for i in alike])
        for i, end in zip(alike, ends, strict=True):
            mine = groups[i]
            rows = slice(int(end) - len(mine.choices), int(end))
            found[i] = context.records(
                mine.group,
                mine.loads,
                loaded.each(lambda values, rows=rows: values[rows]),  # type: ignore[misc]
                mine.fleets(context.workload, longer[rows]),
                rate_per_s=context.workload.rate_per_s,
                quantiles={name: (first[rows], further[rows]) for name, (first, further) in quantiles.items()},
            )
    return [record for i in sorted(found) for record in found[i]]


@dataclass(frozen=True)
class _Loaded:
    """Choices of one group as candidates of their own, ready to be loaded; `caution` is that with which each was
    chosen: none where the middle keeps targets alone, or the rate is given and headroom stands in for it. `passes`
    are how far these may be off (`Caution.passes`)."""

    choices: Sequence[Choice]
    group: Group
    loads: Loads
    caution: Caution
    passes: Array

    @property
    def evaluated(self) -> Evaluated:
        """What they were chosen from."""
        return self.choices[0].evaluated

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row and point of each there."""
        return np.array([c.index for c in self.choices]), np.array([c.point for c in self.choices])

    def bracket(self, w: Workload) -> tuple[Array, Array, NDArray[np.bool_], Array]:
        """The loads between which the best of each is, whether these lie below the batch of the grid that was found
        best, as it holds more than a job has, and tokens a second that it makes at least [N]."""
        (rows, points), grid = self.places, self.evaluated.prediction
        replicas = self.loads.engines.replicas
        above = (points > 0) & (grid.concurrency[rows, points] * replicas > (w.pieces or inf))
        points = points - above
        low, high = grid.load[rows, points], grid.load[rows, np.minimum(points + 1, grid.load.shape[1] - 1)]
        best = np.array([0.0 if w.pieces else c.tokens_per_s for c in self.choices]) * replicas
        return low, np.where(np.isfinite(high), high, low), above, best

    def fleets(self, w: Workload, longer: Sequence[Stretch]) -> list[ReplicaSet]:
        """What carries the load: of each choice the replicas, the rate that one of them takes, and what `longer` passes
        do to that and to times."""
        (rows, _), e = self.places, self.evaluated
        rate, times = e.prediction.requests_per_s[rows], (e.held[0][rows], e.held[1][rows])
        steep = slopes(rate, times, e.allowed[rows], w, self.caution)
        return [
            ReplicaSet(
                c.carrying,
                c.spare,
                c.prompt_workers,
                largest_per_s=c.largest_per_s,
                slope=float(slope),
                stretch=stretch,
            )
            for c, slope, stretch in zip(self.choices, steep, longer, strict=True)
        ]


def _loaded(context: Context, choices: Sequence[Choice]) -> _Loaded:
    e = choices[0].evaluated
    rows = np.array([c.index for c in choices])
    group = e.group.take(rows)
    carrying = np.array([float(c.carrying) for c in choices])
    engines = replace(e.engines_at(rows), replicas=carrying)
    if choices[0].prompt_workers:
        workers = np.array([float(c.prompt_workers) for c in choices])
        engines = replace(engines, prompt_servers=(workers * engines.ranks * engines.stages)[:, None])
    wary = np.array([c.sure for c in choices]) & (context.workload.rate_per_s is None)
    caution = choices[0].caution.take(group.which)
    loads = context.loads(group, engines, e.rates[1].service)
    return _Loaded(choices, group, loads, caution.where(wary), caution.passes)


def _at_load(w: Workload, together: Loads, groups: Sequence[_Loaded]) -> tuple[Prediction, Sequence[Stretch]]:
    """What the choices of several groups do, [N, 1], and what longer passes do to it: `together` are the loads of
    all."""
    one = np.ones((len(together.engines), 1))
    if w.task == "serve" and w.rate_per_s is not None:
        loaded = together.open(one * w.rate_per_s)
        passes = np.concatenate([each.passes for each in groups], axis=1)
        return loaded, stretched(together, loaded, w, w.rate_per_s, passes)
    loaded = together.closed(one) if w.task == "local" else together.at(_most(w, together, groups)[:, None])
    return loaded, [Stretch()] * len(one)


def _most(w: Workload, loads: Loads, groups: Sequence[_Loaded]) -> Array:
    """The load of every choice of several groups, joined in `loads`, at which throughput, of a job in whole rounds, is
    highest within memory and targets [N]: at the batch of the grid that was found best, or between it and the next.
    Targets hold cautiously wherever they did at that batch."""
    low, high, above, best = (
        np.concatenate(of_each) for of_each in zip(*(one.bracket(w) for one in groups), strict=True)
    )
    if groups[0].choices[0].prompt_workers:  # as many as keep up at the batch of the grid
        return low
    caution, which = Caution.join([one.caution for one in groups]), np.arange(len(low))
    for _ in range(ROUNDS):
        tried = low[:, None] * (high / low)[:, None] ** np.linspace(0.0, 1.0, STEPS)
        found = loads.at(tried, by_resource=False)
        good = meets(*held(loads, found, w), w, caution)
        good &= (found.resident <= loads.engines.limit[:, None]) & (found.budget_share <= 1.0)
        made = found.tokens_per_s
        if w.pieces is not None:
            good &= found.concurrency <= w.pieces * (1.0 + 1e-9)
            kept = made * kept_up(w.pieces, found.concurrency)
            made = np.where(above[:, None], made, kept)
            best = np.maximum(best, made[:, 0])
        good &= made >= best[:, None] * (1.0 - 1e-9)
        good[:, 0] = True
        # up to the first load that is too much
        last = np.argmin(np.concatenate([good, np.zeros((len(low), 1), dtype=bool)], axis=1), axis=1) - 1
        low, high = tried[which, last], tried[which, np.minimum(last + 1, STEPS - 1)]
        best = np.maximum(best, made[which, last])
    return low
