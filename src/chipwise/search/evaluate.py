"""Price a group of candidates as arrays: memory, steps, steady state, masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import Cost
from chipwise.cost.time import CostParameters
from chipwise.parallel.layout import Layout, Reason, illegal
from chipwise.parallel.memory import MemoryAccount, account
from chipwise.parallel.shard import shard
from chipwise.predict.inference import Prediction, chunk_tokens, in_flight, serve_steady
from chipwise.predict.overheads import Overheads
from chipwise.predict.step import step_cost
from chipwise.predict.surface import batch_grid, step_surface
from chipwise.search.space import Deployment, Group
from chipwise.units import Array
from chipwise.workload.graph import Graph
from chipwise.workload.step import Step
from chipwise.workload.workload import Workload

__all__ = ["REASONS", "Evaluated", "evaluate", "memory_of", "predict", "single"]

REASONS = list(Reason)


@dataclass(frozen=True)
class Evaluated:
    """A group with its predictions on the batch grid.

    `reason` indexes `list(Reason)` per candidate; `allowed` [N, batch] marks batches that fit in memory and in
    the runtime's limit of sequences. `missing_bytes` per device are short of what the smallest batch takes, 0
    where it fits.
    """

    group: Group
    prediction: Prediction
    memory: MemoryAccount
    reason: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    missing_bytes: Array

    def reach(self) -> tuple[float, float]:
        """The shortest TTFT and TPOT of a lone request among candidates that are legal and fit; infinite
        where there is none."""
        live = self.reason == 0
        if not live.any():
            return np.inf, np.inf
        p = self.prediction
        return float(np.nanmin(p.ttft_s[live])), float(np.nanmin(p.tpot_s[live]))

    @property
    def plans(self) -> int:
        """Candidate plans priced: layouts times batches."""
        return int(self.allowed.size)


def memory_of(graph: Graph, group: Group, workload: Workload) -> MemoryAccount:
    """The account of every candidate at the context of a finished request; arrays [N, 1]."""
    d = group.deployments[0]
    sharded = shard(graph, group.layouts(trailing=1))
    device = group.device(trailing=1)
    return account(
        sharded, d.policies, device.memory_bytes, workload.context, device.reserved_bytes, d.adapter_bytes
    )


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
    prediction = predict(
        graph,
        Group(group.deployments, group.which[live], _take(group.layout, live)),
        workload,
        efficiency,
        overheads,
    )
    prediction = _scatter(prediction, live)
    policies = group.deployments[0].policies
    rank_concurrency = prediction.concurrency / np.asarray(group.layouts(trailing=1).dp)
    with np.errstate(invalid="ignore"):
        allowed = (rank_concurrency <= memory.sequences) & (rank_concurrency <= policies.max_sequences)
    # the smallest batch is always allowed where it fits
    allowed[:, 0] |= fits
    return Evaluated(group, prediction, memory, reason, allowed & live[:, None], missing)


def predict(
    graph: Graph,
    group: Group,
    workload: Workload,
    efficiency: CostParameters,
    overheads: Overheads,
    batches: Array | None = None,
) -> Prediction:
    """Steady state of every candidate of a group; arrays [N, batch]. `efficiency` holds a number for all
    deployments of the group, or one for each.

    `batches` are decoding sequences of one micro-batch of one rank; by default a grid up to the runtime's
    limit.
    """
    policies = group.deployments[0].policies
    device, layout = group.device(trailing=3), group.layouts(trailing=3)
    sharded = shard(graph, layout)
    at = group.which.reshape(-1, 1, 1, 1)
    each, own = efficiency.take(at), overheads.take(at)

    def cost_of(step: Step) -> Cost:
        return step_cost(sharded, step, device, each, own)

    chunk = chunk_tokens(workload, policies)
    surface = step_surface(
        cost_of,
        batch_grid(policies.max_sequences) if batches is None else batches,
        np.array([0.0, chunk]),
        np.array([workload.mean_context]),
        workload.prompt_tokens,
    )
    flat = group.layouts(trailing=1)
    return serve_steady(surface, workload, flat.pp, flat.dp, overheads.request_s)


def single(deployment: Deployment, layout: Layout) -> Group:
    """A group of one candidate."""
    columns = (np.array([float(layout.part(p))]) for p in ("tp", "pp", "dp", "ep"))
    return Group((deployment,), np.zeros(1, dtype=np.int64), Layout(*columns))


def _take(layout: Layout, mask: NDArray[np.bool_]) -> Layout:
    return Layout(*(np.asarray(layout.part(p))[mask] for p in ("tp", "pp", "dp", "ep")))


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
