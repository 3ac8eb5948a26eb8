"""Replicas that follow the load: how many take requests, when, and how long they are paid for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil, inf
from typing import Protocol

from chipwise.predict.events.rank import Rank
from chipwise.values import dataclass

EVERY_S = 15.0
"""seconds: between two looks at the load. Source: Kubernetes, horizontal-pod-autoscaler-sync-period, default 15 s."""
HOLD_S = 300.0
"""seconds: for which fewer replicas must have been enough before some are given back. Source: Kubernetes, HPA behavior,
scaleDown.stabilizationWindowSeconds, default 300 s."""


class Clocked(Protocol):
    """An engine of a replica: its ranks, when its last pass began or ended, and when its next event is due."""

    ranks: Sequence[Rank]
    start: float
    end: float


@dataclass(frozen=True)
class Scaling:
    """Every `every_s` as many replicas are wanted as hold the requests in flight at `target` each, from `least` to
    `most`. A new one takes requests `start_s` after it is wanted; one goes where fewer were wanted throughout `hold_s`:
    it takes no more requests, and is paid for until its last one ends. `least` are there at the first arrival,
    or all that there can be where it was `busy` before. From each second of the `clock`, counted from the first
    arrival, to the next there are no fewer than its replicas: they are asked for as early as they take to start."""

    target: float
    most: int
    start_s: float
    least: int = 1
    every_s: float = EVERY_S
    hold_s: float = HOLD_S
    busy: bool = False
    clock: tuple[tuple[float, int], ...] = ()

    def floor(self, since: float, until: float) -> int:
        """The most replicas that there are at least at any second from `since` to `until` after the first arrival."""
        if not self.clock:
            return self.least
        ends = (*(start for start, _ in self.clock[1:]), inf)
        wanted = (n for (start, n), end in zip(self.clock, ends, strict=True) if start <= until and since < end)
        return max((self.least, *wanted))


@dataclass(frozen=True)
class ScalingGiven:
    """What is said of a policy; what is None is looked for, or follows from the deployment."""

    target: float | None = None
    least: int | None = None
    start_s: float | None = None
    every_s: float = EVERY_S
    hold_s: float = HOLD_S


class Scaler:
    """The replicas of a run under a policy. `live` are the ranks that take requests; `replicas` lists the engines of
    each replica that there can be; `next_s` is when to wake it, `started` counts replicas that were started."""

    def __init__(self, policy: Scaling, replicas: Sequence[Sequence[Clocked]], start: float) -> None:
        self.policy, self.replicas, self._began = policy, replicas, start
        self.started, self._spent_s, self._looks_s = 0, 0.0, start + policy.every_s
        first = len(replicas) if policy.busy else policy.floor(0.0, 0.0)
        self._since = [start if i < first else inf for i in range(len(replicas))]
        """When each that takes requests or starts was asked for; infinite: it is not there."""
        self._ready = list(self._since)
        self._ending: dict[int, tuple[float, float]] = {}
        """Of those that take no more requests: since when they are paid for, and when that was decided."""
        self._wanted: deque[tuple[float, int]] = deque()
        self.live: list[Rank] = []
        self._settle(start)

    @property
    def count(self) -> int:
        """Replicas that take requests, or start."""
        return sum(since < inf for since in self._since)

    def wake(self, in_flight: int) -> None:
        """Look at the load where it is time, and let replicas that are ready take requests."""
        now, policy = self.next_s, self.policy
        if now >= self._looks_s:
            self._looks_s = now + policy.every_s
            passed = now - self._began
            least = policy.floor(passed, passed + policy.start_s + policy.every_s)
            want = min(max(ceil(in_flight / policy.target), least), policy.most)
            self._wanted.append((now, want))
            while self._wanted[0][0] < now - policy.hold_s:
                self._wanted.popleft()
            for _ in range(want - self.count):
                self._start(now)
            for _ in range(self.count - max(wanted for _, wanted in self._wanted)):
                self._stop(now)
        self._settle(now)

    def _start(self, now: float) -> None:
        free = (i for i, since in enumerate(self._since) if since == inf)
        chosen = min(free, key=lambda i: i in self._ending)
        self._end(chosen, now)
        self._since[chosen], self._ready[chosen] = now, now + self.policy.start_s
        self.started += 1

    def _stop(self, now: float) -> None:
        there = (i for i, since in enumerate(self._since) if since < inf)
        last = max(there, key=lambda i: (self._ready[i], i))
        self._ending[last] = self._since[last], now
        self._since[last] = self._ready[last] = inf

    def _end(self, which: int, end: float) -> None:
        """One that takes no more requests is paid for no longer."""
        if which in self._ending:
            self._spent_s += end - self._ending.pop(which)[0]

    def _settle(self, now: float) -> None:
        for i in list(self._ending):
            if all(clock.end == inf for clock in self.replicas[i]):
                self._end(i, max(self._ending[i][1], *(clock.start for clock in self.replicas[i])))
        coming = min((ready for ready in self._ready if now < ready < inf), default=inf)
        self.next_s = min(self._looks_s, coming)
        self.live[:] = [
            rank
            for clocks, ready in zip(self.replicas, self._ready, strict=True)
            if ready <= now
            for clock in clocks
            for rank in clock.ranks
        ]

    def paid_s(self, end: float) -> float:
        """Seconds that replicas are paid for, over all, in a run that ends then."""
        self._settle(end)
        ending = sum(end - since for since, _ in self._ending.values())
        return self._spent_s + ending + sum(end - since for since in self._since if since < inf)
