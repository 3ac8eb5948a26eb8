"""Listening on a port: a deadline for the head of a request, a limit on the connections of one peer and on all.

A connection that has sent no whole head costs its sender nothing, so that is what is limited: it is ended after
`HEAD_S`, and where a peer holds too many, the one that has waited longest makes room for the next. Connections whose
request is being answered are never ended for another.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from chipwise.errors import UsageError

HEAD_S = 10.0
"""Seconds in which the head of a request must be there."""
MOST_OF_PEER = 600
"""Connections of one address."""
MOST = 800
"""Connections of all. With those that are taken in at once it is under the 1,024 files that a process may have open as
a rule: beyond them the event loop can take nobody in."""
AT_ONCE = 128
"""Connections that are taken in before the first of them is looked at."""
QUEUE = 1_024
"""Connections that the system keeps until they are taken in. They cost no file, and where there is no room for one its
sender is left to try again, or is cut off with what it has sent."""
REST_S = 75
"""Seconds that a connection may rest between two requests: longer than clients keep one (5 to 60), so that none is
ended while the next request is on its way. Where there is no room, those that rest make some."""
FILES = 1_024
HEAD_BYTES = 16_384
"""Of the head of a request."""


class Connection(H11Protocol):
    """One connection, ended if no head of a request arrives in time or another of its peer needs the room."""

    head_s = HEAD_S
    most_of_peer = MOST_OF_PEER
    most = MOST
    _late: asyncio.TimerHandle | None = None
    _since = 0.0

    @property
    def waits(self) -> bool:
        """Whether no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def peer(self) -> str:
        """The address at the other end."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection is there: it may take the place of one that waits."""
        super().connection_made(transport)
        self._watch()
        all_ = cast("set[Connection]", self.connections)
        of_peer = Counter(c.peer for c in all_)
        if of_peer[self.peer] > self.most_of_peer:
            self._make_room(self.peer)
        elif len(all_) > self.most:
            self._make_room(of_peer.most_common(1)[0][0])

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._forget()
        super().connection_lost(exc)

    def _make_room(self, peer: str) -> None:
        crowd = [c for c in cast("set[Connection]", self.connections) if c.peer == peer and c is not self]
        waiting = [c for c in crowd if c.waits and not c.transport.is_closing()]
        min(waiting, key=lambda c: c._since, default=self).transport.abort()

    def _watch(self) -> None:
        """The clock runs from the first moment without a request to the moment that its head is there."""
        if not self.waits:
            self._since = self.loop.time()
            self._forget()
        elif self._late is None:
            self._since = self.loop.time()
            self._late = self.loop.call_later(self.head_s, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class Heads:
    """Refuses requests whose headers are longer than `HEAD_BYTES`, however they arrived: the parser counts the bytes of
    heads alone that are not yet whole. Addresses have limits of their own."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        size = sum(len(name) + len(value) + 4 for name, value in scope.get("headers", ()))
        if size <= HEAD_BYTES:
            await self.app(scope, receive, send)
            return
        said = [(b"content-length", b"0"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 431, "headers": said})
        await send({"type": "http.response.body", "body": b""})


def origin_host(origin: str) -> str:
    """Host and port of an Origin header in lower case, "" for what is none (`null` among them)."""
    scheme, _, rest = origin.partition("://")
    return rest.lower() if scheme in ("http", "https") else ""


def serving(app: Any, connection: type[Connection] = Connection) -> uvicorn.Config:
    """How an application is served: HTTP alone, no header that a proxy could have set. Only errors of the server are
    logged: a line for each request that is none would let anybody fill the log."""
    _allow_files()
    return uvicorn.Config(
        Heads(app),
        http=connection,
        ws="none",
        backlog=AT_ONCE,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=REST_S,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=HEAD_BYTES,
        limit_concurrency=connection.most + 1,
        proxy_headers=False,
    )


class ListeningServer(uvicorn.Server):
    """Takes few connections in at a time, and lets many wait for that."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; the event loop makes the queue as short as what it takes in at once."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(QUEUE)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises `UsageError` for an address or a port that cannot be had."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on {host}: {error}", "an address of this machine") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(AT_ONCE)
    except OSError as error:
        listening.close()
        what = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise UsageError(what, "--port takes another one, 0 any that is free") from None
    return listening


def _allow_files() -> None:
    """Lets this process have as many files open as connections need, where fewer are the rule (macOS)."""
    try:
        import resource
    except ImportError:  # Windows counts them otherwise
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
