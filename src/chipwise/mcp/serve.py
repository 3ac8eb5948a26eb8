"""Transports: stdin and stdout, or streamable HTTP on the loopback address."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chipwise.errors import UsageError
from chipwise.listening import ListeningServer, listen, origin_host, serving
from chipwise.mcp.server import create_server

HOST = "127.0.0.1"
PATH = "/mcp"
BODY_BYTES = 262_144


def serve(*, http_port: int | None = None, files: bool = False, say: Callable[[str], None] = print) -> None:
    """Serve until the client leaves, or over HTTP until interrupted. Nothing but the protocol goes to stdout.

    Over HTTP no files are read and requests are taken under loopback names only. Raises `UsageError` for a port
    that cannot be had.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="chipwise: %(message)s")
    with contextlib.suppress(KeyboardInterrupt):
        if http_port is None:
            anyio.run(_stdio, files)
        else:
            if files:
                raise UsageError("--files: files are read for a client on stdin alone", "leave out --http")
            _http(http_port, say)


async def _stdio(files: bool) -> None:
    server = create_server(files=files)
    async with stdio_server() as (read, write):
        answered, inbox = anyio.create_memory_object_stream[Any](0)
        async with anyio.create_task_group() as group:
            group.start_soon(_readable, read, answered, write)
            await server.run(inbox, write, server.create_initialization_options())
            group.cancel_scope.cancel()


async def _readable(lines: Any, messages: Any, back: Any) -> None:
    """Passes on what could be read; what could not is answered with an error instead of silence."""
    async with messages:
        async for message in lines:
            if not isinstance(message, Exception):
                await messages.send(message)
                continue
            error = ErrorData(code=PARSE_ERROR, message="not a message of JSON-RPC 2.0 in one line")
            await back.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))


def _http(port: int, say: Callable[[str], None]) -> None:
    listening = listen(HOST, port)
    say(f"chipwise: http://{HOST}:{listening.getsockname()[1]}{PATH}")
    app = create_server().streamable_http_app(
        streamable_http_path=PATH, host=HOST, max_request_body_size=BODY_BYTES, max_sessions=2 * MOST_SESSIONS
    )
    with contextlib.closing(listening):
        ListeningServer(serving(Sessions(app))).run(sockets=[listening])


MOST_SESSIONS = 256
"""Sessions that are open at once."""


PATIENCE_S = 5.0
"""Seconds that an opening waits for its turn: clients that never send the rest of theirs hold up nobody for longer."""


class Sessions:
    """Ends the session that has been idle for the longest before one too many is opened: clients that leave without a
    word keep nobody out. A session with a request on its way, the one that opens it included, is never ended for
    another: where all have one there are more than `most`, as many as the application allows."""

    def __init__(self, app: ASGIApp, most: int = MOST_SESSIONS) -> None:
        self.app, self.most = app, most
        self._open: OrderedDict[bytes, int] = OrderedDict()  # requests on their way, the longest idle first
        self._opening = 0  # requests that are to open a session and have not yet
        self._turns = anyio.Semaphore(most)
        self._room = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Those of other sites, another port of this machine too, are not taken."""
        named: dict[bytes, bytes] = dict(scope.get("headers", ()))
        origins = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"origin"]
        own_host = named.get(b"host", b"").decode("latin-1").lower()
        if scope["type"] == "http" and any(origin_host(origin) != own_host for origin in origins):
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        if scope["type"] != "http" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        own: bytes | None = dict(scope["headers"]).get(SESSION)
        if own is not None:
            await self._used(own, scope, receive, send)
        elif scope["method"] == "POST":
            await self._begun(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _used(self, own: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """A request of a session, which is open until the application says that it has ended it, or has none such."""
        ended = False

        async def seen(message: Message) -> None:
            nonlocal ended
            status = message.get("status", 500)
            ended |= status == 404 or (scope["method"] == "DELETE" and status < 400)
            await send(message)

        self._count(own, 1)
        try:
            await self.app(scope, receive, seen)
        finally:
            self._count(own, -1)
            if ended:
                self._open.pop(own, None)

    async def _begun(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that may open a session. As many as may be open take their turn at once, so that those that were
        opened in the same moment can be idle, and make room, before the application has too many."""
        own: bytes | None = None

        async def seen(message: Message) -> None:
            nonlocal own
            opened = dict(message.get("headers", ())).get(SESSION)
            if opened is not None and message["status"] < 400:
                own = opened
                self._opening -= 1
                self._open[opened] = 1
            await send(message)

        async with contextlib.AsyncExitStack() as turn:
            with anyio.move_on_after(PATIENCE_S):
                await turn.enter_async_context(self._turns)
            self._opening += 1
            try:
                await self._make_room(scope)
                await self.app(scope, receive, seen)
            finally:
                if own is None:
                    self._opening -= 1
                else:
                    self._count(own, -1)

    def _count(self, own: bytes, step: int) -> None:
        if own in self._open:
            self._open[own] += step
            self._open.move_to_end(own)

    async def _make_room(self, scope: Scope) -> None:
        """Ends idle sessions, as their clients would have, until there are few enough. They are ended under the name
        and the origin of the request that needs the room: one that is refused for them ends nothing."""
        kept = [(name, value) for name, value in scope["headers"] if name in (b"host", b"accept", b"origin")]
        async with self._room:
            while len(self._open) + self._opening > self.most:
                idle = next((number for number, running in self._open.items() if not running), None)
                if idle is None:
                    return
                end = {**scope, "method": "DELETE", "headers": [*kept, (SESSION, idle)]}
                await self._used(idle, end, _nothing, _unheard)
                if self._open.get(idle) == 0:  # refused
                    return


SESSION = b"mcp-session-id"


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    pass
