"""A run as more than its steps: phases of its tokens, checkpoints and where they are kept, failures, spare hosts,
pre-emption, evaluation, data that is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.predict.training.result import goodput, young_daly

START_S = 600.0
"""seconds: to notice a failure, schedule hosts anew and start processes; also at the beginning. Chosen: ten minutes,
no source is known; moves the time that each failure and the beginning take."""
BLOCK_S = 2.0
"""seconds: of a checkpoint, to agree on it, besides the copy to host memory. Chosen: a barrier and a traversal of the
state; moves runs that save every few minutes."""
STEADY = 0.99
"""share of the time: in which so many spares as are proposed replace every host that is down. Chosen: a hundredth of
the run may wait; moves the spares that are proposed, about one."""
MOST_SPARES = 10_000
LEVELS = 16  # steps that a batch grows in
MONTH_S = 30.4 * 86400.0
"""seconds: of a month. Exact: 30.4 days."""


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
    stops of the run."""

    good: float
    steady: float
    start_s: float
    save_s: float
    block_s: float
    restart_s: float
    interval_s: float
    mtbf_s: float

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
    steady = availability(at, f.chip_mtbf_h, f.repair_h, f.spares)
    return Course(good / (1.0 + at.evaluation), steady, start, save, block, restart, interval, mtbf)


def availability(at: CourseSite, chip_mtbf_h: float, repair_h: float, spares: int) -> float:
    """Share of the time in which no more hosts are being repaired than stand by: of a Poisson number whose mean is
    failures per hour x hours of repair."""
    if repair_h <= 0:
        return 1.0
    mean = at.chips / chip_mtbf_h * repair_h
    terms = (k * math.log(mean) - mean - math.lgamma(k + 1.0) for k in range(spares + 1))
    return min(sum(math.exp(t) for t in terms), 1.0)


def spares_for(at: CourseSite, chip_mtbf_h: float, repair_h: float) -> int:
    """The fewest spare hosts that keep a run going 99 % of the time."""
    found = range(MOST_SPARES)
    return next((k for k in found if availability(at, chip_mtbf_h, repair_h, k) >= STEADY), MOST_SPARES)


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
