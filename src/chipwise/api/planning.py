"""`plan`: the best plan of every chip for a workload. This page is the architecture in order:

configuration -> model -> graph -> deployments -> candidates -> predictions -> choices -> estimates -> report
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.api.alternatives import apis, levers, published_as
from chipwise.api.context import Context
from chipwise.api.desk import assembled, machine_record
from chipwise.api.infeasible import no_plan, refusal_record
from chipwise.api.loaded import load_generating
from chipwise.api.placing import BEST, Terms
from chipwise.api.published import beside_published
from chipwise.api.searching import RUNTIMES, Effort, Found, search
from chipwise.api.size_fleet import size_fleet
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.machine import DESKS, Machine, parse_machine
from chipwise.catalog.system import systems_for
from chipwise.errors import InfeasibleError, UsageError, shorten
from chipwise.parallel.layout import Reason
from chipwise.predict.fleet import Day, over_day
from chipwise.report.assemble import model_record, rank_plans, workload_record
from chipwise.report.energy import Powered
from chipwise.report.records import ApiRecord, LeverRecord, PlanRecord, PlanReport, RefusalRecord
from chipwise.search.choose import EQUAL, Choice, Refusal
from chipwise.search.deployments import deployments, few_of, machine_for
from chipwise.search.reach import NOWHERE, Reach
from chipwise.search.space import FEW_WORDS, Limits
from chipwise.search.targets import meets
from chipwise.workload.curve import RateCurve
from chipwise.workload.workload import Task, Workload

__all__ = ["Ranked", "fed", "limits_for", "plan", "ranked"]

FORMATS_OF: Mapping[Task, tuple[tuple[str, bool], ...]] = {
    "serve": (("fp8", False), ("int4", True)),
    "batch": (("fp8", False), ("int4", True)),
    "local": (("q8_0", True), ("q4_k_m", True)),
}
"""By task the formats that 16-bit weights are compared with unless one is named, and whether only where no chip has a
plan before. Most runtimes make fp8 while they load; a local user who can run a model as it is does so."""


@dataclass(frozen=True)
class Ranked:
    """Ranked plans, which can be shown already, and what is worked out beside them from what the search has found:
    what would make the first plan cheaper, and tokens from an API."""

    report: PlanReport
    beside: Callable[[], tuple[tuple[LeverRecord, ...], tuple[ApiRecord, ...]]]

    def whole(self) -> PlanReport:
        """The answer with both."""
        levers, apis = self.beside()
        return replace(self.report, levers=levers, apis=apis)


def plan(
    model: str,
    workload: Workload,
    terms: Terms | None = None,
    *,
    chips: Sequence[str] = (),
    limits: Limits | None = None,
    curve: RateCurve | None = None,
    evidence: bool = True,
) -> PlanReport:
    """The best plan of every chip, ranked, with what was refused and why, what would make the first cheaper, and tokens
    from an API. Arguments and errors are those of `ranked`."""
    return ranked(model, workload, terms, chips=chips, limits=limits, curve=curve, evidence=evidence).whole()


def ranked(
    model: str,
    workload: Workload,
    terms: Terms | None = None,
    *,
    chips: Sequence[str] = (),
    limits: Limits | None = None,
    curve: RateCurve | None = None,
    evidence: bool = True,
) -> Ranked:
    """The best plan of every chip, ranked, with what was refused and why.

    `chips` (names or TOML files) or the chips that one has (`limits.have`; they cost nothing) restrict the search.
    A runtime "best" in the terms compares all that can on every chip, as is done for chips that one has and for a
    local user. The arrivals of a day (`curve`) are what a fleet sized for the rate is judged on. With `evidence` the
    nearest published results stand beside the first plans and move nothing in them. Raises `InfeasibleError` where no
    chip has a plan; `UsageError` and `UnknownNameError` for bad input.
    """
    terms = terms or Terms()
    limits = limits or limits_for(workload.task)
    have, runtime = limits.have, terms.runtime
    context = terms.context(model, workload, owned=bool(have))
    found, workload = context.found, context.workload
    machine = _machine(limits, workload, terms)
    wanted = [terms.chip(c) for c in have or chips or _everything(workload)]
    if not (have or chips) and workload.task != "local":
        limits = replace(limits, few=few_of(wanted, context.basis))
    limits = fed(limits, wanted, context.numbers)
    local = workload.task == "local"
    # on a few machines of one's own any software may be tried; the whole market is searched with its usual one
    effort: Effort = "named" if chips else "market"
    if runtime == BEST or local or have:
        effort = "best" if runtime == BEST else "own"

    market = _Market(wanted, None if runtime == BEST else runtime, terms.policy, effort)
    result, never = market.searched(context, limits)
    rejected, stored, considered = result.rejected, _records(context, result), result.considered
    plans, tried = stored, {found.graph.model.precision.name: context}
    for number_format, at_last in FORMATS_OF[workload.task]:
        if not _plain(context, terms) or (at_last and plans):
            break
        narrow = replace(
            context, found=replace(load_generating(model, number_format, terms.kv), notes=found.notes)
        )
        tried[narrow.found.graph.model.precision.name] = narrow
        other, _ = market.searched(narrow, limits)
        plans, considered = _cheaper(plans, result, narrow, other), considered + other.considered
        for chip, refusal in other.refusals.items():
            if chip in result.refusals:
                result.refusals[chip] = result.refusals[chip].closer(refusal)
        rejected = rejected + other.rejected
    if machine is not None:
        together = _jointly(model, workload, terms, machine, tried)
        if isinstance(together, PlanRecord):
            together = _used(together, machine)
            same = {(p.chip, p.runtime, p.precision) for p in plans}
            if (together.chip, together.runtime, together.precision) not in same:
                plans = [*plans, together]
        elif isinstance(together, Refusal):
            result.refusals[machine.name] = together
            rejected = rejected + Counter([together.reason])
        else:
            never.append(together)
    if not plans:
        dearer = None
        if limits.max_usd_per_h is not None or (workload.job and workload.job.max_usd is not None):
            unlimited = replace(limits, max_usd_per_h=None)
            formats = [one.without_budget() for one in tried.values()]
            priced = [
                p for one in formats for p in _records(one, market.searched(one, unlimited)[0]) if p.price
            ]
            dearer = min(priced, key=PlanRecord.usd, default=None)
        raise no_plan(
            found.graph.model.name, workload, rejected, list(result.refusals.values()), never, dearer
        )
    del rejected[Reason.OK]
    if curve is not None:
        plans = [replace(p, day=_day(p, curve, workload)) for p in plans]
    described = model_record(found.graph, found.config)
    in_order = rank_plans(plans, workload)
    first = in_order[0]
    its = next((c for c in wanted if c.id == first.chip), None)
    alone = replace(market, chips=[its] if its else [])

    def again(changed: Context) -> list[PlanRecord]:
        return _records(changed, alone.searched(changed, limits)[0])

    def beside() -> tuple[tuple[LeverRecord, ...], tuple[ApiRecord, ...]]:
        changes = levers(first, its, tried[first.precision], model, again) if its else ()
        return changes, apis(first, described.name, workload, context.today)

    planned = {p.chip for p in plans}
    as_stored = rank_plans(stored, workload)[:1] if first.converted else ()
    report = PlanReport(
        model=described,
        workload=workload_record(workload),
        plans=beside_published(in_order, described, workload, context.today) if evidence else in_order,
        refused=(
            *never,
            *(refusal_record(r, workload) for c, r in result.refusals.items() if c not in planned),
        ),
        considered=considered,
        rejected={reason.value: n for reason, n in rejected.most_common()},
        assumptions=(
            *context.assumptions(plans),
            *terms.said,
            RUNTIMES[effort],
            f"at most {limits.max_devices} devices per replica (SRAM only: more)",
            *(
                [f"at most {limits.max_watts:,.0f} W at the plugs with every chip at its power limit"]
                if limits.max_watts
                else []
            ),
            *([FEW_WORDS] if limits.few else []),
        ),
        as_stored=as_stored[0] if as_stored else None,
        owned=bool(have),
    )
    return Ranked(report, beside)


@dataclass(frozen=True)
class _Market:
    """The chips that are searched, and under which runtime (None: `effort` says which)."""

    chips: Sequence[Chip]
    runtime: str | None
    policy: Mapping[str, str]
    effort: Effort

    def searched(self, context: Context, limits: Limits) -> tuple[Found, list[RefusalRecord]]:
        """What the search finds for the model in one number format, and what cannot run it at all."""
        offered, refused = deployments(
            context.found.graph.model,
            self.chips,
            self.runtime,
            local=context.workload.task == "local",
            policy=self.policy,
            every=self.effort != "market",
        )
        able, unable = context.tactics.on(offered, context.found.graph)
        prices = {d.chip.id: context.basis(d.chip.id) for d in able}
        never = [RefusalRecord(c.id, r.name, why) for c, r, why in refused]
        return search(context, able, limits, prices, self.effort), never + unable


def _machine(limits: Limits, workload: Workload, terms: Terms) -> Machine | None:
    """The machine of a local user who has parts of several kinds, or memory beside cards; None for one kind of chip."""
    if workload.task != "local" or not limits.have:
        return None
    text = "+".join(f"{n}x{chip}" for chip, n in limits.have.items())
    found = parse_machine(text, limits.host_memory, terms.part)
    return None if found.alone else found


def _jointly(
    model: str, workload: Workload, terms: Terms, machine: Machine, tried: dict[str, Context]
) -> PlanRecord | Refusal | RefusalRecord:
    """The plan on all parts of a machine at once, in the first format that fits and keeps the targets, which is added
    to what was `tried`; else what is in reach where one fits, or why none does."""
    runtime = None if terms.runtime == BEST else terms.runtime
    terms = replace(terms, runtime=runtime)
    stored = next(iter(tried.values()))
    names = (None, *(name for name, _ in FORMATS_OF["local"])) if _plain(stored, terms) else (None,)
    why, reach = "", NOWHERE
    for name in names:
        context = stored
        if name is not None:
            narrow = load_generating(model, name, terms.kv)
            context = replace(stored, found=replace(narrow, notes=stored.found.notes))
        try:
            record = machine_record(context, machine, assembled(context, machine, terms))
        except (InfeasibleError, UsageError) as error:
            why = why or error.what
            continue
        first_s, further_s = record.ttft_s.mid, record.tpot_s.mid if record.tpot_s else 0.0
        if not meets(np.array([[first_s]]), np.array([[further_s]]), workload).all():
            met = workload.ttft_s is None or first_s <= workload.ttft_s
            reach = reach.better(Reach(first_s, further_s, further_s if met else np.inf, 0.0))
            continue
        tried[record.precision] = context
        words = f"{name} in place of the checkpoint's format: quality not assessed"
        note = record.note if name is None else f"{record.note}; {words}"
        return replace(record, note=note, converted=name is not None)
    if reach is not NOWHERE:
        return Refusal(machine.name, Reason.SLO, reach)
    return RefusalRecord(machine.name, Reason.MEMORY.name, why)


def _used(plan: PlanRecord, machine: Machine) -> PlanRecord:
    """The plan of a machine under the names of the parts that hold some of the model; where that is one card, as the
    plan of that card."""
    held = {part.chip for part in plan.parts}
    host = [machine.host.chip.id] if machine.host else []
    idle = [name for name in (*(c.id for c, _ in machine.cards), *host) if name not in held]
    if not idle:
        return plan
    name = "+".join(f"{p.count}x{p.chip}" if p.count > 1 else p.chip for p in plan.parts)
    note = "; ".join(filter(None, (plan.note, f"all of it fits without {', '.join(idle)}")))
    used = replace(plan, chip=name, chips=sum(p.count for p in plan.parts), note=note)
    alone = len(plan.parts) == 1 and plan.parts[0].count == 1
    return (
        replace(used, note=f"all of it fits without {', '.join(idle)}", parts=(), placed=None)
        if alone
        else used
    )


def _plain(context: Context, terms: Terms) -> bool:
    """Whether weights are as the checkpoint has them, and that is 16 bits: other formats may then be tried."""
    return terms.precision is None and context.found.graph.model.precision.is_plain


def _pays(choice: Choice, stored: Choice, context: Context) -> bool:
    """Whether another format keeps the targets where the stored one does not, or is clearly cheaper; being faster alone
    is no reason, nor is spare room on chips that one has."""
    if choice.sure != stored.sure:
        return choice.sure
    if context.pricing is None and context.workload.rate_per_s is not None:
        return False
    mine, its = choice.order[1], stored.order[1]
    return (its - mine) / max(abs(its), abs(mine), 1e-30) > EQUAL


def _cheaper(plans: list[PlanRecord], stored: Found, narrow: Context, other: Found) -> list[PlanRecord]:
    """Plans with those of the `other` format for each chip that is clearly better in it."""
    stored_name = narrow.found.graph.model.name
    cheaper = {
        chip: choice
        for chip, choice in other.choices.items()
        if chip not in stored.choices or _pays(choice, stored.choices[chip], narrow)
    }
    number_format = narrow.found.graph.model.precision.name
    name = published_as(stored_name, number_format)
    made = f", published as {name}" if name else ""
    words = f"{number_format} in place of the checkpoint's format{made}: quality not assessed"
    converted = [
        replace(p, note="; ".join(filter(None, (p.note, words))), converted=True)
        for p in _records(narrow, replace(other, choices=cheaper))
    ]
    return [p for p in plans if p.chip not in cheaper] + converted


def fed(limits: Limits, wanted: Sequence[Chip], numbers: Parameters) -> Limits:
    """The limits with how many of each chip their watts feed, in the machines that hold them; of chips without a
    published power limit none. Raises `InfeasibleError` where not one chip is fed."""
    if limits.max_watts is None:
        return limits
    chips: dict[str, int] = {}
    for chip in wanted:
        system = machine_for(chip)
        each = system.chips_per_host if system else 1
        powered = Powered.of(chip, each, system, numbers)
        chips[chip.id] = powered.machine.fed(limits.max_watts, powered.limit_w, each) if powered else 0
    if not any(chips.values()):
        what = f"{limits.max_watts:,.0f} W at the plugs feed not one of {shorten(', '.join(chips), 60)}"
        raise InfeasibleError(what, "raise --max-watts, or name chips of less power")
    return replace(limits, fed=chips)


def limits_for(task: str) -> Limits:
    """What a plan may use where nothing was said: up to 8 devices of a local user's machine, else 64 a replica."""
    return Limits(max_devices=8 if task == "local" else 64)


def _records(context: Context, found: Found) -> list[PlanRecord]:
    return size_fleet(context, list(found.choices.values()))


def _day(p: PlanRecord, curve: RateCurve, workload: Workload) -> Day:
    """The plan under a day's arrivals."""
    carrying = p.replicas - p.spare
    usd = p.price.mid / p.replicas if p.price else float("nan")
    return over_day(
        curve, p.largest_requests_per_s / carrying, p.replicas, usd, workload.output_tokens, p.spare
    )


def _everything(workload: Workload) -> list[str]:
    """All chips on the market; for a local user those that are in machines one has at home or at a desk."""
    market = list(load_chips().market())
    if workload.task != "local":
        return market
    return [c for c in market if any(s.form in DESKS for s in systems_for(c))]
