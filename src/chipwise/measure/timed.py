"""A machine as it was measured: what it is, every time that was taken, and the few numbers that these give.

    t(op) = t_rates(op) exp(k^T (K + noise I)^-1 r),   r_i = log(timed_i / t_rates(task_i)),
    k_i = exp(-|log2 of the ratio of their sizes|_1), K the same among what was timed

Rates carry to shapes that were never timed; what they miss is mostly one factor for shapes alike (which kernel, how it
blocks), so that the times next to a shape move it, as measured deployments move their neighbours (`anchors.kriged`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import combinations

import numpy as np

from chipwise.cost.probed import Probed, ProbedRates, group_of, probed_time, terms
from chipwise.errors import CommandText, Sentence, UsageError
from chipwise.evidence.anchors import kriged
from chipwise.measure.protocol import Timing
from chipwise.measure.task import SIZES, Task
from chipwise.units import Array, scalar
from chipwise.values import dataclass
from chipwise.workload.op import Op

NOISE = 0.16
"""Of residuals, within shapes alike over between them: chosen on the tasks held out."""
TILES = (0.0, 64.0, 128.0, 256.0, 512.0, float("inf"))
"""Of masked attention: what fused kernels take, and all, where scores are not skipped."""
CACHES = tuple(2.0**power for power in range(18, 28))
"""Of work on rows: bytes that caches may hold, 256 KiB to 128 MiB."""
ROUNDS = 8
WORDS = ("backend", "software", "device", "chip", "date", "like")


UNFINISHED = "the probe did not end: what was timed by then is used"
"""Note of a machine that is kept while its probe runs."""


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A task and its time."""

    task: Task
    timing: Timing


@dataclass(frozen=True)
class TimedMachine:
    """What was timed on a device under a framework, by so many `threads` (of a CPU), and when. `notes` say what was
    odd: a machine that slowed down, tasks that it could not run. `like` is the chip of the catalogue that it is, or is
    next to ("": nobody could say), `memory_bytes` what it has (0: not told)."""

    backend: str
    software: str
    device: str
    chip: str
    threads: int
    date: str
    timed: tuple[TimedTask, ...]
    notes: tuple[str, ...] = ()
    like: str = ""
    memory_bytes: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether the probe came to its end: what was kept of one that was killed is part of it."""
        return UNFINISHED not in self.notes

    @property
    def place(self) -> tuple[str, str, str, int]:
        """What was timed: probes of one place stand for each other."""
        return self.backend, self.device, self.chip, self.threads

    @cached_property
    def numbers(self) -> Probed:
        """The rates, fitted. Raises `UsageError` where too little was timed."""
        return fit(self.timed)

    @cached_property
    def _known(self) -> Mapping[str, tuple[Array, Array]]:
        """By group the sizes [task, size], as logarithms, and residuals of what was timed."""
        found: dict[str, list[tuple[Array, float]]] = {}
        for t in self.timed:
            if t.task.kind not in ("copy", "rows"):
                residual = float(np.log(t.timing.seconds / probed_time(t.task.op, self.numbers).total_s))
                found.setdefault(group_of(t.task.op), []).append((_sizes(t.task.op), residual))
        return {
            group: (np.array([s for s, _ in rows]), np.array([r for _, r in rows])) for group, rows in found.items()
        }

    def spread(self, op: Op) -> float:
        """Standard deviation of log(timed / predicted) of tasks of an operator's group, each left out in turn."""
        sizes, residuals = self._known[group_of(op)]
        inverse = np.linalg.inv(_alike(sizes, sizes) + NOISE * np.eye(len(residuals)))
        return float(np.sqrt(np.mean((inverse @ residuals / np.diag(inverse)) ** 2)))

    def count(self, op: Op) -> int:
        """How many tasks of an operator's group were timed."""
        return len(self._known[group_of(op)][1]) if group_of(op) in self._known else 0

    def seconds(self, op: Op) -> float:
        """What an operator takes here. Raises `UsageError` for a kind and type that was not timed."""
        plain = scalar(probed_time(op, self.numbers).total_s)
        sizes, residuals = self._known.get(group_of(op), (np.zeros((0, 0)), np.zeros(0)))
        if not len(residuals):
            return plain
        worth = _alike(sizes, _sizes(op)[None])[:, 0]
        return plain * float(np.exp(kriged(worth, _alike(sizes, sizes), NOISE) @ residuals))

    def to_json(self) -> str:
        """The machine as one line of JSON."""
        head = {n: getattr(self, n) for n in (*WORDS, "threads", "notes", "memory_bytes")}
        rows = [[t.task.kind, t.task.dtype, list(t.task.sizes), *asdict(t.timing).values()] for t in self.timed]
        return json.dumps({"machine": 1, **head, "timed": rows}, separators=(",", ":"))


def machine_of(text: str) -> TimedMachine:
    """The machine of a line of JSON. Raises `UsageError` for another text."""
    try:
        data = json.loads(text)
        rows = [
            TimedTask(
                Task(kind, str(dtype), tuple(map(int, sizes))),
                Timing(float(seconds), float(median), float(spread), int(samples)),
            )
            for kind, dtype, sizes, seconds, median, spread, samples in data["timed"]
        ]
        if data["machine"] != 1 or any(len(t.task.sizes) != len(SIZES[t.task.kind]) for t in rows):
            raise ValueError("of another version")
        head = {n: str(data.get(n, "") if n == "like" else data[n]) for n in WORDS}
        memory = float(data.get("memory_bytes", 0.0))
        return TimedMachine(
            **head, threads=int(data["threads"]), timed=tuple(rows), notes=tuple(data["notes"]), memory_bytes=memory
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"not a machine that was measured: {error}", Sentence(CommandText("measure probe --out FILE"))
        ) from None


def fit(timed: Sequence[TimedTask]) -> Probed:
    """The numbers that come nearest to all times by their logarithms. Raises `UsageError` for too few copies."""
    groups: dict[str, list[TimedTask]] = {}
    for t in timed:
        groups.setdefault("copy" if t.task.kind == "copy" else group_of(t.task.op), []).append(t)
    copies = groups.pop("copy", [])
    if len(copies) < 4:
        raise UsageError("too little was timed to say anything of this machine", "a larger --budget, as in 60s")
    speed = {t.task.sizes: t.task.bytes / t.timing.seconds for t in copies}
    largest = sorted(t.task.bytes for t in copies if not t.task.hot)[-3:]
    stream = float(np.median([speed[t.task.sizes] for t in copies if not t.task.hot and t.task.bytes in largest]))
    hot = {t.task.bytes: speed[t.task.sizes] for t in copies if t.task.hot}
    fastest = max([*hot.values(), stream])
    held = [size for size, rate in hot.items() if rate >= np.sqrt(fastest * stream)]
    return Probed(
        rates={name: _rates(rows) for name, rows in groups.items()},
        stream_bytes_per_s=stream,
        cache_bytes_per_s=fastest,
        cache_bytes=max(held, default=min(t.task.bytes for t in copies)),
        copy_s=min(t.timing.seconds for t in copies),
    )


def _rates(rows: Sequence[TimedTask]) -> ProbedRates:
    """The rates of one group, with the tile of masked scores or the size of the caches that fits best."""
    seconds = np.array([t.timing.seconds for t in rows])
    masked = any(t.task.kind == "attention" and t.task.dims["causal"] for t in rows)
    best: tuple[float, ProbedRates] | None = None
    for scale in TILES if masked else CACHES if rows[0].task.kind == "rows" else (0.0,):
        columns = np.array([[1.0, *map(float, terms(t.task.op, scale))] for t in rows])
        found = _least(columns, seconds)
        off = float(np.mean(np.abs(np.log(columns @ found / seconds))))
        if best is None or off < best[0]:
            best = off, ProbedRates(float(found[0]), float(found[1]), float(found[2]), float(found[3]), scale)
    assert best is not None
    return best[1]


def _least(columns: Array, seconds: Array) -> Array:
    """x >= 0 that brings `columns` x nearest to `seconds`, by their logarithms: least squares weighted with
    1 / sqrt(fitted x timed), again and again, over every choice of columns."""
    weights = 1.0 / seconds
    found = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        found = _not_negative(columns * weights[:, None], seconds * weights)
        weights = 1.0 / np.sqrt((columns @ found) * seconds)
    return found


def _not_negative(a: Array, b: Array) -> Array:
    """Least squares a x = b with x >= 0, of few columns: the best of all subsets whose solution is positive."""
    best, least = np.zeros(a.shape[1]), np.inf
    for count in range(1, a.shape[1] + 1):
        for chosen in map(list, combinations(range(a.shape[1]), count)):
            if not np.any(a[:, chosen], axis=0).all():
                continue
            x = np.linalg.lstsq(a[:, chosen], b, rcond=None)[0]
            error = float(np.sum((a[:, chosen] @ x - b) ** 2))
            if (x > 0.0).all() and error < least * (1.0 - 1e-9):
                best, least = np.zeros(a.shape[1]), error
                best[chosen] = x
    return best


def _alike(some: Array, others: Array) -> Array:
    """exp(-distance) [some, others] of logarithms of sizes."""
    return np.asarray(np.exp(-np.abs(some[:, None] - others).sum(axis=2)))


def _sizes(op: Op) -> Array:
    """Logarithms to base 2 of what tells shapes of a group apart."""
    d = op.dims
    names = {"attention": ("q", "kv", "head_dim"), "conv": ("m", "n", "k", "batch", "kernel", "strides")}
    sizes = [scalar(d[name]) for name in names.get(op.kind, ("m", "n", "k", "batch"))]
    if op.kind == "attention":
        sizes += [scalar(d["batch"] * d["heads"]), 2.0 ** scalar(d.get("causal", 1.0))]
    return np.asarray(np.log2(sizes))
