"""web and mcp on the command line: what is refused, and what needs an extra."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from chipwise.cli.app import app
from command_line import Run


@pytest.mark.parametrize(("command", "served"), [("web", "chipwise.web.app"), ("mcp", "chipwise.mcp.serve")])
def test_without_the_extra_the_pip_line_is_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, served: str
) -> None:
    for module in (served, "chipwise.listening"):
        monkeypatch.delitem(sys.modules, module, raising=False)
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
        (("--demo", "--token", "x" * 20), "--demo asks for no token"),
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
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None
    try:
        found = re.search(r"http://(\S+):(\d+)/\?token=(\S{16,})", process.stderr.readline())
        assert found
        address = f"http://127.0.0.1:{found.group(2)}"
        with urllib.request.urlopen(f"{address}/healthz") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/openapi.json")
        asked = urllib.request.Request(f"{address}/openapi.json", headers={"Authorization": f"Bearer {found.group(3)}"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert out == ""


def test_the_image_serves_the_demonstration_as_nobody_in_particular() -> None:
    """What the Docker file starts is a command that exists; packages come with hashes, and root does not run it."""
    lines = (Path(__file__).parents[2] / "Dockerfile").read_text("utf-8").splitlines()
    said = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}
    assert said["USER"].partition(":")[0].isdecimal()
    assert int(said["USER"].partition(":")[0]) > 0
    assert any("--require-hashes" in line for line in lines)
    (program,) = json.loads(said["ENTRYPOINT"])
    words = json.loads(said["CMD"])
    assert program == "chipwise"
    app.parse_args(words, exit_on_error=False, print_error=False)
    assert "--demo" in words


def test_the_image_is_built_from_what_it_is_given() -> None:
    """What is copied is there and not held back, and so is what links in the package lead to."""
    root = Path(__file__).parents[2]
    lines = (root / "Dockerfile").read_text("utf-8").splitlines()
    copied = {
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    }
    given = {line[1:] for line in (root / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert copied == given
    assert all((root / name).exists() for name in copied)
    links = [file.resolve().relative_to(root) for file in (root / "src").rglob("*") if file.is_symlink()]
    assert links, "the page of accuracy is one"
    assert all(any(link.is_relative_to(name) for name in copied) for link in links)


def test_a_demonstration_asks_for_no_token_and_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chipwise", "web", "--demo", "--no-open", "--port", "0", "--host", "0.0.0.0"]
    kept = os.environ | {"CHIPWISE_DATA_DIR": str(tmp_path / "nothing")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=kept)
    assert process.stderr is not None
    try:
        found = re.search(r"http://\S+?:(\d+)/$", process.stderr.readline().strip())
        assert found, "an address without a token"
        asked = json.dumps({"model": "meta-llama/Llama-3.1-8B", "chips": "l4"}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{found.group(1)}/v1/fit", asked, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["fits"]
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert not (tmp_path / "nothing").exists(), "nothing is kept"
