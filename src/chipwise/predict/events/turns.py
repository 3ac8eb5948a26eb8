"""How long requests wait for their model to wake, where models are awake by turns on one device: the engine's rule
(`run_by_turns`) over requests that come at random, each of which takes its time while its model is awake, however many
there are. With two models whose requests all take the same time the mean has a closed form, which a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.events.engine import Fleet, run_by_turns
from chipwise.predict.events.rank import Rules
from chipwise.predict.steptable import Line
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals

REQUESTS = 20_000
"""Requests that are played through. Chosen: means within some 3 %; moves which sets of models fit."""
STEPS = 1000
"""Passes of the mean request. Chosen: one waits for half a pass more than it would, 0.05 % of its time; moves how
closely times are met."""


@dataclass(frozen=True)
class TurnModel:
    """A model on a shared device: requests per second, seconds of one while it is awake and their coefficient of
    variation, and what it takes to move it in or out."""

    rate_per_s: float
    busy_s: float
    cv: float
    move_s: float


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


@dataclass(frozen=True)
class EvenPasses:
    """Passes that take as long as each other, whatever is in them."""

    seconds: float

    def prompts(self, batch: float, tokens: float, pairs: float) -> float:
        """Prompts take no time next to sequences that decode, and a pass alone."""
        return 0.0 if batch else self.seconds

    def line(self, batch: float, context: float) -> Line:
        """A pass."""
        return Line(self.seconds, 0.0, inf)


@lru_cache(maxsize=64)
def turns(models: tuple[TurnModel, ...], requests: int = REQUESTS) -> tuple[Turn, ...]:
    """What each of some models sees of taking turns, in their order."""
    at, who, passes = _requests(models, requests)
    rules = Rules(requests, requests)
    fleets = [Fleet(rules, EvenPasses(m.busy_s / STEPS)) for m in models]
    drawn = Arrivals(np.ones(requests), passes, at)
    found = run_by_turns(drawn, who, fleets, [m.move_s for m in models])
    waited, end = found.outcome.wait_s, float(at[-1])
    return tuple(
        Turn(np.sort(waited[who == i]), wakes / end, float(max(1.0 - (found.taken_s.sum() - mine) / end, 0.0)))
        for i, (wakes, mine) in enumerate(zip(found.wakes, found.taken_s, strict=True))
    )


def _requests(models: Sequence[TurnModel], requests: int) -> tuple[Array, NDArray[np.int64], Array]:
    """When requests come, to which model, and how many passes each takes (log-normal), in the order of time."""
    draws = np.random.default_rng(0)
    rates = np.array([m.rate_per_s for m in models])
    at = np.cumsum(draws.exponential(1.0 / rates.sum(), requests))
    who = draws.choice(len(models), requests, p=rates / rates.sum())
    spread = np.sqrt(np.log1p(np.square([m.cv for m in models])))[who]
    passes = STEPS * np.exp(spread * draws.standard_normal(requests) - 0.5 * spread**2)
    return at, who, np.maximum(np.rint(passes), 1.0)
