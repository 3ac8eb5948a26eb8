"""The application: API and pages behind one guard, compressed and tagged, with workers that live as long as it does.

Answers that a browser may keep have a tag each, and are not sent again while that is the same (RFC 9110)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chipwise.web.api import on_http_error, on_refusal
from chipwise.web.api import routes as api_routes
from chipwise.web.jobs import Jobs
from chipwise.web.limits import RefusedError, ServerLimits
from chipwise.web.pages import as_page
from chipwise.web.pages import routes as page_routes
from chipwise.web.security import Access, Guard
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
