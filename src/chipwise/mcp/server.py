"""The server: lists tools and resources, answers calls in threads, says how long it has been at it."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
)

from chipwise import __version__
from chipwise.api.requests.doors import Problem, problem_of, read_request, warm_names
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError, shorten
from chipwise.mcp.resources import RESOURCES, TEMPLATES, read
from chipwise.mcp.tools import DETAILS, TOOLS, listed, shortened
from chipwise.report.table import to_json

__all__ = ["create_server"]

LOG = logging.getLogger("chipwise.mcp")

TICK_S = 1.0
MOST_S = 120.0
AT_ONCE = 2
"""Answers that are worked on at once; further ones wait."""

INSTRUCTIONS = (
    "chipwise plans hardware for deep learning: which chips, how many, arranged how, how fast, at what cost, and "
    "how it knows. Figures come as mid with low and high (80 % interval) and a basis: measured > published > "
    "calibrated > modelled. Plans inside each other's intervals are ties: do not present one as better. Before "
    "giving a benchmark as a reason call check_claim. Prices are dated list prices. Say what was assumed. Start "
    "with plan; ids of chips and models come from chips and models."
)


class _Calls:
    """The handlers of one server."""

    def __init__(self, *, files: bool) -> None:
        self.files = files
        self._limiter: anyio.CapacityLimiter | None = None

    async def tools(self, ctx: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(listed(files=self.files)))

    async def resources(self, ctx: Any, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=list(RESOURCES))

    async def templates(self, ctx: Any, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def resource(self, ctx: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        try:
            return await anyio.to_thread.run_sync(read, uri)
        except KeyError:
            known = ", ".join((*(str(r.uri) for r in RESOURCES), TEMPLATES[0].uri_template))
            said = f"unknown resource '{shorten(uri)}' (there are {known})"
        except ChipwiseError as error:
            said = str(problem_of(error))
        raise MCPError(code=INVALID_PARAMS, message=said, data={"uri": shorten(uri)})

    async def call(
        self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        given = dict(params.arguments or {})
        try:
            if params.name not in TOOLS:
                raise UnknownNameError("tool", params.name, TOOLS, f"one of {', '.join(TOOLS)}")
            details = given.pop(DETAILS, False)
            if not isinstance(details, bool):
                raise UsageError(f"{DETAILS}: cannot use {shorten(repr(details), 60)}", "true or false")
            answer = await self._answered(ctx, params.name, given, details)
        except ChipwiseError as error:
            return _refusal(problem_of(error))
        except TimeoutError:
            return _refusal(
                Problem("too-long", f"no answer within {MOST_S:g} s", "ask for fewer chips or counts")
            )
        except Exception:
            LOG.exception("tool %s failed", params.name)
            return _refusal(
                Problem("bug", "chipwise failed on this question", "a bug: report it; ask differently")
            )
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)

    async def _answered(
        self, ctx: ServerRequestContext[Any, Any], verb: str, given: Mapping[str, Any], details: bool
    ) -> dict[str, Any]:
        """The answer as JSON. Meanwhile the client hears every second that work goes on."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(AT_ONCE)
        work = partial(_work, verb, given, details, self.files)
        with anyio.fail_after(MOST_S):
            async with anyio.create_task_group() as group:
                group.start_soon(_tell, ctx, verb)
                try:
                    answer: Any = await anyio.to_thread.run_sync(
                        work, abandon_on_cancel=True, limiter=self._limiter
                    )
                finally:
                    group.cancel_scope.cancel()
        if isinstance(answer, ChipwiseError):
            raise answer
        return dict(answer)


def _work(verb: str, given: Mapping[str, Any], details: bool, files: bool) -> Any:
    """The answer as JSON, or the error: a task group would wrap one that is raised."""
    try:
        report = read_request(verb, given, files=files).run()
        return json.loads(to_json(shortened(verb, report, details=details)))
    except ChipwiseError as error:
        return error


async def _tell(ctx: ServerRequestContext[Any, Any], verb: str) -> None:
    began = time.monotonic()
    while True:
        await anyio.sleep(TICK_S)
        passed = time.monotonic() - began
        await ctx.session.report_progress(passed, None, f"{verb}: {math.floor(passed)} s")


def _refusal(problem: Problem) -> CallToolResult:
    """An error that the model reads: what is wrong, the next step, the nearest names, what could be reached."""
    lines = [problem.what]
    if problem.field:
        lines.append(f"field: {problem.field}")
    if problem.hint:
        lines.append(f"next: {problem.hint}")
    if problem.nearest:
        lines.append(f"nearest: {', '.join(problem.nearest)}")
    if problem.reasons:
        lines.append(
            f"candidates fell to: {', '.join(f'{why} ({n:,})' for why, n in problem.reasons.items())}"
        )
    if problem.reachable:
        lines.append(
            f"best that can be had: {', '.join(f'{k} {v:.3g}' for k, v in problem.reachable.items())}"
        )
    return CallToolResult(content=[TextContent(type="text", text="\n".join(lines))], is_error=True)


def create_server(*, files: bool = False) -> Server[Any]:
    """The server of the protocol, not yet on any transport. With `files` tools may read files of this machine."""
    warm_names()
    calls = _Calls(files=files)
    return Server(
        "chipwise",
        version=__version__,
        title="chipwise",
        instructions=INSTRUCTIONS,
        on_list_tools=calls.tools,
        on_call_tool=calls.call,
        on_list_resources=calls.resources,
        on_list_resource_templates=calls.templates,
        on_read_resource=calls.resource,
    )
