"""Questions on their way to an answer: who waits, who works, what is known already.

Answers come from processes of their own, so that the server stays quick, a question that takes too long can be
ended, and so can one whose asker has gone. Equal questions share one answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

from chipwise.api.requests.doors import Problem, problem_of, read_request, warm_names
from chipwise.errors import ChipwiseError
from chipwise.evidence.store import Store
from chipwise.values import dataclass
from chipwise.web.limits import RefusedError, ServerLimits
from chipwise.web.worker import CrashError, EndedError, Worker

LOG = logging.getLogger("chipwise.web")
GONE = 499  # as nginx has it: the asker closed the connection; nobody sees it


@dataclass(slots=True)
class _Flight:
    """A question that is being answered, how many wait for it, and what can be read of the answer before it is
    whole."""

    task: asyncio.Task[Any]
    known: asyncio.Future[Any]
    askers: int = 0

    def answer(self, *, early: bool) -> tuple[Any, bool]:
        """What is known, `early` its beginning too, and whether it is whole. Raises `RefusedError` where nothing is:
        the asker has gone."""
        if self.task.done():
            return _found(self.task.result()), True
        if early and self.known.done():
            return self.known.result(), False
        raise RefusedError(GONE, Problem("cancelled", "the asker has gone"))


class Jobs:
    """Answers the questions of one server within its limits. Start and stop it in the loop that asks."""

    def __init__(self, limits: ServerLimits | None = None) -> None:
        self.limits = limits or ServerLimits()
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        self._workers: set[Worker] = set()
        self._threads = ThreadPoolExecutor(self.limits.workers, "chipwise-worker")
        self._flights: dict[Any, _Flight] = {}
        self._known: OrderedDict[Any, Any] = OrderedDict()
        self._rests: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the workers; they get ready while the server does."""
        for _ in range(self.limits.workers):
            self._hire()
        await asyncio.to_thread(warm_names)

    async def stop(self) -> None:
        """End all work."""
        flights = [flight.task for flight in self._flights.values()]
        for task in flights:
            task.cancel()
        for worker in tuple(self._workers):
            self._dismiss(worker)
        await asyncio.gather(*flights, *self._rests, return_exceptions=True)
        self._threads.shutdown()

    async def answer(
        self,
        verb: str,
        given: Mapping[str, Any],
        gone: Callable[[], Awaitable[None]] | None = None,
        within_s: float | None = None,
    ) -> Any:
        """The answer to a question by the names of its fields, as a record; `gone()` ends when the asker has left.
        `within_s` stands for the usual patience of the server.

        Raises `RefusedError`: 404 for a verb that does not exist, 422 for what cannot be answered, 429 where too
        many ask, 503 where it takes too long.
        """
        try:
            # names are compared with all known ones: not in the loop
            request = await asyncio.to_thread(read_request, verb, given)
        except ChipwiseError as error:
            raise RefusedError(422, problem_of(error)) from None
        return await self.run(request, gone, within_s)

    async def run(
        self, request: Any, gone: Callable[[], Awaitable[None]] | None = None, within_s: float | None = None
    ) -> Any:
        """What something that answers itself says, as `answer` says it."""
        return (await self._shared(request, gone, within_s))[0]

    async def soon(self, request: Any, gone: Callable[[], Awaitable[None]] | None = None) -> tuple[Any, bool]:
        """The same as soon as it can be read, and whether it is whole: else whoever asks for the answer gets that,
        which is being worked out."""
        return await self._shared(request, gone, None, early=True)

    def _begun(self, request: Any, key: Any, wait_s: float, answer_s: float) -> _Flight:
        """The work on a question, where there is room for it. Raises `RefusedError`, 429."""
        if len(self._flights) >= self.limits.workers + self.limits.waiting:
            raise RefusedError(429, Problem("busy", "too many questions at once", "ask again soon"), 2)
        known: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        work = self._work(request, key, wait_s, answer_s, known)
        flight = _Flight(asyncio.create_task(work), known)
        flight.task.add_done_callback(lambda done: done.cancelled() or done.exception())
        flight.task.add_done_callback(lambda done: self._end((key, answer_s), done))
        return flight

    def _end(self, place: Any, task: asyncio.Task[Any]) -> None:
        """Nobody joins a question any more: at once where it is given up, which takes it a turn of the loop."""
        if place in self._flights and self._flights[place].task is task:
            del self._flights[place]

    async def _shared(
        self, request: Any, gone: Callable[[], Awaitable[None]] | None, within_s: float | None, *, early: bool = False
    ) -> tuple[Any, bool]:
        """An answer and whether it is whole."""
        key = (type(request), request, date.today(), _imported())
        if key in self._known:
            self._known.move_to_end(key)
            return _found(self._known[key]), True
        wait_s, answer_s = within_s or self.limits.wait_s, within_s or self.limits.answer_s
        place = (key, answer_s)
        flight = self._flights.get(place)
        if flight is None:
            flight = self._flights[place] = self._begun(request, key, wait_s, answer_s)
        flight.askers += 1
        waits: set[asyncio.Future[Any]] = {flight.task, flight.known} if early else {flight.task}
        left = asyncio.ensure_future(gone()) if gone is not None else None
        try:
            await asyncio.wait(waits | {left} if left else waits, return_when=asyncio.FIRST_COMPLETED)
            return flight.answer(early=early)
        finally:
            flight.askers -= 1
            # what somebody reads the beginning of is soon whole, and soon asked for
            if flight.askers == 0 and not flight.task.done() and not (early and flight.known.done()):
                self._end(place, flight.task)
                flight.task.cancel()
            if left is not None:
                left.cancel()

    async def _work(self, request: Any, key: Any, wait_s: float, answer_s: float, known: asyncio.Future[Any]) -> Any:
        try:
            async with asyncio.timeout(wait_s):
                worker = await self._free.get()
        except TimeoutError:
            problem = Problem("busy", "all workers are busy", "ask again soon")
            raise RefusedError(429, problem, 5) from None
        answer = await self._ask(worker, request, answer_s, known)
        if not isinstance(answer, str):  # pages are large
            self._known[key] = answer
        while len(self._known) > self.limits.kept_answers:
            self._known.popitem(last=False)
        return answer

    async def _ask(self, worker: Worker, request: Any, answer_s: float, known: asyncio.Future[Any]) -> Any:
        """One answer by one worker, which is free afterwards, or replaced where it had to be ended; `known` becomes
        what can be read of it before."""
        loop = asyncio.get_running_loop()

        def begun(record: Any) -> None:
            if not known.done():
                known.set_result(record)

        def early(record: Any) -> None:
            loop.call_soon_threadsafe(begun, record)

        asked = loop.run_in_executor(self._threads, worker.ask, request, early)
        try:
            answer = await asyncio.wait_for(asyncio.shield(asked), answer_s)
        except TimeoutError:
            self._replace(worker, asked)
            what = f"no answer within {answer_s:g} s"
            raise RefusedError(
                503, Problem("too-long", what, "ask for fewer chips or counts, or POST /v1/jobs"), 30
            ) from None
        except asyncio.CancelledError:
            rest = asyncio.create_task(self._let_finish(worker, asked))
            self._rests.add(rest)
            rest.add_done_callback(self._rests.discard)
            raise
        except CrashError as crash:
            LOG.error("%s: %s", type(request).__name__, crash)
            if isinstance(crash, EndedError):
                self._replace(worker, asked)
                problem = Problem("busy", "the process that worked on the answer has ended", "ask again")
                raise RefusedError(503, problem, 1) from None
            self._free.put_nowait(worker)
            raise RefusedError(500, Problem("bug", "chipwise failed on this question", "report it")) from None
        self._free.put_nowait(worker)
        return answer

    async def _let_finish(self, worker: Worker, asked: asyncio.Future[Any]) -> None:
        """An answer that nobody waits for: most are done sooner than a new worker would be up."""
        await asyncio.wait({asked}, timeout=self.limits.grace_s)
        if asked.done() and not asked.cancelled() and not isinstance(asked.exception(), EndedError):
            self._free.put_nowait(worker)
        else:
            self._replace(worker, asked)

    def _replace(self, worker: Worker, asked: asyncio.Future[Any]) -> None:
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        if worker in self._workers:  # not while all are being stopped
            self._dismiss(worker)
            self._hire()

    def _hire(self) -> None:
        worker = Worker()
        self._workers.add(worker)
        self._free.put_nowait(worker)

    def _dismiss(self, worker: Worker) -> None:
        self._workers.discard(worker)
        worker.stop()


def _found(answer: Any) -> Any:
    """An answer. Raises `RefusedError` for what is a problem instead."""
    if isinstance(answer, Problem):
        raise RefusedError(422, answer)
    return answer


def _imported() -> tuple[int, ...]:
    """Changes when the user's own evidence does."""
    store = Store().path
    return tuple(p.stat().st_mtime_ns for p in (store, store.with_name(f"{store.name}-wal")) if p.exists())
