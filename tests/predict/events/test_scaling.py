"""Replicas that follow the load: when they come and go, what is paid for, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.predict.events.engine import Fleet, JobTimes, run
from chipwise.predict.events.rank import Rules
from chipwise.predict.events.scaling import Scaling
from chipwise.workload.arrivals import Arrivals

TEN_S = JobTimes(np.array([10.0]))
RULES = Rules(1, 1, alone=True, static=True)
POLICY = Scaling(target=1.0, most=3, start_s=20.0, every_s=15.0, hold_s=60.0)


def _fleet(policy: Scaling | None, route: str = "least") -> Fleet:
    return Fleet(RULES, TEN_S, 3, route=route, scaling=policy)


def _at(*times: float) -> Arrivals:
    ones = np.ones(len(times))
    return Arrivals(ones, ones, np.array(times))


def test_a_new_replica_takes_requests_when_it_has_started() -> None:
    # four at once wait for one; at 15 s two more are asked for, which are ready at 35 s
    found = run(_at(0, 1, 2, 3, 34, 36), _fleet(POLICY))
    assert found.last.tolist() == [10, 20, 30, 40, 50, 46]
    assert found.started == 2
    assert found.paid_s == pytest.approx(50 + 2 * (50 - 15))


def test_replicas_go_after_the_hold_and_are_paid_until_their_work_ends() -> None:
    # three are wanted at 15 s, two at 30 s, one at 45 s: one goes at the first look a minute past each of the former
    found = run(_at(0, 1, 2, 3, 200), _fleet(POLICY))
    assert found.last[-1] == 210
    assert found.paid_s == pytest.approx(210 + (90 - 15) + (105 - 15))
    longer = run(_at(0, 1, 2, 3, 200), _fleet(replace(POLICY, hold_s=1e4)))
    assert longer.paid_s == pytest.approx(210 + 2 * (210 - 15))


def test_as_many_at_least_as_at_most_is_a_fixed_fleet() -> None:
    times = np.cumsum(np.random.default_rng(1).exponential(4.0, 300))
    fixed = run(_at(*times), _fleet(None))
    follows = run(_at(*times), _fleet(replace(POLICY, least=3)))
    assert follows.last.tolist() == fixed.last.tolist()
    assert follows.paid_s == pytest.approx(3 * fixed.whole_s)
    assert follows.busy == pytest.approx(fixed.busy)
    assert follows.started == 0


@pytest.mark.parametrize(("name", "worse"), [("start_s", 200.0), ("target", 4.0)])
def test_a_lazier_policy_serves_later(name: str, worse: float) -> None:
    times = np.cumsum(np.random.default_rng(2).exponential(4.0, 400))
    eager, lazy = (run(_at(*times), _fleet(p)) for p in (POLICY, replace(POLICY, **{name: worse})))
    assert lazy.ttft_s.mean() > eager.ttft_s.mean()
    assert eager.served.all()
    assert lazy.served.all()
    floor = run(_at(*times), _fleet(replace(POLICY, least=2)))
    assert floor.ttft_s.mean() < eager.ttft_s.mean()
    assert floor.paid_s <= 3 * floor.whole_s


def test_the_clock_has_replicas_ready_when_their_time_comes() -> None:
    # three are wanted from 100 s to 200 s: asked for 20 s and a look ahead, two go a hold after that
    policy = replace(POLICY, target=np.inf, clock=((0.0, 1), (100.0, 3), (200.0, 1)))
    assert [policy.floor(t, t + 35.0) for t in (0.0, 64.0, 65.0, 199.0, 200.0)] == [1, 1, 3, 3, 1]
    found = run(_at(0, 101, 102, 103, 500), _fleet(policy))
    assert found.started == 2
    assert found.last.tolist() == [10, 111, 112, 113, 510]
    assert found.paid_s == pytest.approx(510 + 2 * (270 - 75))
