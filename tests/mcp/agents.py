"""A client of the protocol beside a server process, for the tests of tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio

from mcp import Client, StdioServerParameters

T = TypeVar("T")

COMMAND = ("-m", "chipwise", "mcp")


@contextmanager
def http_server() -> Iterator[str]:
    """The address of a server over HTTP, on a port of its own."""
    command = [sys.executable, *COMMAND, "--http", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield found.group()
        assert process.poll() is None, "the server has ended"
    finally:
        process.terminate()
        out, err = process.communicate(timeout=20)
    assert out == ""
    assert "Traceback" not in err


@asynccontextmanager
async def connected(transport: str) -> AsyncIterator[Client]:
    """A client of a fresh server over "stdio" or "http"."""
    if transport == "stdio":
        # the environment says which package is tested, and the protocol's client passes little of it on
        server = StdioServerParameters(command=sys.executable, args=list(COMMAND), env=dict(os.environ))
        async with Client(server) as client:
            yield client
    else:
        with http_server() as address:
            async with Client(address) as client:
                yield client


def talk(transport: str, conversation: Callable[[Client], Awaitable[T]]) -> T:
    """What a conversation with a fresh server gives."""

    async def whole() -> T:
        async with connected(transport) as client:
            return await conversation(client)

    return anyio.run(whole)


def text_of(result: Any) -> str:
    """The text of a tool's answer; a link to the whole may follow it."""
    content, *links = result.content
    assert all(link.type == "resource_link" for link in links)
    assert content.type == "text"
    return str(content.text)
