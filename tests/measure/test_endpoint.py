from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import UsageError
from chipwise.evidence.store import Store
from command_line import Run

FIRST_S, FURTHER_S = 0.04, 0.005


class Stub(BaseHTTPRequestHandler):
    """Streams as many words as are asked for, after a known time each."""

    protocol_version = "HTTP/1.1"
    refuse = False
    flying, most = 0, 0
    lock = threading.Lock()

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refuse or self.path != "/v1/completions":
            self.send_response(404)
            self.send_header("Content-Length", "9")
            self.end_headers()
            self.wfile.write(b"not found")
            return
        with self.lock:
            type(self).flying += 1
            type(self).most = max(self.most, self.flying)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(body["max_tokens"]):
            time.sleep(FURTHER_S if i else FIRST_S)
            self.event({"choices": [{"text": " word"}], "usage": None})
        # counted out before the answer ends: a client that has read the end may ask again at once
        with self.lock:
            type(self).flying -= 1
        usage = {"prompt_tokens": 2 * len(body["prompt"].split()), "completion_tokens": body["max_tokens"]}
        self.event({"choices": [], "usage": usage})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def event(self, data: dict[str, Any]) -> None:
        self.chunk(f"data: {json.dumps(data)}\n\n".encode())

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(Stub, "refuse", False)
    monkeypatch.setattr(Stub, "most", 0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


MODEL = "meta-llama/Llama-3.1-8B"


def test_a_closed_load(url: str, run: Run) -> None:
    asked = ("--model", MODEL, "--in", "50", "--out", "11", "--concurrency", "4", "--requests", "12")
    where = ("--chip", "h100", "--count", "1", "--runtime", "vllm")
    report = run("measure", "serve", url, *asked, *where, "--format", "json").json
    assert Stub.most == 4
    assert (report["requests"], report["failed"]) == (12, 0)
    assert FIRST_S <= report["ttft_mean_s"] < 20 * FIRST_S
    assert FURTHER_S <= report["tpot_mean_s"] < 20 * FURTHER_S
    assert (report["input_tokens"], report["output_tokens"]) == (100.0, 11.0)
    (item,) = Store().items()
    assert item.id == report["kept"]
    assert (item.chip, item.chips, item.concurrency, item.scenario) == ("h100-sxm5-80gb", 1, 4.0, "closed loop")
    assert item.tokens_per_s == pytest.approx(12 * 11 / report["seconds"])
    load = ("--concurrency", "4", "--in", "100", "--out", "11")
    answer = run("estimate", MODEL, "--chip", "h100", "--runtime", "vllm", *load, "--format", "json").json
    assert answer["plans"][0]["tpot_s"]["basis"] == "measured"
    assert item.id in answer["plans"][0]["note"]


def test_a_run_that_cannot_be_kept_is_shown(url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--model", "m", "--in", "5", "--out", "2", "--concurrency", "2", "--requests", "4")

    def full(*_: object) -> None:
        raise UsageError("the store: cannot be used", "the disk is full")

    with monkeypatch.context() as during:
        during.setattr(Store, "add", full)
        ran = run("measure", "serve", url, *asked)
    assert ran.code == 0
    assert "not kept: the store: cannot be used (the disk is full)" in " ".join(ran.out.split())
    assert "requests/s" in ran.out
    monkeypatch.setattr(Store, "ready", full)  # known before: nothing is asked of the server
    monkeypatch.setattr(Stub, "refuse", True)
    assert "the disk is full" in run("measure", "serve", url, *asked).refused(2)


def test_arrivals_at_random(url: str, run: Run) -> None:
    asked = ("--model", "m", "--in", "5", "--out", "2", "--rate", "40/s", "--requests", "12", "--no-keep")
    ran = run("measure", "serve", f"{url}/v1", *asked)
    assert "requests/s" in ran.out
    assert "say what it runs on" in ran.out
    assert Store().items() == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "one load is needed"),
        (("--concurrency", "2", "--rate", "1/s"), "one load is needed"),
        (("--concurrency", "0"), "out of range"),
        (("--rate", "0/s"), "out of range"),
        (("--concurrency", "1", "--out", "0"), "out of range"),
    ],
)
def test_loads_that_are_none(options: tuple[str, ...], says: str, url: str, run: Run) -> None:
    assert says in run("measure", "serve", url, "--model", "m", *options).refused(2)


def test_a_server_that_refuses(url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stub, "refuse", True)
    ran = run("measure", "serve", url, "--model", "m", "--concurrency", "2", "--requests", "2")
    assert ran.code == 2
    assert "answered nothing: the server answers 404" in ran.err


@pytest.mark.parametrize("address", ["ftp://x", "http://", "127.0.0.1:9"])
def test_an_address_without_a_server(address: str, run: Run) -> None:
    ran = run("measure", "serve", address, "--model", "m", "--concurrency", "1", "--requests", "1")
    assert ran.code == 2
    assert "not an address" in ran.err or "answered nothing" in ran.err
