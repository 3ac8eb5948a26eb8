"""`estimate`: one plan in full."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import numpy as np

from chipwise.api.context import Context
from chipwise.api.loaded import check_length, find_chip, load_generating
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.errors import InfeasibleError, UsageError
from chipwise.parallel.layout import Layout, Reason, check_layout
from chipwise.report.assemble import model_record, rank_plans, workload_record
from chipwise.report.records import PlanReport
from chipwise.search.deployments import deployments
from chipwise.search.evaluate import Evaluated, evaluate, single
from chipwise.workload.workload import Workload

__all__ = ["estimate"]


def estimate(
    model: str,
    workload: Workload,
    chip: str,
    layout: Layout,
    *,
    count: int | None = None,
    concurrency: float | None = None,
    changes: Mapping[str, str] | None = None,
    precision: str | None = None,
    runtime: str | None = None,
    policy: Mapping[str, str] | None = None,
    pricing: Pricing | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> PlanReport:
    """A chip, a layout, and how many requests are in flight (default: as many as fit).

    `count` checks the chips of the layout; `changes` replaces figures of the chip, `policy` those of the
    runtime. Raises `UsageError` for an illegal layout and `InfeasibleError` where it does not fit, saying by
    how much.
    """
    found = load_generating(model, precision)
    check_length(found, workload.context)
    graph, name = found.graph, found.graph.model.name
    reason = check_layout(graph, layout)
    if reason is not Reason.OK:
        raise UsageError(f"{layout.label()} is not legal for {name}", reason.value)
    hardware = find_chip(chip, changes)
    local = workload.task == "local"
    offered, refused = deployments(graph.model, (hardware,), runtime, local=local, policy=policy)
    if refused:
        raise InfeasibleError(f"{hardware.id}: no plan", refused[0][2])
    deployment = offered[0]
    chips = float(layout.devices) / hardware.devices_per_package
    if count is not None and count != chips:
        hint = f"as in --tp {count * hardware.devices_per_package}, or tp x pp x dp of as many"
        raise UsageError(f"{layout.label()} takes {chips:g} x {hardware.id}, not {count}", hint)
    context = Context(
        found,
        workload,
        parameters or shipped_parameters(),
        today or day(),
        pricing or Pricing(),
        policy or {},
    )
    priced = evaluate(graph, single(deployment, layout), workload, *context.rates((deployment,)))
    _check(
        priced,
        f"{name} on {chips:g} x {hardware.id}, {layout.label()}",
        f"chipwise fit {model} --chip {chip}",
    )
    p = priced.prediction
    room = min(float(np.max(priced.memory.sequences)), deployment.policies.max_sequences) * float(layout.dp)
    most = max(room, float(p.concurrency[0][0]))
    if concurrency is None:
        batch = float(np.interp(most, p.concurrency[0], p.batch[0]))
    elif concurrency > most * (1 + 1e-9):
        what = f"{concurrency:g} requests in flight are more than the {most:.0f} that fit on {chips:g} x {hardware.id}"
        raise InfeasibleError(what, "more chips, shorter lengths or a smaller format")
    else:
        batch = float(np.interp(concurrency, p.concurrency[0], p.batch[0]))
    record = context.at_batch(deployment, layout, 1, batch)
    return PlanReport(
        model=model_record(graph, found.config),
        workload=workload_record(workload),
        plans=rank_plans([record], workload),
        refused=(),
        considered=1,
        rejected={},
        assumptions=context.assumptions([record]),
    )


def _check(priced: Evaluated, what: str, next_step: str) -> None:
    why = list(Reason)[int(priced.reason[0])]
    if why is Reason.MEMORY:
        missing = float(priced.missing_bytes[0])
        raise InfeasibleError(
            f"{what}: {missing / 1e9:,.1f} GB short per device", f"{next_step} shows what would mend it"
        )
    if why is not Reason.OK:
        raise UsageError(what, why.value)
