"""Prompts in one pool of workers, decoding in another, the cache of each request sent between them: clients in a
closed loop, as served workloads are measured. Plans under arrivals are `predict.apart`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.predict.passes import Passes
from chipwise.predict.serving import LEAVES_EARLY, ROUNDS, Served, Service
from chipwise.units import Real

__all__ = ["Pools", "disaggregated", "transfer_s"]


@dataclass(frozen=True)
class Pools:
    """Two pools under C clients; columns [row] or numbers.

    `prefill_servers` and `decode_servers` count ranks that work on requests of their own: workers x attention
    replicas. `limit` requests fit in each decode server; `transfer_s` sends the cache of one request.
    """

    clients: Real
    output_tokens: Real
    prefill_servers: Real
    decode_servers: Real
    limit: Real
    transfer_s: Real = 0.0


def transfer_s(cache_bytes: Real, senders: Real, receivers: Real, bytes_per_s: Real, share: Real) -> Real:
    """Seconds to send the cache of a request: every device of the smaller side moves its part at `share` of its
    own port. Ignores overlap with later layers of the prompt."""
    seconds: Real = cache_bytes / (np.minimum(senders, receivers) * share * bytes_per_s)
    return seconds


def disaggregated(prefill: Passes, decode: Passes, pools: Pools, service: Service) -> Served:
    """Steady state of C clients over two pools (rows of both tables correspond).

    Prompts queue for prefill_servers alike servers, taken as one of service S = T / servers; decoding passes
    carry no prompts: TPOT = t(B), B = C Z / (R + T - S + X + Z) / decode_servers, X the transfer.
        TTFT = request_s + T' + X + queue (R - S) + burst N S + stream_tokens TPOT + capacity
    A prompt takes T where all attention replicas of its worker have one and T0 where the others lend their
    experts: T' = T0 + (T - T0) u, u = min(1, X S) the share of time that servers are busy, X the rate.
    """
    which = np.arange(len(decode.chunks))
    clients, n_out, servers = (
        np.broadcast_to(np.asarray(x, dtype=float), which.shape)
        for x in (pools.clients, pools.output_tokens, pools.decode_servers)
    )
    own = prefill.chunks * prefill.alone_s
    s = own / pools.prefill_servers
    room = np.maximum(pools.limit * servers, 1e-9)
    n = np.minimum(clients, room)
    b = np.maximum(0.8 * n / servers, 0.5)
    t = z = r = b
    for _ in range(ROUNDS):
        t, _ = decode.at(b, which)
        z = n_out * t
        away = z + own - s + pools.transfer_s
        r = 0.5 * ((n * s - away) + np.sqrt((n * s - away) ** 2 + 4.0 * s * away))
        b = 0.5 * b + 0.5 * n / servers * z / (r + away)
    lone = own if prefill.lone_s is None else prefill.chunks * prefill.lone_s
    busy = np.minimum(n * s / (r + away), 1.0)
    prompt = lone + (own - lone) * busy + pools.transfer_s + 0.5 * t
    wait, burst, stream = service.queue * (r - s), service.burst * n * s, service.stream_tokens * t
    capacity = np.maximum(clients / n - 1.0, 0.0) * LEAVES_EARLY * (prompt + r - s + z)
    ttft = service.request_s + prompt + wait + burst + stream + capacity
    rate = clients / (ttft + np.maximum(n_out - 1.0, 0.0) * t)
    return Served(t, t, ttft, prompt, wait, burst, stream, capacity, b, rate)
