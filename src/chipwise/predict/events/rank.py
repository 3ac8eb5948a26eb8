"""One rank of an engine: which requests run, what its next pass holds, and how many passes alike follow.

No event looks at a sequence that does nothing: one that starts to decode with r tokens to come ends r decode passes
later, so that a heap of these counts says how long passes stay alike. Their times then rise evenly with the context.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import field
from heapq import heapify, heappop, heappush
from math import inf, nan
from typing import Protocol

from chipwise.predict.events.cache import ENDLESS, Blocks, CacheTier
from chipwise.predict.steptable import Line
from chipwise.values import dataclass


class Prices(Protocol):
    """Seconds of passes: `predict.steptable.StepTable`, or `JobTimes` of work without tokens."""

    def line(self, batch: float, context: float) -> Line:
        """A decode pass of `batch` sequences that hold `context` tokens each."""

    def prompts(self, batch: float, tokens: float, pairs: float) -> float:
        """What `tokens` of prompts with so many pairs add to a pass of `batch` sequences."""


@dataclass(frozen=True)
class Rules:
    """How a rank schedules. `budget` tokens go into one pass, at most `most` sequences run; its cache has `blocks` of
    `block_tokens`. `whole`: room for the whole output is taken when a request enters, else as it grows, and where none
    is left the last one to enter is recomputed later. `alone`: prompts have passes of their own, before decoding;
    `static`: a batch starts together, and the next when all of it has ended. `jumps`: passes that are alike are one
    event; without, each is one. `known`: share of every prompt that the cache has, where requests do not say which.
    `ready`: requests come with their prompts, computed elsewhere, and decode at once. `moved_s`: instead of being
    recomputed what a sequence holds is moved to the host and back, so many seconds a token each way, which its pass
    waits for; None: it is recomputed. `tiers` keep prefixes that its cache has no room for, the next below the last; a
    request whose prefix comes up from there waits for it, others do not."""

    budget: int
    most: int
    blocks: int = ENDLESS
    block_tokens: int = 1
    whole: bool = False
    alone: bool = False
    static: bool = False
    jumps: bool = True
    known: float = 0.0
    ready: bool = False
    moved_s: float | None = None
    tiers: tuple[CacheTier, ...] = ()


@dataclass
class Ledger:
    """What is known of every request, lists by number: its prompt and output in tokens, pieces of its prompt (of
    `piece_tokens`), when its first pass began, and its first and last token came. Counted over all: prompt tokens that
    were `computed`, `found` in a cache, and computed once more after a preemption (`again`). `loaded` are those found
    that came up from each tier, which spared `spared_s` seconds of passes."""

    prompt: list[int]
    output: list[int]
    pieces: Sequence[Sequence[int]] | None = None
    piece_tokens: int = 0
    began: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    computed: int = 0
    found: int = 0
    again: int = 0
    preempted: int = 0
    passes: int = 0
    events: int = 0
    loaded: list[int] = field(default_factory=list)
    spared_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        for times in (self.began, self.first, self.last):
            times.extend([nan] * len(self.prompt))


class Rank:
    """The requests of one rank. `propose` makes up the next passes, `commit` does them."""

    __slots__ = (
        "batch", "blocks", "books", "closed", "coming", "count", "cut", "doing", "ends", "entered", "held", "ledger",
        "loading", "moved", "now", "order", "partial", "passes", "phases", "queue", "reading", "rules", "slope_s",
        "step_s", "swapped", "table", "todo",
    )  # fmt: skip

    def __init__(self, rules: Rules, table: Prices, ledger: Ledger) -> None:
        self.rules, self.table, self.ledger = rules, table, ledger
        unit = max(-(-ledger.piece_tokens // rules.block_tokens), 1)
        self.blocks = Blocks(rules.blocks, unit, rules.tiers)
        self.queue: deque[int] = deque()
        self.batch = 0
        """Sequences that decode."""
        self.held = 0
        """Tokens that they hold together."""
        self.count = 0
        """Decode passes so far."""
        self.ends: list[tuple[int, int]] = []
        """(count at which it ends, request) of all that decode, a heap."""
        self.partial = -1
        """The request whose prompt is in pieces."""
        self.todo: dict[int, list[int]] = {}
        """Of requests that run or were preempted: [prompt tokens, those computed or found, output tokens to come]."""
        self.entered: dict[int, tuple[int, int]] = {}
        """Of those that decode: the count at which they began to, and the tokens that they held."""
        self.reading: dict[int, Sequence[int]] = {}
        """Pieces that a request runs on."""
        self.books: dict[int, int] = {}
        """Blocks of a request that are its own."""
        self.order: dict[int, None] = {}
        """Requests that run, in the order in which they entered."""
        self.closed = False
        """Of batches that start together: whether this one decodes already."""
        self.phases = [0] * rules.block_tokens
        """How many of those that decode need a block more at a count, by its rest."""
        self.swapped: dict[int, int] = {}
        """Tokens of requests that wait on the host."""
        self.moved = 0
        """Tokens that go there or come back before the next pass."""
        self.now = 0.0
        """When the next passes begin."""
        self.loading: list[tuple[float, int]] = []
        """(when its prefix is up, request) of those that have their room and wait for it, a heap."""
        self.coming: dict[int, float] = {}
        """When pieces that come up are there."""
        self.doing: list[tuple[int, int]] = []
        """(request, prompt tokens) of the next pass."""
        self.passes, self.step_s, self.slope_s, self.cut = 0, 0.0, 0.0, False
        """The next passes: how many, seconds of the first, how many more of each after it, whether a request that
        arrives meanwhile may enter before all are done."""

    @property
    def in_flight(self) -> int:
        """Requests that run or wait here."""
        return len(self.queue) + len(self.order) + len(self.loading)

    @property
    def wakes(self) -> float:
        """When the next prefix is up, infinite where none is on its way."""
        return min((up_s for up_s, _ in self.loading if up_s > self.now), default=inf)

    def share_of(self, request: int) -> float:
        """Share of a request's pieces that are here."""
        if self.ledger.pieces is None:
            return 0.0
        ids = self.ledger.pieces[request]
        return self.blocks.found(ids) / len(ids) if ids else 0.0

    def never(self, request: int) -> bool:
        """Whether a request could not even run alone."""
        tokens = self.ledger.prompt[request] + self.ledger.output[request] - 1
        return -(-tokens // self.rules.block_tokens) > self.rules.blocks

    def propose(self, now: float = 0.0) -> bool:
        """Make up the next passes, which begin `now`; False where there is nothing to do."""
        self.now, self.moved = now, 0
        if not self._made_up():
            return False
        if self.moved:
            self.passes, self.slope_s, self.cut = 1, 0.0, False
            self.step_s += self.moved * (self.rules.moved_s or 0.0)
        return True

    def _made_up(self) -> bool:
        rules = self.rules
        self.doing.clear()
        self.passes, self.slope_s, self.cut = 1, 0.0, False
        tokens, pairs = 0, 0.0
        waits = bool(self.queue or self.loading) or self.partial >= 0
        if rules.alone or rules.whole or not self.batch:
            tokens, pairs = self._admitted(0) if waits else (0, 0.0)
        elif not self._grown() and waits:
            tokens, pairs = self._admitted(self.phases[-self.count % rules.block_tokens])
        if tokens:
            if rules.alone:
                self.step_s = self.table.prompts(0, tokens, pairs)
            else:
                batch = self.batch
                self.step_s = self.table.prompts(batch, tokens, pairs)
                if batch:
                    self.step_s += self.table.line(batch, self.held / batch).seconds
            return True
        if not self.batch:
            return False
        if rules.alone and not rules.whole:
            self._grown()
        batch = self.batch
        context = self.held / batch
        line = self.table.line(batch, context)
        self.step_s = line.seconds
        if rules.jumps:
            steps = self.ends[0][0] - self.count
            if line.until - context < steps:
                steps = max(int(line.until - context), 1)
            if not rules.whole and steps > 1:
                steps = self._room(steps)
            self.passes, self.slope_s = steps, line.slope_s
            self.cut = not self.queue and not rules.static
        return True

    def seconds(self, passes: int) -> float:
        """How long so many of the proposed passes take."""
        return passes * (self.step_s + self.slope_s * (passes - 1) / 2.0)

    def until(self, seconds: float) -> int:
        """How many of them are done by then, at least: the first boundary not before it."""
        a, b = self.slope_s / 2.0, self.step_s - self.slope_s / 2.0
        k = seconds / b if a <= 0.0 else (-b + (b * b + 4.0 * a * seconds) ** 0.5) / (2.0 * a)
        passes = max(int(k), 1)
        while passes > 1 and self.seconds(passes - 1) >= seconds:
            passes -= 1
        while self.seconds(passes) < seconds:
            passes += 1
        return min(passes, self.passes)

    def commit(self, start: float, passes: int, end: float) -> list[int]:
        """Do so many of the proposed passes; the requests that end with the last."""
        ledger = self.ledger
        done: list[int] = []
        ledger.passes += passes
        ledger.events += 1
        if self.batch and not (self.doing and self.rules.alone):
            self._decoded(passes, end, done)
        for request, tokens in self.doing:
            state = self.todo[request]
            if ledger.began[request] != ledger.began[request]:
                ledger.began[request] = start
            state[1] += tokens
            ledger.computed += tokens
            if state[1] == state[0]:
                self._prompted(request, state, end, done)
        return done

    def _decoded(self, passes: int, end: float, done: list[int]) -> None:
        rules, count = self.rules, self.count
        if not rules.whole:
            size = rules.block_tokens
            whole, rest = divmod(passes, size)
            new = whole * self.batch
            if rest:
                phases = self.phases
                for j in range(count, count + rest):
                    new += phases[-j % size]
            if new:
                self.blocks.take(new)
        self.count = count = count + passes
        self.held += passes * self.batch
        ends = self.ends
        while ends and ends[0][0] == count:
            request = heappop(ends)[1]
            began, held = self.entered.pop(request)
            if not rules.static:
                self.batch -= 1
                self.held -= held + count - began
            if not rules.whole:
                self.phases[(self._own(request, held) - began) % rules.block_tokens] -= 1
            self._left(request, held + count - began)
            self.ledger.last[request] = end
            done.append(request)
        if rules.static:
            self.closed = bool(ends)
            if not ends:
                self.batch = self.held = 0

    def _prompted(self, request: int, state: list[int], end: float, done: list[int]) -> None:
        """A prompt is computed: its last pass gives a token."""
        ledger, tokens = self.ledger, state[0]
        state[2] -= 1
        if ledger.first[request] != ledger.first[request]:
            ledger.first[request] = end
        if ledger.pieces is not None:
            self._kept(request)
        if self.partial == request:
            self.partial = -1
        if state[2] == 0:
            ledger.last[request] = end
            self._left(request, tokens)
            done.append(request)
            return
        self._decodes(request, state)

    def _decodes(self, request: int, state: list[int]) -> None:
        """A request whose prompt is computed decodes from the next pass on."""
        tokens = state[0]
        self.batch += 1
        self.held += tokens
        self.entered[request] = (self.count, tokens)
        heappush(self.ends, (self.count + state[2], request))
        if not self.rules.whole:
            self.phases[(self._own(request, tokens) - self.count) % self.rules.block_tokens] += 1

    def _own(self, request: int, tokens: int) -> int:
        """Of the tokens that a request holds, those in blocks of its own."""
        pieces = self.reading.get(request)
        return tokens - len(pieces) * self.ledger.piece_tokens if pieces else tokens

    def _kept(self, request: int) -> None:
        """The whole pieces of a computed prompt are there for others."""
        ledger = self.ledger
        ids = ledger.pieces[request]  # type: ignore[index]
        had = self.reading.get(request, ())
        whole = ids[: ledger.prompt[request] // ledger.piece_tokens]
        if len(whole) > len(had):
            new = whole[len(had) :]
            self.blocks.keep(new)
            self.books[request] -= len(new) * self.blocks.unit
            self.reading[request] = whole

    def _left(self, request: int, tokens: int) -> None:
        """A request runs no more, with so many tokens held."""
        blocks = self.books.pop(request)
        if not self.rules.whole:
            blocks = -(-self._own(request, tokens) // self.rules.block_tokens)
        self.blocks.give(blocks)
        pieces = self.reading.pop(request, None)
        if pieces:
            self.blocks.leave(pieces)
        del self.order[request]
        del self.todo[request]

    def _grown(self) -> bool:
        """Make room for the next token of all that decode: where there is none the last to enter is computed anew,
        before all that wait. Whether one was."""
        blocks, phases = self.blocks, self.phases
        size = self.rules.block_tokens
        preempted = False
        while blocks.used + phases[-self.count % size] > blocks.total:
            request = next(reversed(self.order))
            state = list(self.todo[request])
            swaps = self.rules.moved_s is not None
            if request == self.partial:
                held, self.partial = state[0], -1
                if swaps:
                    self.swapped[request] = state[1]
                else:
                    self.ledger.again += state[1]
            else:
                began, context = self.entered.pop(request)
                done = self.count - began
                held = context + done
                self.batch -= 1
                self.held -= held
                self.ends = [e for e in self.ends if e[1] != request]
                heapify(self.ends)
                phases[(self._own(request, context) - began) % size] -= 1
                state[2] -= done
                if swaps:
                    self.swapped[request] = state[0] = held
                else:
                    state[0] = held + 1
                    self.ledger.again += state[0]
            self._left(request, held)
            self.moved += self.swapped.get(request, 0)
            state[1] = 0
            self.todo[request] = state
            self.queue.appendleft(request)
            self.ledger.preempted += 1
            preempted = True
        return preempted

    def _room(self, steps: int) -> int:
        """How many of so many decode passes the cache has room for; the first fits."""
        blocks, phases = self.blocks, self.phases
        size = self.rules.block_tokens
        free = blocks.total - blocks.used
        if (-(-steps // size)) * self.batch <= free:
            return steps
        rounds = min(free // self.batch, steps // size)
        # whole rounds first, then pass by pass
        done, free = rounds * size, free - rounds * self.batch
        while done < steps:
            free -= phases[-(self.count + done) % size]
            if free < 0:
                break
            done += 1
        return max(done, 1)

    def _admitted(self, growing: int) -> tuple[int, float]:
        """Prompt tokens of the next pass, and their pairs; requests enter in order, while budget, sequences and cache
        allow it, of which those that decode take `growing` blocks more in this pass."""
        rules, ledger, queue = self.rules, self.ledger, self.queue
        partial = self.partial
        if self.closed:
            return 0, 0.0
        budget = rules.budget if rules.alone else rules.budget - self.batch
        tokens, pairs = 0, 0.0
        if partial >= 0 and budget > 0:
            state = self.todo[partial]
            tokens = min(state[0] - state[1], budget)
            pairs = tokens * (state[1] + tokens / 2.0)
            self.doing.append((partial, tokens))
        while self.loading and self.loading[0][0] <= self.now and tokens < budget:
            request = self._loaded()
            chunk, more_pairs = self._chunk(request, self.todo[request], budget - tokens)
            tokens, pairs = tokens + chunk, pairs + more_pairs
        while queue and tokens < budget and len(self.order) + len(self.loading) < rules.most:
            request = queue[0]
            fresh = request not in self.todo
            state = self.todo.get(request) or [ledger.prompt[request], 0, ledger.output[request]]
            ready = (fresh and rules.ready) or self.swapped.get(request) == state[0]
            more = ready and not rules.whole and state[0] % rules.block_tokens == 0
            if not self._entered(request, state, growing + more):
                break
            queue.popleft()
            if request not in self.order:
                continue  # its prefix is on its way
            if ready:
                state[1] = state[0]
                growing += more
                budget -= not rules.alone
                self._decodes(request, state)
                continue
            chunk, more_pairs = self._chunk(request, state, budget - tokens)
            tokens, pairs = tokens + chunk, pairs + more_pairs
        return tokens, pairs

    def _chunk(self, request: int, state: list[int], room: int) -> tuple[int, float]:
        """Tokens of a prompt that the next pass computes, and their pairs; what is left is its partial one."""
        chunk = min(state[0] - state[1], room)
        self.doing.append((request, chunk))
        if chunk < state[0] - state[1]:
            self.partial = request
        return chunk, chunk * (state[1] + chunk / 2.0)

    def _loaded(self) -> int:
        """The request whose prefix was up first: it runs."""
        request = heappop(self.loading)[1]
        self.order[request] = None
        for one in self.reading.get(request, ()):
            if self.coming.get(one, inf) <= self.now:
                del self.coming[one]
        return request

    def _worth(self, pieces: Sequence[int], state: list[int]) -> tuple[list[int], float]:
        """Where the pieces of a prompt lie that it runs on, those of tiers as far as they are up sooner than computed,
        and the seconds that computing these would take."""
        ledger, blocks = self.ledger, self.blocks
        size = ledger.piece_tokens
        places = blocks.places(pieces)[: (state[0] - 1) // size]
        here = next((i for i, place in enumerate(places) if place), len(places))
        best, least_s, spared_s = here, inf, 0.0
        # as far as the first piece of each tier, or all of it
        for end in sorted({here, len(places), *(places.index(p) for p in set(places) if p)}):
            if end < here:
                continue
            up_s = max(
                (s.until(places[:end].count(i), self.now) for i, s in enumerate(blocks.pools, 1)), default=self.now
            )
            rest_s = self._computed_s(end * size, state[0])
            if up_s - self.now + rest_s < least_s:
                best, least_s = end, up_s - self.now + rest_s
        if best > here:
            spared_s = self._computed_s(here * size, state[0]) - self._computed_s(best * size, state[0])
        return places[:best], spared_s

    def _computed_s(self, known: int, tokens: int) -> float:
        """Seconds of passes for the tokens of a prompt after those that are known."""
        most, total = self.rules.budget, 0.0
        while known < tokens:
            chunk = min(most, tokens - known)
            total += self.table.prompts(0, chunk, chunk * (known + chunk / 2.0))
            known += chunk
        return total

    def _entered(self, request: int, state: list[int], growing: int) -> bool:
        """Give a request its room in the cache; False where there is none."""
        rules, ledger = self.rules, self.ledger
        size = rules.block_tokens
        pieces: Sequence[int] = ()
        back = self.swapped.get(request)
        places: Sequence[int] = ()
        spared_s = 0.0
        if ledger.pieces is not None and back is None:
            ids = ledger.pieces[request]
            if self.blocks.pools:
                places, spared_s = self._worth(ids, state)
                here = len(places)
            else:
                here = min(self.blocks.found(ids), (state[0] - 1) // ledger.piece_tokens)
            pieces = ids[:here]
        known = len(pieces) * ledger.piece_tokens
        tokens = state[0] - known
        if back is not None:
            known = 0
        elif rules.known:
            known = min(int(rules.known * ledger.prompt[request]), state[0] - 1)
        if rules.whole:
            tokens += state[2] - 1
        blocks = -(-tokens // size)
        if not self.blocks.fits(blocks + growing, pieces):
            return False
        up_s = self.now
        if pieces:
            self.reading[request] = pieces
            if places:
                up_s = self._fetched(pieces, places, spared_s)
            else:
                self.blocks.read(pieces)
        ledger.found += known
        self.blocks.take(blocks)
        self.books[request] = blocks
        state[1] = known if back is None else self.swapped.pop(request)
        self.moved += back or 0
        self.todo[request] = state
        if up_s > self.now:
            heappush(self.loading, (up_s, request))
        else:
            self.order[request] = None
        return True

    def _fetched(self, pieces: Sequence[int], places: Sequence[int], spared_s: float) -> float:
        """When the pieces of a prompt are all up, those that come from tiers being on their way from now on."""
        up_s = self.blocks.load(pieces, places, self.now)
        if self.coming:
            up_s = max(up_s, *(self.coming.get(one, 0.0) for one in pieces))
        loaded = sum(place > 0 for place in places)
        for one, place in zip(pieces, places, strict=True):
            if place:
                self.ledger.loaded[place - 1] += self.ledger.piece_tokens
                self.ledger.spared_s[place - 1] += spared_s / loaded
                if up_s > self.now:
                    self.coming[one] = up_s
        return up_s
