"""How cells of a sweep become rows: in this process, in processes of this machine, in tasks of a Ray cluster, or from
files that start it elsewhere.

A block is some numbers of cells. What a cell answers depends on nothing but the sweep, its day, the installed tables
and the user's files that it was started with, so rows are the same wherever they are made.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import hashlib
import json
import os
import pickle
import platform
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.api.requests.doors import problem_of, read_request
from chipwise.api.requests.field import count_of
from chipwise.api.requests.kinds import Request
from chipwise.api.requests.sweep import MOST_BYTES, SweepDesign, reached, read_sweep
from chipwise.catalog.files import data_dir, read_text
from chipwise.catalog.offer import own_table
from chipwise.catalog.snapshot import PACKAGE, Snapshot, own_bytes, use
from chipwise.errors import ChipwiseError, MissingExtraError, UnknownNameError, UsageError, shorten
from chipwise.evidence.store import KEPT, Store
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.spec import SweepSpec
from chipwise.report.launch.sweeping import DESIGN
from chipwise.report.launch.targets import SWEEPS, launch_files
from chipwise.values import dataclass

FACES = ("cli", "mcp", "web")
"""Folders of the package that no answer depends on."""
MOST_CARRIED = 64_000_000
"""Bytes of a user's file that goes to other processes with the sweep; of larger ones its size counts, and they are read
where the cell is answered."""
BLOCK_S = 2.0
"""Seconds that a block of cells should take."""
MOST_BLOCK = 2000
GARBAGE = 200_000
"""New objects after which some are looked through: more than most answers make."""

Engine = tuple[str, int | None, str | None]
"""What answers, by name; with how many processes of this machine; and at which address (None: as usual)."""
Block = tuple[int, ...]
Rows = tuple[list[str], float]
"""The rows of a block, in its order, and the seconds that they took."""


class LostError(Exception):
    """What answered a block has ended without an answer: killed, or out of memory."""


class BlockWork:
    """What blocks are of: all that their answers depend on. It travels as a value to the processes that answer."""

    data: str
    """The folder of the user's data, where its names begin."""

    def answered(self, block: Block) -> list[str]:
        """What each number of a block is answered, as text. Raises `UsageError` where another build of chipwise is
        installed than the work was started with."""
        raise NotImplementedError


def check_build(build: str) -> None:
    """Raises `UsageError` where another build of chipwise is installed than the one that work was started with."""
    if installed() != build:
        raise UsageError(
            f"{platform.node()} has another build of chipwise than this was started with",
            "install the same one on every machine",
        )


@dataclass(frozen=True, eq=False)
class SweepWork(BlockWork):
    """All that answers to the cells of a sweep depend on: its design, the day, the user's own files by name, and a
    digest of the program and its tables. `data` is the folder of the user's data, where its names begin."""

    design: SweepDesign
    day: dt.date
    files: Mapping[str, bytes]
    installed: str
    data: str = field(default_factory=lambda: str(data_dir()))
    stamp: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stamp", _digest(self.design.digest, self.sources, self.day.isoformat()))

    @cached_property
    def sources(self) -> str:
        """A digest of what answers are made of besides the question and the day."""
        own = [f"{name} {hashlib.sha256(self.files[name]).hexdigest()}" for name in sorted(self.files)]
        return _digest(self.installed, platform.python_version(), np.__version__, *own)

    def key(self, number: int) -> bytes:
        """The address of a cell by what it asks, and of what it is answered: cells that ask the same have one row."""
        asked = json.dumps(self.design.cell(number), sort_keys=True, default=str)
        said = f"{asked}\n{self._asked_of}"
        return hashlib.blake2b(said.encode(), digest_size=16).digest()

    @cached_property
    def _asked_of(self) -> str:
        return _digest(self.sources, self.day.isoformat(), self.design.verb, *self.design.columns)

    def answered(self, block: Block) -> list[str]:
        """The rows of some cells as JSON: `[values of the columns, kind of the problem, its words]`."""
        check_build(self.installed)
        if self.stamp not in _snapshots:
            _snapshots.clear()
            _snapshots[self.stamp] = Snapshot(self.files, self.day)
        with use(_snapshots[self.stamp]):
            return [_row(self.design, number) for number in block]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


@cache
def installed() -> str:
    """A digest of the program and its tables, but for what faces alone need."""
    whole = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE)
        if path.is_file() and "__pycache__" not in name.parts and name.parts[0] not in FACES:
            whole.update(f"{name.as_posix()} {path.stat().st_size}\n".encode())
            whole.update(path.read_bytes())
    return whole.hexdigest()[:32]


def own_files(requests: Iterable[Request]) -> dict[str, bytes]:
    """The user's files that answers to some questions read: those that fields name, a folder by the JSON in it, the
    user's evidence and prices."""
    found = {KEPT: "\n".join(Store().lines()).encode()}
    named = sorted({name for request in requests for name in _named_in(request)})
    for path in (own_table(), *(Path(name).expanduser() for name in named)):
        with contextlib.suppress(OSError, ValueError):
            for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
                size = file.stat().st_size
                small = size <= MOST_CARRIED
                found[str(file) if small else f"{file}#size"] = own_bytes(file) if small else str(size).encode()
    return found


def _named_in(request: Request) -> Iterator[str]:
    """What fields say that may name files: whole, and by commas."""
    for f in fields(request):  # type: ignore[arg-type]
        text = getattr(request, f.name) if f.metadata.get("file") else None
        if isinstance(text, str) and len(text) <= LONGEST_NAME:
            yield from {part.strip() for part in (text, *text.split(",")) if part.strip()}


LONGEST_NAME = 4096
"""Characters of a text that may name files."""


# one cell


_snapshots: dict[str, Snapshot] = {}
"""The facts of the sweep that this process works on: tables are read once, not once for each block."""


def _row(design: SweepDesign, number: int) -> str:
    values: list[Any] = []
    try:
        report = read_request(design.verb, design.cell(number), files=True).answer()
        values = [reached(report, column) for column in design.columns]
        failure = getattr(report, "failure", None)
        kind, words = ("", "") if failure is None else _problem(failure)
    except ChipwiseError as error:
        kind, words = _problem(error)
    except MemoryError:
        kind, words = "unusable-value", "the cell is too large to be answered"
    except Exception as error:
        kind, words = "bug", f"{type(error).__name__}: {shorten(str(error), 300)}"
    return json.dumps([values, kind, words], separators=(",", ":"))


def timed(work: BlockWork, block: Block) -> Rows:
    """The rows of a block, and the seconds that they took. Raises the errors of `answered`."""
    start = time.perf_counter()
    return work.answered(block), time.perf_counter() - start


def away(work: BlockWork, block: Block) -> Rows:
    """The same in a process that may be another user's on another machine: files of the user go by their names here."""
    os.environ["CHIPWISE_DATA_DIR"] = work.data
    return timed(work, block)


def lost_row() -> str:
    """The row of a cell whose process ended."""
    return json.dumps([[], "lost", "the process that answered it was killed, perhaps for want of memory"])


def _problem(error: ChipwiseError) -> tuple[str, str]:
    found = problem_of(error)
    return found.kind, shorten(str(found), 1000)


# engines


class SweepEngine:
    """What answers blocks, `width` at a time. A handle stands for a block that was started; here it is a future."""

    width = 1

    def start(self, block: Block) -> Any:
        """Begin to answer a block."""
        raise NotImplementedError

    def done(self, handles: Sequence[Any]) -> Sequence[Any]:
        """Those whose blocks are answered: at least one, so it waits."""
        return tuple(wait(handles, return_when=FIRST_COMPLETED).done)

    def rows(self, handle: Any) -> Rows:
        """The rows of an answered block. Raises `LostError` where there will be none, and the errors of `answered`."""
        found: Rows = handle.result()
        return found

    def close(self) -> None:
        """Give everything back; what is being answered is dropped."""


class AloneEngine(SweepEngine):
    """This process, a block after the other."""

    def __init__(self, work: BlockWork) -> None:
        self._work = work

    def start(self, block: Block) -> Any:
        """Answers it at once."""
        found: Future[Rows] = Future()
        found.set_result(timed(self._work, block))
        return found


class LocalEngine(SweepEngine):
    """Processes of this machine. Each is started when it is first needed, and anew where it was killed."""

    def __init__(self, work: BlockWork, workers: int) -> None:
        self.width = workers
        self._work = work
        self._threads = ThreadPoolExecutor(workers)  # a thread waits for each process
        self._idle: queue.SimpleQueue[_Process | None] = queue.SimpleQueue()
        self._started: list[_Process] = []
        self._closed = False
        for _ in range(workers):
            self._idle.put(None)

    def start(self, block: Block) -> Any:
        """Asks a process that is idle."""
        return self._threads.submit(self._ask, block)

    def _ask(self, block: Block) -> Rows:
        process = self._idle.get()
        try:
            if process is None:
                if self._closed:
                    raise LostError
                process = _Process(self._work)
                self._started.append(process)
            return process.ask(block)
        except LostError:
            process = None
            raise
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Ends the processes."""
        self._closed = True
        for process in self._started:
            process.stop()
        self._threads.shutdown(cancel_futures=True)
        for process in self._started:
            process.stop()


class _Process:
    """A process that answers blocks. It does not run the user's program again, as those of `multiprocessing` do."""

    def __init__(self, work: BlockWork) -> None:
        own = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)} | dict.fromkeys(ONE_THREAD, "1")
        command = [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"]
        pipe = subprocess.PIPE
        self._ran = subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**os.environ, **own})
        self._first: BlockWork | None = work

    def ask(self, block: Block) -> Rows:
        """The rows of a block. Raises `LostError` where the process ends before, and what `answered` raises."""
        asked, answers = self._ran.stdin, self._ran.stdout
        assert asked is not None
        assert answers is not None
        try:
            if self._first is not None:
                pickle.dump(self._first, asked)
                self._first = None
            pickle.dump(block, asked)
            asked.flush()
            found = pickle.load(answers)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.stop()
            raise LostError from None
        if isinstance(found, ChipwiseError):
            raise found
        rows: Rows = found
        return rows

    def stop(self) -> None:
        """End it."""
        self._ran.kill()
        self._ran.wait()
        for pipe in (self._ran.stdin, self._ran.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""What keeps a process that shares a machine with others on one core."""


def serve() -> None:
    """What a process of `LocalEngine` does: it reads the sweep and blocks of it, and writes rows, until it is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asks says when to end
    answers, asked = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
    os.dup2(2, 1)  # whatever is printed is no row
    gc.freeze()
    gc.set_threshold(GARBAGE)
    with contextlib.suppress(EOFError, BrokenPipeError):
        work = pickle.load(asked)
        while True:
            block = pickle.load(asked)
            try:
                found: Rows | ChipwiseError = away(work, block)
            except ChipwiseError as error:
                found = error
            pickle.dump(found, answers)
            answers.flush()


class RayEngine(SweepEngine):
    """Tasks of a Ray cluster: that at `address`, the one in use, or one that is started on this machine."""

    def __init__(self, work: BlockWork, address: str | None) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("work on Ray", "ray") from None
        self._ray, self._own = ray, not ray.is_initialized()
        if self._own:
            alone = {} if address else {"include_dashboard": False}
            try:
                ray.init(address=address, log_to_driver=False, logging_level="error", **alone)
            except (ConnectionError, ValueError, RuntimeError) as error:
                what = f"no Ray cluster answers at {address or 'this machine'}: {shorten(str(error), 200)}"
                raise UsageError(what, "--address auto, or ray://HOST:10001", field="address") from None
        self.width = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)  # while one is answered another waits
        self._work = ray.put(work)
        self._task = ray.remote(max_retries=RETRIES)(away)

    def start(self, block: Block) -> Any:
        """A task of the cluster."""
        return self._task.remote(self._work, block)

    def done(self, handles: Sequence[Any]) -> Sequence[Any]:
        """As Ray has it."""
        ready: Sequence[Any] = self._ray.wait([*handles], num_returns=1)[0]
        return ready

    def rows(self, handle: Any) -> Rows:
        """What the task returned."""
        try:
            found: Rows = self._ray.get(handle)
        except self._ray.exceptions.RayError as error:
            if isinstance(error, ChipwiseError):
                raise UsageError(error.what, error.hint) from None
            raise LostError from None
        return found

    def close(self) -> None:
        """Leaves the cluster."""
        if self._own:
            self._ray.shutdown()


RETRIES = 3
"""Times that Ray tries a block again whose process or machine went, before it is halved."""


def engine_of(work: BlockWork, on: str, workers: int | None, address: str | None) -> SweepEngine:
    """What a sweep runs on, by name. Raises `UsageError`, `UnknownNameError`, `MissingExtraError`."""
    if on not in ENGINES:
        raise UnknownNameError("engine", on, ENGINES)
    if on == "ray":
        if workers is not None:
            raise UsageError("--workers is of --on local", "Ray has the size of its cluster", field="workers")
        return RayEngine(work, address)
    if address is not None:
        raise UsageError("--address is of --on ray", "add --on ray", field="address")
    count = _cores() if workers is None else workers
    count_of(count, "--workers", "processes", MOST_WORKERS)
    return AloneEngine(work) if count == 1 else LocalEngine(work, count)


def _cores() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


ENGINES = ("local", "ray")
MOST_WORKERS = 1024


def flow(engine: SweepEngine, numbers: Iterator[int], cells: int) -> Iterator[tuple[Block, list[str]]]:
    """The rows of some cells of at most that many, a block at a time as they are done. Blocks take about `BLOCK_S`;
    one that is lost is halved until the cell alone is left that ends its process."""
    running: dict[Any, Block] = {}
    again: list[Block] = []
    pace, left = 0.0, cells

    def fill() -> None:
        nonlocal left
        while len(running) < engine.width:
            size = BLOCK_S / pace if pace else 1.0
            fair = left / (2 * engine.width)
            block = again.pop() if again else tuple(_first(numbers, max(1, int(min(size, fair, MOST_BLOCK)))))
            if not block:
                return
            left -= len(block)
            running[engine.start(block)] = block

    fill()
    while running:
        for handle in engine.done(tuple(running)):
            block = running.pop(handle)
            try:
                rows, seconds = engine.rows(handle)
            except LostError:
                if len(block) > 1:
                    again += [block[: len(block) // 2], block[len(block) // 2 :]]
                    left += len(block)
                    continue
                rows, seconds = [lost_row()], pace
            own = seconds / len(block)
            pace = 0.5 * (pace + own) if pace else own
            yield block, rows
        fill()


def _first(numbers: Iterator[int], count: int) -> Iterator[int]:
    for _ in range(count):
        number = next(numbers, None)
        if number is None:
            return
        yield number


MOST_TEXT = 900_000
"""bytes: of all files together. Chosen: below 1 MiB, the most that a ConfigMap holds."""


def launch_sweep(path: str, target: str) -> tuple[LaunchFile, ...]:
    """The files that start the sweep of a TOML file with a tool. Raises the errors of `read_sweep` and `launch_files`,
    and `UsageError` for no tool, and for files of the user that do not travel."""
    if not target:
        raise UsageError("no tool is named for the sweep", f"--for {' or '.join(SWEEPS)}", field="for")
    design = read_sweep(path)
    own = own_files(design.tried())
    left = [own.pop(name, b"") for name in (KEPT, str(own_table()))]
    files = [(DESIGN, read_text(Path(path), MOST_BYTES, "a sweep"))]
    for name, content in own.items():
        if Path(name).name != name or name == DESIGN:
            what = f"{shorten(name)}: a file in another folder does not travel with the sweep"
            raise UsageError(what, "put it where you start chipwise, under another name than sweep.toml")
        files.append((name, content.decode("utf-8", "replace")))
    if sum(len(text.encode()) for _, text in files) > MOST_TEXT:
        raise UsageError(f"{path} and the files that it names are too large", f"at most {MOST_TEXT:,} bytes together")
    spec = SweepSpec(
        f"a sweep: {design.verb}, {design.cells:,} cells",
        design.cells,
        tuple((name, tuple(text.expandtabs().strip().splitlines())) for name, text in files),
        ("your own evidence and prices stay here",) if any(left) else (),
    )
    return launch_files(spec, target)
