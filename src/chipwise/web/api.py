"""POST /v1/<verb>, /v1/jobs for long answers, GET /v1/openapi.json, GET /healthz.

`/api/<verb>` and `/openapi.json`, the addresses before there was a version, are answered alike and name their
successor.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from functools import cache
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from chipwise.api.python import FIRST
from chipwise.api.requests.doors import Problem, problem_of, read_request
from chipwise.api.requests.kept import RECORD
from chipwise.api.requests.kinds import FORMER
from chipwise.api.requests.verbs import VERBS
from chipwise.api.requests.written import Origin
from chipwise.errors import ChipwiseError, nearest, shorten
from chipwise.report.table import to_json
from chipwise.web.jobs import Jobs
from chipwise.web.limits import RefusedError, ServerLimits, read_object
from chipwise.web.openapi import openapi
from chipwise.web.problems import problem_of_refusal, problem_response
from chipwise.web.security import FOREIGN
from chipwise.web.submitted import Submitted, question_of

RECORDS = tuple(
    verb
    for verb, kind in VERBS.items()
    if any(f.metadata.get("reading") is RECORD for f in fields(kind))  # type: ignore[arg-type]
)
"""Verbs whose questions carry an answer, and so may be large."""


async def ask(request: Request, verb: str, given: dict[str, object]) -> object:
    """The answer to a question as a record, given up when its asker leaves. Raises `RefusedError`."""
    _refuse_foreign(request)
    jobs: Jobs = request.app.state.jobs
    return await jobs.answer(verb, given, _leaving(request))


async def run(request: Request, asked: object) -> object:
    """The same of something that answers itself."""
    _refuse_foreign(request)
    jobs: Jobs = request.app.state.jobs
    return await jobs.run(asked, _leaving(request))


async def soon(request: Request, asked: object) -> tuple[object, bool]:
    """The same as soon as it can be read, and whether that is all of it."""
    _refuse_foreign(request)
    jobs: Jobs = request.app.state.jobs
    return await jobs.soon(asked, _leaving(request))


def _refuse_foreign(request: Request) -> None:
    """Raises `RefusedError` where a page of another site led here: it starts no work."""
    if request.scope.get(FOREIGN):
        hint = "open the page, or ask without a browser"
        raise RefusedError(403, Problem("refused", "a link of another site starts no work", hint))


def _leaving(request: Request) -> Callable[[], Awaitable[None]]:
    """What ends when the asker has left."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return left


async def written(request: Request, verb: str, given: dict[str, object]) -> str:
    """The answer to a question as JSON that carries the question, for launch, replay and diff. Raises
    `RefusedError`."""
    record = await ask(request, verb, given)
    return await run_in_threadpool(_with_question, verb, given, record)


def _with_question(verb: str, given: dict[str, object], record: object) -> str:
    if verb in RECORDS:
        return to_json(record)
    return to_json(record, Origin(verb, read_request(verb, given)).written())


async def _verb(request: Request) -> Response:
    verb = _known(request.path_params["verb"])
    limits: ServerLimits = request.app.state.jobs.limits
    most = limits.record_bytes if verb in RECORDS else limits.body_bytes
    given = await read_object(request, most, limits.body_s)
    text = await written(request, verb, given)
    return Response(text, media_type="application/json", headers=_successor(request, f"/v1/{verb}"))


def _known(verb: str) -> str:
    """A verb by its name or a former one. Raises `RefusedError` (404) for any other."""
    verb = FORMER.get(verb, verb)
    if verb not in VERBS:
        raise _unknown(verb)
    return verb


def _unknown(verb: str) -> RefusedError:
    """The refusal of a verb that there is not."""
    near = nearest(verb, VERBS)
    hint = f"did you mean {', '.join(near)}?" if near else f"one of {', '.join(VERBS)}"
    return RefusedError(404, Problem("unknown-name", f"unknown verb '{shorten(verb)}'", hint, near))


def _successor(request: Request, address: str) -> dict[str, str]:
    """What an answer at an address without a version says of the one that has it (RFC 9745, RFC 8288)."""
    if request.url.path.startswith("/v1/"):
        return {}
    return {"deprecation": UNVERSIONED, "link": f'<{address}>; rel="successor-version"'}


UNVERSIONED = "@1764547200"
"""Since when addresses without a version are the former ones, in seconds of 1970."""


AGAIN = {"retry-after": "1"}
"""When to ask again how far a job is."""


async def _submit(request: Request) -> Response:
    """A question that is left with the server: 202 and where to ask for it."""
    jobs, submitted = request.app.state.jobs, request.app.state.submitted
    limits: ServerLimits = jobs.limits
    said, given = question_of(await read_object(request, limits.record_bytes, limits.body_s))
    verb = _known(said)
    try:
        await run_in_threadpool(read_request, verb, given)
    except ChipwiseError as error:
        problem = problem_of(error)
        within = f"request/{problem.field}" if problem.field else "request"
        raise RefusedError(422, replace(problem, field=within)) from None

    async def answer() -> str:
        record = await jobs.answer(verb, given, within_s=limits.job_s)
        return await run_in_threadpool(_with_question, verb, given, record)

    job = submitted.submit(verb, answer)
    return JSONResponse(job.told(), 202, {"location": job.told()["self"], **AGAIN})


async def _job(request: Request) -> Response:
    """How far a job is, of one that failed with what was wrong; DELETE ends it."""
    submitted: Submitted = request.app.state.submitted
    job = submitted.find(request.path_params["job"])
    if request.method == "DELETE":
        submitted.cancel(job)
    said = job.told()
    if job.refused is not None:
        said["problem"] = problem_of_refusal(job.refused.status, job.refused.problem)
    return JSONResponse(said, headers={} if job.ended_s is not None else AGAIN)


async def _result(request: Request) -> Response:
    """What came of a job: its answer, or why there is none."""
    submitted: Submitted = request.app.state.submitted
    job = submitted.find(request.path_params["job"])
    if job.refused is not None:
        raise job.refused
    if job.state == "cancelled":
        raise RefusedError(409, Problem("cancelled", "the job was ended", "submit it again"))
    if job.state != "done":
        raise RefusedError(409, Problem("busy", f"the job is {job.state}", f"GET {job.told()['self']}"), 1)
    return Response(job.text, media_type="application/json")


@cache
def _description() -> str:
    return json.dumps(openapi(), separators=(",", ":"))


async def _openapi(request: Request) -> Response:
    text = await run_in_threadpool(_description)
    return Response(text, media_type="application/json", headers=_successor(request, "/v1/openapi.json"))


async def _healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def on_refusal(request: Request, error: Exception) -> Response:
    """A refusal as a problem."""
    assert isinstance(error, RefusedError)
    return problem_response(error.status, error.problem, error.retry_s)


async def on_http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses, as a problem too: no such address, no such method. OPTIONS is told the methods."""
    assert isinstance(error, HTTPException)
    path, allowed = request.url.path, (error.headers or {}).get("Allow", "")
    what, hint = str(error.detail), ""
    if error.status_code == 404:
        what = f"nothing is at {shorten(path, 60)}"
        hint = _instead(path) or "the page is /, the HTTP API is described at /v1/docs and /v1/openapi.json"
    elif error.status_code == 405:
        name = path.rpartition("/")[2]
        if allowed == "POST" and name not in ("jobs", *VERBS, *FORMER):
            return await on_refusal(request, _unknown(name))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"allow": f"{allowed}, OPTIONS"})
        what = f"{request.method} is not taken at {shorten(path, 60)}"
        hint = f"use {' or '.join(sorted(allowed.split(', ')))}"
        if allowed == "POST" and name != "jobs":
            hint = f"POST the fields as JSON, or GET /{name}.json with them in the address"
    answer = problem_response(error.status_code, Problem("refused", what, hint))
    answer.headers.update(error.headers or {})
    return answer


def _instead(path: str) -> str:
    """Where the verb of an address answers, as of `/estimate` or `/v1/chips/h100`; "" where it names none."""
    verb, *rest = [*(part for part in path.split("/") if part not in ("", "v1", "api")), ""]
    verb = FORMER.get(verb, verb)
    if verb not in VERBS:
        return ""
    field = next((n for n in FIRST if n in {f.name for f in fields(VERBS[verb])}), "")  # type: ignore[arg-type]
    said = f"?{urlencode({field: rest[0]})}" if rest[0] and field else ""
    return f"POST /v1/{verb} with the fields as JSON, or GET /{verb}.json{said or ' with them in the address'}"


def routes() -> list[Route]:
    """The API."""
    return [
        Route("/v1/openapi.json", _openapi),
        Route("/v1/jobs", _submit, methods=["POST"]),
        Route("/v1/jobs/{job}", _job, methods=["GET", "DELETE"]),
        Route("/v1/jobs/{job}/result", _result),
        Route("/v1/{verb}", _verb, methods=["POST"]),
        Route("/api/{verb}", _verb, methods=["POST"]),
        Route("/openapi.json", _openapi),
        Route("/healthz", _healthz),
    ]
