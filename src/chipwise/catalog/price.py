"""What a machine costs: renting, owning.

**The offer that is picked.** A plan has one price: that of one offer, of a provider, a region and a day. Each
provider asks for `n` chips what its cheapest offer costs in whole machines; cheapest first, the plan takes the
offer that a quarter of the providers undercut (`undercut`), so neither a teaser nor a list price that nobody has
to pay decides. Whoever forces more than `forced` times the chips is not counted in that quarter: a market that
rents whole nodes does not make one chip dear where single ones are for rent. A marketplace undercuts, but is not
picked: it names its cheapest machine, of which nobody can order many. Where marketplaces alone rent a chip, the
offer in the middle is taken, the dearer of two. The range is over the providers that are counted. `plan`,
`explain`, `compare` and `train` all ask here.

**The rule that splits dollars per hour over tokens.** A machine is paid by the hour, tokens are sold in two
kinds. Each kind pays for the machine seconds spent on it: input tokens for prefill, output tokens for decode;
time that serves neither (waiting, bubbles) is borne in the same proportion: `split_usd_per_million`. The
tokens of an hour sum to the price of the hour.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.chip import Grade, Provenance, Source
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.offer import MARKETPLACES, Offer, counted, load_offers, offers_of
from chipwise.catalog.parsed import parse
from chipwise.catalog.preferences import preferences
from chipwise.catalog.regions import load_regions, region_of
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.system import load_systems
from chipwise.errors import UnknownNameError, UsageError
from chipwise.units import Array, Real
from chipwise.values import dataclass

HOURS_PER_YEAR = 8760.0
HOURS_PER_MONTH = HOURS_PER_YEAR / 12.0


class NoPriceError(UsageError):
    """No price was read for what was asked; the user can give one."""


@dataclass(frozen=True, slots=True)
class Hour:
    """Dollars per hour of all chips of a plan: of the offer picked, the lowest and the highest of the providers that
    count, the chips that are paid for, and the place of the offer among the quotes. Numbers, or arrays that
    broadcast."""

    low: Real
    mid: Real
    high: Real
    billed: Real
    offer: Real = 0


@dataclass(frozen=True)
class Rent:
    """Renting from `quotes`, offers with a price that count on the day; `stale`: none of them is surely recent.
    `spot`: at their spot price. `wanted`: the region that was asked for, where none of them is there."""

    chip: str
    quotes: tuple[Offer, ...]
    stale: bool
    spot: bool = False
    wanted: str = ""

    def hour(self, chips: Real, group: Real = 1) -> Hour:
        """What `chips` cost an hour, in whole machines, where every `group` of them shares one machine.

        Machines of an offer: ceil(chips / (whole groups that one holds x group)); of an offer priced per chip:
        ceil(chips / smallest order) orders. An offer whose machine is smaller than a group is not counted, unless
        none is larger. Each provider stands for itself by its cheapest offer. The rule of the pick stands at the
        head of this module: with k providers who have an offer that bills at most `forced` x chips or are marketplaces,
        of which there are m, the offer number (k - 1) // `undercut` - m from the cheapest of the others, at least the
        cheapest; of marketplaces alone number m // 2. More whole groups never cost less: every bill grows, and so
        does k. Broadcasts.
        """
        n, g = np.broadcast_arrays(np.asarray(chips, dtype=np.float64), np.asarray(group, dtype=np.float64))
        if n.ndim == 0:
            return Hour(*self._asked([(n.item(), g.item())])[0])
        return Hour(*self._hours(n, g))

    def _hours(self, n: Array, g: Array) -> tuple[Array, ...]:
        """The columns of `hour`."""
        p = preferences()
        columns = (-1, *(1,) * n.ndim)
        size, usd, holds_any, marketplace = (column.reshape(columns) for column in self._columns)
        small = ~holds_any & (size < g)
        small &= ~np.all(small, axis=0)
        used = np.where(holds_any | (size < g), size, np.floor(size / g) * g)
        billed = np.ceil(n / used * (1.0 - 1e-12)) * size
        cost = np.where(small, np.inf, billed * usd)
        best = np.array([rows[np.argmin(cost[rows], axis=0)] for rows in self._of_provider])
        bills = np.take_along_axis(cost, best, axis=0)
        near = np.isfinite(cost) & (billed <= p.forced * n)
        market = marketplace & np.isfinite(bills)
        modest = market | np.array([near[rows].any(axis=0) for rows in self._of_provider])
        sold = np.isfinite(bills) & ~market
        some, counted_in = sold.any(axis=0), modest.sum(axis=0)
        under = np.maximum(counted_in - 1, 0) // int(p.undercut) - market.sum(axis=0)
        last = np.where(some, sold.sum(axis=0), np.isfinite(bills).sum(axis=0)) - 1
        place = np.clip(np.where(some, under, counted_in // 2), 0, last)
        order = np.argsort(np.where(sold | ~some, bills, np.inf), axis=0, kind="stable")
        picked = np.take_along_axis(order, place[None], axis=0)
        mid = np.take_along_axis(bills, picked, axis=0)[0]
        offer = np.take_along_axis(best, picked, axis=0)
        paid = np.take_along_axis(billed, offer, axis=0)[0]
        wide = np.where(modest.any(axis=0), modest, np.isfinite(bills))
        high = np.maximum(np.where(wide, bills, 0.0).max(axis=0), mid)
        return bills.min(axis=0), mid, high, paid, offer[0]

    def paid(self, chips: Array, group: Array) -> Array:
        """Middle dollars per hour and billed chips [2, N] of `hour`: candidates share these, and each pair is worked
        out once."""
        found = self._asked(list(zip(chips.tolist(), group.tolist(), strict=True)))
        return np.array([(mid, billed) for _, mid, _, billed, _ in found]).reshape(-1, 2).T

    def _asked(self, pairs: Sequence[tuple[float, float]]) -> list[tuple[float, ...]]:
        """The columns of `hour` of so many chips in such groups, numbers: what was asked is remembered."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            columns = self._hours(*np.array(new).T)
            self._known.update(zip(new, zip(*(c.tolist() for c in columns), strict=True), strict=True))
        return [self._known[pair] for pair in pairs]

    @cached_property
    def _known(self) -> dict[tuple[float, float], tuple[float, ...]]:
        """A memory of what was asked."""
        return {}

    def _usd(self, offer: Offer) -> float:
        """Dollars per hour and chip."""
        return (offer.spot_usd_per_chip_h if self.spot else offer.usd_per_chip_h) or 0.0

    @cached_property
    def least_usd(self) -> float:
        """Dollars per hour that no chip costs less than, however many there are."""
        return min(map(self._usd, self.quotes))

    @cached_property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        """Of every quote chips of the smallest order, dollars and whether it holds any number of chips; of every
        provider whether it is a marketplace."""
        return (
            np.array([float(o.smallest) for o in self.quotes]),
            np.array([self._usd(o) for o in self.quotes]),
            np.array([o.holds_any for o in self.quotes]),
            np.array([p in MARKETPLACES for p in self.providers]),
        )

    @cached_property
    def _of_provider(self) -> tuple[NDArray[np.intp], ...]:
        """The quotes of every provider."""
        return tuple(np.array([i for i, o in enumerate(self.quotes) if o.provider == p]) for p in self.providers)

    @property
    def providers(self) -> tuple[str, ...]:
        """Who offers it, in the order of the table."""
        return tuple(dict.fromkeys(offer.provider for offer in self.quotes))


@dataclass(frozen=True, slots=True)
class OwnCosts:
    """Owning chips with the machines that hold them, of which `together` are bought at once. The meaning of the other
    figures of an hour: `own_usd_per_h`; of the purchase: `purchase`.

    `assumed` names the figures that the user did not give: they are to be printed with the cost. `bare`: the price that
    was read is of cards or modules, without the machines that hold them; a machine holds `per_host` chips.
    """

    capex_usd: float
    power_w: float
    years: float
    utilisation: float
    usd_per_kwh: float
    pue: float
    other_opex_share: float
    idle_power_share: float
    host_share: float = 0.0
    host_usd: float = 0.0
    network_share: float = 0.0
    assumed: tuple[str, ...] = ()
    together: int = 1
    bare: bool = False
    per_host: float = np.inf

    @property
    def least_usd(self) -> float:
        """Dollars per hour that no chip costs less than: none that is known."""
        return 0.0

    def machines(self, chips: Real) -> Real:
        """The machines that hold so many chips. Broadcasts."""
        return np.ceil(np.asarray(chips, dtype=np.float64) / self.per_host * (1.0 - 1e-12))

    def purchase(self, chips: Real) -> Real:
        """Dollars for so many chips: with hosts, where their price is of the bare ones, at `host_share` of it but at
        least `host_usd` a machine; and with `network_share` of all that between several machines. Broadcasts."""
        bought, machines = np.asarray(chips, dtype=np.float64) * self.capex_usd, self.machines(chips)
        hosts = np.maximum(self.host_share * bought, self.host_usd * machines) if self.bare else 0.0
        return (bought + hosts) * np.where(machines > 1, 1.0 + self.network_share, 1.0)

    def usd_per_h(self, chips: Real) -> Real:
        """Dollars per hour of work of so many chips. Broadcasts."""
        return own_usd_per_h(
            self.purchase(chips),
            np.asarray(chips, dtype=np.float64) * self.power_w,
            years=self.years,
            utilisation=self.utilisation,
            usd_per_kwh=self.usd_per_kwh,
            pue=self.pue,
            other_opex_share=self.other_opex_share,
            idle_power_share=self.idle_power_share,
        )

    def hour(self, chips: Real, group: Real = 1) -> Hour:
        """What `chips` cost an hour in whole machines of `together` chips, where every `group` of them shares one; a
        group that no machine holds takes as many machines as it fills."""
        n, g = np.broadcast_arrays(np.asarray(chips, dtype=np.float64), np.asarray(group, dtype=np.float64))
        used = np.where(g > self.together, self.together, np.floor(self.together / g) * g)
        billed = np.ceil(n / used * (1.0 - 1e-12)) * self.together
        usd = np.asarray(self.usd_per_h(billed))
        found = (usd, usd, usd, billed)
        return Hour(*(float(x) if n.ndim == 0 else x for x in found))

    def paid(self, chips: Array, group: Array) -> Array:
        """Dollars per hour and billed chips [2, N] of `hour`."""
        hour = self.hour(chips, group)
        return np.array([hour.mid, hour.billed])


def paid_for(
    hour: Callable[[Array], Array], replicas: Array, alone: Array, *, most: Real = np.inf, spare: Real = 0.0
) -> Array:
    """Replicas of `alone` chips each (NaN: no more are to be had) that the machines hold which so many, with `spare`
    ones beside them, are billed for: what is paid anyhow works too. Never fewer, never more than `most` chips and never
    for more dollars. `hour` has dollars per hour and billed chips [2, N] of so many chips [N], NaN where no price is
    known."""
    chips = alone * (replicas + spare)
    usd, billed = hour(chips)
    with np.errstate(invalid="ignore"):
        more = np.floor(np.minimum(billed, most) / alone) - spare
        idle = more > replicas
        if not idle.any():
            return replicas
        full, _ = hour(np.where(idle, alone * (more + spare), np.nan))
        return np.where(idle & (full <= usd * (1.0 + 1e-9)), more, replicas)


def own_usd_per_h(
    capex_usd: Real,
    power_w: Real,
    *,
    years: Real,
    utilisation: Real,
    usd_per_kwh: Real,
    pue: Real,
    other_opex_share: Real = 0.0,
    idle_power_share: Real = 0.0,
) -> Real:
    """Dollars per hour of work of what was bought for `capex_usd`.

    The purchase is written off evenly over `years`; `other_opex_share` of it is spent every year on space,
    staff and spares. The machine works `utilisation` of all hours and draws `power_w` then,
    `idle_power_share` of that otherwise; the meter reads `pue` times as much. All of it is charged to the
    hours of work. Broadcasts.
    """
    kwh_usd = power_w / 1000.0 * pue * usd_per_kwh
    idle = 1.0 - utilisation
    fixed = capex_usd * (1.0 / years + other_opex_share) / HOURS_PER_YEAR + kwh_usd * idle_power_share * idle
    return fixed / utilisation + kwh_usd


def split_usd_per_million(
    usd_per_h: Real, prefill_s: Real, decode_s: Real, tokens_in: Real, tokens_out: Real, other_s: Real = 0.0
) -> tuple[Real, Real]:
    """Dollars per million input and per million output tokens, by the rule of this module.

    `prefill_s`, `decode_s` and `other_s` are machine seconds in which `tokens_in` and `tokens_out` tokens
    were handled. A kind without tokens costs 0 if no time went to it, else infinity. Broadcasts.
    """
    served = prefill_s + decode_s
    paid_s = served + other_s
    stretch = np.where(np.asarray(served) > 0, paid_s / np.where(np.asarray(served) > 0, served, 1.0), 1.0)
    usd_per_s = usd_per_h / 3600.0 * stretch
    into = _per_token(usd_per_s * prefill_s, tokens_in) * 1e6
    out = _per_token(usd_per_s * decode_s, tokens_out) * 1e6
    return into, out


def _per_token(usd: Real, tokens: Real) -> Real:
    """usd / tokens where there are tokens; 0 for no cost over no tokens, infinity for a cost over none."""
    cost, count = np.asarray(usd, dtype=np.float64), np.asarray(tokens, dtype=np.float64)
    some = count > 0
    each = np.where(some, cost / np.where(some, count, 1.0), np.where(cost > 0, np.inf, 0.0))
    return float(each) if each.ndim == 0 else each


def _product(chip_id: str) -> str:
    """The chip without its option: offers name products."""
    return chip_id.partition(":")[0]


def rent_basis(
    chip_id: str, today: dt.date, *, providers: tuple[str, ...] = (), regions: tuple[str, ...] = (), spot: bool = False
) -> Rent:
    """Renting a chip: the offers that count on the day `today`.

    `providers`, `regions` (none: all) and `spot` narrow the offers. Raises `UsageError` where no offer states a price,
    saying to give one; `UnknownNameError` for an unknown chip.
    """
    chip = get_chip(chip_id).id
    found = _offered(chip, today, spot) if not (providers or regions) else _rent(chip, today, providers, regions, spot)
    if not found.quotes:
        what = " ".join(filter(None, (chip, "spot" * spot, " or ".join(providers), " or ".join(regions))))
        raise NoPriceError(f"no offer states a price for {what}", "give what you pay: --price-of CHIP=USD")
    return found


def _rent(chip: str, today: dt.date, providers: tuple[str, ...], regions: tuple[str, ...], spot: bool) -> Rent:
    asked = (
        o
        for o in offers_of(_product(chip))
        if (not providers or o.provider in providers) and (not regions or set(regions) & set(o.regions))
    )
    quotes, stale = counted(asked, today, spot=spot)
    return Rent(chip, quotes, stale, spot)


@per_snapshot
def _offered(chip: str, today: dt.date, spot: bool) -> Rent:
    """Renting from anybody, anywhere: what most questions ask, several times each."""
    return _rent(chip, today, (), (), spot)


@dataclass(frozen=True, slots=True)
class PriceRange:
    """What one chip costs on demand, in US dollars per hour, over the offers that count (`counted`).

    `picked` is what a plan of one chip takes; `low` and `high` span all offers, per chip. `oldest` and `newest` are
    dates as known, "" if no offer has one.
    """

    chip: str
    low: float
    picked: float
    high: float
    providers: int
    offers: int
    oldest: str
    newest: str
    stale: bool


@per_snapshot
def price_range(chip_id: str, today: dt.date) -> PriceRange | None:
    """The on-demand range of a chip on the day `today`; None where no offer has a price."""
    quotes, stale = counted(offers_of(chip_id), today)
    if not quotes:
        return None
    rent = Rent(chip_id, quotes, stale)
    prices = [o.usd_per_chip_h or 0.0 for o in quotes]
    hour = rent.hour(1)
    dated = [(o.earliest_day, o.date) for o in quotes if o.earliest_day is not None]
    return PriceRange(
        chip=chip_id,
        low=min(prices),
        picked=float(hour.mid) / float(hour.billed),
        high=max(prices),
        providers=len(rent.providers),
        offers=len(quotes),
        oldest=min(dated)[1] if dated else "",
        newest=max(dated)[1] if dated else "",
        stale=stale,
    )


def _same_part(regions: Collection[str], of: str) -> set[str]:
    """Those regions that lie in the part of the world that a region lies in."""
    place = region_of(of)
    return {r for r in regions if place and (there := region_of(r)) and there.part == place.part}


@dataclass(frozen=True)
class Pricing:
    """How a user pays for chips: `rent` on demand, `spot`, or `own`; one choice for a whole plan.

    `provider` (several: separated by commas) and `region` narrow offers; `figures` replaces those of owning by name:
    `capex_usd` of a chip, `power_w`, `years`, `utilisation`, `usd_per_kwh`, `pue`, ... `given` are the user's own
    prices, dollars per chip and hour by name of the chip: they stand before all offers. For a region in which a
    provider states no price its nearest one stands in, in the same part of the world where any has one there
    (`regions`); a part of the world (`europe`) is all regions in it.

    Raises `UnknownNameError` for a provider without offers, a region that no cloud has or that is misspelt, or an
    unknown chip with a price."""

    kind: Literal["rent", "spot", "own"] = "rent"
    provider: str = ""
    region: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    given: Mapping[str, float] = field(default_factory=dict)
    regions: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        mine = self.providers
        if self.region:
            object.__setattr__(self, "regions", self._regions(mine))
        own = {get_chip(name).id: usd for name, usd in self.given.items()}
        object.__setattr__(self, "given", own)

    def _regions(self, mine: Collection[str]) -> tuple[str, ...]:
        """The regions whose prices count: the one that was asked for, all in a part of the world; of a region in which
        the providers state no price, those in its part, else all."""
        known = {region for o in load_offers() if not mine or o.provider in mine for region in o.regions}
        place = region_of(self.region)
        if self.region in known and not (place and place.whole):
            return (self.region,)
        near = _same_part(known, self.region)
        typed = {_letters(region) for region in known}
        if place is None or (place.whole and not near) or _letters(self.region) in typed - {self.region}:
            raise self._nowhere(known)
        return tuple(sorted(near or known))

    def _nowhere(self, regions: set[str]) -> UnknownNameError:
        """That no region has that name, or no price is known there: where there are prices, the nearest names first,
        and who has some in the same part of the world."""
        mine, place = set(self.providers), region_of(self.region)
        others = (o for o in load_offers() if o.provider not in mine)
        near = {f"{o.provider} {region}" for o in others for region in _same_part(o.regions, self.region)}
        named = sorted(r for r in regions if region_of(r))
        said = [f"known are {', '.join(named)}"] if named else []
        said += [f"in {place.part}: {', '.join(sorted(near))}"] if near and place else []
        kind = f"price of {' or '.join(self.providers)} in" if mine else "region"
        known = regions if mine else {*regions, *load_regions()}
        return UnknownNameError(kind, self.region, known, "; ".join([*said, "without --region: anywhere"]))

    def otherwise(self) -> Pricing:
        """Renting for one who buys, at the user's own prices too; buying for one who rents."""
        if self.kind == "own":
            return replace(self, kind="rent")
        return Pricing("own", figures=self.figures)

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers that are asked, a name that several begin with (`runpod`) standing for all of those; none: all.
        Raises `UnknownNameError`."""
        found: dict[str, None] = {}
        for name in filter(None, (part.strip().lower() for part in self.provider.split(","))):
            known = {o.provider for o in load_offers()}
            meant = sorted(k for k in known if k == name or k.startswith(f"{name}-"))
            if not meant:
                raise UnknownNameError("provider", name, known, "see chipwise offers")
            found |= dict.fromkeys([name] if name in known else meant)
        return tuple(found)

    def basis(self, chip_id: str, today: dt.date) -> Rent | OwnCosts | None:
        """What a chip costs this user; None where no price is known.

        Raises `UsageError` for a figure of owning that makes no sense or does not exist.
        """
        if chip_id in self.given:
            usd = self.given[chip_id]
            own = Offer("your price", "per chip", chip_id, 1, None, None, usd, usd, "", today.isoformat(), "", unit=1)
            return Rent(chip_id, (own,), stale=False)
        if chip_id not in load_chips():
            return None
        try:
            if self.kind == "own":
                return own_basis(chip_id, **self.figures)
            spot = self.kind == "spot"
            found = rent_basis(chip_id, today, providers=self.providers, regions=self.regions, spot=spot)
        except NoPriceError:
            return None
        return self._nearest(found)

    def _nearest(self, found: Rent) -> Rent:
        """Of each provider without a price in the region that was asked for its nearest one: in the same part of the
        world, which `regions` are then in, by the distance on the sphere."""
        place = region_of(self.region)
        if not self.region or self.region in self.regions or place is None or place.whole:
            return found

        def far(region: str) -> float:
            return place.km(region_of(region))

        nearest = [min(filter(self.regions.__contains__, o.regions), key=far) for o in found.quotes]
        least: dict[str, float] = {}
        for offer, region in zip(found.quotes, nearest, strict=True):
            least[offer.provider] = min(least.get(offer.provider, np.inf), far(region))
        quotes = tuple(
            replace(offer, region=region)
            for offer, region in zip(found.quotes, nearest, strict=True)
            if far(region) == least[offer.provider]
        )
        return replace(found, quotes=quotes, wanted=self.region)


def _letters(region: str) -> str:
    """A region without the dashes by which clouds write it differently."""
    return region.replace("-", "")


def own_basis(
    chip_id: str, capex_usd: float | None = None, power_w: float | None = None, **replaced: float
) -> OwnCosts:
    """Owning one chip: the user's figures first, then the catalogue's, then the stated assumptions.

    `replaced` may hold years, utilisation, usd_per_kwh, pue, other_opex_share, idle_power_share, wall_power_ratio,
    host_share, host_usd and network_share. Without `capex_usd`, which is with its share of hosts and network, the price
    read for a whole machine is taken, and it is bought whole, else of the card (`capex_for`), of modules a board;
    without `power_w` the chip's TDP times `wall_power_ratio`, for its share of the host. `assumed` names what was not
    given. Raises `UsageError` where neither is known, for an unknown or
    senseless figure, and `UnknownNameError` for an unknown chip.
    """
    chip = get_chip(chip_id)
    given = {"capex_usd": capex_usd, "power_w": power_w, **replaced}
    together, bare, per_host = _bought(chip.id) if capex_usd is None else (1, False, np.inf)
    capex_usd = capex_for(chip.id).usd_per_chip if capex_usd is None else capex_usd
    figures = _assumed(replaced)
    plugs = figures.pop("wall_power_ratio")
    if power_w is None and chip.tdp_w is None:
        raise NoPriceError(f"the power of {chip.id} is not published", "give the watts that it draws at work")
    watts = (chip.tdp_w or 0.0) * plugs if power_w is None else power_w
    bounds = {"utilisation": (0.0, 1.0), "pue": (1.0, 10.0), "years": (0.0, 50.0)}
    checked = {"capex_usd": capex_usd, "power_w": watts, **figures}
    for name, value in checked.items():
        low, high = bounds.get(name, (0.0, 1e12))
        if not low <= value <= high or (value == 0 and name in ("utilisation", "years")):
            raise UsageError(f"{name} of {value:g} makes no sense", f"more than {low:g}, at most {high:g}")
    assumed = tuple(name for name in checked if given.get(name) is None)
    return OwnCosts(**checked, assumed=assumed, together=together, bare=bare, per_host=per_host)


def _assumed(replaced: Mapping[str, float]) -> dict[str, float]:
    """The figures of owning, those that the user gave in place of what is assumed."""
    figures = {name: assumption.value for name, assumption in load_assumptions().items()}
    for name in replaced:
        if name not in figures:
            raise UsageError(f"owning has no figure '{name}'", f"one of {', '.join(figures)}")
    return figures | dict(replaced)


def _bought(chip_id: str) -> tuple[int, bool, float]:
    """How many chips are bought at once: a whole machine where its price was read, and the board of modules that a
    fabric joins, which nobody sells one by one; whether that comes without a machine; and how many one holds, of cards
    as many as the largest that is known."""
    found, systems = capex_for(chip_id), load_systems().holding(chip_id)
    if found.covers == "machine":
        return found.chips, False, found.chips
    boards = [s.chips_per_host for s in systems if any(t.fabric in BOARDS for t in s.tiers)]
    most = max((s.chips_per_host for s in systems), default=1)
    return min(boards, default=1), True, min(boards, default=most)


BOARDS = frozenset(("nvswitch", "switched", "mesh", "partial-mesh", "ring", "torus2d", "torus3d"))
"""Fabrics of modules that share a board or a rack; cards of `pcie`, `bridge` and `socket` are sold one by one."""
PAST = "not a current price"
"""The doubt of list prices at launch."""


def capex_for(chip_id: str) -> Capex:
    """The purchase price that was read for a chip: of a whole machine where there is one, else of the card; new before
    used, then the newest. Launch prices count only where there is no other; an option without a price of its own
    (`m4-max:64gb`) costs what the product does.

    Raises `UsageError` where none was read, saying to give one; `UnknownNameError` for an unknown chip.
    """
    chip = get_chip(chip_id).id
    found = [entry for entry in load_capex() if entry.chip in (chip, _product(chip))]
    if not found:
        raise NoPriceError(f"no purchase price was read for {chip}", "give what you pay for it in USD")
    return max(found, key=lambda e: (e.chip == chip, e.doubt != PAST, e.covers == "machine", e.kind == "new", e.date))


@dataclass(frozen=True, slots=True)
class Assumption:
    """A stated default of owning, and where it comes from."""

    value: float
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Capex:
    """A purchase price that was read, for `chips` chips: `card` alone, or the whole `machine`, whose `chip` may be
    parts with a size of memory (`machine.parse_machine`); `doubt` says what speaks against it ("" = nothing known)."""

    item: str
    chip: str
    chips: int
    covers: Literal["card", "machine"]
    usd: float
    low_usd: float
    high_usd: float
    kind: Literal["new", "used"]
    date: str
    doubt: str
    provenance: Provenance

    @property
    def usd_per_chip(self) -> float:
        """The price of one chip."""
        return self.usd / self.chips


@per_snapshot
def load_assumptions() -> Mapping[str, Assumption]:
    """The stated defaults of owning, by name."""
    document = _ownership()
    return MappingProxyType(
        {
            name: Assumption(float(row["value"]), _provenance(row, document))
            for name, row in document["assumptions"].items()
        }
    )


@per_snapshot
def load_capex() -> tuple[Capex, ...]:
    """All purchase prices that were read, in the order of the table."""
    return tuple(
        Capex(
            item=row["item"],
            chip=row["chip"],
            chips=int(row["chips"]),
            covers="machine" if row["covers"] == "machine" else "card",
            usd=float(row["usd"]),
            low_usd=float(row["low_usd"]),
            high_usd=float(row["high_usd"]),
            kind="used" if row["kind"] == "used" else "new",
            date=row["date"],
            doubt=row["doubt"],
            provenance=Provenance(
                (Source(row["source"], row["date"] or None),), cast(Grade, row["grade"]), row["note"]
            ),
        )
        for row in csv.DictReader(io.StringIO(shipped_text("catalog/data/purchases.csv")))
    )


@per_snapshot
def _ownership() -> dict[str, Any]:
    return parse(shipped_text("catalog/data/ownership.toml"))


def _provenance(row: Mapping[str, Any], document: Mapping[str, Any]) -> Provenance:
    listed = (document["sources"][key] for key in row["sources"])
    return Provenance(tuple(Source(s["ref"], s.get("date")) for s in listed), row["grade"], row.get("note", ""))
