"""To rent, to own or to call an API: what tokens of a model cost from vendors, and what each way costs a month."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal

from chipwise.catalog.offer import age_days
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import HOURS_PER_MONTH, Pricing, Rent, own_basis
from chipwise.catalog.token_prices import ApiPrice, load_api_vendors, token_prices_of
from chipwise.errors import UsageError
from chipwise.report.assemble import price_record, rank_plans
from chipwise.report.decision import ApiRecord, DecisionRecord, OwningRecord, RentalRecord
from chipwise.report.media import MediaPlan
from chipwise.report.plan import Plan
from chipwise.report.plans import PlanRecord
from chipwise.report.records import PriceRecord
from chipwise.report.simulated import FollowingRecord
from chipwise.workload.workload import Workload

SECONDS_PER_DAY = 86400.0


def apis(
    first: PlanRecord | MediaPlan | None, model: str, workload: Workload, today: date, providers: Collection[str] = ()
) -> tuple[ApiRecord, ...]:
    """What tokens of the same weights cost from an API, cheapest first, and the rate above which the first plan costs
    less: its dollars per hour over those of a request, None where that is more than it serves, or there is no plan. Of
    these `providers` (none: of all) prices that are not stale, older ones where there is no other; none of a vendor
    that has ended the model, or does not read prompts of that length."""
    if workload.task == "local":
        return ()
    length = workload.prompt_tokens + workload.output_tokens
    sold = [
        p
        for p in token_prices_of(model)
        if (not providers or p.provider in providers)
        and not (p.deprecation_date and p.deprecation_date <= today.isoformat())
        and (p.max_input_tokens is None or length <= p.max_input_tokens)
    ]
    fresh = [p for p in sold if p.age_days(today) <= preferences().stale_days]
    found = (_record(p, first, workload, today) for p in fresh or sold)
    return tuple(sorted(found, key=lambda api: (api.usd_per_request, api.provider, api.model)))


def _record(price: ApiPrice, first: PlanRecord | MediaPlan | None, w: Workload, today: date) -> ApiRecord:
    usd, vendor = _per_request(price, w), load_api_vendors().get(price.provider)
    even = None if first is None or first.price is None else first.price.mid / 3600.0 / usd
    even = None if first is None or even is None or even > first.largest_requests_per_s else even
    return ApiRecord(
        provider=price.provider,
        model=price.model,
        usd_per_million_in=price.input_usd_per_million,
        usd_per_million_out=price.output_usd_per_million,
        usd_per_request=usd,
        usd_per_h=None if w.rate_per_s is None else 3600.0 * w.rate_per_s * usd,
        break_even_per_s=even,
        chip=price.chip,
        base_url=vendor.base_url if vendor else "",
        key=vendor.key if vendor else "",
        page=price.page or (vendor.page if vendor else ""),
        date=price.date,
        age_days=price.age_days(today),
        source=price.source,
        licence=price.licence,
        usd_per_million_cached=price.cached_usd_per_million if w.prefix else None,
    )


def _per_request(price: ApiPrice, w: Workload) -> float:
    cached = w.prefix.cached_share * w.prompt_tokens if w.prefix else 0.0
    again = price.input_usd_per_million if price.cached_usd_per_million is None else price.cached_usd_per_million
    into = (w.prompt_tokens - cached) * price.input_usd_per_million + cached * again
    return (into + w.output_tokens * price.output_usd_per_million) / 1e6


def decision(
    plans: Sequence[PlanRecord],
    sold: Sequence[ApiRecord],
    pricing: Pricing | None,
    w: Workload,
    today: date,
    otherwise: Callable[[], Sequence[PlanRecord]] = tuple,
    *,
    named: bool = False,
) -> DecisionRecord | None:
    """What `weighed` says of plans for a language model, of those that are paid `otherwise`, and of its tokens from the
    first API of `sold`: machines, where their chips were `named`, or targets that an API, whose speed is not known, may
    miss. None also where neither a rate nor a job was asked, or the first plan keeps no target, or is of
    parts of several kinds."""
    first = plans[0]
    asked = first.job is not None or (w.task == "serve" and w.rate_per_s is not None)
    if not asked or first.parts or not first.keeps_targets(w.confidence):
        return None

    def kept(found: Sequence[PlanRecord]) -> list[PlanRecord]:
        return [p for p in found if not p.parts and p.keeps_targets(w.confidence)]

    others = [] if first.job is not None else kept(rank_plans(list(otherwise()), w))
    decided = weighed(kept(plans), others, called(first, sold, w), pricing, today)
    if decided is None or decided.choice != "api" or not (named or w.exacting):
        return decided
    return replace(decided, choice=decided.machines)


def weighed(
    plans: Sequence[PlanRecord] | Sequence[MediaPlan],
    others: Sequence[PlanRecord] | Sequence[MediaPlan],
    api: float | None,
    pricing: Pricing | None,
    today: date,
) -> DecisionRecord | None:
    """What the first of ranked plans that keep what was asked costs a month rented and owned, and dollars a month of an
    `api` (None: nobody sells it); of a job as long as that runs. None where nothing is paid. `others` are ranked for
    one who owns what is rented, or rents what is owned. An API is chosen where it costs less by more than a change is
    worth naming for, and no provider or region of machines was named. Chips that are owned are in use at all hours, as
    rented ones are, unless the user says less. Beside a rented plan stands the one that is cheapest to own, beside an
    owned one the one that would be rented; of a job the same one, for another job takes other machines. What is rented
    is paid for while it runs where its replicas follow the load."""
    first, job, scaling = plans[0], plans[0].job, plans[0].scaling
    if pricing is None or first.price is None:
        return None
    machines: Literal["own", "rent"] = "own" if pricing.kind == "own" else "rent"
    leased: Plan = others[0] if machines == "own" and others else first
    rent = _rented(leased, pricing, today)
    owned: list[Plan] = [first] if machines == "own" or job is not None else [*plans, *others]
    own = _least_owned(owned, pricing, rent, api)
    share = 1.0 if scaling is None else scaling.share
    run = share * first.price.mid * HOURS_PER_MONTH
    if machines == "own" and own:
        run = own.usd_per_month
    return DecisionRecord(
        choice="api" if _is_called(api, run, pricing) else machines,
        machines=machines,
        api_usd_per_month=api,
        **_rent(rent, today, scaling),
        own=own,
        supply=_supply(first, pricing, today, share),
        job_hours=job.hours.mid if job else None,
        rent_machines="" if rent is None or leased is first else leased.machines,
    )


def _rent(rent: PriceRecord | None, today: date, scaling: FollowingRecord | None) -> dict[str, Any]:
    """What a decision says of renting; with replicas that follow the load also of all of them."""
    if rent is None:
        return {"rent_usd_per_month": None, "rent_date": "", "rent_age_days": None}
    all_on = rent.mid * HOURS_PER_MONTH
    said = {"rent_date": rent.date, "rent_age_days": age_days(rent.date, today)}
    if scaling is None:
        return said | {"rent_usd_per_month": all_on}
    follows = {"all_on_usd_per_month": all_on, "follows": scaling.follows}
    return said | follows | {"rent_usd_per_month": scaling.share * all_on}


IDLE = 2.0
"""times the chips of a plan: what is bought at most. Exact: half of it works."""


def _is_called(api: float | None, run: float, pricing: Pricing) -> bool:
    """Whether dollars a month of an API are less than those that machines `run` for by more than a change is worth
    naming for, where no provider or region of machines was named."""
    named = pricing.provider or pricing.region
    return not (api is None or named) and api <= run * (1.0 - preferences().worth)


def _rented(first: Plan, pricing: Pricing, today: date) -> PriceRecord | None:
    """What the chips of a plan cost for rent, None where no price is known."""
    if pricing.kind != "own":
        return first.price
    return price_record(pricing.otherwise().basis(first.chip, today), first.chips, first.group)


def _supply(first: Plan, pricing: Pricing, today: date, share: float) -> RentalRecord | None:
    """Who rents the chips of a plan, and for how much on the other basis for a share of all hours; None where the user
    named the price, owns the chips, or nobody rents them."""
    rent = pricing.basis(first.chip, today)
    if not isinstance(rent, Rent) or first.chip in pricing.given:
        return None
    otherwise = replace(pricing, kind="rent" if rent.spot else "spot")
    other = price_record(otherwise.basis(first.chip, today), first.chips, first.group)
    usd = None if other is None else share * other.mid * HOURS_PER_MONTH
    return RentalRecord(0 if pricing.provider else len(rent.providers), rent.spot, usd, other.provider if other else "")


def called(first: PlanRecord | MediaPlan, sold: Sequence[ApiRecord], w: Workload) -> float | None:
    """Dollars a month for the tokens of the load from the first API, over a day where the rate follows one, of a job at
    the pace of the plan; None where nobody sells them."""
    rate = first.day.requests_per_day / SECONDS_PER_DAY if first.day else w.rate_per_s
    if first.job is not None and w.job is not None:
        rate = w.job.tokens / w.output_tokens / (3600.0 * first.job.hours.mid)
    return 3600.0 * HOURS_PER_MONTH * rate * sold[0].usd_per_request if sold and rate else None


def _least_owned(
    plans: Sequence[Plan], pricing: Pricing, rent: PriceRecord | None, api: float | None
) -> OwningRecord | None:
    """The plan that costs the least a month to own; its machines are named where they are not those of the first. None
    where more than half of what one buys for it would stand idle."""
    owned = ((p, _owned(p, pricing, rent, api)) for p in plans)
    found = [(p, own) for p, own in owned if own]
    if not found:
        return None
    p, own = min(found, key=lambda pair: pair[1].usd_per_month)
    if pricing.kind != "own" and own.chips > IDLE * p.chips:
        return None
    return own if p.machines == plans[0].machines else replace(own, machines=p.machines)


def _owned(plan: Plan, pricing: Pricing, rent: PriceRecord | None, api: float | None) -> OwningRecord | None:
    """The chips of a plan bought, whole machines where they are sold so; None where no purchase price is known. `api`
    is dollars a month."""
    try:
        each = own_basis(plan.chip, **pricing.figures)
    except UsageError:
        return None
    use, each = each.utilisation, replace(each, utilisation=1.0)
    hour = each.hour(plan.chips, plan.group)
    chips = round(float(hour.billed))
    idle = replace(each, idle_power_share=1.0, power_w=each.power_w * each.idle_power_share)
    idle_h = float(idle.usd_per_h(chips))
    work_h = float(hour.mid) - idle_h

    def above(other_h: float | None) -> float | None:
        """The share of hours in use at which both cost the same: idle_h + share x work_h = share x other_h."""
        return idle_h / (other_h - work_h) if other_h is not None and other_h >= idle_h + work_h else None

    return OwningRecord(
        usd_per_month=(idle_h + use * work_h) * HOURS_PER_MONTH,
        purchase_usd=float(each.purchase(chips)),
        chips=chips,
        used=min(plan.chips, chips),
        power_w=chips * each.power_w,
        years=each.years,
        above_rent=above(rent.mid if rent else None),
        above_api=above(None if api is None else api / HOURS_PER_MONTH),
        assumed=each.assumed,
        hosts=round(float(each.machines(chips))),
        use=use,
    )
