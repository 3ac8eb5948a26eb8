"""The answer to `fleet`: which demand runs on which supply, at which hours, what it costs and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from chipwise.errors import InfeasibleError
from chipwise.report.answer import Answer
from chipwise.report.figures import seconds
from chipwise.report.records import SCHEMA_VERSION, Figure, LayoutRecord, Quantified
from chipwise.report.table import Column, Table
from chipwise.units import format_number, format_seconds
from chipwise.values import dataclass

OWN, RENT, API = "own", "rent", "api"
"""Kinds of supplies."""
TIME, MIG, SLEEP, REPLICAS = "time", "mig", "sleep", "replicas"
"""How demands share a card: by its time, each in an instance that it is cut into, or awake by turns; or chips: as the
same replicas of one model serve them."""
FIRST, WHOLE = "TTFT", "whole answer"
"""Times of a chain that a target is on: until its last step begins to answer, and until it has."""
EXACT = 1e-5
"""Below which a gap reads as none."""
MOST_APART = 3
"""Lines about demands that do not share."""
CENT = 0.005
"""Dollars that read as none."""


@dataclass(frozen=True, slots=True)
class TurnRecord(Quantified):
    """How a demand sleeps: it takes `move_s` to wake, and as long to sleep again; requests wait `wait_s` for it in the
    mean and 95 % of them no more than `wait95_s`; it wakes `wakes_per_h`, and has the part `left` of the time, in which
    nobody else works or wakes. `weight_bytes` lie in the host's memory."""

    move_s: float
    wait_s: float
    wait95_s: float
    wakes_per_h: float
    left: float
    weight_bytes: float


@dataclass(frozen=True, slots=True)
class SharingRecord(Quantified):
    """How a demand shares a card with `others`: its `share` as the option says it, the `part` of the card that it is
    charged, that of its memory, and the part of the time in which it has work (`active`); its times there, and those
    on a card of its own (of a network without tokens `ttft_s` is that of a request; None: an answer of one token).
    `turn`: how it sleeps (None: it does not); the wait for that comes before `ttft_s`."""

    how: str
    share: str
    others: tuple[str, ...]
    part: float
    memory: float
    active: float
    ttft_s: Figure
    ttft_alone_s: Figure
    tpot_s: Figure | None
    tpot_alone_s: Figure | None
    turn: TurnRecord | None = None

    @property
    def pooled(self) -> bool:
        """Whether the same replicas serve several demands."""
        return self.how == REPLICAS


def pooled(row: Mapping[str, Any]) -> bool:
    """Whether a placement, a row of an answer, is of replicas that serve several demands."""
    return bool(row.get("sharing")) and row["sharing"]["how"] == REPLICAS


@dataclass(frozen=True, slots=True)
class PlacedNetworkRecord:
    """How replicas of a network without tokens run: so many samples at once (`batch`), how devices share a request
    (`spread`, "": one device), and what lies on the host (`offload`)."""

    batch: int
    spread: str
    offload: str


@dataclass(frozen=True, slots=True)
class PlacedApiRecord:
    """Whose tokens are called: what the vendor calls the model, its address, the variable that holds a key, and dollars
    per million tokens as of `date`; of a step of a chain how fast it answers, as its user measured (None: not
    said)."""

    provider: str
    model: str
    base_url: str
    key: str
    usd_per_million_in: float
    usd_per_million_out: float
    date: str
    ttft_s: float | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True)
class PlacementRecord(Quantified):
    """A demand on a supply: at most `replicas` of a layout on `chips` at once (of an API none), `per_slice` how many in
    each slice of the day, and the `share` of the demand's work that it does. `rate_per_s`: the most requests that it is
    given (of jobs output tokens); `requests_per_s` in each slice, of a demand on several in proportion to what they
    carry (of jobs none). `usd_per_day` is paid for it, `usd_per_h` in the mean. `converted`: weights are not
    as the checkpoint has them, although no format was asked for. `adapters` are low-rank ones that each replica serves.
    `sharing`: how its chips are shared (None: they are
    its own). `network`: how a network without tokens runs (None: it is none). `api`: whose tokens are called (None: it
    runs on chips)."""

    rank: int
    demand: str
    supply: str
    kind: str
    model: str
    chip: str
    chips: int
    replicas: float
    layout: LayoutRecord | None
    spread: str
    runtime: str
    precision: str
    converted: bool
    share: float
    rate_per_s: float
    usd_per_h: float
    usd_per_day: float
    per_slice: tuple[float, ...]
    requests_per_s: tuple[float, ...] = ()
    note: str = ""
    sharing: SharingRecord | None = None
    adapters: tuple[str, ...] = ()
    network: PlacedNetworkRecord | None = None
    api: PlacedApiRecord | None = None

    @property
    def chips_per_slice(self) -> tuple[float, ...]:
        """Chips at work in each slice of the day, of shared ones its part."""
        most, part = max(self.per_slice), self.sharing.part if self.sharing else 1.0
        return tuple(self.chips * part * n / most for n in self.per_slice)


@dataclass(frozen=True, slots=True)
class StepTimeRecord(Quantified):
    """What a step of a chain takes on its chip, and the `share` of the mean time of the chain."""

    step: str
    model: str
    chip: str
    time_s: Figure
    share: float


@dataclass(frozen=True, slots=True)
class ChainTimeRecord(Quantified):
    """The `time` of a chain that has a target of `target_s`: in the mean of requests `mean_s`, and with the probability
    `confidence` at most `within_s` (with a `percentile` that share of the requests), as errors of its steps add up:
    their interval is the part `alike` of that if errors of all steps were one. Of a step on several supplies the
    slowest counts."""

    time: str
    target_s: float
    within_s: float
    confidence: float
    mean_s: float
    steps: tuple[StepTimeRecord, ...]
    alike: float = 1.0
    percentile: float | None = None


@dataclass(frozen=True, slots=True)
class DemandRecord:
    """A demand in words, and whether it is placed; if not, `why`, and the least supplies that would do (`least`), each
    found by asking. `command` plans it alone, of a chain its first step. `chain`: the times of a chain (none: it is a
    model alone)."""

    demand: str
    model: str
    asked: str
    priority: int
    placed: bool
    usd_per_day: float
    why: str
    least: tuple[str, ...]
    command: str
    chain: tuple[ChainTimeRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class SupplyRecord:
    """A supply: its chips and machines (None: no limit), chips at work at most and on average over the day, what a day
    costs. `more_saves` in dollars a day with one machine more, `fewer_costs` with one fewer, which could then not place
    `fewer_loses` (None: it was not asked)."""

    name: str
    kind: str
    chip: str
    machines: int | None
    per_machine: int
    most_chips: float
    mean_chips: float
    usd_per_day: float
    more_saves: float | None
    more_places: tuple[str, ...]
    fewer_costs: float | None
    fewer_loses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """A slice of the day that begins at `hour`: chips at work by kind of supply, dollars per hour, and what runs."""

    hour: float
    own_chips: float
    rented_chips: float
    usd_per_h: float
    runs: str


@dataclass(frozen=True, slots=True)
class PlacedTimeRecord(Quantified):
    """A time of the `requests` that were simulated on placement `rank` (None: a chain, on those of all its steps), in
    the slice from `hour` on in which that time comes out worst. `target_s` is for their mean, or for the share
    `percentile` of them; `within` is the share within it, `within_slow` at the upper end of the interval. `holds`: at
    that end, where the target was asked with more than even chance."""

    rank: int | None
    demand: str
    chip: str
    hour: float
    replicas: int
    rate_per_s: float
    requests: int
    time: str
    mean: Figure
    p99: Figure
    target_s: float
    percentile: float | None
    within: float
    within_slow: float
    holds: bool


@dataclass(frozen=True, slots=True)
class FleetRecord:
    """What runs where: `placements` of demands on supplies, the demands that are left over, and what a day costs, or an
    hour in the mean. No assignment of the same demands to the same candidates costs less than `bound_usd_per_day`;
    `gap` is what lies between, as a share."""

    usd_per_h: float
    usd_per_day: float
    bound_usd_per_day: float
    gap: float
    placements: tuple[PlacementRecord, ...]
    unplaced: tuple[DemandRecord, ...]


@dataclass(frozen=True, slots=True, repr=False)
class PortfolioReport(Answer[PlacementRecord]):
    """The answer to `fleet`: what runs where, all demands and supplies, and a day of them in slices. `simulated` are
    times of placements through time, `unsimulated` says of which there are none and why; both are empty where no
    simulation was asked for. `apart` says what keeps small demands from sharing a card."""

    rows: ClassVar[str] = "placements"

    fleet: FleetRecord
    demands: tuple[DemandRecord, ...]
    supplies: tuple[SupplyRecord, ...]
    slices: tuple[SliceRecord, ...]
    candidates: int
    days_per_month: float
    assumptions: tuple[str, ...]
    simulated: tuple[PlacedTimeRecord, ...] = ()
    unsimulated: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    schema_version: str = field(default=SCHEMA_VERSION)

    @property
    def placements(self) -> tuple[PlacementRecord, ...]:
        """Demands on supplies."""
        return self.fleet.placements

    @property
    def working(self) -> tuple[SupplyRecord, ...]:
        """Supplies with chips at work."""
        return tuple(s for s in self.supplies if s.most_chips > 0)

    @property
    def failure(self) -> InfeasibleError | None:
        """That a demand is not placed, or misses a target in the simulation."""
        missing = self.fleet.unplaced
        if not missing:
            late = next((t for t in self.simulated if not t.holds), None)
            hint = f'utilisation = "50%" of {late.demand if late else ""} gives it more replicas'
            return InfeasibleError(_late(late), hint, answered=True) if late else None
        names = ", ".join(d.demand for d in missing)
        what = f"{len(missing)} of {len(self.demands)} demands not placed: {names}"
        return InfeasibleError(what, f"alone: {missing[0].command}", answered=True)

    def verdict(self) -> tuple[str, ...]:
        """What runs and for how much, how near that is to the least, and what one machine more or fewer does."""
        return tuple(_verdict(self))

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line for each placement, the day slice by slice where there are several, and a line for each supply."""
        head = ("", " ".join(self.verdict()), "")
        noted = dict.fromkeys(f"{p.demand}: {p.note}" for p in self.placements if p.note)
        foot = [*_missing(self), *noted]
        said = self.apart if everything else self.apart[:MOST_APART]
        foot += [f"no card for both: {why}" for why in said]
        foot += [f"assumed: {'; '.join(self.assumptions)}"]
        still = [f"not simulated: {said}" for said in self.unsimulated]
        foot += [] if self.simulated else still
        tables = [Table.of(self.placements, PLACED, head, foot)]
        if steps := list(_steps(self)):
            tables.append(Table.of(steps, STEPS, ("", "Steps of chains:")))
        if len(self.slices) > 1:
            tables.append(Table.of(self.slices, SLICES, ("", "By the hour:")))
        if self.simulated:
            tables.append(Table.of(self.simulated, SIMULATED, ("", "Through time, in the worst hour:"), still))
        supplies = [s for s in self.supplies if s.kind != API]
        return (*tables, Table.of(supplies, SUPPLIES, ("", "Supplies:"))) if supplies else tuple(tables)


@dataclass(frozen=True, slots=True)
class _StepLine:
    """A line about a step of a chain, next to the target that it is counted for."""

    demand: str
    of: ChainTimeRecord
    step: StepTimeRecord


def _steps(report: PortfolioReport) -> Iterator[_StepLine]:
    for d in report.demands:
        yield from (_StepLine(d.demand, of, step) for of in d.chain for step in of.steps)


def dollars(usd: float) -> str:
    """`$1,900`."""
    return f"${format_number(usd)}"


def _chips(p: PlacementRecord) -> str:
    if p.sharing:
        return f"part of {p.chips:,}x {p.chip}"
    return f"{p.chips:,}x {p.chip}" if p.chips else "tokens"


def _percent(share: float) -> str:
    return "<1%" if share < 0.005 else f"{share:.0%}"


def _working(p: PlacementRecord) -> str:
    """`0-7, 22-23` of the slices in which it runs; `all day`."""
    on = [i for i, n in enumerate(p.per_slice) if n > 0]
    return "all day" if len(on) == len(p.per_slice) else _ranges(on, 24.0 / len(p.per_slice))


def _ranges(slices: Sequence[int], hours: float) -> str:
    """Hours of slices, those that follow each other as one: `0-8, 22-24`."""
    parts: list[list[int]] = []
    for i in slices:
        if parts and parts[-1][1] == i:
            parts[-1][1] = i + 1
        else:
            parts.append([i, i + 1])
    return ", ".join(f"{a * hours:g}-{b * hours:g}" for a, b in parts) + " h"


def _month(report: PortfolioReport, usd_per_day: float) -> str:
    return dollars(usd_per_day * report.days_per_month)


def _verdict(report: PortfolioReport) -> Iterator[str]:
    yield _cost(report)
    yield from (f"{d.demand} is not placed: {d.why}." for d in report.fleet.unplaced)
    yield from _chained(report)
    yield from _adapted(report)
    yield from _sharing(report)
    if report.fleet.usd_per_day > 0:
        less = f"as much as {report.fleet.gap:.2%} " if report.fleet.gap >= EXACT else ""
        yield f"No other assignment of these candidates costs {less}less."
    if late := [t for t in report.simulated if not t.holds]:
        yield from (f"Simulated, {_late(t)}." for t in late)
    elif report.simulated:
        names = ", ".join(dict.fromkeys(t.demand for t in report.simulated))
        yield f"Simulated request by request, targets met: {names}."
    yield from _changed(report)


def _chained(report: PortfolioReport) -> Iterator[str]:
    """What chains take next to their targets, and which of their steps."""
    for d in report.demands:
        for of in d.chain:
            mean, within = format_seconds(of.mean_s), format_seconds(of.within_s)
            parts = ", ".join(f"{s.step} {s.share:.0%}" for s in of.steps)
            some = f" ({parts})" if len(of.steps) > 1 else ""
            share = "" if of.percentile is None else f"{of.percentile * 100:g} of 100 requests "
            yield (
                f"{d.demand} takes {mean} for its {of.time}{some}, {share}at most {within} with "
                f"{of.confidence:.0%} probability; the target is {format_seconds(of.target_s)}."
            )


def _adapted(report: PortfolioReport) -> Iterator[str]:
    """Which demands are adapters that the same replicas serve."""
    for p in {p.demand: p for p in report.placements if p.adapters}.values():
        yield f"{' and '.join(p.adapters)} are adapters that the same replicas of {p.model} serve."


def _sharing(report: PortfolioReport) -> Iterator[str]:
    """Which demands share a card, how, and what that does to their times."""
    cards: dict[tuple[str, frozenset[str]], list[PlacementRecord]] = {}
    for p in report.placements:
        if p.sharing:
            cards.setdefault((p.supply, frozenset((p.demand, *p.sharing.others))), []).append(p)
    for mine in cards.values():
        how = next(SHARED[p.sharing.how] for p in mine if p.sharing)
        yield f"{_and([p.demand for p in mine])} share {mine[0].chips:,}x {mine[0].chip}, {how}: {_slowed(mine)}."


def _and(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _slowed(card: Sequence[PlacementRecord]) -> str:
    """The part of each, and its times there next to those on a card of its own; of replicas that serve all the same
    way their times."""
    first = card[0].sharing
    if first and first.pooled:
        parts = _and([f"{_percent(p.sharing.part)} {p.demand}" for p in card if p.sharing])
        times = [("TTFT", first.ttft_s), ("TPOT", first.tpot_s)]
        said = ", ".join(f"{name} {format_seconds(t.mid)}" for name, t in times if t)
        return f"of the requests {parts}, {said} in the mean of all"
    return "; ".join(_beside(p, p.sharing) for p in card if p.sharing)


SHARED = {
    TIME: "taking turns (time slices or MPS)",
    MIG: "cut into instances (MIG)",
    SLEEP: "one awake, the others asleep in the host's memory",
    REPLICAS: "as the same replicas of one model serve them",
}


def _beside(p: PlacementRecord, s: SharingRecord) -> str:
    if s.turn:
        return _by_turns(p, s, s.turn)
    part = s.share.partition("=")[2] if s.how == MIG else f"{s.memory:.0%} of the memory"
    first = "a request" if p.network else "TTFT"
    times = [(first, s.ttft_s, s.ttft_alone_s), ("TPOT", s.tpot_s, s.tpot_alone_s)]
    said = [
        f"{name} {format_seconds(here.mid)} (alone {format_seconds(alone.mid)})"
        for name, here, alone in times
        if here and alone
    ]
    return f"{p.demand} has {part}, {', '.join(said)}"


def _by_turns(p: PlacementRecord, s: SharingRecord, turn: TurnRecord) -> str:
    wakes = f"{p.demand} wakes in {format_seconds(turn.move_s)}, {_often(turn.wakes_per_h)}"
    first = f"TTFT {format_seconds(turn.wait_s + s.ttft_s.mid)} with the wait for it"
    alone = f"alone {format_seconds(s.ttft_alone_s.mid)}"
    return f"{wakes}, {first} ({alone}; 95% wait at most {format_seconds(turn.wait95_s)})"


def _often(per_hour: float) -> str:
    """`12 times an hour`, `3 times a day`."""
    return f"{per_hour:.3g} times an hour" if per_hour >= 1.0 else f"{24.0 * per_hour:.2g} times a day"


def _late(t: PlacedTimeRecord) -> str:
    """Which target is missed, where and by how much."""
    where = f"{t.demand} misses its {t.time} of {_target(t)} on {t.chip} from {t.hour:g} h on"
    slow = f", at the upper end of the interval {t.within_slow:.1%}" if t.percentile is not None else ""
    return f"{where}: mean {seconds(t.mean)}, {t.within:.1%} within it{slow}"


def _cost(report: PortfolioReport) -> str:
    """How many demands are placed, and what a month costs by kind of supply."""
    every = len(report.demands)
    placed = every - len(report.fleet.unplaced)
    if not placed:
        return "No demand is placed."
    all_ = {1: "The demand is", 2: "Both demands are"}.get(every, f"All {every} demands are")
    count = all_ if placed == every else f"{placed} of {every} demands are"
    words = {OWN: "for power of owned machines", RENT: "for rented chips", API: "for tokens of APIs"}
    usd = {kind: sum(p.usd_per_day for p in report.placements if p.kind == kind) for kind in words}
    parts = [f"{_month(report, usd[kind])} {said}" for kind, said in words.items() if usd[kind] > CENT]
    cost = f" for {_month(report, report.fleet.usd_per_day)} a month" if parts else " on machines that you own"
    return f"{count} placed{cost}{': ' + ', '.join(parts) if len(parts) > 1 else ''}."


def _changed(report: PortfolioReport) -> Iterator[str]:
    """What one machine more or fewer does, the most telling first."""
    saving = [s for s in report.supplies if (s.more_saves or 0.0) > 0]
    for s in sorted(saving, key=lambda s: -(s.more_saves or 0.0))[:1]:
        saves = _month(report, s.more_saves or 0.0)
        yield f"{s.per_machine} more {s.chip} (a machine of {s.name}) would save {saves} a month."
    for s in report.supplies:
        if s.fewer_costs is None or s.kind != OWN:
            continue
        if s.fewer_loses:
            yield f"While a machine of {s.name} is out, {', '.join(s.fewer_loses)} cannot be placed."
        elif s.fewer_costs > CENT:
            yield f"While a machine of {s.name} is out, a day costs {dollars(s.fewer_costs)} more."
        else:
            yield f"While a machine of {s.name} is out, everything still runs at the same cost."


def _missing(report: PortfolioReport) -> Iterator[str]:
    for d in report.fleet.unplaced:
        least = f"; the least that would do: {', or '.join(d.least)}" if d.least else ""
        yield f"not placed: {d.demand} ({d.asked}): {d.why}{least}; alone: {d.command}"


def _usd(usd: float) -> str:
    return format_number(usd)


def _of_chips(count: float) -> str:
    """So many chips, in words."""
    return f"{_count(count)} chip{'' if _count(count) == '1' else 's'}"


def _count(n: float) -> str:
    return f"{n:,.3g}" if n < 100 else f"{n:,.0f}"


def _fewer(s: SupplyRecord) -> str | None:
    if s.fewer_loses:
        return f"loses {', '.join(s.fewer_loses)}"
    return None if s.fewer_costs is None else _usd(s.fewer_costs)


def _target(t: PlacedTimeRecord) -> str:
    """`40 ms`, `p99 40 ms`."""
    share = "" if t.percentile is None else f"p{100.0 * t.percentile:g} "
    return share + format_seconds(t.target_s)


def _more(s: SupplyRecord) -> str | None:
    if s.more_places:
        return f"places {', '.join(s.more_places)}"
    return None if s.more_saves is None else _usd(s.more_saves)


PLACED = (
    Column("#", "rank", right=True, short="rank"),
    Column("demand", "demand", prose=True, short="demand"),
    Column("supply", "supply", prose=True, short="supply"),
    Column("chips", _chips),
    Column("", "chip", short="chip"),
    Column("", "chips", short="chips", scale=0),
    Column("layout", "spread", short="layout"),
    Column("software", lambda p: p.runtime or None, spare=1, short="runtime"),
    Column("weights", lambda p: p.precision or None, spare=3, short="precision"),
    Column("work", "share", _percent, right=True, short="share"),
    Column("hours", _working, prose=True, spare=2),
    Column("$/day", "usd_per_day", _usd, right=True, short="usd_per_day"),
)
"""What is said of a demand on a supply."""
STEPS = (
    Column("chain", "demand", prose=True),
    Column("time", "of.time", prose=True),
    Column("step", "step.step", prose=True),
    Column("model", "step.model", spare=2),
    Column("chip", "step.chip", spare=1),
    Column("takes", "step.time_s", seconds, right=True),
    Column("share", "step.share", _percent, right=True),
)
"""What is said of a step of a chain."""
SLICES = (
    Column("hour", lambda s: f"{s.hour:g}", right=True),
    Column("owned chips", "own_chips", _count, right=True),
    Column("rented chips", "rented_chips", _count, right=True),
    Column("$/h", "usd_per_h", _usd, right=True),
    Column("replicas of each demand", "runs", prose=True),
)
"""What is said of a slice of the day."""
SIMULATED = (
    Column("#", "rank", right=True),
    Column("demand", "demand", prose=True),
    Column("from hour", lambda t: f"{t.hour:g}", right=True),
    Column("load", lambda t: f"{format_number(t.rate_per_s)}/s on {t.replicas:,}", right=True),
    Column("time", "time"),
    Column("mean", "mean", seconds, right=True),
    Column("p99", "p99", seconds, right=True),
    Column("target", _target, right=True),
    Column("within", "within", lambda share: f"{share:.1%}", right=True),
    Column("holds", lambda t: "yes" if t.holds else "no"),
)
"""What is said of a placement through time."""
SUPPLIES = (
    Column("supply", "name"),
    Column("chip", "chip"),
    Column("machines", lambda s: s.machines, lambda n: f"{n:,}", right=True),
    Column("busiest", "most_chips", _of_chips, right=True),
    Column("mean", "mean_chips", _of_chips, right=True),
    Column("$/day", "usd_per_day", _usd, right=True),
    Column("a machine more saves $/day", _more, right=True),
    Column("a machine fewer costs $/day", _fewer, right=True),
)
"""What is said of a supply."""
