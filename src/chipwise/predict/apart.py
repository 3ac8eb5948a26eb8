"""Plans with prompts in one pool of workers and decoding in another, on the batch grid of the decode pool.

Arrivals at a rate, every batch at once, for the search; `predict.disaggregated` answers measured rows instead, which
are so many clients in a closed loop.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chipwise.catalog.runtime import Policies
from chipwise.cost.cost import Cost
from chipwise.predict.inference import Prediction, chunk_tokens
from chipwise.predict.queues import shared_wait_s
from chipwise.predict.serving import Service
from chipwise.predict.surface import StepSurface
from chipwise.units import Array, Real
from chipwise.workload.lengths import Lengths, PrefixCache
from chipwise.workload.step import Step, prefill
from chipwise.workload.workload import Workload

__all__ = ["prompt_alone", "serve_apart"]

BUSY = (
    0.8  # share of time that prompt servers should work: the wait is then about twice the prompt's own time
)


def prompt_alone(
    cost_of: Callable[[Step], Cost],
    workload: Workload,
    policies: Policies,
    *,
    lengths: Lengths | None = None,
    prefix: PrefixCache | None = None,
) -> Cost:
    """One mean prompt in passes of its own, shaped like the steps of `cost_of`."""
    given, cache = lengths or Lengths(workload.prompt_tokens, workload.output_tokens), prefix or PrefixCache()
    chunk, long = chunk_tokens(workload, policies, prefix), given.attended_prompt
    new = cache.new_tokens(long)
    return cost_of(prefill(chunk / new, new, long - new)) * (cache.new_tokens(given.prompt_tokens) / chunk)


def serve_apart(
    decode: StepSurface,
    prompt: Cost,
    transfer_s: Real,
    workload: Workload,
    prefill_servers: Real,
    decode_servers: Real,
    service: Service,
    *,
    lengths: Lengths | None = None,
) -> Prediction:
    """Steady state at every decode batch of one decode server; figures are of both pools together.

    Servers are ranks that work on requests of their own: workers x attention replicas (x stages in flight).
    TPOT = t(b); X = b decode_servers / (n_o t(b)); prompts of `prompt` seconds S wait for `prefill_servers` at
    u = X S / servers (`shared_wait_s`). TTFT = request_s + wait + S + transfer + t / 2 + stream_tokens TPOT.
    `utilisation` and `budget_share` are u: from 1 on prompts do not keep up and TTFT is infinite.
    `cost` is machine time per token, of a decode server and of a prompt server.
    """
    times = decode.total_s()[..., 0]
    decode_s = times[..., 0]
    servers, prompts = (np.asarray(x, dtype=float) for x in (decode_servers, prefill_servers))
    b, n_out = decode.batches, workload.output_tokens
    rate = b * servers / (n_out * decode_s)
    # the one value of trailing axes that prompts do not have
    own = np.asarray(prompt.total_s)
    own = own[..., 0, 0] if own.ndim >= 2 else own
    u = rate * own / prompts
    wait = shared_wait_s(own, prompts, u, 1.0 + (lengths.prompt_cv**2 if lengths else 0.0))
    ttft = service.request_s + wait + own + transfer_s + 0.5 * decode_s + service.stream_tokens * decode_s
    decoding = Cost({k: np.asarray(v)[..., 0, 0] / b for k, v in decode.cost.exposed.items()})

    def flat(value: Real) -> Array:
        found = np.asarray(value)
        return np.asarray(found[..., 0, 0] if found.ndim >= 2 else found)

    prompting = Cost({k: flat(v) / n_out for k, v in prompt.exposed.items()})
    shape = np.broadcast_shapes(np.shape(ttft), np.shape(u))
    return Prediction(
        batch=np.broadcast_to(b * servers, shape),
        concurrency=rate * (ttft + n_out * decode_s),
        requests_per_s=rate,
        tokens_per_s=rate * n_out,
        ttft_s=ttft,
        tpot_s=decode_s,
        decode_s=decode_s,
        prefill_s=np.broadcast_to(own, shape),
        utilisation=u,
        wait_s=wait,
        own_s=np.broadcast_to(own, shape),
        service_s=np.broadcast_to(own / prompts, shape),
        budget_share=u,
        cost=decoding + prompting,
    )
