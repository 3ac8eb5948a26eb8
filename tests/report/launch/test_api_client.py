"""The client of an API, run against a server that answers as vendors do."""

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

from chipwise.errors import UsageError
from chipwise.report.launch.targets import launch_files
from report.launch.plans import API, served

WORDS = ("one", " two", " three")


class Vendor(BaseHTTPRequestHandler):
    """Lists one model, and counts to three for whoever has the key."""

    asked: dict[str, object]

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._answer(200, json.dumps({"data": [{"id": API.model}]}))

    def do_POST(self) -> None:
        type(self).asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer right":
            self._answer(401, "no such key")
            return
        parts = [{"choices": [{"delta": {"content": word}}]} for word in WORDS]
        last = {"choices": [], "usage": {"prompt_tokens": 2000, "completion_tokens": 3}}
        self._answer(200, "".join(f"data: {json.dumps(p)}\n\n" for p in (*parts, last)) + "data: [DONE]\n\n")

    def _answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{{PLACE}}"
    server.shutdown()
    server.server_close()


def run(folder: Path, address: str, *options: str, **variables: str) -> tuple[int, str]:
    file = launch_files(served(api=replace(API, base_url=address)), "api")[0]
    path = folder / file.name
    path.write_text(file.text)
    environment = {"PATH": os.environ["PATH"], "PLACE": "v1", "NEBIUS_API_KEY": "right", **variables}
    done = subprocess.run(
        [sys.executable, str(path), *options], env=environment, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_the_client_asks_and_checks(tmp_path: Path, address: str) -> None:
    assert run(tmp_path, address) == (0, "one two three\n")
    assert Vendor.asked["model"] == API.model
    assert Vendor.asked["max_tokens"] == 300
    code, said = run(tmp_path, address, "--check")
    assert code == 0
    assert f"{API.model}: listed" in said
    assert "2000 tokens in, 3 out" in said
    # 2000 x 0.13 + 3 x 0.4 dollars a million
    assert "$0.000261 at the prices of 2026-11-20" in said


def test_the_client_says_what_is_missing_and_what_the_vendor_refuses(tmp_path: Path, address: str) -> None:
    assert run(tmp_path, address, NEBIUS_API_KEY="") == (1, "set NEBIUS_API_KEY, as nebius gave it to you\n")
    assert run(tmp_path, address, PLACE="") == (1, "set PLACE, as nebius gave it to you\n")
    code, said = run(tmp_path, address, NEBIUS_API_KEY="wrong")
    assert code == 1
    assert said.endswith("/v1/chat/completions: 401 no such key\n")


def test_a_model_that_nobody_sells_has_no_client() -> None:
    with pytest.raises(UsageError, match=r"no API is known that sells meta-llama/Llama-3.1-70B.*launch it --for vllm"):
        launch_files(served(), "api")
