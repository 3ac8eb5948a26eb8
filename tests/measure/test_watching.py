"""A running server held against its plan: the text that vLLM writes, a stub that serves it, what Prometheus reads."""

from __future__ import annotations

import math
import re
import shlex
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from chipwise.api.requests.verbs import question
from chipwise.api.saving import save
from chipwise.api.watching import Watch, expected_of, serve_watch, watch_once
from chipwise.errors import UsageError
from chipwise.measure.metrics import Window, metrics_address, parse_metrics
from command_line import Run

LABELS = '{engine="0",model_name="meta-llama/Llama-3.1-8B"}'
OTHER = '{engine="1",model_name="odd \\"name\\" with } and {"}'


def text(ttft: float, tpot: float, requests: int = 100, running: int = 8, tpot_name: str = "") -> str:
    """What a server of two engines writes: `requests` on the first with these means, none on the second."""
    tpot_name = tpot_name or "request_time_per_output_token_seconds"
    lines = [
        "# HELP python_gc_objects_collected_total Objects collected during gc",
        "# TYPE python_gc_objects_collected_total counter",
        'python_gc_objects_collected_total{generation="0"} 8741.0',
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{LABELS} {running}.0",
        f"vllm:num_requests_running{OTHER} 0.0",
        f"vllm:num_requests_waiting{LABELS} 0.0",
        "# TYPE vllm:time_to_first_token_seconds histogram",
        f'vllm:time_to_first_token_seconds_bucket{{engine="0",le="+Inf"}} {requests}.0',
    ]
    for name, mean in (
        ("time_to_first_token_seconds", ttft),
        (tpot_name, tpot),
        ("request_prompt_tokens", 1000.0),
        ("request_generation_tokens", 200.0),
    ):
        for labels, count in ((LABELS, requests), (OTHER, 0)):
            lines += [f"vllm:{name}_count{labels} {count}.0", f"vllm:{name}_sum{labels} {mean * count!r}"]
    return "\n".join([*lines, "vllm:broken", f"vllm:other{LABELS} NaN", ""])


class Stub:
    """A server that answers GET /metrics with a text."""

    def __init__(self) -> None:
        stub, self.text = self, ""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = stub.text.encode()
                self.send_response(200 if self.path == "/metrics" and body else 500)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def stub() -> Iterator[Stub]:
    found = Stub()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("plan") / "plan.json")
    asked = {"model": "meta-llama/Llama-3.1-8B", "chip": "l4", "in": 1000, "out": 200, "concurrency": 8}
    save("estimate", question("estimate", asked), path)
    return path


def test_readings_are_means_over_the_time_between() -> None:
    first, last = parse_metrics(text(0.1, 0.02, 100), 10.0), parse_metrics(text(0.2, 0.03, 300), 30.0)
    window = Window.between(first, last)
    # 300 at 0.2 s without 100 at 0.1 s: 50 s over 200 requests
    assert window.ttft_s == pytest.approx(0.25)
    assert window.tpot_s == pytest.approx((9.0 - 2.0) / 200)
    assert (window.requests, window.seconds, window.requests_per_s) == (200, 20, 10)
    assert (window.prompt_tokens, window.output_tokens) == (1000, 200)
    still = Window.between(last, last)
    assert math.isnan(still.ttft_s)
    assert still.requests == 0


def test_a_server_that_was_started_again_counts_from_its_start() -> None:
    window = Window.between(parse_metrics(text(0.1, 0.02, 500), 0.0), parse_metrics(text(0.3, 0.02, 7), 9.0))
    assert window.ttft_s == pytest.approx(0.3)
    assert window.requests == 7


@pytest.mark.parametrize("name", ["inter_token_latency_seconds", "time_per_output_token_seconds"])
def test_names_of_other_versions(name: str) -> None:
    assert Window.between(None, parse_metrics(text(0.1, 0.02, tpot_name=name))).tpot_s == pytest.approx(0.02)


@pytest.mark.parametrize("other", ["", "<html>", "sglang:num_running_reqs 1.0\n", "vllm:num_requests_running 1\n"])
def test_another_text_is_none(other: str) -> None:
    with pytest.raises(ValueError, match="no metrics of vLLM"):
        parse_metrics(other)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("localhost:8000", "http://localhost:8000/metrics"),
        ("http://h:1/v1", "http://h:1/metrics"),
        ("https://h/a/metrics", "https://h/a/metrics"),
    ],
)
def test_addresses(url: str, address: str) -> None:
    assert metrics_address(url) == address


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://", "http://h:99999", "ftp://h", "http://a b"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="not an address"):
        metrics_address(url)


def test_a_server_as_predicted_and_one_that_is_not(stub: Stub, plan: str) -> None:
    expected = expected_of(plan)
    assert expected.tpot_s is not None
    stub.text = text(expected.ttft_s.mid, expected.tpot_s.high * 1.5)
    report = watch_once(stub.address, expected)
    assert [(t.name, t.within) for t in report.times] == [("TTFT", True), ("TPOT", False)]
    assert report.times[0].ratio == pytest.approx(1.0)
    assert report.unlike == ()
    stub.text = text(0.1, 0.02, running=64)
    assert watch_once(stub.address, expected).unlike == ("64 requests in flight, the plan has 8",)


def test_another_load_names_the_question_that_the_server_answers(stub: Stub, plan: str, run: Run) -> None:
    stub.text = text(0.1, 0.02, running=24)
    report = watch_once(stub.address, expected_of(plan))
    assert report.command.endswith("--concurrency 24 --in 1000 --out 200")
    ran = run(*shlex.split(report.command)[1:])
    assert ran.code == 0, ran.err
    out = run("watch", stub.address, "--saved", plan, "--once").out
    assert "two different questions" in out
    assert "what is predicted at this load" in out


def test_another_model_is_said(stub: Stub, plan: str) -> None:
    expected = expected_of(plan)
    stub.text = text(0.1, 0.02).replace("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B")
    report = watch_once(stub.address, expected)
    said = "the server answers with Qwen/Qwen3-32B, the plan is of meta-llama/Llama-3.1-8B"
    assert report.unlike == (said,)
    assert report.command == "", "that would ask for the plan's model"
    for alias in ("chat", "unsloth/Meta-Llama-3.1-8B-Instruct"):
        stub.text = text(0.1, 0.02).replace("meta-llama/Llama-3.1-8B", alias)
        assert watch_once(stub.address, expected).unlike == (), alias


def test_what_prometheus_reads(stub: Stub, plan: str) -> None:
    expected = expected_of(plan)
    assert expected.tpot_s is not None
    watch = Watch(stub.address, expected, 60.0)
    assert "chipwise_watch_up 0.0\n" in watch.read(), "nothing answers yet"
    stub.text = text(1.0, 1.0, 100)
    watch.read()
    stub.text = text((100 + 50 * expected.ttft_s.mid) / 150, (100 + 50 * expected.tpot_s.mid) / 150, 150)
    found = dict(re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", watch.read(), re.M))
    assert found["chipwise_watch_up"] == "1.0"
    assert float(found['chipwise_watch_time_seconds{time="ttft"}']) == pytest.approx(expected.ttft_s.mid)
    assert float(found['chipwise_watch_ratio{time="tpot"}']) == pytest.approx(1.0)
    assert found['chipwise_watch_held{time="tpot"}'] == "1.0"
    assert float(found['chipwise_watch_predicted_seconds{time="ttft",end="low"}']) == expected.ttft_s.low
    assert found["chipwise_watch_requests"] == "50.0"
    assert found["chipwise_watch_comparable"] == "1.0"
    for line in watch.text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"\n]*"(,\w+="[^"\n]*")*\})? [-+\w.]+', line), line
    stub.text = ""
    assert "chipwise_watch_up 0.0\n" in watch.read(), "the server has gone"
    assert "chipwise_watch_time_seconds{" not in watch.text


def test_the_exporter_answers(stub: Stub, plan: str) -> None:
    said: list[str] = []
    stub.text = text(0.1, 0.02)
    watch = Watch(stub.address, expected_of(plan), 60.0)
    threading.Thread(target=serve_watch, args=(watch, 0, 0.2, said.append), daemon=True).start()
    for _ in range(100):
        if said and "watch_up 1.0" in watch.text:
            break
        time.sleep(0.05)
    found = re.search(r"http://\S+", said[0])
    assert found
    with urllib.request.urlopen(found.group(), timeout=10) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "chipwise_watch_up 1.0\n" in answer.read().decode()


def test_the_command(stub: Stub, plan: str, tmp_path: Path, run: Run) -> None:
    stub.text = text(0.1, 0.02)
    shown = run("watch", stub.address, "--saved", plan, "--once")
    assert shown.code == 0
    assert "TPOT" in shown.out
    assert run("watch", stub.address, "--saved", plan, "--once", "--format", "json").json["requests"] == 100
    assert "no plan 7" in run("watch", stub.address, "--saved", plan, "--plan", "7", "--once").refused(2)
    stub.text = "another"
    assert "no metrics of vLLM" in run("watch", stub.address, "--saved", plan, "--once").refused(2)
    assert "Connection refused" in run("watch", "127.0.0.1:1", "--saved", plan, "--once").refused(2)
    assert "not an address" in run("watch", "file:///etc", "--saved", plan, "--once").refused(2)
    fits = str(tmp_path / "fit.json")
    save("fit", question("fit", {"model": "meta-llama/Llama-3.1-8B", "chips": "l4"}), fits)
    assert "no plan 1 of a server" in run("watch", stub.address, "--saved", fits, "--once").refused(2)


def test_a_server_that_is_not_there_is_said_in_the_words_of_the_system(plan: str) -> None:
    expected = expected_of(plan)
    with pytest.raises(UsageError, match=r"/metrics: Connection refused \(start vLLM there"):
        watch_once("http://127.0.0.1:9", expected)
    watch = Watch("http://127.0.0.1:9", expected, 60.0)
    watch.read()
    assert watch.silent == "Connection refused"
