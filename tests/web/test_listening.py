"""Connections that send no request: ended in time, never in the way of others."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from serving import answering, served
from starlette.types import Receive, Scope, Send

from chipwise.listening import Connection


class Narrow(Connection):
    """Few connections, and little patience."""

    head_s = 1.0
    most_of_peer = 5


@pytest.fixture(scope="module")
def narrow() -> Iterator[str]:
    with served(connection=Narrow) as found:
        yield found


def opened(address: str, first: bytes) -> socket.socket:
    """A connection that has sent something."""
    where = httpx.URL(address)
    wire = socket.create_connection((where.host, where.port or 80), 10)
    wire.sendall(first)
    return wire


def closed(wire: socket.socket) -> bool:
    """Whether the other end has hung up."""
    wire.settimeout(5)
    try:
        return wire.recv(1) == b""
    except ConnectionError:
        return True


HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-a: "


@pytest.mark.parametrize("first", [b"", b"G", HALF], ids=["nothing", "a letter", "half a head"])
def test_a_head_that_does_not_arrive_is_not_waited_for(narrow: str, first: bytes) -> None:
    with opened(narrow, first) as wire:
        began = time.monotonic()
        assert closed(wire)
        assert 0.5 < time.monotonic() - began < 4


def test_dripping_does_not_help(narrow: str) -> None:
    with opened(narrow, HALF) as wire:
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 10:
                wire.sendall(b"x")
                time.sleep(0.1)
        assert 0.5 < time.monotonic() - began < 4


def test_one_connection_serves_several_requests_and_may_rest_between(narrow: str) -> None:
    with httpx.Client(base_url=narrow) as client:
        for _ in range(3):
            assert client.get("/healthz").status_code == 200
            time.sleep(0.6)


def test_many_that_come_at_once_wait_in_line() -> None:
    many = 300

    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/busy":
            time.sleep(3.0)  # nobody is taken in meanwhile
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with answering(busy) as address, contextlib.ExitStack() as wires:
        wires.enter_context(opened(address, b"GET /busy HTTP/1.1\r\nHost: a\r\n\r\n"))
        time.sleep(0.3)
        where = httpx.URL(address)
        crowd = [
            wires.enter_context(socket.create_connection((where.host, where.port or 80), 0.9)) for _ in range(many)
        ]
        for wire in crowd:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            wire.settimeout(20)
        assert [wire.recv(12) for wire in crowd] == [b"HTTP/1.1 200"] * many


def test_of_those_that_rest_the_one_that_was_asked_last_stays(narrow: str) -> None:
    with httpx.Client(base_url=narrow) as used, contextlib.ExitStack() as rest:
        used.get("/healthz")
        others = [rest.enter_context(httpx.Client(base_url=narrow)) for _ in range(6)]
        for other in others[:4]:
            other.get("/healthz")
        used.get("/healthz")
        before = used._transport._pool.connections  # type: ignore[attr-defined]
        others[4].get("/healthz")
        others[5].get("/healthz")
        kept = list(before)
        assert used.get("/healthz").status_code == 200
        assert used._transport._pool.connections == kept, "it was not ended"  # type: ignore[attr-defined]


def test_a_crowd_that_waits_makes_room(narrow: str) -> None:
    wires = [opened(narrow, HALF) for _ in range(12)]
    try:
        began = time.monotonic()
        assert [httpx.get(f"{narrow}/healthz").status_code for _ in range(4)] == [200] * 4
        assert time.monotonic() - began < 0.9, "others need not wait for the deadline"
        assert all(closed(wire) for wire in wires[:7]), "those that waited longest went first"
    finally:
        for wire in wires:
            wire.close()
