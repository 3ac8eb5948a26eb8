"""Malformed, huge and hostile messages: the server stays up and answers the next one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any

import httpx
import pytest
from agents import COMMAND, http_server

from chipwise.errors import UsageError
from chipwise.mcp.serve import serve

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
LIST = {"jsonrpc": "2.0", "id": 99, "method": "tools/list"}
GARBAGE: dict[str, bytes] = {
    "no JSON": b"GET / HTTP/1.1",
    "not UTF-8": b'{"jsonrpc":"2.0","id":5,"method":"\xff\xfe"}',
    "NUL": b"\x00\x00\x00",
    "a list": b"[]",
    "deep": b"[" * 50_000 + b"]" * 50_000,
    "huge": b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"plan","arguments":{"model":"'
    + b"A" * 3_000_000
    + b'"}}}',
    "no such method": b'{"jsonrpc":"2.0","id":7,"method":"system/exec","params":{"cmd":"id"}}',
    "strange params": b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":5,"arguments":[]}}',
    "deep arguments": b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"plan","arguments":{"model":'
    + b'{"a":' * 200
    + b"1"
    + b"}" * 200
    + b"}}}",
    "not a number": b'{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"estimate","arguments":'
    b'{"model":"meta-llama/Llama-3.1-8B","chip":"l4","concurrency":1e999}}}',
}


class Wire:
    """A server over stdin and stdout, spoken to in lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.to: IO[bytes] = process.stdin
        self.back: IO[bytes] = process.stdout

    def say(self, line: bytes) -> None:
        self.to.write(line + b"\n")
        self.to.flush()

    def answer_to(self, wanted: int) -> Any:
        """The answer to a request; everything on stdout must be the protocol."""
        while line := self.back.readline():
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == wanted:
                return message
        raise AssertionError("the server has ended")


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    command = [sys.executable, *COMMAND]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    spoken = Wire(process)
    spoken.say(json.dumps(INITIALIZE).encode())
    assert spoken.answer_to(1)["result"]["serverInfo"]["name"] == "chipwise"
    spoken.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    yield spoken
    spoken.to.close()
    assert process.wait(timeout=20) == 0
    with spoken.back as rest:
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)


@pytest.mark.parametrize("name", GARBAGE)
def test_stdio_survives(wire: Wire, name: str) -> None:
    wire.say(GARBAGE[name])
    wire.say(json.dumps(LIST).encode())
    assert len(wire.answer_to(99)["result"]["tools"]) > 10


@pytest.mark.parametrize("name", ["no JSON", "NUL", "a list", "deep"])
def test_a_line_that_cannot_be_read_is_answered(wire: Wire, name: str) -> None:
    wire.say(GARBAGE[name])
    refused = next(m for line in wire.back if "error" in (m := json.loads(line)) and m["id"] is None)
    assert refused["error"]["code"] == -32700
    assert "JSON-RPC" in refused["error"]["message"]


def test_a_number_that_is_none_is_an_error_with_a_next_step(wire: Wire) -> None:
    wire.say(GARBAGE["not a number"].replace(b'"id":10', b'"id":11'))
    result = wire.answer_to(11)["result"]
    assert result["isError"] is True
    assert "concurrency" in result["content"][0]["text"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http_server() as found:
        yield found


ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Host": "evil.example"}, json.dumps(INITIALIZE).encode(), 421),
        ({"Origin": "https://evil.example"}, json.dumps(INITIALIZE).encode(), 403),
        ({"Origin": "null"}, json.dumps(INITIALIZE).encode(), 403),
        ({"Origin": "http://127.0.0.1:9"}, json.dumps(INITIALIZE).encode(), 403),
        ({"Origin": "http://localhost"}, json.dumps(INITIALIZE).encode(), 403),
        ({f"X-{i}": "a" for i in range(3000)}, json.dumps(INITIALIZE).encode(), 431),
        ({"Content-Type": "text/plain"}, json.dumps(INITIALIZE).encode(), 400),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 1_000_000 + b'"}', 413),
        ({}, b"{", 400),
        ({}, b"[" * 50_000, 400),
        ({}, b"\xff\xfe\x00", 400),
    ],
    ids=[
        "host",
        "origin",
        "null origin",
        "another port",
        "no port",
        "long head",
        "type",
        "huge",
        "cut",
        "deep",
        "bytes",
    ],
)
def test_http_refuses(address: str, headers: dict[str, str], body: bytes, status: int) -> None:
    answer = httpx.post(address, content=body, headers=ACCEPT | headers)
    assert answer.status_code == status
    again = httpx.post(address, json=INITIALIZE, headers=ACCEPT)
    assert again.status_code == 200
    assert "chipwise" in again.text


def test_http_takes_its_own_origin(address: str) -> None:
    own = address.removesuffix("/mcp")
    assert httpx.post(address, json=INITIALIZE, headers=ACCEPT | {"Origin": own}).status_code == 200


def test_http_serves_the_protocol_alone(address: str) -> None:
    root = address.removesuffix("/mcp")
    for path in ("/", "/etc/passwd", "/mcp/../../etc/passwd", "/.env"):
        assert httpx.get(root + path).status_code in (404, 405)


def test_a_port_that_is_taken_is_said(address: str) -> None:
    port = address.rsplit(":", 1)[1].partition("/")[0]
    with pytest.raises(UsageError, match="--port"):
        serve(http_port=int(port))


def test_files_are_not_read_for_clients_over_http() -> None:
    with pytest.raises(UsageError, match="--files"):
        serve(http_port=0, files=True)
