"""Which of several plans comes first: one order for all tasks, on arrays, by `catalog/data/preferences.toml`.

A task says what a plan costs, what is waited for, how surely targets hold and what speaks against it; nothing else of a
plan counts here. The rules, each before the next:

1. plans of a lower `group` (a known price before none), and of those the plans whose targets hold as surely as asked;
2. nothing stands above a plan that is no dearer, no slower, no less likely and no worse founded; a time that is longer
   by less than anybody notices is no slower where another time is shorter by more, and costs that count as the same
   are no dearer where no time is longer and one has a lead (`tie`);
3. costs within `equal` of the cheapest count as the same, and what is better founded may cost `evidence` more for each
   doubt fewer, a part of one as much as a whole: of these the best founded, then the smallest by `size`, then the
   cheapest, then the likelier (`LIKELIER`), then the quicker.

Of plans that keep no target as surely as asked the likeliest comes first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.preferences import preferences
from chipwise.units import Array
from chipwise.values import dataclass

ENDS = 0.002
"""probability: by which a chance may miss the confidence that is asked for. Exact: ends of intervals have three
digits, so twice the last."""
LIKELY = 0.01
"""probability: a step in which chances are told apart. Exact: whole percent, as they are printed."""

LIKELIER = 0.05
"""probability: by how much less than the likeliest goes before a shorter time, at the same cost. Chosen: ends of
intervals are less sure than that; moves which software or layout of the same machines comes first."""


@dataclass(frozen=True)
class Contenders:
    """What plans are compared by, a column for each of N plans.

    `cost` [N] in the unit of the task, NaN where it is unknown; `times` [T, N] that are waited for, in seconds, or what
    else a plan is not to take more of, dollars where `cost` is none of them; `chance` [N] that the targets hold, 1
    where there are none; `doubts` [N], how many things speak against a plan; `size` [S, N], the first row before the
    second; `group` [N].
    """

    cost: Array
    times: Array
    chance: Array
    doubts: Array
    size: Array
    group: Array

    @classmethod
    def of(
        cls,
        cost: Sequence[float] | Array,
        *,
        times: Sequence[Sequence[float]] | Array = (),
        chance: Sequence[float | None] | Array | None = None,
        doubts: Sequence[int] | Array | None = None,
        size: Sequence[Sequence[float]] | Array = (),
        group: Sequence[float] | Array | None = None,
    ) -> Contenders:
        """Columns; what is left out speaks for and against nothing."""
        n = len(cost)

        def column(values: Sequence[float | None] | Array | None, blank: float) -> Array:
            given = np.full(n, blank) if values is None else np.array(values, dtype=float)
            return np.where(np.isnan(given), blank, given)

        def rows(values: Sequence[Sequence[float]] | Array) -> Array:
            return np.array(values, dtype=float).reshape(len(values), n)

        chances, against, groups = column(chance, 1.0), column(doubts, 0.0), column(group, 0.0)
        return cls(np.array(cost, dtype=float), rows(times), chances, against, rows(size), groups)

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, which: NDArray[np.intp]) -> Contenders:
        """Some of them."""
        return Contenders(*(getattr(self, f.name)[..., which] for f in fields(self)))

    @classmethod
    def join(cls, parts: Sequence[Contenders]) -> Contenders:
        """Those of several tables."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts], axis=-1) for f in fields(cls)))


def kept(chance: Array, confidence: float) -> NDArray[np.bool_]:
    """Whether targets hold as surely as asked."""
    return np.asarray(chance >= confidence - ENDS)


def first(c: Contenders, confidence: float, noise: float | None = None) -> int:
    """The index of the plan that comes first. `noise`: what counts as the same cost, in place of `equal`. Raises
    `ValueError` where there is none."""
    if not len(c):
        raise ValueError("nothing to choose from")
    return _leader(c, np.arange(len(c)), confidence, noise)


def order(c: Contenders, confidence: float, noise: float | None = None) -> NDArray[np.intp]:
    """The indices of all plans in their order."""
    left, found = np.arange(len(c)), []
    while len(left):
        leader = _leader(c, left, confidence, noise)
        found.append(leader)
        left = left[left != leader]
    return np.array(found, dtype=np.intp)


def unled(
    c: Contenders, places: Sequence[int] | NDArray[np.intp], confidence: float, noise: float | None = None
) -> list[int]:
    """The same places of plans in an order where none stands above one that leads it, though one thing more may speak
    against that: no dearer, no slower, no less likely, and sooner by a lead (`tie`) or cheaper by more than `equal`."""
    noise = preferences().equal if noise is None else noise
    sure = kept(c.chance, confidence)
    cost, quick = np.nan_to_num(c.cost, nan=np.inf), c.times

    def led(plan: int, by: NDArray[np.intp]) -> bool:
        slow = quick[:, [plan]]
        alike = (c.group[by] == c.group[plan]) & (sure[by] == sure[plan])
        alike &= c.doubts[by] <= c.doubts[plan] + 1.0
        no_worse = (cost[by] <= cost[plan]) & (c.chance[by] >= c.chance[plan]) & (quick[:, by] <= slow).all(axis=0)
        ahead = (quick[:, by] * preferences().tie < slow).any(axis=0)
        saves = (quick[:, by] < slow).any(axis=0) & (cost[by] * (1.0 + noise) < cost[plan])
        return bool((alike & no_worse & (ahead | saves)).any())

    left, found = [int(i) for i in places], []
    while left:
        among = np.array(left, dtype=np.intp)
        found.append(next(i for i in left if not led(i, among)))
        left.remove(found[-1])
    return found


def first_of_each(
    c: Contenders, labels: Sequence[Hashable], confidence: float, noise: float | None = None
) -> NDArray[np.intp]:
    """The indices of the plans that come first among those of a label, [labels] in the order of their first plans."""
    found: dict[Hashable, list[int]] = {}
    for i, label in enumerate(labels):
        found.setdefault(label, []).append(i)
    each = (np.array(members, dtype=np.intp) for members in found.values())
    return np.array([some[first(c.take(some), confidence, noise)] for some in each], dtype=np.intp)


def cheapest(c: Contenders, confidence: float) -> int:
    """The index of the cheapest plan among those that the first was chosen from; of equal costs the first itself."""
    if not len(c):
        raise ValueError("nothing to choose from")
    return _leader(c, np.arange(len(c)), confidence, 0.0, 0.0)


def _leader(
    c: Contenders, among: NDArray[np.intp], confidence: float, noise: float | None, evidence: float | None = None
) -> int:
    """The plan that comes first."""
    if len(among) == 1:
        return int(among[0])
    p = preferences()
    noise = p.equal if noise is None else noise
    evidence = max(p.evidence if evidence is None else evidence, noise)
    pool = among[c.group[among] == c.group[among].min()]
    sure = kept(c.chance[pool], confidence)
    if sure.any():
        pool = pool[sure]
    else:
        percent = np.floor(c.chance[pool] / LIKELY + 0.2)
        pool = pool[percent == percent.max()]
    # where costs are not known they are alike
    cost = np.nan_to_num(c.cost[pool], nan=np.inf)
    least = cost.min()
    if np.isfinite(least):
        room = abs(least)
        alike = cost <= least + noise * room
        fewer = c.doubts[pool][alike].min() - c.doubts[pool]
        dearest = least + evidence * room * np.maximum(fewer, 1.0)
        pool = pool[alike | ((fewer > 0) & (cost <= dearest))]
    less = c.chance[pool].max() - c.chance[pool]
    cost = np.nan_to_num(c.cost[pool], nan=np.inf)
    keys = (c.doubts[pool], *c.size[:, pool], cost, np.floor(less / LIKELIER), *c.times[:, pool])
    pool = pool[np.lexsort(keys[::-1])]
    for leader in pool:
        if not _beaten(c, int(leader), pool, noise):
            return int(leader)
    return int(pool[0])  # only where figures are no numbers


def _beaten(c: Contenders, plan: int, by: NDArray[np.intp], noise: float) -> bool:
    """Whether another plan is at least as good in everything that is asked for, and better in something. Times that
    nobody tells apart (`noticed`) count as the same where another is shorter by more than that; costs within `noise` do
    where no time is longer and one has a lead (`tie`)."""
    exact = np.concatenate([np.nan_to_num(c.cost[None], nan=np.inf), -c.chance[None], c.doubts[None]])
    mine, its = exact[:, [plan]], exact[:, by]
    slow, quick = c.times[:, [plan]], c.times[:, by]
    as_good = (its <= mine).all(axis=0)
    dominates = as_good & (quick <= slow).all(axis=0) & ((its < mine).any(axis=0) | (quick < slow).any(axis=0))
    noticed = preferences().noticed
    alike = (quick <= slow * (1.0 + noticed)).all(axis=0)
    quicker = as_good & alike & (quick < slow * (1.0 - noticed)).any(axis=0)
    as_cheap = (its[1:] <= mine[1:]).all(axis=0) & (its[0] <= mine[0] + noise * np.abs(mine[0]))
    leads = as_cheap & (quick <= slow).all(axis=0) & (quick * preferences().tie < slow).any(axis=0)
    return bool((dominates | quicker | leads).any())


def tied(c: Contenders, plan: int, confidence: float) -> NDArray[np.bool_]:
    """Which plans keep targets as `plan` does and cost the same as it (`equal`), [N]; itself not."""
    p, cost = preferences(), c.cost
    with np.errstate(invalid="ignore"):
        near = np.abs(cost - cost[plan]) <= p.equal * np.minimum(np.abs(cost), abs(cost[plan]))
    sure = kept(c.chance, confidence)
    found = near & (sure == sure[plan]) & (c.group == c.group[plan])
    found[plan] = False
    return np.asarray(found)


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
