"""The assignment of demands to supplies against every assignment there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from bench.assignment import DEMANDS, made_up

from chipwise.search import assignment
from chipwise.search.assignment import GROWS_USD, GROWS_WATTS, AssignmentProblem, Effort, assign, least_more

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
        card=np.full(n, -1),
        max_usd_per_h=float(rng.choice([np.inf, 15.0, 25.0])),
        max_watts=float(rng.choice([np.inf, 4000.0])),
    )


def shared(seed: int) -> AssignmentProblem:
    """The same, with cards on which two or three of the demands find room; each card of one chip, for less than both
    would pay apart or for more."""
    p = drawn(seed)
    rng = np.random.default_rng(1000 + seed)
    cards = [ds for ds in ((0, 1), (0, 2), (1, 2), (0, 1, 2)) if rng.random() < 0.7] or [(0, 1)]
    more: dict[str, list[float]] = {name: [] for name in assignment.OF_CANDIDATES}
    for i, ds in enumerate(cards):
        part = rng.dirichlet(np.ones(len(ds)))
        supply, usd = int(rng.integers(0, 4)), rng.uniform(0.0, 12.0)
        for d, share in zip(ds, part, strict=True):
            row = (d, supply, p.need[d, 0] * rng.choice([1.0, 1.0, 0.6]), share, usd * share, 300.0 * share, 1, 0, i)
            for name, value in zip(more, row, strict=True):
                more[name].append(float(value))
    joined = {
        name: np.append(getattr(p, name), np.array(values).astype(getattr(p, name).dtype))
        for name, values in more.items()
    }
    return replace(p, **joined)


def brute_shared(p: AssignmentProblem) -> tuple[tuple[int, ...], float]:
    """The same as `brute` where cards are shared: up to two of each kind of card, and what they leave apart."""
    alone = p.card < 0
    kinds = range(int(p.card.max()) + 1)
    best: tuple[tuple[int, ...], float] = ((), np.inf)
    apart = replace(p, **{name: getattr(p, name)[alone] for name in assignment.OF_CANDIDATES})
    levels = sorted({float(level) for level in p.priority}, reverse=True)
    for counts in product(range(3), repeat=len(kinds)):
        x = np.zeros(len(p.demand))
        for kind in kinds:
            x[p.card == kind] = counts[kind]
        given = np.array([(p.rate * x)[p.demand == d].sum() for d in range(3)])
        ways = []
        for d in range(3):
            left = max(p.need[d, 0] - given[d], 0.0)
            rest = covers(replace(apart, need=np.full((3, 1), left)), d) if left > 1e-9 else np.zeros((1, alone.sum()))
            ways.append([(row, bool(left <= 1e-9 or row.any())) for row in rest])
        for chosen in product(*ways):
            y = x.copy()
            y[alone] = sum(row for row, _ in chosen)
            if p.usd_per_h @ y > p.max_usd_per_h + 1e-9 or p.watts @ y > p.max_watts + 1e-9:
                continue
            if any(p.chips[p.supply == s] @ y[p.supply == s] > p.room[s] + 1e-9 for s in range(4)):
                continue
            placed = np.array([is_placed for _, is_placed in chosen])
            reached = tuple(int(np.sum(placed & (p.priority == level))) for level in levels)
            usd = 24.0 * float(p.usd_per_h @ y)
            if reached > best[0] or (reached == best[0] and usd < best[1]):
                best = reached, usd
    return best


@pytest.mark.parametrize("group", range(4))
def test_nothing_is_better_than_what_is_assigned_to_shared_cards(group: int) -> None:
    used = 0
    for seed in range(6 * group, 6 * group + 6):
        p = shared(seed)
        found = assign(p, EXACT)
        assert found is not None
        counts, usd = brute_shared(p)
        levels = sorted({float(level) for level in p.priority}, reverse=True)
        assert tuple(int(np.sum(found.placed & (p.priority == level))) for level in levels) == counts
        assert found.usd_per_day == pytest.approx(usd, abs=24 * 12 * 1e-4 * 8)
        for kind in range(int(p.card.max()) + 1):
            assert len(set(found.units[p.card == kind, 0])) == 1, "all on a card or none"
        used += bool(found.units[p.card >= 0].any())
    assert used, "of six fleets one at least shares a card"


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


def chained(seed: int) -> AssignmentProblem:
    """The same, two or three of the demands steps of one chain: each candidate takes a time, and those that together
    take longer than the chain may clash."""
    p = drawn(seed)
    rng = np.random.default_rng(2000 + seed)
    chain = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0]][int(rng.integers(0, 3))])
    steps = np.flatnonzero(chain == np.argmax(np.bincount(chain)))
    took = rng.uniform(0.1, 1.0, len(p.demand))
    each = [np.flatnonzero(p.demand == d).tolist() for d in steps]
    most = rng.uniform(0.3, 0.8) * len(steps)
    return replace(
        p,
        chain=chain,
        priority=rng.integers(0, 2, 3).astype(float)[chain],
        clashes=tuple(ks for ks in product(*each) if sum(took[list(ks)]) > most),
    )


def brute_chained(p: AssignmentProblem) -> tuple[tuple[int, ...], float]:
    """The same as `brute` where demands are steps of a chain: each placed with all of it, with nothing that clashes."""
    assert p.chain is not None
    ways = [covers(p, d) for d in range(3)]
    best: tuple[tuple[int, ...], float] = ((), np.inf)
    levels = sorted({float(level) for level in p.priority}, reverse=True)
    for chosen in product(*(range(len(w)) for w in ways)):
        placed = np.array([i > 0 for i in chosen])
        if any(len(set(placed[p.chain == c])) > 1 for c in p.chain):
            continue
        x = sum(w[i] for w, i in zip(ways, chosen, strict=True))
        if any(all(x[k] > 0 for k in clash) for clash in p.clashes):
            continue
        if p.usd_per_h @ x > p.max_usd_per_h + 1e-9 or p.watts @ x > p.max_watts + 1e-9:
            continue
        if any(p.chips[p.supply == s] @ x[p.supply == s] > p.room[s] for s in range(4)):
            continue
        counts = tuple(len(set(p.chain[placed & (p.priority == level)])) for level in levels)
        usd = 24.0 * float(p.usd_per_h @ x)
        if counts > best[0] or (counts == best[0] and usd < best[1]):
            best = counts, usd
    return best


@pytest.mark.parametrize("group", range(5))
def test_nothing_is_better_than_what_is_assigned_to_chains(group: int) -> None:
    split = dearer = 0
    for seed in range(20 * group, 20 * group + 20):
        p = chained(seed)
        found = assign(p, EXACT)
        assert found is not None
        counts, usd = brute_chained(p)
        levels = sorted({float(level) for level in p.priority}, reverse=True)
        firsts = found.placed & p.first
        assert tuple(int(np.sum(firsts & (p.priority == level))) for level in levels) == counts
        assert found.usd_per_day == pytest.approx(usd, abs=24 * 12 * 1e-4 * 8)
        assert (found.placed == found.placed[p.leader]).all(), "a chain is placed whole or not at all"
        used = found.units.max(axis=1) > 0
        assert not any(all(used[list(clash)]) for clash in p.clashes)
        split += not found.placed.all()
        free = assign(replace(p, clashes=()), EXACT)
        dearer += free is not None and bool(
            (free.placed == found.placed).all() and free.usd_per_day < found.usd_per_day - 0.3
        )
    assert split, "of twenty fleets one at least is too small"
    assert dearer, "of twenty targets one at least costs money"


def test_the_large_fleet_that_is_timed_is_a_problem_as_it_is_now() -> None:
    p = replace(made_up(0), hours=np.ones(1), need=made_up(0).need[:, :1])
    found = assign(p, Effort(seconds=20.0, gap=0.05))
    assert found is not None
    assert found.placed.sum() == DEMANDS


def test_more_supply_is_never_dearer_and_a_demand_less_is_not_either() -> None:
    for seed in range(20):
        p = replace(drawn(seed), priority=np.zeros(3))
        found = assign(p, EXACT)
        assert found is not None
        for s in range(4):
            wider = assign(replace(p, room=p.room + 4.0 * (np.arange(4) == s)), EXACT)
            assert wider is not None
            assert wider.placed.sum() >= found.placed.sum()
            if (wider.placed == found.placed).all():
                assert wider.usd_per_day <= found.usd_per_day + 0.3
        if not found.placed.all():
            continue
        for d in range(3):
            kept = p.demand != d
            fewer = replace(p, **{name: getattr(p, name)[kept] for name in assignment.OF_CANDIDATES})
            less = assign(fewer, EXACT)
            assert less is not None
            assert less.usd_per_day <= found.usd_per_day + 0.3


def day(amount: float = 0.0, room: float = 8.0, **changed: object) -> AssignmentProblem:
    """A server that is busy by day and a job, on eight chips that are owned and on rented ones."""
    p = AssignmentProblem(
        hours=np.array([12.0, 12.0]),
        need=np.array([[8.0, 2.0], [1.0, 1.0]]),
        amount=np.array([0.0, amount]),
        priority=np.zeros(2),
        room=np.array([room, np.inf]),
        machine=np.array([4.0, 4.0]),
        demand=np.array([0, 0, 1, 1]),
        supply=np.array([0, 1, 0, 1]),
        rate=np.ones(4),
        chips=np.ones(4),
        usd_per_h=np.array([0.0, 2.0, 0.0, 3.0]),
        watts=np.full(4, 100.0),
        whole=np.ones(4, dtype=bool),
        held=np.zeros(4, dtype=bool),
        card=np.full(4, -1),
    )
    return replace(p, **changed)  # type: ignore[arg-type]


def test_a_job_runs_in_the_trough_of_what_is_served() -> None:
    found = assign(day(amount=6 * 12 * 3600.0), EXACT)
    assert found is not None
    assert found.usd_per_day == 0.0
    assert found.units[0].tolist() == [8.0, 2.0]
    assert found.units[2].tolist() == [0.0, 6.0]
    more = assign(day(amount=7 * 12 * 3600.0), EXACT)
    assert more is not None
    assert more.usd_per_day == pytest.approx(12 * 2.0)  # by day a rented chip serves, and the job takes its place


def test_a_job_on_rented_chips_alone_is_spread_over_the_day() -> None:
    p = day(amount=6 * 12 * 3600.0)
    kept = [0, 3]
    fields = {name: getattr(p, name)[kept] for name in assignment.OF_CANDIDATES}
    found = assign(replace(p, **fields), EXACT)
    assert found is not None
    assert found.units[1].tolist() == [3.0, 3.0]
    assert found.usd_per_day == pytest.approx(6 * 12 * 3.0)


def test_what_is_held_keeps_its_chips_all_day() -> None:
    p = day(amount=6 * 12 * 3600.0, held=np.array([False, False, True, True]))
    found = assign(p, EXACT)
    assert found is not None
    assert (found.units[2:] == found.units[2:, :1]).all()
    assert found.units[2:, 0].sum() == 3.0
    assert found.usd_per_day == pytest.approx(3 * 12 * 2.0)


def test_machines_that_are_not_mixed_serve_one_demand_at_a_time() -> None:
    p = day(amount=3 * 12 * 3600.0, need=np.array([[5.0, 5.0], [1.0, 1.0]]))
    mixed, apart = assign(p, EXACT), assign(replace(p, mixed=False), EXACT)
    assert mixed is not None
    assert apart is not None
    assert mixed.usd_per_day == 0.0
    assert apart.usd_per_day > 0.0


def test_the_least_that_would_do_is_found_by_asking() -> None:
    p = day(room=4.0, max_watts=700.0)
    own = {name: getattr(p, name)[:1] for name in assignment.OF_CANDIDATES}
    p = replace(p, **own, need=p.need[:1], amount=p.amount[:1], priority=p.priority[:1])
    found = assign(p, EXACT)
    assert found is not None
    assert not found.placed.any()
    wanted = np.array([True])
    assert least_more(p, wanted, 0, EXACT) is None  # the power would not do
    free = replace(p, max_watts=np.inf)
    more = least_more(free, wanted, 0, EXACT)
    assert more is not None
    assert more.more == 1.0  # a machine of four chips
    wide = least_more(replace(p, room=np.array([8.0, np.inf])), wanted, GROWS_WATTS, EXACT)
    assert wide is not None
    assert wide.more == pytest.approx(100.0)
    dear = replace(free, supply=np.array([1]), usd_per_h=np.array([2.0]), max_usd_per_h=10.0)
    paid = least_more(dear, wanted, GROWS_USD, EXACT)
    assert paid is not None
    assert paid.more == pytest.approx(6.0)


def test_slices_alone_are_as_good_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    p = day(amount=9 * 12 * 3600.0)
    at_once = assign(p, EXACT)
    monkeypatch.setattr(assignment, "MANY", 0)
    monkeypatch.setattr(assignment, "PROMISING", 1.0)
    by_slice = assign(p, EXACT)
    assert at_once is not None
    assert by_slice is not None
    assert by_slice.usd_per_day == pytest.approx(at_once.usd_per_day)
    assert by_slice.bound_usd_per_day <= at_once.usd_per_day
