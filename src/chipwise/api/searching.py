"""The search: every layout of every chip under the runtimes that can, and the best of each chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from chipwise.api.context import Context
from chipwise.catalog.price import Own, Rent
from chipwise.parallel.layout import Reason
from chipwise.search.choose import Choice, Refusal, choose
from chipwise.search.evaluate import evaluate
from chipwise.search.space import Deployment, Limits, candidates

__all__ = ["RUNTIMES", "Effort", "Found", "search"]

Effort = Literal["best", "own", "named", "market"]

RUNTIMES: Mapping[Effort, str] = {
    "best": "of all runtimes that can, the best on each chip",
    "own": "on each chip the runtime that is its default, unless another one is over 30 % better",
    "named": "on each chip the runtime that is its default, the next where it has no plan (--runtime best: the best)",
    "market": "on each chip the runtime that is its default (--runtime best: the best)",
}
"""Which runtimes a search tries, in words."""

# Better by so much that the intervals of runtimes that nobody measured hardly explain it.
CLEARLY: Mapping[Effort, float] = {"best": 0.0, "own": 0.3}


@dataclass
class Found:
    """The best choice or the nearest refusal of every chip, the candidates priced, and what they fell to."""

    choices: dict[str, Choice] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    considered: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)


def search(
    context: Context,
    offered: Sequence[Deployment],
    limits: Limits,
    prices: Mapping[str, Rent | Own | None],
    effort: Effort,
) -> Found:
    """Search `offered`, which may hold several runtimes of a chip in order of preference; which of them are tried
    and chosen: `RUNTIMES`."""
    found, compare = Found(), effort in CLEARLY
    for deployments in _rounds(offered, compare=compare):
        open_ = tuple(d for d in deployments if compare or d.chip.id not in found.choices)
        for group in candidates(context.found.graph, open_, limits):
            rates = context.rates(group.deployments)
            priced = evaluate(context.found.graph, group, context.workload, *rates)
            caution = context.caution(group.deployments)
            choices, refusals, counts = choose(priced, context.workload, prices, limits, caution)
            found.considered += priced.plans
            found.rejected += counts
            for choice in choices:
                chip = choice.deployment.chip.id
                best = found.choices.get(chip)
                if best is None or _before(choice, best, CLEARLY.get(effort, 0.0)):
                    found.choices[chip] = choice
            for refusal in refusals:
                chip = refusal.chip
                known = found.refusals.get(chip)
                found.refusals[chip] = known.closer(refusal) if known else refusal
    for chip in found.choices:
        found.refusals.pop(chip, None)
    return found


def _before(choice: Choice, best: Choice, clearly: float) -> bool:
    """Whether a choice is clearly better than the one that is preferred."""
    for mine, its in zip(choice.order, best.order, strict=True):
        gap = (its - mine) / max(abs(its), abs(mine), 1e-30)
        if abs(gap) > clearly:
            return gap > 0
    return False


def _rounds(offered: Sequence[Deployment], *, compare: bool) -> Iterator[list[Deployment]]:
    if compare:
        yield list(offered)
        return
    rounds: list[list[Deployment]] = []
    place: Counter[str] = Counter()
    for d in offered:
        if place[d.chip.id] == len(rounds):
            rounds.append([])
        rounds[place[d.chip.id]].append(d)
        place[d.chip.id] += 1
    yield from rounds
