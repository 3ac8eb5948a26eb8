"""Models awake by turns: what is played through against what is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.predict.events.turns import STEPS, TurnModel, _requests, turns


def mean_of_two(mine: TurnModel, other: TurnModel) -> tuple[float, float]:
    """Mean wait and wakes per second of one of two models whose requests take the same time: a cycle is a swap and a
    busy period (M/D/infinity) of each, and idle time where nobody came meanwhile."""
    swap_s = mine.move_s + other.move_s

    def busy(m: TurnModel) -> float:
        return float(np.expm1(m.rate_per_s * m.busy_s) / m.rate_per_s)

    def active(m: TurnModel) -> float:
        return float(1.0 - np.exp(-m.rate_per_s * m.busy_s))

    away, here = swap_s + busy(other), swap_s + busy(mine)
    none, other_none = np.exp(-mine.rate_per_s * away), np.exp(-other.rate_per_s * here)
    cycle = away + here
    cycle += other_none * (1.0 / other.rate_per_s + active(mine) * busy(mine))
    cycle += none * (1.0 / mine.rate_per_s + active(other) * busy(other))
    waits = mine.rate_per_s * away * (away / 2.0 + swap_s)
    waits += none * (active(other) * busy(other) + swap_s)
    waits += mine.rate_per_s * swap_s**2 / 2.0
    return float(waits / (mine.rate_per_s * cycle)), float(1.0 / cycle)


@pytest.mark.parametrize("seed", range(8))
def test_two_models_wait_as_long_as_the_closed_form_says(seed: int) -> None:
    draws = np.random.default_rng(seed)
    busy, load, move = draws.uniform(1, 8, 2), draws.uniform(0.05, 0.4, 2), draws.uniform(0.25, 2, 2)
    one, other = (TurnModel(*row) for row in zip(load / busy, busy, (0.0, 0.0), move, strict=True))
    for found, (mean, wakes) in zip(
        turns((one, other), 50_000), (mean_of_two(one, other), mean_of_two(other, one)), strict=True
    ):
        assert found.wakes_per_s == pytest.approx(wakes, rel=0.08)
        assert found.mean_s == pytest.approx(mean, rel=0.2)


def played(models: tuple[TurnModel, ...], count: int) -> list[list[float]]:
    """Waits of each model, request by request: one awake takes all that come, however many; where it has none and some
    wait, the model of the first of them wakes, which takes both moves, and all that wait for it start."""
    at, who, passes = _requests(models, count)
    come = list(zip(at.tolist(), who.tolist(), passes.tolist(), strict=True))
    waits: list[list[float]] = [[] for _ in models]
    awake, ready, ends = 0, 0.0, 0.0
    line: list[tuple[float, int, float]] = []
    while come or line:
        if line and (not come or max(ends, line[0][0]) <= come[0][0]):
            first, model, _ = line[0]
            ready = max(ends, first) + models[awake].move_s + models[model].move_s
            awake, started = model, [r for r in line if r[1] == model]
            line = [r for r in line if r[1] != model]
        elif come[0][1] == awake:
            started = [come.pop(0)]
        else:
            line.append(come.pop(0))
            continue
        for time, model, long in started:
            start = max(time, ready)
            waits[model].append(start - time)
            ends = max(ends, start + long * models[model].busy_s / STEPS)
    return waits


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_engine_says_of_several_models_what_playing_them_request_by_request_does(count: int) -> None:
    draws = np.random.default_rng(count)
    busy, load, move = (draws.uniform(*ends, count) for ends in ((1, 8), (0.03, 0.2), (0.2, 2)))
    models = tuple(TurnModel(*row) for row in zip(load / busy, busy, [0.5] * count, move, strict=True))
    for found, waits in zip(turns(models, 5_000), played(models, 5_000), strict=True):
        assert found.mean_s == pytest.approx(np.mean(waits), rel=0.005)
        assert found.within_s(0.95) == pytest.approx(np.quantile(waits, 0.95), rel=0.01)


def test_a_model_that_is_hardly_asked_waits_for_its_own_wake_and_no_more() -> None:
    rare, rarer = TurnModel(1e-4, 1.0, 0.0, 1.0), TurnModel(1e-6, 1.0, 0.0, 2.0)
    seen, hardly = turns((rare, rarer))
    assert hardly.mean_s == pytest.approx(3.0, rel=0.01)
    assert seen.mean_s < 0.1, "it is nearly always awake"
    assert hardly.left == pytest.approx(1.0, abs=1e-3)


def test_more_work_longer_swaps_and_further_models_make_all_wait_longer() -> None:
    base = TurnModel(0.05, 4.0, 0.5, 1.0)
    two = turns((base, base))[0]
    for harder in (
        (base, TurnModel(0.1, 4.0, 0.5, 1.0)),
        (base, TurnModel(0.05, 8.0, 0.5, 1.0)),
        (TurnModel(0.05, 4.0, 0.5, 3.0), base),
        (base, base, base),
    ):
        found = turns(harder)[0]
        assert found.mean_s > two.mean_s
        assert found.within_s(0.95) > two.within_s(0.95) > two.mean_s == two.within_s(None)
    assert turns((base, base))[0].waited.tolist() == two.waited.tolist(), "the same numbers each time"
