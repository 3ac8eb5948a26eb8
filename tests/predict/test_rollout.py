"""A batch of sampled answers, and the loop around it, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.predict.training.rollout import PAGED, Answers, Decoder, Loop, parked_s, rollout_s

# A pass takes 10 ms alone and 20 ms with 101 sequences; a prompt 0.1 s.
DECODER = Decoder(np.array([1.0, 101.0]), np.array([0.010, 0.020]), 101.0, 0.1)
EVEN = Answers(prompts=10, samples=8, prompt_tokens=100.0, tokens=1000.0, cv=0.0, longest=4000.0)


def test_answers_of_one_length_take_their_passes() -> None:
    """80 answers on one engine: 10 prompts, then 1,000 passes of 80 sequences."""
    seconds, drained = rollout_s(EVEN, DECODER, 1)
    assert seconds == pytest.approx(10 * 0.1 + 1000 * (0.010 + 0.010 * 79 / 100))
    assert drained == 0.0
    halved, _ = rollout_s(EVEN, DECODER, 2)
    assert halved == pytest.approx(5 * 0.1 + 1000 * (0.010 + 0.010 * 39 / 100))


def test_answers_that_memory_does_not_hold_wait() -> None:
    """202 answers on an engine that holds 101: as long as two batches."""
    twice = replace(EVEN, prompts=202, samples=1)
    seconds, _ = rollout_s(twice, DECODER, 1)
    assert seconds == pytest.approx(202 * 0.1 + 2 * 1000 * 0.020)


def test_the_longest_answer_decides_and_spread_costs() -> None:
    """With spread the rollout lasts until the longest has ended, alone: never less than its passes, never less than for
    equal lengths; the mean of what is alive is the mean length."""
    spread = replace(EVEN, cv=0.8)
    seconds, drained = rollout_s(spread, DECODER, 1)
    even, _ = rollout_s(EVEN, DECODER, 1)
    assert seconds > even
    assert 0.3 < drained < 1.0
    grid = np.linspace(0.5, 200_000.0, 400_000)
    assert float(replace(spread, longest=1e9).alive(grid).sum() * 0.5) == pytest.approx(1000.0, rel=0.01)
    cut, _ = rollout_s(replace(spread, longest=2000.0), DECODER, 1)
    assert cut < seconds


def test_lengths_keep_their_mean_behind_the_cut() -> None:
    """Of answers of 1,000 tokens in the mean, cut at 1,200: more of them are cut, none is longer; packed behind prompts
    of 100 tokens their spread is that of both."""
    cut = replace(EVEN, cv=0.8, longest=1200.0)
    at = np.arange(0.5, 1200.0)
    assert float(cut.alive(at).sum()) == pytest.approx(1000.0, rel=1e-3)
    second = 2.0 * float((at * cut.alive(at)).sum()) - 1000.0**2
    assert cut.packed_cv == pytest.approx(np.sqrt(second) / 1100.0, rel=0.01)
    assert EVEN.packed_cv == 0.0


def test_steps_of_the_optimiser_have_512_answers_and_are_four_at_most() -> None:
    assert [replace(EVEN, prompts=n, samples=1).updates for n in (1, 512, 1023, 1024, 2048, 10**6)] == [
        1,
        1,
        1,
        2,
        4,
        4,
    ]


def test_state_leaves_slower_than_it_comes_back() -> None:
    assert parked_s(PAGED, 10.0 * PAGED) == pytest.approx(1.1)
    assert parked_s(1.0, 0.5) == 4.0  # a link that is slower still


def test_apart_the_slower_side_decides() -> None:
    together = Loop(10.0, 2.0, 6.0, 0.5, 1.0, together=True)
    assert together.total == pytest.approx(19.5)
    apart = replace(together, swap=0.0, together=False)
    assert apart.total == pytest.approx(10.5)
    assert apart.idle == pytest.approx(2.0 / 10.5)
    assert together.idle == 0.0
