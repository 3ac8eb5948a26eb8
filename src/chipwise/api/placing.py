"""One model on one chip under one runtime: what the verbs about a given plan begin with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from chipwise.api.context import Context
from chipwise.api.loaded import find_chip, load_generating, stretched
from chipwise.api.tactics import Tactics
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.errors import InfeasibleError
from chipwise.search.deployments import deployments
from chipwise.search.space import Deployment
from chipwise.workload.workload import Workload

__all__ = ["placed"]


def placed(
    model: str,
    workload: Workload,
    chip: str,
    *,
    changes: Mapping[str, str] | None = None,
    precision: str | None = None,
    kv: str | None = None,
    runtime: str | None = None,
    policy: Mapping[str, str] | None = None,
    tactics: Tactics | None = None,
    pricing: Pricing | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> tuple[Context, Deployment]:
    """The model with its load, numbers and prices, and the deployment. Raises `InfeasibleError` where no runtime
    launches it, `UsageError` and `UnknownNameError` for bad input."""
    found = stretched(load_generating(model, precision, kv), workload.context)
    hardware = find_chip(chip, changes)
    local = workload.task == "local"
    offered, refused = deployments(found.graph.model, (hardware,), runtime, local=local, policy=policy)
    tactics = tactics or Tactics()
    context = Context(
        found,
        tactics.drawn(workload),
        parameters or shipped_parameters(),
        today or day(),
        pricing or Pricing(),
        policy or {},
        tactics,
    )
    able, unable = context.tactics.on(offered, found.graph)
    if not able:
        why = refused[0][2] if refused else unable[0].detail
        raise InfeasibleError(f"{hardware.id}: no plan", why)
    return context, able[0]
