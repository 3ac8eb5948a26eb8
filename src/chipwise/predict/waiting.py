"""How long requests wait that arrive at random (Poisson) at alike replicas, each of which takes up to `batch` at once,
every `busy_s`.

A request waits for the batch in work, of which a uniform part is left, as if all replicas began theirs together (where
they begin one after another it waits less): a replica whose batches hold one request each is at work for r batch of
the time at load r. Where a batch is one request there is none to wait for but in the queue. In the queue it waits as
in one of `places = replicas batch` that become free evenly: with the probability of the load at all, then an
exponential time of the mean busy_s / (2 (1 - r) places), which is what a queue with times of service that are alike
comes to under heavy load (Kingman, 1962). The mean request so waits

    busy_s ([batch > 1] min(r batch, 1) / 2 + r / (2 (1 - r) places))

for one replica of one request the mean of Pollaczek and Khinchine, and a share p of requests at most

    busy_s ([batch > 1] min(r batch, 1) p + ln(max(r / (1 - p), 1)) / (2 (1 - r) places)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log

__all__ = ["Queue", "load_within", "replicas_within", "wait_s"]

HALVINGS = 50  # of a range in which a load, or a slowness, is looked for
SLOWEST = 1e6  # over what is predicted, that is looked at
MOST = 1 << 40  # replicas that are looked at


def wait_s(load: float, busy_s: float, batch: int, replicas: int, share: float | None = None) -> float:
    """Seconds before a request is taken up, at a part `load` of what all carry: of the mean request (`share` None), or
    what a `share` of requests waits at most; infinite from full load on."""
    if load >= 1.0:
        return inf
    left, queued = (0.5, load) if share is None else (share, log(max(load / (1.0 - share), 1.0)))
    at_work = min(load * batch, 1.0) * (batch > 1)
    return busy_s * (left * at_work + queued / (2.0 * (1.0 - load) * replicas * batch))


def load_within(
    limit_s: float, busy_s: float, batch: int, replicas: int, share: float | None = None
) -> float:
    """The highest load at which `wait_s` and `busy_s` together are at most `limit_s`; 0 where none is."""

    def keeps(load: float) -> bool:
        return busy_s + wait_s(load, busy_s, batch, replicas, share) <= limit_s

    return _largest(keeps, 1.0)


def replicas_within(
    rate_per_s: float, limit_s: float, busy_s: float, batch: int, share: float | None = None
) -> int | None:
    """The fewest replicas at which requests of a rate wait at most `limit_s`; None where no number is enough."""
    at_work = rate_per_s * busy_s / batch

    def keeps(replicas: int) -> bool:
        return wait_s(at_work / replicas, busy_s, batch, replicas, share) <= limit_s

    return _least(keeps, max(1, ceil(at_work)))


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
    low = 0.0
    if not keeps(low):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _least(keeps: Callable[[int], bool], least: int) -> int | None:
    """The smallest number from `least` on that `keeps`, where all larger ones do too; None where none does."""
    if not keeps(MOST):
        return None
    low, high = least - 1, MOST  # the former keeps nothing, the latter does
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
