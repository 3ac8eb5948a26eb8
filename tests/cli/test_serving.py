"""web and mcp on the command line: what is refused, and what needs an extra."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from command_line import Run


@pytest.mark.parametrize("command", ["web", "mcp"])
def test_without_the_extra_the_pip_line_is_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delitem(sys.modules, f"chipwise.{command}.serve", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'chipwise[serve]'" in run(command).refused(5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "70000"), "--port"),
        (("--port", "x"), "--port"),
        (("--host", "256.1.1.1"), "256.1.1.1"),
        (("--host", "192.0.2.1", "--port", "0"), "192.0.2.1"),
        (("--token", "short"), "--token"),
    ],
)
def test_addresses_that_cannot_be_served(run: Run, arguments: tuple[str, ...], said: str) -> None:
    assert said in run("web", "--no-open", *arguments).refused(2)


def test_a_port_that_is_taken(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "--port" in run("web", "--no-open", "--port", port).refused(2)


def test_it_serves_an_open_address_with_a_token_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chipwise", "web", "--no-open", "--port", "0", "--host", "0.0.0.0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stderr is not None
    try:
        found = re.search(r"http://(\S+):(\d+)/\?token=(\S{16,})", process.stderr.readline())
        assert found
        address = f"http://127.0.0.1:{found.group(2)}"
        with urllib.request.urlopen(f"{address}/healthz") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/openapi.json")
        asked = urllib.request.Request(
            f"{address}/openapi.json", headers={"Authorization": f"Bearer {found.group(3)}"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert out == ""
