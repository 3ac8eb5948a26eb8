"""A server on a port of its own, in a thread of the test process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from chipwise.listening import Connection, serving
from chipwise.web.app import create_app
from chipwise.web.limits import Limits
from chipwise.web.security import Access


@contextmanager
def served(
    access: Access | None = None, limits: Limits | None = None, connection: type[Connection] = Connection
) -> Iterator[str]:
    """The address of a running server, without a slash at its end."""
    config = serving(create_app(access, limits), connection)
    config.port = 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(600):
        if server.started:
            break
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
