"""`plan --day`: replicas follow a day by the clock, as a simulation of its slices found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import chipwise as cw
from chipwise.api.estimating import AskedLoad, asked
from chipwise.api.launching import launch
from chipwise.api.over_time import WaryReplica
from chipwise.api.placing import Given, Terms
from chipwise.api.scaling_day import COUNTED, GROWTH, ClockPolicy, DayHeld, Slices, over_a_day
from chipwise.catalog.price import HOURS_PER_MONTH
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.predict.events.engine import run
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.report.decision import usd_words
from chipwise.report.plans import PlanRecord
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.curve import RateCurve
from chipwise.workload.lengths import Lengths
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-8B"
LENGTHS = {"in_": 1000, "out": 100}
DAY = "2,1,1,6,14,20,12,5"
TTFT_S, TPOT_S = 0.6, 0.023
ASKED = {"chips": "l40s", "runtime": "vllm", "precision": "fp8", "ttft": "600ms", "tpot": "23ms"}


@pytest.fixture(scope="module")
def planned() -> cw.PlanReport:
    return cw.plan(MODEL, day=DAY, **LENGTHS, **ASKED)


def test_the_policy_is_cheaper_than_a_fixed_fleet_and_no_dearer_than_formulas_that_hold(planned: cw.PlanReport) -> None:
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


def test_the_verdict_has_the_dollars_of_the_policy(planned: cw.PlanReport) -> None:
    found, decision = planned.best.scaling, planned.decision
    assert found is not None
    assert decision is not None
    assert decision.rent_usd_per_month == pytest.approx(found.usd_per_day * HOURS_PER_MONTH / 24.0)
    assert decision.all_on_usd_per_month == pytest.approx(found.fixed_usd_per_day * HOURS_PER_MONTH / 24.0)
    assert decision.follows == "day"
    verdict = " ".join(planned.verdict())
    paid = usd_words(decision.rent_usd_per_month)
    assert f"{paid} a month at this load, scaled with the day (" in verdict
    assert f"{usd_words(decision.all_on_usd_per_month)} with all replicas always on)" in verdict
    assert f"Scaled with the day, {found.least} to {found.most} replicas run, about $" in verdict
    steady = cw.plan(MODEL, rate="20/s", **LENGTHS, **ASKED)
    assert steady.decision is not None
    # of the day the peak is held in simulation too, which may take a replica more
    assert steady.best.chips <= planned.best.chips
    each = decision.all_on_usd_per_month / planned.best.chips
    assert steady.decision.rent_usd_per_month == pytest.approx(each * steady.best.chips)
    assert (steady.decision.all_on_usd_per_month, steady.decision.follows) == (None, "")
    assert "Scaled" not in " ".join(steady.verdict())


def _one(plan: PlanRecord, workload: Workload) -> AskedLoad:
    degrees = {name: float(getattr(plan.layout, name)) for name in ("tp", "pp", "dp", "ep")}
    terms = Terms(runtime="vllm", precision="fp8")
    return asked(MODEL, workload, Given(plan.chip, Layout(**degrees)), terms)


def _wary(best: PlanRecord, workload: Workload) -> WaryReplica:
    return WaryReplica.of(_one(best, workload), workload)


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


def test_what_holds_in_simulation_is_said_of_a_plan_that_formulas_doubt() -> None:
    """No plan meets the targets as surely as asked by formulas: it stays as it is, with how many would hold."""
    given = {**LENGTHS, **ASKED, "ttft": "130ms", "precision": "bf16", "confidence": "90%"}
    report = cw.plan(MODEL, day=DAY, **given)
    assert not report.kept
    assert report.verdict()[0].startswith("No plan meets")
    assert "simulated" not in report.verdict()[0]
    assert report.best.scaling is None
    assert f"{report.best.replicas} replicas, as formulas ask, miss the targets" in report.best.note
    assert "hold them (" in report.best.note


def _as_sized(planned: cw.PlanReport) -> PlanRecord:
    """The plan as formulas have it."""
    return replace(planned.best, peak=None, scaling=None)


def _busier(peak: float, most: int, ttft_s: float = TTFT_S) -> DayHeld:
    """A day whose peak is higher than that for which formulas sized the plans."""
    workload = Workload("serve", 1000.0, 100.0, peak, ttft_s, TPOT_S)

    curve = RateCurve((1.0, peak))
    return DayHeld(curve, workload, lambda p: _one(p, workload), lambda p: most, ScalingGiven(), lambda p: p)


def test_a_plan_that_misses_at_the_peak_grows_until_it_holds(planned: cw.PlanReport) -> None:
    before = _as_sized(planned)
    day = _busier(45.0, 10**6)
    (best,), said = over_a_day([before], day)
    assert best.replicas > before.replicas
    assert best.peak is not None
    assert (best.peak.holds, best.peak.asked, best.peak.replicas) == (True, before.replicas, best.replicas)
    assert best.peak.times.ttft_s is not None
    assert best.peak.times.ttft_s <= TTFT_S
    assert best.chips == best.replicas * before.chips // before.replicas
    assert best.requests_per_s == pytest.approx(45.0)
    assert best.price is not None
    assert before.price is not None
    assert best.price.mid > before.price.mid
    assert best.keeps_targets(0.9)
    assert set(best.tails) == set(before.tails)
    assert f"{before.replicas} replicas, as formulas ask, miss the targets" in best.note
    assert f"{best.replicas} replicas hold them" in best.note
    assert len(said) == 1
    slices = day.slices(day.asking(before))
    assert slices is not None
    assert not slices.seen(45.0, best.replicas - 1)[0], "one replica less misses"
    assert best.scaling is not None
    assert best.scaling.most == best.replicas


def test_what_a_plan_grows_to_may_be_dearer_than_another_that_holds(planned: cw.PlanReport) -> None:
    before, price = _as_sized(planned), planned.best.price
    assert price is not None
    ample = replace(
        before,
        chip="l40",
        note="",
        replicas=30,
        chips=30,
        price=replace(price, mid=1.3 * price.mid, low=1.3 * price.low, high=1.3 * price.high),
    )
    day = _busier(45.0, 10**6)
    one = day.asking(before)
    plans, _ = over_a_day((before, ample), replace(day, asking=lambda p: one))
    assert [p.chip for p in plans] == ["l40", before.chip]
    assert plans[0].peak is not None
    assert plans[0].peak.before is None
    assert not plans[0].note


def test_where_no_size_holds_the_verdict_says_so_first(planned: cw.PlanReport) -> None:
    before = _as_sized(planned)
    (best,), said = over_a_day([before], _busier(45.0, before.replicas))
    assert best.replicas == before.replicas
    assert best.peak is not None
    assert not best.peak.holds
    assert best.note.endswith("and more are not allowed")
    assert not best.keeps_targets(0.9)
    assert best.scaling is None
    assert said
    (slow,), _ = over_a_day([before], _busier(45.0, 10**6, ttft_s=0.02))
    assert slow.replicas == GROWTH * before.replicas
    assert f"and {slow.replicas} replicas do not hold them either" in slow.note
    verdict = replace(planned, plans=(slow,), kept=False, decision=None).verdict()[0]
    assert verdict.startswith("No plan meets 600 ms to the first token and 23.0 ms per token with 90% probability")
    assert f"where the peak of the day is simulated. Nearest: {slow.machines}" in verdict


def test_all_plans_that_are_printed_are_simulated_at_the_peak_and_the_first_follow_the_day() -> None:
    given = {**ASKED, "chips": "l40s,l4,rtx-6000-ada,l40,h100"}
    report = cw.plan(MODEL, day=DAY, **LENGTHS, **given)
    sure = [p for p in report.plans if p.keeps_targets(0.9)]
    assert len(sure) > 3
    assert all(p.peak is not None and (p.peak.holds or p.peak.before) for p in sure)
    followed = [p for p in sure[:3] if p.replicas > 1]
    assert all(p.scaling is not None or "in every slice" in p.note for p in followed)
    assert all(p.scaling is None for p in report.plans[3:])
    printed = " ".join(str(report).split())
    assert f"peak of the day: {len(sure)} of {len(report.plans)} plans simulated" in printed
    # the first is one replica, which others undercut that follow the day
    least = min(followed, key=lambda p: p.scaling.usd_per_day if p.scaling else np.inf)
    assert least.scaling is not None
    assert least.scaling.usd_per_day < 24.0 * report.best.price.mid
    assert f"Scaled with the day, #{least.rank} costs less: about $" in " ".join(report.verdict())


def test_a_plan_of_one_replica_is_held_against_the_peak_too() -> None:
    given = {**LENGTHS, "chips": "h100", "runtime": "vllm", "ttft": "600ms", "tpot": "23ms"}
    best = cw.plan(MODEL, day="1,2", **given).best
    assert best.replicas == 1
    assert best.peak is not None
    assert best.peak.holds
    assert (best.scaling, best.note) == (None, "")


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


def test_keda_starts_replicas_by_the_clock_before_they_are_needed(planned: cw.PlanReport, tmp_path: Path) -> None:
    found = planned.best.scaling
    assert found is not None
    planned.save(str(tmp_path / "plan.json"))
    text = {f.name: f.text for f in launch(str(tmp_path / "plan.json"), "keda")}["scaledobject.yaml"]
    assert text.count('type: "cron"') == sum(
        n != m and n != found.least for n, m in zip(found.clock, (found.clock[-1], *found.clock), strict=False)
    )
    assert f'threshold: "{found.target:g}"' in text
    peak = found.clock.index(max(found.clock))
    ahead = -(-round(found.start_s + found.every_s) // 60)
    start = 180 * next(i for i in range(peak, -1, -1) if i == 0 or found.clock[i - 1] != found.clock[peak]) - ahead
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
    one = _one(planned.best, workload)
    wary = WaryReplica.of(one, workload)
    slices = Slices(wary, Lengths(1000.0, 100.0), 60.0, lambda n, traffic: pytest.fail("no chance is asked"))
    assert slices.holds(1.0, 2)
    assert slices.holds(0.5, 2)
    assert slices.holds(1.0, 3)
    assert not slices.holds(60.0, 1)
    assert not slices.holds(70.0, 1)
    assert len(slices.runs) == 2
    assert slices.requests == 2 * COUNTED
