"""`estimate`: one plan in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import numpy as np

from chipwise.api.placing import placed
from chipwise.api.published import beside_published
from chipwise.api.tactics import Tactics
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.override import told
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.runtime import Runtime
from chipwise.errors import InfeasibleError, UsageError
from chipwise.parallel.layout import Layout, Reason, check_layout, illegal
from chipwise.report.assemble import model_record, rank_plans, workload_record
from chipwise.report.records import PlanReport
from chipwise.search.evaluate import REASONS, Evaluated, evaluate, single
from chipwise.search.space import Deployment
from chipwise.units import Array
from chipwise.workload.graph import Graph
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
    kv: str | None = None,
    runtime: str | None = None,
    policy: Mapping[str, str] | None = None,
    tactics: Tactics | None = None,
    pricing: Pricing | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> PlanReport:
    """A chip, a layout, and how many requests are in flight (default: as many as fit, of a local user one).

    `count` checks the chips of the layout; `changes` replaces figures of the chip, `policy` those of the
    runtime. Raises `UsageError` for an illegal layout and `InfeasibleError` where it does not fit, saying by
    how much.
    """
    context, deployment = placed(
        model,
        workload,
        chip,
        changes=changes,
        precision=precision,
        kv=kv,
        runtime=runtime,
        policy=policy,
        tactics=tactics,
        pricing=pricing,
        today=today,
        parameters=parameters,
    )
    found, hardware = context.found, deployment.chip
    graph, name = found.graph, found.graph.model.name
    reason = check_layout(graph, layout)
    if reason is not Reason.OK:
        hint = f"{reason.value}{_nearby(graph, layout, reason)}"
        raise UsageError(f"{layout.label()} is not legal for {name}", hint)
    _launchable(layout, deployment.runtime)
    chips = float(layout.devices) / hardware.devices_per_package
    if count is not None and count != chips:
        hint = f"as in --tp {count * hardware.devices_per_package}, or tp x pp x dp of as many"
        raise UsageError(f"{layout.label()} takes {chips:g} x {hardware.id}, not {count}", hint)
    if chips % 1:
        hint = f"as in --tp {hardware.devices_per_package}: software sees so many devices in one"
        raise UsageError(f"{layout.label()} takes {chips:g} x {hardware.id}, not whole ones", hint)
    priced = evaluate(graph, single(deployment, layout), workload, *context.rates((deployment,)))
    _check(
        priced,
        deployment,
        f"{name} on {chips:g} x {hardware.id}, {layout.label()}",
        f"chipwise fit {model} --chip {chip}",
    )
    p = priced.prediction
    room = min(float(np.max(priced.memory.sequences)), deployment.policies.max_sequences) * float(layout.dp)
    # beyond the runtime's budget of tokens a pass prompts do not keep up
    room = min(room, float(np.interp(1.0, p.budget_share[0], p.concurrency[0])))
    most = max(room, float(p.concurrency[0][0]))
    if concurrency is None and workload.task == "local":
        concurrency = min(1.0, most)  # one user; serving and batches fill the machine
    if concurrency is None:
        batch = float(np.interp(most, p.concurrency[0], p.batch[0]))
    elif concurrency > most * (1 + 1e-9):
        what = f"{concurrency:g} requests in flight are more than the {most:.0f} that fit on {chips:g} x {hardware.id}"
        raise InfeasibleError(what, "more chips, shorter lengths or a smaller format")
    else:
        batch = float(np.interp(concurrency, p.concurrency[0], p.batch[0]))
    record = context.at_batch(deployment, layout, 1, batch)
    described = model_record(graph, found.config)
    return PlanReport(
        model=described,
        workload=workload_record(workload),
        plans=beside_published(rank_plans([record], workload), described, workload, context.today),
        refused=(),
        considered=1,
        rejected={},
        assumptions=(*context.assumptions([record]), *told(changes)),
    )


def _launchable(layout: Layout, runtime: Runtime) -> None:
    """Raises `UsageError` where a runtime cannot spread one replica so."""
    for degree, other, cut in (("tp", "pp", "tensors"), ("pp", "tp", "layers into stages")):
        if float(layout.part(degree)) > 1 and degree not in runtime.features:
            hint = f"as in --{other} {layout.devices:g}" if other in runtime.features else "one device each"
            raise UsageError(f"{runtime.name} does not cut {cut} between devices", hint)


def _check(priced: Evaluated, deployment: Deployment, what: str, next_step: str) -> None:
    why = REASONS[int(priced.reason[0])]
    if why is Reason.MEMORY:
        missing = float(priced.missing_bytes[0])
        raise InfeasibleError(
            f"{what}: {missing / 1e9:,.1f} GB short per device",
            f"{next_step} shows what would mend it",
            reasons={why.value: 1},
            see="fit",
        )
    if why is Reason.DOMAIN:
        most = int(deployment.device.domain)
        joined = (
            f"{deployment.chip.id} joins {most}"
            if most > 1
            else f"{deployment.chip.id} is joined to no other"
        )
        raise UsageError(
            f"{what}: the layout leaves the scale-up domain, {joined}",
            f"tp x dp at most {most}, or pipeline stages (--pp) over a network" if most > 1 else "one device",
        )
    if why is not Reason.OK:
        raise UsageError(what, why.value)


def _nearby(graph: Graph, layout: Layout, reason: Reason) -> str:
    """The legal degrees on either side of the one that breaks a rule, the others kept; empty where there are none."""
    name = reason.name[:2].lower()
    if name not in ("tp", "pp", "ep"):
        return ""
    value = int(getattr(layout, name))
    tried: Array = np.arange(1.0, min(4 * value, 4096) + 1.0)
    legal = tried[illegal(graph, replace(layout, **{name: tried})) == 0]
    near = [int(v) for v in (*legal[legal < value][-1:], *legal[legal > value][:1])]
    return f"; nearest: {name} {' or '.join(map(str, near))}" if near else ""
