"""Lengths of requests as distributions, and the share of prompts that a prefix cache answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from chipwise.errors import UsageError
from chipwise.units import Array
from chipwise.values import dataclass

STRATA = 64
"""Equally likely slices that a distribution is cut into: the tail beyond the last is not resolved."""

LONGEST = 1e8
MOST_SHARERS = 1e4
WIDEST = 10.0  # coefficient of variation; request logs show 0.5 to 3

Side = Literal["prompt", "output"]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Prompt and output tokens of requests: means, coefficients of variation (standard deviation over mean) and
    the correlation of both.

    A positive coefficient without points is a log-normal distribution; `prompt_points` and `output_points` are
    the mean lengths of equally likely slices of a log (`of_log`). Raises `UsageError` for values that cannot be.
    """

    prompt_tokens: float
    output_tokens: float
    prompt_cv: float = 0.0
    output_cv: float = 0.0
    correlation: float = 0.0
    prompt_points: tuple[float, ...] = ()
    output_points: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "output_tokens"):
            if not 1 <= getattr(self, name) <= LONGEST:
                raise UsageError(f"{name}: {getattr(self, name):g} is out of range", "1 to 100 million tokens")
        for name in ("prompt_cv", "output_cv"):
            if not 0 <= getattr(self, name) <= WIDEST:
                raise UsageError(
                    f"{name}: {getattr(self, name):g} is out of range", f"standard deviation over mean, 0 to {WIDEST:g}"
                )
        if not -1 <= self.correlation <= 1:
            raise UsageError(f"correlation: {self.correlation:g} is out of range", "-1 to 1")

    def longer(self, tokens: float) -> Lengths:
        """The same with so many more tokens in every prompt."""
        prompt = self.prompt_tokens + tokens
        points = tuple(p + tokens for p in self.prompt_points)
        return replace(
            self, prompt_tokens=prompt, prompt_cv=self.prompt_cv * self.prompt_tokens / prompt, prompt_points=points
        )

    @classmethod
    def of_log(cls, pairs: Iterable[tuple[float, float]]) -> Lengths:
        """The lengths of requests that ran: (prompt tokens, output tokens) of each.

        Raises `UsageError` for a log without requests or with lengths that cannot be.
        """
        table = np.array([(float(p), float(o)) for p, o in pairs], dtype=float).reshape(-1, 2)
        if not len(table):
            raise UsageError("the log holds no requests", "prompt_tokens and output_tokens of each request")
        if not bool(np.all((table >= 1) & (table <= LONGEST))):
            raise UsageError("a length of the log is out of range", "1 to 100 million tokens")
        mean, deviation = table.mean(axis=0), table.std(axis=0)
        both = float(np.prod(deviation))
        covariance = float(np.mean(np.prod(table - mean, axis=1)))
        return cls(
            float(mean[0]),
            float(mean[1]),
            float(deviation[0] / mean[0]),
            float(deviation[1] / mean[1]),
            float(np.clip(covariance / both, -1.0, 1.0)) if both > 0 else 0.0,
            _slices(table[:, 0]),
            _slices(table[:, 1]),
        )

    @property
    def equal(self) -> bool:
        """Whether all requests are of the same lengths."""
        return self.prompt_cv == 0.0 and self.output_cv == 0.0

    @property
    def prompt_square(self) -> float:
        """E[p^2]."""
        return self.prompt_tokens**2 * (1.0 + self.prompt_cv**2)

    @property
    def output_square(self) -> float:
        """E[o^2]."""
        return self.output_tokens**2 * (1.0 + self.output_cv**2)

    @property
    def product(self) -> float:
        """E[p o]."""
        spread = self.correlation * self.prompt_cv * self.output_cv
        return self.prompt_tokens * self.output_tokens * (1.0 + spread)

    @property
    def attended_prompt(self) -> float:
        """E[p^2] / E[p]: as many prompts of this length as have the mean's tokens attend to as many pairs."""
        return self.prompt_square / self.prompt_tokens

    @property
    def decoding_context(self) -> float:
        """Mean tokens that a decoding request holds: E[o p + o^2 / 2] / E[o].

        Long outputs decode for longer, so that they are met more often than they arrive (length-biased mean).
        """
        return (self.product + 0.5 * self.output_square) / self.output_tokens

    def held(self, share: float) -> float:
        """Mean tokens of cache that a running request takes up, `share` of its output included:
        E[o (p + share o)] / E[o]."""
        return (self.product + share * self.output_square) / self.output_tokens

    def points(self, side: Side) -> Array:
        """Mean lengths of `STRATA` equally likely slices, ascending; one where all are equal."""
        mean, cv, known = (getattr(self, f"{side}_{what}") for what in ("tokens", "cv", "points"))
        if known:
            return np.array(known)
        if cv == 0:
            return np.array([mean])
        sigma = float(np.sqrt(np.log1p(cv * cv)))
        normal = NormalDist()
        # the mean of a log-normal variable between two quantiles, times the number of slices
        edges = np.array([normal.inv_cdf(i / STRATA) for i in range(1, STRATA)])
        below = np.array([0.0, *(normal.cdf(z - sigma) for z in edges), 1.0])
        return np.asarray(mean * STRATA * np.diff(below))

    def quantile(self, side: Side, share: float) -> float:
        """The length that `share` of requests do not exceed; between the slices linear."""
        points = self.points(side)
        where = (np.arange(len(points)) + 0.5) / len(points)
        return float(np.interp(share, where, points))


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """`cached_share` of prompt tokens are found in the prefix cache: not worked off again, attended to all the
    same. Of them `common_tokens` begin every prompt (a system prompt), so that each rank keeps them once;
    the others are of the request's own past and take up cache like any token, or are shared by `sharers` that run
    together (beams of one search, answers to one prompt) and kept once for them.

    Raises `UsageError` for shares that cannot be.
    """

    cached_share: float = 0.0
    common_tokens: float = 0.0
    sharers: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.cached_share < 1:
            raise UsageError(f"cached share {self.cached_share:g} is out of range", "0 to below 1")
        if not 0 <= self.common_tokens <= LONGEST:
            raise UsageError(f"common tokens {self.common_tokens:g} are out of range", "0 or more")
        if not 1 <= self.sharers <= MOST_SHARERS:
            raise UsageError(f"a prompt shared by {self.sharers:g}", f"1 to {MOST_SHARERS:g}")

    def new_tokens(self, prompt_tokens: float) -> float:
        """Prompt tokens that are worked off: at least the last one."""
        return max(prompt_tokens * (1.0 - self.cached_share), 1.0)

    def common(self, prompt_tokens: float) -> float:
        """Tokens of a prompt that are kept once for all: a prefix cannot be longer than what is found."""
        return min(self.common_tokens, self.cached_share * prompt_tokens)

    def own_tokens(self, held_tokens: float, prompt_tokens: float) -> float:
        """Of the tokens that a request holds: those kept for it alone, and its part of those that it shares. Of what n
        requests share one keeps all: the others find it, 1 - 1 / n of it on average."""
        common = self.common(prompt_tokens)
        shared = min(self.cached_share, 1.0 - 1.0 / self.sharers) * prompt_tokens
        return max(held_tokens - max(common, shared), 1.0)


def _slices(values: Array) -> tuple[float, ...]:
    ordered = np.sort(values)
    if len(ordered) <= STRATA:
        return tuple(float(x) for x in ordered)
    return tuple(float(np.mean(part)) for part in np.array_split(ordered, STRATA))
