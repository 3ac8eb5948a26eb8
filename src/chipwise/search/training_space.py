"""Layouts of a training run worth trying, as columns: degrees, pipeline schedule, sharding, recomputation, offload."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import UsageError
from chipwise.parallel.pipeline import most_virtual, stage_layers
from chipwise.predict.training.values import Cluster, TrainSpread, Transformer
from chipwise.values import dataclass

Table = NDArray[np.float64]
Options = Sequence[Sequence[tuple[float, ...]]]
FRAME = (
    "tp", "pp", "cp", "dp", "global_batch", "vp", "bubble", "in_flight", "micro_batch", "gather", "ep", "zero", "shard",
)  # fmt: skip
LEAN = ("offload", "stash", "full", "selective")
COLUMNS = (*FRAME, *LEAN)


@dataclass(frozen=True, slots=True)
class PipelineSchedule:
    """A pipeline schedule: the share of the 1F1B bubble it leaves, times its virtual stages (0: any above 1), and the
    micro-batches that wait (of p; 0: all)."""

    name: str
    bubble: float
    in_flight: float
    virtual: int

    def of(self, s: TrainSpread) -> NDArray[np.bool_]:
        """Where layouts run by it."""
        chunks = np.asarray(s.vp == self.virtual if self.virtual else s.vp > 1)
        alike = np.asarray(np.abs(s.bubble - self.bubble) < 1e-6)
        waiting = np.asarray(np.abs(s.in_flight - self.in_flight) < 1e-6)
        found: NDArray[np.bool_] = chunks & alike & waiting
        return found


SCHEDULES: Mapping[str, PipelineSchedule] = {
    s.name: s
    for s in (
        PipelineSchedule("1f1b", 1.0, 1.0, 1),
        PipelineSchedule("interleaved", 1.0, 1.0, 0),
        PipelineSchedule("gpipe", 1.0, 0.0, 1),
        PipelineSchedule("zero-bubble", 1.0 / 3.0, 1.0, 1),
        PipelineSchedule("zb-v", 0.2, 1.0, 2),
        PipelineSchedule("v-half", 1.0, 1.0 / 2.0, 2),
        PipelineSchedule("v-min", 1.6, 1.0 / 3.0, 2),
        PipelineSchedule("dualpipe", 0.32, 1.0, 1),
    )
}
"""shares: of the bubble, and of what micro-batches hold, with the stages of a rank (0: asked); the bubble divided by
v is in the step time. Source: Huang et al., 2019 (GPipe); Narayanan et al., 2021 (1F1B, interleaved); Qi et al., 2024
(zero-bubble H1 and ZB-V: weight gradients fill a third and nine tenths of it) and 2024b (V-half and V-min hold a half
and a third of the micro-batches); DeepSeek-V3 technical report (DualPipe, two directions)."""

RECOMPUTE: Mapping[str, tuple[float, float]] = {
    "none": (0.0, 0.0),
    "selective": (0.0, 1.0),
    "quarter": (0.25, 0.0),
    "half": (0.5, 0.0),
    "three-quarters": (0.75, 0.0),
    "full": (1.0, 0.0),
}
"""shares of layers: recomputed whole, and of those whose attention cores, norms and activation functions are. Exact:
the names say it."""


@dataclass(frozen=True, slots=True)
class TrainerRules:
    """What a trainer can run: pipeline schedules, stages of ZeRO, whether a step without stages takes several
    micro-batches, and a `single` one of every rank where no batch is given, what it cuts besides data parallelism,
    whether the optimiser's state can wait in host memory, what it runs again (none, selective, `shares` of the layers
    whole, full) and beside which of these what layers save can wait there, and whether FSDP cuts over fewer ranks than
    hold copies (`hybrid`) and goes with stages (`staged`); `together`
    sequences, those of an example of the objective, share a micro-batch."""

    schedules: tuple[str, ...] = tuple(SCHEDULES)
    zero: tuple[int, ...] = (0, 1, 2, 3)
    accumulates: bool = True
    single: bool = False
    degrees: tuple[str, ...] = ("tp", "pp", "cp", "ep")
    offloads: bool = True
    recompute: tuple[str, ...] = ("none", "selective", "shares", "full")
    stashes: tuple[str, ...] = ()
    hybrid: bool = True
    staged: bool = True
    together: int = 1


ANY = TrainerRules()
CONTEXT = 32  # ranks that a sequence is cut over, or one for 4,096 tokens of it
MICRO = 64  # sequences of a micro-batch, or half a million tokens


def variants(pins: Mapping[str, int | str], shared_memory: bool = False, software: TrainerRules = ANY) -> Table:
    """Columns of `LEAN`: what memory can be saved by, at the price of time; the first is the fastest, the last the
    leanest. In a memory shared with the host all stays where it is."""
    known = list(RECOMPUTE.values())
    again = [v for v in known if _kind(*v) in software.recompute]
    if "recompute" in pins:
        again = [recomputed(str(pins["recompute"]))]

    def places(name: str, able: bool) -> list[float]:
        if name in pins:
            return [float(int(pins[name]))]
        return [0.0, 1.0] if able and not shared_memory else [0.0]

    homes = itertools.product(places("offload", software.offloads), places("stash", bool(software.stashes)))
    found = [(*home, *share) for home in homes for share in again]
    # of a trainer that has no such stash at all it is a pin of a run that exists
    kept = [v for v in found if not v[1] or not software.stashes or _kind(*v[2:]) in software.stashes]
    if not kept:
        ways = " or ".join(software.stashes)
        raise UsageError(
            f"this trainer keeps what layers save in host memory with recompute {ways} alone",
            f"stash=1,recompute={software.stashes[-1]}",
            field="layout",
        )
    return np.array(kept).T


@dataclass(frozen=True, slots=True)
class Frames:
    """Layouts worth trying, but for what saves memory, of several counts of devices one after the other. `rows`:
    columns of `FRAME` up to `ep`, and `run`, whose they are; each is cut by ZeRO in so many `ways`, the columns of
    `cuts` (stage, ranks) from `first` on, and has as many places among all layouts."""

    rows: Table
    run: NDArray[np.intp]
    cuts: Table
    first: NDArray[np.intp]
    ways: NDArray[np.intp]

    def at(self, places: NDArray[np.intp]) -> Table:
        """Columns of `FRAME` of the layouts at `places`."""
        ends = np.cumsum(self.ways)
        row = np.searchsorted(ends, places, side="right")
        cut = self.first[row] + places - (ends - self.ways)[row]
        return np.concatenate([self.rows[:, row], self.cuts[:, cut]])

    def ordered(self, least: Table, runs: int) -> list[tuple[NDArray[np.intp], Table]]:
        """Of each run all places, in the order of what their rows take at `least`, and that."""
        order = np.lexsort((least, self.run))
        ways, before = self.ways[order], (np.cumsum(self.ways) - self.ways)[order]
        places = np.repeat(before - np.cumsum(ways) + ways, ways) + np.arange(ways.sum())
        took = np.repeat(least[order], ways)
        ends = np.cumsum(np.bincount(self.run, self.ways, runs)).astype(np.intp)[:-1]
        return list(zip(np.split(places, ends), np.split(took, ends), strict=True))


def frames(
    t: Transformer,
    c: Cluster,
    runs: Sequence[tuple[int, int]],
    seq: int,
    pins: Mapping[str, int | str],
    software: TrainerRules = ANY,
) -> Frames:
    """Degrees, schedule, micro-batch and sharding of every layout worth trying of each of several (devices, sequences
    of a step); most are legal.

    tp up to the domain, dividing the heads; stages that divide the rest, all schedules of the software with virtual
    stages while each of their parts holds a layer or a table and those of a batch divide among so many; context
    parallelism round a ring; experts over all or some ranks of a stage; ZeRO-1, FSDP over all ranks or over those of a
    domain, in a single stage over any group, and there ZeRO-2. What is left out is never faster: ZeRO over fewer ranks
    than there are, or none.
    """
    domain = int(min(float(c.domain), 1e6))
    experts = int(float(t.experts)) if float(t.moe_share) else 1
    options = partial(_options, pins, (*software.degrees, "micro_batch"))
    # asked again for every way to cut the rest
    pipelines_of = cache(lambda pp: _pipelines(t, pp, pins, software.schedules))
    cuts_of = cache(lambda ranks, near, pp: _cuts(ranks, near, pp, pins, software))
    spread_of = cache(lambda ranks: divisors(math.gcd(experts, ranks), experts))
    whose, degrees, pipelines, micros, eps, cuts = [], [], [], [], [], []
    for run, (devices, batch) in enumerate(runs):
        for tp, pp, cp, dp in _degrees(t, domain, devices, seq, options):
            if int(pins.get("dp", dp)) != dp:
                continue
            whole = max(batch // dp, 1) if batch % dp == 0 else 1
            at_once = pp == 1 and not software.accumulates
            whose.append(run)
            degrees.append((tp, pp, cp, dp, batch))
            pipelines.append(pipelines_of(pp))
            micros.append([(n,) for n in options("micro_batch", _micros(whole, seq, software, at_once=at_once))])
            eps.append([(0, n) for n in options("ep", spread_of(tp * cp * dp))])
            cuts.append(cuts_of(dp * cp, max(min(domain, 64) // tp, 1), pp))
    _, _, shapes = _flat([degrees], 5)
    rows, case = _with(*_with(shapes, np.arange(len(degrees)), pipelines, 3), micros, 1)
    _, pp, _, dp, batch, vp, *_, micro = rows
    share = 1.0 if "vp" in pins else dp * pp
    even = (share == 1.0) | (vp == 1.0) | (batch % (share * micro) == 0.0)
    rows, case = _with(rows[:, even], case[even], eps, 2)
    ways, first, every = _flat(cuts, 2)
    return Frames(rows, np.array(whose, dtype=np.intp)[case], every, first[case], ways[case])


def _with(rows: Table, case: NDArray[np.intp], options: Options, width: int) -> tuple[Table, NDArray[np.intp]]:
    """Every column with each of the options of its case, so many numbers, below it; and the cases of those."""
    sizes, starts, every = _flat(options, width)
    many = sizes[case]
    of = np.repeat(np.arange(len(case)), many)
    place = np.arange(len(of)) + np.repeat(starts[case] - np.cumsum(many) + many, many)
    return np.concatenate([rows[:, of], every[:, place]]), case[of]


def _flat(several: Options, width: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Table]:
    """Lists end to end, as columns: the length of each, where it starts, and all."""
    sizes = np.array([len(each) for each in several], dtype=np.intp)
    columns = np.array(list(itertools.chain(*several)), dtype=float).reshape(-1, width)
    return sizes, np.cumsum(sizes) - sizes, columns.T


def _micros(whole: int, seq: int, software: TrainerRules, *, at_once: bool) -> list[int]:
    """Sequences of a micro-batch worth trying of the `whole` of a rank, those of an example together."""
    sizes = [whole] if at_once else divisors(whole, max(MICRO, 2**19 // seq))
    return [n for n in sizes if n % software.together == 0]


def _options(pins: Mapping[str, int | str], able: Collection[str], name: str, usual: list[int]) -> list[int]:
    """What is tried of a degree: what is pinned, else the usual where software has it."""
    if name in pins:
        return [int(pins[name])]
    return usual if name in able else [1]


def _degrees(
    t: Transformer, domain: int, devices: int, seq: int, options: Callable[[str, list[int]], list[int]]
) -> Iterator[tuple[int, int, int, int]]:
    """(tp, pp, cp, dp) whose product are the devices."""
    contexts = [d for d in divisors(devices, max(CONTEXT, seq // 4096)) if seq % d == 0]
    for tp in options("tp", [d for d in divisors(int(float(t.heads)), domain) if devices % d == 0]):
        rest = devices // tp if devices % tp == 0 else 1
        stages = options("pp", divisors(rest, int(float(t.layers))))
        for pp, cp in itertools.product(stages, options("cp", contexts)):
            dp, over = divmod(devices, tp * pp * cp)
            if not over:
                yield tp, pp, cp, dp


def crossed(outer: Table, inner: Table) -> Table:
    """Every column of the one above every column of the other."""
    return np.concatenate([np.repeat(outer, inner.shape[1], axis=1), np.tile(inner, (1, outer.shape[1]))], axis=0)


def _pipelines(
    t: Transformer, pp: int, pins: Mapping[str, int | str], schedules: Collection[str]
) -> list[tuple[float, float, float]]:
    """(virtual stages, bubble, in flight) of every schedule; one stage has none."""
    if pp == 1:
        return [] if int(pins.get("vp", 1)) > 1 or "schedule" in pins else [(1.0, 1.0, 1.0)]
    parts = _virtual(int(float(t.layers)), pp)
    found = []
    for s in SCHEDULES.values():
        if pins.get("schedule", s.name) != s.name or (s.name not in schedules and "schedule" not in pins):
            continue
        chunks = [s.virtual] if s.virtual else parts
        if "vp" in pins:
            fixed = int(pins["vp"])
            chunks = [fixed] if fixed == s.virtual or (not s.virtual and fixed > 1) else []
        found += [(float(v), s.bubble, s.in_flight) for v in chunks]
    return found


def _virtual(layers: int, stages: int) -> list[int]:
    """Virtual stages of one stage: all, but for those that put more layers on it than a larger number does. That
    one's smaller bubble comes at a hand-over per part, which takes less than a layer."""
    legal = np.arange(2.0, float(most_virtual(layers, stages)) + 1.0)
    held = np.asarray(stage_layers(float(layers), float(stages), legal))
    after = np.minimum.accumulate(held[::-1])[::-1]
    return [int(v) for v in legal[held <= after]]


def _cuts(
    ranks: int, near: int, stages: int, pins: Mapping[str, int | str], software: TrainerRules
) -> list[tuple[float, float]]:
    """(ZeRO stage, ranks that it cuts over) of so many copies, of which `near` share a domain."""
    zero = int(pins["zero"]) if "zero" in pins else None
    if ranks == 1:  # ZeRO-1 has nothing to cut, FSDP can still keep all on the host
        return {3: [(3.0, 1.0)], 2: []}.get(zero or 0, [(0.0, 1.0)])
    kinds = _stages_of(stages, software) if zero is None else [zero]
    groups = [ranks]
    if software.hybrid:
        groups = divisors(ranks, ranks)[1:] if stages == 1 else _groups(near, ranks)
    fixed = [int(pins["shard"])] if "shard" in pins else []
    spans = {0: [1], 3: fixed or groups}
    every = ((kind, span) for kind in kinds for span in dict.fromkeys(spans.get(kind, fixed or [ranks])))
    return [(float(kind), float(span)) for kind, span in every if ranks % span == 0]


def _groups(near: int, ranks: int) -> list[int]:
    """Groups of ranks that shards are kept in beside a pipeline: those of a domain, and all."""
    return [r for r in (near, ranks) if 1 < r <= ranks]


def _stages_of(stages: int, software: TrainerRules) -> list[int]:
    """The ZeRO stages that software tries beside so many stages of a pipeline."""
    usual = [1, 2, 3] if stages == 1 else [1, 3] if software.staged else [1]
    return [kind for kind in usual if kind in software.zero] or [*software.zero]


def _kind(full: float, selective: float) -> str:
    """What is run again, as trainers are asked for it."""
    if 0.0 < full < 1.0:
        return "shares"
    return "full" if full else "selective" if selective else "none"


def recomputed(text: str) -> tuple[float, float]:
    """The pair of `RECOMPUTE` by name, or of a share of the layers, as in `30%`. Raises `ValueError`."""
    if text in RECOMPUTE:
        return RECOMPUTE[text]
    share = float(text.removesuffix("%")) * (0.01 if text.endswith("%") else 1.0)
    if not 0.0 <= share <= 1.0:
        raise ValueError(text)
    return share, 0.0


def divisors(number: int, most: int) -> list[int]:
    """Those of a number up to `most`, the smallest first."""
    return [d for d in _all_divisors(number) if d <= most]


@lru_cache(maxsize=4096)
def _all_divisors(number: int) -> tuple[int, ...]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(dict.fromkeys((*small, *(number // d for d in reversed(small)))))
