"""From passes to service: what a user waits for the first token and for each further one, under any traffic.

One model for open and closed arrivals, prompts beside decoding or in workers of their own; measured rows and plans
ask it alike.

Legend: N engines, K loads. A *slot* is one micro-batch of one attention replica: it works on requests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.cost.cost import Cost
from chipwise.numeric import take
from chipwise.predict.passes import BATCHES, Passes, PassTable
from chipwise.predict.waiting import all_at_work
from chipwise.units import Array, Real
from chipwise.values import dataclass

LOADS = np.concatenate([[1 / 16, 1 / 4], BATCHES])
"""Decoding sequences of a slot on average, at which loads are priced; below one it idles in between, and times are up
to twice as short as at one."""
ONE = int(np.searchsorted(LOADS, 1.0))
"""index: the place of one sequence among the loads. Exact: from the grid."""

FULL = 0.999
"""share of a budget or of a pool: the load that is still answered. Chosen: at 1 a queue never ends; moves the largest
rate by a tenth of a percent."""
LEAST = 1e-9
"""requests per pass: a load next to nothing. Exact: a bound below any that is asked."""
MOST = 1e9
"""requests per pass: a load that nothing but workers for prompts limits. Exact: a bound above any that is reached."""
STEPS = 100  # of the search for a load; most end after six
BLOCK = 4096  # loads that are looked for together: their columns stay in the cache
ROUNDS = 10.0
"""requests of a client: that start together and stay so, of which the first waits for the prompts of all. Source: what
`vllm bench serve` is asked for by verify scripts; moves time to the first token of such clients where prompts ride in
passes that decode."""
FILLED = 0.9
"""share of its budget: of a pass that prompts gather for no longer. Chosen: one more prompt seldom fits into a tenth;
moves time to the first token of engines that let prompts gather."""
CLOSE = 1e-10
"""of a logarithm: at which a root is found. Exact: beyond the digits that are printed."""


@dataclass(frozen=True)
class Service:
    """What a first token waits for beside passes, and what a benchmark client adds; columns [N] or numbers.

    | field | unit | meaning |
    |---|---|---|
    | request_s | s | HTTP, tokeniser and scheduling before the first token |
    | stream_tokens | tokens | held back before the client sees the first (tokens streamed in groups) |
    | burst | ratio | share of the run that is its first wave: all clients start at once |
    | rounds | requests | of a client, of which the first is in step with the others'; infinite: of medians, none is |

    `stream_tokens` and `burst` are artefacts of a harness: 0 in every plan; `rounds` moves `in_step_s` alone.
    """

    request_s: Real = 0.02
    stream_tokens: Real = 0.0
    burst: Real = 0.0
    rounds: Real = ROUNDS

    @classmethod
    def stack(cls, many: Sequence[Service]) -> Service:
        """Columns of several."""
        return cls(*(np.array([float(np.asarray(getattr(s, f.name))) for s in many]) for f in fields(cls)))

    @classmethod
    def join(cls, many: Sequence[tuple[Service, int]]) -> Service:
        """Columns of several, each with its rows, one after the other."""

        def column(name: str) -> Array:
            values = ((np.asarray(getattr(s, name), dtype=float).reshape(-1), size) for s, size in many)
            return np.concatenate([np.broadcast_to(value, (size,)) for value, size in values])

        return cls(*(column(f.name) for f in fields(cls)))

    def take(self, index: NDArray[np.intp]) -> Service:
        """Some of the rows."""
        columns = (np.asarray(getattr(self, f.name)) for f in fields(self))
        return Service(*(c[index] if c.ndim else c for c in columns))


@dataclass(frozen=True)
class Prediction:
    """What engines do at loads, arrays [N, K]; figures are of all replicas of an engine together.

    `load` are requests that end in a pass of a slot (`Loads`), `batch` counts decoding sequences, `concurrency` all
    requests that clients have open, `resident` those inside an engine, for each attention replica. `tpot_s` is the
    mean time per token after the first, shares of others' prompts included (`decode_s`: without them); 0 where there
    is one token only. `ttft_s` = request_s + `own_s` + `wait_s` + `outside_s` + what a harness adds; `outside_s` is
    spent waiting for room in the engine. `in_step_s` is the mean time to the first token of clients whose requests
    start together and, of equal lengths, stay together: all prompts come at once, in every round where they run alone,
    in the first of `Service.rounds` where they ride in passes that decode; `ttft_s` of other loads.

    `prefill_s` is the machine time of a prompt, `utilisation` the share of time that passes spend on prompts,
    `service_s` what a prompt takes of one slot, `budget_share` the share of the budget of tokens, or of the time of
    workers for prompts, that is taken, `prompts_at_once` how many prompts fill the budget of a pass. `cost` is machine
    time per output token (per request where it is the only one): its shares say what bounds the throughput; empty where
    nobody asked for it.
    """

    load: Array
    batch: Array
    concurrency: Array
    resident: Array
    requests_per_s: Array
    tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array
    decode_s: Array
    prefill_s: Array
    utilisation: Array
    wait_s: Array
    own_s: Array
    outside_s: Array
    in_step_s: Array
    service_s: Array
    budget_share: Array
    prompts_at_once: Array
    cost: Cost

    def each(self, pick: Callable[[Array], Array]) -> Prediction:
        """Another choice of engines and loads, by one function on every array."""
        numbers = {f.name: pick(getattr(self, f.name)) for f in fields(self) if f.name != "cost"}
        return Prediction(**numbers, cost=Cost({k: pick(np.asarray(v)) for k, v in self.cost.exposed.items()}))


@dataclass(frozen=True, slots=True)
class Stretch:
    """With which powers of the length of passes the times to the `first` token and to each `further` one grow, towards
    the lower end and the upper end of their intervals: 1 of clients who wait for their answers, more at a given rate,
    where longer passes hold more requests. `bounded_first` and `bounded_further` are those of the percentile that
    targets bound, and the same where they bound means. `room`: how many times as long passes may take until the rate is
    no longer carried."""

    first: tuple[float, float] = (1.0, 1.0)
    further: tuple[float, float] = (1.0, 1.0)
    bounded_first: tuple[float, float] = (1.0, 1.0)
    bounded_further: tuple[float, float] = (1.0, 1.0)
    room: float = inf


def transfer_s(cache_bytes: Real, senders: Real, receivers: Real, bytes_per_s: Real, share: Real) -> Real:
    """Seconds to send the cache of a request: every device of the smaller side moves its part at `share` of its
    own port. Ignores overlap with later layers of the prompt."""
    seconds: Real = cache_bytes / (np.minimum(senders, receivers) * share * bytes_per_s)
    return seconds


def shared_wait_s(service_s: Real, servers: Real, utilisation: Real, spread: Real = 1.0) -> Array:
    """Mean wait for one of c alike servers, Poisson arrivals: (1 + c_s^2) / 2 S / c `all_at_work` / (1 - u), infinite
    from u = 1 on; `spread` is 1 + c_s^2."""
    u, c = np.asarray(utilisation, dtype=float), np.asarray(servers, dtype=float)
    idle = np.maximum(1.0 - u, 0.0)
    with np.errstate(divide="ignore"):
        wait = 0.5 * spread * np.asarray(service_s) / c * all_at_work(u, c) / idle
    return np.asarray(wait)


@dataclass(frozen=True)
class Engines:
    """Engines and how they are built; columns [N].

    `table` holds the passes: of the pool that decodes, where prompts have one of their own, whose passes are in
    `prompts`. `replicas` work alike; each has `ranks` attention replicas, `coupled` of which wait for each other in
    every layer (they share experts), and `stages` micro-batches in flight. `limit` requests fit on each attention
    replica. `prompt_servers` [N, 1 or K] ranks of the prompt pool work on requests of their own, the cache of a
    request is sent in `transfer_s`; None: there is one pool.
    """

    table: PassTable
    replicas: Array
    ranks: Array
    coupled: Array
    stages: Array
    limit: Array
    prompts: PassTable | None = None
    prompt_servers: Array | None = None
    transfer_s: Array | None = None

    def __len__(self) -> int:
        return len(self.table)

    def take(self, index: NDArray[np.intp]) -> Engines:
        """Some of the engines."""
        apart = self.prompts is not None
        return Engines(
            self.table.take(index),
            **{name: getattr(self, name)[index] for name in _COLUMNS},
            prompts=self.prompts.take(index) if self.prompts is not None else None,
            prompt_servers=self.prompt_servers[index] if apart and self.prompt_servers is not None else None,
            transfer_s=self.transfer_s[index] if apart and self.transfer_s is not None else None,
        )

    @classmethod
    def join(cls, many: Sequence[Engines]) -> Engines:
        """Engines of several, one after the other; all with a pool for prompts, or none."""
        apart = many[0].prompts is not None
        return cls(
            PassTable.join([e.table for e in many]),
            **{name: np.concatenate([getattr(e, name) for e in many]) for name in _COLUMNS},
            prompts=PassTable.join([e.prompts for e in many if e.prompts is not None]) if apart else None,
            prompt_servers=np.concatenate([np.asarray(e.prompt_servers) for e in many]) if apart else None,
            transfer_s=np.concatenate([np.asarray(e.transfer_s) for e in many]) if apart else None,
        )

    @property
    def slots(self) -> Array:
        """Micro-batches that decode requests of their own, in all replicas."""
        return self.replicas * self.ranks * self.stages

    def under(self, service: Service, factors: Array | None = None) -> Loads:
        """The engines ready to be loaded; `factors` [N, part] where the table is by part."""
        passes, prompts = self.table.passes(factors), None
        if self.prompts is not None:
            prompts = passes if self.prompts is self.table else self.prompts.passes(factors)
        return Loads(self, passes, prompts, service)


_COLUMNS = ("replicas", "ranks", "coupled", "stages", "limit")


@dataclass(frozen=True)
class Loads:
    """Engines with their passes in seconds, under any load.

    The load of a slot is m, the requests that end in a pass: everything follows from it explicitly, and rates and
    requests in flight rise with it, so that a given rate or number of clients has one answer.

        B = m (n_o - 1) decode,  q = m n_i f prompt tokens ride     f = 1 - 1 / C for C clients: not one's own; else 1
        P = t(B) + A       pass;  TPOT = P;  X = m / P requests a second;  Z = (n_o - 1) P
        X <= m / (min(B, 1) t(B) + A(f = 1))           one's own prompt takes the engine's time too
    with A what prompts add. One chunk of c tokens adds a1 to a pass, prompts that fill the budget of F tokens a2:
        A = a1 (pi l + x (1 - l)),  x = q / c <= 1;      a1 + (a2 - a1) (q - c) / (F - c) up to F, then in proportion
    A pass waits for the slowest of the s = stages x coupled ranks slots that go in step, pi = 1 - (1 - x)^s; l is
    the part of a chunk's time that is left while the other ranks have none.

    The host starts the kernels of a pass with prompts in h seconds where no graph is replayed, and the device waits for
    it: A + (1 - e^-(s x)) max(0, h - a) with a what the prompts of one pass add, h less t(B) where they ride.

    Clients whose requests have one length and start together (a harness's burst) end together, and their next prompts
    come at once: they fill budgets instead of passes of their own, min(C, F / n_i) of them in each.

    A static batch (`Requests.static`) starts together: its prompts of one chunk to a full budget stand before its first
    tokens, TPOT = t(B), and who comes while it runs waits for half of it.

    Prompts that arrive in one pass ride together in the next (gated service: Takagi, Queueing Analysis, volume
    1, 1991); the first token then takes
        TTFT = request_s + own + W,  own = k a1 + ceil(k) t(B),  k = n_i / c chunks (alone: k a1)
        W = (b / 2 + rho min(1, F / n_i)) (P + h s (1 + c_v^2) / (1 - h^2)) + wait for the budget
    where rho = A / P, h = X a2 n_i / F <= rho is that share where prompts fill the budget (as a backlog does), s a
    prompt's share of A, and b how often a request meets a pass that runs: always beside other clients, never alone,
    1 - e^-L of Poisson arrivals with L in flight; of clients that wait for their answers the term of h is no more
    than P, as their prompts come in crowds that scatter little. The budget is a queue with F / n_i places.

    In pools of their own prompts take `prompt_servers`, each one at a time (`shared_wait_s`), and then their
    transfer; P = t(B). A prompt takes less while the other ranks of its worker have none.

    C clients beyond what fits wait outside: by Little's law TTFT = C / X - Z. Means throughout; burstiness beyond
    Poisson and preemption are ignored.
    """

    engines: Engines
    passes: Passes
    prompts: Passes | None
    service: Service

    @classmethod
    def join(cls, many: Sequence[Loads]) -> Loads:
        """Engines of several, one after the other; all with a pool for prompts, or none."""

        def passes(found: Sequence[Passes]) -> Passes:
            return Passes(*(np.concatenate([getattr(one, f.name) for one in found]) for f in fields(Passes)))

        pools = [one.prompts for one in many if one.prompts is not None]
        return cls(
            Engines.join([one.engines for one in many]),
            passes([one.passes for one in many]),
            passes(pools) if pools else None,
            Service.join([(one.service, len(one.engines)) for one in many]),
        )

    def take(self, index: NDArray[np.intp]) -> Loads:
        """Some of the engines."""
        prompts = None if self.prompts is None else take(self.prompts, index)
        return Loads(self.engines.take(index), take(self.passes, index), prompts, self.service.take(index))

    def closed(self, clients: Array, *, by_resource: bool = True) -> Prediction:
        """`clients` [N, K] in all, each sending its next request when the last has ended."""
        slots = self._slots(clients=np.asarray(clients, dtype=float))
        return self._seen(slots, slots.solved(), by_resource=by_resource)

    def open(self, rate_per_s: Array, *, by_resource: bool = True) -> Prediction:
        """Poisson arrivals of `rate_per_s` [N, K] in all. Beyond what fits: as many as do."""
        slots = self._slots(rate_per_s=np.asarray(rate_per_s, dtype=float))
        return self._seen(slots, slots.solved(), by_resource=by_resource)

    def full(self) -> Prediction:
        """As many requests as fit, each followed by the next."""
        most = self.engines.limit * self.engines.replicas * self.engines.ranks
        found = self.closed(most[:, None])
        # those that wait outside for room do not count
        return self.closed(found.concurrency - found.requests_per_s * found.outside_s)

    def over_batches(self) -> Prediction:
        """Poisson arrivals at every one of `LOADS`, in memory or not; of single tokens at as many prompts a
        pass, without their cost. Rates are NaN where prompts or tokens overflow a pass."""
        slots = self._slots()
        m = LOADS[None, :] / np.maximum(slots.decodes, 1.0)
        found = self._seen(slots, np.minimum(m, slots.most), by_resource=False)
        return found.each(lambda values: np.where(m <= slots.most, values, np.nan))

    def at(self, requests_per_pass: Array, *, by_resource: bool = True) -> Prediction:
        """Poisson arrivals at m [N, K] requests per pass of a slot; `by_resource`: with its cost."""
        return self._seen(self._slots(), requests_per_pass, by_resource=by_resource)

    def _slots(self, *, clients: Array | None = None, rate_per_s: Array | None = None) -> _Slots:
        """The slots of all engines under their share of `clients` or of a rate [N, K]; of neither, at any load."""
        e, apart = self.engines, self.prompts is not None

        def asked(name: str) -> Array:
            value = np.asarray(getattr(e.table.requests, name), dtype=float)
            return np.broadcast_to(value, (len(e),))[:, None]

        servers = e.prompt_servers if apart else None
        # loads for each number of workers for prompts, where there are several
        shape = (len(e), 1 if servers is None else servers.shape[1])

        def of_each(load: Array) -> Array:
            return np.broadcast_to(load, np.broadcast_shapes(load.shape, shape))

        count, room = e.slots[:, None], (e.limit * e.replicas * e.ranks)[:, None]
        wanted, others = None, np.ones((1, 1))
        if clients is not None:
            clients = of_each(clients)
            wanted = clients / count
            others = np.maximum(1.0 - 1.0 / np.maximum(np.minimum(clients, room), 1.0), 0.0)
        elif rate_per_s is not None:
            wanted = of_each(rate_per_s) / count
        of_prompts = self.passes if self.prompts is None else self.prompts
        prompt_s = of_prompts.prompt_s
        of_harness = np.asarray(self.service.burst, dtype=float).reshape(-1, 1)
        rounds = np.asarray(self.service.rounds, dtype=float).reshape(-1, 1)
        return _Slots(
            passes=self.passes,
            row=np.arange(len(e))[:, None],
            decodes=asked("decodes"),
            new=asked("new"),
            chunk=asked("chunk"),
            budget=asked("budget") / e.table.yields,
            taken=e.table.guesses / e.table.yields,
            spread=asked("spread"),
            look=asked("look"),
            gather=asked("gather"),
            static=asked("static") > 0.0,
            coupled=e.coupled[:, None],
            riding=~e.table.alone[:, None],
            request_s=np.asarray(self.service.request_s, dtype=float).reshape(-1, 1),
            first_s=self.passes.decode_s[:, :1],
            prompt_one=prompt_s[:, :1],
            prompt_full=prompt_s[:, 1:2],
            prompt_lone=prompt_s[:, 2:],
            starts_s=of_prompts.starts_s[:, None],
            count=count,
            stages=e.stages[:, None],
            in_step=(e.stages * e.coupled)[:, None],
            worker=(e.coupled / (e.replicas * e.ranks))[:, None],
            limit=e.limit[:, None],
            room=room,
            others=others,
            alike=(asked("spread") <= 1.0) & ((of_harness > 0.0) | np.isinf(rounds)),
            wanted=wanted,
            clients=clients,
            servers=servers,
            transfer_s=np.asarray(e.transfer_s)[:, None] if apart else np.zeros((1, 1)),
        )

    def _seen(self, slots: _Slots, m: Array, *, by_resource: bool = True) -> Prediction:
        at, clients, decodes = slots.at(m), slots.clients, slots.decodes
        rate = at.rate * slots.count
        outside = np.zeros(np.shape(rate)) if clients is None else np.maximum(clients / rate - at.cycle_s, 0.0)
        s = {
            n: np.asarray(getattr(self.service, n), dtype=float).reshape(-1, 1)
            for n in ("stream_tokens", "burst", "rounds")
        }
        wave: Real = 0.0
        steps: Real = 1.0
        if clients is not None:
            of_slot = np.minimum(clients, slots.room) / slots.count
            if slots.servers is None:
                wave = slots.together_s(of_slot * slots.stages)
                steps = np.clip(of_slot * slots.stages * slots.new / slots.budget, 1.0, of_slot * slots.stages)
            else:
                steps = of_slot * slots.count / slots.servers
                wave = steps * at.part_s
        begun = slots.request_s + at.own_s + outside + s["stream_tokens"] * at.pass_s
        ttft = begun + at.wait_s + s["burst"] * wave
        # prompts that share a pass are done with it
        together = begun + 0.5 * wave * (1.0 + 1.0 / np.maximum(steps, 1.0)) - at.own_s
        several = clients is not None and clients > 1.0
        pass_s = at.pass_s
        if np.any(slots.static):
            # the prompts of a batch stand before its first tokens, not between the others
            together = slots.together_s(np.maximum(at.batch * slots.stages, 1.0))
            late = 0.0 if clients is not None else 0.5 * (1.0 - np.exp(-at.batch)) * decodes * at.decode_s
            ttft = np.where(slots.static, slots.request_s + together + late + outside, ttft)
            pass_s = np.where(slots.static, at.decode_s, pass_s)
        shape = np.shape(rate)
        decoding = np.broadcast_to(decodes > 0, shape)
        if clients is not None and slots.servers is None:
            later = outside + slots.in_turn_s() + s["stream_tokens"] * at.pass_s
            first = 1.0 / s["rounds"]
            rounds = together * first + later * (1.0 - first)
            together = np.where(slots.riding & (decodes > 0.0) & ~slots.static, rounds, together)
        in_step = np.where(several, np.maximum(together, ttft), ttft)
        return Prediction(
            load=np.broadcast_to(m, shape),
            batch=at.batch * slots.count,
            concurrency=rate * (at.cycle_s + outside),
            resident=at.rate * (at.cycle_s - slots.request_s) * slots.stages,
            requests_per_s=rate,
            tokens_per_s=rate * (decodes + 1.0),
            ttft_s=ttft,
            tpot_s=np.where(decoding, pass_s, 0.0),
            decode_s=np.where(decoding, at.decode_s, 0.0),
            prefill_s=np.broadcast_to(slots.new / slots.chunk * np.maximum(slots.prompt_one, slots.starts_s), shape),
            utilisation=np.broadcast_to(at.rho, shape),
            wait_s=at.wait_s,
            own_s=np.broadcast_to(at.own_s, shape),
            outside_s=outside,
            in_step_s=np.broadcast_to(in_step, shape),
            service_s=at.part_s,
            budget_share=np.broadcast_to(at.taken, shape),
            prompts_at_once=np.broadcast_to(slots.budget / slots.new, shape),
            cost=self._machine_time(slots, at) if by_resource else Cost(),
        )

    def _machine_time(self, slots: _Slots, at: _At) -> Cost:
        """Seconds of the machine per output token by resource, of all its time; empty for tables by part."""
        table, decodes = self.engines.table, slots.decodes
        if "compute" not in table.names:
            return Cost()
        tokens = at.m * np.maximum(decodes, 1.0) * self.engines.ranks[:, None] * slots.stages
        decoding = np.broadcast_to(np.minimum(decodes, 1.0), np.shape(at.m))
        # a lone client's single token is all of a prompt
        chunks = np.where(decodes > 0, at.chunks, np.maximum(at.chunks, LEAST))
        found = table.shares(at.batch, decoding, chunks, at.budgets)
        # what a prompt hides of the pass that it rides in is not given back
        found = {name: np.maximum(values, 0.0) for name, values in found.items()}
        found["host"] = found["host"] + at.idle_s
        total = sum(found.values())
        scale = at.m / at.rate / np.maximum(total, 1e-30) / tokens
        exposed = {name: values * scale for name, values in found.items()}
        if (pool := self.engines.prompts) is not None:
            each = slots.new / slots.chunk / np.maximum(decodes, 1.0)
            exposed = {n: v + pool.prompt[:, :1, pool.names.index(n)] * each for n, v in exposed.items()}
            exposed["host"] = exposed["host"] + np.maximum(slots.starts_s - slots.prompt_one, 0.0) * each
        return Cost({name: values for name, values in exposed.items() if np.any(values > 0)})


@dataclass(frozen=True)
class _At:
    """A load of every slot: see `Loads`. `chunks` single chunks and `budgets` full ones ride in a mean pass, and for
    `idle_s` the device waits for the host to start prompts."""

    m: Array
    batch: Array
    decode_s: Array
    pass_s: Array
    rate: Array
    own_s: Array
    wait_s: Array
    cycle_s: Array
    taken: Array
    rho: Array
    chunks: Array
    budgets: Array
    idle_s: Array
    part_s: Array


@dataclass(frozen=True, kw_only=True)
class _Slots:
    """Slots of engines with their passes, under any load m of requests that end in a pass.

    What they are asked and how they are built are columns [N, 1], or [N, K] where loads differ, or [P] of some points
    of [N, K]; all broadcast against m. None: no such thing.

    `count` slots on engine `row`, of which `in_step` wait for each other, hold `limit` requests for each attention
    replica, `room` in all; `worker` is the share of them that one prompt has to itself. `wanted` requests a second, or
    `clients` of a slot, are looked for; `others` is f of `Loads`; `alike`: a harness starts clients with requests of
    one length together. A prompt alone takes `prompt_one` for a chunk, `prompt_full` for a full budget, and no pass
    with prompts less than `starts_s`.
    """

    passes: Passes
    row: NDArray[np.intp]
    decodes: Array
    new: Array
    chunk: Array
    budget: Array
    taken: float
    spread: Array
    look: Array
    gather: Array
    static: NDArray[np.bool_]
    coupled: Array
    riding: NDArray[np.bool_]
    request_s: Array
    first_s: Array
    prompt_one: Array
    prompt_full: Array
    prompt_lone: Array
    starts_s: Array
    count: Array
    stages: Array
    in_step: Array
    worker: Array
    limit: Array
    room: Array
    others: Array
    transfer_s: Array
    alike: NDArray[np.bool_]
    wanted: Array | None
    clients: Array | None
    servers: Array | None

    def each(self, pick: Callable[[Array], Array]) -> _Slots:
        """Other columns, by one function on every one."""
        shared = ("passes", "taken")
        names = [f.name for f in fields(self) if f.name not in shared and getattr(self, f.name) is not None]
        picked: dict[str, Any] = {name: pick(getattr(self, name)) for name in names}
        return replace(self, **picked)

    @property
    def most(self) -> Array:
        """Requests per pass of a slot that the grid, the budget, and workers for prompts bear."""
        most = np.where(self.decodes > 0, BATCHES[-1] / np.maximum(self.decodes, 1e-9), MOST)
        if self.servers is None:
            decoding = np.where(self.riding, self.taken * self.decodes, 0.0)
            full = FULL * self.budget / (self.new + decoding)
            most = np.minimum(most, np.where(self.riding | (self.decodes == 0), full, MOST))
        return most

    def over(self, m: Array) -> Array:
        """Logarithm of the load over what is wanted, or of the tightest limit that is used, where that is more: room
        for requests, budget, workers for prompts."""
        at = self.at(m)
        load = at.rate if self.clients is None else at.rate * at.cycle_s
        inside = at.rate * (at.cycle_s - self.request_s) * self.stages
        used = np.maximum(inside / self.limit, at.taken / FULL)
        return np.asarray(np.log(np.maximum(load / np.asarray(self.wanted), used)))

    def solved(self) -> Array:
        """The load [N, K] at which `over`, which rises with it, is 0; the largest where it never is."""
        shape = np.asarray(self.wanted).shape
        found = np.empty(shape)
        for first in range(0, found.size, BLOCK):
            points = np.arange(first, min(first + BLOCK, found.size))
            row, column = np.divmod(points, shape[1])

            def of_points(value: Array, row: Any = row, column: Any = column) -> Array:
                # a column of one engine or of one load is that of all
                place = tuple(i if size > 1 else 0 for i, size in zip((row, column), value.shape, strict=True))
                return np.broadcast_to(value[place], row.shape)

            found.flat[points] = self.each(of_points)._root()
        return found

    def _root(self) -> Array:
        """`solved` for points in one column: secants on logarithms, in which loads are nearly straight lines; a halving
        of the bracket where a secant leaves it, or did not halve what was left. What is found takes no further part."""
        slots, wanted = self, np.asarray(self.wanted)
        size = len(wanted)
        found, open_ = np.empty(size), np.arange(size)
        low, high = np.full(size, np.log(LEAST)), np.log(np.broadcast_to(self.most, (size,)))
        bound = np.zeros(size, dtype=bool)  # whether the upper end is known to be too much
        if self.clients is None:
            guess = wanted * np.maximum(self.first_s * np.minimum(self.decodes, 1.0), self.prompt_one)
        else:
            guess = np.minimum(wanted, self.limit / self.stages) / (self.decodes + 1.0)
        x = np.clip(np.log(np.maximum(guess, LEAST)), low, high)
        last_x, last_f = x - 1.0, np.full(size, np.nan)
        for _ in range(STEPS):
            f = slots.over(np.exp(x))
            above = f > 0.0
            end = np.where(above, x <= low, x >= high)
            low, high, bound = np.where(above, low, x), np.where(above, x, high), bound | above
            done = (np.abs(f) < CLOSE) | end | (high - low < CLOSE)
            if done.any():
                found[open_[done]] = x[done]
                if done.all():
                    break
                left = ~done
                slots = slots.each(lambda column, left=left: column[left])  # type: ignore[misc]
                open_, low, high, bound, x, f, last_x, last_f = (
                    v[left] for v in (open_, low, high, bound, x, f, last_x, last_f)
                )
            slow = np.abs(f) > 0.5 * np.abs(last_f)
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.where(np.isnan(last_f), 1.0, (f - last_f) / (x - last_x))
                to = x - f / slope
            straight = (slope > 0.0) & (to > low) & (to < high) & ~slow
            other = np.where(bound, 0.5 * (low + high), high)
            last_x, last_f = x, f
            x = np.where(straight, to, other)
        else:
            found[open_] = low
        return np.exp(found)

    def together_s(self, prompts: Array) -> Array:
        """Seconds until as many prompts of a replica are done that start together, nothing decoding before: they fill
        budgets, the only one of few in part; where prompts share passes with decoding, half of those that started
        decode beside them meanwhile."""
        tokens, chunk, budget = prompts * self.new, self.chunk, self.budget
        filled = np.clip((tokens - chunk) / np.maximum(budget - chunk, 1e-9), 0.0, 1.0) * (budget > chunk)
        passes = np.maximum(tokens / budget, 1.0)
        beside, riding_one, riding_full = self.passes.at(0.5 * prompts / self.stages, self.row)
        share = self.riding & (self.decodes > 0.0)
        one = np.where(share, beside + riding_one, self.prompt_one)
        full = np.where(share, beside + riding_full, self.prompt_full)
        return np.asarray(passes * np.maximum(one + (full - one) * filled, self.starts_s))

    def in_turn_s(self) -> Array:
        """Seconds to the first token of clients whose requests of one length ride in passes that decode. Those whose
        prompts filled one pass end in one pass, and their next prompts fill one again. They have just missed the pass
        that runs: one with the prompts of the group before them, for the first of a round one without; their way
        through the front is hidden behind it. Where all fit into one pass, the first to arrive is served alone."""
        clients = np.zeros(()) if self.clients is None else self.clients
        mine = np.minimum(clients, self.room) / self.count * self.stages
        group = np.clip((self.budget - self.taken * mine) / self.new, 1.0, np.maximum(mine, 1.0))
        left = np.maximum(mine - group, 0.0)
        beside, riding_one, riding_full = self.passes.at(left / self.stages, self.row)
        decoding, _, _ = self.passes.at(mine / self.stages, self.row)
        tokens, chunk, budget = group * self.new, self.chunk, self.budget
        filled = np.clip((tokens - chunk) / np.maximum(budget - chunk, 1e-9), 0.0, 1.0) * (budget > chunk)
        some = np.minimum(left, 1.0)
        one = some * (beside + riding_one) + (1.0 - some) * self.prompt_one
        full = some * (beside + riding_full) + (1.0 - some) * self.prompt_full
        pass_s = np.maximum(one + (full - one) * filled, self.starts_s)
        rounds = np.maximum(mine / group, 1.0)
        behind = (1.0 - 1.0 / rounds) * pass_s + decoding / rounds
        first = (1.0 - 1.0 / np.maximum(mine, 1.0)) * np.maximum(self.prompt_one, self.starts_s)
        wait = np.where(left > 0.0, behind, first)
        return np.asarray(np.maximum(wait, self.request_s) + np.maximum(tokens / budget, 1.0) * pass_s)

    def at(self, m: Array) -> _At:
        """What follows from a load."""
        decodes, new, chunk, budget, spread = self.decodes, self.new, self.chunk, self.budget, self.spread
        clients, others, in_step, servers = self.clients, self.others, self.in_step, self.servers
        b = m * decodes
        t, riding_one, riding_full = self.passes.at(b, self.row)
        chunks = new / chunk
        here = np.minimum(b, 1.0)
        beside = 1.0 if clients is None else np.clip(clients / self.count * self.stages - 1.0, 0.0, 1.0)
        alone_one, alone_full, alone_lone = (
            np.maximum(seconds, self.starts_s) for seconds in (self.prompt_one, self.prompt_full, self.prompt_lone)
        )
        if servers is not None:
            own, lone = chunks * alone_one, chunks * alone_lone
            rate = m / t
            taken = rate * self.count * own / servers
            wait = shared_wait_s(own, servers, np.minimum(taken * others, FULL), spread)
            own = lone + (own - lone) * np.minimum(taken, 1.0) + self.transfer_s
            running = beside if clients is not None else 1.0 - np.exp(-b)
            wait = wait + 0.5 * running * t
            cycle = self.request_s + own + wait + decodes * t
            zero = np.zeros(np.shape(t))
            return _At(m, b, t, t, rate, own, wait, cycle, taken, taken, zero, zero, zero, chunks * alone_one)
        # who decodes sees prompts in a pass that decodes; a prompt may find the engine without any
        decoding = np.minimum(decodes, 1.0)
        one = decoding * riding_one + (1.0 - decoding) * alone_one
        full = decoding * riding_full + (1.0 - decoding) * alone_full
        lone_part = self.prompt_lone / self.prompt_one
        ratio = budget / chunk
        # the device waits for the host that starts a pass, as far as decoding beside prompts does not last as long
        riding = self.riding
        least = np.maximum(self.starts_s - np.where(riding, t, 0.0), 0.0)

        # prompts that come in a pass to those that gather them; how many end the wait, and how long it is
        arrive = m * others * self.coupled
        fill = np.where(self.coupled > 1.0, self.coupled, FILLED * (budget - self.taken * b) / new)
        gathered = np.minimum(self.gather, np.maximum(fill - 1.0, 0.0) / np.maximum(arrive, 1e-12))
        apart = np.where(decoding > 0, self.look + gathered, 1.0)
        crowd = apart
        if clients is not None:
            # requests of one length that start together end together, and the next come at once
            fits = np.maximum(FILLED * (budget - self.taken * b) / new, 1.0)
            mine = np.minimum(clients, self.room) / self.count * self.stages
            of_one = np.minimum(fits, mine) / np.maximum(m * np.where(others > 0, others, 1.0), 1e-12)
            crowd = np.where(self.alike & (decoding > 0), np.maximum(apart, of_one), apart)

        def stalled(x: Array) -> tuple[Array, Array, Array, Array]:
            """What x chunks a pass add to it, those of `crowd` passes together; single chunks and full budgets among
            them, and how long the host lets the device wait."""
            added, singles, budgets, idle = together_(x * crowd)
            return added / crowd, singles / crowd, budgets / crowd, idle / crowd

        def together_(x: Array) -> tuple[Array, Array, Array, Array]:
            first = np.minimum(x, 1.0)
            any_ = 1.0 - (1.0 - first) ** in_step
            filled = np.clip((x - 1.0) / np.maximum(ratio - 1.0, 1e-9), 0.0, 1.0) * (ratio > 1.0 + 1e-9)
            beyond = np.maximum(x / ratio, 1.0)
            single = any_ * lone_part + first * (1.0 - lone_part)
            each = one * (1.0 - filled) + full * filled
            # prompts that arrive at random share starts: P(any) = 1 - e^-x
            idle = np.maximum(least - each, 0.0) * -np.expm1(-in_step * x) * beyond
            added = (one * single * (1.0 - filled) + full * filled) * beyond + idle
            return added, first * (1.0 - filled), filled * beyond, idle

        x = m * chunks * others
        stall, singles, budgets, idle = stalled(x)
        # without decoding an engine rests between prompts
        pass_s = decoding * t + (1.0 - decoding) * one * np.maximum(1.0 - x, 0.0) + stall
        rate = m / pass_s
        if clients is not None:
            # nobody waits for his own prompt twice, but it takes the engine's time like all others
            rate = np.minimum(rate, m / np.maximum(here * t + stalled(m * chunks)[0], 1e-15))
        own_one = here * np.maximum(riding_one, least) + (1.0 - here) * alone_one
        own = chunks * own_one + np.where(riding, np.ceil(chunks) * t * here * decoding, 0.0)
        rho = stall / pass_s * np.minimum(1.0, decoding + x)
        part = chunks * stall / np.maximum(x, 1e-12) / in_step
        at_once = budget / new
        # a backlog is worked off in full budgets, however prompts are spread before
        heavy = np.minimum(rate * others * np.maximum(full, least) * new / budget, rho)
        scatter = heavy * part * spread / np.maximum(1.0 - heavy * heavy, 1e-6)
        met = pass_s + (scatter if clients is None else np.minimum(scatter, pass_s))
        inside = rate * (own + decodes * pass_s)
        running = beside if clients is not None else 1.0 - np.exp(-inside)
        inside_one = np.minimum(at_once, 1.0)
        wait = (0.5 * running + rho * inside_one) * met
        # who comes while prompts run is looked for right after them; all run with those that came meanwhile
        first_of = gathered * (1.0 + 0.5 * arrive * gathered) / (1.0 + arrive * gathered)
        passes = (1.0 - rho) * 0.5 * (self.look - 1.0) + first_of
        wait = wait + running * decoding * (passes * t + (apart - 1.0) * stall * inside_one)
        tokens = self.taken * b
        alone = np.where(decodes > 0, tokens, m * new)
        used = np.where(riding, m * new + tokens, alone) / budget
        held = pass_s * np.maximum(1.0 / at_once, 1.0)
        queue = shared_wait_s(held, np.maximum(at_once, 1.0), np.minimum(m * new / budget * others, FULL), spread)
        wait = wait + np.where(riding, queue, 0.0)
        if clients is not None:
            # nobody waits for longer than if those that share the engine were served one after the other
            room = np.minimum(clients, self.room)
            together = np.maximum(room * self.worker, 1.0)
            lone = chunks * alone_one + decodes * self.first_s
            wait = np.clip(together * lone - own - decodes * pass_s, 0.0, wait)
        cycle = self.request_s + own + wait + decodes * pass_s
        return _At(m, b, t, pass_s, rate, own, wait, cycle, used, rho, singles, budgets, idle, part)
