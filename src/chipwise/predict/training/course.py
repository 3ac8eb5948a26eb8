"""A run as more than its steps: phases of its tokens, checkpoints and where they are kept, failures, spare hosts,
pre-emption, evaluation, data that is read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from chipwise.predict.fleet import at_most_away
from chipwise.predict.training.result import goodput, young_daly
from chipwise.units import Array
from chipwise.values import dataclass

START_S = 600.0
"""seconds: to notice a failure, schedule hosts anew and start processes; also at the beginning. Chosen: ten minutes,
no source is known; moves the time that each failure and the beginning take."""
BLOCK_S = 2.0
"""seconds: of a checkpoint, to agree on it, besides the copy to host memory. Chosen: a barrier and a traversal of the
state; moves runs that save every few minutes."""
MOST_SPARES = 10_000
REPLAYS = 200
"""count: replays of a run. Chosen: moves the ends of the interval of its goodput by a tenth of their distance."""
MOST_STOPS = 20_000.0
"""count: stops of a replay at most. Chosen: of so many the mean is all that counts; moves time alone."""
LEVELS = 16  # steps that a batch grows in
MONTH_S = 30.4 * 86400.0
"""seconds: of a month. Exact: 30.4 days."""
DAY_S = 86_400.0
"""seconds: of a day. Exact: 24 hours."""
HOUR_S = 3600.0
"""seconds: of an hour. Exact: 60 minutes."""


@dataclass(frozen=True, slots=True)
class Failures:
    """What stops a run. None: follows from bytes, store and trainer.

    | field | meaning |
    |---|---|
    | chip_mtbf_h | hours between failures of one chip (Llama 3: 419 in 54 days of 16,384 GPUs) |
    | save_s, block_s | seconds until a checkpoint is written, and for which of them the run stops |
    | restart_s | to go on after a failure, without work that is done again |
    | start_s | before the first step: hosts, processes, the trainer's compiler |
    | spares | hosts that stand by, paid and idle |
    | repair_h | until a host that failed is back; 0: another one is rented at once |
    | scatter, among | variance over mean of the hosts away at once, and of how many hosts that is (0: of the run's) |
    | preempt_h, wait_s | hours between pre-emptions of a host; until there is another |

    Checkpoints are asynchronous: the run stops while the state of a device, tens of GB, goes to host memory, and goes
    on while it is written. `block_s` of at least `save_s` is a run that waits for both.
    """

    chip_mtbf_h: float = 50_000.0
    save_s: float | None = None
    restart_s: float | None = None
    block_s: float | None = None
    start_s: float | None = None
    spares: int = 0
    repair_h: float = 0.0
    scatter: float = 1.0
    among: int = 0
    preempt_h: float = math.inf
    wait_s: float = 600.0


@dataclass(frozen=True, slots=True)
class CheckpointStore:
    """Where checkpoints are kept: bytes/s that one host writes and reads and that all of them do at most (Llama 3:
    2 TB/s sustained), how many are kept, dollars per GB (1e9 bytes) and month, bytes of data per token."""

    host_bytes_per_s: float = 2e9
    most_bytes_per_s: float = 2e12
    kept: int = 3
    usd_per_gb_month: float = 0.023
    token_bytes: float = 4.0

    def seconds(self, moved_bytes: float, hosts: float) -> float:
        """Until all hosts together have written or read so much."""
        return moved_bytes / min(hosts * self.host_bytes_per_s, self.most_bytes_per_s)


@dataclass(frozen=True, slots=True)
class CourseSite:
    """What a run is on, as its failures see it: chips and hosts, bytes of a checkpoint and of a device's part of it,
    the link to host memory, seconds of the compiler, share of the time that evaluation takes."""

    chips: int
    hosts: int
    checkpoint_bytes: float
    device_bytes: float
    host_bytes_per_s: float
    compile_s: float = 0.0
    evaluation: float = 0.0


@dataclass(frozen=True, slots=True)
class Course:
    """What becomes of the time: `good` is the share that makes progress while all hosts run, after evaluation too;
    `steady` that in which enough hosts run; `start_s` pass once. `interval_s` between checkpoints, `mtbf_s` between
    stops of the run; evaluation makes it take `evaluated` times as long."""

    good: float
    steady: float
    start_s: float
    save_s: float
    block_s: float
    restart_s: float
    interval_s: float
    mtbf_s: float
    evaluated: float = 1.0

    @property
    def progress(self) -> float:
        """Share of the time that makes progress."""
        return self.good * self.steady


def course_of(f: Failures, store: CheckpointStore, at: CourseSite) -> Course:
    """Goodput of a run: checkpoints at Young's and Daly's interval for what stops it, never before the last one is
    written; stops of chips and, where hosts are pre-empted, of hosts.

    A stop loses half an interval, what was still being written, and the restart, which reads the checkpoint.
    """
    save = store.seconds(at.checkpoint_bytes, at.hosts) if f.save_s is None else f.save_s
    copied = BLOCK_S + at.device_bytes / at.host_bytes_per_s
    block = min(copied if f.block_s is None else f.block_s, save)
    read = START_S + store.seconds(at.checkpoint_bytes, at.hosts)
    chip = at.chips / (f.chip_mtbf_h * 3600.0)
    taken = at.hosts / (f.preempt_h * 3600.0)
    mtbf = 1.0 / (chip + taken)
    restart = (read if f.restart_s is None else f.restart_s) + f.wait_s * taken * mtbf
    interval = max(float(young_daly(block, mtbf)), save, 1e-3)
    good = float(goodput(1.0, mtbf / 3600.0, block, restart + save - block, interval))
    start = START_S + at.compile_s if f.start_s is None else f.start_s
    steady = availability(at, f, f.spares)
    evaluated = 1.0 + at.evaluation
    return Course(good / evaluated, steady, start, save, block, restart, interval, mtbf, evaluated)


def availability(at: CourseSite, f: Failures, spares: int) -> float:
    """Share of the time in which no more hosts are being repaired than stand by."""
    return float(_steady(at, f, spares)[-1])


def spares_for(at: CourseSite, f: Failures) -> int:
    """The spare hosts with which progress costs least: all hosts are paid for all the time, spare ones too."""
    if f.repair_h <= 0:
        return 0
    steady = _steady(at, f, min(4 * at.hosts + 1, MOST_SPARES))
    return int(np.argmin((at.hosts + np.arange(len(steady))) / np.maximum(steady, 1e-300)))


def _bunch(at: CourseSite, f: Failures) -> float:
    """Variance over mean of the hosts of a run that are being repaired at once: a run on part of a fleet meets that
    part of those that fail together."""
    return 1.0 + (f.scatter - 1.0) * (min(at.hosts / f.among, 1.0) if f.among else 1.0)


def _steady(at: CourseSite, f: Failures, most: int) -> Array:
    """Share of the time in which at most 0, 1, ... `most` hosts are being repaired."""
    return at_most_away(at.chips / f.chip_mtbf_h * f.repair_h, _bunch(at, f), most)


def progress_ends(course: Course, f: Failures, at: CourseSite, days: float, seed: int = 0) -> tuple[float, float]:
    """The tenth and the ninetieth percentile of the share of so many days that makes progress: the run is replayed
    `REPLAYS` times. Hosts fail in bunches at random times, each is back after an exponential time of repair, and the
    run waits while more are away than stand by; a stop loses its part of an interval, and the restart."""
    random, run_s = np.random.default_rng(seed), min(days * DAY_S, MOST_STOPS * course.mtbf_s)
    # with exponential repair, bunches whose sizes are geometric scatter the number away by their mean
    bunch, held = _bunch(at, f), course.interval_s + course.block_s
    failing = at.chips / (f.chip_mtbf_h * HOUR_S) * run_s
    found = np.empty(REPLAYS)
    for i in range(REPLAYS):
        sizes = random.geometric(1.0 / bunch, random.poisson(failing / bunch))
        stops = int(sizes.sum()) + int(random.poisson(max(run_s / course.mtbf_s - failing, 0.0)))
        again_s = course.restart_s + course.save_s - course.block_s
        lost = float(random.uniform(0.0, held, stops).sum()) + stops * again_s
        waits = 0.0
        if f.repair_h > 0:
            times = np.repeat(random.uniform(0.0, run_s, len(sizes)), sizes)
            back = np.minimum(times + random.exponential(f.repair_h * HOUR_S, len(times)), run_s)
            order = np.argsort(both := np.concatenate([times, back]), kind="stable")
            away = np.cumsum(np.repeat([1, -1], len(times))[order])
            waits = float(np.diff(np.append(both[order], run_s))[away > f.spares].sum())
        found[i] = max(run_s - waits - lost, 0.0) / run_s * course.interval_s / held
    low, high = np.quantile(found, (0.1, 0.9))
    return float(low) / course.evaluated, float(high) / course.evaluated


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a run: tokens, sequences of a step (a ramp: those that it begins with), tokens of a sequence."""

    name: str
    tokens: float
    global_batch: int
    seq: int

    def batches(self, last: int) -> Sequence[float]:
        """Sequences of the steps of a ramp that grows to `last`, each for the same share of its tokens."""
        width = (last - self.global_batch) / LEVELS
        return [self.global_batch + width * (i + 0.5) for i in range(LEVELS)]
