"""The server: lists tools and resources, answers calls in threads, says how long it has been at it."""

from __future__ import annotations

import ctypes
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
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
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceLink,
    TextContent,
)

from chipwise import __version__
from chipwise.api.requests.doors import Mending, Problem, mending, problem_of, read_request, warm_names
from chipwise.api.requests.kinds import FORMER, TRAINED
from chipwise.api.requests.written import Origin
from chipwise.errors import ChipwiseError, InfeasibleError, UnknownNameError, UsageError, shorten
from chipwise.mcp.resources import RESOURCES, TEMPLATES, KeptAnswers, completed, listed_prompts, prompted, read
from chipwise.mcp.tools import TOOLS, listed, shortened
from chipwise.report.fit import FitRecord
from chipwise.report.table import to_json
from chipwise.values import dataclass

LOG = logging.getLogger("chipwise.mcp")

TICK_S = 1.0
MOST_S = 120.0
MOST_NAMES = 100
RECORDS = ("saved", "before", "after")
"""Fields that take an answer, or the address of one."""
AT_ONCE = 2
"""Answers that are worked on at once; further ones wait."""

INSTRUCTIONS = (
    "chipwise plans hardware for deep learning: which chips, how many, arranged how, how fast, at what cost, and "
    "how it knows. Figures come as mid with low and high (80 % interval) and a basis: measured > published > "
    "calibrated > modelled. Plans inside each other's intervals are ties: do not present one as better. Before "
    "giving a benchmark as a reason call claim, before repeating what people say of chips check_statement. "
    "`whole_answer` is the address of an answer in full, which launch and replay take as `saved`, diff as `before` "
    "and `after`. Prices are dated list prices. Say what was assumed. Start with plan; ids of chips and models come "
    "from chips and models."
)


class _Calls:
    """The handlers of one server."""

    def __init__(self, *, files: bool) -> None:
        self.files = files
        self.kept = KeptAnswers()
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
            return await anyio.to_thread.run_sync(read, uri, self.kept)
        except KeyError:
            if told := self.kept.why(uri):
                raise MCPError(code=INVALID_PARAMS, message=told, data={"uri": shorten(uri)}) from None
            known = ", ".join((*(str(r.uri) for r in RESOURCES), *(t.uri_template for t in TEMPLATES)))
            said = f"unknown resource '{shorten(uri)}' (there are {known})"
        except ChipwiseError as error:
            said = str(problem_of(error))
        raise MCPError(code=INVALID_PARAMS, message=said, data={"uri": shorten(uri)})

    async def prompts(self, ctx: Any, params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=listed_prompts())

    async def prompt(self, ctx: Any, params: GetPromptRequestParams) -> GetPromptResult:
        try:
            return prompted(params.name, params.arguments or {})
        except ChipwiseError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(problem_of(error))) from None

    async def complete(self, ctx: Any, params: CompleteRequestParams) -> CompleteResult:
        found = await anyio.to_thread.run_sync(completed, params.argument.name, params.argument.value[:200])
        shown = list(found[:MOST_NAMES])
        return CompleteResult(completion=Completion(values=shown, total=len(found), has_more=len(found) > len(shown)))

    async def call(self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        given = dict(params.arguments or {})
        try:
            verb = FORMER.get(params.name, params.name)
            if verb == "plan" and given.get("task") in TRAINED:
                verb = "train"  # as the command line has it
            if verb not in TOOLS:
                raise UnknownNameError("tool", params.name, TOOLS, f"one of {', '.join(TOOLS)}")
            if "details" in given:
                said = "an answer names the address of the whole, `whole_answer`: read it there, plan by plan"
                raise UsageError("details are no field", said, field="details")
            given = self._with_records(verb, given)
            answer = await self._answered(ctx, verb, given)
        except ChipwiseError as error:
            return _refusal(problem_of(error))
        except TimeoutError:
            return _refusal(Problem("too-long", f"no answer within {MOST_S:g} s", "ask for fewer chips or counts"))
        except Exception:
            LOG.exception("tool %s failed", params.name)
            return _refusal(Problem("bug", "chipwise failed on this question", "a bug: report it; ask differently"))
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        content: list[Any] = [TextContent(type="text", text=text)]
        if "whole_answer" in answer:
            content.append(
                ResourceLink(
                    type="resource_link",
                    uri=answer["whole_answer"],
                    name=f"{verb} in full",
                    description="parts by name and number, e.g. /plans/1",
                    mime_type="application/json",
                )
            )
        return CallToolResult(content=content, structured_content=answer)

    def _with_records(self, verb: str, given: dict[str, Any]) -> dict[str, Any]:
        """The fields of a question with the records that addresses name: launch needs the question alone."""
        found = dict(given)
        for name, saved in given.items():
            if not (name in RECORDS and isinstance(saved, str) and saved.startswith("chipwise://")):
                continue
            record = self.kept.record(saved)
            if record is None:
                said = f"{name}: {shorten(saved)} is no longer kept"
                raise UsageError(said, "ask the question again", field=name)
            found[name] = {"question": record["question"]} if verb == "launch" else record
        return found

    async def _answered(
        self, ctx: ServerRequestContext[Any, Any], verb: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The answer as JSON. Meanwhile the client hears every second how far the work is."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(AT_ONCE)
        work = _Answering()
        answered = partial(work.run, partial(_answer, verb, given, self.files, self.kept))
        with anyio.fail_after(MOST_S):
            async with anyio.create_task_group() as group:
                group.start_soon(_tell, ctx, verb, work)
                try:
                    answer: Any = await anyio.to_thread.run_sync(
                        answered, abandon_on_cancel=True, limiter=self._limiter
                    )
                except anyio.get_cancelled_exc_class():
                    work.stop()
                    raise
                finally:
                    group.cancel_scope.cancel()
        if isinstance(answer, ChipwiseError):
            raise answer
        return dict(answer)


STAGES = ("reading the question", "working it out", "writing the answer")


class _StoppedError(BaseException):
    """Raised in the thread of a question that nobody waits for any more; nothing that catches errors catches it."""


@dataclass
class _Answering:
    """A question on its way: how far it is, and the thread that works on it."""

    at: int = 0
    _thread: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, answer: Callable[[_Answering], Any]) -> Any:
        """The answer, worked out in this thread; None once it was stopped."""
        with self._lock:
            self._thread = threading.get_ident()
        try:
            return answer(self)
        except _StoppedError:
            return None
        finally:
            with self._lock:
                self._thread = None

    def stop(self) -> None:
        """End the work at its next step, so that its place is free for another."""
        with self._lock:
            if self._thread is not None:
                stopped = ctypes.py_object(_StoppedError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), stopped)


def _answer(verb: str, given: Mapping[str, Any], files: bool, kept: KeptAnswers, work: _Answering) -> Any:
    """The answer as JSON, or the error: a task group would wrap one that is raised."""
    try:
        request = read_request(verb, given, files=files)
        work.at = 1
        report = request.answer()
        work.at = 2
        if verb in ("launch", "replay", "diff"):
            return shortened(verb, report)
        whole = json.loads(to_json(report, Origin(verb, request).written()))
        return shortened(verb, report, kept.keep(whole))
    except InfeasibleError as error:
        error.hint = _helps(mending(verb, given, files=files)) or error.hint
        return error
    except ChipwiseError as error:
        return error


def _helps(found: Mending | None) -> str:
    """What a deployment lacks and what would help, in the names of fields; "" where nothing is known."""
    if found is None:
        return ""
    lacking = [f"{f.chips}x {f.chip} lack {f.missing_bytes / 1e9:.3g} GB each" for f in found.lacking]
    mends = (*found.mend, *(f"{f.chips}x {f.chip}{_laid_out(f)}" for f in found.holding))
    return "; ".join((*lacking, f"what would help: {', or '.join(mends)}")) if mends else ""


def _laid_out(f: FitRecord) -> str:
    """The layout at which chips hold a model, in the fields of a deployment."""
    sizes = {"tp": f.layout.tp, "pp": f.layout.pp, "ep": f.layout.ep} if f.layout is not None else {}
    said = ", ".join(f"{name}={size}" for name, size in sizes.items() if size > 1)
    return f" ({said})" if said else ""


async def _tell(ctx: ServerRequestContext[Any, Any], verb: str, work: _Answering) -> None:
    began = time.monotonic()
    while True:
        await anyio.sleep(TICK_S)
        passed = time.monotonic() - began
        said = f"{verb}: {STAGES[work.at]} ({work.at + 1} of {len(STAGES)}), {math.floor(passed)} s"
        await ctx.session.report_progress(passed, None, said)


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
        lines.append(f"candidates fell to: {', '.join(f'{why} ({n:,})' for why, n in problem.reasons.items())}")
    if problem.reachable:
        lines.append(f"best that can be had: {', '.join(f'{k} {v:.3g}' for k, v in problem.reachable.items())}")
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
        on_list_prompts=calls.prompts,
        on_get_prompt=calls.prompt,
        on_completion=calls.complete,
    )
