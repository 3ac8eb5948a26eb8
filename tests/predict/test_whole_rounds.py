"""Jobs in whole rounds: nobody takes a part of a piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.predict.rounds import by_deadline, kept_up, rounds, side_by_side, workers_for

counts = st.integers(1, 10**6)
few = st.integers(1, 200)
seconds = st.floats(1e-3, 1e5)


def job_s(pieces: int, workers: int, batch: int, one_s: float) -> float:
    return float(rounds(pieces, workers * batch)) * one_s


@given(pieces=counts, more=counts, workers=few, batch=few, one_s=seconds)
def test_more_pieces_never_take_less_time_and_none_is_done_before_one_round(
    pieces: int, more: int, workers: int, batch: int, one_s: float
) -> None:
    took = job_s(pieces, workers, batch, one_s)
    assert one_s <= took <= job_s(pieces + more, workers, batch, one_s)


@given(pieces=counts, workers=few, batch=few, one_s=seconds)
def test_workers_take_at_least_as_long_as_the_work_of_all_pieces(
    pieces: int, workers: int, batch: int, one_s: float
) -> None:
    took = job_s(pieces, workers, batch, one_s)
    assert took * workers * batch >= pieces * one_s * (1.0 - 2e-3)
    assert job_s(pieces, workers + 1, batch, one_s) <= took
    assert float(kept_up(pieces, workers * batch)) == pytest.approx(pieces * one_s / (took * workers * batch))


@given(pieces=st.integers(1, 500), batch=few, one_s=seconds, due=st.floats(1.0, 1e6))
def test_the_fewest_workers_keep_the_deadline_and_all_of_them_have_a_piece(
    pieces: int, batch: int, one_s: float, due: float
) -> None:
    due_s = due * one_s
    workers = int(workers_for(pieces, batch, by_deadline(due_s, one_s)))
    assert job_s(pieces, workers, batch, one_s) <= due_s * (1.0 + 1e-6)
    assert workers <= -(-pieces // batch)
    if workers > 1:
        assert job_s(pieces, workers - 1, batch, one_s) > due_s * (1.0 - 1e-6)


def test_no_round_before_the_deadline_leaves_all_that_find_work() -> None:
    assert float(by_deadline(10.0, 15.0)) == 0.0
    assert float(workers_for(10, 4, 0.0)) == 3.0
    assert float(workers_for(10, 4, -2.0)) == 3.0


def test_of_many_rounds_it_is_the_work_over_the_throughput() -> None:
    assert float(kept_up(1e6, np.array([7.0]))[0]) == pytest.approx(1.0, abs=1e-4)
    assert float(kept_up(1, 3)) == pytest.approx(1.0 / 3.0)


def test_kinds_side_by_side_take_what_they_have_time_for() -> None:
    # 8 of the first kind in four rounds, 2 of the second in one
    assert side_by_side(10, [(2.0, 8.0, 8.0), (2.0, 24.0, 24.0)]) == pytest.approx(32.0)
    # a single piece is not cut in two
    assert side_by_side(1, [(1.0, 8.0, 8.0), (1.0, 8.0, 8.0)]) == pytest.approx(8.0)
    # the first round of a kind may take longer than what passes between rounds
    assert side_by_side(3, [(1.0, 5.0, 2.0)]) == pytest.approx(9.0)
