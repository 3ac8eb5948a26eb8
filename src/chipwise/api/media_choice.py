"""Which plan of a model that generates no tokens: of all ways that were tried on all chips, for rent or one's own,
those that keep targets and limits, in the one order of `search.prefer`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from chipwise.api.media_asked import Files, Sampling
from chipwise.api.media_ways import MIDDLE, OFFLOADS, Begun, NetworkSpace, Tried, Way, price_first
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.offer import MARKETPLACES
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import Rent
from chipwise.errors import ChipwiseError, InfeasibleError
from chipwise.evidence.judge import within
from chipwise.predict.rounds import side_by_side
from chipwise.report.media import MediaPlan
from chipwise.report.plan import numbered
from chipwise.report.records import Figure, RefusalRecord
from chipwise.search import prefer
from chipwise.search.deployments import few_of
from chipwise.search.space import By, Limits
from chipwise.units import Array, format_number
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.api.placing import Terms

Q = TypeVar("Q")
R = TypeVar("R")
SIZED = 1e-9  # of a cost: below it two are alike, whose last digits are those of sums in another order


@dataclass(frozen=True)
class NetworkChoice:
    """All ways that were tried, as columns of what they are chosen by; `owned`: on chips that one has, of which the
    most is wanted. Columns are in the order of `ways`."""

    tried: Sequence[Tried]
    asked: Sampling
    limits: Limits
    owned: bool

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Of all chips."""
        return tuple(way for one in self.tried for way in one.ways)

    @cached_property
    def paid(self) -> _Paid:
        """What they cost an hour."""
        parts = [_Paid.of(one.ways) for one in self.tried if one.ways]
        return _Paid.join(parts)

    @cached_property
    def contenders(self) -> prefer.Contenders:
        """What they are compared by."""
        ways, paid = self.ways, self.paid
        does = [way.doing for way in ways]
        unpriced = np.isnan(paid.usd_per_h)
        size = (
            [d.hosts for d in does],
            np.where(unpriced, [d.chips for d in does], paid.billed),
            [-d.replicas.all for d in does],
            [way.order for way in ways],
            [OFFLOADS.index(d.asked.offload) for d in does],
            [d.work.pipeline.batch for d in does],
        )
        times = [[d.answered_s if d.job_h is None else 3600.0 * d.job_h.mid for d in does]]
        group = np.zeros(len(ways)) if self.asked.task == "local" else unpriced
        return prefer.Contenders.of(
            self.cost,
            times=times,
            chance=[d.chance for d in does],
            doubts=self._doubts(),
            size=np.array(size, dtype=float).reshape(len(size), len(ways)),
            group=group,
        )

    def _doubts(self) -> Array:
        """How many things speak against each, [ways]."""
        does = [way.doing for way in self.ways]
        asked = self.asked.rate_per_s is not None
        against = (
            np.array([d.speed.latency.basis == "modelled" for d in does]),
            self.paid.stale,
            self.paid.market,
            np.array([d.asked.offload != "none" for d in does]),
            # another program is needed, where the usual software takes the network as it is
            np.array([way.order > 0 and way.place.runtime.ported for way in self.ways]),
            # a server has to be written, which is more than that one was not measured
            np.array([2.0 * (asked and not way.place.runtime.server) for way in self.ways]),
        )
        return np.asarray(np.sum(against, axis=0), dtype=float)

    @cached_property
    def cost(self) -> Array:
        """What is paid, [ways]: seconds of a request by a lone user; dollars of a job, per hour of the rate asked, else
        per sample. Where no price is known chips stand for dollars, and of chips that one has all are used."""
        asked, found = self.asked, []
        for way, usd, billed in zip(self.ways, self.paid.usd_per_h, self.paid.billed, strict=True):
            d = way.doing
            hour = float(d.chips) if np.isnan(usd) else float(usd)
            if asked.task == "local":
                found.append(d.speed.latency.mid)
            elif asked.rate_per_s is not None:
                found.append(hour)
            elif self.owned:
                found.append(1.0 / d.delivered.mid)
            elif d.job_h is not None:
                found.append(hour * d.job_h.mid)
            else:
                share = 1.0 if np.isnan(usd) else d.chips / float(billed)
                found.append(hour * share / (3600.0 * d.delivered.mid))
        # to nine digits
        costs = np.array(found, dtype=float)
        with np.errstate(divide="ignore"):
            digits = 10.0 ** np.floor(np.log10(np.where(costs > 0.0, costs, 1.0)))
        return np.asarray(np.round(costs / digits / SIZED) * SIZED * digits)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which keep the limits of chips, of dollars an hour and of the job, [ways]."""
        usd, asked = self.limits.max_usd_per_h, self.asked
        cheap = np.ones(len(self.ways), bool) if usd is None else self.paid.usd_per_h <= usd
        few = np.array([w.doing.chips <= self.limits.chips(w.doing.work.chip.id) for w in self.ways], bool)
        found = cheap & few
        if asked.job is not None and asked.job.max_usd is not None:
            dear = [cautious_usd(w, float(usd)) for w, usd in zip(self.ways, self.paid.usd_per_h, strict=True)]
            found &= np.array(dear) <= asked.job.max_usd
        return np.asarray(found)

    @cached_property
    def sure(self) -> NDArray[np.bool_]:
        """Which keep their targets as surely as asked, [ways]: chips of several kinds keep a deadline together."""
        if self.owned and self.asked.job is not None and len(self.tried) > 1:
            return np.ones(len(self.ways), dtype=bool)
        return prefer.kept(self.contenders.chance, self.asked.confidence)

    @cached_property
    def eligible(self) -> NDArray[np.intp]:
        """The ways that are chosen among: those that keep targets and limits; where no way keeps its targets as surely
        as asked those within limits that do in the middle."""
        if not self.ways:
            return np.zeros(0, dtype=np.intp)
        near = prefer.kept(self.contenders.chance, MIDDLE)
        return np.flatnonzero(self.allowed & (self.sure if self.sure.any() else near))

    @property
    def kept(self) -> bool:
        """Whether what is chosen among keeps its targets as surely as asked."""
        return bool(self.sure[self.eligible].any())

    def best_by(self, by: By = "chip") -> list[Way]:
        """The best way of each chip, software, format or provider, the best of all first."""
        if not len(self.eligible):
            return []
        confidence, every = self.asked.confidence, self.contenders
        # whoever submits to a benchmark takes the last per cent
        noise = 0.0 if self.asked.level == "tuned" else None
        some = every.take(self.eligible)
        labels = [self._label(int(i), by) for i in self.eligible]
        leader = prefer.first(some, confidence, noise)
        each = prefer.first_of_each(some, labels, confidence, noise)
        others = np.array([i for i in each if labels[i] != labels[leader]], dtype=np.intp)
        rest = others[prefer.order(some.take(others), confidence)]
        places = prefer.unled(some, [leader, *rest.tolist()], confidence, noise)
        return [self.ways[self.eligible[i]] for i in places]

    def settled(self, old: Way, new: Way, by: By) -> NetworkChoice:
        """The same with one way in place of another, and of all that would be listed with it on that chip."""
        mine = self._label(self._place(old), by)

        def ways(one: Tried) -> tuple[Way, ...]:
            if one.chip.id != old.doing.work.chip.id:
                return one.ways
            others = (way for way in one.ways if self._label(self._place(way), by) != mine)
            return (*others, new)

        return replace(self, tried=[replace(one, ways=ways(one)) for one in self.tried])

    def exchanged(self, old: Way, new: Way) -> NetworkChoice:
        """The same with one way in place of another."""
        tried = [replace(one, ways=tuple(new if way is old else way for way in one.ways)) for one in self.tried]
        return replace(self, tried=tried)

    @property
    def cheapest(self) -> Way:
        """The cheapest of those that the first was chosen from."""
        some = self.eligible
        return self.ways[int(some[prefer.cheapest(self.contenders.take(some), self.asked.confidence)])]

    @property
    def measured(self) -> Way | None:
        """The best way whose speed rests on measurements, under any software that was tried, None where there is none;
        at a known price, where any has one."""
        does = [self.ways[i].doing for i in self.eligible]
        priced = ~np.isnan(self.paid.usd_per_h[self.eligible])
        known = np.array([d.speed.latency.basis != "modelled" for d in does], dtype=bool) & (priced | ~priced.any())
        some = self.eligible[known]
        if not len(some):
            return None
        return self.ways[int(some[prefer.first(self.contenders.take(some), self.asked.confidence)])]

    def dearer(self, way: Way, than: Way) -> float:
        """By what part of its cost a way is dearer than another; 0 where that costs nothing."""
        a, b = (float(self.cost[self._place(one)]) for one in (way, than))
        return a / b - 1.0 if b > 0.0 else 0.0

    def plans(self, by: By = "chip") -> list[MediaPlan]:
        """The records of `best_by`, with their ranks and the ranks of those that cost about the same and take no more
        than `most_chips` times as many chips."""
        ways = self.best_by(by)
        if not ways:
            return []
        some = self.contenders.take(np.array([self._place(way) for way in ways], dtype=np.intp))
        most = preferences().most_chips
        made = [way.plan() for way in ways]
        return list(numbered(made, some, self.asked.confidence, lambda p, q: q.chips <= most * p.chips))

    def _place(self, way: Way) -> int:
        return self._places[id(way)]

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {id(way): i for i, way in enumerate(self.ways)}

    def _label(self, i: int, by: By) -> str:
        work = self.ways[i].doing.work
        labels: Mapping[By, Callable[[], str]] = {
            "chip": lambda: work.chip.id,
            "runtime": lambda: work.runtime.id,
            "format": lambda: work.precision,
            "provider": lambda: self.paid.provider[i],
        }
        return labels[by]()

    def otherwise(self) -> Way | None:
        """The way that would be rented, of what is bought, or that is cheapest to buy, of what is rented, under the
        limits of that; None where no price is known, or of chips that one has."""
        pricing = next((way.terms.pricing for way in self.ways), None)
        if pricing is None:
            return None
        paid, limits = pricing.otherwise(), replace(self.limits, max_usd_per_h=None)

        def repaid(one: Tried) -> Tried:
            ways = (replace(way, terms=replace(way.terms, pricing=paid)) for way in one.carrying)
            return replace(one, ways=tuple(ways))

        made = replace(self, tried=[repaid(one) for one in self.tried])
        if limits.few:
            chips = [one.chip for one in self.tried]
            limits = replace(limits, few=few_of(chips, next(iter(made.ways)).terms.basis))
        made = replace(made, limits=limits)
        known = np.flatnonzero(~np.isnan(made.paid.usd_per_h) & made.sure & made.allowed)
        if not len(known):
            return None
        if paid.kind == "own":
            return made.ways[int(known[np.argmin(made.paid.usd_per_h[known])])]
        return made.best_by()[0]

    def nearest(self) -> Way | None:
        """Where nothing is chosen: of what keeps its targets the way that is least beyond the limits, by dollars, then
        chips, then time; else None."""
        near = np.flatnonzero(self.sure & ~self.allowed) if self.ways else ()

        def beyond(i: int) -> tuple[float, float, float]:
            usd = np.nan_to_num(self.paid.usd_per_h[i], nan=np.inf)
            d = self.ways[i].doing
            hours = 1.0 if d.job_h is None else d.job_h.mid
            return float(usd * hours), float(d.chips), answered_s(self.ways[i])

        best = min((int(i) for i in near), key=beyond, default=None)
        return None if best is None else self.ways[best]

    def soonest(self) -> Way | None:
        """The way that answers soonest with the probability asked; None where nothing fits."""
        return min(self.ways, key=lambda way: answered_s(way), default=None)

    def refusals(self) -> list[RefusalRecord]:
        """Why chips have no plan: memory, targets, or limits."""
        found, at = [], 0
        eligible = set(self.eligible.tolist())
        for one in self.tried:
            places = range(at, at + len(one.ways))
            at += len(one.ways)
            if eligible.intersection(places):
                continue
            name, sure = one.chip.id, [i for i in places if self.sure[i]]
            if not one.ways and one.hosted is not None:
                found.append(RefusalRecord(name, "HOST_MEMORY", "its host lacks memory"))
            elif not one.ways:
                found.append(RefusalRecord(name, "MEMORY", "lacks memory"))
            elif not sure:
                found.append(RefusalRecord(name, "SLO", "slower than asked"))
            else:
                alone = replace(self, tried=(one,))
                near = alone.nearest()
                what = "more than there are" if self.limits.have else "beyond the limit of chips, power or price"
                words = "" if near is None else f"{taken(near.plan(), self.asked)}: "
                found.append(RefusalRecord(name, "BUDGET", f"{words}{what}"))
        return found


@dataclass(frozen=True)
class Question:
    """What is chosen for, so that it can be asked of any chips, and asked again with something changed. `every`: also
    software that other software does as well as."""

    model: str | Files
    terms: Terms
    asked: Sampling
    limits: Limits
    owned: bool
    numbers: Parameters
    every: bool = False

    def choice(self, chips: Sequence[Chip]) -> tuple[NetworkChoice, list[RefusalRecord]]:
        """The choice on some chips, and those that it cannot be asked of. Raises the errors of `Space.tried` where
        there is one chip."""

        def begun(chip: Chip) -> tuple[str, tuple[NetworkSpace, Begun]]:
            space = self.space(chip)
            return chip.id, (space, space.begun(self.asked, self.numbers))

        def tried(one: tuple[NetworkSpace, Begun]) -> Tried:
            space, first = one
            return space.tried(self.asked, self.numbers, first)

        alone = len(chips) == 1
        able, refused = of_each(((chip.id, chip) for chip in chips), begun, alone=alone)
        price_first(first for _, (_, first) in able)
        found, more = of_each(able, tried, alone=alone)
        return NetworkChoice(found, self.asked, self.limits, self.owned), refused + more

    def space(self, chip: Chip) -> NetworkSpace:
        """What can be tried on a chip. Raises the errors of `Space.of`."""
        have = int(self.limits.have.get(chip.id, 0)) if self.owned else None
        found = NetworkSpace.of(
            self.model,
            chip,
            self.terms,
            self.numbers,
            level=self.asked.level,
            have=have,
            most=self.limits.chips(chip.id),
        )
        return replace(found, every=self.every)


@dataclass(frozen=True)
class _Paid:
    """What ways cost, a column each: dollars per hour (NaN where no price is known), chips that are billed, who rents
    them, whether that price is old, and whether a marketplace alone has them."""

    usd_per_h: Array
    billed: Array
    provider: tuple[str, ...]
    stale: NDArray[np.bool_]
    market: NDArray[np.bool_]

    @classmethod
    def of(cls, ways: Sequence[Way]) -> _Paid:
        """Of ways on one chip."""
        chips = np.array([float(way.doing.chips) for way in ways])
        basis = ways[0].terms.basis(ways[0].doing.work.chip.id)
        none = np.zeros(len(ways), dtype=bool)
        if basis is None:
            return cls(np.full(len(ways), np.nan), chips, ("",) * len(ways), none, none)
        hour = basis.hour(chips, np.array([float(way.doing.group) for way in ways]))
        usd, billed = np.asarray(hour.mid, dtype=float), np.round(np.asarray(hour.billed, dtype=float))
        if not isinstance(basis, Rent):
            return cls(usd, billed, ("",) * len(ways), none, none)
        quotes = np.broadcast_to(np.asarray(hour.offer), chips.shape)
        provider = tuple(basis.quotes[int(i)].provider for i in quotes)
        market = np.array([name in MARKETPLACES for name in provider])
        return cls(usd, billed, provider, none | basis.stale, market)

    @classmethod
    def join(cls, parts: Sequence[_Paid]) -> _Paid:
        """Those of several chips."""
        if not parts:
            empty = np.zeros(0)
            return cls(empty, empty, (), empty.astype(bool), empty.astype(bool))
        return cls(
            np.concatenate([p.usd_per_h for p in parts]),
            np.concatenate([p.billed for p in parts]),
            tuple(name for p in parts for name in p.provider),
            np.concatenate([p.stale for p in parts]),
            np.concatenate([p.market for p in parts]),
        )


def most_of(space: NetworkSpace, asked: Sampling, numbers: Parameters) -> Way:
    """How the chips of a space are used best: what `plan` of them shows first. Raises `InfeasibleError` where memory or
    a limit stands in the way."""
    tried = space.tried(asked, numbers)
    found = NetworkChoice((tried,), asked, Limits(), owned=True).best_by()
    best = found[0] if found else tried.short
    if best is None or (tried.ways and not found):
        why = "slower than asked" if tried.ways else "it lacks memory"
        raise InfeasibleError(f"{space.chip.id}: {why}", reasons={"SLO" if tried.ways else "MEMORY": 1})
    return best


def together(ways: Sequence[Way], asked: Sampling) -> Figure:
    """Samples a second of chips of several kinds side by side; of a job its samples over the time in which they are
    done with it."""
    job, first = asked.job, ways[0].doing.delivered

    def rate(end: str) -> float:
        if job is None:
            return float(sum(getattr(way.doing.delivered, end) for way in ways))
        kinds = []
        for d in (way.doing for way in ways):
            # the rate of a low end has times of a high one
            slower = getattr(d.speed.latency, {"low": "high", "high": "low"}.get(end, end)) / d.speed.latency.mid
            at_once = float((d.replicas.count or 1) * d.work.copies * d.work.pipeline.samples)
            kinds.append((at_once, slower * d.speed.latency.mid, slower * d.speed.full.mid))
        return job.tokens / side_by_side(job.tokens, kinds)

    return Figure(rate("mid"), rate("low"), rate("high"), first.basis, first.provisional)


def of_each(
    named: Iterable[tuple[str, Q]], ask: Callable[[Q], R], *, alone: bool
) -> tuple[list[R], list[RefusalRecord]]:
    """What is answered of each chip, and why some cannot run it, without the chip's name before the reason. Raises the
    error of one that is asked about `alone`."""
    found, refused = [], []
    for name, one in named:
        try:
            found.append(ask(one))
        except ChipwiseError as error:
            if alone:
                raise
            refused.append(RefusalRecord(name, "NO_RUNTIME", str(error).removeprefix(f"{name}: ")))
    return found, refused


def answered_s(way: Way) -> float:
    """Seconds that a request and its wait, or a job, take with the probability asked."""
    d = way.doing
    if d.job_h is not None:
        return 3600.0 * d.job_h.within(d.asked.confidence)
    return d.answered_s * d.speed.within(d.asked.confidence)


def cautious_usd(way: Way, usd_per_h: float) -> float:
    """What a job costs at the middle price with the probability asked; infinite where no price is known."""
    hours = way.doing.job_h
    if hours is None or np.isnan(usd_per_h):
        return float("inf")
    return usd_per_h * hours.within(way.doing.asked.confidence)


def taken(p: MediaPlan, asked: Sampling) -> str:
    """What a plan takes, in words."""
    cost = f"at ${p.price.mid:,.3g}/h" if p.price else "without a known price"
    if p.job is not None and p.job.usd is not None and p.price is not None:
        hours = p.job.hours
        usd = format_number(p.price.mid * within(asked.confidence, hours.mid, hours.low, hours.high))
        cost += f", at most ${usd} in total with {asked.confidence:.0%} probability"
    return f"takes {p.chips:,} chips {cost}"
