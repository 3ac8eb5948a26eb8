"""Lengths as distributions: moments by hand and by drawing, logs, prefix caches, a day's curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chipwise.errors import UsageError
from chipwise.workload.curve import RateCurve, read_curve
from chipwise.workload.lengths import STRATA, Lengths, PrefixCache


def test_equal_lengths_are_their_means() -> None:
    found = Lengths(1000.0, 200.0)
    assert found.decoding_context == 1000 + 100
    assert found.held(0.6) == 1000 + 120
    assert found.attended_prompt == 1000
    assert found.points("prompt").tolist() == [1000.0]
    assert found.quantile("output", 0.99) == 200


def test_long_outputs_are_met_more_often_than_they_arrive() -> None:
    # two kinds of request, equally often: 100 and 900 tokens; of 1,000 steps 900 belong to the long one
    found = Lengths.of_log([(50.0, 100.0), (50.0, 900.0)])
    assert found.decoding_context == pytest.approx(50 + (0.1 * 50 + 0.9 * 450))
    assert found.held(1.0) == pytest.approx(50 + (0.1 * 100 + 0.9 * 900))


def test_moments_against_drawn_requests() -> None:
    rng = np.random.default_rng(0)
    prompt, output = rng.lognormal(6.0, 0.9, 200_000), rng.lognormal(5.0, 0.7, 200_000)
    prompt, output = prompt + 0.3 * output + 1, output + 1
    log = Lengths.of_log(zip(prompt, output, strict=True))
    # every decode step of every request, weighted by how long it lasts
    held = float(np.sum(output * (prompt + output / 2)) / np.sum(output))
    assert log.decoding_context == pytest.approx(held, rel=1e-6)
    assert log.attended_prompt == pytest.approx(float(np.mean(prompt**2) / np.mean(prompt)), rel=1e-6)
    assert log.correlation == pytest.approx(np.corrcoef(prompt, output)[0, 1])
    assert len(log.points("prompt")) == STRATA
    for share in (0.5, 0.9, 0.95):
        assert log.quantile("prompt", share) == pytest.approx(np.quantile(prompt, share), rel=0.02)


def test_a_log_normal_keeps_its_mean_and_quantiles() -> None:
    found = Lengths(1000.0, 200.0, prompt_cv=1.0)
    points = found.points("prompt")
    assert np.mean(points) == pytest.approx(1000)
    rng = np.random.default_rng(1)
    sigma = np.sqrt(np.log(2.0))
    drawn = 1000 * rng.lognormal(-(sigma**2) / 2, sigma, 400_000)
    for share in (0.1, 0.5, 0.95):
        assert found.quantile("prompt", share) == pytest.approx(np.quantile(drawn, share), rel=0.02)


@pytest.mark.parametrize(
    "values",
    [
        {"prompt_tokens": 0.0},
        {"output_tokens": float("nan")},
        {"prompt_cv": -0.1},
        {"output_cv": 1e9},
        {"correlation": 2.0},
    ],
)
def test_lengths_that_cannot_be(values: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Lengths(**{"prompt_tokens": 100.0, "output_tokens": 10.0, **values})


def test_a_prefix_that_all_share_is_kept_once() -> None:
    cache = PrefixCache(cached_share=0.8, common_tokens=500.0)
    assert cache.new_tokens(1000.0) == pytest.approx(200)
    assert cache.own_tokens(1100.0, 1000.0) == 600
    assert PrefixCache(0.3, 500.0).own_tokens(1100.0, 1000.0) == 800, "no longer than what is found"
    assert PrefixCache().own_tokens(1100.0, 1000.0) == 1100
    # of four beams one keeps the prompt; no more is shared than is found, and what all share is not shared twice
    assert PrefixCache(0.75, sharers=4).own_tokens(1100.0, 1000.0) == 350
    assert PrefixCache(0.5, sharers=4).own_tokens(1100.0, 1000.0) == 600
    assert PrefixCache(0.75, 800.0, sharers=4).own_tokens(1100.0, 1000.0) == 350
    assert PrefixCache(0.75, 800.0, sharers=4).common(1000.0) == 750
    assert PrefixCache(0.9999999).new_tokens(1000.0) == 1, "the last token is always worked off"
    for bad in ({"cached_share": 1.0}, {"cached_share": float("nan")}, {"common_tokens": -1.0}, {"sharers": 0.5}):
        with pytest.raises(UsageError):
            PrefixCache(**bad)


def test_a_day(tmp_path: Path) -> None:
    day = read_curve("1, 2,3,2")
    assert read_curve("3600/h,7200/h,3/s,2") == day
    assert day == RateCurve((1.0, 2.0, 3.0, 2.0))
    assert (day.peak, day.mean, day.slice_s) == (3, 2, 21600)
    file = tmp_path / "day"
    file.write_text("1\n2\n3\n2\n")
    assert read_curve(str(file)) == day
    for bad in ("", "a,b", "-1,2", "0,0", "nan", ",".join("1" * 1441)):
        with pytest.raises(UsageError):
            read_curve(bad)
