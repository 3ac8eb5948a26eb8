"""The benchmarks that measure what was predicted, under the plan's own lengths and load."""

from __future__ import annotations

import json
import math

from chipwise.catalog.tools import get_tool
from chipwise.report.launch.command import Command, script
from chipwise.report.launch.spec import LaunchFile, ServeSpec

PORT = 8000
REQUESTS = 10  # for every request in flight
WIDEST = 0.99  # half the width of uniform lengths over their mean; below 1
# the harness that each client is, where it keeps a number of requests in flight and where it sends at a rate
CLIENTS = {"vllm": ("vllm-bench", "poisson-bench"), "sglang": ("sglang-bench", "poisson-bench")}


def verification(spec: ServeSpec, tool: str = "vllm", *, whole: bool = False) -> LaunchFile:
    """The script that loads one replica, or the `whole` deployment behind one address, as the plan has it: with the
    benchmark of a tool, what that client is predicted to measure in its head."""
    command = _sglang(spec) if tool == "sglang" else _vllm(spec, whole=whole)
    rate, _ = _load(spec)
    harness = CLIENTS[tool][rate is not None]
    notes = [
        f"this client ({name}) should measure: {figures}"
        for name, figures in spec.measured
        if name == harness
    ]
    if tool == "vllm" and not spec.runtime.startswith(("vllm", "neuronx")):
        version = get_tool("vllm").version
        notes.append(f"the benchmark is vLLM's, a client of any server: pip install vllm=={version}")
    return LaunchFile("verify.sh", script(spec, get_tool(tool), command, notes=notes), script=True)


def _vllm(spec: ServeSpec, *, whole: bool) -> Command:
    """`vllm bench serve` against one replica, or against the `whole` deployment behind one address."""
    rate, flying = _load(spec, whole=whole)
    prompt, output = (_width(cv) for cv in spec.spread)
    widths = f"{prompt:.3g}" if prompt == output else json.dumps({"input": prompt, "output": output})
    return (
        Command.of("vllm", "vllm bench serve")
        .option("--backend", "openai")
        .option("--base-url", f"http://127.0.0.1:{PORT}")
        .option("--model", spec.model)
        .option("--dataset-name", "random")
        .option("--random-prefix-len", spec.cached_tokens, when=spec.cached_tokens > 0)
        .option("--random-input-len", max(1, spec.prompt_tokens - spec.cached_tokens))
        .option("--random-output-len", spec.output_tokens)
        .option("--random-range-ratio", widths, when=prompt > 0 or output > 0)
        .option("--ignore-eos")
        .option("--request-rate", f"{rate:.4g}" if rate else "", when=rate is not None)
        .option("--max-concurrency", flying, when=rate is None)
        .option("--num-prompts", max(REQUESTS * flying, 100))
        .option("--percentile-metrics", "ttft,tpot")
        .option("--metric-percentiles", "50,95,99")
        .option("--save-result")
    )


def _sglang(spec: ServeSpec) -> Command:
    """SGLang's own, against one replica. Its lengths are uniform between a share of the longest and the longest."""
    rate, flying = _load(spec)
    width = sum(_width(cv) for cv in spec.spread) / 2.0
    return (
        Command.of("sglang", "python -m sglang.benchmark.serving")
        .option("--backend", "sglang")
        .option("--base-url", f"http://127.0.0.1:{PORT}")
        .option("--model", spec.model)
        .option("--dataset-name", "random")
        .option("--random-input-len", round(spec.prompt_tokens * (1.0 + width)))
        .option("--random-output-len", round(spec.output_tokens * (1.0 + width)))
        .option("--random-range-ratio", f"{(1.0 - width) / (1.0 + width):.3g}")
        .option("--request-rate", f"{rate:.4g}" if rate else "", when=rate is not None)
        .option("--max-concurrency", flying, when=rate is None)
        .option("--num-prompts", max(REQUESTS * flying, 100))
        .option("--output-file", "result.jsonl")
    )


def _load(spec: ServeSpec, *, whole: bool = False) -> tuple[float | None, int]:
    """Requests per second (None: as many as run) and in flight of one replica that carries its part of the load."""
    carrying = max(1, spec.replicas - spec.spare)
    count = spec.replicas if whole else 1
    rate = None if spec.rate_per_s is None else spec.rate_per_s / carrying * count
    return rate, spec.concurrency * count


def _width(cv: float) -> float:
    """Half the width over the mean of the uniform lengths that have this coefficient of variation, sqrt(3) cv."""
    return round(min(math.sqrt(3.0) * cv, WIDEST), 3)
