"""Waiting before replicas, held against queues that are played through."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from chipwise.predict.waiting import Queue, load_within, replicas_within, wait_s


def played(load: float, replicas: int, requests: int = 200_000, seed: int = 7) -> NDArray[np.float64]:
    """What each of many requests waits: Poisson arrivals, one request a replica, one second of work."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1.0 / (load * replicas), requests))
    free = [0.0] * replicas
    waits = np.empty(requests)
    for i, at in enumerate(arrivals):
        begins = max(at, heapq.heappop(free))
        heapq.heappush(free, begins + 1.0)
        waits[i] = begins - at
    return waits[requests // 20 :]


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.9])
def test_one_replica_waits_as_a_queue_that_is_played(load: float) -> None:
    waits = played(load, 1)
    assert wait_s(load, 1.0, 1, 1) == pytest.approx(waits.mean(), rel=0.1)
    assert wait_s(load, 1.0, 1, 1, 0.99) == pytest.approx(np.quantile(waits, 0.99), rel=0.35)


@pytest.mark.parametrize("replicas", [2, 8])
def test_several_replicas_wait_no_longer_than_said(replicas: int) -> None:
    waits = played(0.7, replicas)
    assert waits.mean() <= wait_s(0.7, 1.0, 1, replicas)
    assert wait_s(0.7, 1.0, 1, replicas) < wait_s(0.7, 1.0, 1, replicas // 2)


def batches_played(
    load: float, batch: int, replicas: int, scatter: float = 0.1, requests: int = 100_000
) -> NDArray[np.float64]:
    """The same where a replica that is free takes up to `batch` that wait, for one second whatever their number, within
    a `scatter` of it."""
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(1.0 / (load * batch * replicas), requests))
    free, waits, at = [0.0] * replicas, np.empty(requests), 0
    while at < requests:
        begins = max(arrivals[at], heapq.heappop(free))
        taken = min(max(int(np.searchsorted(arrivals, begins, "right")) - at, 1), batch)
        waits[at : at + taken] = begins - arrivals[at : at + taken]
        heapq.heappush(free, begins + max(rng.normal(1.0, scatter), 0.1))
        at += taken
    return waits[requests // 20 :]


@pytest.mark.parametrize("load", [0.1, 0.3, 0.7, 0.9])
@pytest.mark.parametrize("replicas", [1, 2, 8, 20])
def test_batches_wait_no_longer_than_said_and_hardly_shorter(load: float, replicas: int) -> None:
    waits = batches_played(load, 16, replicas)
    said = wait_s(load, 1.0, 16, replicas)
    assert waits.mean() <= 1.1 * said <= waits.mean() + 0.15
    assert np.quantile(waits, 0.99) <= 1.1 * wait_s(load, 1.0, 16, replicas, 0.99)


def test_a_wait_by_hand() -> None:
    """Four replicas of sixteen at half of what they carry: all are at work, the first of f + 1 = 5 (1 - 1/4 x 1/2)
    batches ends after as many parts of one, and hardly anybody queues for one of 64 places."""
    queued = 0.5 ** (130.0**0.5 - 1.0) / 64.0
    assert wait_s(0.5, 2.0, 16, 4) == pytest.approx(2.0 * (1.0 / 4.375 + queued), rel=1e-9)


def test_replicas_that_begin_one_after_another_keep_no_one_waiting_for_half_a_batch() -> None:
    alone, many = (wait_s(0.5, 1.0, 16, replicas) for replicas in (1, 20))
    assert alone == pytest.approx(0.5, abs=0.01)
    assert many < 0.1 * alone * 2


def test_nothing_waits_where_nothing_comes() -> None:
    assert wait_s(0.0, 2.0, 8, 1) == 0.0
    assert wait_s(0.0, 2.0, 1, 1) == 0.0
    assert wait_s(1.0, 2.0, 8, 4) == np.inf


def test_a_queue_that_is_slower_has_a_higher_load() -> None:
    queue = Queue(rate_per_s=7.0, latency_s=1.0, busy_s=1.0, batch=1, replicas=10)
    assert queue.load() == pytest.approx(0.7)
    assert queue.answered_s(slower=1.2) > 1.2 * queue.answered_s()
    assert queue.answered_s(slower=1.5) == np.inf
    slowest = queue.slowest(1.3)
    assert 1.0 < slowest < 1.3
    assert queue.answered_s(slower=slowest) == pytest.approx(1.3)
    assert queue.slowest(0.0) == 0.0


@pytest.mark.parametrize(("batch", "share"), [(1, None), (1, 0.99), (16, None), (16, 0.95)])
def test_load_and_replicas_undo_the_wait(batch: int, share: float | None) -> None:
    loads = [load_within(limit, 1.0, batch, 3, share) for limit in (2.5, 4.0, 50.0)]
    assert all(low < high for low, high in pairwise(loads))
    for limit, load in zip((2.5, 4.0, 50.0), loads, strict=True):
        assert 1.0 + wait_s(load, 1.0, batch, 3, share) == pytest.approx(limit)
    rate, limit = 20.0, 1.5
    least = replicas_within(rate, limit, 1.0, batch, share)
    assert least is not None
    assert wait_s(rate / (least * batch), 1.0, batch, least, share) <= limit
    if least > 1:
        assert wait_s(rate / ((least - 1) * batch), 1.0, batch, least - 1, share) > limit


def test_what_no_number_of_replicas_keeps() -> None:
    assert load_within(0.9, 1.0, 8, 4) == 0.0
    assert replicas_within(10.0, -0.1, 1.0, 8) is None
    assert replicas_within(10.0, 0.4, 1.0, 1) is not None
