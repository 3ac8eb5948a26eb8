"""The probe: a designed set of tasks, timed in rounds within a budget, and how well what it gives holds.

Some thirty tasks are held out: they are timed like the others, and the numbers never see them, so that each probe
says how far off its own predictions are.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from chipwise.errors import ChipwiseError, UsageError
from chipwise.measure.backend import Backend, check
from chipwise.measure.protocol import memory_kept, sampled, timing_of
from chipwise.measure.task import WORKS, Task, TaskKind, designed
from chipwise.measure.timed import UNFINISHED, TimedMachine, TimedTask
from chipwise.values import dataclass

COUNTS: tuple[tuple[TaskKind, int], ...] = (("gemm", 48), ("conv", 48), ("attention", 32))
"""Tasks of every type; copies, and work on rows, in the first type alone."""
COPIES, ROWS = 18, 7 * len(WORKS)
HELD_OUT = 4
"""Of one type every fourth task, of two every eighth: some thirty in all."""
TASK_S = 0.05
"""Seconds of samples of one task and round; preparing it takes about as long."""
LARGEST_S = 0.02
"""What a task may take: its FLOPs are at most what a square product does in this time."""
ROTATING_BYTES = {"cpu": 64e6}
"""Operands that take turns together hold at least so much: twice a last cache of 32 MB; 256 MB on other devices, whose
caches go up to 96 MB."""
MOST_COPIES = 64
SHOWN_S = 10.0
"""Seconds after which what was timed so far is shown to whoever keeps it."""
SLOWER = 1.15
"""The same product at the end over the one at the beginning, above which the machine is said to have slowed down."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A machine, and the tasks that its numbers have not seen. `error` is the median of |predicted / timed - 1| over
    them, None where there are none; `whole`: nothing cut it short."""

    machine: TimedMachine
    unseen: tuple[TimedTask, ...]
    whole: bool = True

    @property
    def error(self) -> float | None:
        """The median error on the tasks held out that could be priced."""
        off = list(self.errors())
        return float(np.median(off)) if off else None

    def errors(self) -> Iterator[float]:
        """|predicted / timed - 1| of each task held out."""
        for t in self.unseen:
            try:
                yield abs(self.machine.seconds(t.task.op) / t.timing.seconds - 1.0)
            except UsageError:  # its kind was not reached
                continue


@memory_kept()
def probe(
    measured: Backend,
    budget_s: float,
    dtypes: Sequence[str] = (),
    say: Callable[[int, int, float], None] = lambda done, tasks, left: None,
    now: Callable[[], float] = time.monotonic,
    so_far: Callable[[TimedMachine], None] = lambda machine: None,
) -> Probe:
    """Time the designed tasks for about `budget_s` seconds, in two rounds where that is enough. Ctrl-C ends it early
    and keeps what is done. `say(done, tasks, seconds left)` after every task; `so_far` takes what was timed every ten
    seconds, as nothing is said to a program that is killed.

    Raises `ChipwiseError` where a result is wrong, `UsageError` where too little was timed to say anything.
    """
    ends = now() + budget_s
    types = tuple(dtypes) or measured.dtypes()
    for dtype in types:
        check(measured, dtype)
    timed: dict[Task, list[float]] = {}
    refused: dict[Task, str] = {}
    square = Task("gemm", types[0], (512, 512, 512))
    first = timing_of(_samples(measured, square)).seconds
    columns, unseen = _columns(measured, types, 2.0 * 512.0**3 / first * LARGEST_S)
    count, whole = sum(map(len, columns)), True
    spent = [0.0] * len(columns)
    done: list[Task] = []
    shown = now()

    def machine(notes: Sequence[str]) -> TimedMachine:
        return TimedMachine(
            backend=measured.name,
            software=measured.software,
            device=measured.device,
            chip=measured.chip,
            threads=measured.threads,
            date=dt.date.today().isoformat(),
            timed=tuple(
                TimedTask(task, timing_of(samples)) for task, samples in timed.items() if samples and task not in unseen
            ),
            notes=tuple(notes),
        )

    try:
        for place in range(2 * count):
            began = now()
            if began > ends:
                whole = place >= count
                break
            if (
                place < count
            ):  # whatever ends the probe has seen a bit of each kind, the rest of what is slow comes last
                column = min((i for i, c in enumerate(columns) if c), key=lambda i: spent[i])
                done.append(columns[column].pop(0))
            task = done[place % count]
            try:
                timed.setdefault(task, []).extend(_samples(measured, task))
            except (RuntimeError, ValueError, TypeError, MemoryError) as error:  # what frameworks raise
                timed.pop(task, None)
                refused[task] = str(error).partition("\n")[0][:80]
            if place < count:
                spent[column] += now() - began
            say(place + 1, 2 * count, ends - now())
            if now() - shown > SHOWN_S:
                shown = now()
                so_far(machine([UNFINISHED]))
    except KeyboardInterrupt:
        whole = False
    last = timing_of(_samples(measured, square)).seconds
    notes = [f"{len(refused)} tasks could not run, as {t.name}: {why}" for t, why in list(refused.items())[:1]]
    if last > SLOWER * first:
        notes.append(f"it slowed down: the same product took {last / first:.2f} times as long at the end")
    found = machine(notes)
    if not found.numbers.rates:
        raise ChipwiseError("nothing but copies was timed", "a larger --budget, as in 60s")
    left = tuple(TimedTask(task, timing_of(timed[task])) for task in timed if task in unseen and timed[task])
    return Probe(found, left, whole)


def _columns(
    measured: Backend, dtypes: Sequence[str], largest_flops: float
) -> tuple[list[list[Task]], frozenset[Task]]:
    """The tasks by type and kind, which take turns by the time that they have had: what compiles a second for every
    shape, as attention under XLA, leaves products and convolutions theirs. And those that are held out."""
    columns = [list(designed("copy", dtypes[0], COPIES, largest_flops))]
    rows = designed("rows", dtypes[0], ROWS, largest_flops)
    columns.append([t for t in rows if WORKS[t.dims["work"]] in measured.works])
    columns += [list(designed(k, d, n, largest_flops)) for d in dtypes for k, n in COUNTS]
    step = HELD_OUT * len(dtypes)
    unseen = frozenset(t for column in columns[2:] for t in column[step - 1 :: step])
    return columns, unseen


def _samples(measured: Backend, task: Task) -> list[float]:
    rotating = ROTATING_BYTES.get(measured.kind, 256e6)
    copies = 1 if task.hot else max(2, min(MOST_COPIES, int(rotating / task.bytes) + 1))
    call, _ = measured.prepare(task, copies)
    return sampled(call, measured.synchronise, TASK_S, measured.clock)
