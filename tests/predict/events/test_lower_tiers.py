"""Tiers below a cache: against small simulations of lists, against a bigger cache, and what must grow with room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from naive import machine_seconds

from chipwise.predict.events.cache import NEVER, Blocks, CacheTier, depths, hit_rate
from chipwise.predict.events.engine import Fleet, Outcome, run
from chipwise.predict.events.rank import Rules
from chipwise.predict.steptable import StepTable
from chipwise.workload.arrivals import Arrivals, read_log

SIZE = 64
"""Tokens of a piece."""
Talks = tuple[tuple[int, ...], ...]


def talks(count: int, seed: int, users: int = 12, most: int = 14) -> Talks:
    """Conversations whose prompts hold all that was said before, some of which start alike."""
    random = np.random.default_rng(seed)
    said: list[list[int]] = [[int(random.integers(3))] for _ in range(users)]
    found, new = [], 1000
    for _ in range(count):
        user = int(random.integers(users) * random.random())
        if len(said[user]) > most:
            said[user] = [int(random.integers(3))]
        more = int(random.integers(1, 4))
        said[user] += range(new, new + more)
        new += more
        found.append(tuple(said[user]))
    return tuple(found)


@pytest.fixture(scope="module", params=[False, True], ids=["mixed", "alone"])
def machine(request: pytest.FixtureRequest) -> tuple[Rules, StepTable]:
    return Rules(1024, 32, 160, 16, alone=request.param), StepTable.of(machine_seconds, alone=request.param)


def stream(gap_s: float, count: int = 300, seed: int = 1) -> Arrivals:
    ids = talks(count, seed)
    prompt = np.array([len(one) * SIZE + 10.0 for one in ids])
    return Arrivals(prompt, np.full(count, 12.0), np.arange(count) * gap_s, ids, SIZE)


def _served(requests: Arrivals, found: Outcome) -> None:
    assert found.served.all()
    assert found.found + found.computed == requests.prompt.sum() + found.again
    assert sum(found.loaded) <= found.found
    assert (found.arrived <= found.began + 1e-12).all()
    assert (found.began < found.first).all()
    assert (found.first <= found.last).all()


def _listed(requests: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[list[int]]:
    """How many pieces of each request lie in each of the memories, by looking through lists of what was used last."""
    stack: list[int] = []
    answers = []
    for ids in requests:
        hits = [0] * len(sizes)
        edges = np.cumsum(sizes)
        for one in ids:
            depth = stack.index(one) if one in stack else NEVER
            place = int(np.searchsorted(edges, depth, "right"))
            if place == len(sizes):
                break
            hits[place] += 1
        answers.append(hits)
        stack = [*ids, *(one for one in stack if one not in ids)]
    return answers


@pytest.mark.parametrize("seed", range(6))
def test_depths_say_what_a_cache_of_any_size_finds(seed: int) -> None:
    requests = talks(120, seed, users=4 + seed)
    found = depths(requests)
    pieces = sum(map(len, requests))
    assert len(found) == pieces
    before = 0.0
    for size in range(1, 140):
        rate = float(np.mean(found <= size))
        assert rate == pytest.approx(hit_rate(requests, size), abs=1e-12)
        assert rate == pytest.approx(sum(h for (h,) in _listed(requests, [size])) / pieces)
        assert rate >= before
        before = rate


def test_depths_of_a_public_trace_are_its_hits_by_capacity(truth: Path) -> None:
    log = read_log(str(truth / "traces" / "mooncake_conversation.jsonl.gz"))
    assert log.blocks is not None
    found = depths(log.blocks)
    shares = [float(np.mean(found <= pieces)) for pieces in (1e3, 1e4, 3e4, 5e4, 1e5, NEVER - 1)]
    assert shares == pytest.approx([0.045, 0.212, 0.326, 0.355, 0.364, 0.366], abs=0.001)


def test_depths_of_little() -> None:
    assert len(depths([])) == len(depths([()])) == 0
    assert depths([(7,), (), (7, 8), (8,), (7, 8)]).tolist() == [NEVER, 1, NEVER, 2, 2, 2]


@pytest.mark.parametrize("sizes", [(15, 10, 20), (18, 3, 5), (30, 1, 60)])
def test_a_chain_of_tiers_holds_what_was_used_last_from_the_top_down(sizes: tuple[int, int, int]) -> None:
    requests = talks(300, 3)
    pool = Blocks(sizes[0], 1, [CacheTier(n) for n in sizes[1:]])
    for ids, hits in zip(requests, _listed(requests, sizes), strict=True):
        places = pool.places(ids)
        assert [places.count(i) for i in range(3)] == hits
        known = ids[: len(places)]
        pool.load(known, places, 0.0)
        new = ids[len(places) :]
        pool.take(len(new))
        pool.keep(new)
        pool.leave(ids)
        held = [pool.kept, *map(len, pool.pools)]
        assert pool.used == 0
        assert all(n <= size for n, size in zip(held, sizes, strict=True))


def test_loads_queue_on_their_link() -> None:
    pool = Blocks(4, 1, [CacheTier(10, piece_s=2.0, latency_s=0.5), CacheTier(10, piece_s=5.0)])
    for ids in ((1, 2), (3, 4), (5, 6)):
        pool.take(2)
        pool.keep(ids)
        pool.leave(ids)
    assert pool.places((1, 2)) == [1, 1]
    assert pool.load((1, 2), [1, 1], 10.0) == 14.5
    assert pool.places((3, 4)) == [1, 1]  # the least recently used made room
    assert pool.load((3, 4), [1, 1], 11.0) == 19.0
    assert pool.places((1, 2, 3, 4)) == [0, 0, 0, 0]
    assert pool.used == 4


def test_an_endless_tier_at_no_cost_is_a_bigger_cache(machine: tuple[Rules, StepTable]) -> None:
    rules, table = machine
    requests = stream(3.0)  # one at a time: the room of those that run is the same
    big = run(requests, Fleet(replace(rules, blocks=1 << 40), table))
    tiered = run(requests, Fleet(replace(rules, tiers=(CacheTier(1 << 40),)), table))
    _served(requests, tiered)
    assert np.array_equal(tiered.last, big.last)
    assert np.array_equal(tiered.first, big.first)
    assert tiered.found == big.found
    assert sum(tiered.loaded) > 0
    alone = run(requests, Fleet(rules, table))
    assert alone.found < big.found
    # what a tier spared is what passes took less
    assert sum(tiered.spared_s) == pytest.approx(alone.busy_s - tiered.busy_s, rel=0.05)


@pytest.mark.parametrize("gap_s", [3.0, 0.05, 0.02])
def test_more_room_below_finds_no_less(gap_s: float, machine: tuple[Rules, StepTable]) -> None:
    rules, table = machine
    requests = stream(gap_s)
    rates, waits = [], []
    for room in (0, 20, 60, 200, 2000):
        found = run(requests, Fleet(replace(rules, tiers=(CacheTier(room, 1e-4, 1e-4),)), table))
        _served(requests, found)
        rates.append(found.hit_rate)
        waits.append(found.ttft_s.mean())
    assert rates == sorted(rates)
    assert rates[0] == run(requests, Fleet(rules, table)).hit_rate < rates[-1]
    assert waits[-1] < waits[0]


def test_what_comes_up_later_than_it_is_computed_is_computed(machine: tuple[Rules, StepTable]) -> None:
    rules, table = machine
    requests = stream(0.05)
    none = run(requests, Fleet(rules, table))
    slow = run(requests, Fleet(replace(rules, tiers=(CacheTier(2000, 10.0),)), table))
    assert slow.loaded == (0,)
    assert np.array_equal(slow.last, none.last)
    both = run(requests, Fleet(replace(rules, tiers=(CacheTier(40, 1e-4), CacheTier(2000, 10.0))), table))
    _served(requests, both)
    assert both.loaded[0] > 0 == both.loaded[1]


@pytest.mark.parametrize("ranks", [1, 2])
def test_jumps_lose_nothing_and_others_run_while_a_prefix_comes_up(
    ranks: int, machine: tuple[Rules, StepTable]
) -> None:
    rules, table = machine
    tiers = (CacheTier(8, 3e-4, 1e-3), CacheTier(300, 6e-4))
    requests = replace(stream(0.04), output=np.full(300, 30.0))
    fleet = Fleet(replace(rules, blocks=240, tiers=tiers), table, 2, ranks, "turn")
    found = run(requests, fleet)
    _served(requests, found)
    assert min(found.loaded) > 0
    again = run(requests, fleet)
    assert np.array_equal(found.last, again.last)
    single = run(requests, replace(fleet, rules=replace(fleet.rules, jumps=False)))
    assert found.loaded == single.loaded
    assert np.max(np.abs(found.last - single.last)) < 1e-6
    assert found.events < single.events
