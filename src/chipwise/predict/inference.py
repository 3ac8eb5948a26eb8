"""From step times to a served workload in steady state.

Symbols: b sequences decoding on one rank of one replica, n_i prompt and n_o output tokens, t(b) a decode pass,
S the time that one prompt adds to the passes it rides in, p pipeline stages, d attention replicas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.catalog.runtime import Policies
from chipwise.cost.cost import Cost
from chipwise.predict.surface import StepSurface
from chipwise.units import Array, Real
from chipwise.workload.workload import Workload

__all__ = ["Prediction", "chunk_tokens", "in_flight", "serve_steady"]


@dataclass(frozen=True)
class Prediction:
    """What a deployment does at every decode batch of its grid; arrays of shape [..., batch].

    `batch` counts decoding sequences of one replica, `concurrency` also those in prefill. `tpot_s` includes
    the share of other requests' prompts, `decode_s` does not. `cost` is the machine time of one output token
    of one request, prompts included: its shares say what bounds the throughput.
    """

    batch: Array
    concurrency: Array
    requests_per_s: Array
    tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array
    decode_s: Array
    prefill_s: Array
    cost: Cost

    def at(self, index: int) -> Prediction:
        """One grid point of a single deployment."""

        def pick(value: Real) -> Array:
            return np.asarray(value)[..., index]

        numbers = {name: pick(getattr(self, name)) for name in self.__dataclass_fields__ if name != "cost"}
        cost = Cost(
            {k: pick(v) for k, v in self.cost.exposed.items()},
            {k: pick(v) for k, v in self.cost.hidden.items()},
        )
        return Prediction(**numbers, cost=cost)


def chunk_tokens(workload: Workload, policies: Policies) -> float:
    """Prompt tokens that ride in one pass: the prompt, or the runtime's budget if that is smaller."""
    return min(workload.prompt_tokens, float(policies.max_batched_tokens))


def in_flight(workload: Workload, stages: Real) -> Real:
    """Micro-batches that a pipeline works on: one per stage, or one where a lone user waits for each token."""
    return stages * 0.0 + 1.0 if workload.task == "local" else stages


def serve_steady(
    surface: StepSurface, workload: Workload, stages: Real, replicas: Real, request_s: float
) -> Prediction:
    """Steady state of continuous batching with prompts mixed into decode passes, at every batch of the grid.

    The surface holds passes of one micro-batch without a prompt and with one chunk, at the mean context; with
    p stages p micro-batches are in flight, b = p x grid batch.

    S = (n_i / chunk) (t(b, chunk) - t(b, 0)); TPOT = t(b) + b S / (p n_o): a request decodes while the stages
    spend X S / p of their time on prompts, X = b / (n_o TPOT). A prompt waits for those before it as in an
    M/D/1 queue, W = rho S / (2 p (1 - rho)), rho = X S / p, and for half a pass; TTFT = request_s + pass / 2 +
    W + ceil(n_i / chunk) t(b) + S. Throughput = d X n_o. Means; burstiness of arrivals beyond Poisson, stream
    intervals and memory pressure are ignored.

    A local user is alone: b requests start together, p = 1 above, nobody's prompt rides along or waits:
    TPOT = t(b), TTFT = request_s + ceil(n_i / chunk) t(b) + b S, X = b / (TTFT + n_o TPOT).
    """
    n_in, n_out = workload.prompt_tokens, workload.output_tokens
    chunk = float(surface.prompts[-1])
    times = surface.total_s()[..., 0]
    decode_s = times[..., 0]
    chunks = n_in / chunk
    prefill_s = chunks * (times[..., 1] - times[..., 0])
    stages_ = np.asarray(in_flight(workload, stages), dtype=float)
    replicas_ = np.asarray(replicas, dtype=float)
    b = surface.batches * stages_
    interference = b * prefill_s / (stages_ * n_out)
    tpot_s = decode_s + interference
    rate = b / (n_out * tpot_s)
    rho = interference / tpot_s
    wait = rho * prefill_s / (2.0 * stages_ * (1.0 - rho))
    ttft_s = request_s + 0.5 * tpot_s + wait + np.ceil(chunks) * decode_s + prefill_s
    if workload.task == "local":
        tpot_s = decode_s
        ttft_s = request_s + np.ceil(chunks) * decode_s + b * prefill_s
        rate = b / (ttft_s + n_out * tpot_s)
    # Little's law: those in prefill and those that decode
    concurrency = rate * (ttft_s + n_out * tpot_s)
    per_token = _machine_time(surface, chunks, n_out, b, stages_)
    return Prediction(
        batch=b * replicas_,
        concurrency=concurrency * replicas_,
        requests_per_s=rate * replicas_,
        tokens_per_s=rate * n_out * replicas_,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        decode_s=decode_s,
        prefill_s=prefill_s,
        cost=per_token,
    )


def _machine_time(surface: StepSurface, chunks: float, n_out: float, b: Array, stages: Array) -> Cost:
    """Exposed seconds of the machine per output token: t(b) / b + S / (p n_o), by resource.

    Where more than one chunk rides in every pass, which the surface does not hold, the parts are those of a
    pass with one chunk.
    """
    cost = surface.cost
    total = surface.total_s()[..., 0]
    crowded = chunks * b > stages * n_out
    whole = total[..., 0] / b + chunks * (total[..., 1] - total[..., 0]) / (stages * n_out)
    scale = whole / total[..., 1]

    def one(value: Real) -> Array:
        plain, mixed = np.asarray(value)[..., 0, 0], np.asarray(value)[..., 1, 0]
        seconds: Array = plain / b + chunks * (mixed - plain) / (stages * n_out)
        return np.where(crowded, mixed * scale, seconds)

    return Cost({k: one(v) for k, v in cost.exposed.items()}, {k: one(v) for k, v in cost.hidden.items()})
