"""What targets are held against: means of a prediction, or the percentile that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.parameter import Z80
from chipwise.predict.service import Loads, Prediction, Stretch
from chipwise.predict.tails import Tails, tails
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.workload import Workload


@dataclass(frozen=True)
class Caution:
    """How far predictions of N deployments may be off: where the 80 % interval lies and its upper end, both over what
    is predicted, which is the median, [2, N]: `first` of TTFT, `further` of TPOT, `whole` of the time of a job,
    `passes` of TPOT without the noise of single runs; and the `confidence` that was asked for. `first_by`, `further_by`
    are what the user's own runs multiply times with before anything is said of them."""

    first: Array
    further: Array
    whole: Array
    passes: Array
    confidence: float
    first_by: Array
    further_by: Array

    @classmethod
    def of(cls, first: Array, further: Array, whole: Array, confidence: float, passes: Array | None = None) -> Caution:
        """Of predictions that nothing corrects; without `passes` all of `further` is error of these."""
        one = np.ones(np.shape(first)[1])
        return cls(first, further, whole, further if passes is None else passes, confidence, one, one)

    @classmethod
    def join(cls, many: Sequence[Caution]) -> Caution:
        """Of several, one after the other, with one confidence."""
        first, further, whole, passes, first_by, further_by = (
            np.concatenate([getattr(one, name) for one in many], axis=-1)
            for name in ("first", "further", "whole", "passes", "first_by", "further_by")
        )
        return cls(first, further, whole, passes, many[0].confidence, first_by, further_by)

    @property
    def power(self) -> float:
        """How many times as far as the end of the interval the quantile lies that was asked for, as logarithms: the
        logarithm of an error is normal, with a tenth of the outcomes beyond each end."""
        return NormalDist().inv_cdf(self.confidence) / Z80

    @property
    def slower(self) -> Array:
        """What the time of a job is multiplied with to hold as surely as asked [N]."""
        return np.asarray(self.whole[1] ** self.power * self.further_by)

    def take(self, which: NDArray[np.intp]) -> Caution:
        """Those of some deployments."""
        first, further, whole, passes = (x[:, which] for x in (self.first, self.further, self.whole, self.passes))
        by = self.first_by[which], self.further_by[which]
        return Caution(first, further, whole, passes, self.confidence, *by)

    def where(self, wary: NDArray[np.bool_]) -> Caution:
        """Where not `wary`, middles taken at their word."""
        first, further, whole, passes = (
            np.where(wary, x, 1.0) for x in (self.first, self.further, self.whole, self.passes)
        )
        return replace(self, first=first, further=further, whole=whole, passes=passes)

    @property
    def longer(self) -> Array:
        """How many times as long passes take with the confidence that was asked for [N]."""
        return np.asarray(self.passes[1] ** self.power)

    def carried(self, room: Array) -> Array:
        """The probability that passes take no more than `room` times as long as predicted [N]."""
        return np.asarray(_normal(_deviations(room, *self.passes)))

    def at_rate(self, first: Array, further: Array) -> Caution:
        """The same at a given rate, where TTFT and TPOT grow with these powers [N] of the length of passes."""
        centre, end = np.log(self.passes)
        wide, stretched = end - centre, []
        for (lies, far), power in zip(np.log([self.first, self.further]), (first, further), strict=True):
            moved = lies + (power - 1.0) * centre
            away = np.sqrt(np.square(far - lies) + (np.square(power) - 1.0) * np.square(wide))
            stretched.append(np.exp(np.stack([moved, np.maximum(moved + away, 0.0)])))
        return replace(self, first=stretched[0], further=stretched[1])


MARGIN = 0.1
"""share of a load: to the neighbours that say how times grow with it. Chosen: wide enough for differences above
rounding, narrow against what a queue bends over; moves chances near saturation a little."""


LEAST_LONGER = 0.05
"""logarithm of seconds: over no less are powers of passes taken (`powers`). Chosen: above the rounding of a root, below
what any interval is wide; moves powers a little where an end is the middle."""


def longer_by(ends: Array) -> Array:
    """What passes are taken to be longer by, from the ends of their interval over their middle: these, or a little more
    where an end is the middle."""
    at = np.log(ends)
    small = np.where(at < 0.0, -LEAST_LONGER, LEAST_LONGER)
    return np.asarray(np.exp(np.where(np.abs(at) < LEAST_LONGER, small, at)))


def powers(times: Array, slowed: Array, longer: Array) -> Array:
    """With which power of the length of passes times grow at a given rate: all passes s times as long are as many
    passes at a rate s times as high, told in seconds s times as long, so that T becomes s T(s X). `slowed` are T(s X)
    for every s of `longer`. At least 1, which it is of a lone request."""
    with np.errstate(divide="ignore", invalid="ignore"):
        power = 1.0 + np.log(slowed / times) / np.log(longer)
    return np.asarray(np.where(np.isfinite(power), np.maximum(power, 1.0), 1.0))


def stretched(loads: Loads, found: Prediction, w: Workload, rate_per_s: float | None, passes: Array) -> list[Stretch]:
    """What `passes` [2, N] (`Caution.passes`) as much shorter and longer as their intervals reach do to times of
    engines at a given rate (None: none is given), beside what was `found` [N, 1], means and what targets bound
    (`held`)."""
    if rate_per_s is None:
        return [Stretch()] * len(loads.engines)
    centre, end = passes
    longer = longer_by(np.stack([centre * centre / end, end], axis=1))
    slowed = loads.open(rate_per_s * longer, by_resource=False)
    before, after = ((p.ttft_s, p.tpot_s, *held(loads, p, w)) for p in (found, slowed))
    grow = [powers(*pair, longer) for pair in zip(before, after, strict=True)]
    most, wanted = slowed.requests_per_s[:, 1], rate_per_s * longer[:, 1]
    room = np.where(most < wanted * (1.0 - 1e-6), most / rate_per_s, np.inf)
    rows = zip(*(values.tolist() for values in (*grow, room)), strict=True)
    return [Stretch((a, b), (c, d), (e, f), (g, h), far) for (a, b), (c, d), (e, f), (g, h), far in rows]


def tails_at(loads: Loads, p: Prediction, w: Workload, shares: Sequence[float]) -> Tails:
    """Quantiles of TTFT and TPOT [N, K] of a prediction of these engines, from it and its neighbours in load."""
    shape = np.shape(p.load)
    servers = loads.engines.prompt_servers
    if servers is not None and servers.shape[1] == shape[1]:  # of each load: as many for its neighbours
        loads = replace(loads, engines=replace(loads.engines, prompt_servers=np.repeat(servers, 3, axis=1)))
    near = loads.at(
        (p.load[..., None] * (1.0 + MARGIN * np.array([-1.0, 0.0, 1.0]))).reshape(len(p.load), -1), by_resource=False
    )
    middle = np.array([False, True, False])

    def beside(name: str) -> Array:
        own = np.broadcast_to(getattr(p, name), shape)[..., None]
        around = np.broadcast_to(getattr(near, name), (shape[0], shape[1] * 3)).reshape(*shape, 3)
        return np.asarray(np.where(middle, own, around))

    numbers = {f.name: beside(f.name) for f in fields(Prediction) if f.name != "cost"}
    numbers["batch"] = numbers["batch"] / loads.engines.slots[:, None, None]
    with np.errstate(invalid="ignore", over="ignore"):
        found = tails(Prediction(**numbers, cost=p.cost), w.served, shares, at=1)
    return Tails({q: x[..., 0] for q, x in found.ttft_s.items()}, {q: x[..., 0] for q, x in found.tpot_s.items()})


def held(loads: Loads, p: Prediction, w: Workload) -> tuple[Array, Array]:
    """TTFT and TPOT [N, K] that targets bound: means, or with `w.percentile` the times that this share of requests does
    not exceed (NaN where no closed form holds: `tails.VALID`)."""
    if w.percentile is None or not w.limited:
        return p.ttft_s, p.tpot_s
    found = tails_at(loads, p, w, (w.percentile,))
    further = found.tpot_s[w.percentile] if w.output_tokens > 1 else np.zeros(np.shape(p.ttft_s))
    return found.ttft_s[w.percentile], further


def meets(ttft_s: Array, tpot_s: Array, w: Workload, caution: Caution | None = None) -> NDArray[np.bool_]:
    """Where the times of `held` [N, K] keep the targets, with `caution` as surely as it asks; a time that is not known
    keeps none."""
    with np.errstate(invalid="ignore"):
        return np.asarray(taken(ttft_s, tpot_s, w, caution) <= 1.0)


def chances(ttft_s: Array, tpot_s: Array, w: Workload, caution: Caution) -> Array:
    """The probability that the least certain of the targets holds [N, K], where it is at least a half: that which is
    printed beside a plan at this load (`evidence.judge.chance`). 1 without targets, 0 where a time is not known."""
    least = np.full(np.shape(ttft_s), np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        for target, mid, end in _bounded(ttft_s, tpot_s, w, caution):
            least = np.minimum(least, _deviations(target, mid, end))
    return np.asarray(_normal(least))


def job_chances(rate: Array, due_per_s: float, caution: Caution) -> Array:
    """The probability that work at a `rate` [N] is done as fast as is `due_per_s`."""
    with np.errstate(invalid="ignore", divide="ignore"):
        room = rate / due_per_s / caution.further_by
    return np.asarray(_normal(_deviations(room, np.ones(1), caution.whole[1])))


def _deviations(limit: Real, mid: Array, end: Array) -> Array:
    """How many deviations a limit lies above the median of what has the upper end of its 80 % interval at `end`; below
    all of them where a time is not known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        room, width = np.log(limit / mid), np.log(end / mid)
        z = np.where(width > 0.0, Z80 * room / np.maximum(width, 1e-300), np.copysign(np.inf, room))
    return np.asarray(np.where(np.isnan(z), -np.inf, z))


_normal = np.vectorize(NormalDist().cdf, otypes=[float])


def _bounded(ttft_s: Array, tpot_s: Array, w: Workload, caution: Caution) -> Iterator[tuple[float, Array, Array]]:
    """Every target with the time that it bounds, its median and the upper end of its 80 % interval [N, K]. A whole
    answer takes TTFT + (n_o - 1) TPOT: of percentiles an upper end."""
    first, further = ttft_s * caution.first_by[:, None], tpot_s * caution.further_by[:, None]
    first_end, further_end = first * caution.first[1][:, None], further * caution.further[1][:, None]
    if w.ttft_s is not None:
        yield w.ttft_s, first, first_end
    if w.tpot_s is not None and w.output_tokens > 1.0:
        yield w.tpot_s, further, further_end
    if w.e2e_s is not None:
        more = w.output_tokens - 1.0
        yield w.e2e_s, first + more * further, first_end + more * further_end


def taken(ttft_s: Array, tpot_s: Array, w: Workload, caution: Caution | None = None) -> Array:
    """The times of `held` over their targets, of the tightest [N, K], with `caution` those quantiles that it asks for;
    0 without targets, NaN where a time is not known."""
    one = np.ones((2, len(ttft_s)))
    most = np.zeros(np.shape(ttft_s))
    for target, mid, end in _bounded(ttft_s, tpot_s, w, caution or Caution.of(one, one, one, EVEN)):
        late = mid if caution is None else mid * (end / np.where(mid > 0.0, mid, 1.0)) ** caution.power
        most = np.maximum(most, late / target)
    return np.asarray(most)


EVEN = 0.5
"""probability: the confidence of a middle. Exact: half of what happens lies on either side."""

SPAN = 0.2
"""logarithm of seconds: over which slopes are taken to either side. Chosen: about how far times of passes are off (80
%); moves chances of targets where a load bends within it."""


def slopes(rate: Array, times: tuple[Array, Array], allowed: NDArray[np.bool_], w: Workload, caution: Caution) -> Array:
    """-d log X / d log P [N]: by how many per cent the highest rate X within the targets falls where passes take one
    per cent longer. `rate`, `times` (those of `held`) and `allowed` are of loads that rise [N, K].

    Longer passes stretch all times of a load alike and take its rate down as much: X(x) = rate(m) / e^x, m the load at
    which times are e^-x of their targets, interpolated between logarithms; here over x = +-`SPAN`. 1 where memory, a
    budget or nothing at all bounds the load: then only passes do; the more, the less times give way with the load.
    What a request waits for beside passes is taken to be short. Where no load is light enough for longer passes the
    lightest stands in for it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        over, log_rate = np.log(taken(*times, w, caution)), np.log(rate)
        fall = _highest(log_rate, over + SPAN, allowed) - _highest(log_rate, over - SPAN, allowed)
    return np.asarray(np.where(np.isfinite(fall), 1.0 - fall / (2.0 * SPAN), 1.0))


def highest(rate: Array, over: Array, allowed: NDArray[np.bool_]) -> Array:
    """The highest rate within the targets [N], from what of them is `taken` [N, K]; that of the lightest load where
    none keeps them. Other arguments as of `slopes`; between two loads times bend upwards: the rate is rather too
    low."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.exp(_highest(np.log(rate), np.log(over), allowed)))


def _highest(log_rate: Array, over: Array, allowed: NDArray[np.bool_]) -> Array:
    """The logarithm of the highest rate [N] at which what is taken of targets (`over`, a logarithm too) is at most 0:
    between the last load that is good and the next, where targets bound it."""
    rows, last = np.arange(len(log_rate)), np.shape(log_rate)[1] - 1
    good = allowed & (over <= 0.0)
    here = np.argmax(np.where(good, log_rate, -np.inf), axis=1)
    there = np.minimum(here + 1, last)
    bounded = good[rows, here] & allowed[rows, there] & (over[rows, there] > 0.0)
    part = -over[rows, here] / (over[rows, there] - over[rows, here])
    more = np.maximum(log_rate[rows, there] - log_rate[rows, here], 0.0)
    return np.asarray(log_rate[rows, here] + np.where(bounded & np.isfinite(part), part * more, 0.0))
