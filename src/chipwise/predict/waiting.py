"""How long requests wait that arrive at random (Poisson) at alike replicas, each of which takes up to `batch` at once,
every `busy_s`.

With k replicas at load r, all are at work for a part c = min(r batch, 1)^(sqrt(2 (k + 1)) - 1) of the time (Sakasegawa,
1977; r batch: a replica whose batches hold one request each). A request that comes then waits for the first batch to
end. Batches end independently of each other: of each a uniform part is left, so that more than x is left of all of
them with probability (1 - x / busy_s)^k, busy_s / (k + 1) in the mean. Where many come, the batch of a replica that
follows the one before it closely holds few, and those that find the other full wait on: they wait as if there were
f replicas,

    f + 1 = (k + 1) (1 - r^2 (1 - 1 / sqrt(k)))

whose form was chosen by queues that were played through, of batches whose times scatter by 5 to 15 %. Where batches
take the same time to the percent they come to end together at high load, and requests wait up to busy_s / 2. Where a
batch is one request there is none to wait for but in the queue. In the queue it waits as in one of n = k batch places
that become free evenly: with the probability r^(sqrt(2 (n + 1)) - 1) at all, then an exponential time of the mean
busy_s / (2 (1 - r) n), what a queue with times of service that are alike comes to (Sakasegawa, 1977; for one replica
of one request the mean of Pollaczek and Khinchine). The mean request so waits

    busy_s ([batch > 1] c / (f + 1) + r^(sqrt(2 (n + 1)) - 1) / (2 (1 - r) n))

and a share p of requests at most the p-quantiles of both together, which is more than that of their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, log, sqrt

import numpy as np

from chipwise.numeric import root
from chipwise.units import Real
from chipwise.values import dataclass

HALVINGS = 50  # of a range in which a load, or a slowness, is looked for
SLOWEST = 1e6
"""ratio: to what is predicted, up to which slower devices are looked at. Exact: a bound above any answer."""
MOST = 1 << 40  # replicas that are looked at


def wait_s(load: float, busy_s: float, batch: int, replicas: int, share: float | None = None) -> float:
    """Seconds before a request is taken up, at a part `load` of what all carry: of the mean request (`share` None), or
    what a `share` of requests waits at most; infinite from full load on."""
    if load >= 1.0:
        return inf
    ended = 0.0
    if batch > 1:
        at_work = float(all_at_work(min(load * batch, 1.0), replicas))
        first = (replicas + 1.0) * (1.0 - load**2 * (1.0 - 1.0 / sqrt(replicas)))
        ended = at_work / first if share is None else _exceeded(at_work, share, first - 1.0)
    places = replicas * batch
    queued = float(all_at_work(load, places))
    if share is not None:
        queued = log(max(queued / (1.0 - share), 1.0))
    return busy_s * (ended + queued / (2.0 * (1.0 - load) * places))


def all_at_work(load: Real, places: Real) -> Real:
    """The part of the time for which all of so many alike places are at work: u^(sqrt(2 (c + 1)) - 1).

    Source: Sakasegawa, "An approximation formula for L_q = alpha rho^beta / (1 - rho)", 1977; exact for one place.
    """
    found: Real = load ** (np.sqrt(2.0 * (places + 1.0)) - 1.0)
    return found


def _exceeded(at_work: float, share: float, replicas: float) -> float:
    """What is left, of a batch, of the first of `replicas` to end in a `share` of cases at most, where so often all are
    `at_work` and else none is waited for."""
    longer = (1.0 - share) / at_work if at_work > 0.0 else 1.0
    return 0.0 if longer >= 1.0 else 1.0 - float(longer ** (1.0 / replicas))


def load_within(limit_s: float, busy_s: float, batch: int, replicas: int, share: float | None = None) -> float:
    """The highest load at which `wait_s` and `busy_s` together are at most `limit_s`; 0 where none is."""

    def keeps(load: float) -> bool:
        return busy_s + wait_s(load, busy_s, batch, replicas, share) <= limit_s

    return _largest(keeps, 1.0)


def replicas_within(
    rate_per_s: float, limit_s: float, busy_s: float, batch: int, share: float | None = None
) -> int | None:
    """The fewest replicas at which requests of a rate wait at most `limit_s`; None where no number is enough."""
    at_work = rate_per_s * busy_s / batch

    def short(replicas: int) -> bool:
        return wait_s(at_work / replicas, busy_s, batch, replicas, share) > limit_s

    return None if short(MOST) else int(root(lambda n: short(int(n)), max(0, ceil(at_work) - 1), MOST)[1])


@dataclass(frozen=True)
class Queue:
    """Requests of a rate before `replicas` that each take up to `batch` in `busy_s` and answer them in `latency_s`."""

    rate_per_s: float
    latency_s: float
    busy_s: float
    batch: int
    replicas: int

    def load(self, slower: float = 1.0) -> float:
        """The part that the rate takes of what all carry, where they are so many times `slower`."""
        return self.rate_per_s * self.busy_s * slower / (self.batch * self.replicas)

    def waits_s(self, share: float | None = None, slower: float = 1.0) -> float:
        """`wait_s` at that load."""
        return wait_s(self.load(slower), self.busy_s * slower, self.batch, self.replicas, share)

    def answered_s(self, share: float | None = None, slower: float = 1.0) -> float:
        """Seconds from arrival to answer, of the mean request or what a `share` takes at most."""
        return self.latency_s * slower + self.waits_s(share, slower)

    def slowest(self, limit_s: float, share: float | None = None) -> float:
        """How many times slower replicas may be for `answered_s` to be within a limit; 0 where none is slow enough."""
        return _largest(lambda slower: self.answered_s(share, slower) <= limit_s, SLOWEST)


def _largest(keeps: Callable[[float], bool], high: float) -> float:
    """The largest number up to `high` that `keeps`, where all smaller ones do too; 0 where none does."""
    return float(root(lambda x: keeps(float(x)), 0.0, high, HALVINGS)[0]) if keeps(0.0) else 0.0
