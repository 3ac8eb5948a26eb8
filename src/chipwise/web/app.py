"""The application: API and pages behind one guard, compressed and tagged, with workers that live as long as it does;
and where it listens, for whom, and the browser that is shown the page.

Answers that a browser may keep have a tag each, and are not sent again while that is the same (RFC 9110)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chipwise.errors import UsageError
from chipwise.listening import ListeningServer, listen, serving
from chipwise.web.api import on_http_error, on_refusal
from chipwise.web.api import routes as api_routes
from chipwise.web.jobs import Jobs
from chipwise.web.limits import RefusedError, ServerLimits
from chipwise.web.pages import as_page, ready
from chipwise.web.pages import routes as page_routes
from chipwise.web.security import Access, Guard, loopback
from chipwise.web.submitted import Submitted

KEPT = "private, no-cache"
"""Kept by whoever asked, and asked about each time."""


class Tagged:
    """Middleware: what is got whole has a tag of its bytes; who names that is told that nothing has changed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        known = [tag.strip() for tag in Headers(scope=scope).get("if-none-match", "").split(",")]
        start: Message | None = None

        async def tagged(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start is not None:
                if not message.get("more_body"):
                    message = _marked(start, message, known)
                await send(start)
                start = None
            await send(message)

        await self.app(scope, receive, tagged)


def _marked(start: Message, whole: Message, known: list[str]) -> Message:
    """The body of an answer that `start` gives a tag, empty where that is known. Pages are made anew each time: what is
    shown of one depends on how it was asked for."""
    headers = MutableHeaders(scope=start)
    page = headers.get("content-type", "").startswith("text/html")
    if start["status"] != 200 or page or "etag" in headers:
        return whole
    tag = f'W/"{hashlib.sha256(whole.get("body", b"")).hexdigest()[:32]}"'
    headers["etag"], headers["cache-control"] = tag, KEPT
    if tag not in known:
        return whole
    del headers["content-length"]
    start["status"] = 304
    return {**whole, "body": b""}


def create_app(access: Access | None = None, limits: ServerLimits | None = None) -> Starlette:
    """The web face as an ASGI application; by default for this machine only."""
    limits = limits or ServerLimits()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.jobs, app.state.submitted = Jobs(limits), Submitted(limits)
        await app.state.jobs.start()
        app.state.ready = asyncio.create_task(asyncio.to_thread(ready))
        try:
            yield
        finally:
            await app.state.submitted.stop()
            await app.state.jobs.stop()

    guard = Middleware(Guard, access=access or Access(), target_bytes=limits.target_bytes)
    small = Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
    handlers = {RefusedError: as_page(on_refusal), HTTPException: as_page(on_http_error)}
    return Starlette(
        routes=[*api_routes(), *page_routes()],
        middleware=[guard, small, Middleware(Tagged)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )


DEMO = ServerLimits(
    waiting=32, answer_s=20.0, wait_s=20.0, record_bytes=1_000_000, jobs=4, job_s=60.0, job_kept_s=300.0
)
"""What a server for everybody does at most."""


def serve(
    host: str,
    port: int,
    *,
    token: str | None = None,
    names: frozenset[str] = frozenset(),
    demo: bool = False,
    browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted. Beyond the loopback address a token is asked for, a new one unless given; as a `demo`
    none is, and limits are those of `DEMO`.

    Raises `UsageError` for an address that cannot be listened on, or a token that is none.
    """
    if token is not None and (len(token) < 16 or not token.isascii() or not token.isprintable()):
        raise UsageError("--token: too short, or not printable", "at least 16 ASCII characters, or leave it out")
    if demo and token:
        raise UsageError("--demo asks for no token", "leave out --token, or --demo")
    private = loopback(host)
    token = token or ("" if private or demo else secrets.token_urlsafe(24))
    listening = listen(host, port)
    address = _address(host, listening.getsockname()[1])
    shown = f"{address}/?token={token}" if token else f"{address}/"
    say(f"chipwise: {shown}")
    if not private:
        who = "everybody" if demo else "whoever has the token"
        say(f"chipwise: reachable from other machines, without encryption; {who} may ask")
    config = serving(create_app(Access(host, token, names), DEMO if demo else None))
    if browser:
        opener = threading.Timer(0.5, webbrowser.open, [shown])
        opener.daemon = True
        opener.start()
    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):
        ListeningServer(config).run(sockets=[listening])


def _address(host: str, port: int) -> str:
    """What to open: an open address is shown as this machine's."""
    bare = host.strip("[]")
    with contextlib.suppress(ValueError):
        number = ipaddress.ip_address(bare)
        if number.is_unspecified:
            bare = socket.gethostname()
        elif number.version == 6:
            bare = f"[{bare}]"
    return f"http://{bare}:{port}"
