"""A served workload in steady state: C clients in a closed loop, as benchmarks measure it. Plans under requests that
arrive at a rate are `predict.inference`.

Symbols: n_o output tokens, N requests in the engine, B of them decoding, t(B) a pass without a prompt, S what
one prompt adds to the passes of others, Z the time from the first token to the last, R wait and service of the
prompt. Means throughout. One implementation for a row and for a million: everything is a column [row].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.passes import Passes
from chipwise.units import Array, Real

__all__ = ["Load", "Served", "Service", "closed_loop"]

LEAVES_EARLY = 0.95  # of a mean stay: when the last finisher of many leaves its room to the next client
ROUNDS = 6  # of the fixed point; the sixth moves TPOT by under 0.1 %


@dataclass(frozen=True)
class Load:
    """What each replica of an engine is asked to do; columns [row] or numbers.

    `clients` of a closed loop; `limit` requests fit in its cache or its scheduler. `alone`: prompts run in
    passes of their own (else they ride in decode passes). `lockstep`: all requests have the same lengths, so
    that clients of an engine which runs prompts alone finish and start together.
    """

    clients: Real
    output_tokens: Real
    limit: Real
    alone: Real = 0.0
    lockstep: Real = 0.0


@dataclass(frozen=True)
class Service:
    """Fitted numbers of a serving stack and of how it was measured; columns [row] or numbers.

    | field | unit | meaning |
    |---|---|---|
    | request_s | s | HTTP, tokeniser and scheduling before the first token |
    | stream_tokens | tokens | held back before the first of them is sent (stream interval, event loop) |
    | interference | ratio | of S that others' prompts really add: prompts that wait share a pass |
    | queue | ratio | of the mean wait for a prompt server that works one at a time |
    | burst | ratio | of N S that the common start of all clients adds to the mean of a run |
    """

    request_s: Real = 0.02
    stream_tokens: Real = 1.0
    interference: Real = 1.0
    queue: Real = 1.0
    burst: Real = 0.05


@dataclass(frozen=True)
class Served:
    """Means of a load, columns [row]. `tpot_s` is Z / n_o, prompts of others included; `decode_s` is a pass
    without them. `ttft_s` = `request_s` + `prompt_s` + `wait_s` + `burst_s` + `stream_s` + `capacity_s`."""

    tpot_s: Array
    decode_s: Array
    ttft_s: Array
    prompt_s: Array
    wait_s: Array
    burst_s: Array
    stream_s: Array
    capacity_s: Array
    batch: Array
    requests_per_s: Array


def closed_loop(
    passes: Passes, load: Load, service: Service, engine: NDArray[np.intp] | None = None
) -> Served:
    """Steady state of C clients, each sending its next request when the last has ended.

    A closed queueing network: one FIFO server for prompts, service S, and decoding as a delay,
        S = chunks (t(B, chunk) - t(B))   prompts ride along;   chunks t(0, chunk)   prompts alone
        R = ((N S - Z) + sqrt((N S - Z)^2 + 4 S Z)) / 2          Schweitzer's mean-value analysis, one server
        Z = n_o t(B) + interference (N - 1) S f,  B = N Z / (R + Z),  N = min(C, limit)
    with f = B / N, the share of clients whose prompts come while one decodes; in lockstep f = 1/2, the mean
    over a wave of those that wait for the rest of it. TPOT = Z / n_o.
        TTFT = request_s + own prompt + t / 2 + queue (R - S) + burst N S + stream_tokens TPOT + capacity
    and by Little's law clients beyond the limit wait (C / N - 1) 0.95 (TTFT + Z) for room in the cache: the
    last finisher of N independent ones leaves its room 5 % early. `engine` names the row of `passes` of each
    row of `load`; by default they correspond. Ignores variance beyond the start burst.
    """
    engines = np.shape(passes.chunks if engine is None else engine)
    rows = np.broadcast_shapes(*(np.shape(x) for x in vars(load).values()), engines)
    which = np.broadcast_to(np.arange(len(passes.chunks)) if engine is None else engine, rows)
    clients, n_out = np.broadcast_to(load.clients, rows), np.broadcast_to(load.output_tokens, rows)
    n = np.maximum(np.minimum(clients, load.limit), 1e-9)
    apart = np.asarray(load.alone) > 0
    together = apart & (np.asarray(load.lockstep) > 0)
    chunks = passes.chunks[which]
    alone_s = chunks * passes.alone_s[which]
    others = np.maximum(n - 1.0, 0.0) * service.interference
    b = np.maximum(0.8 * n, 0.5)
    t = s = z = r = b
    for _ in range(ROUNDS):
        t, mixed = passes.at(b, which)
        riding = chunks * np.maximum(mixed - t, 1e-9)
        s = np.where(apart, alone_s, riding)
        z = n_out * t + others * s * np.where(together, 0.5, np.minimum(b / n, 1.0))
        r = 0.5 * ((n * s - z) + np.sqrt((n * s - z) ** 2 + 4.0 * s * z))
        b = 0.5 * b + 0.5 * n * z / (r + z)
    tpot = z / n_out
    prompt = np.where(apart, s, s + t * np.ceil(chunks)) + 0.5 * t
    wait, burst = service.queue * (r - s), service.burst * n * s
    stream = service.stream_tokens * tpot
    capacity = np.maximum(clients / n - 1.0, 0.0) * LEAVES_EARLY * (prompt + r - s + z)
    ttft = service.request_s + prompt + wait + burst + stream + capacity
    return Served(
        tpot,
        t,
        ttft,
        prompt,
        wait,
        burst,
        stream,
        capacity,
        b,
        clients / (ttft + np.maximum(n_out - 1.0, 0.0) * tpot),
    )
