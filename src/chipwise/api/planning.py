"""`plan`: the best plan of every chip for a workload. This page is the architecture in order:

configuration -> model -> graph -> deployments -> candidates -> predictions -> choices -> estimates -> report
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from chipwise.api.context import Context
from chipwise.api.loaded import check_length, find_chip, load_generating
from chipwise.api.operate import operate
from chipwise.api.published import beside_published
from chipwise.api.searching import RUNTIMES, Effort, Found, before, search
from chipwise.api.tactics import Tactics
from chipwise.api.unmet import no_plan, refusal_record
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.override import told
from chipwise.catalog.pricing import Pricing
from chipwise.catalog.snapshot import today as day
from chipwise.catalog.system import systems_for
from chipwise.parallel.layout import Reason
from chipwise.predict.fleet import Day, over_day
from chipwise.report.assemble import model_record, rank_plans, workload_record
from chipwise.report.records import PlanRecord, PlanReport, RefusalRecord
from chipwise.search.choose import EQUAL
from chipwise.search.deployments import LOCAL_FORMS, deployments
from chipwise.search.space import FEW, Limits
from chipwise.workload.curve import RateCurve
from chipwise.workload.workload import Workload

__all__ = ["BEST", "plan"]

BEST = "best"
"""In place of a runtime: compare all that can."""
NARROWER = "fp8"
"""What 16-bit weights are compared with unless a format is named: most runtimes make it of them while loading."""


def plan(
    model: str,
    workload: Workload,
    *,
    chips: Sequence[str] = (),
    have: Mapping[str, int] | None = None,
    changes: Mapping[str, str] | None = None,
    precision: str | None = None,
    kv: str | None = None,
    runtime: str | None = None,
    policy: Mapping[str, str] | None = None,
    tactics: Tactics | None = None,
    curve: RateCurve | None = None,
    evidence: bool = True,
    pricing: Pricing | None = None,
    limits: Limits | None = None,
    today: date | None = None,
    parameters: Parameters | None = None,
) -> PlanReport:
    """The best plan of every chip, ranked, with what was refused and why.

    `chips` (names or TOML files) or `have` (how many of each there are; they cost nothing) restrict the
    search; `changes` replaces figures of the chips, `policy` those of the runtime. `runtime` "best" compares all
    that can on every chip, as is done for chips that one has and for a local user. The arrivals of a day
    (`curve`) are what a fleet sized for the rate is judged on. With `evidence` the nearest published results stand
    beside the first plans and move nothing in them. Raises `InfeasibleError` where no chip has a plan;
    `UsageError` and `UnknownNameError` for bad input.
    """
    found = load_generating(model, precision, kv)
    check_length(found, workload.context)
    tactics = tactics or Tactics()
    workload = tactics.drawn(workload)
    context = Context(
        found,
        workload,
        parameters or shipped_parameters(),
        today or day(),
        None if have else pricing or Pricing(),
        policy or {},
        tactics,
    )
    limits = limits or Limits(max_devices=8 if workload.task == "local" else 64)
    limits = replace(limits, have=dict(have or {}))
    wanted = [find_chip(c, changes) for c in have or chips or _everything(workload)]
    if not (have or chips) and workload.task != "local":
        limits = replace(limits, few=frozenset(c.id for c in wanted if _at_home(c.id)))
    local = workload.task == "local"
    # on a few machines of one's own any software may be tried; the whole market is searched with its usual one
    effort: Effort = "named" if chips else "market"
    if runtime == BEST or local or have:
        effort = "best" if runtime == BEST else "own"

    def searched(context: Context, limits: Limits) -> tuple[Found, list[RefusalRecord]]:
        """What the search finds for the model in one number format, and what cannot run it at all."""
        offered, refused = deployments(
            context.found.graph.model,
            wanted,
            None if runtime == BEST else runtime,
            local=local,
            policy=policy,
            every=effort != "market",
        )
        able, unable = context.tactics.on(offered, context.found.graph)
        prices = {d.chip.id: context.basis(d.chip.id) for d in able}
        never = [RefusalRecord(c.id, r.name, why) for c, r, why in refused]
        return search(context, able, limits, prices, effort), never + unable

    result, never = searched(context, limits)
    unmet, rejected = list(result.refusals.values()), result.rejected
    narrow = None
    if (
        precision is None
        and not local
        and found.graph.model.precision.base.name == found.graph.model.precision.name
    ):
        other = load_generating(model, NARROWER, kv)
        narrow = replace(context, found=replace(other, notes=found.notes))
        shorter, _ = searched(narrow, limits)
        result.considered += shorter.considered
        cheaper = {
            chip: choice
            for chip, choice in shorter.choices.items()
            if chip not in result.choices or before(choice, result.choices[chip], EQUAL)
        }
    if not result.choices and not (narrow and cheaper):
        dearer = None
        if limits.max_usd_per_h is not None:
            free, _ = searched(context, replace(limits, max_usd_per_h=None))
            priced = [p for p in _records(context, free) if p.price]
            dearer = min(priced, key=lambda p: p.price.mid if p.price else 0.0, default=None)
        raise no_plan(found.graph.model.name, workload, rejected, unmet, never, dearer)
    stored = _records(context, result)
    plans = list(stored)
    if narrow and cheaper:
        shorter.choices = cheaper
        converted = [replace(p, note=_noted(p.note), converted=True) for p in _records(narrow, shorter)]
        first = rank_plans(stored, workload)[:1]
        plans = [
            p for p in stored if p.chip not in cheaper or (first and p.chip == first[0].chip)
        ] + converted
    del rejected[Reason.OK]
    if curve is not None:
        plans = [replace(p, day=_day(p, curve, workload)) for p in plans]
    described = model_record(found.graph, found.config)
    ranked = rank_plans(plans, workload)
    return PlanReport(
        model=described,
        workload=workload_record(workload),
        plans=beside_published(ranked, described, workload, context.today) if evidence else ranked,
        refused=(*never, *(refusal_record(r, workload) for r in unmet)),
        considered=result.considered,
        rejected={reason.value: n for reason, n in rejected.most_common()},
        assumptions=(
            *context.assumptions(plans),
            *told(changes),
            RUNTIMES[effort],
            f"at most {limits.max_devices} devices per replica (SRAM only: more)",
            *([f"at most {FEW} of a card made for desks (--chips NAME: more)"] if limits.few else []),
        ),
    )


def _noted(note: str) -> str:
    return "; ".join(
        filter(None, (note, f"{NARROWER} in place of the checkpoint's format: quality not assessed"))
    )


def _at_home(chip: str) -> bool:
    """Whether no server holds it: a card made for desks."""
    forms = {s.form for s in systems_for(chip)}
    return bool(forms) and forms <= LOCAL_FORMS


def _records(context: Context, found: Found) -> list[PlanRecord]:
    return [record for choices in found.together() for record in operate(context, choices)]


def _day(p: PlanRecord, curve: RateCurve, workload: Workload) -> Day:
    """The plan under a day's arrivals."""
    carrying = p.replicas - p.spare
    usd = p.price.mid / p.replicas if p.price else float("nan")
    return over_day(
        curve, p.largest_requests_per_s / carrying, p.replicas, usd, workload.output_tokens, p.spare
    )


def _everything(workload: Workload) -> list[str]:
    """All chips on the market; for a local user those that are in machines one has at home or at a desk."""
    market = [chip.id for chip in load_chips().values() if chip.rentable]
    if workload.task != "local":
        return market
    return [c for c in market if any(s.form in LOCAL_FORMS for s in systems_for(c))]
