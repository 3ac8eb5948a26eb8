"""Quantiles of TTFT and TPOT beside their means, as far as a closed form reaches: Poisson arrivals, one queue.

    TTFT   P(T > x) = E_p[P(W > x - fixed - own(p))]; fixed includes half a pass; W is 0 with probability 1 - rho,
           else exponential with the mean W / rho (exact for M/M/1, the limit of heavy traffic for any service:
           Kingman, 1962); own(p) is linear in the prompt's tokens beyond one pass.
    TPOT   P(T > x) = E_o[P(gamma > x - floor)] with mean TPOT and variance prompts + batch: prompts of others
           that fall into a request of o tokens are Poisson, TPOT rho E[S^2] / (E[S] o (1 - rho)^2); the batch of
           the others swings around its mean with the variance b / (1 - e), e = d log TPOT / d log b (linear birth
           and death), and its mean over the request's own life with a share of that which falls with the length
           of the life. The floor is a pass without prompts, less two deviations of the batch. Quantiles of the
           gamma distribution: Wilson and Hilferty, 1931.

Tested against simulations of the same model, within a fifth: queues up to rho = 0.85, engines up to rho = 0.5. What
it cannot know: bursts beyond Poisson, preemption when the cache is full, priorities, and closed loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.service import Prediction
from chipwise.units import Array, Real
from chipwise.workload.lengths import Lengths

__all__ = ["VALID", "Tails", "tails", "ttft_quantile"]

VALID = "Poisson arrivals, at most 90 % of the time on prompts, no preemption; else only a simulation can say"

MOST_BUSY = 0.9
STEPS = 50  # of bisection: 15 digits of the bracket


@dataclass(frozen=True)
class Tails:
    """Seconds by quantile (0.5, 0.95, ...), arrays like those of the prediction; NaN where the closed form does
    not hold (`VALID`)."""

    ttft_s: Mapping[float, Array]
    tpot_s: Mapping[float, Array]


def tails(
    p: Prediction, lengths: Lengths, shares: Sequence[float] = (0.5, 0.95, 0.99), *, at: int | None = None
) -> Tails:
    """Quantiles at every batch of a prediction for open arrivals.

    How the pass grows with the batch is read between neighbours on the grid, so that the batch axis needs two
    points or more; with one the swing of the batch is left out of TPOT. `at`: only for this one of them.
    """
    place = slice(None) if at is None else slice(at, at + 1)
    scale = lengths.points("prompt") / lengths.prompt_tokens
    one_pass = np.minimum(p.decode_s, p.own_s)
    own = one_pass[..., None] + (p.own_s - one_pass)[..., None] * scale
    # the pass that runs when a request arrives is nearly always there: the mean of what is left of it
    half = np.minimum(-0.5 * np.expm1(-p.resident) * p.tpot_s, p.wait_s)
    fixed, wait = p.ttft_s - p.wait_s - p.own_s + half, p.wait_s - half
    known = (p.utilisation <= MOST_BUSY)[..., place]
    nan = float("nan")
    # all shares at once, along an axis before those of the prediction
    axis = np.asarray(shares).reshape(-1, *(1 for _ in np.shape(p.tpot_s)))
    here = (x[..., place] for x in (fixed, p.utilisation, wait, p.tpot_s, p.decode_s))
    fixed, busy, wait, tpot_s, decode_s = here
    ttft = np.where(known, ttft_quantile(axis, fixed, own[..., place, :], busy, wait), nan)
    if not np.any(tpot_s > 0):  # a single token: there is no time per further one
        never = np.full(np.shape(ttft), nan)
        return Tails(dict(zip(shares, ttft, strict=True)), dict(zip(shares, never, strict=True)))
    prompts, batch, steady = _tpot_variances(p, lengths)
    prompts, batch, steady = prompts[..., place, :], batch[..., place, :], steady[..., place]
    tpot = np.where(known & steady, _gamma(axis, tpot_s, decode_s, prompts, batch), nan)
    return Tails(dict(zip(shares, ttft, strict=True)), dict(zip(shares, tpot, strict=True)))


def ttft_quantile(share: Real, fixed_s: Array, own_s: Array, utilisation: Array, wait_s: Array) -> Array:
    """The TTFT that `share` of requests do not exceed. `own_s` [..., slice] holds the request's own prompt for
    equally likely slices of prompts; `wait_s` is the mean wait at `utilisation`."""
    rho = np.maximum(utilisation, 1e-12)[..., None]
    mean = np.maximum(wait_s, 1e-15)[..., None] / rho

    def beyond(x: Array) -> Array:
        rest = (x - fixed_s)[..., None] - own_s
        waited = np.where(rest >= 0, rho * np.exp(-np.maximum(rest, 0.0) / mean), 1.0)
        return np.asarray(np.mean(waited, axis=-1))

    # of each slice alone: its own prompt, and the wait that the share does not exceed
    waits = mean * np.maximum(np.log(rho / (1.0 - np.asarray(share)[..., None])), 0.0)
    alone = fixed_s[..., None] + own_s + waits
    return _bisect(beyond, 1.0 - share, np.min(alone, axis=-1), np.max(alone, axis=-1))


def _tpot_variances(p: Prediction, lengths: Lengths) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Variances of a request's TPOT by others' prompts and by the batch, for each slice of outputs [..., slice],
    and where they hold."""
    outputs = lengths.points("output")
    squares = 1.0 + lengths.prompt_cv**2
    # a pass with prompts is longer, and more arrive in it: noise grows by 1 / (1 - rho) along the passes
    rest = np.maximum(1.0 - p.utilisation, 1.0 - MOST_BUSY)  # beyond that nothing is answered
    noise = p.tpot_s * p.utilisation * p.service_s * squares / rest**2
    prompts = noise[..., None] / outputs
    if np.shape(p.tpot_s)[-1] < 2:
        return prompts, np.zeros_like(prompts), np.ones(np.shape(p.tpot_s), dtype=bool)
    b = np.broadcast_to(p.batch, np.shape(p.tpot_s))
    slope = _slope(p.decode_s, b) / rest
    elastic = np.clip(_slope(p.tpot_s, b) * b / np.maximum(p.tpot_s, 1e-12), 0.0, None)
    steady = elastic < MOST_BUSY
    variance = slope**2 * b / (1.0 - np.minimum(elastic, MOST_BUSY))
    life = outputs / lengths.output_tokens
    # mean over a life of u mean lives of a batch that forgets over one of them
    kept = np.where(life <= 1.0, 1.0 - life / 3.0, (life - 1.0 / 3.0) / life**2)
    return prompts, variance[..., None] * kept, steady


def _slope(values: Array, b: Array) -> Array:
    width = np.diff(b, axis=-1)
    rise = np.divide(np.diff(values, axis=-1), width, out=np.zeros(np.shape(width)), where=width > 0)
    ends = np.concatenate([rise[..., :1], rise, rise[..., -1:]], axis=-1)
    return np.asarray(0.5 * (ends[..., :-1] + ends[..., 1:]))


def _gamma(share: Real, mean: Array, decode_s: Array, prompts: Array, batch: Array) -> Array:
    floor = np.minimum(decode_s[..., None] - 2.0 * np.sqrt(batch), mean[..., None] * (1.0 - 1e-9))
    excess = mean[..., None] - floor
    # one over the square of the coefficient of variation of what is above the floor
    shape = excess**2 / np.maximum(prompts + batch, 1e-30)

    def beyond(x: Array) -> Array:
        over = np.maximum(x[..., None] - floor, 0.0) / excess
        z = (np.cbrt(over) - 1.0 + 1.0 / (9.0 * shape)) * 3.0 * np.sqrt(shape)
        return np.asarray(np.mean(_normal_beyond(z), axis=-1))

    # of each slice alone
    z = np.reshape([NormalDist().inv_cdf(float(q)) for q in np.ravel(share)], np.shape(share))[..., None]
    root = 1.0 - 1.0 / (9.0 * shape) + z / (3.0 * np.sqrt(shape))
    alone = floor + excess * np.maximum(root, 0.0) ** 3
    low = np.min(np.where(root > 0.0, alone, np.min(floor, axis=-1, keepdims=True)), axis=-1)
    return _bisect(beyond, 1.0 - share, low, np.max(alone, axis=-1))


def _normal_beyond(z: Array) -> Array:
    """P(Z > z) of a standard normal variable, to 1e-7 (Abramowitz and Stegun, 26.2.17)."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * series
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail))


def _bisect(beyond: Callable[[Array], Array], share: Real, low: Array, high: Array) -> Array:
    """Where the falling function `beyond` crosses `share`: the mean over slices crosses between the first and the last
    of their own quantiles, and there is nothing to look for where all requests are alike."""
    for _ in range(STEPS if np.any(high > low) else 0):
        middle = 0.5 * (low + high)
        above = beyond(middle) > share
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(0.5 * (low + high))
