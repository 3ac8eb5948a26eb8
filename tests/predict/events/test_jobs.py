"""Work without tokens in the engine of events: what must be kept, and theory where theory is known."""

from __future__ import annotations

import csv
import gzip
from datetime import datetime
from heapq import heappop, heappush
from pathlib import Path

import numpy as np
import pytest

from chipwise.predict.events.engine import QUEUE, Fleet, JobTimes, Outcome, job_fleet, run
from chipwise.predict.events.rank import Rules
from chipwise.predict.events.turns import EvenPasses
from chipwise.predict.waiting import wait_s
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.lengths import Lengths

ONE = Lengths(1.0, 1.0)
EACH_S = 4.0


def _served(load: float, copies: int, batch: int = 1, *, count: int = 40_000, route: str = QUEUE) -> Outcome:
    stream = Arrivals.drawn(ONE, count, load * copies * batch / EACH_S, seed=7)
    return run(stream, job_fleet(JobTimes(np.full(batch, EACH_S)), copies, route))


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("copies", [1, 3, 8])
def test_waits_are_those_of_the_closed_form(load: float, copies: int) -> None:
    """M/D/c: of one copy Pollaczek and Khinchine's, of several Sakasegawa's, an approximation."""
    found = float(_served(load, copies).wait_s.mean())
    if copies == 1:
        assert found == pytest.approx(EACH_S * load / (2.0 * (1.0 - load)), rel=0.05)
    assert found == pytest.approx(wait_s(load, EACH_S, 1, copies), rel=0.12, abs=0.01 * EACH_S)


@pytest.mark.parametrize(("load", "batch"), [(0.1, 4), (0.1, 16), (0.4, 16), (0.8, 4), (0.8, 16)])
def test_batches_wait_as_the_closed_form_says(load: float, batch: int) -> None:
    found = float(_served(load, 1, batch).wait_s.mean())
    assert found == pytest.approx(wait_s(load, EACH_S, batch, 1), rel=0.15)


@pytest.mark.parametrize("route", [QUEUE, "least", "turn"])
@pytest.mark.parametrize(("copies", "batch"), [(1, 1), (3, 1), (2, 8)])
def test_requests_and_time_are_kept(route: str, copies: int, batch: int) -> None:
    stream = Arrivals.drawn(ONE, 3000, 0.9 * copies * batch / EACH_S, burstiness=2.0, seed=3)
    times = JobTimes(EACH_S * (1.0 + np.arange(batch)) / batch)
    found = run(stream, job_fleet(times, copies, route))
    assert found.served.all()
    assert found.computed == len(stream)
    assert (found.wait_s >= 0.0).all()
    # every batch takes what one of its size takes
    took = found.e2e_s - found.wait_s
    sizes = np.round(took / EACH_S * batch)
    assert took == pytest.approx(times.seconds[sizes.astype(int) - 1])
    # batches at work, each counted once for all of its samples, are never more than copies
    edges = np.concatenate([found.began, found.last])
    change = np.concatenate([1.0 / sizes, -1.0 / sizes])
    order = np.lexsort((change, np.round(edges, 9)))
    assert np.cumsum(change[order]).max() <= copies + 1e-6
    # Little's law
    ends = np.sort(np.concatenate([found.arrived, found.last]))
    inside = np.searchsorted(np.sort(found.arrived), ends[:-1], "right") - np.searchsorted(
        np.sort(found.last), ends[:-1], "right"
    )
    assert np.sum(inside * np.diff(ends)) == pytest.approx(np.sum(found.e2e_s), rel=1e-9)
    assert np.array_equal(found.last, run(stream, job_fleet(times, copies, route)).last)


def test_no_copy_is_idle_while_one_waits() -> None:
    """One queue: whoever waits begins in the instant in which another ends."""
    found = _served(0.9, 3, count=3000)
    waited = found.began > found.arrived + 1e-9
    ends = np.sort(found.last)
    at = np.searchsorted(ends, found.began[waited] - 1e-9)
    assert waited.sum() > 300
    assert ends[at] == pytest.approx(found.began[waited], abs=1e-9)
    # all copies are at work when it comes
    now = found.arrived[waited]
    at_work = np.searchsorted(found.began, now, "right") - np.searchsorted(ends, now, "right")
    assert (at_work == 3).all()
    # in the order of their arrival
    assert (np.diff(found.began) >= 0.0).all()


def test_one_queue_waits_no_longer_than_queues_apart() -> None:
    """Requests of equal length, in turn, begin as they would from one queue; else a queue in common waits less."""
    found = {route: _served(0.8, 4, route=route) for route in (QUEUE, "least", "turn")}
    assert found["turn"].last == pytest.approx(found[QUEUE].last)
    assert found[QUEUE].wait_s.mean() < found["least"].wait_s.mean()


def test_all_at_once_fill_batches() -> None:
    stream = Arrivals.drawn(ONE, 100, None)
    found = run(stream, job_fleet(JobTimes(np.array([1.0, 1.5, 1.8])), 2))
    assert found.passes == 34  # 33 full ones and one more
    assert found.duration_s == pytest.approx(17 * 1.8)
    assert found.busy_s == pytest.approx(33 * 1.8 + 1.0)


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_requests_of_a_service_wait_as_a_queue_of_their_own_times_says(truth: Path, servers: int) -> None:
    """Image requests with adapters of Alibaba's trace at their own moments, on servers that each take one at a time for
    as long as it took: the one that is free first takes the next. Their load is brought to 80 % of the servers."""
    with gzip.open(truth / "traces" / "alibaba_2026_lora_requests.csv.gz", "rt") as file:
        rows = [
            (datetime.fromisoformat(row["gmt_create"]).timestamp(), float(row["exec_time_seconds"]))
            for row in csv.DictReader(file)
            if row["predict_status"] == "SUCCEED" and float(row["exec_time_seconds"] or 0.0) >= 1.0
        ]
    at, work = np.array(sorted(rows)).T[:, :5000]
    at = (at - at[0]) * work.sum() / (0.8 * servers * (at[-1] - at[0]))
    free, waits = [0.0] * servers, []
    for come, long in zip(at.tolist(), work.tolist(), strict=True):
        start = max(come, heappop(free))
        waits.append(start - come)
        heappush(free, start + long)
    fleet = Fleet(Rules(1, 1), EvenPasses(1.0), servers, route=QUEUE)
    found = run(Arrivals(np.ones(len(at)), work, at), fleet)
    assert found.served.all()
    assert np.mean(waits) > 1.0
    assert found.wait_s.mean() == pytest.approx(np.mean(waits), rel=1e-6)
    assert np.quantile(found.wait_s, 0.99) == pytest.approx(np.quantile(waits, 0.99), rel=1e-6)
