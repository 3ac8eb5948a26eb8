"""The assignment of demands to supplies against every assignment there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from chipwise.search.assignment import GROWS_USD, AssignmentProblem, Effort, assign, least_more

pytest.importorskip("scipy")
EXACT = Effort(seconds=60.0)


def drawn(seed: int) -> AssignmentProblem:
    """Three demands on four supplies, a candidate for each pair that is not left out."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in product(range(3), range(4)) if rng.random() < 0.85]
    demand, supply = np.array(pairs).T
    n = len(pairs)
    return AssignmentProblem(
        hours=np.array([24.0]),
        need=rng.uniform(1.0, 9.0, (3, 1)),
        amount=np.zeros(3),
        priority=rng.integers(0, 2, 3).astype(float),
        room=np.where(rng.random(4) < 0.5, rng.integers(0, 9, 4), np.inf),
        machine=np.full(4, 4.0),
        demand=demand,
        supply=supply,
        rate=rng.uniform(0.8, 5.0, n),
        chips=rng.choice([1.0, 2.0, 4.0], n),
        usd_per_h=np.round(rng.uniform(0.0, 10.0, n), 2),
        watts=rng.uniform(100.0, 900.0, n),
        whole=np.ones(n, dtype=bool),
        held=np.zeros(n, dtype=bool),
        max_usd_per_h=float(rng.choice([np.inf, 15.0, 25.0])),
        max_watts=float(rng.choice([np.inf, 4000.0])),
    )


def covers(p: AssignmentProblem, d: int) -> np.ndarray:
    """Units [N, K] that serve a demand and of which none is superfluous; first those that place nothing."""
    mine = np.flatnonzero(p.demand == d)
    found = [np.zeros(len(p.demand))]
    most = [int(np.ceil(p.need[d, 0] / p.rate[k])) for k in mine]
    for units in product(*(range(m + 1) for m in most)):
        x = np.zeros(len(p.demand))
        x[mine] = units
        spare = p.rate @ x - p.need[d, 0]
        if spare >= -1e-9 and all(spare < p.rate[k] for k in mine if x[k]):
            found.append(x)
    return np.array(found)


def brute(p: AssignmentProblem) -> tuple[tuple[int, ...], float]:
    """How many demands of each priority are placed, the highest first, and dollars a day: the best of everything."""
    ways = [covers(p, d) for d in range(3)]
    best: tuple[tuple[int, ...], float] = ((), np.inf)
    levels = sorted({float(level) for level in p.priority}, reverse=True)
    for chosen in product(*(range(len(w)) for w in ways)):
        x = sum(w[i] for w, i in zip(ways, chosen, strict=True))
        if p.usd_per_h @ x > p.max_usd_per_h + 1e-9 or p.watts @ x > p.max_watts + 1e-9:
            continue
        if any(p.chips[p.supply == s] @ x[p.supply == s] > p.room[s] for s in range(4)):
            continue
        placed = np.array([i > 0 for i in chosen])
        counts = tuple(int(np.sum(placed & (p.priority == level))) for level in levels)
        usd = 24.0 * float(p.usd_per_h @ x)
        if counts > best[0] or (counts == best[0] and usd < best[1]):
            best = counts, usd
    return best


@pytest.mark.parametrize("group", range(10))
def test_nothing_is_better_than_what_is_assigned(group: int) -> None:
    some = 0
    for seed in range(20 * group, 20 * group + 20):
        p = drawn(seed)
        found = assign(p, EXACT)
        assert found is not None
        counts, usd = brute(p)
        levels = sorted({float(level) for level in p.priority}, reverse=True)
        assert tuple(int(np.sum(found.placed & (p.priority == level))) for level in levels) == counts
        assert found.usd_per_day == pytest.approx(usd, abs=24 * 12 * 1e-4 * 8)
        assert found.gap < 1e-9
        some += not found.placed.all()
    assert some, "of twenty fleets one at least is too small"
