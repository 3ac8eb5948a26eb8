"""Sessions over HTTP that nobody ends: they keep nobody out, and one at work is left alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chipwise.mcp.serve import PATH, Sessions
from chipwise.mcp.server import create_server

HEADERS = {"accept": "application/json, text/event-stream", "host": "localhost:1"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def said(client: httpx.AsyncClient, message: dict[str, Any], session: str = "") -> httpx.Response:
    """The answer to a message."""
    headers = HEADERS | ({"mcp-session-id": session} if session else {})
    return await client.post(PATH, json=message, headers=headers)


def test_sessions_that_nobody_ends_make_room() -> None:
    async def run() -> None:
        inner = create_server().streamable_http_app(streamable_http_path=PATH, max_sessions=8)
        app = Sessions(inner, 4)
        transport = httpx.ASGITransport(app=app)
        async with (
            inner.router.lifespan_context(inner),
            httpx.AsyncClient(transport=transport, base_url="http://localhost:1") as client,
        ):
            first = (await said(client, HELLO)).headers["mcp-session-id"]
            for _ in range(30):
                assert (await said(client, HELLO)).status_code == 200
                # the one that is used is not the longest idle
                assert (await said(client, PING, first)).status_code == 200
            opened = [(await said(client, HELLO)).headers["mcp-session-id"] for _ in range(6)]
            answers = [(await said(client, PING, session)).status_code for session in (first, *opened)]
            assert answers == [404, 404, 404, 200, 200, 200, 200]
            ended = await client.delete(PATH, headers=HEADERS | {"mcp-session-id": opened[-1]})
            assert ended.status_code == 200
            assert json.loads((await said(client, PING, opened[-1])).text)["error"]

    asyncio.run(run())


@contextlib.asynccontextmanager
async def serving(most: int, slow: float = 0.0) -> AsyncIterator[tuple[Sessions, httpx.AsyncClient, ASGIApp]]:
    """At most so many idle sessions of an application that takes twice as many, its ends of sessions slow."""
    inner = create_server().streamable_http_app(streamable_http_path=PATH, max_sessions=2 * most)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            await asyncio.sleep(slow)
        await inner(scope, receive, send)

    sessions = Sessions(app, most)
    async with (
        inner.router.lifespan_context(inner),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=sessions), base_url="http://localhost:1") as client,
    ):
        yield sessions, client, inner


@contextlib.asynccontextmanager
async def listening(app: ASGIApp, *sessions: str) -> AsyncIterator[None]:
    """A GET stream of each, held open."""
    begun = asyncio.Semaphore(0)

    async def receive() -> Message:  # the application listens whether the client leaves
        begun.release()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        assert message.get("status", 200) == 200

    async def stream(session: str) -> None:
        headers = {**HEADERS, "mcp-session-id": session}
        scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 1),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await app(scope, receive, send)

    streams = [asyncio.create_task(stream(session)) for session in sessions]
    for _ in streams:
        await asyncio.wait_for(begun.acquire(), 10)
    try:
        yield
        assert not any(task.done() for task in streams)
    finally:
        for task in streams:
            task.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


async def opened(client: httpx.AsyncClient, number: int) -> list[str]:
    """Sessions, opened one after another."""
    return [(await said(client, HELLO)).headers["mcp-session-id"] for _ in range(number)]


async def alive(client: httpx.AsyncClient, sessions: list[str]) -> list[bool]:
    """Which of them answer."""
    return [(await said(client, PING, session)).status_code == 200 for session in sessions]


def test_a_session_that_is_opened_while_all_others_are_busy_is_kept() -> None:
    async def run() -> None:
        async with serving(2) as (app, client, _):
            busy = await opened(client, 2)
            async with listening(app, *busy):
                (new,) = await opened(client, 1)
                assert await alive(client, [*busy, new]) == [True, True, True]
                (newer,) = await opened(client, 1)
                assert await alive(client, [*busy, new, newer]) == [True, True, False, True]
                async with listening(app, newer):
                    (newest,) = await opened(client, 1)
                    async with listening(app, newest):
                        assert (await said(client, HELLO)).status_code == 503
            assert await alive(client, [*busy, newer, newest]) == [True] * 4, "none was ended for another"
            await opened(client, 2)
            assert await alive(client, [*busy, newer, newest]) == [False] * 4, "there is room for two again"

    asyncio.run(run())


@pytest.mark.parametrize(("path", "host", "status"), [("/elsewhere", "localhost:1", 404), (PATH, "evil", 421)])
def test_a_refused_end_leaves_the_session_where_it_can_be_ended(path: str, host: str, status: int) -> None:
    async def run() -> None:
        async with serving(2) as (_, client, _):
            for _ in range(6):
                (session,) = await opened(client, 1)
                headers = HEADERS | {"host": host, "mcp-session-id": session}
                assert (await client.delete(path, headers=headers)).status_code == status
                assert await alive(client, [session]) == [True]

    asyncio.run(run())


def test_a_request_that_is_refused_for_its_host_ends_nothing() -> None:
    async def run() -> None:
        async with serving(2) as (_, client, _):
            sessions = await opened(client, 2)
            for _ in range(4):
                refused = await client.post(PATH, json=HELLO, headers=HEADERS | {"host": "evil"})
                assert refused.status_code == 421
            assert await alive(client, sessions) == [True, True]

    asyncio.run(run())


def test_sessions_that_the_application_ended_itself_take_no_room() -> None:
    async def run() -> None:
        async with serving(2) as (_, client, inner):
            sessions = await opened(client, 2)
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app=inner), base_url="http://localhost:1"
            ) as behind:
                for session in sessions:
                    ended = await behind.delete(PATH, headers=HEADERS | {"mcp-session-id": session})
                    assert ended.status_code == 200
            assert await alive(client, await opened(client, 6)) == [False] * 4 + [True] * 2

    asyncio.run(run())


@pytest.mark.parametrize("idle", [0, 4])
def test_many_that_open_at_once_are_all_let_in(idle: int) -> None:
    async def run() -> None:
        async with serving(4) as (_, client, _):
            await opened(client, idle)
            answers = await asyncio.gather(*(said(client, HELLO) for _ in range(20)))
            assert [answer.status_code for answer in answers] == [200] * 20
            sessions = [answer.headers["mcp-session-id"] for answer in answers]
            assert sum(await alive(client, sessions)) == 4

    asyncio.run(run())


def test_room_is_made_once_by_those_that_open_at_once() -> None:
    """More idle sessions than there is room for, from when all were busy, and ends that take their time: nothing is
    ended twice, nor a session that was asked something meanwhile."""

    async def run() -> None:
        async with serving(4, slow=0.05) as (app, client, _):
            first = await opened(client, 4)
            async with listening(app, *first):
                second = await opened(client, 1)
                async with listening(app, *second):
                    third = await opened(client, 1)
            many = [*first, *second, *third]
            openings = [asyncio.create_task(said(client, HELLO)) for _ in range(3)]
            await asyncio.sleep(0.02)  # the one idle for the longest is being ended, the rest are to be
            async with listening(app, first[0]):
                answers = await asyncio.gather(*openings)
                assert [answer.status_code for answer in answers] == [200] * 3
                new = [answer.headers["mcp-session-id"] for answer in answers]
                assert await alive(client, [*many, *new]) == [True, *[False] * 5, *[True] * 3]

    asyncio.run(run())
