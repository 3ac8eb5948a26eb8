"""What targets are held against: means of a prediction, or the percentile that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.service import Loads, Prediction
from chipwise.predict.tails import Tails, tails
from chipwise.units import Array
from chipwise.workload.workload import Workload

__all__ = ["DOUBT", "Caution", "held", "meets", "slopes", "tails_at"]


DOUBT = 2.0
"""What times are multiplied with at most, and by how much plans are made larger at most where that is not enough: what
nobody measured does not become known by renting more."""


@dataclass(frozen=True)
class Caution:
    """What times are multiplied with to hold with the probability that was asked for, columns [N] of at least 1:
    `first` TTFT, `further` TPOT, `whole` the time of a job."""

    first: Array
    further: Array
    whole: Array

    @property
    def short(self) -> NDArray[np.bool_]:
        """Whether intervals are wider than caution goes (`DOUBT`)."""
        found: NDArray[np.bool_] = np.maximum(np.maximum(self.first, self.further), self.whole) >= DOUBT
        return found

    def take(self, which: NDArray[np.intp]) -> Caution:
        """Those of some deployments."""
        return Caution(self.first[which], self.further[which], self.whole[which])


MARGIN = 0.1  # of a load: neighbours that say how times grow with it


def tails_at(loads: Loads, p: Prediction, w: Workload, shares: Sequence[float]) -> Tails:
    """Quantiles of TTFT and TPOT [N, K] of a prediction of these engines, from it and its neighbours in load."""
    shape = np.shape(p.load)
    servers = loads.engines.prompt_servers
    if servers is not None and servers.shape[1] == shape[1]:  # of each load: as many for its neighbours
        loads = replace(loads, engines=replace(loads.engines, prompt_servers=np.repeat(servers, 3, axis=1)))
    near = loads.at(
        (p.load[..., None] * (1.0 + MARGIN * np.array([-1.0, 0.0, 1.0]))).reshape(len(p.load), -1),
        by_resource=False,
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
    return Tails(
        {q: x[..., 0] for q, x in found.ttft_s.items()}, {q: x[..., 0] for q, x in found.tpot_s.items()}
    )


def held(loads: Loads, p: Prediction, w: Workload) -> tuple[Array, Array]:
    """TTFT and TPOT [N, K] that targets bound: means, or with `w.percentile` the times that this share of requests does
    not exceed (NaN where no closed form holds: `tails.VALID`)."""
    if w.percentile is None or not w.limited:
        return p.ttft_s, p.tpot_s
    found = tails_at(loads, p, w, (w.percentile,))
    further = found.tpot_s[w.percentile] if w.output_tokens > 1 else np.zeros(np.shape(p.ttft_s))
    return found.ttft_s[w.percentile], further


def meets(ttft_s: Array, tpot_s: Array, w: Workload, caution: Caution | None = None) -> NDArray[np.bool_]:
    """Where the times of `held` [N, K] keep the targets, with `caution` their upper ends; a time that is not known
    keeps none."""
    with np.errstate(invalid="ignore"):
        return np.asarray(_taken(ttft_s, tpot_s, w, caution) <= 1.0)


def _taken(ttft_s: Array, tpot_s: Array, w: Workload, caution: Caution | None) -> Array:
    """The times of `held` over their targets, of the tightest [N, K]; 0 without targets, NaN where a time is not known.
    A whole answer takes TTFT + (n_o - 1) TPOT: an upper end of percentiles."""
    if caution is not None:
        ttft_s, tpot_s = ttft_s * caution.first[:, None], tpot_s * caution.further[:, None]
    taken = np.zeros(np.shape(ttft_s))
    if w.ttft_s is not None:
        taken = ttft_s / w.ttft_s
    if w.tpot_s is not None:
        taken = np.maximum(taken, tpot_s / w.tpot_s)
    if w.e2e_s is not None:
        taken = np.maximum(taken, (ttft_s + (w.output_tokens - 1.0) * tpot_s) / w.e2e_s)
    return np.asarray(taken)


SPAN = 0.2
"""Of a logarithm: about how far times of passes are off (80 %), over which slopes are taken to either side."""


def slopes(
    rate: Array, times: tuple[Array, Array], allowed: NDArray[np.bool_], w: Workload, caution: Caution
) -> Array:
    """-d log X / d log P [N]: by how many per cent the highest rate X within the targets falls where passes take one
    per cent longer. `rate`, `times` (those of `held`) and `allowed` are of loads that rise [N, K].

    Longer passes stretch all times of a load alike and take its rate down as much: X(x) = rate(m) / e^x, m the load at
    which times are e^-x of their targets, interpolated between logarithms; here over x = +-`SPAN`. 1 where memory, a
    budget or nothing at all bounds the load: then only passes do; the more, the less times give way with the load.
    What a request waits for beside passes is taken to be short. Where no load is light enough for longer passes the
    lightest stands in for it.
    """
    rows, last = np.arange(len(rate)), np.shape(rate)[1] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        taken, log_rate = np.log(_taken(*times, w, caution)), np.log(rate)

    def highest(longer: float) -> Array:
        good = allowed & (taken <= -longer)
        here = np.argmax(np.where(good, log_rate, -np.inf), axis=1)
        there = np.minimum(here + 1, last)
        bounded = good[rows, here] & allowed[rows, there] & (taken[rows, there] > -longer)
        part = (-longer - taken[rows, here]) / (taken[rows, there] - taken[rows, here])
        more = np.maximum(log_rate[rows, there] - log_rate[rows, here], 0.0)
        return np.asarray(log_rate[rows, here] - longer + np.where(bounded, part * more, 0.0))

    with np.errstate(divide="ignore", invalid="ignore"):
        found = (highest(-SPAN) - highest(SPAN)) / (2.0 * SPAN)
    return np.asarray(np.where(np.isfinite(found), found, 1.0))
