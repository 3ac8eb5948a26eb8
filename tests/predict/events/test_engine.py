"""The engine of events: against a scheduler that looks at everything, against theory, and against what must be kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from naive import machine_seconds, naive

from chipwise.predict.events.cache import ENDLESS, Blocks, hit_rate
from chipwise.predict.events.engine import ROUTES, Fleet, Outcome, run, run_apart
from chipwise.predict.events.rank import Rules
from chipwise.predict.steptable import StepTable
from chipwise.workload.arrivals import Arrivals, read_log
from chipwise.workload.lengths import Lengths
from chipwise.workload.step import Step

SCATTERED = Lengths(600.0, 90.0, 1.0, 0.8)
POLICIES = {
    "mixed": Rules(1024, 48, 3000, 16),
    "small cache": Rules(1024, 64, 520, 16),
    "small budget": Rules(96, 40, 3000, 16),
    "whole": Rules(1024, 48, 900, 32, whole=True),
    "alone": Rules(1024, 64, 60_000, 1, alone=True),
    "alone small": Rules(512, 64, 9000, 1, alone=True),
    "swap": Rules(1024, 64, 520, 16, moved_s=2e-6),
    "swap alone": Rules(512, 64, 9000, 1, alone=True, moved_s=1e-5),
    "static": Rules(2048, 8, ENDLESS, 1, whole=True, alone=True, static=True),
}


def test_a_prompt_adds_a_tile_where_the_whole_pass_crosses_one() -> None:
    def tiled(step: Step) -> np.ndarray:
        """A machine that works on 128 tokens of a pass at a time."""
        return 5e-3 + 2e-3 * np.ceil(np.asarray(step.tokens) / 128.0)

    table = StepTable.of(tiled, alone=False)
    for sequences, chunk in ((14, 1000), (30, 1000), (14, 880), (40, 600), (64, 200)):
        said = table.seconds(sequences, 1024.0, chunk)
        assert said == pytest.approx(5e-3 + 2e-3 * np.ceil((sequences + chunk) / 128), rel=0.01)


@pytest.fixture(scope="module")
def mixed() -> StepTable:
    return StepTable.of(machine_seconds, alone=False)


@pytest.fixture(scope="module")
def alone() -> StepTable:
    return StepTable.of(machine_seconds, alone=True)


@pytest.fixture(scope="module")
def stream() -> Arrivals:
    # the longest need 5,000 tokens: room for them is in every cache
    drawn = Arrivals.drawn(SCATTERED, 1500, 9.0, seed=3)
    return replace(drawn, prompt=np.minimum(drawn.prompt, 5000.0))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_scheduler_that_looks_at_everything_agrees(
    policy: str, stream: Arrivals, mixed: StepTable, alone: StepTable
) -> None:
    rules = POLICIES[policy]
    table = alone if rules.alone else mixed
    slow = naive(stream, rules, table)
    single = run(stream, Fleet(replace(rules, jumps=False), table))
    for name in ("began", "first", "last"):
        assert getattr(single, name) == pytest.approx(slow[name], rel=1e-12, abs=1e-9), name
    assert single.preempted == slow["preempted"]
    jumped = run(stream, Fleet(rules, table))
    assert jumped.events < 0.7 * single.events or rules.static
    assert jumped.passes == single.passes
    assert jumped.preempted == single.preempted
    assert np.max(np.abs(jumped.last - single.last)) < 1e-6
    assert (policy in ("small cache", "alone small", "swap", "swap alone")) == (single.preempted > 0)
    assert (policy in ("small cache", "alone small")) == (single.again > 0)


def _kept(stream: Arrivals, found: Outcome) -> None:
    served = found.served
    assert served.all()
    assert found.computed == stream.prompt.sum() - found.found + found.again
    assert (found.arrived <= found.began + 1e-12).all()
    assert (found.began < found.first).all()
    assert (found.first <= found.last).all()
    many = stream.output > 1
    assert (found.first[many] < found.last[many]).all()
    # Little's law: requests in the system, over time, are the sum of their times in it
    ends = np.sort(np.concatenate([found.arrived, found.last]))
    inside = np.searchsorted(np.sort(found.arrived), ends[:-1], "right") - np.searchsorted(
        np.sort(found.last), ends[:-1], "right"
    )
    assert np.sum(inside * np.diff(ends)) == pytest.approx(np.sum(found.last - found.arrived), rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("route", ROUTES)
def test_requests_tokens_and_time_are_kept(
    policy: str, route: str, stream: Arrivals, mixed: StepTable, alone: StepTable
) -> None:
    rules = POLICIES[policy]
    table = alone if rules.alone else mixed
    many = stream.at_rate(25.0)
    for fleet in (Fleet(rules, table, 3, 1, route), Fleet(rules, table, 2, 2, route)):
        found = run(many, fleet)
        _kept(many, found)
        again = run(many, fleet)
        assert np.array_equal(found.last, again.last)
        assert found.busy_s <= fleet.engines * found.duration_s * (1.0 + 1e-9)


def test_no_rank_idles_while_one_waits_that_fits(stream: Arrivals, mixed: StepTable) -> None:
    """All work is in one piece of time for each busy period: a machine that never stops is as busy as it can be."""
    wave = replace(stream, time_s=None)
    found = run(wave, Fleet(POLICIES["mixed"], mixed))
    assert found.busy_s == pytest.approx(found.duration_s, rel=1e-12)
    ordered = found.began[np.argsort(found.arrived, kind="stable")]
    assert (np.diff(ordered) >= 0).all()


def test_blocks_are_never_more_than_there_are_and_all_come_back(stream: Arrivals, mixed: StepTable) -> None:
    from chipwise.predict.events.rank import Ledger, Rank

    ids = [tuple(range(i % 40, i % 40 + int(p) // 64)) for i, p in enumerate(stream.prompt)]
    rules = Rules(1024, 64, 700, 16)
    ledger = Ledger(stream.prompt.astype(int).tolist(), stream.output.astype(int).tolist(), ids, 64)
    rank = Rank(rules, mixed, ledger)
    for request in range(400):
        if not rank.never(request):
            rank.queue.append(request)
    now = 0.0
    while rank.propose():
        assert rank.batch <= rules.most
        assert sum(tokens for _, tokens in rank.doing) + rank.batch <= rules.budget
        end = now + rank.seconds(rank.passes)
        rank.commit(now, rank.passes, end)
        now = end
        assert rank.blocks.used + rank.blocks.kept <= rank.blocks.total
    assert rank.blocks.used == 0
    assert rank.in_flight == rank.batch == rank.held == 0
    assert not any(rank.phases)
    assert ledger.preempted > 0
    assert ledger.found > 0
    served = [p for p, last in zip(ledger.prompt, ledger.last, strict=True) if last == last]
    assert ledger.computed == sum(served) - ledger.found + ledger.again


def test_one_server_waits_as_theory_says() -> None:
    """M/G/1: with one request at a time the mean wait is that of Pollaczek and Khinchine."""
    table = StepTable.of(machine_seconds, alone=True)
    rules = Rules(4096, 1, alone=True)
    for load in (0.3, 0.6):
        drawn = Arrivals.drawn(Lengths(400.0, 40.0, 0.7, 0.7), 60_000, 1.0, seed=5)
        alone_ = run(replace(drawn, time_s=np.arange(60_000) * 1e6), Fleet(rules, table))
        service = alone_.last - alone_.arrived
        rate = load / service.mean()
        found = run(drawn.at_rate(rate), Fleet(rules, table))
        rate = found_rate = (len(drawn) - 1) / (found.arrived[-1] - found.arrived[0])
        busy = found_rate * service.mean()
        waits = rate * np.mean(service**2) / (2.0 * (1.0 - busy))
        assert np.mean(found.began - found.arrived) == pytest.approx(waits, rel=0.04)


def test_faster_passes_and_more_replicas_wait_no_longer(stream: Arrivals, mixed: StepTable) -> None:
    rules = POLICIES["mixed"]
    waits = [run(stream, Fleet(rules, mixed, n)).ttft_s.mean() for n in (1, 2, 4)]
    assert waits == sorted(waits, reverse=True)
    paces = [run(stream, Fleet(rules, mixed.scaled(f))).e2e_s.mean() for f in (0.8, 1.0, 1.25)]
    assert paces == sorted(paces)
    caches = [run(stream, Fleet(replace(rules, blocks=n), mixed)).ttft_s.mean() for n in (500, 900, 5000)]
    assert caches[0] >= caches[1] >= caches[2]


def test_clients_wait_for_their_answers(stream: Arrivals, mixed: StepTable) -> None:
    found = run(stream, Fleet(Rules(1024, 256), mixed), clients=10)
    _kept(stream, replace(found, arrived=found.arrived))
    for time in np.linspace(0.1, 0.9, 9) * found.duration_s:
        assert np.sum((found.arrived <= time) & (found.last > time)) == 10
    assert run(stream, Fleet(Rules(1024, 256), mixed), clients=5000).duration_s < found.duration_s


def test_ranks_in_step_take_as_long_as_the_slowest(stream: Arrivals, mixed: StepTable) -> None:
    rules = POLICIES["mixed"]
    apart, together = (run(stream.at_rate(25.0), Fleet(rules, mixed, *shape)) for shape in ((4, 1), (1, 4)))
    assert together.tpot_s.mean() > apart.tpot_s.mean()
    assert together.busy_s < apart.busy_s
    jumped = run(stream.at_rate(25.0), Fleet(replace(rules, jumps=False), mixed, 1, 4))
    assert np.abs(together.last - jumped.last).max() < 0.02


def test_what_no_rank_can_hold_is_lost(mixed: StepTable) -> None:
    requests = Arrivals(np.array([100.0, 90_000.0, 200.0]), np.array([5.0, 5.0, 5.0]), np.array([0.0, 1.0, 2.0]))
    found = run(requests, Fleet(Rules(1024, 8, 1000, 16), mixed))
    assert found.served.tolist() == [True, False, True]
    closed = run(requests, Fleet(Rules(1024, 8, 1000, 16), mixed), clients=1)
    assert closed.served.tolist() == [True, False, True]


def test_a_cache_of_one_replica_finds_what_the_log_has_seen_before(mixed: StepTable, truth: object) -> None:
    log = read_log(str(truth / "traces" / "mooncake_conversation.jsonl.gz"))  # type: ignore[operator]
    assert log.blocks is not None
    for pieces, share in ((1000, 0.045), (10_000, 0.212), (50_000, 0.355), (ENDLESS, 0.366)):
        assert hit_rate(log.blocks, pieces) == pytest.approx(share, abs=0.001)
    some = log.first(1500)
    slow = replace(some, time_s=np.arange(1500) * 1e4)
    found = run(slow, Fleet(Rules(8192, 64, ENDLESS, 16), mixed))
    # only whole pieces are found, and one token of a prompt is always computed
    assert found.hit_rate == pytest.approx(some.reused, abs=0.02)
    assert found.hit_rate <= (some.reused or 0.0)
    less = [run(some, Fleet(Rules(8192, 64, n, 16), mixed.scaled(0.02))).hit_rate for n in (20_000, 100_000, ENDLESS)]
    assert less == sorted(less)


def test_requests_go_where_their_beginning_is(mixed: StepTable, truth: object) -> None:
    log = read_log(str(truth / "traces" / "mooncake_conversation.jsonl.gz")).first(3000)  # type: ignore[operator]
    fleet = Fleet(Rules(8192, 64, 60_000, 16), mixed.scaled(0.1), 4)
    hits = {route: run(log, replace(fleet, route=route)).hit_rate for route in ROUTES}
    assert hits["prefix"] > 1.5 * hits["turn"]


def test_a_pool_forgets_tails_first() -> None:
    pool = Blocks(4, 1)
    pool.take(3)
    pool.keep([1, 2, 3])
    pool.leave([1, 2, 3])
    assert (pool.used, pool.kept, pool.found([1, 2, 3])) == (0, 3, 3)
    pool.take(2)
    assert (pool.kept, pool.found([1, 2, 3])) == (2, 2)
    assert pool.fits(1, [1])
    assert not pool.fits(2, [1])
    pool.read([1])
    assert pool.used == 3


def test_requests_that_come_with_their_prompts_only_decode(
    stream: Arrivals, mixed: StepTable, alone: StepTable
) -> None:
    prompts = Fleet(Rules(4096, 64, alone=True), alone, 3)
    for rules in (Rules(1024, 64, 3000, 16), Rules(1024, 64, 600, 16), POLICIES["whole"], POLICIES["alone"]):
        sent = np.full(len(stream), 0.02)
        found = run_apart(stream, prompts, Fleet(rules, alone if rules.alone else mixed), sent)
        assert found.served.all()
        assert found.computed == stream.prompt.sum() + found.again
        assert (found.again == 0) == (found.preempted == 0)
        one = stream.output == 1
        assert np.array_equal(found.first[one], found.last[one])
        # nothing decodes faster than one pass a token
        assert ((found.last - found.first)[~one] >= 4.9e-3 * (stream.output[~one] - 1.0)).all()
    slower = run_apart(stream, prompts, Fleet(rules, alone), sent + 1.0)
    assert slower.ttft_s.mean() == pytest.approx(found.ttft_s.mean() + 1.0)
