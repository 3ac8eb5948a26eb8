"""Pipelines: stages, bubbles, what waits."""

from __future__ import annotations

import pytest

from chipwise.parallel.pipeline import batch_time, held_micro_batches, slowest_stage, stage_layers


def test_uneven_stages_hold_whole_layers() -> None:
    assert stage_layers(61.0, 16.0, 1.0) == 4.0
    assert stage_layers(96.0, 8.0, 6.0) == 12.0
    assert stage_layers(61.0, 1.0, 1.0) == 61.0


def test_places_left_empty_make_room_for_the_head() -> None:
    even = slowest_stage(1.0, 2.0, 64.0, 8.0, 1.0)
    assert even == pytest.approx(10.0)
    # 126 layers in 8 stages of 16: two places are free on the last
    assert slowest_stage(1.0, 2.0, 126.0, 8.0, 1.0) == pytest.approx(16.0)


def test_bubble_of_one_stage_is_nothing_and_interleaving_divides_it() -> None:
    assert batch_time(2.0, 2.0, 10.0, 1.0, 1.0, 1.0) == 20.0
    plain = batch_time(2.0, 2.0, 10.0, 8.0, 1.0, 1.0) - 20.0
    assert batch_time(2.0, 2.0, 10.0, 8.0, 4.0, 1.0) - 20.0 == pytest.approx(plain / 4.0)


def test_one_f_one_b_holds_no_more_than_the_stages() -> None:
    assert held_micro_batches(64.0, 8.0, 1.0, 1.0) == 8.0
    assert held_micro_batches(64.0, 8.0, 1.0, 0.0) == 64.0
    assert held_micro_batches(64.0, 8.0, 3.0, 1.0) == pytest.approx(8.0 * (1.0 + 7.0 / 24.0))
