"""Replicas that serve a stream of requests: arrivals, routing, passes, in the order of their times. Work without
tokens runs in it too: a request is one sample, a pass a batch of them, and nothing decodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, inf, nan

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.events.cache import ENDLESS
from chipwise.predict.events.rank import Ledger, Prices, Rank, Rules
from chipwise.predict.events.scaling import Scaler, Scaling
from chipwise.predict.steptable import Line
from chipwise.units import Array
from chipwise.values import dataclass
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

    __slots__ = ("busy_s", "end", "passes", "ranks", "ready_s", "start", "working")

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self.ranks = ranks
        self.start, self.end, self.busy_s = 0.0, inf, 0.0
        self.ready_s = 0.0
        self.passes = 0
        self.working: Sequence[Rank] = ()

    def push(self, rank: Rank, request: int, now: float) -> None:
        """A request for one of the ranks."""
        rank.queue.append(request)
        if self.end == inf:
            self.start = self.end = now  # all that arrive at once start together
            self.passes = 0
        elif not self.passes:
            self.end = min(self.end, max(now, self.ready_s))  # it only waits for a prefix, or wakes
        elif self.passes > 1 and (rank.cut or rank not in self.working):
            # the pass in which it arrives is the last of these; a pass takes as long as the slowest rank
            passed = min(working.until(now - self.start) for working in self.working)
            self.passes = min(passed, self.passes)
            self.end = self.start + self._seconds(self.passes)

    def wake(self, ready_s: float) -> None:
        """Its first pass begins no sooner."""
        self.start = self.end = self.ready_s = ready_s
        self.passes = 0

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


class _OneQueue:
    """Engines of one rank each that all take from one queue: those of them that are there."""

    def __init__(self, clocks: Sequence[_Clock]) -> None:
        self.clocks = clocks
        self._queue: deque[int] = deque()
        self._clock = {id(clock.ranks[0]): clock for clock in clocks}
        self.settle([clock.ranks[0] for clock in clocks], 0.0)

    def route(self, ranks: Sequence[Rank], request: int) -> int:
        """The first engine that has nothing to do; where all have, any."""
        return next((i for i, rank in enumerate(ranks) if self._clock[id(rank)].end == inf), 0)

    def settle(self, live: Sequence[Rank], now: float) -> None:
        """Those that are there from now on take what waits, others no more."""
        there = {id(rank) for rank in live}
        for clock in self.clocks:
            rank = clock.ranks[0]
            rank.queue = self._queue if id(rank) in there else deque()
            if self._queue and id(rank) in there and clock.end == inf:
                clock.wake(now)


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
    ledger = _ledger(requests, fleet.rules)
    rules = _pieced(fleet.rules, requests)
    clocks = [_Clock([Rank(rules, fleet.table, ledger) for _ in range(fleet.ranks)]) for _ in range(fleet.engines)]
    queue = _OneQueue(clocks) if fleet.route == QUEUE else None
    route = ROUTES[fleet.route]() if queue is None else queue.route
    coming = _coming(requests, clients, pause_s)
    scaler = None
    if fleet.scaling is not None:
        groups = [clocks[i : i + fleet.stages] for i in range(0, len(clocks), fleet.stages)]
        scaler = Scaler(fleet.scaling, groups, coming.at[0] if len(requests) else 0.0)
    if queue is not None and scaler is not None:
        queue.settle(scaler.live, 0.0)
    _play(clocks, coming, route, scaler, queue=queue)
    found = _outcome(requests, ledger, clocks, coming, fleet.stages)
    if scaler is None:
        return found
    last = max((clock.start for clock in clocks), default=0.0)
    return replace(found, paid_s=scaler.paid_s(last), started=scaler.started)


def _ledger(requests: Arrivals, rules: Rules) -> Ledger:
    return Ledger(
        requests.prompt.astype(int).tolist(),
        requests.output.astype(int).tolist(),
        requests.blocks,
        requests.block_tokens,
        loaded=[0] * len(rules.tiers),
        spared_s=[0.0] * len(rules.tiers),
    )


def _pieced(rules: Rules, requests: Arrivals) -> Rules:
    """The rules with blocks of which pieces of prompts are whole ones."""
    if requests.blocks is None or not requests.block_tokens % rules.block_tokens:
        return rules
    size = gcd(requests.block_tokens, rules.block_tokens)
    blocks = rules.blocks if rules.blocks == ENDLESS else rules.blocks * (rules.block_tokens // size)
    return replace(rules, blocks=blocks, block_tokens=size)


def _coming(requests: Arrivals, clients: int | None = None, pause_s: float = 0.0) -> _Coming:
    times = [0.0] * len(requests) if requests.time_s is None else requests.time_s.tolist()
    return _Coming(times, clients, pause_s)


def _play(
    clocks: Sequence[_Clock],
    coming: _Coming,
    route: Route,
    scaler: Scaler | None = None,
    waking: _Waking | None = None,
    queue: _OneQueue | None = None,
) -> None:
    """Arrivals and passes in the order of their times."""
    ranks = [rank for clock in clocks for rank in clock.ranks]
    home = {id(rank): place for place, clock in enumerate(clocks) for rank in clock.ranks}
    never = ranks[0].never if waking is None else waking.never
    live = ranks if scaler is None else scaler.live
    ends = [inf] * len(clocks)
    in_flight = 0
    while True:
        soonest, due = min(ends), coming.due
        if scaler is not None and scaler.next_s <= min(soonest, due) < inf:
            now = scaler.next_s
            scaler.wake(in_flight)
            if queue is not None:
                queue.settle(live, now)
                ends = [clock.end for clock in clocks]
        elif due < inf and due <= soonest:
            request = coming.take()
            if never(request):
                coming.more(1, due)
                continue
            rank = live[route(live, request)]
            place = home[id(rank)]
            in_flight += 1
            if waking is not None and waking.holds(place, rank, request, due):
                waking.turn(ends, due)
                continue
            clocks[place].push(rank, request, due)
            ends[place] = clocks[place].end
        elif soonest < inf:
            place = ends.index(soonest)
            done = len(clocks[place].go())
            ends[place] = clocks[place].end
            in_flight -= done
            coming.ended(done, soonest)
            if waking is not None:
                waking.turn(ends, soonest)
        else:
            break


def _outcome(requests: Arrivals, ledger: Ledger, clocks: Sequence[_Clock], coming: _Coming, stages: int = 1) -> Outcome:
    arrived = np.full(len(requests), nan)
    arrived[: len(coming.at)] = coming.at
    last = max((clock.start for clock in clocks), default=0.0)
    first = 0.0 if requests.time_s is None or not len(requests) else float(requests.time_s[0])
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
        sum(clock.busy_s for clock in clocks) / stages,
        last - first,
        len(clocks) // stages,
        loaded=tuple(ledger.loaded),
        spared_s=tuple(ledger.spared_s),
    )


class _Waking:
    """Models on one device of which one is awake, each an engine of one rank: requests to others wait until it has
    nothing to do; then the one that has waited longest wakes, after the one awake has moved out and it has moved in."""

    def __init__(self, clocks: Sequence[_Clock], who: Sequence[int], move_s: Sequence[float]) -> None:
        self.clocks, self.who, self.move_s = clocks, who, move_s
        self.awake = 0
        self.wakes = [0] * len(clocks)
        self.moved_s = [0.0] * len(clocks)
        self._since = [inf] * len(clocks)
        """When the first of the requests that wait for a model came; infinite: none does."""

    def route(self, ranks: Sequence[Rank], request: int) -> int:
        """The model that a request asks."""
        return self.who[request]

    def never(self, request: int) -> bool:
        """Whether its model could not even run a request alone."""
        return self.clocks[self.who[request]].ranks[0].never(request)

    def holds(self, place: int, rank: Rank, request: int, now: float) -> bool:
        """Whether a request waits for its model to wake."""
        if place == self.awake:
            return False
        rank.queue.append(request)
        self._since[place] = min(self._since[place], now)
        return True

    def turn(self, ends: list[float], now: float) -> None:
        """Another model wakes where the one awake has nothing to do and some wait; `ends` takes up when it does."""
        since = min(self._since)
        if since == inf or ends[self.awake] != inf:
            return
        waking = self._since.index(since)
        move_s = self.move_s[self.awake] + self.move_s[waking]
        self.clocks[waking].wake(now + move_s)
        self.moved_s[waking] += move_s
        ends[waking], self._since[waking] = self.clocks[waking].end, inf
        self.wakes[waking] += 1
        self.awake = waking


@dataclass(frozen=True, eq=False)
class TurnedOutcome:
    """What became of requests to models that sleep by turns, of which each asks `who`; by model how often it woke
    (`wakes`), and how long it worked or moved another out and itself in (`taken_s`)."""

    outcome: Outcome
    who: NDArray[np.int64]
    wakes: tuple[int, ...]
    taken_s: Array


def run_by_turns(
    requests: Arrivals, who: NDArray[np.int64], models: Sequence[Fleet], move_s: Sequence[float]
) -> TurnedOutcome:
    """Serve requests to models on one device, each a fleet of one rank, of which one is awake: it works until it has no
    request under way. Then the model that has waited longest wakes: the one awake moves out in its `move_s`, the other
    in. The first model is awake at first. A request asks the model `who`; what that could never hold is not served."""
    ledger = _ledger(requests, models[0].rules)
    clocks = [_Clock([Rank(_pieced(m.rules, requests), m.table, ledger)]) for m in models]
    coming = _coming(requests)
    waking = _Waking(clocks, who.tolist(), move_s)
    _play(clocks, coming, waking.route, waking=waking)
    taken = np.array([clock.busy_s for clock in clocks]) + waking.moved_s
    return TurnedOutcome(_outcome(requests, ledger, clocks, coming), who, tuple(waking.wakes), taken)


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
