"""A server on a port of its own, in a thread of the test process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chipwise.listening import Connection, ListeningServer, listen, serving
from chipwise.web.app import create_app
from chipwise.web.limits import ServerLimits
from chipwise.web.security import Access


@contextmanager
def served(
    access: Access | None = None, limits: ServerLimits | None = None, connection: type[Connection] = Connection
) -> Iterator[str]:
    """The address of a running server, without a slash at its end."""
    with answering(create_app(access, limits), connection) as address:
        yield address


@contextmanager
def answering(app: Any, connection: type[Connection] = Connection) -> Iterator[str]:
    """The same of any application."""
    listening = listen("127.0.0.1", 0)
    server = ListeningServer(serving(app, connection))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True)
    thread.start()
    for _ in range(600):
        if server.started:
            break
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
