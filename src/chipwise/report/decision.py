"""Whether to rent, to own or to call an API: what each costs a month at the load asked for, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import HOURS_PER_MONTH
from chipwise.units import format_number
from chipwise.values import dataclass

Way = Literal["api", "rent", "own"]


@dataclass(frozen=True, slots=True)
class ApiRecord:
    """Tokens of the same weights from an API: dollars per million (cached ones where the load has a prefix that is
    found in a cache, None: at the price of others), per request and, where a rate was asked, per
    hour of it. Above `break_even_per_s` requests the first plan costs less (None: it has no price, or serves
    fewer). `chip`: the vendor's own, "" where it runs others'. `base_url` and `key`: the address, and the variable
    that holds a key. `date`: when the package `source` was released in which the price was read, `age_days` ago.
    Speed and terms are not compared."""

    provider: str
    model: str
    usd_per_million_in: float
    usd_per_million_out: float
    usd_per_request: float
    usd_per_h: float | None
    break_even_per_s: float | None
    chip: str
    base_url: str
    key: str
    page: str
    date: str
    age_days: int
    source: str
    licence: str
    usd_per_million_cached: float | None = None


@dataclass(frozen=True, slots=True)
class OwningRecord:
    """Buying the chips of a plan: dollars a month in `use` for a share of all hours, over `years`; the purchase of
    whole machines with `chips`, of which the plan has `used` (0: not told), `hosts` of them (0: the user's price says
    nothing of them), with the network between several; and the watts that they draw at the plugs before cooling.
    `above_rent` and `above_api`: the share of all hours above whose use it costs less than renting, or the API, for as
    many hours (None: it never does, or that has no price). `assumed` names figures that the user did not give.
    `machines`: of another plan, where that is cheaper to own than the first, or the first is not for sale."""

    usd_per_month: float
    purchase_usd: float
    chips: int
    power_w: float
    years: float
    above_rent: float | None
    above_api: float | None
    assumed: tuple[str, ...]
    used: int = 0
    machines: str = ""
    hosts: int = 0
    use: float = 1.0


@dataclass(frozen=True, slots=True)
class RentalRecord:
    """Who rents the chips of a plan: `providers` with a price on the basis that was asked, on the spot market or on
    demand (0: the user named them); dollars a month on the other basis at its `other_provider` (None: no price is
    known)."""

    providers: int
    spot: bool
    other_usd_per_month: float | None
    other_provider: str


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """The cheapest of the ways that bind nobody, or `own` where chips were asked to be bought; dollars a month of each
    at the load asked for, None where no price is known. `rent_age_days`: the age of the price of renting, None where it
    is not dated. `job_hours`: how long a job runs, of which these are dollars a month of such jobs one after another
    (None: a load that lasts). `follows`: what rented replicas follow, a day or a log, so that they are paid for while
    they run; `all_on_usd_per_month` is then what all of them cost throughout ("", None: that is what is rented).
    `machines`: how those of the first plan are paid for. `rent_machines`: of the plan that is rented, where that is
    another than the first, which is owned."""

    choice: Way
    api_usd_per_month: float | None
    rent_usd_per_month: float | None
    rent_date: str
    rent_age_days: int | None
    own: OwningRecord | None
    supply: RentalRecord | None = None
    job_hours: float | None = None
    all_on_usd_per_month: float | None = None
    follows: str = ""
    machines: Literal["own", "rent"] = "rent"
    rent_machines: str = ""

    def usd_words(self, usd_per_month: float) -> str:
        """Dollars a month, of a job those of the hours that it runs."""
        return usd_words(usd_per_month * (self.job_hours or HOURS_PER_MONTH) / HOURS_PER_MONTH)

    @property
    def span(self) -> str:
        """What the dollars are paid for."""
        return "for the job" if self.job_hours else "a month"


UNTIMED = "speed is not known here"
"""What is said of an API."""


def decided(decision: DecisionRecord, api: ApiRecord | None, chips: str, hour: str) -> tuple[str, ...]:
    """The sentences that open a plan: what to do and what it costs a month, the other ways, who else rents it. `api`
    is the cheapest; `chips` are the plan's with their software, `hour` what these cost in one."""
    ways = {"rent": _rent(decision), "own": _own(decision), "api": _api(decision, api)}
    usd, what = ways.pop(decision.choice)
    doubts = {"api": f", whose {UNTIMED}"}
    others = "; ".join(f"{usd} {words}{doubts.get(way, '')}" for way, (usd, words) in ways.items() if usd)
    at = "" if decision.job_hours else " at this load"
    spot = ", on the spot market" if decision.supply and decision.supply.spot else ""
    said = {
        "api": f"{_opening(decision)}: {usd} {decision.span}{at}, {what}; its {UNTIMED}.",
        "own": f"{_opening(decision)} {chips}: {usd} {decision.span}{at}, {what}.",
        "rent": f"{_opening(decision)} {chips}: {usd} {decision.span}{at}{_followed(decision)}{spot}, {hour}.",
    }
    verb = "buy" if decision.machines == "own" else "rent"
    own = [f"To run it yourself: {verb} {chips}: {hour}."] if decision.choice == "api" else []
    other = [f"Alternatives: {others}."] if others else []
    return said[decision.choice], *other, *own, *_supply(decision)


def _supply(decision: DecisionRecord) -> Iterator[str]:
    """The other basis of renting beside a spot price, and below one on demand; and that no other provider rents it."""
    supply, rent = decision.supply, decision.rent_usd_per_month
    if supply is None or rent is None:
        return
    other = supply.other_usd_per_month
    words = f"{decision.usd_words(other)} {decision.span} at {supply.other_provider}" if other else ""
    less = other is not None and other <= rent * (1.0 - preferences().worth)
    if supply.spot and words:
        yield f"On demand costs less than spot: {words}." if less else f"On demand: {words}."
    elif less:
        yield f"As spot instances, which may be reclaimed: {words}."
    if supply.providers == 1:
        yield "Only one provider lists a price: check its stock before you rely on it."


def _opening(decision: DecisionRecord) -> str:
    """What to do, and whether owning costs less for a load that lasts."""
    if decision.choice == "own":
        return "Buy"
    called = decision.choice == "api"
    verb = "Call an API" if called else "Rent"
    same = _lasting(decision) and (called or not (decision.own and decision.own.machines))
    return f"{verb}, or buy if the load lasts{'' if called else ','}" if same else verb


def _lasting(decision: DecisionRecord) -> bool:
    """Whether owning costs less for a load that lasts."""
    own = decision.own
    paid = decision.api_usd_per_month if decision.choice == "api" else decision.rent_usd_per_month
    if decision.choice == "own" or decision.job_hours is not None or not own or not paid:
        return False
    return own.usd_per_month <= paid * (1.0 - preferences().worth)


def _followed(decision: DecisionRecord) -> str:
    """What rented replicas follow, and what all of them cost."""
    if decision.all_on_usd_per_month is None:
        return ""
    whole = decision.usd_words(decision.all_on_usd_per_month)
    return f", scaled with the {decision.follows} ({whole} with all replicas always on)"


def _api(decision: DecisionRecord, api: ApiRecord | None) -> tuple[str, str]:
    """Dollars a month, and what they are paid for; ("", "") where no price is known, as in the next two."""
    if api is None or decision.api_usd_per_month is None:
        return "", ""
    return decision.usd_words(
        decision.api_usd_per_month
    ), f"{api.model} at {api.provider}{dated(api.date, api.age_days)}"


def _rent(decision: DecisionRecord) -> tuple[str, str]:
    if decision.rent_usd_per_month is None:
        return "", ""
    spot = " on the spot market" if decision.supply and decision.supply.spot else ""
    spot += f" as {decision.rent_machines}" if decision.rent_machines else ""
    priced = dated(decision.rent_date, decision.rent_age_days)
    return decision.usd_words(decision.rent_usd_per_month), f"rented{spot}{_followed(decision)}{priced}"


def _own(decision: DecisionRecord) -> tuple[str, str]:
    own, called = decision.own, decision.choice == "api"
    if own is None:
        return "", ""
    share, less = (own.above_api, "the API") if called else (own.above_rent, "rent")
    paid = decision.api_usd_per_month if called else decision.rent_usd_per_month
    use = f"cheaper than {less} above {share:.0%} use" if share is not None else f"dearer than {less} at any use"
    always = "always in use" if decision.job_hours is None else "with one such job after another"
    always = always if own.use == 1.0 else f"{own.use:.0%} in use"
    figures = [
        f"{usd_words(own.purchase_usd)} for {_bought(own)}",
        f"{own.power_w / 1000.0:.3g} kW at the wall",
        f"over {own.years:g} years",
        *([use] if paid is not None else []),
    ]
    lasts = " if the load lasts" if own.machines and not called and _lasting(decision) else ""
    return decision.usd_words(own.usd_per_month), f"owned{lasts}, {always} ({', '.join(figures)})"


def _bought(own: OwningRecord) -> str:
    """The chips that are bought, with what they stand in."""
    chips = f"{own.chips} chip{'s' if own.chips > 1 else ''}"
    chips = f"{own.machines}, {chips}" if own.machines and own.used < own.chips else own.machines or chips
    chips += f" in {own.hosts} machines with their network" if own.hosts > 1 else " with host" * own.hosts
    return chips + (f", of which {own.used} work" if 0 < own.used < own.chips else "")


def sells(api: ApiRecord) -> str:
    """What a vendor asks for tokens."""
    cached = "" if api.usd_per_million_cached is None else f", ${api.usd_per_million_cached:g} cached"
    out = f", ${api.usd_per_million_out:g} out" if api.usd_per_million_out else ""
    return f"{api.provider} sells {api.model} at ${api.usd_per_million_in:g} in{cached}{out} per million tokens"


def dated(date: str, age_days: int | None) -> str:
    """When a price was read, in brackets, and how long ago where that is long."""
    return f" (price of {date}{age_words(date, age_days)})" if date else " (undated price)"


def age_words(date: str, age_days: int | None) -> str:
    """How old the price of a day, a month or a year is, at most, where that is worth saying."""
    if age_days is None or age_days <= preferences().dated_days:
        return ""
    return f", {'' if len(date) == len('2026-11-20') else 'up to '}{age_days} days old"


def usd_words(usd: float) -> str:
    """Dollars to three digits."""
    return f"${format_number(usd)}" if usd < 1e6 else f"${usd / 1e6:.3g} M"
