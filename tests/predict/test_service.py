"""The service model: figures by hand, limits that anyone can check, what must hold of any engine, brute force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.arrivals import Engine, waits
from tests.predict.tabulated import BASE_S, SEQUENCE_S, TOKEN_S, engines, requests, table, toy

from chipwise.cost.cost import Cost
from chipwise.predict.service import LOADS, Engines, Loads, Prediction, Service, shared_wait_s, transfer_s
from chipwise.units import Array, Real
from chipwise.workload.step import Step

PLAIN = Service(0.02)
NUMBERS = tuple(f.name for f in fields(Prediction) if f.name != "cost")
A, F = 1000 * TOKEN_S, 8000 * TOKEN_S  # seconds of one prompt, and of a budget full of them


def under(asked: object = None, service: Service = PLAIN, **built: Real) -> Loads:
    return engines(table(asked), **built).under(service)  # type: ignore[arg-type]


def row(*loads: float) -> Array:
    return np.array([loads], dtype=float)


def littles(p: Prediction, output: Real = 200.0) -> Array:
    """Requests in flight by Little's law, without what only a harness adds."""
    return np.asarray(p.requests_per_s * (p.ttft_s + (np.asarray(output) - 1.0) * p.tpot_s))


# ----------------------------------------------------------------------- by hand


def test_one_point_by_hand() -> None:
    p = under().at(row(0.1))
    b, t = 0.1 * 199, BASE_S + 0.1 * 199 * SEQUENCE_S
    tpot = t + 0.1 * A
    rate = 0.1 / tpot
    assert p.batch[0, 0] == pytest.approx(b)
    assert p.decode_s[0, 0] == pytest.approx(t)
    assert p.tpot_s[0, 0] == pytest.approx(tpot)
    assert p.requests_per_s[0, 0] == pytest.approx(rate)
    assert p.tokens_per_s[0, 0] == pytest.approx(200 * rate)
    rho = 0.1 * A / tpot
    assert p.utilisation[0, 0] == pytest.approx(rho)
    assert p.own_s[0, 0] == pytest.approx(A + t)
    met = tpot + rho * A / (1 - rho**2)
    running = 1 - np.exp(-rate * (A + t + 199 * tpot))
    queue = float(shared_wait_s(tpot, 8.0, (0.1 * 1000 + b) / 8000 - b / 8000))
    assert p.wait_s[0, 0] == pytest.approx((0.5 * running + rho) * met + queue)
    assert p.ttft_s[0, 0] == pytest.approx(0.02 + p.own_s[0, 0] + p.wait_s[0, 0])
    assert p.budget_share[0, 0] == pytest.approx((0.1 * 1000 + b) / 8000)


def cheaper_together(step: Step) -> Iterator[tuple[str, Cost]]:
    """A budget full of prompts that costs half of its prompts one by one."""
    for name, cost in toy()(step):
        prompts = np.asarray(cost.exposed["compute"])
        yield name, Cost(cost.exposed | {"compute": np.where(prompts > 4 * A, 0.5, 1.0) * prompts})


def test_requests_of_one_length_that_start_together_prompt_together() -> None:
    def tpot_s(clients: float, service: Service, **asked: Real) -> float:
        built = table(replace(requests(), **asked), parts_of=cheaper_together)
        return float(engines(built).under(service).closed(row(clients)).tpot_s[0, 0])

    burst = Service(0.02, burst=0.1)
    assert tpot_s(32.0, burst) < tpot_s(32.0, PLAIN)  # full budgets instead of prompts in passes of their own
    assert tpot_s(32.0, burst, spread=1.2) == tpot_s(32.0, PLAIN, spread=1.2)
    assert tpot_s(1.0, burst) == tpot_s(1.0, PLAIN)


def test_a_backlog_is_worked_off_in_full_budgets() -> None:
    """What a backlog adds to a wait by hand, where a full budget costs half."""
    m = 0.1
    p = engines(table(parts_of=cheaper_together)).under(PLAIN).at(row(m))
    tpot = BASE_S + m * 199 * SEQUENCE_S + m * A
    rate, rho = m / tpot, m * A / tpot
    assert p.tpot_s[0, 0] == pytest.approx(tpot)
    heavy = rate * 0.5 * F * 1000 / 8000
    met = tpot + heavy * A / (1 - heavy**2)
    running = 1 - np.exp(-rate * (p.own_s[0, 0] + 199 * tpot))
    queue = float(shared_wait_s(tpot, 8.0, m * 1000 / 8000))
    assert p.wait_s[0, 0] == pytest.approx((0.5 * running + rho) * met + queue)


def test_a_lone_client_is_disturbed_by_nobody() -> None:
    p = under().closed(row(1))
    assert p.tpot_s[0, 0] == pytest.approx(BASE_S + SEQUENCE_S)
    assert p.ttft_s[0, 0] == pytest.approx(0.02 + BASE_S + SEQUENCE_S + A, rel=1e-4)
    assert p.wait_s[0, 0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("output", [1.0, 2.0, 200.0])
@pytest.mark.parametrize("built", [{}, {"stages": 4.0}, {"ranks": 4.0}, {"workers": 2.0, "transfer_s": 0.1}])
def test_a_lone_client_is_an_arrival_at_no_rate(output: float, built: dict[str, float]) -> None:
    loads = under(requests(output=output), **built)
    one, rare = loads.closed(row(1)), loads.open(row(1e-7))
    assert one.ttft_s == pytest.approx(rare.ttft_s, rel=1e-3)
    assert one.tpot_s == pytest.approx(rare.tpot_s, rel=1e-4)


def test_a_prompt_longer_than_the_budget_goes_in_chunks() -> None:
    lone = under(requests(budget=250.0)).closed(row(1))
    assert lone.ttft_s[0, 0] == pytest.approx(0.02 + A + 4 * (BASE_S + SEQUENCE_S), rel=1e-3)
    assert lone.tpot_s == pytest.approx(under().closed(row(1)).tpot_s, rel=1e-4)


def test_prompts_alone_stop_everybody() -> None:
    mixed, alone = under(), engines(table(alone=True)).under(PLAIN)
    m = row(0.1)
    assert alone.at(m).tpot_s - mixed.at(m).tpot_s == pytest.approx(0.1 * BASE_S)
    assert alone.closed(row(1)).ttft_s[0, 0] == pytest.approx(0.02 + BASE_S + A)


def test_a_prompt_takes_no_less_than_the_host_that_starts_it() -> None:
    """Prompts of 50 ms whose kernels the host starts in 100: one user waits for that, all others once a prompt."""
    starts_s, m = 0.1, 0.1
    apart = replace(table(alone=True), starts=starts_s)
    one = engines(apart).under(PLAIN).closed(row(1.0))
    assert one.ttft_s[0, 0] == pytest.approx(0.02 + starts_s)
    p, plain = (engines(t).under(PLAIN).at(row(m)) for t in (apart, table(alone=True)))
    any_ = 1.0 - np.exp(-m)
    assert p.tpot_s[0, 0] - plain.tpot_s[0, 0] == pytest.approx(any_ * (starts_s - BASE_S - A))
    waited = p.cost.exposed["host"] * p.tokens_per_s
    assert waited[0, 0] == pytest.approx(any_ * (starts_s - BASE_S - A) / p.tpot_s[0, 0] * 200 / 199, rel=1e-3)
    # a pass that decodes beside its prompt is started once for both
    beside = engines(replace(table(), starts=starts_s)).under(PLAIN).at(row(m))
    riding = under().at(row(m))
    more = any_ * (starts_s - riding.decode_s[0, 0] - A)
    assert beside.tpot_s[0, 0] - riding.tpot_s[0, 0] == pytest.approx(more)
    # what outlasts the host waits for nothing
    short = engines(replace(table(alone=True), starts=0.5 * A)).under(PLAIN).at(row(m))
    assert short.tpot_s[0, 0] == plain.tpot_s[0, 0]


def test_every_number_of_a_service_does_what_it_says() -> None:
    base = under().closed(row(16))

    def more(**change: float) -> Prediction:
        return under(service=replace(PLAIN, **change)).closed(row(16))  # type: ignore[arg-type]

    # sixteen clients that rest for 0.1 s more are in the engine for less of the time
    assert more(request_s=0.12).ttft_s[0, 0] - base.ttft_s[0, 0] == pytest.approx(0.1, abs=2e-3)
    assert more(stream_tokens=20.0).ttft_s[0, 0] - base.ttft_s[0, 0] == pytest.approx(20 * base.tpot_s[0, 0])
    # sixteen prompts fill two budgets, half of those that started decode beside them
    first_wave = 2.0 * (F + BASE_S + 8.0 * SEQUENCE_S)
    assert more(burst=0.05).ttft_s[0, 0] - base.ttft_s[0, 0] == pytest.approx(0.05 * first_wave)
    assert more(burst=0.05, stream_tokens=20.0).tpot_s == pytest.approx(base.tpot_s)


def test_what_a_harness_adds_is_no_part_of_traffic_at_a_rate() -> None:
    plain, waves = (under(service=Service(burst=burst)).open(row(5)) for burst in (0.0, 0.2))
    assert waves.ttft_s == pytest.approx(plain.ttft_s)


# ------------------------------------------------------------------ pools apart


def test_pools_decode_without_prompts() -> None:
    p = under(workers=2.0).closed(row(32))
    assert p.tpot_s == pytest.approx(BASE_S + SEQUENCE_S * p.batch)
    assert p.tpot_s == pytest.approx(p.decode_s)
    assert p.requests_per_s[0, 0] * (BASE_S + A) / 2 == pytest.approx(p.budget_share[0, 0])
    together = under().closed(row(32))
    assert together.tpot_s[0, 0] > p.tpot_s[0, 0]


def test_more_workers_wait_less_and_a_transfer_is_waited_for() -> None:
    two, eight = under(workers=2.0).closed(row(32)), under(workers=8.0).closed(row(32))
    assert eight.ttft_s[0, 0] < two.ttft_s[0, 0]
    sent = under(workers=2.0, transfer_s=0.5).closed(row(32))
    # those on their way do not queue for a worker
    assert 0.4 < sent.ttft_s[0, 0] - two.ttft_s[0, 0] <= 0.5


def test_workers_for_prompts_bound_the_rate() -> None:
    p = under(workers=1.0).open(row(1e6))
    assert p.requests_per_s[0, 0] == pytest.approx(1 / (BASE_S + A), rel=2e-3)
    assert p.requests_per_s[0, 0] < 1 / (BASE_S + A)


def test_the_smaller_side_sends() -> None:
    assert transfer_s(1e9, 4.0, 8.0, 50e9, 0.5) == pytest.approx(1e9 / (4 * 25e9))


# ------------------------------------------------- replicas, ranks, stages, rows


def test_replicas_multiply_throughput_alone() -> None:
    one, three = under().closed(row(20)), under(replicas=3.0).closed(row(60))
    for name in ("batch", "concurrency", "requests_per_s", "tokens_per_s"):
        assert getattr(three, name) == pytest.approx(3 * getattr(one, name), rel=0.02), name
    # clients are shared out at random: one finds a few more of the 59 others at his replica than of 19
    assert three.tpot_s[0, 0] == pytest.approx(one.tpot_s[0, 0], rel=0.03)
    assert three.tpot_s[0, 0] >= one.tpot_s[0, 0]


@pytest.mark.parametrize("open_", [True, False])
def test_stages_have_bubbles(open_: bool) -> None:
    """Eight stages share a pass: eight micro-batches are in flight, but all of them stop for anybody's prompt."""
    short = requests(output=20.0)
    m = row(0.15)
    one, eight = under(short).at(m), under(short, stages=8.0).at(m)
    assert 3.0 < eight.tokens_per_s[0, 0] / one.tokens_per_s[0, 0] < 6.0
    assert eight.tpot_s[0, 0] > 1.3 * one.tpot_s[0, 0]
    # without prompts nothing is lost
    idle = requests(prompt=1.0, output=1e6)
    ratio = under(idle, stages=8.0).at(row(1e-5)).tokens_per_s / under(idle).at(row(1e-5)).tokens_per_s
    assert ratio == pytest.approx(8.0, rel=1e-3)
    load = row(*np.geomspace(0.5, 400, 12))
    few, many = (under(short, stages=s) for s in (1.0, 8.0))
    rates = [(x.open(load) if open_ else x.closed(load)).requests_per_s for x in (few, many)]
    assert np.all(rates[1] <= 8 * rates[0] * (1 + 1e-9))


def test_a_lone_user_cannot_fill_a_pipeline() -> None:
    one, four = under().closed(row(1)), under(stages=4.0).closed(row(1))
    assert four.tokens_per_s == pytest.approx(one.tokens_per_s, rel=1e-3)


def test_coupled_ranks_wait_for_each_other() -> None:
    free, coupled = under(ranks=8.0).closed(row(128)), under(ranks=8.0, coupled=8.0).closed(row(128))
    assert coupled.tpot_s[0, 0] > 1.2 * free.tpot_s[0, 0]
    assert coupled.requests_per_s[0, 0] < free.requests_per_s[0, 0]
    calm = requests(prompt=1.0, output=1e5)
    both = [under(calm, ranks=8.0, coupled=c).closed(row(128)).tpot_s[0, 0] for c in (1.0, 8.0)]
    assert both[0] == pytest.approx(both[1], rel=1e-3)


def test_rows_together_equal_rows_one_by_one() -> None:
    kinds: list[tuple[Engines, float]] = [
        (engines(table()), 7.0),
        (engines(table(requests(3000.0, 50.0)), stages=4.0, replicas=2.0), 64.0),
        (engines(table(requests(500.0, 1.0), alone=True), ranks=2.0, coupled=2.0), 3.0),
        (engines(table(parts_of=toy(2 * BASE_S)), limit=16.0), 300.0),
    ]
    services = [Service(0.01 * i, float(i), 0.02 * i) for i in range(4)]
    joined = Engines.join([e for e, _ in kinds]).under(Service.stack(services))
    clients = np.array([[c] for _, c in kinds])
    for verb in ("closed", "open"):
        together: Prediction = getattr(joined, verb)(clients)
        for i, (e, c) in enumerate(kinds):
            alone: Prediction = getattr(e.under(services[i]), verb)(row(c))
            for name in NUMBERS:
                assert getattr(together, name)[i] == pytest.approx(getattr(alone, name)[0], rel=1e-9), name
    back = joined.engines.take(np.array([2, 0])).under(Service.stack(services).take(np.array([2, 0])))
    assert back.closed(clients[[2, 0]]).ttft_s == pytest.approx(joined.closed(clients).ttft_s[[2, 0]])


# ----------------------------------------------------------------------- limits


def test_clients_beyond_the_limit_wait_outside() -> None:
    free, short = under().closed(row(64)), under(limit=16.0).closed(row(64))
    assert free.outside_s[0, 0] == pytest.approx(0.0, abs=1e-6)
    assert short.resident[0, 0] == pytest.approx(16.0, rel=1e-6)
    # 48 of 64 wait for three of four service times
    rate = short.requests_per_s[0, 0]
    assert short.ttft_s[0, 0] == pytest.approx(64 / rate - 199 * short.tpot_s[0, 0])
    assert rate == pytest.approx(under(limit=16.0).closed(row(640)).requests_per_s[0, 0], rel=0.02)


def test_as_many_as_fit() -> None:
    p = under(limit=16.0, replicas=2.0, ranks=2.0).full()
    assert p.concurrency[0, 0] == pytest.approx(4 * 16.0, rel=1e-6)
    assert p.outside_s[0, 0] == pytest.approx(0.0, abs=1e-6)
    assert 15.5 < p.resident[0, 0] < 16, "some are on their way"


def test_a_rate_that_is_not_carried_is_said() -> None:
    p = under(limit=16.0).open(row(3.0, 1e5))
    assert p.requests_per_s[0, 0] == pytest.approx(3.0, rel=1e-9)
    assert p.requests_per_s[0, 1] < 1 / A
    assert p.resident[0, 1] == pytest.approx(16.0, rel=1e-6)


def test_the_grid_of_batches() -> None:
    p = under(stages=2.0).over_batches()
    known = np.isfinite(p.batch[0])
    assert p.batch[0][known] == pytest.approx(2 * LOADS[known])
    assert known[:20].all()
    long = under(requests(prompt=40_000.0, output=10.0)).over_batches()
    assert np.isnan(long.tpot_s[0, -1]), "4,096 sequences would bring more prompts than passes take"


# --------------------------------------------------------------- single tokens


@pytest.mark.parametrize("clients", [1.0, 8.0, 300.0])
def test_one_token_is_a_queue_of_prompts(clients: float) -> None:
    p = under(requests(output=1.0)).closed(row(clients))
    assert p.tpot_s[0, 0] == 0
    assert p.batch[0, 0] == 0
    assert p.tokens_per_s == pytest.approx(p.requests_per_s)
    assert p.concurrency[0, 0] == pytest.approx(clients, rel=1e-6)
    # prompts of eight fill a pass: then weights are read once for all of them
    assert p.requests_per_s[0, 0] <= 8 / (BASE_S + F)
    if clients == 300.0:
        assert p.requests_per_s[0, 0] == pytest.approx(8 / (BASE_S + F), rel=0.01)


# ------------------------------------------------------ what holds of any engine


@st.composite
def any_engines(draw: st.DrawFn) -> tuple[Loads, float]:
    """Some engine, under some requests; and the tokens of its answers."""
    output = draw(st.sampled_from([1.0, 2.0, 3.0, 7.5, 60.0, 400.0, 4096.0]))
    budget = draw(st.sampled_from([300.0, 2048.0, 16384.0]))
    asked = requests(draw(st.floats(20.0, 2e4)), output, budget, draw(st.floats(1.0, 3.0)))
    parts = toy(draw(st.floats(1e-4, 0.1)), draw(st.floats(0.0, 1e-3)), draw(st.floats(1e-7, 1e-3)))
    passes = table(asked, alone=draw(st.booleans()), parts_of=parts)
    ranks = draw(st.sampled_from([1.0, 3.0]))
    built = {
        "ranks": ranks,
        "coupled": draw(st.sampled_from([1.0, ranks])),
        "stages": draw(st.sampled_from([1.0, 2.0, 8.0])),
        "replicas": draw(st.sampled_from([1.0, 2.0])),
        "limit": draw(st.sampled_from([16.0, 256.0, 1e6])),
    }
    workers = draw(st.sampled_from([None, 1.0, 4.0]))
    service = Service(draw(st.floats(0.0, 0.1)))
    return engines(passes, workers=workers, transfer_s=0.01, **built).under(service), output


CLIENTS = row(*np.concatenate([np.arange(1.0, 5.0), [1.5, 2.5], np.geomspace(6.0, 3e3, 14)]))
RISING = np.sort(CLIENTS)


@given(any_engines())
def test_more_clients_never_get_less_in_all_nor_each_more(case: tuple[Loads, float]) -> None:
    loads, output = case
    p = loads.closed(RISING)
    # of a few tokens the second client may cost some percent: it waits for the rest of a pass that is all of an answer
    least = 1e-7 if output >= 16 else 0.1
    assert np.all(np.diff(p.requests_per_s[0]) >= -least * p.requests_per_s[0, 1:])
    doubled = loads.closed(row(*(2.0 ** np.arange(12)))).requests_per_s[0]
    assert np.all(np.diff(doubled) >= -max(0.03, least) * doubled[1:])
    assert np.all(np.diff(p.tpot_s[0]) >= -1e-7 * p.tpot_s[0, 1:])
    assert p.concurrency == pytest.approx(RISING, rel=1e-9)
    assert littles(p, output) == pytest.approx(RISING, rel=1e-8)
    for name in NUMBERS:
        values = getattr(p, name)
        assert np.all(np.isfinite(values) & (values >= 0)), name


@given(any_engines())
def test_a_lower_rate_is_answered_as_asked_and_never_slower(case: tuple[Loads, float]) -> None:
    loads, output = case
    most = float(loads.open(row(1e12)).requests_per_s[0, 0])
    rates = most * row(*np.linspace(0.02, 0.98, 17))
    p = loads.open(rates)
    assert p.requests_per_s == pytest.approx(rates, rel=1e-9)
    assert np.all(np.diff(p.tpot_s[0]) >= -1e-9)
    assert np.all(np.diff(p.ttft_s[0]) >= -1e-6 * p.ttft_s[0, 1:])
    assert littles(p, output) == pytest.approx(p.concurrency, rel=1e-6)


@given(any_engines())
def test_no_engine_works_for_more_than_all_of_the_time(case: tuple[Loads, float]) -> None:
    """Passes that decode and the least that prompts take, a second of each micro-batch's own."""
    loads, output = case
    e, asked = loads.engines, loads.engines.table.requests
    slots = float(e.slots[0])
    per_budget = float(loads.passes.added_s[0].min(axis=0)[1]) / float(np.asarray(asked.budget))
    for p in (loads.closed(RISING), loads.full()):
        rate = p.requests_per_s[0] / slots
        sequences = p.batch[0] / slots
        passes = np.where(sequences > 0, rate * (output - 1) / np.maximum(sequences, 1.0), 0.0)
        decoding = passes * p.decode_s[0]
        prompts = 0.0 if e.prompts is not None else rate * float(np.asarray(asked.new)) * per_budget
        assert np.all(decoding + prompts <= 1.02), "part of the time nobody decodes"
        if e.prompts is not None and e.prompt_servers is not None:
            assert np.all(p.requests_per_s * p.prefill_s <= e.prompt_servers * (1 + 1e-6))


@pytest.mark.parametrize("built", [{}, {"stages": 4.0}, {"workers": 2.0}])
@pytest.mark.parametrize("output", [1, 2, 3, 5, 20, 300, 4096])
def test_neighbours_are_answered_alike(output: int, built: dict[str, float]) -> None:
    """No jumps: a thousandth more of anything moves no figure by more than a fiftieth."""

    def answers(scale: float, what: str) -> Array:
        asked = requests(
            1234.0 * (scale if what == "prompt" else 1.0),
            float(output) * (scale if what == "output" and output > 1 else 1.0),
            8000.0 * (scale if what == "budget" else 1.0),
        )
        loads = under(asked, limit=200.0, **built)
        near = scale if what == "load" else 1.0
        both = (loads.closed(RISING * near), loads.open(row(0.01, 0.1, 1.0, 3.0, 9.0) * near))
        return np.concatenate([np.concatenate([p.ttft_s[0], p.tpot_s[0], p.requests_per_s[0]]) for p in both])

    for what in ("prompt", "output", "budget", "load"):
        base, near = answers(1.0, what), answers(1.001, what)
        known = base > 0
        assert np.max(np.abs(near[known] / base[known] - 1)) < 0.02, what


def test_short_answers_join_up_with_single_tokens() -> None:
    """An answer of one token and a little more costs what one of a single token does."""
    for clients in (1.0, 8.0, 100.0):
        one, more = (under(requests(output=o)).closed(row(clients)) for o in (1.0, 1.0 + 1e-4))
        assert more.ttft_s == pytest.approx(one.ttft_s, rel=0.02)
        assert more.requests_per_s == pytest.approx(one.requests_per_s, rel=0.02)


@given(st.floats(1.1, 4.0), st.floats(1.0, 500.0))
def test_slower_passes_never_make_anything_faster(times: float, clients: float) -> None:
    for change in ((times, 1.0, 1.0), (1.0, times, 1.0), (1.0, 1.0, times)):
        base, sequence, token = np.array(change) * (BASE_S, SEQUENCE_S, TOKEN_S)
        slow = engines(table(parts_of=toy(base, sequence, token))).under(PLAIN).closed(row(clients))
        plain = under().closed(row(clients))
        assert slow.tpot_s[0, 0] >= plain.tpot_s[0, 0] * (1 - 1e-7)
        assert slow.requests_per_s[0, 0] <= plain.requests_per_s[0, 0] * (1 + 1e-7)


@given(any_engines())
def test_the_machine_time_of_a_token_adds_up(case: tuple[Loads, float]) -> None:
    loads, _ = case
    p = loads.closed(RISING)
    for part in p.cost.exposed.values():
        assert np.all(np.asarray(part) >= 0)
    shares = sum(np.asarray(p.cost.share(name)) for name in p.cost.exposed)
    assert shares == pytest.approx(np.ones(np.shape(RISING)))


def test_the_machine_time_of_a_token_is_one_over_the_throughput() -> None:
    """Of a full engine: all its time goes to tokens."""
    p = under().closed(row(200))
    assert np.asarray(p.cost.total_s) == pytest.approx(1 / (p.tokens_per_s * 199 / 200), rel=1e-6)


# ------------------------------------------------------------------- brute force


@pytest.mark.parametrize(("servers", "u"), [(1, 0.5), (1, 0.8), (4, 0.7), (8, 0.9)])
def test_waits_for_several_servers(servers: int, u: float) -> None:
    rng = np.random.default_rng(3)
    size = 60_000
    service = rng.exponential(1.0, size)
    found = float(np.mean(waits(np.cumsum(rng.exponential(1.0 / (u * servers), size)), service, servers)))
    assert float(shared_wait_s(1.0, servers, u, 2.0)) == pytest.approx(found, rel=0.15)


SIZE = 6000
KEPT = slice(SIZE // 10, -SIZE // 10)


def drawn(mean: float, cv: float, rng: np.random.Generator) -> Array:
    sigma = np.sqrt(np.log1p(cv * cv))
    return np.asarray(mean * rng.lognormal(-0.5 * sigma**2, sigma, SIZE) if cv else np.full(SIZE, mean))


def mixed(seed: int) -> tuple[Array, Array, np.random.Generator]:
    rng = np.random.default_rng(seed)
    outputs = np.maximum(np.round(drawn(200.0, 0.8, rng)), 1)
    return outputs, TOKEN_S * drawn(1000.0, 0.6, rng), rng


@pytest.mark.parametrize("at_once", [8, 2])
@pytest.mark.parametrize("rate", [3.6, 9.0, 12.6])
def test_arrivals_at_a_rate_against_brute_force(rate: float, at_once: int) -> None:
    """Means within 5 % (TPOT) and 8 % (TTFT), up to 0.8 of the largest rate."""
    outputs, prompt_s, rng = mixed(1)
    engine = Engine(BASE_S, SEQUENCE_S, at_once)
    ttft, tpot = engine.open(np.cumsum(rng.exponential(1 / rate, SIZE)), outputs, prompt_s)
    p = under(requests(1000.0, 200.0, 1000.0 * at_once, 1.36), Service(0.0)).open(row(rate))
    assert p.tpot_s[0, 0] == pytest.approx(np.average(tpot[KEPT], weights=outputs[KEPT]), rel=0.05)
    assert p.ttft_s[0, 0] == pytest.approx(np.mean(ttft[KEPT]), rel=0.08)


@pytest.mark.parametrize("at_once", [8, 2])
@pytest.mark.parametrize("clients", [1, 4, 16, 48])
def test_clients_against_brute_force(clients: int, at_once: int) -> None:
    """Means within 2 % (TPOT) and 12 % (TTFT); few clients take long, and scatter less."""
    size = min(SIZE, 1000 * clients)
    outputs, prompt_s = (column[:size] for column in mixed(1)[:2])
    ttft, tpot = Engine(BASE_S, SEQUENCE_S, at_once, away_s=0.02).closed(clients, outputs, prompt_s)
    p = under(requests(1000.0, 200.0, 1000.0 * at_once, 1.36), Service(0.02)).closed(row(clients))
    kept = slice(size // 10, -size // 10)
    assert p.tpot_s[0, 0] == pytest.approx(np.average(tpot[kept], weights=outputs[kept]), rel=0.02)
    assert p.ttft_s[0, 0] == pytest.approx(np.mean(ttft[kept]), rel=0.12)


def test_room_for_some_against_brute_force() -> None:
    outputs, prompt_s, _ = mixed(1)
    ttft, tpot = Engine(BASE_S, SEQUENCE_S, room=16, away_s=0.02).closed(64, outputs, prompt_s)
    p = under(requests(1000.0, 200.0, 8000.0, 1.36), Service(0.02), limit=16.0).closed(row(64))
    assert p.tpot_s[0, 0] == pytest.approx(np.average(tpot[KEPT], weights=outputs[KEPT]), rel=0.03)
    assert p.ttft_s[0, 0] == pytest.approx(np.mean(ttft[KEPT]), rel=0.06)


@pytest.mark.parametrize("clients", [4, 16, 48])
@pytest.mark.parametrize("look", [10, 30])
def test_rare_looks_for_requests_against_brute_force(clients: int, look: int) -> None:
    """Means within 5 % (TPOT) and 15 % (TTFT)."""
    outputs, prompt_s, _ = mixed(1)
    ttft, tpot = Engine(BASE_S, SEQUENCE_S, away_s=0.02, look=look).closed(clients, outputs, prompt_s)
    asked = replace(requests(1000.0, 200.0, 8000.0, 1.36), look=float(look))
    p = under(asked, Service(0.02)).closed(row(clients))
    assert p.tpot_s[0, 0] == pytest.approx(np.average(tpot[KEPT], weights=outputs[KEPT]), rel=0.05)
    assert p.ttft_s[0, 0] == pytest.approx(np.mean(ttft[KEPT]), rel=0.15)


@pytest.mark.parametrize("clients", [4, 16, 48])
def test_prompts_that_gather_against_brute_force(clients: int) -> None:
    """Means within 5 % (TPOT) and 15 % (TTFT)."""
    outputs, prompt_s, _ = mixed(1)
    engine = Engine(BASE_S, SEQUENCE_S, away_s=0.02, gather=20, fill=7)
    ttft, tpot = engine.closed(clients, outputs, prompt_s)
    p = under(replace(requests(1000.0, 200.0, 8000.0, 1.36), gather=20.0), Service(0.02)).closed(row(clients))
    assert p.tpot_s[0, 0] == pytest.approx(np.average(tpot[KEPT], weights=outputs[KEPT]), rel=0.05)
    assert p.ttft_s[0, 0] == pytest.approx(np.mean(ttft[KEPT]), rel=0.15)
