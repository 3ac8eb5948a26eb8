"""Brute force beside the closed forms: a queue by Lindley's recursion, and an engine iteration by iteration."""

from __future__ import annotations

import numpy as np

from chipwise.units import Array

__all__ = ["engine", "waits"]


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


def engine(
    arrivals_s: Array, outputs: Array, base_s: float, sequence_s: float, prompt_s: Array, at_once: int = 8
) -> tuple[Array, Array]:
    """(TTFT, TPOT) of requests in an engine that works iteration by iteration: base + sequence x batch, plus up to
    `at_once` prompts from the head of the queue, which yield their first tokens when their pass ends."""
    n = len(arrivals_s)
    first, last = np.full(n, np.nan), np.full(n, np.nan)
    left = np.zeros(n)
    running: list[int] = []
    queue: list[int] = []
    now, nxt = 0.0, 0
    while nxt < n or queue or running:
        while nxt < n and arrivals_s[nxt] <= now:
            queue.append(nxt)
            nxt += 1
        if not queue and not running:
            now = float(arrivals_s[nxt])
            continue
        heads, queue = queue[:at_once], queue[at_once:]
        now += base_s + sequence_s * len(running) + float(np.sum(prompt_s[heads]))
        done = []
        for i in running:
            left[i] -= 1
            if left[i] <= 0:
                last[i] = now
                done.append(i)
        for i in done:
            running.remove(i)
        for i in heads:
            first[i] = now
            left[i] = outputs[i]
            running.append(i)
    return first - arrivals_s, (last - first) / outputs
