"""Transports: stdin and stdout, or streamable HTTP on the loopback address."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError

from chipwise.errors import UsageError
from chipwise.listening import listen, serving
from chipwise.mcp.server import create_server

__all__ = ["PATH", "serve"]

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
        streamable_http_path=PATH, host=HOST, max_request_body_size=BODY_BYTES, max_sessions=256
    )
    with contextlib.closing(listening):
        uvicorn.Server(serving(app)).run(sockets=[listening])
