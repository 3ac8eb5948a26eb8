"""Replicas that serve a stream of requests: arrivals, routing, passes, in the order of their times. Work without
tokens runs in it too: a request is one sample, a pass a batch of them, and nothing decodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, inf, nan

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.events.cache import ENDLESS
from chipwise.predict.events.rank import Ledger, Prices, Rank, Rules
from chipwise.predict.events.scaling import Scaler, Scaling
from chipwise.predict.steptable import Line
from chipwise.units import Array
from chipwise.workload.arrivals import Arrivals

Route = Callable[[Sequence[Rank], int], int]
"""Who gets a request: the number of a rank."""


def in_turn() -> Route:
    """One after the other."""
    turn = -1

    def route(ranks: Sequence[Rank], request: int) -> int:
        nonlocal turn
        turn = (turn + 1) % len(ranks)
        return turn

    return route


def least_loaded() -> Route:
    """The one with the fewest requests in flight, of several the first."""

    def route(ranks: Sequence[Rank], request: int) -> int:
        loads = [len(rank.queue) + len(rank.order) + len(rank.loading) for rank in ranks]
        return loads.index(min(loads))

    return route


PREFIX_WORTH = 8.0
"""requests in flight: that a prompt which is there as a whole outweighs. Chosen: no source is known; moves who gets a
request where routing looks at prefixes."""


def by_prefix() -> Route:
    """The one with the fewest requests in flight, less what it knows of the prompt already."""

    def route(ranks: Sequence[Rank], request: int) -> int:
        loads = [rank.in_flight - PREFIX_WORTH * rank.share_of(request) for rank in ranks]
        return loads.index(min(loads))

    return route


ROUTES: dict[str, Callable[[], Route]] = {"turn": in_turn, "least": least_loaded, "prefix": by_prefix}
QUEUE = "queue"
"""Instead of a route: all wait in one queue, from which each rank takes when it is free. For work whose passes are
never alike, as no rank sees that another request came."""


@dataclass(frozen=True)
class Fleet:
    """What serves: `engines` that each have a clock, with `ranks` that go in step (a pass takes as long as the slowest
    of them), scheduled by `rules` and routed to by `route`, one of `ROUTES`, or `QUEUE`. A replica has so many engines
    as pipeline `stages`; under `scaling` replicas come and go, and all of `engines` are there at most."""

    rules: Rules
    table: Prices
    engines: int = 1
    ranks: int = 1
    route: str = "turn"
    stages: int = 1
    scaling: Scaling | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of requests, arrays by number: when each `arrived`, its first pass `began`, its `first` and `last`
    token came, in seconds; NaN where it was never served. `output` are its tokens. `found` and `computed` count prompt
    tokens over all, `again` those computed once more after one of `preempted`; `busy_s` is the sum over `replicas` of
    the time in passes, and `whole_s` the time from the first arrival to the end of the last pass. Replicas that follow
    the load are paid for `paid_s` over all, and were `started` so often. Of the tokens found `loaded` came up from each
    tier below the cache, which spared `spared_s` seconds of passes."""

    arrived: Array
    began: Array
    first: Array
    last: Array
    prompt: Array
    output: Array
    found: int
    computed: int
    again: int
    preempted: int
    passes: int
    events: int
    busy_s: float
    whole_s: float = 0.0
    replicas: int = 1
    paid_s: float = 0.0
    started: int = 0
    loaded: tuple[int, ...] = ()
    spared_s: tuple[float, ...] = ()

    def delayed(self, seconds: float) -> Outcome:
        """The same as clients see it, whose requests reach the engine so much later than they are sent."""
        return replace(self, arrived=self.arrived - seconds)

    def counting(self, some: slice) -> Outcome:
        """The same of some of the requests; counts over all stay."""
        names = ("arrived", "began", "first", "last", "prompt", "output")
        return replace(self, **{name: getattr(self, name)[some] for name in names})

    @property
    def busy(self) -> float:
        """Share of time in passes, of all replicas that are paid for, from the first pass to the last."""
        there_s = self.paid_s or self.replicas * self.whole_s
        return min(self.busy_s / there_s, 1.0) if there_s else 0.0

    @property
    def served(self) -> NDArray[np.bool_]:
        """Which requests were served."""
        return np.isfinite(self.last)

    @property
    def wait_s(self) -> Array:
        """Seconds until the first pass of those that were served begins."""
        return (self.began - self.arrived)[self.served]

    @property
    def ttft_s(self) -> Array:
        """Seconds to the first token of those that were served."""
        return (self.first - self.arrived)[self.served]

    @property
    def e2e_s(self) -> Array:
        """Seconds to the last token of those that were served."""
        return (self.last - self.arrived)[self.served]

    @property
    def tpot_s(self) -> Array:
        """Seconds per token after the first, of those that were served and had some."""
        more = self.served & (self.output > 1)
        return (self.last - self.first)[more] / (self.output[more] - 1.0)

    @property
    def duration_s(self) -> float:
        """Seconds from the first arrival to the last token."""
        return float(np.nanmax(self.last) - self.arrived[0]) if self.served.any() else 0.0

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens, of all that were asked for, that a cache had."""
        asked = self.found + self.computed
        return self.found / asked if asked else 0.0


class _Clock:
    """An engine: its ranks start a pass together, which takes as long as the slowest of them."""

    __slots__ = ("busy_s", "end", "passes", "ranks", "start", "working")

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self.ranks = ranks
        self.start, self.end, self.busy_s = 0.0, inf, 0.0
        self.passes = 0
        self.working: Sequence[Rank] = ()

    def push(self, rank: Rank, request: int, now: float) -> None:
        """A request for one of the ranks."""
        rank.queue.append(request)
        if self.end == inf:
            self.start = self.end = now  # all that arrive at once start together
            self.passes = 0
        elif not self.passes:
            self.end = min(self.end, now)  # it only waits for a prefix
        elif self.passes > 1 and (rank.cut or rank not in self.working):
            # the pass in which it arrives is the last of these; a pass takes as long as the slowest rank
            passed = min(working.until(now - self.start) for working in self.working)
            self.passes = min(passed, self.passes)
            self.end = self.start + self._seconds(self.passes)

    def _seconds(self, passes: int) -> float:
        return max(rank.seconds(passes) for rank in self.working)

    def go(self) -> list[int]:
        """Do the passes that end now, and start the next; the requests that ended."""
        done: list[int] = []
        if self.passes:
            self.busy_s += self.end - self.start
            for rank in self.working:
                done += rank.commit(self.start, self.passes, self.end)
        self.start = now = self.end
        if len(self.ranks) == 1:
            self.working = working = self.ranks if self.ranks[0].propose(now) else ()
        else:
            self.working = working = [rank for rank in self.ranks if rank.propose(now)]
        if not working:
            self.passes, self.end = 0, min(rank.wakes for rank in self.ranks)
        elif len(working) == 1:
            only = working[0]
            self.passes = passes = only.passes
            self.end += passes * (only.step_s + only.slope_s * (passes - 1) / 2.0)
        else:
            self.passes = _together(working)
            self.end = self.start + self._seconds(self.passes)
        if self.passes > 1:
            self._woken()
        return done

    def _woken(self) -> None:
        """The pass in which a prefix is up is the last of these."""
        wakes = min((rank.wakes for rank in self.ranks if rank.loading), default=inf)
        if wakes < self.end:
            passed = min(rank.until(wakes - self.start) for rank in self.working)
            self.passes = min(passed, self.passes)
            self.end = self.start + self._seconds(self.passes)


def _first_free(clocks: Sequence[_Clock]) -> Route:
    """The first engine, of one rank each, that has nothing to do; where all have, any: all take from one queue."""
    return lambda ranks, request: next((i for i, clock in enumerate(clocks) if clock.end == inf), 0)


def _together(ranks: Sequence[Rank]) -> int:
    """Passes that ranks do in step before anything changes, which one of them is the slowest included."""
    passes = min(rank.passes for rank in ranks)
    if passes == 1:
        return 1
    slowest = max(ranks, key=lambda rank: (rank.step_s, rank.slope_s))
    for rank in ranks:
        if rank.slope_s > slowest.slope_s:
            crossing = (slowest.step_s - rank.step_s) / (rank.slope_s - slowest.slope_s)
            passes = min(passes, max(int(crossing), 1))
    return passes


class _Coming:
    """Requests in the order in which they come: at their times, or with `clients` so many at first, each further one
    `pause_s` after one ended. `due` is when the next comes, infinite where none is known."""

    __slots__ = ("_count", "_pause_s", "_waiting", "at", "due")

    def __init__(self, times: list[float], clients: int | None, pause_s: float) -> None:
        self._count, self._pause_s = len(times), pause_s
        first = len(times) if clients is None else min(clients, len(times))
        self.at = list(times) if clients is None else [0.0] * first
        self._waiting = deque(range(first))
        self.due = self.at[0] if first else inf

    def take(self) -> int:
        """The next request."""
        request = self._waiting.popleft()
        self.due = self.at[self._waiting[0]] if self._waiting else inf
        return request

    def more(self, ended: int, now: float) -> None:
        """So many clients send their next request."""
        for _ in range(min(ended, self._count - len(self.at))):
            self._waiting.append(len(self.at))
            self.at.append(now)
            self.due = self.at[self._waiting[0]]

    def ended(self, count: int, now: float) -> None:
        """So many requests ended."""
        self.more(count, now + self._pause_s)


def run(requests: Arrivals, fleet: Fleet, *, clients: int | None = None, pause_s: float = 0.0) -> Outcome:
    """Serve requests as they arrive; those without times all at once. With `clients` so many are in flight: the first
    at once, each further one `pause_s` after one ends. What no rank could ever hold is not served. Equal requests and
    fleets have equal outcomes."""
    count = len(requests)
    pieces = requests.blocks
    ledger = Ledger(
        requests.prompt.astype(int).tolist(),
        requests.output.astype(int).tolist(),
        pieces,
        requests.block_tokens,
        loaded=[0] * len(fleet.rules.tiers),
        spared_s=[0.0] * len(fleet.rules.tiers),
    )
    rules = fleet.rules
    if pieces is not None and requests.block_tokens % rules.block_tokens:
        # pieces are whole blocks
        size = gcd(requests.block_tokens, rules.block_tokens)
        blocks = rules.blocks if rules.blocks == ENDLESS else rules.blocks * (rules.block_tokens // size)
        rules = replace(rules, blocks=blocks, block_tokens=size)
    clocks = [
        _Clock([Rank(rules, fleet.table, ledger) for _ in range(fleet.ranks)]) for _ in range(fleet.engines)
    ]
    ranks = [rank for clock in clocks for rank in clock.ranks]
    home = {id(rank): place for place, clock in enumerate(clocks) for rank in clock.ranks}
    if fleet.route == QUEUE:
        for rank in ranks:
            rank.queue = ranks[0].queue
    route = _first_free(clocks) if fleet.route == QUEUE else ROUTES[fleet.route]()
    times = [0.0] * count if requests.time_s is None else requests.time_s.tolist()
    coming = _Coming(times, clients, pause_s)
    scaler = None
    if fleet.scaling is not None:
        groups = [clocks[i : i + fleet.stages] for i in range(0, len(clocks), fleet.stages)]
        scaler = Scaler(fleet.scaling, groups, coming.at[0] if count else 0.0)
    live = ranks if scaler is None else scaler.live
    ends = [inf] * len(clocks)
    in_flight = 0
    while True:
        soonest, due = min(ends), coming.due
        if scaler is not None and scaler.next_s <= min(soonest, due) < inf:
            scaler.wake(in_flight)
        elif due < inf and due <= soonest:
            request = coming.take()
            if ranks[0].never(request):
                coming.more(1, due)
                continue
            rank = live[route(live, request)]
            place = home[id(rank)]
            clocks[place].push(rank, request, due)
            ends[place] = clocks[place].end
            in_flight += 1
        elif soonest < inf:
            place = ends.index(soonest)
            done = len(clocks[place].go())
            ends[place] = clocks[place].end
            in_flight -= done
            coming.ended(done, soonest)
        else:
            break
    arrived = np.full(count, nan)
    arrived[: len(coming.at)] = coming.at
    last = max((clock.start for clock in clocks), default=0.0)
    return Outcome(
        arrived,
        np.array(ledger.began),
        np.array(ledger.first),
        np.array(ledger.last),
        requests.prompt,
        requests.output,
        ledger.found,
        ledger.computed,
        ledger.again,
        ledger.preempted,
        ledger.passes,
        ledger.events,
        sum(clock.busy_s for clock in clocks) / fleet.stages,
        last - (times[0] if count else 0.0),
        len(clocks) // fleet.stages,
        0.0 if scaler is None else scaler.paid_s(last),
        0 if scaler is None else scaler.started,
        tuple(ledger.loaded),
        tuple(ledger.spared_s),
    )


def run_apart(requests: Arrivals, prompts: Fleet, decoding: Fleet, sent_s: Array) -> Outcome:
    """Serve requests whose prompts are computed by workers of their own: each is then sent to those that decode, which
    takes `sent_s` [requests], and is seen by its client from then on. Workers for prompts do not wait for room where
    their requests go. What either pool could never hold is not served."""
    ones = np.ones(len(requests))
    before = run(replace(requests, output=ones), prompts)
    first = before.first + sent_s
    more = np.flatnonzero(np.isfinite(first) & (requests.output > 1))
    order = more[np.argsort(first[more], kind="stable")]
    last = np.where(requests.output > 1, nan, first)
    sent = Arrivals(requests.prompt[order], requests.output[order] - 1.0, first[order])
    after = run(sent, replace(decoding, rules=replace(decoding.rules, ready=True)))
    last[order] = after.last
    return replace(
        before,
        first=np.where(np.isfinite(last), first, nan),
        last=last,
        output=requests.output,
        computed=before.computed + after.computed,
        again=before.again + after.again,
        preempted=before.preempted + after.preempted,
        passes=before.passes + after.passes,
        events=before.events + after.events,
        busy_s=before.busy_s + after.busy_s,
        whole_s=max(before.whole_s, float(np.nanmax(last, initial=0.0)) - float(before.arrived[0])),
        replicas=before.replicas + after.replicas,
    )


@dataclass(frozen=True, eq=False)
class JobTimes:
    """Seconds of a batch by the samples in it: `seconds[n - 1]` of n, up to a full one."""

    seconds: Array

    def prompts(self, batch: float, tokens: float, pairs: float) -> float:
        """Seconds of a batch of so many samples."""
        return float(self.seconds[int(tokens) - 1])

    def line(self, batch: float, context: float) -> Line:
        """Nothing follows a batch."""
        return Line(0.0, 0.0, inf)

    def scaled(self, factor: float) -> JobTimes:
        """The same where every batch takes `factor` times as long."""
        return JobTimes(self.seconds * factor)


def job_fleet(times: JobTimes, copies: int, route: str = QUEUE) -> Fleet:
    """So many copies of a network, each of which takes what waits, up to a full batch, whenever it is free."""
    most = len(times.seconds)
    return Fleet(Rules(most, most, alone=True, static=True), times, copies, route=route)
