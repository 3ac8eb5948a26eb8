"""Long answers: a question that is left with the server, asked how far it is, ended or fetched.

What is left takes at most all workers but one, so that short questions are answered meanwhile; how many are kept, for
how long and how large is bounded. Whoever has the number of a job, which nobody can guess, may fetch it.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from chipwise.api.requests.doors import Problem
from chipwise.values import dataclass
from chipwise.web.limits import RefusedError, ServerLimits

LOG = logging.getLogger("chipwise.web")
State = Literal["waiting", "working", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("done", "failed", "cancelled")


@dataclass(slots=True, eq=False)
class SubmittedJob:
    """A question that was left: its number, when, how far, and what came of it."""

    id: str
    verb: str
    submitted: dt.datetime
    state: State = "waiting"
    began_s: float = field(default_factory=time.monotonic)
    ended_s: float | None = None
    text: str = ""
    refused: RefusedError | None = None
    task: asyncio.Task[None] | None = None

    def told(self) -> dict[str, Any]:
        """How far it is, as JSON says it."""
        here = f"/v1/jobs/{self.id}"
        passed = (self.ended_s or time.monotonic()) - self.began_s
        found = {
            "id": self.id,
            "verb": self.verb,
            "state": self.state,
            "submitted": self.submitted.isoformat(timespec="seconds"),
            "passed_s": round(passed, 1),
            "self": here,
        }
        return found | ({"result": f"{here}/result"} if self.state == "done" else {})


class Submitted:
    """The jobs of one server. Ask from the loop that serves."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self._jobs: OrderedDict[str, SubmittedJob] = OrderedDict()
        self._room = asyncio.Semaphore(max(1, limits.workers - 1))

    def submit(self, verb: str, answer: Callable[[], Awaitable[str]]) -> SubmittedJob:
        """A job whose `answer` is worked out from now on. Raises `RefusedError` (429) where too many are unfinished."""
        self._sweep()
        if sum(job.state not in ENDED for job in self._jobs.values()) >= self.limits.jobs:
            raise RefusedError(429, Problem("busy", "too many jobs are unfinished", "end one, or come back"), 30)
        job = SubmittedJob(secrets.token_hex(16), verb, dt.datetime.now(dt.UTC))
        self._jobs[job.id] = job
        job.task = asyncio.create_task(self._work(job, answer))
        return job

    def find(self, number: str) -> SubmittedJob:
        """A job by its number. Raises `RefusedError` (404) for one that there is not, or no longer."""
        self._sweep()
        if number not in self._jobs:
            kept = f"jobs are kept for {self.limits.job_kept_s / 60:g} minutes after they end"
            raise RefusedError(404, Problem("unknown-name", "no such job", kept))
        return self._jobs[number]

    def cancel(self, job: SubmittedJob) -> None:
        """End a job; nothing happens to one that has ended."""
        if job.state not in ENDED:
            self._end(job, "cancelled")
            if job.task is not None:
                job.task.cancel()

    async def stop(self) -> None:
        """End all work."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for job in self._jobs.values():
            self.cancel(job)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, job: SubmittedJob, answer: Callable[[], Awaitable[str]]) -> None:
        try:
            async with self._room:
                job.state = "working"
                job.text = await answer()
            self._end(job, "done")
        except RefusedError as error:
            job.refused = error
            self._end(job, "failed")
        except Exception:
            LOG.exception("job %s failed", job.verb)
            job.refused = RefusedError(500, Problem("bug", "chipwise failed on this question", "report it"))
            self._end(job, "failed")

    def _end(self, job: SubmittedJob, state: State) -> None:
        job.state, job.ended_s = state, time.monotonic()
        self._sweep()

    def _sweep(self) -> None:
        """What ended long ago goes, and the oldest of the rest until it is few and small enough."""
        until = time.monotonic() - self.limits.job_kept_s
        ended = [job for job in self._jobs.values() if job.ended_s is not None]
        while ended and (
            (ended[0].ended_s or 0.0) < until
            or len(ended) > self.limits.jobs
            or sum(len(job.text) for job in ended) > self.limits.job_chars
        ):
            del self._jobs[ended.pop(0).id]


def question_of(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The verb and the fields of a body `{"verb": ..., "request": {...}}`. Raises `RefusedError` (422) for another."""
    verb, request = given.get("verb"), given.get("request", {})
    strange = next((name for name in given if name not in ("verb", "request")), "")
    wrong = strange or ("" if isinstance(verb, str) else "verb") or ("" if isinstance(request, dict) else "request")
    if wrong:
        hint = '{"verb": "train", "request": {"model": ...}}'
        raise RefusedError(422, Problem("unusable-value", f"cannot use {wrong!r} of a job", hint, field=wrong))
    return str(verb), dict(request)
