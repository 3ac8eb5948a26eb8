"""Models that are awake by turns on one device: how long requests wait for the one that they ask to wake.

One model is awake. Requests to it start at once, however many. Requests to others wait until it has none under way;
then the one that has waited longest wakes, which takes its `swap_s`, and all that wait for it start together. Requests
come at random. This is played through with the same random numbers each time; with two models whose requests all take
the same time the mean has a closed form, which a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.units import Array

REQUESTS = 20_000
"""Requests that are played through. Chosen: means within some 3 %, in 30 ms; moves which sets of models fit."""


@dataclass(frozen=True)
class TurnModel:
    """A model on a shared device: requests per second, seconds of one while it is awake and their coefficient of
    variation, and what it takes to put another to sleep and wake this one."""

    rate_per_s: float
    busy_s: float
    cv: float
    swap_s: float


@dataclass(frozen=True)
class Turn:
    """What a model sees of taking turns: the seconds that its requests `waited`, in order of size; how often it wakes
    per second; and the share of the time that is `left` to it when it needs it, while nobody else works or wakes."""

    waited: Array
    wakes_per_s: float
    left: float

    @property
    def mean_s(self) -> float:
        """Seconds that a request waits in the mean."""
        return float(self.waited.mean()) if len(self.waited) else 0.0

    def within_s(self, share: float | None) -> float:
        """Seconds within which this share of the requests have waited; None: the mean."""
        if share is None or not len(self.waited):
            return self.mean_s
        return float(np.quantile(self.waited, share))


@dataclass
class _Played:
    """The device as it is played through: which model is awake, since when and until when it works, who waits."""

    awake: int
    ready_s: float
    ends_s: float
    waiting: list[tuple[float, int, float]]


def turns(models: Sequence[TurnModel], requests: int = REQUESTS) -> tuple[Turn, ...]:
    """What each of some models sees of taking turns, in their order."""
    at, who, busy = _requests(models, requests)
    now = _Played(0, 0.0, 0.0, [])
    waited: list[list[float]] = [[] for _ in models]
    wakes, taken = np.zeros(len(models)), np.zeros(len(models))
    end = float(at[-1])
    for come, model, long in zip(at.tolist(), who.tolist(), busy.tolist(), strict=True):
        while now.waiting and max(now.ends_s, now.waiting[0][0]) <= come:
            _turn(now, models, waited, wakes, taken)
        if model == now.awake:
            start = max(come, now.ready_s)
            waited[model].append(start - come)
            taken[model] += max(start + long - max(now.ends_s, start), 0.0)
            now.ends_s = max(now.ends_s, start + long)
        else:
            now.waiting.append((come, model, long))
    return tuple(
        Turn(np.sort(w), float(n / end), float(max(1.0 - (taken.sum() - mine) / end, 0.0)))
        for w, n, mine in zip(waited, wakes, taken, strict=True)
    )


def _turn(
    now: _Played, models: Sequence[TurnModel], waited: list[list[float]], wakes: Array, taken: Array
) -> None:
    """The model that has waited longest wakes, and its requests start."""
    first, model, _ = now.waiting[0]
    start = max(now.ends_s, first)
    now.awake, now.ready_s = model, start + models[model].swap_s
    mine = [(come, long) for come, other, long in now.waiting if other == model]
    now.waiting = [w for w in now.waiting if w[1] != model]
    now.ends_s = now.ready_s + max(long for _, long in mine)
    waited[model] += [now.ready_s - come for come, _ in mine]
    wakes[model] += 1.0
    taken[model] += now.ends_s - start


def _requests(models: Sequence[TurnModel], requests: int) -> tuple[Array, NDArray[np.int64], Array]:
    """When requests come, to which model, and how long each takes (log-normal), in the order of time."""
    draws = np.random.default_rng(0)
    rates = np.array([m.rate_per_s for m in models])
    at = np.cumsum(draws.exponential(1.0 / rates.sum(), requests))
    who = draws.choice(len(models), requests, p=rates / rates.sum())
    spread = np.sqrt(np.log1p(np.square([m.cv for m in models])))[who]
    middle = np.array([m.busy_s for m in models])[who]
    return at, who, middle * np.exp(spread * draws.standard_normal(requests) - 0.5 * spread**2)
