"""Price a group of candidates as arrays: memory, steps, steady state, masks."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import RESOURCES, Cost
from chipwise.cost.price import CostParameters
from chipwise.parallel.layout import Layout, Reason, illegal
from chipwise.parallel.memory import MemoryAccount
from chipwise.parallel.shard import shard
from chipwise.predict.apart import prompt_alone
from chipwise.predict.inference import Prediction, in_flight, serve_steady, served_surface
from chipwise.predict.overheads import Overheads
from chipwise.predict.speculative import draft_graph
from chipwise.predict.step import step_cost
from chipwise.predict.surface import batch_grid
from chipwise.search.memory import memory_of
from chipwise.search.pools import Workers, prompt_workers, serve_pools, transfer
from chipwise.search.space import Deployment, Group
from chipwise.units import Array
from chipwise.workload.graph import Graph
from chipwise.workload.step import Step
from chipwise.workload.workload import Workload

__all__ = ["REASONS", "Evaluated", "evaluate", "predict", "single"]

REASONS = list(Reason)


@dataclass(frozen=True)
class Evaluated:
    """A group with its predictions on the batch grid.

    `reason` indexes `list(Reason)` per candidate; `allowed` [N, batch] marks batches that fit in memory and in
    the runtime's limit of sequences. `missing_bytes` per device are short of what the smallest batch takes, 0
    where it fits. `beside` [N, batch] are workers for prompts beside each decode worker, 0 where there is one pool.
    `rates` are the numbers that it was priced with.
    """

    group: Group
    prediction: Prediction
    memory: MemoryAccount
    reason: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    missing_bytes: Array
    beside: Array
    rates: tuple[CostParameters, Overheads]

    @property
    def plans(self) -> int:
        """Candidate plans priced: layouts times batches."""
        return int(self.allowed.size)


def evaluate(
    graph: Graph, group: Group, workload: Workload, efficiency: CostParameters, overheads: Overheads
) -> Evaluated:
    """Predictions, masks and reasons of all candidates of a group."""
    memory = memory_of(graph, group, workload)
    reason = illegal(graph, group.layouts())
    # a pipeline needs a sequence for each of its micro-batches
    smallest = in_flight(workload, group.layouts(trailing=1).pp)
    fits = memory.fits(smallest)[:, 0]
    missing = np.maximum(smallest * memory.sequence_bytes - memory.cache_bytes, 0.0)[:, 0]
    known = np.isfinite(np.asarray(group.device(trailing=1).memory_bytes))[:, 0]
    known &= np.isfinite(np.asarray(group.device(trailing=1).memory_bytes_per_s))[:, 0]
    domain = np.asarray(group.device(trailing=1).domain)[:, 0]
    networked = np.isfinite(np.asarray(group.device(trailing=1).scaleout_bytes_per_s))[:, 0]
    layout = group.layouts()
    inside = np.where(networked, layout.tp * layout.dp, layout.devices)
    for code, broken in (
        (Reason.DOMAIN, inside > domain),
        (Reason.NO_MEMORY_FIGURE, ~known),
        (Reason.MEMORY, ~fits),
    ):
        reason = np.where((reason == 0) & broken, REASONS.index(code), reason)
    live = reason == 0
    policies = group.deployments[0].policies
    prediction = _of_none(batch_grid(policies.max_sequences))
    if live.any():
        rows = Group(group.deployments, group.which[live], _take(group.layout, live))
        prediction = predict(graph, rows, workload, efficiency, overheads)
    prediction = _scatter(prediction, live)
    rank_concurrency = prediction.concurrency / np.asarray(group.layouts(trailing=1).dp)
    with np.errstate(invalid="ignore"):
        allowed = (rank_concurrency <= memory.sequences) & (rank_concurrency <= policies.max_sequences)
        allowed &= prediction.budget_share <= 1.0
    # the smallest batch is always allowed where it fits
    allowed[:, 0] |= fits
    apart = group.deployments[0].apart
    beside = prompt_workers(prediction, group.layouts(trailing=1)) if apart else np.zeros(allowed.shape)
    return Evaluated(
        group, prediction, memory, reason, allowed & live[:, None], missing, beside, (efficiency, overheads)
    )


def predict(
    graph: Graph,
    group: Group,
    workload: Workload,
    efficiency: CostParameters,
    overheads: Overheads,
    batches: Array | None = None,
    workers: Workers | None = None,
) -> Prediction:
    """Steady state of every candidate of a group; arrays [N, batch]. `efficiency` holds a number for all
    deployments of the group, or one for each.

    `batches` are decoding sequences of one micro-batch of one rank, [batch] or [N, batch]; by default a grid up
    to the runtime's limit. `workers` of both pools where prompts are worked off apart; by default one decode
    worker and as many for prompts as keep up with it.
    """
    d = group.deployments[0]
    policies = d.policies
    device, layout = group.device(trailing=3), group.layouts(trailing=3)
    sharded = shard(graph, layout)
    at = group.which.reshape(-1, 1, 1, 1)
    each, own = efficiency.take(at), overheads.take(at)

    def cost_of(step: Step) -> Cost:
        return step_cost(sharded, step, device, each, own)

    draft_of = None
    if d.drafts:
        draft = shard(draft_graph(graph), layout)

        def draft_of(step: Step) -> Cost:
            return step_cost(draft, step, device, each, own)

    grid = batch_grid(policies.max_sequences) if batches is None else batches
    lengths, prefix = workload.lengths, workload.prefix
    surface = served_surface(
        cost_of,
        grid,
        workload,
        policies,
        lengths=lengths,
        prefix=prefix,
        speculation=d.speculation,
        draft_of=draft_of,
    )
    flat = group.layouts(trailing=1)
    if d.apart:
        prompt = prompt_alone(cost_of, workload, policies, lengths=lengths, prefix=prefix)
        sent = transfer(graph, group, workload, overheads)
        return serve_pools(surface, prompt, sent, workload, flat, overheads.service, workers)
    return serve_steady(
        surface, workload, flat.pp, flat.dp, overheads.service, policies, lengths=lengths, prefix=prefix
    )


def single(deployment: Deployment, layout: Layout) -> Group:
    """A group of one candidate."""
    columns = (np.array([float(layout.part(p))]) for p in ("tp", "pp", "dp", "ep"))
    return Group((deployment,), np.zeros(1, dtype=np.int64), Layout(*columns))


def _take(layout: Layout, mask: NDArray[np.bool_]) -> Layout:
    return Layout(*(np.asarray(layout.part(p))[mask] for p in ("tp", "pp", "dp", "ep")))


def _of_none(batches: Array) -> Prediction:
    """The prediction of no candidates at all."""
    nothing = np.empty((0, len(batches)))
    numbers = {f.name: nothing for f in fields(Prediction) if f.name != "cost"}
    return Prediction(**numbers, cost=Cost(dict.fromkeys(RESOURCES, nothing)))


def _scatter(prediction: Prediction, live: NDArray[np.bool_]) -> Prediction:
    """Rows of the live candidates in a table of all, the others NaN."""

    def spread(values: object) -> Array:
        rows = np.asarray(values, dtype=float)
        table = np.full((len(live), rows.shape[-1]), np.nan)
        table[live] = rows
        return table

    cost = Cost(
        {k: spread(v) for k, v in prediction.cost.exposed.items()},
        {k: spread(v) for k, v in prediction.cost.hidden.items()},
    )
    numbers = {n: spread(getattr(prediction, n)) for n in prediction.__dataclass_fields__ if n != "cost"}
    return Prediction(**numbers, cost=cost)
