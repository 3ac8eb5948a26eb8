"""Listening: where, for whom, and the browser that is shown the page."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable

from chipwise.errors import UsageError
from chipwise.listening import ListeningServer, listen, serving
from chipwise.web.app import create_app
from chipwise.web.limits import ServerLimits
from chipwise.web.security import Access, loopback

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
        raise UsageError(
            "--token: too short, or not printable", "at least 16 ASCII characters, or leave it out"
        )
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
