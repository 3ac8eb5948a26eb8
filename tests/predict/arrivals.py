"""Brute force beside the closed forms: a queue by Lindley's recursion, and an engine iteration by iteration."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from chipwise.units import Array

__all__ = ["Engine", "waits"]


def waits(arrivals_s: Array, service_s: Array, servers: int = 1) -> Array:
    """Waiting time of each request in a FIFO queue of alike servers."""
    free = np.zeros(servers)
    out = np.empty(len(arrivals_s))
    for i, (at, s) in enumerate(zip(arrivals_s, service_s, strict=True)):
        first = int(np.argmin(free))
        start = max(at, free[first])
        out[i] = start - at
        free[first] = start + s
    return out


@dataclass(frozen=True)
class Engine:
    """Works iteration by iteration: base + sequence x batch, plus up to `at_once` prompts from the head of the queue,
    which yield their first tokens when their pass ends. `room` requests are inside at a time, the others wait.
    Clients take `away_s` in the mean before the engine has their next request. While others decode it looks at the
    queue `look` passes after the last look, or when prompts have just run, and lets a queue of fewer than `fill` grow
    for `gather` passes."""

    base_s: float
    sequence_s: float
    at_once: int = 8
    room: int = 10**9
    away_s: float = 0.0
    look: int = 1
    gather: int = 0
    fill: int = 1

    def open(self, arrivals_s: Array, outputs: Array, prompt_s: Array) -> tuple[Array, Array]:
        """(TTFT, TPOT) of requests that arrive when they are told to; `outputs` count the first token."""
        return self._run([(float(at), i) for i, at in enumerate(arrivals_s)], outputs, prompt_s, clients=False)

    def closed(self, clients: int, outputs: Array, prompt_s: Array) -> tuple[Array, Array]:
        """The same of clients that each send the next request when their last has ended: requests count from then."""
        first = [(i / clients, i) for i in range(clients)]
        return self._run(first, outputs, prompt_s, clients=True)

    def _run(
        self, coming: list[tuple[float, int]], outputs: Array, prompt_s: Array, *, clients: bool
    ) -> tuple[Array, Array]:
        n = len(outputs)
        asked, first, last = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
        away = np.random.default_rng(0).exponential(self.away_s, n) if clients else np.zeros(n)
        left = np.zeros(n)
        running: list[int] = []
        queue: list[int] = []
        heapq.heapify(coming)
        now, sent, since, grown = 0.0, len(coming), self.look, 0
        while coming or queue or running:
            if not queue and not running:
                now = max(now, coming[0][0])
            while coming and coming[0][0] <= now:
                at, i = heapq.heappop(coming)
                asked[i] = at - away[i]
                queue.append(i)
            taken = max(min(self.at_once, self.room - len(running)), 0)
            looks = not running or since >= self.look
            since = 1 if looks else since + 1
            grows = bool(running) and 0 < len(queue) < self.fill and grown < self.gather
            grown = grown + 1 if grows else 0
            if grows or not looks:
                taken = 0
            heads, queue = queue[:taken], queue[taken:]
            since = self.look if heads else since
            base = self.base_s + self.sequence_s * len(running)
            now += base + float(np.sum(prompt_s[heads]))
            for i in running:
                left[i] -= 1
            for i in heads:
                first[i] = now
                left[i] = outputs[i] - 1
            done = [i for i in (*running, *heads) if left[i] <= 0]
            running = [i for i in (*running, *heads) if left[i] > 0]
            last[done] = now
            if clients:
                for _ in done:
                    if sent < n:
                        heapq.heappush(coming, (now + float(away[sent]), sent))
                        sent += 1
        return first - asked, (last - first) / np.maximum(outputs - 1, 1)
