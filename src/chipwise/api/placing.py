"""What the verbs about serving are told beside model and workload: the terms, and a deployment given in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from chipwise.api.context import Context
from chipwise.api.loaded import check_length, find_chip, load_generating, stretched
from chipwise.api.tactics import Tactics
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.price import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Layout
from chipwise.search.deployments import deployments
from chipwise.search.space import Deployment
from chipwise.workload.workload import Workload

__all__ = ["Given", "Terms", "placed"]


@dataclass(frozen=True)
class Terms:
    """Under what a model is asked about; every field has the default of a question that leaves it out.

    `precision` replaces that of the checkpoint, `kv` that of its cache; `policy` replaces figures of the runtime,
    `changes` those of the chips; `tactics` is how the software is run, `pricing` how chips are paid on the day `today`,
    `parameters` are fitted numbers in place of those shipped. `own`: what the user measured moves what is predicted for
    the same deployments.
    """

    precision: str | None = None
    kv: str | None = None
    runtime: str | None = None
    policy: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    tactics: Tactics = field(default_factory=Tactics)
    pricing: Pricing = field(default_factory=Pricing)
    today: date | None = None
    parameters: Parameters | None = None
    own: bool = False

    def context(
        self, model: str, workload: Workload, *, owned: bool = False, longer: bool = False
    ) -> Context:
        """The model with its load, numbers and prices; chips that are `owned` have none. `longer`: a sequence beyond
        what the model was trained on is noted, not refused.

        Raises `UsageError` and `UnknownNameError` for a model that cannot be read or run so long.
        """
        found = load_generating(model, self.precision, self.kv)
        if longer:
            found = stretched(found, workload.context)
        else:
            check_length(found, workload.context)
        return Context(
            found,
            self.tactics.drawn(workload),
            self.parameters or shipped_parameters(),
            self.today or day(),
            None if owned else self.pricing,
            self.policy,
            self.tactics,
            self.own,
        )


@dataclass(frozen=True)
class Given:
    """One deployment and its load: `layout` of one replica, and `concurrency` clients or `rate_per_s` requests of all
    `replicas` (neither: as many as fit, of a local user one). `count` checks the chips of the layout."""

    chip: str
    layout: Layout = field(default_factory=Layout)
    count: int | None = None
    concurrency: float | None = None
    rate_per_s: float | None = None
    replicas: int = 1


def placed(
    model: str, workload: Workload, chip: str, terms: Terms | None = None
) -> tuple[Context, Deployment]:
    """The model with its load, numbers and prices, and the deployment. A sequence beyond what the model was trained on
    is noted. Raises `InfeasibleError` where no runtime launches it, `UsageError` and `UnknownNameError`
    for bad input."""
    terms = terms or Terms()
    context = terms.context(model, workload, longer=True)
    hardware, graph = find_chip(chip, terms.changes), context.found.graph
    local = workload.task == "local"
    offered, refused = deployments(graph.model, (hardware,), terms.runtime, local=local, policy=terms.policy)
    able, unable = context.tactics.on(offered, graph)
    if not able:
        why = refused[0][2] if refused else unable[0].detail
        raise InfeasibleError(f"{hardware.id}: no plan", why)
    return context, able[0]
