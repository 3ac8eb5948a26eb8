"""Layouts of a training run: every one worth trying, priced as arrays, masked with a reason, the best kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.preferences import preferences
from chipwise.numeric import content, root, take
from chipwise.parallel.layout import REASONS, Reason, first_broken
from chipwise.parallel.memory import MemoryAccount, MemoryItem
from chipwise.parallel.pipeline import batch_time, most_virtual, slowest_stage, stage_layers
from chipwise.predict.training.layer import LayerTraffic, context_time, head_time, layer_time, traffic_of
from chipwise.predict.training.memory import MemoryRates, fullest, host_bytes, least_held, stage_memory
from chipwise.predict.training.objective import NEXT, OBJECTIVES, Objective
from chipwise.predict.training.operators import DEGREES, OperatorTable, TrainKernels, TrainWork, work_of
from chipwise.predict.training.step import StepTime, step_time
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread, Transformer
from chipwise.search.training_space import (
    ANY,
    COLUMNS,
    FRAME,
    LEAN,
    MICRO,
    SCHEDULES,
    Frames,
    TrainerRules,
    crossed,
    divisors,
    frames,
    variants,
)
from chipwise.units import Array, Real
from chipwise.values import dataclass

WHOLE_TOKENS = 4096.0
"""tokens: of a sequence that are not cut further without need. Chosen: shorter shards have little to hide an exchange
behind, no source is known; moves which of two equal layouts is proposed."""
ROUNDING = 0.02
"""share of a step: by so much a cut product or an odd micro-batch may come out faster than whole ones, as tiles fill
up. Chosen: above what tiles gain in the layouts tried; moves how many are priced, no answer where it is enough."""
CHUNK = 8192  # columns of a chunk stay in the second-level cache
FEW = 4096  # columns of the first chunk, whose fastest bounds all others


_MEMORY = REASONS.index(Reason.MEMORY)
T = TypeVar("T")
Asked = tuple["TrainJob", int, Mapping[str, int | str]]
"""What is searched: a job on so many devices, with what is fixed of its layouts."""
Searching = Generator[Asked, "PricedLayouts", T]
"""What comes to something by searches, each after the one before."""


@dataclass(frozen=True, slots=True)
class TrainJob:
    """What is to be trained, on what, with which software; `cluster` and `rates` are single values. `adapter`: the
    share of the parameters that adapters train, 0: all of them are trained. `sequence`: norms are cut by
    tensor parallelism too; `shared_memory`: host and chip have one memory, nothing can leave it; `known`: the run
    exists, so that neither memory, a schedule nor a tp beyond the fabric refuses a layout; `policy`: how memory is kept
    otherwise than by the trainer's usual policy and what the user said, as `--memory` takes it; `document`: tokens that
    see each other in a packed sequence, 0: all of it; `objective`: what is learned."""

    network: Transformer
    cluster: Cluster
    recipe: Recipe
    rates: TrainRates
    memory: MemoryRates
    kernels: TrainKernels
    global_batch: int
    seq: int
    adapter: float = 0.0
    software: TrainerRules = ANY
    sequence: bool = True
    shared_memory: bool = False
    known: bool = False
    policy: str = ""
    document: float = 0.0
    objective: Objective = OBJECTIVES[NEXT]

    @property
    def room(self) -> tuple[float, float]:
        """Shares of memory that a layout may be predicted to use, and beyond which it is no plan; of a run that exists
        all there is."""
        return (1.0, 1.0) if self.known else (preferences().training_aim, preferences().training_limit)

    @property
    def aim_bytes(self) -> float:
        """Memory that a layout may be predicted to use."""
        return self.room[0] * float(self.cluster.memory_bytes)

    @property
    def limit_bytes(self) -> float:
        """Memory beyond which a layout is no plan."""
        return self.room[1] * float(self.cluster.memory_bytes)

    def alike(self, other: TrainJob) -> bool:
        """Whether it differs from another in nothing but its batch, if at all."""
        return self.kernels is other.kernels and replace(self, global_batch=other.global_batch) == other

    def held(self, s: TrainSpread) -> MemoryAccount:
        """Memory of a device of the fullest stage of layouts."""
        return replace(fullest(self.network, s, self.recipe, self.memory), capacity_bytes=self.cluster.memory_bytes)

    def work(self, s: TrainSpread) -> TrainWork:
        """The operators of layouts, priced."""
        return work_of(self.network, s, self.recipe, self.kernels)

    def parts(self, s: TrainSpread) -> tuple[TrainWork, LayerTraffic]:
        """The operators of layouts and the exchanges of a layer, priced."""
        known = self.kernels.known
        sizes = replace(_base(self), global_batch=0.0, **{name: getattr(s, name) for name in DEGREES})
        key = content((self.network, self.recipe.timed, sizes))
        if key not in known:
            known[key] = self.work(s)
        return known[key], traffic_of(self.network, s, self.cluster, self.rates, self.recipe.copies)

    def step(self, s: TrainSpread, work: TrainWork | None = None, traffic: LayerTraffic | None = None) -> StepTime:
        """Step time of layouts by cause; `work` and `traffic` where their `parts` are priced already."""
        work = work or self.work(s)
        return step_time(self.network, s, self.cluster, self.recipe, self.rates, work, traffic)


@dataclass(frozen=True)
class PricedLayouts:
    """Layouts with their step time, memory and verdicts; `reason` indexes `REASONS`; `table` holds their
    parts, None where none was priced; `left` are those beside them that cannot come near the fastest that fits."""

    spread: TrainSpread
    seconds: Array
    memory_bytes: Array
    reason: NDArray[np.int64]
    table: OperatorTable | None = None
    left: int = 0

    def __len__(self) -> int:
        return len(self.seconds)


def layouts(job: TrainJob, devices: int, pins: Mapping[str, int | str] | None = None) -> TrainSpread:
    """Every layout worth trying on so many devices as columns (`training_space`); `pins` fixes degrees, schedule,
    sharding, recompute or offload by name."""
    space = _Space.known(job, [(devices, job.global_batch)], pins or {})
    return _spread(job, space.every(0), variants(pins or {}, job.shared_memory, job.software))


def side_by_side(runs: Sequence[Searching[T]]) -> list[T]:
    """What each of several runs comes to that ask for searches one after the other: of jobs that differ in nothing but
    devices and batch, those asked for at the same time are one search."""
    found, asked = dict[int, T](), dict[int, Asked]()
    answers: dict[int, PricedLayouts | None] = dict.fromkeys(range(len(runs)))
    while answers:
        for at, answer in answers.items():
            try:
                asked[at] = runs[at].send(answer)  # type: ignore[arg-type]
            except StopIteration as ended:
                found[at] = ended.value
        answers = {}
        while asked:
            job, _, pins = next(iter(asked.values()))
            same = [at for at, (other, _, fixed) in asked.items() if fixed == pins and job.alike(other)]
            each = [(devices, other.global_batch) for other, devices, _ in map(asked.pop, same)]
            answers |= zip(same, _together(job, each, pins), strict=True)
    return [found[at] for at in range(len(runs))]


def search(job: TrainJob, devices: int, pins: Mapping[str, int | str] | None = None) -> PricedLayouts:
    """The layouts among which the best of `layouts` is: branch and bound.

    Recomputation and an optimiser in host memory only take time. So layouts are priced without them first, in the order
    of what they take at least (`_floors`), until nothing left can come near the fastest that fits; those too full for
    it and faster than that are priced with them, if their leanest variant fits at all, and with the smallest share of
    layers recomputed, in whole percent, that they fit with. Where not even what is trained fits, none is priced: one
    row says so.
    """
    return _together(job, [(devices, job.global_batch)], pins or {})[0]


def _together(job: TrainJob, runs: Sequence[tuple[int, int]], pins: Mapping[str, int | str]) -> list[PricedLayouts]:
    """`search` on several counts of devices, with as many sequences of a step as stand beside each."""
    found = [None] * len(runs) if job.known else _too_much(job, runs, pins)
    left = [at for at, never in enumerate(found) if never is None]
    more = iter(_bounded(job, [runs[at] for at in left], pins) if left else ())
    return [next(more) if never is None else never for never in found]


def _bounded(job: TrainJob, runs: Sequence[tuple[int, int]], pins: Mapping[str, int | str]) -> list[PricedLayouts]:
    """The same of counts over which what is trained can be cut small enough: those of a chunk of each are priced at
    once."""
    ways, space = variants(pins, job.shared_memory, job.software), _Space.known(job, runs, pins)
    at, every, none = [space.runs.index(one) for one in runs], space.frames.at, np.zeros(0, dtype=np.intp)
    bound, done = np.full(len(runs), np.inf), [0] * len(runs)
    found = [(none, evaluate(job, _spread(job, every(none), ways[:, :1]), space.work))]
    leaner: list[tuple[NDArray[np.intp], PricedLayouts]] = []
    while True:
        chunks = [space.next(*one) for one in zip(at, done, (1.0 + _near()) * bound, strict=True)]
        done = [n + len(rows) for n, rows in zip(done, chunks, strict=True)]
        run, rows = np.repeat(np.arange(len(runs)), [len(rows) for rows in chunks]), np.concatenate(chunks)
        if not len(rows):
            break
        first = evaluate(job, _spread(job, table := every(rows), ways[:, :1]), space.work)
        _tighten(job, bound, run, first)
        found.append((run, first))
        leaner += _leaner(job, table, run, first, ways, space.work, bound)
    for one in np.flatnonzero(np.isinf(bound)) if job.known else ():
        # nothing is predicted to fit, and yet it ran: the leanest of all comes nearest
        last = evaluate(job, _spread(job, space.every(at[one]), ways[:, -1:]), space.work)
        leaner.append((np.full(len(last), one), last))
    left = [len(space.order[one][0]) - n for one, n in zip(at, done, strict=True)]
    return [replace(one, left=n) for one, n in zip(_parted([*found, *leaner], len(runs)), left, strict=True)]


def _near() -> float:
    """By what share of the fastest that fits another layout may take longer and be taken still (`simplest`)."""
    return max(preferences().equal, preferences().at_home)


def _floors(job: TrainJob, rows: Array, work: OperatorTable, fastest: Array) -> Array:
    """Seconds of a step that each row of frames does not go below, whatever its sharding: its layers, its head and the
    bubble; gradients, the optimiser and the hand-over between stages take nothing."""
    t, one = (job.network, replace(_base(job), zero=0.0, **work.degrees, **dict(zip(LEAN, fastest, strict=True))))
    ring, gathered = (
        layer_time(t, replace(one, gather=how), job.cluster, job.recipe, job.rates, *work.parts).total_s
        for how in (0.0, 1.0)
    )
    s = replace(_base(job), **dict(zip(FRAME, rows, strict=False)))
    at = work.index(s)
    layer, head = (np.asarray(v)[at] for v in (np.minimum(ring, gathered), head_time(one, job.rates, work.parts[0])))
    stage = slowest_stage(layer, head, t.layers, s.pp, s.vp)
    ramp = stage_layers(t.layers, s.pp, s.vp) * layer
    return np.asarray(batch_time(stage, ramp, s.micro_batches, s.pp, s.vp, s.bubble))


def _leaner(
    job: TrainJob,
    table: Array,
    run: NDArray[np.intp],
    first: PricedLayouts,
    ways: Array,
    work: OperatorTable | None,
    bound: Array,
) -> Iterator[tuple[NDArray[np.intp], PricedLayouts]]:
    """Those of layouts that are too full and faster than the bound of their run, with what memory can be saved by;
    tightens the bound."""
    rows = np.flatnonzero((first.memory_bytes > job.aim_bytes) & (first.seconds < bound[run]))
    if not len(rows) or ways.shape[1] == 1:
        return
    rows = rows[np.lexsort((first.seconds[rows], run[rows]))]
    rows = rows[_least(job, table[:, rows], ways) <= job.limit_bytes]
    if not len(rows):
        return
    more = evaluate(job, _spread(job, table[:, rows], ways[:, 1:]), work, full=job.known)
    _tighten(job, bound, whose := np.repeat(run[rows], ways.shape[1] - 1), more)
    yield whose, more
    rows = rows[first.seconds[rows] <= (1.0 + _near()) * bound[run[rows]]]
    for more in _enough(job, table[:, rows], ways, work) if len(rows) else ():
        _tighten(job, bound, run[rows], more)
        yield run[rows], more


def _tighten(job: TrainJob, bound: Array, run: NDArray[np.intp], priced: PricedLayouts) -> None:
    """Lowers the bound of each run to the seconds of its fastest legal layout that fits comfortably."""
    fits = np.flatnonzero((priced.reason == 0) & (priced.memory_bytes <= job.aim_bytes))
    np.minimum.at(bound, run[fits], priced.seconds[fits])


def least_seconds(job: TrainJob) -> float:
    """Device-seconds of a sequence that no layout of a job goes below, on any number of devices: those of its products,
    element-wise work and head on one device, in the best micro-batch, experts spread over the ranks that suit them;
    communication, host, bubbles and the optimiser take nothing."""
    most = max(MICRO, 2**19 // job.seq)
    micros = [2.0**i for i in range(int(np.log2(most)) + 1)]
    experts = int(float(job.network.experts)) if float(job.network.moe_share) else 1
    micro, ep = np.array([*itertools.product(micros, map(float, divisors(experts, experts)))]).T
    fastest = variants({}, job.shared_memory, job.software)[:, 0]
    held = dict(zip(LEAN, fastest, strict=True))
    took = job.step(replace(_base(job), micro_batch=micro, ep=ep, dp=ep, **held))
    each = np.asarray(ep * (took.compute_s + took.passes_s + took.head_s))
    return (1.0 - ROUNDING) * float(each.min()) / job.global_batch


def _too_much(
    job: TrainJob, runs: Sequence[tuple[int, int]], pins: Mapping[str, int | str]
) -> list[PricedLayouts | None]:
    """Of each count of devices the refusal, a row, where no layout cuts what is trained small enough; None where one
    may."""
    fsdp = 3 in job.software.zero if "zero" not in pins else int(pins["zero"]) == 3
    homes = np.unique(variants(pins, job.shared_memory, job.software)[0])
    devices, batches = np.array(runs, dtype=float).T
    spread, held, away = least_held(job.network, _base(job), devices, homes, job.recipe, job.memory, fsdp=fsdp)
    over, room = held > job.limit_bytes, preferences().host_share * float(job.cluster.host_memory_bytes)
    each = len(held) // len(runs)
    never = (over | (away > room)).reshape(-1, each).all(axis=1)
    found: list[PricedLayouts | None] = [None] * len(runs)
    for at in np.flatnonzero(never):
        one = slice(at * each, at * each + 1)
        why = Reason.MEMORY if over[at * each : (at + 1) * each].any() else Reason.HOST_MEMORY
        if devices[at] > float(job.cluster.domain) and not _networked(job.cluster):
            why = Reason.NO_NETWORK
        code = np.array([REASONS.index(why)])
        refused = replace(take(spread, one), global_batch=batches[at])
        found[at] = PricedLayouts(refused, np.array([np.inf]), held[one], code)
    return found


def _least(job: TrainJob, rows: Array, ways: Array) -> Array:
    """Bytes of the leaner of the last way to save memory and of the last that keeps activations on the device: where
    software moves them or runs layers again, and not both."""
    last = {ways.shape[1] - 1, *np.flatnonzero(ways[1] == 0.0)[-1:].tolist()}
    leanest = (_spread(job, rows, ways[:, [at]]) for at in last)
    held = (job.held(s).total_bytes for s in leanest)
    return np.asarray(np.min(np.stack([np.asarray(h) for h in held]), axis=0))


def _enough(job: TrainJob, rows: Array, ways: Array, work: OperatorTable | None) -> Iterator[PricedLayouts]:
    """Layouts with the smallest share of layers recomputed that fits, by bisection, at each home of the optimiser;
    none where the share is fixed, or the trainer knows no shares."""
    if "shares" not in job.software.recompute:
        return
    size, room = rows.shape[1], job.aim_bytes
    for offload, stash in dict.fromkeys(zip(ways[0], ways[1], strict=True)):
        if len(np.unique(ways[2, (ways[0] == offload) & (ways[1] == stash)])) < 2:
            continue

        def at(percent: Array, home: tuple[float, float] = (offload, stash)) -> TrainSpread:
            lean = np.stack([*(np.full(size, v) for v in home), percent / 100.0, np.zeros(size)])
            return replace(_spread(job, rows, lean[:, :1]), **dict(zip(LEAN, lean, strict=True)))

        def lacks(percent: Array, at: Callable[[Array], TrainSpread] = at) -> NDArray[np.bool_]:
            return np.asarray(job.held(at(percent)).total_bytes > room)

        _, least = root(lacks, np.zeros(size), np.full(size, 100.0))
        yield evaluate(job, at(least), work, full=job.known)


@dataclass(frozen=True)
class _Space:
    """The `frames` of several (devices, sequences of a step) with the table of their parts, None where there are none,
    and the places of each in the order of what they take at least, which stands beside."""

    runs: Sequence[tuple[int, int]]
    frames: Frames
    work: OperatorTable | None
    order: Sequence[tuple[NDArray[np.intp], Array]]

    @classmethod
    def known(cls, job: TrainJob, runs: Sequence[tuple[int, int]], pins: Mapping[str, int | str]) -> _Space:
        """Those of some runs at least. The last ones are kept: policies of memory, which follow each other, share
        them."""
        same = (
            job.network,
            job.cluster,
            job.recipe.timed,
            job.rates,
            job.software,
            replace(_base(job), global_batch=0.0),
        )
        last, key = job.kernels.framed, content((*same, dict(pins)))
        if key not in last or not set(runs) <= set(last[key].runs):
            last.clear()
            last[key] = cls.of(job, runs, pins)
        found: _Space = last[key]
        return found

    @classmethod
    def of(cls, job: TrainJob, runs: Sequence[tuple[int, int]], pins: Mapping[str, int | str]) -> _Space:
        """Where a sequence is cut, K and V are gathered if that is faster than round the ring: nothing else of a layout
        changes with it."""
        every = frames(job.network, job.cluster, runs, job.seq, pins, job.software)
        rows = every.rows
        if not rows.size:
            return cls(runs, every, None, every.ordered(rows[0], len(runs)))
        priced = OperatorTable.of(replace(_base(job), **dict(zip(FRAME, rows, strict=False))), job.parts)
        tp, cp, micro = (rows[FRAME.index(name)] for name in ("tp", "cp", "micro_batch"))
        cut = np.flatnonzero(cp > 1.0)
        _, one, which = np.unique((tp[cut] * 1e6 + cp[cut]) * 1e6 + micro[cut], return_index=True, return_inverse=True)
        if len(cut):
            ring = replace(_base(job), **dict(zip(FRAME, rows[:, cut[one]], strict=False)))
            parts = priced.at(ring)
            took = [context_time(replace(ring, gather=how), job.recipe, job.rates, *parts) for how in (0.0, 1.0)]
            rows[FRAME.index("gather"), cut] = np.asarray(took[1] < took[0])[which]
        fastest = variants(pins, job.shared_memory, job.software)[:, 0]
        return cls(runs, every, priced, every.ordered(_floors(job, rows, priced, fastest), len(runs)))

    def next(self, run: int, done: int, most: float) -> NDArray[np.intp]:
        """The places of the next chunk of a run that take no more than `most` at least."""
        places, least = (part[done : done + max(FEW, min(done, CHUNK))] for part in self.order[run])
        return np.sort(places[least <= most])

    def every(self, run: int) -> Array:
        """Columns of all layouts of a run."""
        return self.frames.at(np.sort(self.order[run][0]))


def _spread(job: TrainJob, rows: Array, ways: Array) -> TrainSpread:
    """Frames with every way to save memory, as a layout each."""
    return replace(_base(job), **dict(zip(COLUMNS, crossed(rows, ways), strict=True)))


def _base(job: TrainJob) -> TrainSpread:
    """What all layouts of a job have in common."""
    return TrainSpread(
        global_batch=float(job.global_batch),
        seq=float(job.seq),
        adapter=job.adapter,
        sequence=float(job.sequence),
        document=job.document,
        forwards=job.objective.forwards,
        reference=0.0 if job.adapter else job.objective.reference,
        scored=job.objective.scored,
    )


def _parted(several: Sequence[tuple[NDArray[np.intp], PricedLayouts]], runs: int) -> Iterator[PricedLayouts]:
    """Several tables of layouts, each of which is of some run, as a table of each run."""
    whose, parts = np.concatenate([run for run, _ in several]), [priced for _, priced in several]
    columns = {name: np.concatenate([getattr(p.spread, name) for p in parts]) for name in COLUMNS}
    every = replace(parts[0].spread, **columns)
    seconds, memory, reason = (
        np.concatenate([getattr(p, name) for p in parts]) for name in ("seconds", "memory_bytes", "reason")
    )
    for rows in (np.flatnonzero(whose == run) for run in range(runs)):
        yield PricedLayouts(take(every, rows), seconds[rows], memory[rows], reason[rows], parts[0].table)


def evaluate(
    job: TrainJob, spread: TrainSpread, table: OperatorTable | None = None, *, full: bool = True
) -> PricedLayouts:
    """Memory, legality and step time of layouts, in chunks that fit the cache; `table` of their operators, where it is
    made already. Those that are no plan take infinitely long; `full`: but for those that only lack memory."""
    size = len(np.asarray(spread.tp))
    seconds, memory = np.full(size, np.inf), np.empty(size)
    reason: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
    table = table or OperatorTable.of(spread, job.parts)
    for start in range(0, size, CHUNK):
        rows = slice(start, start + CHUNK)
        part = take(spread, rows)
        memory[rows] = job.held(part).total_bytes
        reason[rows] = _reasons(job, part, memory[rows])
    timed = np.flatnonzero((reason == 0) | (full & (reason == _MEMORY)))
    for start in range(0, len(timed), CHUNK):
        at = timed[start : start + CHUNK]
        part = take(spread, at)
        # kept until those of the next chunk are made: a heap whose top is freed is given back, and taken again
        work = table.at(part)
        time = job.step(part, *work)
        seconds[at] = time.total_s
    return PricedLayouts(spread, seconds, memory, reason, table)


def _reasons(job: TrainJob, s: TrainSpread, memory: Array) -> NDArray[np.int64]:
    return first_broken(_rules(job, s, memory), (len(memory),))


def _rules(job: TrainJob, s: TrainSpread, memory: Array) -> Iterator[tuple[Reason, object]]:
    """What a job asks of layouts, and where that is broken."""
    t, c = job.network, job.cluster
    tp = np.asarray(s.tp)
    yield Reason.SHARED_MEMORY, np.asarray(s.offload + s.stash > 0) & job.shared_memory
    yield Reason.TP_HEADS, _uneven(t.heads, tp)
    if float(t.dense_share):
        yield Reason.TP_WIDTH, _uneven(t.ffn, tp)
    if not job.known:
        yield Reason.TP_DOMAIN, tp > c.domain
    yield Reason.PP_LAYERS, np.asarray(s.pp) > t.layers
    yield Reason.VIRTUAL, np.asarray(s.vp > 1) & np.asarray(s.vp > most_virtual(t.layers, s.pp))
    yield Reason.BATCH, _uneven(s.global_batch, s.dp * s.micro_batch)
    uneven = _uneven(s.micro_batches, s.pp)
    yield Reason.INTERLEAVED, np.asarray(s.vp > 1) & uneven
    if float(t.moe_share):
        yield Reason.EP_EXPERTS, _uneven(t.experts, s.ep)
        yield Reason.EP_GROUP, _uneven(s.tp * s.cp * s.dp, s.ep)
    yield Reason.CONTEXT, _uneven(s.seq, s.cp)
    yield Reason.GRADIENTS, np.asarray(s.zero == 2) & np.asarray(s.pp > 1)
    if not job.known:
        yield Reason.SCHEDULE, np.asarray(s.pp > 1) & ~_has(job.software.schedules, s)
        yield Reason.STASH, np.asarray((s.stash > 0) & (s.pp > 1))
        yield Reason.ADAPTERS, np.asarray((s.adapter > 0) & (s.offload > 0) & (s.zero < 3))
        away = host_bytes(t, s, job.recipe) if np.any(s.offload + s.stash) else 0.0
        room = preferences().host_share * np.asarray(c.host_memory_bytes)
        yield Reason.HOST_MEMORY, np.asarray(away > room)
    yield Reason.NO_NETWORK, np.asarray(s.devices > c.domain) & (not _networked(c))
    yield Reason.MEMORY, memory > job.limit_bytes


def _networked(c: Cluster) -> bool:
    return bool(np.isfinite(float(c.nic_bytes_per_s)) and float(c.nic_bytes_per_s) > 0)


def _uneven(whole: Real, parts: Real) -> NDArray[np.bool_]:
    """Where parts do not divide the whole: counts, whose quotients are exact (a remainder takes four times as long)."""
    quotient = np.asarray(whole / parts)
    return np.asarray(quotient != np.floor(quotient))


def _has(schedules: Sequence[str], s: TrainSpread) -> NDArray[np.bool_]:
    """Where a layout's schedule is one of those by name."""
    found: NDArray[np.bool_] = np.any([SCHEDULES[name].of(s) for name in schedules], axis=0)
    return found


def best(job: TrainJob, priced: PricedLayouts, count: int = 1) -> NDArray[np.intp]:
    """The fastest legal layouts: those that fit comfortably first, tight ones only where none does. Of a run that is
    known to fit, the one that needs the least memory where none is predicted to."""
    legal = priced.reason == 0
    roomy = legal & (priced.memory_bytes <= job.aim_bytes)
    if job.known and not legal.any():
        over = np.flatnonzero(priced.reason == _MEMORY)
        return over[np.lexsort((priced.seconds[over], priced.memory_bytes[over]))[:count]]
    chosen = np.flatnonzero(roomy if roomy.any() else legal)
    return chosen[np.argsort(priced.seconds[chosen], kind="stable")[:count]]


def simplest(priced: PricedLayouts, chosen: NDArray[np.intp]) -> int:
    """Of the layouts that take as long as the first of `chosen` (`preferences().equal`), the one with the fewest parts:
    axes that are cut, sequences cut below 4,096 tokens, schedules besides 1F1B, what waits in host memory, what is run
    again, weights that are gathered; the faster of those. Nothing waits there where the fastest that keeps all on the
    device takes hardly longer (`preferences().at_home`)."""
    p, seconds = preferences(), priced.seconds[chosen]
    moved = np.broadcast_to(np.asarray(priced.spread.offload + priced.spread.stash), priced.seconds.shape)
    home = np.flatnonzero(moved[chosen] <= 0.0)
    if len(home) and seconds[home[0]] <= (1.0 + p.at_home) * seconds[0]:
        chosen, seconds = chosen[home], seconds[home]
    near = chosen[seconds <= (1.0 + p.equal) * seconds[0]]
    s = take(priced.spread, near)
    cut = sum((np.asarray(getattr(s, name)) > 1.0).astype(float) for name in ("tp", "pp", "cp"))
    short = np.asarray((s.cp > 1.0) & (s.seq / s.cp < WHOLE_TOKENS))
    odd = np.asarray((s.pp > 1.0) & ((s.bubble < 1.0) | (s.in_flight != 1.0)))
    away, again = np.asarray(s.offload + s.stash > 0.0), np.asarray(s.full + s.selective > 0.0)
    extra = again + np.asarray(s.zero >= 3.0)
    return int(near[np.lexsort((priced.seconds[near], cut + short + odd + 2.0 * away + 0.5 * extra))[0]])


@dataclass(frozen=True, slots=True)
class Point:
    """The best layout of one count of devices: its operators, step time, the share of it besides compute and memory
    (host, communication, bubble, optimiser, stragglers), memory of the fullest stage and of each; `least_s` is the part
    of a step that no software goes below, its kernels alone and the bubble."""

    devices: int
    spread: TrainSpread
    operators: TrainWork
    seconds: float
    tokens_per_s: float
    overhead_share: float
    time: StepTime
    memory: MemoryAccount
    stages: tuple[MemoryAccount, ...]
    least_s: float


def point(job: TrainJob, priced: PricedLayouts, index: int) -> Point:
    """One layout in full."""
    s = take(priced.spread, index)
    operators, traffic = priced.table.at(s) if priced.table else job.parts(s)
    time = job.step(s, operators, traffic)
    total = float(time.total_s)
    work = float(time.compute_s + time.head_s + time.passes_s)
    away = MemoryItem("offloaded", host_bytes(job.network, s, job.recipe), "layout: offload, stash", "host")
    memory = job.held(s).also(away)
    stages = stage_memory(job.network, s, job.recipe, job.memory)
    rate = float(s.global_batch) * float(s.seq) / total
    alone = replace(job, rates=job.rates.alone).step(s, operators, traffic)
    least = float(alone.compute_s + alone.passes_s + alone.head_s + alone.bubble_s)
    return Point(round(float(s.devices)), s, operators, total, rate, 1.0 - work / total, time, memory, stages, least)


def scaling(
    job: TrainJob, counts: Sequence[int], *, weak: bool = False, pins: Mapping[str, int | str] | None = None
) -> list[Point]:
    """Best layouts over counts of devices: strong scaling at the job's batch, weak at a batch that grows with
    the devices (the job's at the first count); `pins` as in `layouts`. Counts without a legal layout are left out."""
    points = []
    for devices in counts:
        grown = job.global_batch * devices // counts[0] if weak else job.global_batch
        part = replace(job, global_batch=max(grown, 1))
        priced = search(part, devices, pins)
        chosen = best(job, priced)
        if len(chosen):
            points.append(point(part, priced, int(chosen[0])))
    return points
