"""A deployment through time: what happened to its requests, and how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, ClassVar

from chipwise.report import figures
from chipwise.report.answer import Answer
from chipwise.report.records import SCHEMA_VERSION, Figure, ModelRecord, NetworkRecord, Quantified, WorkloadRecord
from chipwise.report.table import Column, Table
from chipwise.units import duration_words, format_bytes, format_number, format_seconds
from chipwise.values import dataclass
from chipwise.workload.arrivals import rate_words


@dataclass(frozen=True, slots=True)
class SpreadRecord(Quantified):
    """A time of all requests that were served: mean and quantiles, each `mid [low, high]`."""

    mean: Figure
    p50: Figure
    p95: Figure
    p99: Figure


@dataclass(frozen=True, slots=True)
class WithinRecord:
    """The share of requests within a target: in the run at the predicted step times, and at the ends of their
    interval."""

    target: str
    seconds: float
    mid: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BoundedTimes:
    """Seconds of a simulation that targets bound: their mean, or the percentile that was asked for; and the 99th of the
    time to the first token. None where a request has none."""

    ttft_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    ttft_p99_s: float | None

    def words(self, percentile: float | None) -> str:
        """Times to the first token and per token after it; of an answer that comes at once its time."""
        of = "mean" if percentile is None else f"p{percentile * 100:g}"
        first = "answer" if self.ttft_s == self.e2e_s else "TTFT"
        known = [(first, self.ttft_s), ("TPOT", self.tpot_s)]
        said = f"{of} {', '.join(f'{name} {format_seconds(t)}' for name, t in known if t is not None)}"
        if percentile is None and self.ttft_p99_s is not None:
            said += f", p99 {first} {format_seconds(self.ttft_p99_s)}"
        return said


@dataclass(frozen=True, slots=True)
class ClosedPolicy:
    """What formulas alone would set: a replica for `per_replica` requests in flight, or a second where replicas follow
    the clock, from `least` on. `holds`: whether targets hold in its simulation, of which it paid `replica_h`."""

    per_replica: float
    least: int
    replica_h: float
    usd_per_day: float | None
    holds: bool
    times: BoundedTimes


@dataclass(frozen=True, slots=True)
class FollowingRecord:
    """Replicas that follow the load: one for `target` requests in flight, `least` to `most` of them, looked at every
    `every_s`; a new one is ready after `start_s`, one goes after `hold_s`. `started` of them were, and all together ran
    `replica_h`, against `fixed_h` of as many as would run throughout. `clock`: how many there are at least in each
    slice of a day, one for `per_replica_per_s` requests a second, asked for `start_s` ahead (empty, None: they follow
    what is in flight alone). Dollars are those of a day (None: no price is known). `times` are those of `requests`
    simulated, with passes as slow as they are with the probability asked for, `fixed_times` with `most` throughout; of
    the `percentile` (None: means), of a day in its worst slice."""

    target: float
    least: int
    most: int
    start_s: float
    hold_s: float
    every_s: float
    started: int
    replica_h: float
    fixed_h: float
    clock: tuple[int, ...] = ()
    per_replica_per_s: float | None = None
    usd_per_day: float | None = None
    fixed_usd_per_day: float | None = None
    percentile: float | None = None
    requests: int = 0
    times: BoundedTimes | None = None
    fixed_times: BoundedTimes | None = None
    closed: ClosedPolicy | None = None

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> FollowingRecord:
        """That of a saved answer."""
        known = {f.name for f in fields(cls)}
        found = {name: value for name, value in saved.items() if name in known}
        found["clock"] = tuple(found.get("clock") or ())
        for name in ("times", "fixed_times"):
            found[name] = BoundedTimes(**found[name]) if found.get(name) else None
        closed = found.get("closed")
        found["closed"] = ClosedPolicy(**{**closed, "times": BoundedTimes(**closed["times"])}) if closed else None
        return cls(**found)

    @property
    def follows(self) -> str:
        """What replicas follow, in a word."""
        return "day" if self.clock else "log"

    @property
    def share(self) -> float:
        """Hours that are paid for over those of all replicas throughout."""
        return self.replica_h / self.fixed_h

    @property
    def words(self) -> str:
        """The policy and what it saves."""
        less = 1.0 - self.share
        if self.clock:
            each = f"by the clock, one for every {rate_words(self.per_replica_per_s or 0.0, 'requests')}"
            ready = f"asked for {duration_words(self.start_s)} ahead"
        else:
            each = f"one for every {self.target:g} requests in flight"
            ready = f"ready after {duration_words(self.start_s)}"
        return (
            f"{self.least} to {self.most} replicas, {each}, {ready}: {_paid(self.replica_h, self.usd_per_day)}, "
            f"{_paid(self.fixed_h, self.fixed_usd_per_day)} with {self.most} throughout ({less:.0%} saved)"
        )

    @property
    def evidence(self) -> tuple[str, ...]:
        """What simulations of it said, against all replicas throughout and the rule of formulas, a line each."""
        if self.times is None or self.fixed_times is None:
            return ()
        at = "in the worst slice, " if self.clock else ""
        said = [
            f"{at}{self.times.words(self.percentile)}; {self.fixed_times.words(self.percentile)} with {self.most} "
            f"throughout ({self.requests:,} requests simulated, passes as slow as the confidence asks)"
        ]
        if self.closed is not None:
            c = self.closed
            unit = f"{format_number(c.per_replica)} requests{'/s' if self.clock else ' in flight'}"
            does = "holds too" if c.holds else f"misses the targets: {c.times.words(self.percentile)}"
            said.append(
                f"the rule of formulas, one for every {unit} from {c.least} on, {_paid(c.replica_h, c.usd_per_day)}, "
                f"{does}"
            )
        return tuple(said)


@dataclass(frozen=True, slots=True)
class PeakRecord:
    """The busiest slice of a day in a simulation whose passes are as slow as the probability asked for says:
    `rate_per_s` requests a second on `replicas`, spare ones not counted. Formulas ask for `asked`; where the targets
    are missed with these (`before`: their times), more are taken until they hold, or `holds` is False with the most
    that were tried. Times are means, or the `percentile` that was asked for."""

    rate_per_s: float
    asked: int
    replicas: int
    holds: bool
    percentile: float | None
    times: BoundedTimes
    before: BoundedTimes | None = None

    @property
    def words(self) -> str:
        """That fewer replicas miss the targets, and what more of them do; "" where as many as formulas ask for hold
        them."""
        if self.before is None:
            return ""
        missed = (
            f"simulated at the peak of the day, {rate_words(self.rate_per_s)}: {_replicas(self.asked)}, as formulas "
            f"ask, miss{'es' if self.asked == 1 else ''} the targets with passes as slow as the confidence asks "
            f"({self.before.words(self.percentile)})"
        )
        times = self.times.words(self.percentile)
        if self.holds:
            return f"{missed}; {_replicas(self.replicas)} hold them ({times})"
        if self.replicas == self.asked:
            return f"{missed}, and more are not allowed"
        return f"{missed}, and {_replicas(self.replicas)} do not hold them either ({times})"


def _replicas(count: int) -> str:
    return f"{count} replica{'s' if count > 1 else ''}"


def _paid(replica_h: float, usd_per_day: float | None) -> str:
    if usd_per_day is None:
        return f"{format_number(replica_h)} replica-hours"
    return f"${format_number(usd_per_day)} a day"


@dataclass(frozen=True, slots=True)
class TierRecord:
    """A tier of each replica below its cache: `room_bytes` of it, from which prefixes come at `bytes_per_s`;
    `hit_rate` is the share of prompt tokens that did. They spared `spared_s` seconds of passes, at this load
    `replica_h_month` hours of a replica a month, which is worth `usd_per_gb_month` for each GB (None: no price is
    known)."""

    tier: str
    room_bytes: float
    bytes_per_s: float
    hit_rate: float
    spared_s: float
    replica_h_month: float
    usd_per_gb_month: float | None


@dataclass(frozen=True, slots=True)
class CapacityRecord:
    """The share of prompt tokens that one cache of `room_bytes` for all requests finds (None: without end). `what` is
    the room on the chips, with tiers, or a step beside them ("")."""

    what: str
    room_bytes: float | None
    hit_rate: float


@dataclass(frozen=True, slots=True)
class BelowRecord:
    """What `tiers` below the cache change. `hit_rate` is the share of prompt tokens found on the chips, and
    `hit_rate_without` what would be without tiers; times to the first token are the middle run's. A replica costs
    `usd_per_h`."""

    tiers: tuple[TierRecord, ...]
    hit_rate: float
    hit_rate_without: float
    ttft_p50_without_s: float
    ttft_p99_without_s: float
    ttft_p50_s: float
    ttft_p99_s: float
    usd_per_h: float | None
    by_capacity: tuple[CapacityRecord, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Times, hits and worth, a line each."""
        shares = [f"{self.hit_rate:.1%} on the chips", *(f"{t.hit_rate:.1%} from {t.tier}" for t in self.tiers)]
        p50, p99, without_p50, without_p99 = (
            format_seconds(s)
            for s in (self.ttft_p50_s, self.ttft_p99_s, self.ttft_p50_without_s, self.ttft_p99_without_s)
        )
        return (
            f"of prompt tokens {', '.join(shares)}; {self.hit_rate_without:.1%} without tiers",
            f"TTFT p50 {p50}, p99 {p99}; without tiers {without_p50}, {without_p99}",
            *(self._worth(t) for t in self.tiers),
        )

    def _worth(self, t: TierRecord) -> str:
        if not t.spared_s:
            return f"{t.tier}: nothing came from it: it saves nothing"
        hours = f"{format_number(t.replica_h_month)} replica-hours a month"
        if t.usd_per_gb_month is None or self.usd_per_h is None:
            return f"{t.tier}: spares {hours} of prompts; no price is known"
        return (
            f"{t.tier}: a GB saves ${format_number(t.usd_per_gb_month)} a month: {hours} of prompts spared x "
            f"${format_number(self.usd_per_h)}/h, over the {format_bytes(t.room_bytes)} of each replica"
        )


@dataclass(frozen=True, slots=True)
class SimulationRecord(Quantified):
    """What became of requests. `lost` could never be served, as no rank holds them. `duration_s` from the first arrival
    to the last token; `drained_s` of it after the last arrival, at which `in_flight` requests were there. `hit_rate` is
    the share of prompt tokens found in the prefix cache. `tpot_s` is None where no request has two tokens. Of a network
    without tokens `wait_s` passes until a request is taken up, of others it is None. `scaling` is how replicas follow
    the load (None: all are there throughout), `below` what tiers below the cache change (None: there are none)."""

    requests: int
    lost: int
    duration_s: float
    drained_s: float
    in_flight: int
    hit_rate: float
    preemptions: int
    requests_per_s: float
    tokens_per_s: Figure | None
    busy: float
    ttft_s: SpreadRecord | None
    tpot_s: SpreadRecord | None
    e2e_s: SpreadRecord
    within: tuple[WithinRecord, ...]
    wait_s: SpreadRecord | None = None
    scaling: FollowingRecord | None = None
    below: BelowRecord | None = None


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One time, as a row."""

    time: str
    mean: Figure
    p50: Figure
    p95: Figure
    p99: Figure


@dataclass(frozen=True, slots=True, repr=False)
class SimulationReport(Answer[TimeRow]):
    """The answer to `simulate`: one deployment, the requests that came, and what became of them. `times` are those of
    `simulation` as rows. A model without tokens has no `workload`."""

    rows: ClassVar[str] = "times"

    model: ModelRecord | NetworkRecord
    workload: WorkloadRecord | None
    deployment: str
    arrivals: str
    simulation: SimulationRecord
    times: tuple[TimeRow, ...]
    assumptions: tuple[str, ...]
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """The slowest of a hundred requests, how many could not be served, and that more come than are served."""
        s = self.simulation
        came = s.requests / max(s.duration_s - s.drained_s, 1.0)
        if s.in_flight < GROWN * s.requests or came <= s.requests_per_s / (1.0 - GROWN):
            return (_slowest(self),)
        rates = f"{format_number(came)} requests/s came, {format_number(s.requests_per_s)} were served"
        return (_slowest(self), f"The queue grew as long as requests came ({rates}): a longer run waits longer.")

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line for each time."""
        s = self.simulation
        head = [*self.verdict(), f"arrivals: {self.arrivals}", ""]
        foot = [
            f"{w.mid:.1%} of requests within {w.target} {format_seconds(w.seconds)}"
            + (f" [{w.low:.1%}-{w.high:.1%}]" if w.low != w.high else "")
            for w in s.within
        ]
        rate = f"{rate_words(s.requests_per_s, 'requests')}"
        rate += f", {format_number(s.tokens_per_s.mid)} output tokens/s" if s.tokens_per_s else ""
        foot.append(f"all served in {duration_words(s.duration_s)}: {rate}, a pass ran {s.busy:.0%} of the time")
        if s.in_flight:
            drained = duration_words(s.drained_s)
            foot.append(f"{s.in_flight:,} requests were in flight at the last arrival; {drained} until all ended")
        foot += [f"scaling: {s.scaling.words}; {s.scaling.started} were started"] if s.scaling else []
        foot += [f"{s.hit_rate:.1%} of prompt tokens found in the prefix cache"] if s.hit_rate else []
        foot += [f"{s.preemptions:,} requests were preempted"] if s.preemptions else []
        if s.below is None:
            return (Table.of(self.times, TIMES, tuple(head), (*foot, *self.assumptions)),)
        return (
            Table.of(self.times, TIMES, tuple(head), (*foot, *s.below.words)),
            Table.of(
                s.below.by_capacity, CAPACITIES, ("", "hits by capacity, one cache for all requests:"), self.assumptions
            ),
        )


GROWN = 0.2
"""share: of requests that wait or run at the last arrival, and of the rate that is not served, from which a queue is
said to grow. Chosen: loads below the limit leave a few percent; moves a sentence alone."""
TIMES = (
    Column("time", "time"),
    Column("mean", "mean", figures.seconds, right=True),
    Column("p50", "p50", figures.seconds, right=True, spare=1),
    Column("p95", "p95", figures.seconds, right=True, spare=2),
    Column("p99", "p99", figures.seconds, right=True),
)
"""What is said of a time of requests."""
CAPACITIES = (
    Column("room", "room_bytes", format_bytes, right=True),
    Column("of prompt tokens", "hit_rate", lambda share: f"{share:.1%}", right=True),
    Column("which is", "what"),
)
"""What is said of caches of a size."""
NAMES = {"wait_s": "wait", "ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "whole answer"}


def rows_of(simulation: SimulationRecord) -> tuple[TimeRow, ...]:
    """The times of a simulation as rows."""
    found = ((name, getattr(simulation, field_)) for field_, name in NAMES.items())
    return tuple(TimeRow(name, s.mean, s.p50, s.p95, s.p99) for name, s in found if s is not None)


def _slowest(report: SimulationReport) -> str:
    s = report.simulation
    shown = {"p99 wait": s.wait_s, "p99 TTFT": s.ttft_s, "p99 TPOT": s.tpot_s}
    shown |= {"p99 of the whole answer": s.e2e_s} if s.wait_s is not None else {}
    times = ", ".join(f"{name} {figures.seconds(t.p99)}" for name, t in shown.items() if t is not None)
    first = f"{s.requests:,} requests on {report.deployment}: {times}"
    lost = f"; {s.lost:,} could not be served" if s.lost else ""
    return f"{first}{lost}."
