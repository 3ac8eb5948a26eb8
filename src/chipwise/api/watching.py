"""`watch`: a running vLLM held against a saved plan, once or for Prometheus to ask."""

from __future__ import annotations

import contextlib
import math
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chipwise.api.saving import open_saved
from chipwise.catalog.configs import named_config
from chipwise.catalog.names import core
from chipwise.errors import ChipwiseError, CommandText, Sentence, UsageError, shorten
from chipwise.measure.metrics import UNREADABLE, MetricReading, Window, metrics_address, read_metrics
from chipwise.report.records import Figure
from chipwise.report.watched import Expected, WatchReport, exposition, held, unlike

HOST = "127.0.0.1"
SERVED = ("plan", "compare", "estimate", "explain")


def expected_of(path: str, rank: int = 1) -> Expected:
    """What a saved plan says of one of its servers. Raises `UsageError` for a file that holds no such plan."""
    saved = open_saved(path)
    plans = saved.report.get("plans") or () if saved.verb in SERVED else ()
    plan = next((p for p in plans if p["rank"] == rank and "ttft_s" in p), None)
    if plan is None:
        ranks = f"1 to {len(plans)}" if plans else Sentence("save one: ", CommandText("plan MODEL --save FILE"))
        raise UsageError(f"{path}: no plan {rank} of a server in it", ranks)
    workload = saved.report["workload"]
    layout = plan["layout"]
    said = "unsharded" if layout["label"] == "whole" else layout["label"]
    title = f"{saved.report['model']['name']}: {plan['chips']}x {plan['chip']}, {said}"
    return Expected(
        title=f"{title}, {plan['precision']}, {plan['runtime']}",
        ttft_s=Figure(**plan["ttft_s"]),
        tpot_s=Figure(**plan["tpot_s"]) if plan["tpot_s"] else None,
        concurrency=plan["concurrency"],
        prompt_tokens=workload["prompt_tokens"],
        output_tokens=workload["output_tokens"],
        model=saved.report["model"]["name"],
        command=_deployment(saved.request.get("model"), plan),
    )


def _deployment(model: Any, plan: Mapping[str, Any]) -> str:
    """The command that asks for one server of a plan, without its load."""
    named = str(model) if isinstance(model, str) else "config.json"
    sizes = [f"--{n} {plan['layout'][n]}" for n in ("tp", "pp", "dp", "ep") if plan["layout"].get(n, 1) > 1]
    format_ = ["--precision", plan["precision"]] if plan["converted"] else []
    parts = ("chipwise estimate", shlex.quote(named), "--chip", plan["chip"], *sizes, *format_)
    return " ".join((*parts, "--runtime", plan["runtime"]))


def watch_once(url: str, expected: Expected) -> WatchReport:
    """A server since it was started, held against a plan. Raises `UsageError` where its metrics cannot be read."""
    address = metrics_address(url)
    try:
        return _compared(url, expected, Window.between(None, read_metrics(address)))
    except UNREADABLE as error:
        what = f"{shorten(address)}: {_why(error)}"
        raise UsageError(what, "start vLLM there, or give the address where it runs") from None


class Watch:
    """A server that is read again and again; what it does is meant over the last `window_s` seconds."""

    def __init__(self, url: str, expected: Expected, window_s: float) -> None:
        self.url, self.expected, self.window_s = url, expected, window_s
        self.address = metrics_address(url)
        self._readings: deque[MetricReading] = deque()
        self._text = exposition(None, expected)
        self.silent = ""

    def read(self) -> str:
        """Read the server now; the text for Prometheus. `silent` says why it gave no metrics, "" where it did."""
        try:
            last = read_metrics(self.address)
        except UNREADABLE as error:
            self.silent = _why(error)
            self._text = exposition(None, self.expected)
            return self._text
        self.silent = ""
        kept = self._readings
        while len(kept) > 1 and kept[1].at_s <= last.at_s - self.window_s:
            kept.popleft()
        first = kept[0] if kept else last
        kept.append(last)
        report = _compared(self.url, self.expected, Window.between(first, last))
        self._text = exposition(report, self.expected)
        return self._text

    @property
    def text(self) -> str:
        """What the last reading gave."""
        return self._text


def serve_watch(watch: Watch, port: int, every_s: float, say: Callable[[str], None] = print) -> None:
    """Read the server every so many seconds and answer `GET /metrics` until interrupted. Raises `UsageError` for a port
    that cannot be had."""

    class Handler(BaseHTTPRequestHandler):
        """GET /metrics and nothing else."""

        timeout = 10.0
        server_version, sys_version = "chipwise", ""

        def do_GET(self) -> None:
            """The metrics."""
            known = self.path.partition("?")[0] == "/metrics"
            body = (watch.text if known else "there is /metrics\n").encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is logged."""

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        what = f"cannot listen on {HOST}, port {port}: {error.strerror or error}"
        raise UsageError(what, "--port takes another one, 0 any that is free") from None
    server.daemon_threads = True
    with server:
        say(f"chipwise: http://{HOST}:{server.server_address[1]}/metrics holds {watch.address} against the plan")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        before = ""
        try:
            while True:
                watch.read()
                if watch.silent != before:
                    say(f"chipwise: {watch.address}: {watch.silent or 'answers again'}")
                before = watch.silent
                time.sleep(every_s)
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()


def _compared(url: str, expected: Expected, window: Window) -> WatchReport:
    times = [held("TTFT", window.ttft_s, expected.ttft_s)]
    if expected.tpot_s is not None:
        times.append(held("TPOT", window.tpot_s, expected.tpot_s))
    other = tuple(_other_models(expected, window))
    differs = tuple(unlike(expected, window.running, window.prompt_tokens, window.output_tokens))
    load = (window.running, window.prompt_tokens, window.output_tokens)
    command = ""
    if differs and not other and all(math.isfinite(n) and n >= 1 for n in load):
        running, prompt, output = (f"{n:.0f}" for n in load)
        command = f"{expected.command} --concurrency {running} --in {prompt} --out {output}"
    return WatchReport(
        url=url,
        plan=expected.title,
        seconds=_known(window.seconds),
        requests=window.requests,
        requests_per_s=_known(window.requests_per_s),
        running=_known(window.running),
        waiting=_known(window.waiting),
        prompt_tokens=_known(window.prompt_tokens),
        output_tokens=_known(window.output_tokens),
        times=tuple(times),
        unlike=(*other, *differs),
        command=command,
    )


def _other_models(expected: Expected, window: Window) -> Iterator[str]:
    """What a server answers with that is another model than the plan's. A name that is none of the catalogue's may be
    what the server was told to call it."""
    with contextlib.suppress(ChipwiseError):
        planned = named_config(expected.model)
        for name in (n for n in window.models if any(c.isdigit() for c in n)):
            with contextlib.suppress(ChipwiseError):
                found = named_config(name)
                if core(found.name) != core(planned.name):
                    yield f"the server answers with {shorten(name)}, the plan is of {planned.name}"


def _why(error: Exception) -> str:
    """What kept a server from being read, in the words of the system."""
    reason = getattr(error, "reason", error)
    return shorten(str(getattr(reason, "strerror", None) or reason), 200)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
