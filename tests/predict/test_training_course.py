"""Checkpoints, failures, spare hosts and phases, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from chipwise.predict.training.course import (
    CheckpointStore,
    CourseSite,
    Failures,
    Phase,
    availability,
    course_of,
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
    assert availability(at, 12_000.0, 24.0, 0) == pytest.approx(math.exp(-2.0))
    assert availability(at, 12_000.0, 24.0, 2) == pytest.approx(5.0 * math.exp(-2.0))
    assert availability(at, 12_000.0, 0.0, 0) == 1.0
    enough = spares_for(at, 12_000.0, 24.0)
    assert availability(at, 12_000.0, 24.0, enough) >= 0.99 > availability(at, 12_000.0, 24.0, enough - 1)


def test_a_ramp_grows_evenly_and_evaluation_adds_its_share() -> None:
    grown = Phase("ramp", 1e9, 256, 4096).batches(1024)
    assert sum(grown) / len(grown) == pytest.approx((256 + 1024) / 2)
    assert list(grown) == sorted(grown)
    plain, watched = (
        course_of(Failures(), CheckpointStore(), replace(LLAMA, evaluation=e)) for e in (0.0, 0.02)
    )
    assert watched.good == pytest.approx(plain.good / 1.02)
