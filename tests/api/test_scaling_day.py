"""`plan --day`: replicas follow a day by the clock, as a simulation of its slices found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import chipwise as cw
from chipwise.api.estimating import asked
from chipwise.api.launching import launch
from chipwise.api.over_time import WaryReplica
from chipwise.api.placing import Given, Terms
from chipwise.api.scaling_day import COUNTED, ClockPolicy, Slices
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.predict.events.engine import run
from chipwise.predict.events.scaling import Scaling
from chipwise.report.plans import PlanRecord
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.curve import RateCurve
from chipwise.workload.lengths import Lengths
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-8B"
LENGTHS = {"in_": 1000, "out": 100}
DAY = "2,1,1,6,14,20,12,5"
TTFT_S, TPOT_S = 0.6, 0.022
ASKED = {"chips": "l40s", "runtime": "vllm", "precision": "fp8", "ttft": "600ms", "tpot": "22ms"}


@pytest.fixture(scope="module")
def planned() -> cw.PlanReport:
    return cw.plan(MODEL, day=DAY, **LENGTHS, **ASKED)


def test_the_policy_is_cheaper_than_a_fixed_fleet_and_no_dearer_than_formulas_that_hold(
    planned: cw.PlanReport,
) -> None:
    found = planned.best.scaling
    assert found is not None
    assert found.closed is not None
    assert 1 <= found.least == min(found.clock) < max(found.clock) <= found.most == planned.best.replicas
    assert found.usd_per_day is not None
    assert found.fixed_usd_per_day is not None
    assert planned.best.price is not None
    assert found.usd_per_day < found.fixed_usd_per_day == pytest.approx(24.0 * planned.best.price.mid)
    if found.closed.holds:
        assert found.replica_h <= found.closed.replica_h
    assert found.times is not None
    assert found.times.ttft_s is not None
    assert found.times.tpot_s is not None
    assert found.times.ttft_s <= TTFT_S
    assert found.times.tpot_s <= TPOT_S
    assert 0 < found.requests <= 25 * COUNTED
    printed = str(planned)
    assert "by the clock, one for every" in printed
    assert "the rule of formulas" in printed


def _wary(best: PlanRecord, workload: Workload) -> WaryReplica:
    degrees = {name: float(getattr(best.layout, name)) for name in ("tp", "pp", "dp", "ep")}
    terms = Terms(runtime="vllm", precision="fp8")
    return WaryReplica.of(asked(MODEL, workload, Given(best.chip, Layout(**degrees)), terms), workload)


def test_the_steepest_rise_of_the_day_keeps_the_targets_when_the_engine_follows_the_clock(
    planned: cw.PlanReport,
) -> None:
    """Ten minutes before the steepest rise and ten after it, with replicas that start as the policy says."""
    found = planned.best.scaling
    assert found is not None
    rates = [float(r) for r in DAY.split(",")]
    rise = max(range(1, len(rates)), key=lambda i: found.clock[i] - found.clock[i - 1])
    before, after = found.clock[rise - 1], found.clock[rise]
    assert before < after
    lengths = Lengths(1000.0, 100.0)
    parts = [Arrivals.drawn(lengths, int(600 * rates[i]), rates[i], seed=i) for i in (rise - 1, rise)]
    times = [p.time_s for p in parts]
    assert times[0] is not None
    assert times[1] is not None
    made = Arrivals(*(np.concatenate([getattr(p, s) for p in parts]) for s in ("prompt", "output")),
                    np.concatenate([times[0], 600.0 + times[1]]))  # fmt: skip
    workload = Workload("serve", 1000.0, 100.0, rates[rise], TTFT_S, TPOT_S)
    wary = _wary(planned.best, workload)
    scaling = Scaling(
        np.inf, found.most, found.start_s, before, found.every_s, found.hold_s,
        clock=((0.0, before), (600.0, after)),
    )  # fmt: skip
    ended = run(made, wary.times(found.most, scaling)).delayed(wary.host_s)
    assert ended.started == after - before
    assert wary.keeps(ended)
    late = run(made, wary.times(found.most, replace(scaling, clock=()))).delayed(wary.host_s)
    assert late.ttft_s.mean() > ended.ttft_s.mean()


def test_the_least_change_of_a_plan_that_misses_holds() -> None:
    given = {**LENGTHS, **ASKED, "ttft": "110ms", "precision": "bf16"}
    missed = cw.plan(MODEL, day=DAY, **given).best
    assert missed.scaling is None
    assert "no policy holds the targets in simulation: with all" in missed.note
    used = missed.note.partition("(--utilisation ")[2].partition(")")[0]
    assert used.endswith("%")
    assert cw.plan(MODEL, day=DAY, utilisation=used, **given).best.scaling is not None


def test_a_flat_day_has_nothing_to_follow() -> None:
    best = cw.plan(MODEL, day="20,20,20", **LENGTHS, **ASKED).best
    assert best.scaling is None or best.scaling.replica_h < best.scaling.fixed_h
    assert best.scaling is not None or "are needed in every slice" in best.note


def test_a_day_takes_no_target_in_flight() -> None:
    with pytest.raises(UsageError, match="follows requests in flight"):
        cw.plan(MODEL, day=DAY, scale="target=8", **LENGTHS, **ASKED)


def test_a_floor_that_is_said_is_kept() -> None:
    best = cw.plan(MODEL, day=DAY, scale="least=2,start=30s", **LENGTHS, **ASKED).best
    assert best.scaling is not None
    assert best.scaling.least == 2
    assert best.scaling.start_s == 30.0


def test_keda_starts_replicas_by_the_clock_before_they_are_needed(
    planned: cw.PlanReport, tmp_path: Path
) -> None:
    found = planned.best.scaling
    assert found is not None
    planned.save(str(tmp_path / "plan.json"))
    text = {f.name: f.text for f in launch(str(tmp_path / "plan.json"), "keda")}["scaledobject.yaml"]
    assert text.count('type: "cron"') == sum(
        n != m and n != found.least
        for n, m in zip(found.clock, (found.clock[-1], *found.clock), strict=False)
    )
    assert f'threshold: "{found.target:g}"' in text
    peak = found.clock.index(max(found.clock))
    ahead = -(-round(found.start_s + found.every_s) // 60)
    start = (
        180 * next(i for i in range(peak, -1, -1) if i == 0 or found.clock[i - 1] != found.clock[peak])
        - ahead
    )
    assert f'start: "{start % 60} {start // 60} * * *"' in text
    with pytest.raises(UsageError, match="no clock"):
        launch(str(tmp_path / "plan.json"), "dynamo-planner")


def test_what_a_day_pays_counts_starts_ahead_and_the_hold() -> None:
    curve = RateCurve((1.0, 3.0, 1.0, 1.0))
    policy = ClockPolicy(curve, Scaling(np.inf, 3, 120.0), 1.0, 1, (1, 3, 1, 1))
    assert policy.paid_s == pytest.approx(6 * 21_600.0 + 2 * 120.0 + 2 * 300.0)
    assert policy.started == 2
    assert sorted(policy.hardest) == [(1.0, 1), (3.0, 3)]


def test_what_is_known_of_a_slice_is_not_simulated_again(planned: cw.PlanReport) -> None:
    workload = Workload("serve", 1000.0, 100.0, 20.0, TTFT_S, TPOT_S)
    slices = Slices(_wary(planned.best, workload), Lengths(1000.0, 100.0))
    assert slices.holds(1.0, 2)
    assert slices.holds(0.5, 2)
    assert slices.holds(1.0, 3)
    assert not slices.holds(60.0, 1)
    assert not slices.holds(70.0, 1)
    assert len(slices.runs) == 2
    assert slices.requests == 2 * COUNTED
