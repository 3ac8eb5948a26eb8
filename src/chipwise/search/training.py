"""Layouts of a training run: every one worth trying, priced as arrays, masked with a reason, the best kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from chipwise.predict.training.memory import MemoryRates, MemoryUse, memory_use
from chipwise.predict.training.step import StepTime, step_time
from chipwise.predict.training.values import Cluster, Rates, Recipe, Spread, Transformer, take
from chipwise.units import Array

__all__ = [
    "FITS",
    "RISKY",
    "Job",
    "Point",
    "Priced",
    "TrainReason",
    "best",
    "check_spread",
    "evaluate",
    "layouts",
    "point",
    "scaling",
]

FITS = 0.88  # of capacity: predicted memory is 7 % off in the median and 17 % at worst of ten
RISKY = 0.95  # never called a fit above this
CHUNK = 8192  # columns of a chunk stay in the second-level cache

Row = tuple[float, ...]
COLUMNS = ("tp", "pp", "vp", "cp", "ep", "dp", "micro_batch", "zero", "shard", "full", "selective")


class TrainReason(Enum):
    """Why a layout is not a plan; the text ends with what is legal."""

    OK = "legal"
    TP_HEADS = "tp does not divide the attention heads: choose a divisor"
    TP_WIDTH = "tp does not divide the feed-forward width: choose a divisor"
    TP_DOMAIN = "tp leaves the scale-up domain: choose at most its size"
    PP_LAYERS = "more pipeline stages than layers: choose fewer"
    BATCH = "dp x micro-batch does not divide the global batch: choose a divisor"
    INTERLEAVED = "virtual stages need micro-batches in multiples of the stages: choose vp 1"
    EXPERTS = "ep does not divide the experts: choose a divisor"
    NO_NETWORK = "more devices than one scale-up domain holds, and no network is known: use fewer"
    MEMORY = "does not fit: more chips, recomputation, or a smaller micro-batch"


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be trained, on what, with which software; `cluster` and `rates` are single values."""

    network: Transformer
    cluster: Cluster
    recipe: Recipe
    rates: Rates
    memory: MemoryRates
    global_batch: int
    seq: int
    adapter: bool = False


@dataclass(frozen=True)
class Priced:
    """Layouts with their step time, memory and verdicts; `reason` indexes `list(TrainReason)`."""

    spread: Spread
    seconds: Array
    memory_bytes: Array
    reason: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.seconds)


def layouts(job: Job, devices: int, pins: Mapping[str, int] | None = None) -> Spread:
    """Every layout worth trying on so many devices, legal or not, as columns; `pins` fixes degrees by name.

    tp in powers of two up to the domain (64 at most), stages that divide the rest, context parallelism from
    16 k tokens on, experts over all or some ranks of a stage; virtual stages that divide the layers of a
    stage; ZeRO-1, FSDP over all ranks or over those of a domain; micro-batches in powers of two; recomputation
    of nothing, of attention cores, of half of the layers, of all.
    """
    rows = list(_rows(job, devices, pins or {}))
    columns = np.array(rows, dtype=float).T if rows else np.empty((len(COLUMNS), 0))
    base = Spread(
        global_batch=float(job.global_batch), seq=float(job.seq), adapter=float(job.adapter), sequence=1.0
    )
    return replace(base, **dict(zip(COLUMNS, columns, strict=True)))


def _rows(job: Job, devices: int, pins: Mapping[str, int]) -> Iterator[Row]:
    t, domain = job.network, int(min(float(job.cluster.domain), 64.0))

    def options(name: str, usual: list[int]) -> list[int]:
        return [pins[name]] if name in pins else usual

    experts = int(float(t.experts)) if float(t.moe_share) else 1
    contexts = [1] if job.seq < 16384 else [1, 2, 4, 8, 16, 32]
    again = [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)]
    if not float(job.recipe.flash):
        again.insert(1, (0.0, 1.0))
    for tp in options("tp", _powers(min(domain, devices))):
        rest = devices // tp if devices % tp == 0 else 1
        for pp in options("pp", _divisors(rest, int(float(t.layers)))):
            for cp in options("cp", contexts):
                if devices % (tp * pp * cp) or pins.get("dp", devices // (tp * pp * cp)) != devices // (
                    tp * pp * cp
                ):
                    continue
                dp = devices // (tp * pp * cp)
                whole = max(job.global_batch // dp, 1)
                per_stage = float(t.layers) / pp
                virtual = options(
                    "vp", [v for v in (1, 2, 4, 8) if v == 1 or (pp > 1 and per_stage % v == 0)]
                )
                eps = options("ep", [e for e in _powers(experts) if (tp * cp * dp) % e == 0])
                cuts = _cuts(dp * cp, max(domain // tp, 1), stages=pp)
                for vp, ep, (zero, shard), micro, (full, core) in itertools.product(
                    virtual, eps, cuts, options("micro_batch", _powers(min(whole, 64))), again
                ):
                    yield (tp, pp, vp, cp, ep, dp, micro, zero, shard, full, core)


def _cuts(ranks: int, near: int, *, stages: int) -> list[tuple[float, float]]:
    if ranks == 1:
        return [(0.0, 1.0)]
    cuts = [(1.0, float(ranks))]
    if stages == 1:
        cuts.append((3.0, float(ranks)))
        if 1 < near < ranks and ranks % near == 0:
            cuts.append((3.0, float(near)))
    return cuts


def evaluate(job: Job, spread: Spread) -> Priced:
    """Step time, memory and legality of layouts, in chunks that fit the cache."""
    size = len(np.asarray(spread.tp))
    seconds, memory = np.empty(size), np.empty(size)
    reason: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        rows = slice(start, start + CHUNK)
        part = take(spread, rows)
        seconds[rows] = step_time(job.network, part, job.cluster, job.recipe, job.rates).total_s
        memory[rows] = memory_use(job.network, part, job.recipe, job.memory).total_bytes
        reason[rows] = _reasons(job, part, memory[rows])
    return Priced(spread, seconds, memory, reason)


def _reasons(job: Job, s: Spread, memory: Array) -> NDArray[np.int64]:
    t, c = job.network, job.cluster
    codes = list(TrainReason)
    found: NDArray[np.int64] = np.zeros(len(memory), dtype=np.int64)

    def rule(reason: TrainReason, broken: NDArray[np.bool_]) -> None:
        found[(found == 0) & broken] = codes.index(reason)

    tp = np.asarray(s.tp)
    rule(TrainReason.TP_HEADS, np.asarray(t.heads) % tp != 0)
    if float(t.dense_share):
        rule(TrainReason.TP_WIDTH, np.asarray(t.ffn) % tp != 0)
    rule(TrainReason.TP_DOMAIN, tp > c.domain)
    rule(TrainReason.PP_LAYERS, np.asarray(s.pp * s.vp) > t.layers)
    rule(TrainReason.BATCH, np.asarray(s.global_batch) % (s.dp * s.micro_batch) != 0)
    uneven = np.asarray(s.micro_batches) % s.pp != 0
    rule(TrainReason.INTERLEAVED, np.asarray(s.vp > 1) & uneven)
    if float(t.moe_share):
        rule(TrainReason.EXPERTS, np.asarray(t.experts) % s.ep != 0)
    networked = np.isfinite(float(c.nic_bytes_per_s)) and float(c.nic_bytes_per_s) > 0
    rule(TrainReason.NO_NETWORK, np.asarray(s.devices > c.domain) & (not networked))
    rule(TrainReason.MEMORY, memory > RISKY * np.asarray(c.memory_bytes))
    return found


def best(priced: Priced, capacity_bytes: float, count: int = 1) -> NDArray[np.intp]:
    """The fastest legal layouts: those that fit comfortably first, tight ones only where none does."""
    legal = priced.reason == 0
    roomy = legal & (priced.memory_bytes <= FITS * capacity_bytes)
    chosen = np.flatnonzero(roomy if roomy.any() else legal)
    return chosen[np.argsort(priced.seconds[chosen], kind="stable")[:count]]


def check_spread(job: Job, spread: Spread) -> TrainReason:
    """The verdict on one layout, memory included."""
    one = replace(
        spread, **{f.name: np.atleast_1d(np.asarray(getattr(spread, f.name), float)) for f in fields(spread)}
    )
    return list(TrainReason)[int(evaluate(job, one).reason[0])]


@dataclass(frozen=True, slots=True)
class Point:
    """The best layout of one count of devices: step time, what of it the network and the pipeline take."""

    devices: int
    spread: Spread
    seconds: float
    tokens_per_s: float
    network_share: float
    time: StepTime
    memory: MemoryUse


def point(job: Job, priced: Priced, index: int) -> Point:
    """One layout in full."""
    s = take(priced.spread, index)
    time = step_time(job.network, s, job.cluster, job.recipe, job.rates)
    total = float(time.total_s)
    apart = float(time.tp_s + time.cp_s + time.ep_s + time.pp_s + time.dp_s + time.bubble_s + time.straggle_s)
    memory = memory_use(job.network, s, job.recipe, job.memory)
    rate = float(s.global_batch) * float(s.seq) / total
    return Point(round(float(s.devices)), s, total, rate, apart / total, time, memory)


def scaling(job: Job, counts: Sequence[int], *, weak: bool = False) -> list[Point]:
    """Best layouts over counts of devices: strong scaling at the job's batch, weak at a batch that grows with
    the devices (the job's at the first count). Counts without a legal layout are left out."""
    points = []
    for devices in counts:
        grown = job.global_batch * devices // counts[0] if weak else job.global_batch
        part = replace(job, global_batch=max(grown, 1))
        priced = evaluate(part, layouts(part, devices))
        chosen = best(priced, float(job.cluster.memory_bytes))
        if len(chosen):
            points.append(point(part, priced, int(chosen[0])))
    return points


def _powers(most: int) -> list[int]:
    return [2**i for i in range(max(most, 1).bit_length()) if 2**i <= most]


def _divisors(number: int, most: int) -> list[int]:
    return [d for d in range(1, min(number, most) + 1) if number % d == 0]
