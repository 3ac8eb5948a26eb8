"""From step times to a served workload in steady state.

Symbols: b sequences decoding on one rank of one replica, n_i prompt tokens that are worked off and n_o output
tokens, t(b) a decode pass, S the time that one prompt adds to the passes it rides in, p pipeline stages, d
attention replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.runtime import Policies
from chipwise.cost.cost import Cost
from chipwise.predict.queues import shared_wait_s
from chipwise.predict.serving import Service
from chipwise.predict.speculative import Speculation, verification
from chipwise.predict.surface import StepSurface
from chipwise.units import Array, Real
from chipwise.workload.lengths import Lengths, PrefixCache
from chipwise.workload.step import Step, decode, prefill
from chipwise.workload.workload import Workload

__all__ = ["Prediction", "chunk_tokens", "in_flight", "picked", "serve_steady", "served_surface"]


@dataclass(frozen=True)
class Prediction:
    """What a deployment does at every decode batch of its grid; arrays of shape [..., batch].

    `batch` counts decoding sequences of one replica, `concurrency` also those in prefill. `tpot_s` includes
    the share of other requests' prompts, `decode_s` does not. `cost` is the machine time of one output token
    of one request, prompts included: its shares say what bounds the throughput.

    `utilisation` is the share of time that passes spend on prompts, `wait_s` the part of `ttft_s` spent waiting
    for others' prompts, `own_s` that of the request's own prompt, and `service_s` what a prompt takes at one stage.
    `budget_share` are the tokens of a mean pass over the runtime's budget: above 1 the
    batch cannot be sustained.
    """

    batch: Array
    concurrency: Array
    requests_per_s: Array
    tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array
    decode_s: Array
    prefill_s: Array
    utilisation: Array
    wait_s: Array
    own_s: Array
    service_s: Array
    budget_share: Array
    cost: Cost

    def at(self, row: int, column: int) -> Prediction:
        """One deployment at one batch of the grid; a single number each."""
        return self._each(lambda values: np.asarray(values[row, column]))

    def _each(self, pick: Callable[[Array], Array]) -> Prediction:
        shape = np.shape(self.ttft_s)

        def whole(value: Real) -> Array:
            return pick(np.broadcast_to(np.asarray(value, dtype=float), shape))

        numbers = {n: whole(getattr(self, n)) for n in self.__dataclass_fields__ if n != "cost"}
        exposed = {k: whole(v) for k, v in self.cost.exposed.items()}
        hidden = {k: whole(v) for k, v in self.cost.hidden.items()}
        return Prediction(**numbers, cost=Cost(exposed, hidden))


def picked(prediction: Prediction, columns: NDArray[np.intp]) -> Prediction:
    """Some batches of every deployment: `columns` [N, k] of a prediction [N, batch]."""
    return prediction._each(lambda values: np.take_along_axis(values, columns, axis=-1))


def chunk_tokens(workload: Workload, policies: Policies, prefix: PrefixCache | None = None) -> float:
    """Prompt tokens that ride in one pass: those of the prompt that are not in the prefix cache, or the
    runtime's budget if that is smaller."""
    new = prefix.new_tokens(workload.prompt_tokens) if prefix else workload.prompt_tokens
    return min(new, float(policies.max_batched_tokens))


def in_flight(workload: Workload, stages: Real) -> Real:
    """Micro-batches that a pipeline works on: one per stage, or one where a lone user waits for each token."""
    return stages * 0.0 + 1.0 if workload.task == "local" else stages


def served_surface(
    cost_of: Callable[[Step], Cost],
    batches: Array,
    workload: Workload,
    policies: Policies,
    *,
    lengths: Lengths | None = None,
    prefix: PrefixCache | None = None,
    speculation: Speculation | None = None,
    draft_of: Callable[[Step], Cost] | None = None,
) -> StepSurface:
    """Passes of `batches` decoding sequences without a prompt and with one chunk; what `serve_steady` reads.

    `cost_of` prices steps whose numbers have three trailing axes (batch, prompt, context). Sequences hold the
    mean context of decoding, prompts of spread lengths attend as their second moment says (`Lengths`). Tokens
    in the prefix cache are attended to, not worked off. With `speculation` a pass is the share of one token in
    k draft passes (`draft_of`; None: free, as a lookup in the prompt) and a verification. Where the runtime
    runs prompts in passes of their own, the second column adds such a pass.
    """
    given = lengths or Lengths(workload.prompt_tokens, workload.output_tokens)
    cache = prefix or PrefixCache()
    b = batches[..., None, None]
    context = given.decoding_context if lengths else workload.mean_context
    chunk = chunk_tokens(workload, policies, prefix)
    long = given.attended_prompt
    new = cache.new_tokens(long)
    riding = prefill(chunk / new, new, long - new)
    draft_tokens = speculation.draft_tokens if speculation else 0
    plain_step = verification(b, context, draft_tokens) if speculation else decode(b, context)
    plain = cost_of(plain_step)
    added = cost_of(riding) if policies.prefill == "alone" else _less(cost_of(plain_step + riding), plain)
    if speculation:
        if draft_of is not None:
            plain = plain + draft_of(decode(b, context)) * float(draft_tokens)
        plain = plain * (1.0 / speculation.tokens_per_pass)
    both = plain + added
    lead = np.broadcast_shapes(np.shape(both.total_s), (*np.shape(batches), 1, 1))

    def columns(one: Cost, kind: str, name: str) -> Array:
        return np.broadcast_to(getattr(one, kind).get(name, 0.0), lead)

    tables = {
        kind: {
            name: np.concatenate([columns(plain, kind, name), columns(both, kind, name)], axis=-2)
            for name in dict.fromkeys((*getattr(plain, kind), *getattr(both, kind)))
        }
        for kind in ("exposed", "hidden")
    }
    return StepSurface(batches, np.array([0.0, chunk]), Cost(tables["exposed"], tables["hidden"]))


def serve_steady(
    surface: StepSurface,
    workload: Workload,
    stages: Real,
    replicas: Real,
    service: Service,
    policies: Policies | None = None,
    *,
    lengths: Lengths | None = None,
    prefix: PrefixCache | None = None,
) -> Prediction:
    """Steady state of continuous batching at every batch of the grid of `served_surface`.

    The surface holds passes of one micro-batch without a prompt and with one chunk, at the mean context; with
    p stages p micro-batches are in flight, b = p x grid batch.

    S = (n_i / chunk) (t(b, chunk) - t(b, 0)), or (n_i / chunk) t(0, chunk) where the runtime runs prompts in
    passes of their own; TPOT = t(b) + f b S / (p n_o), f the interference that was fitted: a request decodes
    while the stages spend rho = f X S / p of their time on prompts, X = b / (n_o TPOT).

    Prompts that arrive in one pass ride together in the next (gated service: Takagi, Queueing Analysis, volume
    1, 1991). A pass of length P is followed by one of t + those prompts, hence E[P] = TPOT and, c being the
    coefficient of variation of prompts, E[P^2] / E[P] = TPOT + rho S (1 + c^2) / (p (1 - rho^2)). An arrival sees
    half of a pass and then one with the prompts that came before and behind it:
        TTFT = request_s + TPOT / 2 + W + own prompt + stream_tokens TPOT
        W = (1/2 + rho) E[P^2] / E[P] - TPOT / 2 + wait for the budget
    with S + ceil(n_i / chunk) t(b) for the own prompt, or S where it runs alone. The budget lets k = chunk
    budget / n_i prompts into a pass: a queue with k servers, `shared_wait_s`; prompts that fill it one after the
    other (k <= 1) do not share passes, so that rho there counts by k. Throughput = d X n_o. Means; burstiness of
    arrivals beyond Poisson and memory pressure are ignored.

    A mean pass holds b / p (1 + n_i / n_o) tokens, b / p where prompts run alone: `budget_share` of the budget.
    Without `policies` prompts ride along and the budget has no end.

    A local user is alone: b requests start together, p = 1 above, nobody's prompt rides along or waits:
    TPOT = t(b), TTFT = request_s + own prompts of all b, X = b / (TTFT + n_o TPOT).
    """
    n_out = workload.output_tokens
    new = prefix.new_tokens(workload.prompt_tokens) if prefix else workload.prompt_tokens
    chunk = float(surface.prompts[-1])
    apart = policies is not None and policies.prefill == "alone"
    budget = float(policies.max_batched_tokens) if policies else np.inf
    times = surface.total_s()[..., 0]
    decode_s = times[..., 0]
    chunks = new / chunk
    prefill_s = chunks * (times[..., 1] - times[..., 0])
    weight = service.interference
    stages_ = np.asarray(in_flight(workload, stages), dtype=float)
    replicas_ = np.asarray(replicas, dtype=float)
    b = surface.batches * stages_
    interference = weight * b * prefill_s / (stages_ * n_out)
    tpot_s = decode_s + interference
    rate = b / (n_out * tpot_s)
    rho = interference / tpot_s
    spread = 1.0 + (lengths.prompt_cv**2 if lengths else 0.0)
    tokens = surface.batches * (1.0 if apart else 1.0 + new / n_out) + 0.0 * stages_
    budget_share = np.broadcast_to(tokens / budget, np.shape(rho))
    at_once = budget / new
    met = tpot_s + rho * prefill_s / stages_ * spread / (1.0 - rho**2)
    wait = (0.5 + rho * min(at_once, 1.0)) * met - 0.5 * tpot_s
    if np.isfinite(at_once) and not apart:
        slots = rate * tpot_s / (stages_ * at_once)  # share of the room for prompts that is taken
        held = tpot_s * max(1.0 / at_once, 1.0)
        wait = wait + shared_wait_s(held, max(at_once, 1.0), np.minimum(slots, 0.999), spread)
    own = prefill_s if apart else prefill_s + np.ceil(chunks) * decode_s
    stream = service.stream_tokens * tpot_s
    ttft_s = service.request_s + 0.5 * tpot_s + wait + own + stream
    if workload.task == "local":
        tpot_s, rho, wait = decode_s, np.zeros_like(rho), np.zeros_like(wait)
        own = np.ceil(chunks) * (0.0 if apart else decode_s) + b * prefill_s
        ttft_s = service.request_s + own
        rate = b / (ttft_s + n_out * tpot_s)
    # Little's law: those in prefill and those that decode
    concurrency = rate * (ttft_s + n_out * tpot_s)
    per_token = _machine_time(surface, chunks, n_out / weight, b, stages_)
    return Prediction(
        batch=b * replicas_,
        concurrency=concurrency * replicas_,
        requests_per_s=rate * replicas_,
        tokens_per_s=rate * n_out * replicas_,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        decode_s=decode_s,
        prefill_s=prefill_s,
        utilisation=rho,
        wait_s=wait,
        own_s=own,
        service_s=prefill_s / stages_,
        budget_share=budget_share,
        cost=per_token,
    )


def _less(both: Cost, plain: Cost) -> Cost:
    """What a pass takes beyond another."""
    return both + plain * -1.0


def _machine_time(surface: StepSurface, chunks: float, n_out: Real, b: Array, stages: Array) -> Cost:
    """Exposed seconds of the machine per output token: t(b) / b + S / (p n_o), by resource; `n_out` are the
    tokens over which a prompt is spread.

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
