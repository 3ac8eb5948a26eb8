"""The files of a chain: a client that is run against servers of all its steps, and a script that starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chipwise.report.launch.chains import ChainLink, ChainMember, ChainSpec, chain_files
from chipwise.report.launch.files import LaunchFile, write_files
from report.launch.plans import API, served

WORDS = ("one", " two", " three", " four", " five")


class Steps(BaseHTTPRequestHandler):
    """A model that counts to five, and networks that write down what they read."""

    asked: list[tuple[str, object]]

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_POST(self) -> None:
        read = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/chat/completions"):
            body = json.loads(read)
            self.asked.append((self.headers["Authorization"], body["messages"][0]["content"]))
            parts = [{"choices": [{"delta": {"content": word}}]} for word in WORDS]
            return self._answer("".join(f"data: {json.dumps(p)}\n\n" for p in parts) + "data: [DONE]\n\n")
        self.asked.append((self.path, read.decode()))
        return self._answer("broken" if self.path == "/broken" else f"<{read.decode().strip()}>")

    def _answer(self, text: str) -> None:
        self.send_response(500 if text == "broken" else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def address() -> Iterator[str]:
    Steps.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Steps)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def chain(*, calls: int = 1, passes: int = 2, api: str = "") -> tuple[LaunchFile, ...]:
    own = ChainMember(served(runtime="vllm"), None, 1.0)
    called = ChainMember(None, replace(API, base_url=f"{api}/{{PLACE}}"), 1.0)
    return chain_files(
        ChainSpec(
            "voice: 1 request/s",
            (
                ChainLink("hear", (ChainMember(None, None, 1.0),)),
                ChainLink("think it over", (called if api else own,), calls, 5, passes),
                ChainLink("speak", (ChainMember(None, None, 1.0),)),
            ),
            (("TTFT", 1.2), ("whole answer", 6.0)),
        )
    )


def run(folder: Path, files: tuple[LaunchFile, ...], *options: str, **variables: str) -> tuple[int, str, str]:
    write_files(files, folder)
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        [sys.executable, str(folder / "client.py"), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def _places(address: str) -> dict[str, str]:
    return {"HEAR_URL": f"{address}/hear", "THINK_IT_OVER_URL": f"{address}/v1", "SPEAK_URL": f"{address}/speak"}


def test_each_piece_goes_on_as_it_is_written(tmp_path: Path, address: str) -> None:
    out = tmp_path / "out"
    code, _, err = run(tmp_path / "files", chain(), "--text", "hello", "--out", str(out), **_places(address))
    assert code == 0
    assert out.read_text() == "<one two><three four><five>"
    assert Steps.asked[:2] == [("/hear", "hello"), ("Bearer none", "<hello>")]
    assert [said for path, said in Steps.asked if path == "/speak"] == ["one two", " three four", " five"]
    assert "TTFT 0." in err
    assert "the target is 1.2 s" in err
    assert "the target is 6 s" in err


def test_a_file_is_read_and_several_calls_are_made_at_once(tmp_path: Path, address: str) -> None:
    (tmp_path / "sound").write_bytes(b"la")
    out = tmp_path / "out"
    given = ("--file", str(tmp_path / "sound"), "--out", str(out))
    code, _, _ = run(tmp_path / "files", chain(calls=3, passes=5), *given, **_places(address))
    assert code == 0
    assert out.read_text() == "<" + "\n".join(["one two three four five"] * 3) + ">"
    assert sum(said == "<la>" for _, said in Steps.asked) == 3


def test_an_api_gets_its_key_and_nobody_else(tmp_path: Path, address: str) -> None:
    files, places = chain(api=address), _places(address)
    own = places.pop("THINK_IT_OVER_URL")
    code, _, err = run(tmp_path / "a", files, PLACE="v1", **places)
    assert (code, err) == (1, f"set {API.key}: as the vendor of think it over gave it to you\n")
    assert run(tmp_path / "b", files, PLACE="v1", **{API.key: "right"}, **places)[0] == 0
    assert "Bearer right" in [who for who, _ in Steps.asked]
    Steps.asked.clear()
    assert run(tmp_path / "c", files, **{API.key: "right"}, **places, THINK_IT_OVER_URL=own)[0] == 0
    assert "Bearer right" not in [who for who, _ in Steps.asked]


def test_what_is_missing_and_what_breaks_is_said(tmp_path: Path, address: str) -> None:
    places = _places(address)
    left = {name: said for name, said in places.items() if name != "SPEAK_URL"}
    code, _, err = run(tmp_path / "a", chain(), **left)
    assert (code, err) == (1, "set SPEAK_URL: the address of your server of speak\n")
    code, _, err = run(tmp_path / "b", chain(), **places | {"HEAR_URL": f"{address}/broken"})
    assert code == 1
    assert err.endswith("/broken: 500 broken\n")


def test_the_set_holds_every_member_on_a_port_of_its_own(tmp_path: Path) -> None:
    member = ChainMember(served(runtime="vllm"), None, 0.5)
    links = (ChainLink("a b", (member, member), 1, 5, 5), ChainLink("a-b", (member,), 1, 5, 5))
    files = {f.name: f.text for f in chain_files(ChainSpec("twice", links, (("TTFT", 1.0),)))}
    folders = {name.partition("/")[0] for name in files if "/" in name}
    assert folders == {"a-b", "a-b-2", "a-b-3"}
    ports = [files[f"{folder}/serve.sh"].rpartition("--port ")[2].strip() for folder in sorted(folders)]
    assert ports == ["8000", "8010", "8020"]
    assert all(f"http://127.0.0.1:{port}/v1" in files["client.py"] for port in ports)
    written = write_files(chain_files(ChainSpec("twice", links, (("TTFT", 1.0),))), tmp_path / "set")
    start = next(path for path in written if path.name == "start.sh")
    assert os.access(start, os.X_OK)
    for path in written:
        if path.suffix == ".sh":
            subprocess.run(["bash", "-n", str(path)], check=True)
    # a step that is none starts nothing
    done = subprocess.run(["bash", str(start), "nothing"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_script_starts_servers_waits_for_them_and_ends_with_one_that_fails(tmp_path: Path) -> None:
    files = {f.name: f for f in chain()}
    folder = tmp_path / "set"
    write_files(tuple(files.values()), folder)
    serve = folder / "think-it-over" / "serve.sh"
    serve.write_text("#!/usr/bin/env bash\nexit 3\n")
    failing = tmp_path / "bin" / "curl"
    failing.parent.mkdir()
    failing.write_text("#!/usr/bin/env bash\nexit 7\n")
    failing.chmod(0o755)
    path = f"{failing.parent}:{os.environ['PATH']}"
    given = {"env": {"PATH": path}, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run(["bash", str(folder / "start.sh")], **given)
    assert done.returncode == 1
    assert "think-it-over ended" in done.stderr
    # one that answers is waited for
    serve.write_text("#!/usr/bin/env bash\nsleep 0.2\n")
    failing.write_text("#!/usr/bin/env bash\nexit 0\n")
    done = subprocess.run(["bash", str(folder / "start.sh")], **given)
    assert (done.returncode, done.stdout) == (0, "think-it-over answers on port 8000\n")
