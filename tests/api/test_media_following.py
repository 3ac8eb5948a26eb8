"""Replicas of models without tokens that follow a day or a log, as the engine of events found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import chipwise as cw
from chipwise.errors import UsageError
from chipwise.predict.events.engine import JobTimes, job_fleet, run
from chipwise.predict.events.scaling import Scaling
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.lengths import Lengths

ONE = Lengths(1.0, 1.0)
EACH_S = 4.0
FLEET = job_fleet(JobTimes(np.full(2, EACH_S)), 6)
DAY = "0.5,0.5,1,4,6,2"
ASKED = {"chips": "h100-sxm5-80gb,l40s", "e2e": "20s"}


def _stream(rate_per_s: float, count: int = 2000) -> Arrivals:
    return Arrivals.drawn(ONE, count, rate_per_s, seed=5)


def test_replicas_of_one_queue_that_are_all_there_serve_as_without_a_policy() -> None:
    stream = _stream(2.0)
    steady = run(stream, FLEET)
    followed = run(stream, replace(FLEET, scaling=Scaling(1.0, 6, 30.0, 6)))
    assert np.array_equal(followed.last, steady.last)
    assert followed.started == 0
    assert followed.paid_s == pytest.approx(6.0 * followed.whole_s)


def test_replicas_of_one_queue_come_and_go() -> None:
    busy, calm = _stream(2.0, 1200), _stream(0.1, 120)
    assert busy.time_s is not None
    assert calm.time_s is not None
    times = np.concatenate([busy.time_s, busy.time_s[-1] + 1.0 + calm.time_s])
    stream = Arrivals(np.ones(1320), np.ones(1320), times)
    found = run(stream, replace(FLEET, scaling=Scaling(2.0, 6, 30.0, 1)))
    assert found.served.all()
    assert (np.diff(found.began) >= 0.0).all(), "one queue: first come, first served"
    assert found.started >= 4
    assert found.paid_s < 0.8 * 6.0 * found.whole_s
    late = np.sort(np.unique(found.began[found.began > busy.time_s[-1] + 400.0]))
    # at night one or two are left, as no more than four requests are there at once
    assert (late[2:] - late[:-2] >= EACH_S - 1e-9).all()


def test_a_later_start_waits_longer() -> None:
    stream = _stream(2.0, 1000)
    waits = [
        run(stream, replace(FLEET, scaling=Scaling(2.0, 6, start_s, 1))).wait_s.mean() for start_s in (0.0, 60.0, 300.0)
    ]
    assert waits[0] < waits[1] < waits[2]


def test_a_day_is_held_at_its_peak_and_followed_for_less() -> None:
    report = cw.plan("sdxl", day=DAY, **ASKED)
    best = report.best
    assert best.peak is not None
    assert best.peak.holds
    found = best.scaling
    assert found is not None
    assert found.times is not None
    assert found.times.e2e_s is not None
    assert found.times.e2e_s <= 20.0
    assert len(found.clock) == len(DAY.split(","))
    assert max(found.clock) <= best.replicas == found.most
    assert found.usd_per_day is not None
    assert found.usd_per_day < found.fixed_usd_per_day == pytest.approx(24.0 * best.price.mid)
    assert found.start_s > 120.0, "the weights are read after the start"
    assert report.decision is not None
    assert report.decision.rent_usd_per_month == pytest.approx(found.usd_per_day * 730.0 / 24.0, rel=0.01)
    printed = " ".join(str(report).split())
    assert "Scaled with the day, " in printed
    assert "scaling of #1, simulated: in the worst slice, mean answer" in printed
    assert "if replicas followed" not in printed


def test_floor_and_start_that_are_said_are_kept_and_without_a_target_nothing_is_simulated() -> None:
    best = cw.plan("sdxl", day=DAY, scale="least=3,start=45s", **ASKED).best
    assert best.scaling is not None
    assert best.scaling.least >= 3
    assert best.scaling.start_s == 45.0
    alone = cw.plan("sdxl", day=DAY, chips="h100-sxm5-80gb").best
    assert (alone.scaling, alone.peak) == (None, None)


def test_a_log_is_followed_under_the_cheapest_policy_that_holds(tmp_path: Path) -> None:
    stream = _stream(1.5, 900)
    assert stream.time_s is not None
    times = stream.time_s + 900.0 * (np.arange(900) // 300)
    log = tmp_path / "log.csv"
    log.write_text("timestamp\n" + "\n".join(f"{t:.3f}" for t in times))
    given = {"log": str(log), "chips": "h100-sxm5-80gb", "e2e": "30s", "percentile": "p95"}
    report = cw.plan("sdxl", scale="start=20s", **given)
    best = report.best
    assert best.note.startswith("simulated")
    assert best.replicas > 1
    found = best.scaling
    assert found is not None
    assert found.start_s == 20.0
    assert found.times is not None
    assert found.times.e2e_s is not None
    assert found.times.e2e_s <= 30.0
    assert found.replica_h < found.fixed_h
    assert found.closed is not None
    if found.closed.holds:
        assert found.replica_h <= found.closed.replica_h
    slow = cw.plan("sdxl", scale="start=1h", **given)
    assert slow.best.scaling is None or slow.best.scaling.replica_h >= found.replica_h


def test_one_deployment_is_simulated_with_replicas_that_follow() -> None:
    given = {"chip": "8xh100-sxm5-80gb", "rate": "0.8/s", "requests": 600}
    steady = cw.simulate("sdxl", **given).simulation
    followed = cw.simulate("sdxl", scale="target=2,least=2,start=30s", **given).simulation
    assert followed.scaling is not None
    assert followed.scaling.replica_h < followed.scaling.fixed_h
    assert followed.wait_s.mean.mid >= steady.wait_s.mean.mid


@pytest.mark.parametrize(
    ("given", "what", "hint"),
    [
        ({"day": DAY, "scale": "least=2"}, "and there is none", "add e2e"),
        ({"day": DAY, "e2e": "20s", "scale": "target=4"}, "not a day", "start, least"),
        ({"rate": "2/s", "e2e": "20s", "scale": "least=2"}, "needs arrivals to follow", "or day"),
    ],
)
def test_a_policy_that_moves_nothing_is_refused(given: dict[str, str], what: str, hint: str) -> None:
    with pytest.raises(UsageError, match=what) as error:
        cw.plan("sdxl", chips="h100", **given)
    assert error.value.field == "scale"
    assert hint in str(error.value.hint)


def test_a_single_replica_follows_nothing() -> None:
    with pytest.raises(UsageError, match="cannot follow the load"):
        cw.simulate("sdxl", chip="h100", rate="0.1/s", scale="target=2")
