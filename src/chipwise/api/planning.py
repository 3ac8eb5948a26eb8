"""`plan`: the best plan of every chip for a workload. This page is the architecture in order:

configuration -> model -> graph -> deployments -> candidates -> predictions -> choices -> estimates -> report
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from chipwise.api.context import Context
from chipwise.api.loaded import check_length, find_chip, load_generating
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.catalog.system import systems_for
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Layout, Reason
from chipwise.report.assemble import model_record, rank_plans, workload_record
from chipwise.report.records import PlanRecord, PlanReport, RefusalRecord
from chipwise.search.choose import Choice, choose
from chipwise.search.deployments import LOCAL_FORMS, deployments
from chipwise.search.evaluate import evaluate
from chipwise.search.space import Limits, candidates
from chipwise.units import format_seconds
from chipwise.workload.workload import Workload

__all__ = ["plan"]

CARRIED = 1e-3  # of a rate: what a plan may miss it by
FINER = 9


def plan(
    model: str,
    workload: Workload,
    *,
    chips: Sequence[str] = (),
    have: Mapping[str, int] | None = None,
    changes: Mapping[str, str] | None = None,
    precision: str | None = None,
    runtime: str | None = None,
    policy: Mapping[str, str] | None = None,
    pricing: Pricing | None = None,
    limits: Limits | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> PlanReport:
    """The best plan of every chip, ranked, with what was refused and why.

    `chips` (names or TOML files) or `have` (how many of each there are; they cost nothing) restrict the
    search; `changes` replaces figures of the chips, `policy` those of the runtime. Raises `InfeasibleError`
    where no chip has a plan; `UsageError` and `UnknownNameError` for bad input.
    """
    found = load_generating(model, precision)
    check_length(found, workload.context)
    context = Context(
        found,
        workload,
        parameters or shipped_parameters(),
        today or day(),
        None if have else pricing or Pricing(),
        policy or {},
    )
    limits = limits or Limits(max_devices=8 if workload.task == "local" else 64)
    limits = replace(limits, have=dict(have or {}))
    wanted = [find_chip(c, changes) for c in have or chips or _everything(workload)]
    local = workload.task == "local"
    offered, refused = deployments(found.graph.model, wanted, runtime, local=local, policy=policy)
    prices = {d.chip.id: context.usd_per_chip_h(d.chip.id) for d in offered}
    refusals = [RefusalRecord(c.id, r.name, why) for c, r, why in refused]
    plans: list[PlanRecord] = []
    rejected: Counter[Reason] = Counter()
    considered = 0
    reach = (np.inf, np.inf)
    for group in candidates(found.graph, offered, limits):
        priced = evaluate(found.graph, group, workload, *context.rates(group.deployments))
        choices, without, counts = choose(priced, workload, prices, limits)
        considered += priced.plans
        reach = tuple(np.minimum(reach, priced.reach()))
        rejected += counts
        refusals += [RefusalRecord(r.deployment.chip.id, r.reason.name, r.reason.value) for r in without]
        plans += [_operate(context, choice) for choice in choices]
    if not plans:
        raise InfeasibleError(*_why_nothing(found.graph.model.name, workload, rejected, refusals, reach))
    del rejected[Reason.OK]
    return PlanReport(
        model=model_record(found.graph, found.config),
        workload=workload_record(workload),
        plans=rank_plans(plans, workload),
        refused=tuple(refusals),
        considered=considered,
        rejected={reason.value: n for reason, n in rejected.most_common()},
        assumptions=(*context.assumptions(plans), f"at most {limits.max_devices} devices per replica"),
    )


def _everything(workload: Workload) -> list[str]:
    """All chips on the market; for a local user those that are in machines one has at home or at a desk."""
    market = [chip.id for chip in load_chips().values() if chip.rentable]
    if workload.task != "local":
        return market
    return [c for c in market if any(s.form in LOCAL_FORMS for s in systems_for(c))]


def _operate(context: Context, choice: Choice) -> PlanRecord:
    """A choice at the load it carries: all replicas share the given rate, or run full."""
    p, i = choice.evaluated.prediction, choice.index
    columns = choice.evaluated.group.layout
    layout = Layout(*(float(np.asarray(columns.part(x))[i]) for x in ("tp", "pp", "dp", "ep")))
    batch = float(p.batch[i, choice.point])
    w = context.workload
    if w.rate_per_s is None or w.task != "serve":
        return context.at_batch(choice.deployment, layout, choice.replicas, batch)
    rate = w.rate_per_s / choice.replicas
    # rates need not rise all along the grid: the first point that carries it, and the one before
    carrying = p.requests_per_s[i, : choice.point + 1] >= rate * (1 - 1e-9)
    at = int(np.argmax(carrying)) if carrying.any() else choice.point
    ends = slice(max(at - 1, 0), at + 1)
    below = float(np.interp(rate, p.requests_per_s[i, ends], p.batch[i, ends]))
    record = context.at_batch(choice.deployment, layout, choice.replicas, below)
    if record.requests_per_s >= w.rate_per_s * (1 - CARRIED) or below >= p.batch[i, at]:
        return record
    # kernels step where a tile is full, so that the batch between two points of the grid is looked for
    finer = np.linspace(below, float(p.batch[i, at]), FINER)
    carried = context.at_batches(choice.deployment, layout, finer).requests_per_s[0] >= rate * (1 - 1e-9)
    batch = float(finer[np.argmax(carried)]) if carried.any() else float(p.batch[i, at])
    return context.at_batch(choice.deployment, layout, choice.replicas, batch)


def _why_nothing(
    name: str,
    workload: Workload,
    rejected: Mapping[Reason, int],
    refusals: Sequence[RefusalRecord],
    reach: tuple[float, float],
) -> tuple[str, str]:
    """What stands in the way of every plan, and the next step; `reach` are the best TTFT and TPOT of a lone
    request on anything that fits."""
    if rejected.get(Reason.BUDGET):
        return f"{name}: no plan within the limits of chips or cost", "raise --max-chips or --max-usd-per-h"
    if rejected.get(Reason.SLO):
        asked = (("TTFT", workload.ttft_s), ("TPOT", workload.tpot_s))
        short = [
            f"{word} {format_seconds(target)} is out of reach: the best for a lone request is {format_seconds(best)}"
            for (word, target), best in zip(asked, reach, strict=True)
            if target is not None and best > target
        ]
        both = "TTFT and TPOT are each in reach, but not together on one deployment"
        return (
            f"{name}: no plan meets the targets; {'; '.join(short) or both}",
            "relax the target, or shorten --in",
        )
    if rejected.get(Reason.MEMORY):
        return f"{name} does not fit on what was asked", f"chipwise fit {name} shows what would"
    detail = refusals[0].detail if refusals else "no chips were given"
    return f"{name}: no plan", detail
