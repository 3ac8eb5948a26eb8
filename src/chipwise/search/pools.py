"""Candidates with prompts in one pool of workers and decoding in another, all workers of one layout."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.parallel.layout import Layout
from chipwise.predict.apart import BUSY, serve_apart
from chipwise.predict.disaggregated import transfer_s
from chipwise.predict.inference import Prediction
from chipwise.predict.overheads import Overheads
from chipwise.predict.serving import Service
from chipwise.predict.surface import StepSurface
from chipwise.search.space import Group
from chipwise.units import Array, Real
from chipwise.workload.graph import Graph
from chipwise.workload.workload import Workload

__all__ = ["Workers", "prompt_workers", "serve_pools", "transfer"]


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of both pools, columns [N, 1] or numbers."""

    prompt: Real
    decode: Real


def transfer(graph: Graph, group: Group, workload: Workload, overheads: Overheads) -> Array:
    """Seconds to send the cache of a prompt from one worker to another; arrays [N, 1].

    Over the network between machines where one is known, else over the links between chips.
    """
    device, layout = group.device(trailing=1), group.layouts(trailing=1)
    network = np.asarray(device.scaleout_bytes_per_s)
    port = np.where(np.isfinite(network), network, np.asarray(device.link_bytes_per_s))
    port = np.where(np.isfinite(port), port, 1.0)  # a lone chip without any link: no second worker either
    size = float(graph.kv_bytes(workload.prompt_tokens))
    return np.asarray(
        transfer_s(size, layout.tp * layout.pp, layout.tp * layout.pp, port, overheads.link_share)
    )


def serve_pools(
    surface: StepSurface,
    prompt: Cost,
    transfer_s_: Array,
    workload: Workload,
    layout: Layout,
    service: Service,
    workers: Workers | None,
) -> Prediction:
    """Steady state per decode worker at every batch of the grid, [N, batch]; a worker serves dp x pp requests
    on their own at a time."""
    servers = np.asarray(layout.dp * layout.pp, dtype=float)
    decode = 1.0 if workers is None else np.asarray(workers.decode, dtype=float)
    if workers is None:
        own = np.asarray(prompt.total_s)[..., 0, 0]
        rate = surface.batches * servers / (workload.output_tokens * surface.total_s()[..., 0, 0])
        prompts: Real = np.maximum(rate * own / BUSY, servers)
    else:
        prompts = np.asarray(workers.prompt, dtype=float) * servers
    lengths = workload.lengths
    both = serve_apart(
        surface, prompt, transfer_s_, workload, prompts, decode * servers, service, lengths=lengths
    )
    # of one decode worker, as plans count replicas
    counted = ("batch", "concurrency", "requests_per_s", "tokens_per_s")
    return replace(both, **{name: getattr(both, name) / decode for name in counted})


def prompt_workers(prediction: Prediction, layout: Layout) -> Array:
    """Workers for prompts that keep up with one decode worker at every batch, X S / (busy x dp x pp); [N, batch]."""
    servers = np.asarray(layout.dp * layout.pp, dtype=float)
    return np.asarray(prediction.requests_per_s * prediction.own_s / (BUSY * servers))
