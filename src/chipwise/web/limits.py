"""How much one may ask for at once, and how long an answer may take."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from chipwise.api.requests.doors import Problem
from chipwise.errors import shorten
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What one server does at most. Times in seconds.

    `workers` questions are answered at once, `waiting` more wait for one of them; the rest is told to come back.
    An answer that nobody waits for any more has `grace_s` to be finished before its worker is replaced. `jobs` may be
    unfinished at once, each for `job_s`; what came of them is kept for `job_kept_s`, `job_chars` of all. A body that
    carries an answer has `record_bytes`.
    """

    workers: int = 2
    waiting: int = 64
    answer_s: float = 60.0
    wait_s: float = 60.0
    grace_s: float = 3.0
    body_bytes: int = 65_536
    record_bytes: int = 4_000_000
    body_s: float = 10.0
    target_bytes: int = 8_192
    kept_answers: int = 64
    jobs: int = 32
    job_s: float = 600.0
    job_kept_s: float = 900.0
    job_chars: int = 50_000_000


class RefusedError(Exception):
    """A question that gets no answer: a status of HTTP and the problem; `retry_s` where it may be asked again."""

    def __init__(self, status: int, problem: Problem, retry_s: int | None = None) -> None:
        super().__init__(str(problem))
        self.status = status
        self.problem = problem
        self.retry_s = retry_s


async def read_object(request: Request, most_bytes: int, within_s: float) -> dict[str, Any]:
    """The body of a request as one JSON object.

    Raises `RefusedError`: 415 for another type or a coding, 413 for a body that is too large, 408 for one that does not
    arrive, 400 for what is no JSON, 422 for JSON that is no object.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, Problem("unusable-value", "the body is no JSON", "Content-Type: application/json"))
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        what = f"a body in {shorten(coding, 20)} is not read"
        raise RefusedError(415, Problem("unusable-value", what, "send it without Content-Encoding"))
    try:
        body = await asyncio.wait_for(_body(request, most_bytes), within_s)
    except TimeoutError:
        raise RefusedError(408, Problem("unusable-value", "the body did not arrive in time")) from None
    except ClientDisconnect:
        raise RefusedError(400, Problem("unusable-value", "the body ended early")) from None
    try:
        given = json.loads(body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, json.JSONDecodeError | _TwiceError) else "not valid JSON"
        raise RefusedError(400, Problem("unusable-value", f"cannot read the body: {said}", "send JSON")) from None
    if not isinstance(given, dict):
        raise RefusedError(422, Problem("unusable-value", "the body is no object", "send {} with the fields"))
    return given


async def _body(request: Request, most: int) -> bytes:
    said = request.headers.get("content-length", "")
    parts: list[bytes] = []
    size = int(said) if said.isdecimal() and len(said) < 20 else 0
    if size <= most:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                break
            parts.append(part)
    if size > most:
        raise RefusedError(413, Problem("unusable-value", f"the body is too large, at most {most:,} bytes are read"))
    return b"".join(parts)


class _TwiceError(ValueError):
    """A key that occurs twice."""


def _no_number(word: str) -> None:
    raise _TwiceError(f"{word} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise _TwiceError("a key occurs twice")
    return table
