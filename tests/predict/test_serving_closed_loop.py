"""Closed and open loops: figures by hand, limits that anyone can check, Little's law, arrays equal to rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.predict.disaggregated import Pools, disaggregated, transfer_s
from chipwise.predict.passes import BATCHES, Passes
from chipwise.predict.serving import Load, Served, Service, closed_loop

PLAIN = Service(request_s=0.0, stream_tokens=0.0, interference=1.0, queue=1.0, burst=0.0)


def passes(
    base_s: float = 10e-3, slope_s: float = 20e-6, prompt_s: float = 50e-3, chunks: float = 1.0
) -> Passes:
    decode = (base_s + slope_s * BATCHES)[None, :]
    return Passes(BATCHES, decode, decode + prompt_s, np.array([prompt_s]), np.array([chunks]))


def load(clients: float, output: float = 200.0, limit: float = 1e9, **kind: float) -> Load:
    return Load(np.array([clients]), np.array([output]), np.array([limit]), **kind)


def test_a_lone_client_decodes_undisturbed() -> None:
    s = closed_loop(passes(), load(1), PLAIN)
    t = 10e-3 + 20e-6
    assert s.tpot_s[0] == pytest.approx(t)
    assert s.ttft_s[0] == pytest.approx(50e-3 + t + 0.5 * t)
    assert s.wait_s[0] == pytest.approx(0.0, abs=1e-9)


def test_others_prompts_slow_every_token() -> None:
    # nearly all 50 clients decode at any time: each sees the prompts of 49 others while it decodes
    s = closed_loop(passes(prompt_s=1e-3), load(50, 2000.0), PLAIN)
    assert s.tpot_s[0] == pytest.approx(10e-3 + 20e-6 * s.batch[0] + 49 * 1e-3 / 2000, rel=0.02)


def test_in_lockstep_half_of_the_wave_waits() -> None:
    apart = closed_loop(passes(), load(40, alone=1.0, lockstep=1.0), PLAIN)
    t = passes().at(apart.batch, np.array([0]))[0]
    assert apart.tpot_s[0] == pytest.approx(t[0] + 39 * 50e-3 * 0.5 / 200, rel=1e-3)
    riding = closed_loop(passes(), load(40, lockstep=1.0), PLAIN)
    assert riding.tpot_s[0] > apart.tpot_s[0], "only prompts that run alone keep a wave together"


def test_clients_beyond_the_limit_wait_for_room() -> None:
    free, short = closed_loop(passes(), load(64), PLAIN), closed_loop(passes(), load(64, limit=16.0), PLAIN)
    assert free.capacity_s[0] == 0
    assert short.batch[0] <= 16
    # 48 of 64 wait: three service times each, less the early finishers
    inside = closed_loop(passes(), load(16), PLAIN)
    cycle = inside.ttft_s[0] + 200 * inside.tpot_s[0]
    assert short.capacity_s[0] == pytest.approx(3 * 0.95 * cycle, rel=0.05)


def test_littles_law() -> None:
    s = closed_loop(passes(), load(32), PLAIN)
    assert s.requests_per_s[0] * (s.ttft_s[0] + 199 * s.tpot_s[0]) == pytest.approx(32)


def test_more_clients_are_slower_and_more_in_all() -> None:
    clients = 2.0 ** np.arange(10)
    s = closed_loop(passes(), Load(clients, 200.0, 1e9), PLAIN, np.zeros(10, dtype=np.intp))
    for rising in (s.tpot_s, s.ttft_s, s.requests_per_s, s.batch):
        assert np.all(np.diff(rising) > 0)


def test_every_number_of_a_stack_does_what_it_says() -> None:
    base = closed_loop(passes(), load(16), PLAIN)

    def more(**change: float) -> Served:
        return closed_loop(passes(), load(16), replace(PLAIN, **change))

    assert more(request_s=0.1).ttft_s[0] - base.ttft_s[0] == pytest.approx(0.1)
    assert more(stream_tokens=20.0).ttft_s[0] - base.ttft_s[0] == pytest.approx(20 * base.tpot_s[0])
    assert more(burst=0.05).ttft_s[0] - base.ttft_s[0] == pytest.approx(0.05 * 16 * 50e-3)
    assert more(queue=0.0).ttft_s[0] == pytest.approx(base.ttft_s[0] - base.wait_s[0])
    assert more(interference=0.5).tpot_s[0] < base.tpot_s[0]


def test_all_times_scale_together() -> None:
    slow = Passes(BATCHES, 3 * passes().decode_s, 3 * passes().mixed_s, 3 * passes().alone_s, np.ones(1))
    one, three = closed_loop(passes(), load(24), PLAIN), closed_loop(slow, load(24), PLAIN)
    assert three.tpot_s == pytest.approx(3 * one.tpot_s)
    assert three.ttft_s == pytest.approx(3 * one.ttft_s)


def test_rows_together_equal_rows_one_by_one() -> None:
    many = Passes(
        BATCHES,
        np.concatenate([passes().decode_s, passes(20e-3).decode_s]),
        np.concatenate([passes().mixed_s, passes(20e-3).mixed_s]),
        np.full(2, 50e-3),
        np.ones(2),
    )
    engine = np.array([0, 1, 1, 0])
    clients = np.array([1.0, 7.0, 300.0, 64.0])
    together = closed_loop(many, Load(clients, 100.0, 128.0), PLAIN, engine)
    for i in range(4):
        alone = closed_loop(passes(20e-3 if engine[i] else 10e-3), load(clients[i], 100.0, 128.0), PLAIN)
        assert together.tpot_s[i] == pytest.approx(alone.tpot_s[0])
        assert together.ttft_s[i] == pytest.approx(alone.ttft_s[0])


def test_pools_decode_without_prompts() -> None:
    pools = Pools(np.array([32.0]), np.array([200.0]), np.array([1.0]), np.array([4.0]), np.array([1e9]))
    s = disaggregated(passes(), passes(), pools, PLAIN)
    assert s.tpot_s[0] == pytest.approx(10e-3 + 20e-6 * s.batch[0], rel=1e-3)
    assert s.batch[0] < 8
    more = disaggregated(passes(), passes(), replace(pools, prefill_servers=np.array([4.0])), PLAIN)
    assert more.ttft_s[0] < s.ttft_s[0]
    slow = disaggregated(passes(), passes(), replace(pools, transfer_s=np.array([0.5])), PLAIN)
    # those on their way do not queue for a prompt server
    assert 0.4 < slow.ttft_s[0] - s.ttft_s[0] <= 0.5


def test_the_smaller_side_sends() -> None:
    assert transfer_s(1e9, 4.0, 8.0, 50e9, 0.5) == pytest.approx(1e9 / (4 * 25e9))
