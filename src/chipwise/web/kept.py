"""Answers that a browser may keep: each has a tag, and is not sent again while that is the same (RFC 9110)."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
