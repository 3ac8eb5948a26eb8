"""Quantiles of TTFT and TPOT beside their means, as far as a closed form reaches: Poisson arrivals, one queue.

    TTFT   P(T > x) = E_p[P(U + W > x - fixed - own(p))]; U is what is left of the pass that a request meets, evenly
           spread, where one runs (1 - e^-L with L in flight); W is 0 with probability 1 - rho, else exponential with
           the mean W / rho (exact for M/M/1, the limit of heavy traffic for any service: Kingman, 1962); own(p) is
           linear in the prompt's tokens beyond one pass.
    TPOT   a request of n further tokens sees n passes. N_i prompts ride in the i-th, Poisson of those that came in the
           pass before it: N_i ~ Poisson((t + S N_i-1) / gap), a branching process with immigration (Heathcote, 1965).
           Its mean is mu = A / S, its variance mu / (1 - rho^2). The request itself came with a pass that held prompts,
           d = 1 / (1 - rho^2) more than the mean (length-biased), so that its passes hold n mu + d c prompts,
               c = rho (1 - rho^n) / (1 - rho), and their variance is sum_i E[N_i] M_i^2 + d (d - 1) c^2,
           M_i = (1 - rho^(n-i+1)) / (1 - rho): a prompt in the i-th pass brings so many with it until the n-th. No pass
           holds more than the budget of tokens.
           The batch of the others swings around its mean with the variance b / (1 - e), e = d log TPOT / d log b
           (linear birth and death), and its mean over the request's own life with a share of that which falls with
           the length of the life. Where prompts are many (deviation below the mean), both together are a gamma
           distribution (quantiles: Wilson and Hilferty, 1931) above a floor: a pass without prompts, less two
           deviations of the batch. Where they are few the count is 0, or geometric, with their mean and variance.

The mean time per token that stands beside them leaves d c out: of few tokens under load it is too low, and a share of
99 % or more is never answered with less than the mean. Tested against simulations of the same model, within a fifth
for answers of many tokens, and within half for a few: queues up to rho = 0.85, engines up to rho = 0.85. What it cannot
know: bursts beyond Poisson, preemption when the cache is full, priorities, and closed loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.numeric import crossing
from chipwise.predict.service import Prediction
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.lengths import Lengths

VALID = "Poisson arrivals, at most 90 % of the time on prompts, no preemption; outside this range, simulate"

MOST_BUSY = 0.9
"""share of time: up to which quantiles of waits are answered. Chosen: closer to saturation a wait depends on how long
the load lasts; moves from which load on quantiles are not said."""
RARE = 0.99
"""share of requests: from which on no quantile is below the mean. Chosen: quantiles below it may lie under a mean
that few long times make; moves p99 and beyond alone."""
BLOCK = 512  # points that are looked for together
STEPS = 34  # of bisection: ten digits of the bracket


@dataclass(frozen=True)
class Tails:
    """Seconds by quantile (0.5, 0.95, ...), arrays like those of the prediction; NaN where the closed form does
    not hold (`VALID`)."""

    ttft_s: Mapping[float, Array]
    tpot_s: Mapping[float, Array]


def tails(
    p: Prediction, lengths: Lengths, shares: Sequence[float] = (0.5, 0.95, 0.99), *, at: int | None = None
) -> Tails:
    """Quantiles at every batch of a prediction for open arrivals, of rising shares: from `RARE` on none is below the
    mean.

    How the pass grows with the batch is read between neighbours on the grid, so that the batch axis needs two
    points or more; with one the swing of the batch is left out of TPOT. `at`: only for this one of them.
    """
    place = slice(None) if at is None else slice(at, at + 1)
    scale = lengths.points("prompt") / lengths.prompt_tokens
    one_pass = np.minimum(p.decode_s, p.own_s)
    own = one_pass[..., None] + (p.own_s - one_pass)[..., None] * scale
    running = -np.expm1(-p.resident)
    half = np.minimum(0.5 * running * p.tpot_s, p.wait_s)  # the mean of what is left of a pass
    left = 2.0 * half / np.maximum(running, 1e-12)
    fixed, wait = p.ttft_s - p.wait_s - p.own_s, p.wait_s - half
    # only those that are known are looked for
    known = ((p.utilisation <= MOST_BUSY) & np.isfinite(p.ttft_s))[..., place]
    # all shares at once, along an axis before those that are known
    axis = np.asarray(shares).reshape(-1, 1)

    def at_known(values: NDArray[Any]) -> NDArray[Any]:
        # prompts and outputs have their slices along one axis more
        here = values[..., place] if np.ndim(values) == np.ndim(p.ttft_s) else values[..., place, :]
        return np.asarray(here[known])

    def answer(times: Array, mean: Array, holds: NDArray[np.bool_] | bool = True) -> Mapping[float, Array]:
        found = np.full((len(axis), *np.shape(known)), np.nan)
        # brackets of a search end a rounding apart
        times = np.maximum.accumulate(times, axis=0)
        # what happens to fewer than one in a hundred may raise a mean beyond what all others see
        found[:, known] = np.where(holds, np.where(axis >= RARE, np.maximum(times, mean), times), np.nan)
        return dict(zip(shares, found, strict=True))

    ttft_s, tpot_s, decode_s = (at_known(x) for x in (p.ttft_s, p.tpot_s, p.decode_s))
    columns = (fixed, own, p.utilisation, wait, left, running)
    ttft = answer(_in_blocks(partial(ttft_quantile, axis), *(at_known(x) for x in columns)), ttft_s)
    if not np.any(tpot_s > 0):  # a single token: there is no time per further one
        return Tails(ttft, answer(np.full((len(axis), 1), np.nan), tpot_s))
    batch, floor, steady = (at_known(x) for x in _batch(p, lengths))
    added = _prompts(tpot_s - decode_s, decode_s, at_known(p.service_s), at_known(p.prompts_at_once), lengths)
    tpot = _in_blocks(partial(_together, axis), decode_s, floor, batch, *added)
    return Tails(ttft, answer(tpot, tpot_s, steady))


def _in_blocks(quantile: Callable[..., Array], *columns: Array) -> Array:
    """A quantile [share, N] of columns [N] or [N, slice]: a few at a time, which stay in the cache."""
    size = len(columns[0])
    parts = [quantile(*(c[i : i + BLOCK] for c in columns)) for i in range(0, max(size, 1), BLOCK)]
    return np.concatenate(parts, axis=-1)


def ttft_quantile(
    share: Real,
    fixed_s: Array,
    own_s: Array,
    utilisation: Array,
    wait_s: Array,
    pass_s: Array | None = None,
    met: Real = 0.0,
) -> Array:
    """The TTFT that `share` of requests do not exceed. `own_s` [..., slice] holds the request's own prompt for
    equally likely slices of prompts; `wait_s` is the mean wait at `utilisation`; a pass of `pass_s` is `met` under way
    so likely (None: never)."""
    rho = np.maximum(utilisation, 1e-12)[..., None]
    mean = np.maximum(wait_s, 1e-15)[..., None] / rho
    under_way = np.maximum(np.zeros(1) if pass_s is None else pass_s, 1e-15)[..., None]
    likely = np.asarray(met)[..., None]

    def beyond(x: Array) -> Array:
        rest = (x - fixed_s)[..., None] - own_s
        late = rho * np.exp(-np.maximum(rest, 0.0) / mean)
        alone = np.where(rest >= 0.0, late, 1.0)
        if pass_s is None:
            return np.asarray(np.mean(alone, axis=-1))
        # the mean of `alone` over what is left of the pass: those beyond it, and those who waited behind it
        inside = np.clip(rest, 0.0, under_way)
        behind = mean * (rho * np.exp(-np.maximum(rest - inside, 0.0) / mean) - late)
        found = alone + likely * ((under_way - inside + behind) / under_way - alone)
        return np.asarray(np.mean(found, axis=-1))

    # of each slice alone: its own prompt, and the wait that the share does not exceed
    waits = mean * np.maximum(np.log(rho / (1.0 - np.asarray(share)[..., None])), 0.0)
    alone = fixed_s[..., None] + own_s + waits
    longest = np.max(alone + (0.0 if pass_s is None else under_way), axis=-1)
    return _bisect(beyond, 1.0 - share, np.min(alone, axis=-1), longest)


def _batch(p: Prediction, lengths: Lengths) -> tuple[Array, Array, NDArray[np.bool_]]:
    """The variance of a request's TPOT by the batch, and the pass below which there is hardly one, for each slice of
    outputs [..., slice], and where they hold."""
    outputs = lengths.points("output")
    every = p.decode_s[..., None] + np.zeros(np.shape(outputs))
    if np.shape(p.tpot_s)[-1] < 2:
        return np.zeros_like(every), every, np.ones(np.shape(p.tpot_s), dtype=bool)
    b = np.broadcast_to(p.batch, np.shape(p.tpot_s))
    alone = _slope(p.decode_s, b)
    # a pass with prompts is longer, and more arrive in it: noise grows by 1 / (1 - rho) along the passes
    slope = alone / np.maximum(1.0 - p.utilisation, 1.0 - MOST_BUSY)  # beyond that nothing is answered
    elastic = np.clip(_slope(p.tpot_s, b) * b / np.maximum(p.tpot_s, 1e-12), 0.0, None)
    steady = elastic < MOST_BUSY
    variance = slope**2 * b / (1.0 - np.minimum(elastic, MOST_BUSY))
    life = outputs / lengths.output_tokens
    # mean over a life of u mean lives of a batch that forgets over one of them
    kept = np.where(life <= 1.0, 1.0 - life / 3.0, (life - 1.0 / 3.0) / life**2)
    found = variance[..., None] * kept
    empty = np.clip(p.decode_s - np.maximum(alone, 0.0) * b, 0.0, p.decode_s)  # a pass of nobody else
    return found, np.maximum(every - 2.0 * np.sqrt(found), empty[..., None]), steady


def _prompts(
    added_s: Array, decode_s: Array, each_s: Array, at_once: Array, lengths: Lengths
) -> tuple[Array, Array, Array]:
    """Prompts of others that ride in the passes of a request, [N, slice] of outputs: the mean and the variance of what
    they add to its TPOT, and [..., 2] what one part of a prompt adds and what they add at most. Passes take `decode_s`
    [N], to which prompts of `each_s` add `added_s` in the mean, no more than `at_once`."""
    n = np.maximum(lengths.points("output") - 1.0, 1.0)
    added, each = np.maximum(added_s, 0.0)[..., None], np.maximum(each_s, 1e-15)[..., None]
    r = np.minimum(added / np.maximum(added + decode_s[..., None], 1e-15), MOST_BUSY)
    rest, decay = 1.0 - r, r**n
    more = np.where(added > 0.0, 1.0 / (1.0 - r * r), 0.0)
    carried = r * (1.0 - decay) / rest
    steady = (n - 2.0 * carried + r * r * (1.0 - decay * decay) / (1.0 - r * r)) / rest**2
    first = (carried - 2.0 * n * r * decay + r * decay * carried) / rest**2
    squares = 1.0 + lengths.prompt_cv**2
    count = added / each * steady + more * first + np.maximum(more - 1.0, 0.0) * more * carried**2
    places = at_once[..., None]
    most = np.maximum(each * places, added)
    # who leaves finds others waiting as often as the engine works on prompts (M/G/1)
    mean = np.minimum(added + each * more * carried / n, np.maximum(r * most, added))
    # nothing that lies between 0 and the most scatters more
    variance = np.minimum((each / n) ** 2 * squares * count, mean * (most - mean))
    parts = each * np.minimum(places, 1.0) / n
    return mean, variance, np.stack([parts, np.broadcast_to(most, np.shape(parts))], axis=-1)


def _together(
    share: Real, decode_s: Array, floor: Array, batch: Array, mean_s: Array, variance: Array, one_most: Array
) -> Array:
    """The TPOT that a share of requests do not exceed, of passes of `decode_s` that scatter by the batch, and of
    prompts (`_prompts`)."""
    one_s, most_s = one_most[..., 0], one_most[..., 1]
    few = mean_s**2 <= variance
    middle = decode_s[..., None]
    deviation = np.maximum(np.sqrt(batch), 1e-12 * middle + 1e-30)
    # many: a gamma distribution, one over the square of the coefficient of variation of what is above the floor
    excess = np.maximum(middle + mean_s - floor, 1e-12 * middle + 1e-30)
    shape = excess**2 / np.maximum(np.where(few, 0.0, variance) + batch, 1e-30)
    below, width = 1.0 - 1.0 / (9.0 * shape), 3.0 * np.sqrt(shape)
    farthest = most_s + 2.0 * deviation
    # few: none, or geometric
    count = np.maximum(mean_s / one_s, 1e-30)
    ratio = variance / one_s**2 / count + count
    another = np.maximum((ratio - 1.0) / (ratio + 1.0), 0.0)
    any_ = np.minimum(count * (1.0 - another), 1.0)
    log_another = np.log(np.maximum(another, 1e-30))

    def beyond(x: Array) -> Array:
        above = x[..., None] - middle
        root = np.cbrt(np.maximum(x[..., None] - floor, 0.0) / excess)
        chance = _normal_beyond(np.where(few, above / deviation, (root - below) * width))
        whole = np.floor(np.maximum(above, 0.0) / one_s * (1.0 + 1e-9))
        more = np.where(above < most_s, np.exp(whole * log_another), 0.0)
        chance = np.where(few, any_ * more + (1.0 - any_) * chance, chance * (above < farthest))
        return np.asarray(np.mean(chance, axis=-1))

    # where each alone has fallen below the share: a few parts of prompts, twenty deviations of many, six of the batch
    rare = np.log(np.maximum(any_ / (1.0 - np.asarray(share)[..., None]), 1.0))
    parts = one_s * (1.0 + rare / np.maximum(-log_another, 1e-12))
    many = floor - middle + excess * (1.0 + 20.0 / np.sqrt(shape)) ** 3
    high = np.max(middle + np.minimum(np.where(few, parts, many), farthest) + 6.0 * deviation, axis=-1)
    return _bisect(beyond, 1.0 - share, np.broadcast_to(np.min(floor, axis=-1), np.shape(high)), high)


def _slope(values: Array, b: Array) -> Array:
    width = np.diff(b, axis=-1)
    rise = np.divide(np.diff(values, axis=-1), width, out=np.zeros(np.shape(width)), where=width > 0)
    ends = np.concatenate([rise[..., :1], rise, rise[..., -1:]], axis=-1)
    return np.asarray(0.5 * (ends[..., :-1] + ends[..., 1:]))


def _normal_beyond(z: Array) -> Array:
    """P(Z > z) of a standard normal variable, to 1e-7 (Abramowitz and Stegun, 26.2.17)."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) * series
    return np.asarray(np.where(z >= 0.0, tail, 1.0 - tail))


def _bisect(beyond: Callable[[Array], Array], share: Real, low: Array, high: Array) -> Array:
    """Where the falling function `beyond` crosses `share`: the mean over slices crosses between the first and the last
    of their own quantiles, and there is nothing to look for where all requests are alike."""
    if np.any(high > low):
        low, high = crossing(lambda x: beyond(x) > share, low, high, STEPS, BLOCK)
    return np.asarray(0.5 * (low + high))
