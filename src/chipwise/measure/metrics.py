"""What a running vLLM says of itself: the counters of its `/metrics`, and means over the time between two readings.

The text is Prometheus' exposition format, version 0.0.4; names are those of vLLM's production metrics
(https://docs.vllm.ai/en/latest/usage/metrics.html, read 2026-11-22). Values of all engines of a server are added.
"""

from __future__ import annotations

import http.client
import math
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass

MOST_BYTES = 8_000_000
WAIT_S = 10.0
LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*\})?\s+(\S+)(?:\s+-?\d+)?\s*")
PREFIX = "vllm:"
ANSWERED = re.compile(r'vllm:time_to_first_token_seconds_count\{[^}]*?model_name="([^"\\]+)"[^}]*\}\s+(\S+)')
SUMS = {
    "ttft": ("time_to_first_token_seconds",),
    # by request as benchmarks have it; else by token, under its name and the former one
    "tpot": ("request_time_per_output_token_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds"),
    "prompt": ("request_prompt_tokens",),
    "output": ("request_generation_tokens",),
}
"""Histograms by what they are of, the first that is there."""
RUNNING, WAITING = "num_requests_running", "num_requests_waiting"
UNREADABLE = (OSError, http.client.HTTPException, ValueError)
"""What reading an address raises where nothing answers, or something else."""


@dataclass(frozen=True, slots=True)
class MetricReading:
    """The counters at a moment (`at_s`, of a clock that only runs forward): sums and counts by what they are of,
    requests that run and wait, and the names of the models that answered any."""

    at_s: float
    sums: Mapping[str, float]
    counts: Mapping[str, float]
    running: float
    waiting: float
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two readings: means in seconds and tokens, NaN where nothing was counted; `requests` are
    those that got a first token in `seconds`."""

    seconds: float
    requests: float
    ttft_s: float
    tpot_s: float
    prompt_tokens: float
    output_tokens: float
    running: float
    waiting: float
    models: tuple[str, ...] = ()

    @staticmethod
    def between(first: MetricReading | None, last: MetricReading) -> Window:
        """From one reading to another; without the first, or where the server was started again since, from its
        start."""
        if first is None or any(last.counts[n] < first.counts.get(n, 0.0) for n in last.counts):
            first = MetricReading(math.nan, {}, {}, last.running, last.waiting)
        counts = {n: c - first.counts.get(n, 0.0) for n, c in last.counts.items()}
        sums = {n: s - first.sums.get(n, 0.0) for n, s in last.sums.items()}
        means = {n: sums[n] / c if c > 0 else math.nan for n, c in counts.items()}
        return Window(
            seconds=last.at_s - first.at_s,
            requests=counts.get("ttft", 0.0),
            ttft_s=means.get("ttft", math.nan),
            tpot_s=means.get("tpot", math.nan),
            prompt_tokens=means.get("prompt", math.nan),
            output_tokens=means.get("output", math.nan),
            running=(first.running + last.running) / 2.0,
            waiting=last.waiting,
            models=last.models,
        )

    @property
    def requests_per_s(self) -> float:
        """First tokens a second, NaN over a time that is not known."""
        return self.requests / self.seconds if self.seconds > 0 else math.nan


def metrics_address(url: str) -> str:
    """Where the metrics of a server are. Raises `UsageError` for what is no address."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    try:
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 80) > 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise UsageError(f"{shorten(url)}: not an address", "as in http://localhost:8000")
    path = parts.path.rstrip("/")
    path = path if path.endswith("/metrics") else f"{path.removesuffix('/v1')}/metrics"
    return f"{parts.scheme}://{parts.netloc}{path}"


def read_metrics(address: str) -> MetricReading:
    """The metrics at an address now. Raises one of `UNREADABLE` where there is no answer or no such metrics."""
    request = urllib.request.Request(address, headers={"Accept": "text/plain; version=0.0.4"})
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        text = answer.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} bytes")
    return parse_metrics(text.decode("utf-8", "replace"), time.monotonic())


def parse_metrics(text: str, at_s: float = 0.0) -> MetricReading:
    """The metrics in a text of the exposition format. Raises `ValueError` where vLLM's are not among them."""
    found: dict[str, float] = {}
    for name, value in _samples(text):
        found[name] = found.get(name, 0.0) + value
    if f"{SUMS['ttft'][0]}_count" not in found:
        raise ValueError("no metrics of vLLM: vllm:time_to_first_token_seconds is missing")
    sums, counts = {}, {}
    for what, names in SUMS.items():
        if there := [n for n in names if f"{n}_count" in found and f"{n}_sum" in found]:
            sums[what], counts[what] = found[f"{there[0]}_sum"], found[f"{there[0]}_count"]
    running, waiting = found.get(RUNNING, math.nan), found.get(WAITING, math.nan)
    return MetricReading(at_s, sums, counts, running, waiting, tuple(_models(text)))


def _models(text: str) -> Iterator[str]:
    """The names under which a server's models answered requests, each once."""
    names = dict.fromkeys(m[1] for m in map(ANSWERED.match, text.splitlines()) if m and m[2].strip("0.+e"))
    yield from names


def _samples(text: str) -> Iterator[tuple[str, float]]:
    """Samples of vLLM by name without its prefix; lines that are none, and values that are no numbers, are left out."""
    for line in text.splitlines():
        match = LINE.fullmatch(line) if line.startswith(PREFIX) else None
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            yield match[1].removeprefix(PREFIX), value
