"""What is said of plans whatever their task: chips and machines, cost, chance, bottleneck, and the columns of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from chipwise.catalog.chips import recalled_words
from chipwise.catalog.offer import MARKETPLACES, age_days
from chipwise.catalog.preferences import preferences
from chipwise.catalog.quality import QualityRecord, quality_words
from chipwise.catalog.regions import region_of
from chipwise.catalog.snapshot import today
from chipwise.errors import InfeasibleError
from chipwise.predict.fleet import Day
from chipwise.report import figures
from chipwise.report.answer import Answer, Row
from chipwise.report.decision import age_words
from chipwise.report.records import EnergyRecord, Figure, JobRecord, PriceRecord, Quantified
from chipwise.report.simulated import FollowingRecord, PeakRecord
from chipwise.report.table import Column
from chipwise.search.prefer import Contenders, cheapest, kept, tied
from chipwise.units import duration_words, format_number
from chipwise.values import dataclass

RESOURCE = {
    "compute": "FLOPs",
    "memory": "memory bandwidth",
    "on-chip": "on-chip bandwidth",
    "network": "link speed",
    "launch": "kernel launch rate",
    "host": "host speed",
}
# reasons in the words of a table's foot
GROUPS = {
    "SLO": "miss the latency targets",
    "MEMORY": "lack memory",
    "HOST_MEMORY": "lack memory of the host",
    "BUDGET": "beyond the limit of price, chips or power",
    "NO_PRICE": "no price known",
    "NO_COST_MODEL": "speed not modelled yet",
    "NO_RUNTIME": "no serving software known",
    "NO_MEMORY_FIGURE": "capacity or bandwidth not published",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Quantified):
    """What every plan says, whatever its task: figures of the task stand beside it.

    `rank` in the answer (0: chips were compared, and not chosen). `chips` of a kind in `hosts` machines, over all
    `replicas`; `runtime` is the software that runs them, of training the trainer, in weights of `precision`. `price` is
    that of an hour of all of them, None where no price is known; `chance` the probability that what was asked holds,
    None where nothing was. `bound` takes most of the time, `shares` of which are by cause. `energy`: what machines
    draw, None where no power limit of the chip is known. `quality`: what is published of the score that converted
    weights keep (None: nothing, or they are as stored). `ties`: ranks of plans that cannot be told from it.
    """

    rank: int = 0
    chip: str
    chips: int
    replicas: int = 1
    hosts: int = 1
    runtime: str
    precision: str
    price: PriceRecord | None = None
    chance: float | None = None
    bound: str
    shares: dict[str, float] = field(default_factory=dict)
    energy: EnergyRecord | None = None
    quality: QualityRecord | None = None
    ties: tuple[int, ...] = ()

    @property
    def keeps(self) -> str:
        """What is published of its converted weights, in a clause whose subject is their format."""
        return quality_words(self.quality)

    @property
    def usd_per_h(self) -> float | None:
        """Dollars per hour of all chips, by which plans for a load are ranked (`price.mid`); None without a price."""
        return None if self.price is None else self.price.mid

    @property
    def machines(self) -> str:
        """Its chips in words: `8x h100-sxm5-80gb`."""
        return f"{self.chips:,}x {self.chip}"

    def keeps_targets(self, confidence: float) -> bool:
        """Whether what was asked holds with that probability."""
        return self.chance is None or bool(kept(np.asarray(self.chance), confidence))

    @property
    def group(self) -> int:
        """Chips that share a machine."""
        return max(self.chips // self.replicas, 1)

    @property
    def bottleneck(self) -> str:
        """What takes most of the time, with its share."""
        return f"{self.bound} {self.shares.get(self.bound, 0.0):.0%}"


class FollowedPlan(Protocol):
    """A plan whose replicas may follow a load, with what every such plan says of it."""

    @property
    def rank(self) -> int:
        """Its place in the answer."""

    @property
    def replicas(self) -> int:
        """Spare ones among them."""

    @property
    def spare(self) -> int:
        """Those that stand by."""

    @property
    def price(self) -> PriceRecord | None:
        """Of an hour of all of them."""

    @property
    def scaling(self) -> FollowingRecord | None:
        """How they may follow."""

    @property
    def peak(self) -> PeakRecord | None:
        """What a simulation of the peak of a day says of them."""


P = TypeVar("P", bound=Plan)


def numbered(
    plans: Sequence[P], c: Contenders, confidence: float, alike: Callable[[P, P], bool] = lambda _, __: True
) -> tuple[P, ...]:
    """Plans in their order with ranks, and the ranks of those that cost the same (`search.prefer.tied`) and that are
    `alike`: to a plan another."""
    made = [replace(p, rank=i + 1) for i, p in enumerate(plans)]

    def ties(i: int) -> Iterator[int]:
        for j in np.flatnonzero(tied(c, i, confidence)).tolist():
            if alike(made[i], made[j]):
                yield j + 1

    return tuple(replace(p, ties=tuple(ties(i))) for i, p in enumerate(made))


def steadier(plans: Sequence[P], keeps: Callable[[P], bool]) -> tuple[str, P] | None:
    """Where a marketplace or one provider alone rents the first of ranked plans: the best that several providers rent
    and that keeps what was asked, with words for that. None where there is none, or nothing is in doubt."""
    price = plans[0].price
    if price is None or not (price.sellers == 1 or price.provider in MARKETPLACES):
        return None
    found = next(
        (p for p in plans if p.price and p.price.sellers > 1 and p.price.provider not in MARKETPLACES and keeps(p)),
        None,
    )
    words = "Outside marketplaces" if price.provider in MARKETPLACES else "From several providers"
    return None if found is None else (words, found)


def saving(plans: Sequence[P], c: Contenders, confidence: float) -> tuple[P | None, float]:
    """The cheapest of the plans that the first of them was chosen from, and what share of its cost that saves; None
    where nothing does."""
    least = cheapest(c, confidence)
    if not c.cost[least] < c.cost[0] * (1.0 - 1e-9):
        return None, 0.0
    return plans[least], float(1.0 - c.cost[least] / c.cost[0])


class Ranking(Answer[Row]):
    """Base of answers that rank plans: `plans`, best first, what was `refused` and why, and what was assumed."""

    __slots__ = ()

    rows: ClassVar[str] = "plans"
    plans: tuple[Row, ...]

    @property
    def kept(self) -> bool:
        """Whether the first plan keeps what was asked as surely as was asked; where nothing can be asked it does."""
        return True

    @property
    def sure(self) -> float:
        """The probability with which plans were to keep what was asked."""
        raise NotImplementedError

    @property
    def failure(self) -> InfeasibleError | None:
        """Where no plan keeps what was asked as surely as was asked, how near the first comes."""
        return None if self.kept else unsure(cast(Plan, self.plans[0]), self.sure)


def hours_of(p: Any) -> Figure | None:
    """Hours of the job of a plan."""
    job: JobRecord | None = p.job
    return None if job is None else job.hours


def usd_of(p: Any) -> Figure | None:
    """Dollars of the job of a plan."""
    job: JobRecord | None = p.job
    return None if job is None else job.usd


def taken(p: Plan, how: str, *, owned: bool, software: str = "") -> tuple[str, str, str]:
    """What to do with the chips of a plan; what it takes, its chips and `software` (its runtime, where nothing else is
    said of that), `how`; and what they cost, "" for chips that are `owned`."""
    mine = p.price is None or p.price.use > 0.0
    where = f" on {p.hosts:,} hosts" if p.hosts > 1 else ""
    date = "" if p.price is None or p.price.stale else p.price.date
    cost = "" if owned else f"{cost_words(p.price, p.chips)}{age_words(date, age_days(date, today()))}"
    return "Use " if mine else "Rent ", f"{p.machines}{where} with {software or p.runtime} ({how})", cost


def at(chips: str, cost: str) -> str:
    """What is taken at its cost, as the end of a sentence."""
    return f"{chips}: {cost}." if cost else f"{chips}."


def notes(plans: Iterable[tuple[int, str]]) -> list[str]:
    """What is to be known of some plans, by rank, with the ranks that it is said of."""
    ranked = list(plans)
    found: dict[str, list[str]] = {}
    for rank, note in ranked:
        if note:
            found.setdefault(note, []).append(f"#{rank}")
    every = len(ranked) if len(ranked) > 1 else 0
    return [f"{'all' if len(ranks) == every else ', '.join(ranks)}: {note}" for note, ranks in found.items()]


def founded(p: Plan, basis: str, chips: Sequence[str] = ()) -> str:
    """What bounds a plan and what it rests on; `chips` are those besides its own whose figures it reads."""
    recalled = ", on recalled chip figures" if recalled_words((p.chip, *chips)) else ""
    return f"Bottleneck: {p.bottleneck} of the time. Evidence: {basis}{recalled}."


def unsure(first: Plan, confidence: float) -> InfeasibleError | None:
    """That no plan keeps what was asked as surely as that, and how near the `first` comes; None where nothing was asked
    of it."""
    if first.chance is None:
        return None
    what = f"no plan meets what was asked with {confidence:.0%} probability"
    nearest = f"nearest: {first.chips:,}x {first.chip} with {chance_percent(first.chance)}%"
    less = "; --confidence asks for less" if first.chance >= preferences().even else ""
    return InfeasibleError(what, nearest + less, answered=True)


def gain(share: float, more: float = 0.1) -> float:
    """Throughput gained, as a part of it, when a resource with that share of the time becomes 10 % faster."""
    return 1.0 / (1.0 - share * (1.0 - 1.0 / (1.0 + more))) - 1.0


def in_hours(hours: Figure) -> str:
    """`16.1 [12.4-19.8] h`, of a figure in hours."""
    return figures.duration(_job_s(hours))


def _job_s(hours: Figure) -> Figure:
    """A figure of hours in seconds."""
    mid, low, high = (3600.0 * x for x in (hours.mid, hours.low, hours.high))
    return Figure(mid, low, high, hours.basis, hours.provisional)


def cost_words(price: PriceRecord | None, chips: int) -> str:
    """What so many chips cost an hour, where and since when."""
    if price is None:
        return "no price is known"
    whole = f", {price.billed} chips billed" if price.billed > chips else ""
    dated = f", price of {price.date}" if price.date else ", undated"
    idle = f" of work to own, {price.use:.0%} in use" if price.use != 1.0 else " to own, always in use"
    own = f"{idle}{whole}"
    there = f" in {price.region}, the nearest to {price.wanted} with a known price" if price.wanted else ""
    there = there if region_of(price.region) else ", whose price names no region" if price.wanted else ""
    offer = own if price.use else f" at {price.provider}{there}{whole}{dated}"
    stale = f" (no price from the last {preferences().stale_days:.0f} days)" if price.stale else ""
    return f"about ${figures.mid(price)}/h{offer}{stale}"


def finishes(does: str, job: JobRecord, deadline_s: float | None, surely: str) -> str:
    """When a plan is done with a job and for how much, and how likely that keeps the deadline."""
    said = f"It {does} in {figures.duration_words(_job_s(job.hours))}"
    if job.usd is not None:
        said += f" for about ${figures.mid(job.usd)}"
    if deadline_s is not None and surely:
        said += f"; the deadline of {duration_words(deadline_s)} is met {surely}"
    return said


def chance_percent(chance: float) -> int:
    """Whole percent that are not too many; 99 stands for all that is more."""
    return min(int(100.0 * chance + 0.2), 99)


def day_words(rank: int, d: Day, *, paid: bool, per: tuple[str, float] = ("M out", 1e6), follows: bool = True) -> str:
    """A day of the plan of that rank, with dollars `per` so many tokens or samples where they are `paid`; `follows`:
    with what it would cost by formulas alone if replicas followed it."""
    unit, amount = per
    usd, scaled = (format_number(each * amount / 1e6) for each in (d.usd_per_m_tokens, d.scaled_usd_per_m_tokens))
    requests = f"{d.requests_per_day:,.0f} request" + ("" if round(d.requests_per_day) == 1 else "s")
    text = f"day of #{rank}: {requests}, used {d.mean_utilisation:.0%} on average"
    text += f" and {d.peak_utilisation:.0%} at the peak"
    if paid:
        least, ahead = "at least ", ""
        if d.lead_s:
            least, ahead = "", f", each started {duration_words(d.lead_s)} ahead"
        text += f"; ${format_number(d.usd_per_day)} a day, ${usd}/{unit} with all replicas on"
        if follows:
            text += (
                f", {least}${format_number(d.scaled_usd_per_day)} and ${scaled}/{unit.removesuffix(' out')} if "
                f"replicas followed the load{ahead}"
            )
    return text


def follows(plans: Sequence[FollowedPlan]) -> Iterator[str]:
    """How many replicas of the first plan run while they follow the load, what that costs an hour in the mean, and
    which other plan costs less so."""
    s = plans[0].scaling
    if s is not None:
        usd = "" if s.usd_per_day is None else f", about ${format_number(s.usd_per_day / 24.0)}/h on average"
        yield f"Scaled with the {s.follows}, {s.least} to {s.most} replicas run{usd}."
    paid = [(day, p.rank, p.scaling.follows) for p in plans if p.scaling and (day := p.scaling.usd_per_day)]
    mine = _usd_per_day(plans[0])
    if not paid or mine is None:
        return
    least, rank, load = min(paid)
    if least < mine * (1.0 - preferences().worth):
        each, first = (f"${format_number(day / 24.0)}/h" for day in (least, mine))
        yield f"Scaled with the {load}, #{rank} costs less: about {each} on average, #1 {first}."


def _usd_per_day(p: FollowedPlan) -> float | None:
    """Dollars of a day with as many replicas as its policy has, of a plan without one with all."""
    if p.scaling is not None:
        return p.scaling.usd_per_day
    return None if p.price is None else 24.0 * p.price.mid


def peak_words(plans: Sequence[FollowedPlan]) -> list[str]:
    """How many plans were simulated at the peak of a day, and how many were too small by formulas."""
    seen = [p.peak for p in plans if p.peak is not None]
    if not seen:
        return []
    grown = sum(peak.before is not None for peak in seen)
    said = f"peak of the day: {len(seen)} of {len(plans)} plans simulated, formulas had counted too few replicas for "
    said += f"{grown or 'none'} of them"
    return [said if len(seen) == len(plans) else f"{said}; the others have as many as formulas ask for"]


def scaling_words(plans: Sequence[FollowedPlan]) -> list[str]:
    """The policies of plans whose replicas follow the load, and how that of the first was found."""
    followed = [(p.rank, p.scaling) for p in plans if p.scaling is not None]
    said = [f"scaling of #{rank}, targets held: {s.words}" for rank, s in followed]
    first = plans[0].scaling
    if first is not None:
        said[1:1] = [f"scaling of #1, simulated: {words}" for words in first.evidence]
    return said


def legend(replicated: str, *, stale: bool) -> str:
    """The signs of a table of plans in words; `replicated` explains how replicas are written."""
    signs = ["mid [low-high] is an 80 % interval", *filter(None, [replicated])]
    if stale:
        signs.append(f"*: no price from the last {preferences().stale_days:.0f} days")
    return f"how to read: {'; '.join(signs)}"


def front_words(plans: Sequence[Any], what: str, shown: Container[int] | None = None) -> list[str]:
    """Which plans are on the front, `what` it means in words; of those that are not `shown` (None: all are) how many.
    Nothing where there is one alone."""
    front = [p.rank for p in plans if p.on_front]
    if len(front) < 2:
        return []
    named = [rank for rank in front if shown is None or rank in shown]
    more = f", {len(front) - len(named)} more" if len(named) < len(front) else ""
    return [f"front (Pareto-optimal, {what}): {', '.join(map(str, named))}{more}"]


RANK = Column("#", "rank", right=True, short="rank")
CHIP = Column("", "chip", short="chip")
USD_PER_H = Column("$/h", "price", lambda p: f"{figures.mid(p)}{'*' if p.stale else ''}", right=True, short="usd_per_h")
DONE_IN = Column("done in", hours_of, in_hours, right=True, short="hours")
TOTAL_USD = Column("$ total", usd_of, figures.number, right=True, short="usd")
"""Columns that tables of plans have in common."""
