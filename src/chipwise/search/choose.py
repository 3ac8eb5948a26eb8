"""From priced candidates to plans: the best batch of each, the best of each chip, the front, and why not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.parallel.layout import Reason
from chipwise.search.evaluate import REASONS, Evaluated
from chipwise.search.space import Deployment, Limits
from chipwise.units import Array
from chipwise.workload.workload import Workload

__all__ = ["Choice", "Refusal", "choose", "pareto"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate at its best batch. `index` and `point` locate it in its `Evaluated`; the figures are of
    one replica, except `replicas` and `usd_per_h`, which serve the whole load. NaN price = unknown."""

    deployment: Deployment
    evaluated: Evaluated
    index: int
    point: int
    replicas: int
    chips: int
    usd_per_h: float
    tokens_per_s: float
    tpot_s: float
    ttft_s: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """A chip without a plan: the reason of the candidate that came closest to being one."""

    deployment: Deployment
    reason: Reason
    candidates: int


def choose(
    evaluated: Evaluated, workload: Workload, prices_usd_per_h: dict[str, float], limits: Limits
) -> tuple[list[Choice], list[Refusal], Counter[Reason]]:
    """The best candidate of every deployment of a group, a refusal for each without one, and how many
    candidates fell to which reason."""
    e = evaluated
    point, meets = _best_point(e, workload)
    reason = np.where((e.reason == 0) & ~meets, REASONS.index(Reason.SLO), e.reason)
    rows = np.arange(len(point))
    rate = e.prediction.requests_per_s[rows, point]
    replicas = np.ones(len(point))
    if workload.rate_per_s is not None and workload.task == "serve":
        with np.errstate(invalid="ignore", divide="ignore"):
            replicas = np.ceil(workload.rate_per_s / rate * (1 - 1e-9))
    per_package = np.array([d.chip.devices_per_package for d in e.group.deployments])[e.group.which]
    each = np.asarray(e.group.layouts().devices) / per_package
    most = np.array([limits.chips(d.chip.id) for d in e.group.deployments])[e.group.which]
    if limits.have and workload.task != "local" and workload.rate_per_s is None:
        # what the user has is all put to work
        replicas = np.maximum(np.floor(most / each), 1.0)
    chips = replicas * each
    price = np.array([prices_usd_per_h.get(d.chip.id, np.nan) for d in e.group.deployments])[e.group.which]
    usd_per_h = chips * price
    with np.errstate(invalid="ignore"):
        over = chips > most
        if limits.max_usd_per_h is not None:
            # an unknown price is no price below the limit
            over |= ~(usd_per_h <= limits.max_usd_per_h)
    reason = np.where((reason == 0) & over, REASONS.index(Reason.BUDGET), reason)
    goal = _preference(e, workload, point, replicas, each, owned=bool(limits.have))
    choices: list[Choice] = []
    refusals: list[Refusal] = []
    for i, deployment in enumerate(e.group.deployments):
        mine = e.group.which == i
        live = mine & (reason == 0)
        if not live.any():
            # no candidate at all: the limit on devices left no layout
            closest = max((int(r) for r in reason[mine]), default=REASONS.index(Reason.BUDGET))
            refusals.append(Refusal(deployment, REASONS[closest], int(mine.sum())))
            continue
        best = int(rows[live][np.argmin(goal[live])])
        p = e.prediction
        choices.append(
            Choice(
                deployment,
                e,
                best,
                int(point[best]),
                int(replicas[best]),
                int(chips[best]),
                float(usd_per_h[best]),
                float(p.tokens_per_s[best, point[best]]),
                float(p.tpot_s[best, point[best]]),
                float(p.ttft_s[best, point[best]]),
            )
        )
    counts = Counter(
        {REASONS[code]: int(n) for code, n in zip(*np.unique(reason, return_counts=True), strict=True)}
    )
    return choices, refusals, counts


def pareto(cost: Array, speed: Array) -> NDArray[np.bool_]:
    """Points that no other beats: less cost at no more time, or less time at no more cost. Unknown cost is
    never on the front; equal points are on it together."""
    order = np.lexsort((speed, cost))
    front = np.zeros(len(cost), dtype=bool)
    best, last = np.inf, np.nan
    for i in order:
        if np.isfinite(cost[i]) and (speed[i] < best or (speed[i] == best and cost[i] == last)):
            front[i] = True
            best, last = speed[i], cost[i]
    return front


def _best_point(e: Evaluated, w: Workload) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The batch with the highest throughput that meets the targets, and whether there is one."""
    p = e.prediction
    with np.errstate(invalid="ignore"):
        good: NDArray[np.bool_] = e.allowed.copy()
        if w.task == "local":
            good[:, 1:] = False
        if w.tpot_s is not None:
            good &= np.asarray(p.tpot_s <= w.tpot_s)
        if w.ttft_s is not None:
            good &= np.asarray(p.ttft_s <= w.ttft_s)
    rate = np.where(good, np.nan_to_num(p.tokens_per_s), -1.0)
    return np.argmax(rate, axis=1), np.asarray(good.any(axis=1))


def _preference(
    e: Evaluated, w: Workload, point: NDArray[np.int64], replicas: Array, each: Array, *, owned: bool
) -> Array:
    """Place of every layout in the order of preference, `each` being the chips of one replica.

    Chips that the user has: the fastest answer for one user, else the most tokens in all. Chips to be paid:
    where the load is given, the fewest that carry it, then the fastest; else the fewest chip-seconds per token.
    """
    rows = np.arange(len(point))
    p = e.prediction
    answer = (p.ttft_s + w.output_tokens * p.tpot_s)[rows, point]
    tokens = p.tokens_per_s[rows, point]
    if w.task == "local":
        order = np.lexsort((each, answer)) if owned else np.lexsort((answer, each))
    elif owned:
        order = np.lexsort((answer, -replicas * tokens))
    elif w.task == "serve" and w.rate_per_s is not None:
        order = np.lexsort((answer, replicas * each))
    else:
        order = np.lexsort((answer, each / tokens))
    place = np.empty(len(order))
    place[order] = rows
    return place
