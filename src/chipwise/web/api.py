"""POST /api/<verb>, GET /openapi.json, GET /healthz."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from chipwise.api.requests.doors import Problem, read_request
from chipwise.api.requests.verbs import FORMER, VERBS
from chipwise.api.requests.written import Origin
from chipwise.errors import nearest
from chipwise.report.table import to_json
from chipwise.web.jobs import Jobs
from chipwise.web.limits import RefusedError, read_object
from chipwise.web.openapi import openapi
from chipwise.web.problems import problem_response

__all__ = ["ask", "leaving", "on_http_error", "on_refusal", "routes", "written"]


async def ask(request: Request, verb: str, given: dict[str, object]) -> object:
    """The answer to a question as a record, given up when its asker leaves. Raises `RefusedError`."""
    jobs: Jobs = request.app.state.jobs
    return await jobs.answer(verb, given, leaving(request))


def leaving(request: Request) -> Callable[[], Awaitable[None]]:
    """What ends when the asker has left."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return left


async def written(request: Request, verb: str, given: dict[str, object]) -> str:
    """The answer to a question as JSON that carries the question, for launch, replay and diff. Raises
    `RefusedError`."""
    record = await ask(request, verb, given)
    asked = Origin(verb, await run_in_threadpool(read_request, verb, given))
    return to_json(record, None if verb == "launch" else asked.written())


async def _verb(request: Request) -> Response:
    verb = FORMER.get(request.path_params["verb"], request.path_params["verb"])
    if verb not in VERBS:
        near = nearest(verb, VERBS)
        raise RefusedError(404, Problem("unknown-name", "no such verb", f"one of {', '.join(VERBS)}", near))
    jobs: Jobs = request.app.state.jobs
    given = await read_object(request, jobs.limits)
    return Response(await written(request, verb, given), media_type="application/json")


async def _openapi(request: Request) -> Response:
    return JSONResponse(openapi())


async def _healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def on_refusal(request: Request, error: Exception) -> Response:
    """A refusal as a problem."""
    assert isinstance(error, RefusedError)
    return problem_response(error.status, error.problem, error.retry_s)


async def on_http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses, as a problem too: no such address, no such method."""
    assert isinstance(error, HTTPException)
    known = "/, /api/<verb>, /openapi.json, /healthz"
    hint = f"there are {known}" if error.status_code == 404 else ""
    answer = problem_response(error.status_code, Problem("refused", str(error.detail), hint))
    answer.headers.update(error.headers or {})
    return answer


def routes() -> list[Route]:
    """The API."""
    return [
        Route("/api/{verb}", _verb, methods=["POST"]),
        Route("/openapi.json", _openapi),
        Route("/healthz", _healthz),
    ]
