"""The search: every layout of every chip under all software that can run the model, and those that can come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chipwise.api.context import Context
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent
from chipwise.parallel.layout import Reason
from chipwise.search.choose import BETWEEN, Choice, Chosen, Refusal, choose
from chipwise.search.evaluate import evaluate
from chipwise.search.prefer import Contenders, first, kept
from chipwise.search.space import Deployment, Group, Limits, candidates
from chipwise.search.targets import Caution


@dataclass
class Found:
    """The choices that can come first and the nearest refusal of every chip, the candidates priced, and what they fell
    to."""

    choices: dict[str, list[Choice]] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    considered: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)


def search(
    context: Context,
    offered: Sequence[Deployment],
    limits: Limits,
    prices: Mapping[str, Rent | OwnCosts | None],
) -> Found:
    """Search `offered`, which may hold several runtimes of a chip in order of preference: under the first every layout,
    under the others those that it leaves in question."""
    found = Found()
    caution, place = context.caution(offered), {id(d): i for i, d in enumerate(offered)}

    def wary(group: Group) -> Caution:
        return caution.take(np.array([place[id(d)] for d in group.deployments], dtype=np.intp))

    usual = list({d.chip.id: d for d in reversed(offered)}.values())
    hopeless: dict[str, frozenset[tuple[int, ...]]] = {}
    for group in candidates(context.found.graph, tuple(usual), limits):
        chosen = _added(found, context, group, prices, limits, wary(group))
        hopeless |= chosen.hopeless() if len(usual) < len(offered) else {}
    others = tuple(d for d in offered if not any(d is first for first in usual))
    for group in candidates(context.found.graph, others, limits, hopeless):
        _added(found, context, group, prices, limits, wary(group), again=True)
    for chip in found.choices:
        found.refusals.pop(chip, None)
    return found


def _added(
    found: Found,
    context: Context,
    group: Group,
    prices: Mapping[str, Rent | OwnCosts | None],
    limits: Limits,
    caution: Caution,
    *,
    again: bool = False,
) -> Chosen:
    """Price a group and add what it has to what was found. `again`: a deployment of which no layout is in question says
    nothing."""
    rates = context.rates(group.deployments)
    priced = evaluate(context.found.graph, group, context.workload, *rates)
    chosen = choose(priced, context.workload, prices, limits, caution)
    found.considered += priced.plans
    found.rejected += chosen.counts
    for choice in chosen.choices:
        found.choices.setdefault(choice.deployment.chip.id, []).append(choice)
    tried = {group.deployments[i].chip.id for i in set(group.which.tolist())}
    for refusal in chosen.refusals:
        if again and refusal.chip not in tried:
            continue
        known = found.refusals.get(refusal.chip)
        found.refusals[refusal.chip] = known.closer(refusal) if known else refusal
    return chosen


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
