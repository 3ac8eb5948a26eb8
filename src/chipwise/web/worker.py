"""A process that answers one question at a time, and that can be stopped in the middle of one."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chipwise.api.requests.doors import Problem, problem_of
from chipwise.errors import ChipwiseError
from chipwise.values import dataclass

GARBAGE = 200_000
"""New objects after which some are looked through: more than most answers make."""


class CrashError(Exception):
    """The worker met an error that nobody foresaw; the text is for the log, not for the asker."""


class EndedError(CrashError):
    """The worker has ended: another one is needed."""


@dataclass(frozen=True, slots=True)
class Known:
    """What can be read of an answer while the rest of it is worked out."""

    record: Any


class Worker:
    """A process beside this one. `ask` blocks; `stop` may be called from another thread meanwhile."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()

    @property
    def pid(self) -> int | None:
        """The id of the process."""
        return self._process.pid

    def ask(self, request: Any, known: Callable[[Any], None] | None = None) -> Any:
        """The answer as a record, or a `Problem`; `known` is called with what can be read of it before. Raises
        `CrashError` where there is neither, `EndedError` where there will be no more."""
        try:
            self._pipe.send(request)
            while isinstance(answer := self._pipe.recv(), Known):
                if known is not None:
                    known(answer.record)
        except (EOFError, OSError) as error:
            raise EndedError(f"the worker has ended ({error or 'no answer'})") from None
        if isinstance(answer, CrashError):
            raise answer
        return answer

    def stop(self) -> None:
        """End the process; whoever waits for its answer gets an `EndedError`."""
        self._process.kill()
        self._process.join()  # the pipe is left to whoever still reads from it


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server says when to end
    _warm()
    _allow_reading()
    gc.freeze()  # modules and tables stay
    gc.set_threshold(GARBAGE)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_answer(pipe.recv(), lambda record: pipe.send(Known(record))))


def _answer(request: Any, known: Callable[[Any], None]) -> Any:
    try:
        parts = request.answers()
        while True:
            known(next(parts))
    except StopIteration as whole:
        return whole.value
    except ChipwiseError as error:
        return problem_of(error)
    except MemoryError:
        return Problem("unusable-value", "the question is too large to be answered", "narrow it")
    except Exception as error:
        return CrashError(f"{type(error).__name__}: {error}")


def _warm() -> None:
    """Import and read what answers need, so that the first asker does not wait for it."""
    from chipwise import api
    from chipwise.calibrate.parameters import shipped_parameters
    from chipwise.catalog.chips import load_chips
    from chipwise.catalog.configs import bundled_configs
    from chipwise.catalog.offer import load_offers

    for load in (shipped_parameters, load_chips, bundled_configs, load_offers):
        load()
    with contextlib.suppress(ChipwiseError):
        api.load(next(iter(bundled_configs())))


def _allow_reading() -> None:
    """From here on this process reads its own code and tables, and the user's evidence: no request can make it
    open anything else, or write."""
    from chipwise.catalog.files import data_dir

    own = [Path(__file__).parents[1], Path(sys.prefix), Path(sys.base_prefix), data_dir()]
    code = [Path(p) for p in sys.path if p and Path(p).resolve() != Path.cwd()]
    allowed = tuple(f"{root.resolve()}{os.sep}" for root in (*own, *code))
    store = str(data_dir())

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            writes = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR)) if arguments[2] else False
            if writes or not path.startswith(allowed):
                raise PermissionError(f"a request does not open {path}")
        elif event == "sqlite3.connect" and not str(arguments[0]).removeprefix("file:").startswith(store):
            raise PermissionError("a request opens no other store")

    sys.addaudithook(hook)
