"""What a machine or a token costs: renting, owning, buying tokens.

**The rule that splits dollars per hour over tokens.** A machine is paid by the hour, tokens are sold in two
kinds. Each kind pays for the machine seconds spent on it: input tokens for prefill, output tokens for decode;
time that serves neither (waiting, bubbles) is borne in the same proportion: `split_usd_per_million`. Where
only a throughput is known, output tokens bear the whole hour and input tokens are free: `usd_per_million`.
Both ways the tokens of an hour sum to the price of the hour.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.chips import get_chip
from chipwise.catalog.offer import Offer, load_offers
from chipwise.catalog.price_tables import (
    ApiPrice,
    Assumption,
    Capex,
    load_assumptions,
    load_capex,
    load_token_prices,
)
from chipwise.errors import UsageError
from chipwise.units import Real

__all__ = [
    "ApiPrice",
    "Assumption",
    "Capex",
    "Hour",
    "NoPriceError",
    "Own",
    "Rent",
    "capex_for",
    "load_assumptions",
    "load_capex",
    "load_token_prices",
    "own_basis",
    "own_usd_per_h",
    "rent_basis",
    "split_usd_per_million",
    "usd_per_million",
]

HOURS_PER_YEAR = 8760.0


class NoPriceError(UsageError):
    """No price was read for what was asked; the user can give one."""


@dataclass(frozen=True, slots=True)
class Hour:
    """Dollars per hour of all chips of a plan, low, middle and high over providers, and the chips that are
    paid for at the middle one. Numbers, or arrays that broadcast."""

    low: Real
    mid: Real
    high: Real
    billed: Real


@dataclass(frozen=True, slots=True)
class Rent:
    """Renting from `quotes`, offers with a price; and the span of their dates ("" = undated).

    `provider`, `region` and `spot` say which offers were counted ("" = all); `stale`: none of them is surely
    recent. `filled`: machines are full of replicas, so that one pays for its share of them alone.
    """

    chip: str
    quotes: tuple[Offer, ...]
    oldest: str
    newest: str
    stale: bool
    provider: str = ""
    region: str = ""
    spot: bool = False
    filled: bool = False

    def hour(self, chips: Real, group: Real = 1) -> Hour:
        """What `chips` cost an hour, in whole machines, where every `group` of them shares one machine.

        Machines of an offer: ceil(chips / (whole groups that one holds x group)), not rounded up where they are
        `filled`. An offer whose machine is
        smaller than a group is not counted, unless none is larger. Each provider stands for itself by its
        cheapest offer; the middle is the median over providers. Broadcasts.
        """
        n, g = np.broadcast_arrays(np.asarray(chips, dtype=np.float64), np.asarray(group, dtype=np.float64))
        columns = (-1, *(1,) * n.ndim)
        size = np.array([float(o.chips or 1) for o in self.quotes]).reshape(columns)
        usd = np.array([(o.spot_usd_per_h if self.spot else o.usd_per_h) or 0.0 for o in self.quotes])
        holds_any = np.array([o.holds_any for o in self.quotes]).reshape(columns)
        small = ~holds_any & (size < g)
        small &= ~np.all(small, axis=0)
        used = np.where(holds_any | (size < g), size, np.floor(size / g) * g)
        machines = n / used if self.filled else np.ceil(n / used * (1.0 - 1e-12))
        cost = np.where(small, np.inf, machines * usd.reshape(columns))
        groups = [[i for i, o in enumerate(self.quotes) if o.provider == p] for p in self.providers]
        cheapest = np.sort(np.array([cost[rows].min(axis=0) for rows in groups]), axis=0)
        known = np.isfinite(cheapest).sum(axis=0)[None]
        lower, upper, high = (
            np.take_along_axis(cheapest, place, axis=0)[0]
            for place in ((known - 1) // 2, known // 2, known - 1)
        )
        billed = np.where(cost == lower, machines * size, np.inf).min(axis=0)
        found = (cheapest[0], (lower + upper) / 2.0, high, billed)
        return Hour(*(float(x) if n.ndim == 0 else x for x in found))

    @property
    def providers(self) -> tuple[str, ...]:
        """Who offers it, in the order of the table."""
        return tuple(dict.fromkeys(offer.provider for offer in self.quotes))


@dataclass(frozen=True, slots=True)
class Own:
    """Owning one chip with its share of the machine. The meaning of each figure: `own_usd_per_h`.

    `assumed` names the figures that the user did not give: they are to be printed with the cost.
    """

    capex_usd: float
    power_w: float
    years: float
    utilisation: float
    usd_per_kwh: float
    pue: float
    other_opex_share: float
    idle_power_share: float
    assumed: tuple[str, ...] = ()

    @property
    def usd_per_h(self) -> float:
        """Dollars per hour of work of one chip."""
        return float(
            own_usd_per_h(
                self.capex_usd,
                self.power_w,
                years=self.years,
                utilisation=self.utilisation,
                usd_per_kwh=self.usd_per_kwh,
                pue=self.pue,
                other_opex_share=self.other_opex_share,
                idle_power_share=self.idle_power_share,
            )
        )

    def hour(self, chips: Real, group: Real = 1) -> Hour:
        """What `chips` cost an hour: owned ones are paid one by one, whatever they are grouped to."""
        n, _ = np.broadcast_arrays(np.asarray(chips, dtype=np.float64), np.asarray(group))
        usd = n * self.usd_per_h
        found = (usd, usd, usd, n)
        return Hour(*(float(x) if n.ndim == 0 else x for x in found))


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


def usd_per_million(usd_per_h: Real, tokens_per_s: Real) -> Real:
    """Dollars per million tokens of a machine at `usd_per_h` that yields `tokens_per_s`; infinite at none.

    Used alone it puts the whole hour on the tokens counted: count output tokens. Broadcasts.
    """
    return _per_token(usd_per_h / 3600.0, tokens_per_s) * 1e6


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


def rent_basis(
    chip_id: str, today: dt.date, *, provider: str = "", region: str = "", spot: bool = False
) -> Rent:
    """Renting a chip: the bundled offers that count, judged on the day `today`.

    `provider`, `region` and `spot` narrow the offers; those of a share of a chip and those without their host
    never count. Raises `UsageError` where no offer states a price, saying to give one; `UnknownNameError` for
    an unknown chip.
    """
    chip = get_chip(chip_id).id
    quotes = tuple(
        o
        for o in load_offers()
        if o.chip == chip
        and o.host_included
        and (o.spot_usd_per_chip_h if spot else o.usd_per_chip_h) is not None
        and provider in ("", o.provider)
        and (not region or region in o.regions)
    )
    if not quotes:
        raise _no_offer(" ".join(filter(None, (chip, "spot" * spot, provider, region))))
    dated = [(o.earliest_day, o.date) for o in quotes if o.earliest_day is not None]
    oldest, newest = (min(dated)[1], max(dated)[1]) if dated else ("", "")
    stale = all(o.stale(today) for o in quotes)
    return Rent(chip, quotes, oldest, newest, stale, provider, region, spot)


def _no_offer(what: str) -> NoPriceError:
    return NoPriceError(f"no offer states a price for {what}", "give what you pay per hour in USD")


def own_basis(
    chip_id: str, capex_usd: float | None = None, power_w: float | None = None, **replaced: float
) -> Own:
    """Owning one chip: the user's figures first, then the catalogue's, then the stated assumptions.

    `replaced` may hold years, utilisation, usd_per_kwh, pue, other_opex_share and idle_power_share. Without
    `capex_usd` the middle of the price read for a whole machine is taken, else of the card; without `power_w`
    the chip's TDP, without its host. `Own.assumed` names what was not given. Raises `UsageError` where
    neither is known, for an unknown or senseless figure, and `UnknownNameError` for an unknown chip.
    """
    chip = get_chip(chip_id)
    given = {"capex_usd": capex_usd, "power_w": power_w, **replaced}
    if capex_usd is None:
        capex_usd = capex_for(chip.id).usd_per_chip
    watts = chip.tdp_w if power_w is None else power_w
    if watts is None:
        raise NoPriceError(f"the power of {chip.id} is not published", "give the watts that it draws at work")
    figures = {name: assumption.value for name, assumption in load_assumptions().items()}
    for name, value in replaced.items():
        if name not in figures:
            raise UsageError(f"owning has no figure '{name}'", f"one of {', '.join(figures)}")
        figures[name] = value
    bounds = {"utilisation": (0.0, 1.0), "pue": (1.0, 10.0), "years": (0.0, 50.0)}
    checked = {"capex_usd": capex_usd, "power_w": watts, **figures}
    for name, value in checked.items():
        low, high = bounds.get(name, (0.0, 1e12))
        if not low <= value <= high or (value == 0 and name in ("utilisation", "years")):
            raise UsageError(f"{name} of {value:g} makes no sense", f"more than {low:g}, at most {high:g}")
    return Own(**checked, assumed=tuple(name for name in checked if given.get(name) is None))


def capex_for(chip_id: str) -> Capex:
    """The purchase price that was read for a chip: of a whole machine where there is one, else of the card.

    Raises `UsageError` where none was read, saying to give one; `UnknownNameError` for an unknown chip.
    """
    chip = get_chip(chip_id).id
    found = [entry for entry in load_capex() if entry.chip == chip]
    if not found:
        raise NoPriceError(f"no purchase price was read for {chip}", "give what you pay for it in USD")
    return min(found, key=lambda entry: entry.covers != "machine")
