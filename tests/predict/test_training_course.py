"""Checkpoints, failures, spare hosts and phases, by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chipwise.catalog.failures import failing_fleet
from chipwise.errors import UnknownNameError
from chipwise.predict.training.course import (
    CheckpointStore,
    CourseSite,
    Failures,
    Phase,
    availability,
    course_of,
    progress_ends,
    spares_for,
)

# 405B on 16,384 chips: 14 bytes per parameter, of which a device copies its part to the host over PCIe.
LLAMA = CourseSite(16_384, 2_048, 405e9 * 14.0, 4e9, 25e9)


def test_a_checkpoint_takes_what_its_bytes_take() -> None:
    """5.67 TB at the 2 TB/s that all hosts do; the run stops for 2 s and 4 GB over 25 GB/s."""
    course = course_of(Failures(), CheckpointStore(), LLAMA)
    assert course.save_s == pytest.approx(5.67e12 / 2e12)
    assert course.block_s == pytest.approx(2.0 + 4.0 / 25.0)
    assert course.restart_s == pytest.approx(600.0 + 5.67e12 / 2e12)
    few = replace(LLAMA, hosts=8)
    assert course_of(Failures(), CheckpointStore(), few).save_s == pytest.approx(5.67e12 / 16e9)


def test_llama_made_progress_for_more_than_nine_tenths_of_the_time() -> None:
    """Llama 3: one stop in 3 h on 16,384 GPUs, more than 90 % effective time."""
    course = course_of(Failures(), CheckpointStore(), LLAMA)
    assert course.mtbf_s == pytest.approx(50_000.0 * 3600.0 / 16_384)
    assert 0.90 < course.progress < 0.96


def test_hosts_that_are_taken_away_stop_a_run_too() -> None:
    """Rates of stops add up; the wait counts for its share of them."""
    calm, taken = Failures(), Failures(preempt_h=240.0, wait_s=3600.0)
    a, b = (course_of(f, CheckpointStore(), replace(LLAMA, chips=512, hosts=64)) for f in (calm, taken))
    rate = 512 / 50_000.0 + 64 / 240.0
    assert b.mtbf_s == pytest.approx(3600.0 / rate)
    assert b.restart_s - a.restart_s == pytest.approx(3600.0 * (64 / 240.0) / rate)
    assert b.good < a.good


def test_spare_hosts_replace_those_being_repaired() -> None:
    """Two hosts are in repair in the mean: without spares e^-2 of the time runs, with two e^-2 (1 + 2 + 2)."""
    at = replace(LLAMA, chips=1_000, hosts=125)
    f = Failures(chip_mtbf_h=12_000.0, repair_h=24.0)
    assert availability(at, f, 0) == pytest.approx(math.exp(-2.0))
    assert availability(at, f, 2) == pytest.approx(5.0 * math.exp(-2.0))
    assert availability(at, replace(f, repair_h=0.0), 0) == 1.0
    # negative binomial, of size 2 / (3 - 1) = 1: geometric; on half of the fleet half of what bunches
    bunched = replace(f, scatter=3.0)
    assert availability(at, bunched, 1) == pytest.approx(1.0 / 3.0 + 2.0 / 9.0)
    halved = availability(at, replace(bunched, among=250), 0)
    assert halved == pytest.approx(availability(at, replace(f, scatter=2.0), 0))


def test_spares_are_worth_it_while_they_save_more_than_they_cost() -> None:
    at, f = replace(LLAMA, chips=1_000, hosts=125), Failures(chip_mtbf_h=12_000.0, repair_h=24.0)
    worth = spares_for(at, f)
    cost = [(125 + k) / availability(at, f, k) for k in (worth - 1, worth, worth + 1)]
    assert cost[1] == min(cost)
    assert spares_for(at, replace(f, scatter=4.0)) > worth
    assert spares_for(at, replace(f, repair_h=0.0)) == 0


@pytest.mark.parametrize("scatter", [1.0, 4.0])
@pytest.mark.parametrize("spares", [2, 5])
def test_a_run_that_is_replayed_makes_the_progress_that_formulas_say(spares: int, scatter: float) -> None:
    at = replace(LLAMA, chips=1_000, hosts=125)
    f = Failures(chip_mtbf_h=12_000.0, repair_h=24.0, spares=spares, scatter=scatter)
    course = course_of(f, CheckpointStore(), at)
    low, high = progress_ends(course, f, at, 2000.0)
    assert low < course.progress < high
    assert high - low < 0.04
    brief = progress_ends(course, f, at, 20.0)
    assert brief[1] - brief[0] > 2.0 * (high - low)


def test_a_host_away_is_one_in_the_published_fleets() -> None:
    llama, stepfun = failing_fleet("llama-3"), failing_fleet("stepfun")
    assert llama.chip_mtbf_h == pytest.approx(50_677.0, rel=1e-3)
    # Meta RSC-1: 1.8 h between failures of 16,384 GPUs
    assert failing_fleet("rsc-1").chip_mtbf_h / 16_384 == pytest.approx(1.8, rel=0.02)
    with pytest.raises(UnknownNameError, match="fleet of known failures"):
        failing_fleet("llama3")
    assert stepfun.repair_h > 0


def test_as_many_servers_are_up_as_in_a_recorded_fleet(truth: Path) -> None:
    """StepFun, 400 servers, 349 days: the share of time with at most k of them away, and of server time up."""
    table = truth / "traces" / "stepfun_faults.json"
    fleet = failing_fleet("stepfun")
    f = Failures(fleet.chip_mtbf_h, repair_h=fleet.repair_h, scatter=fleet.scatter, among=fleet.servers)
    at = replace(LLAMA, chips=3_200, hosts=400)
    events = json.loads(table.read_text())
    away = np.zeros(35_000)
    for node in {e["node_id"] for e in events}:
        steps = np.zeros(35_000)
        for e in events:
            if e["node_id"] == node:
                steps[min(int(e["event_time"] * 100.0), 34_999) :] += 1 if e["event_type"] == "fault_start" else -1
        away += steps > 0
    away = away[:34_898]
    assert 1.0 - away.mean() / 400 == pytest.approx(1.0 - at.chips / f.chip_mtbf_h * f.repair_h / 400, abs=0.005)
    random = replace(f, scatter=1.0)
    for k in (5, 10, 15, 20, 30):
        recorded = float(np.mean(away <= k))
        assert availability(at, f, k) == pytest.approx(recorded, abs=0.1)
        if k in (5, 15, 20):
            assert abs(availability(at, random, k) - recorded) > 0.1


def test_a_ramp_grows_evenly_and_evaluation_adds_its_share() -> None:
    grown = Phase("ramp", 1e9, 256, 4096).batches(1024)
    assert sum(grown) / len(grown) == pytest.approx((256 + 1024) / 2)
    assert list(grown) == sorted(grown)
    plain, watched = (course_of(Failures(), CheckpointStore(), replace(LLAMA, evaluation=e)) for e in (0.0, 0.02))
    assert watched.good == pytest.approx(plain.good / 1.02)
