"""The benchmarks that measure what was predicted, under the plan's own lengths and load."""

from __future__ import annotations

import json
import math
from typing import Any

from chipwise.catalog.tools import get_tool
from chipwise.report.launch.command import Command, script
from chipwise.report.launch.facts import facts_of, told
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.spec import ServeSpec

PORT = 8000
REQUESTS = 10  # for every request in flight
ALONE_S = 120.0  # that a lone user's requests take together
WIDEST = 0.99  # half the width of uniform lengths over their mean; below 1
# the harness that each client is, where it keeps a number of requests in flight and where it sends at a rate
CLIENTS = {"vllm": ("vllm-bench", "poisson-bench"), "sglang": ("sglang-bench", "poisson-bench")}


def verification(spec: ServeSpec, tool: str = "vllm", *, whole: bool = False, served: str = "") -> LaunchFile:
    """The script that loads one replica, or the `whole` deployment behind one address, as the plan has it: with the
    benchmark of a tool, what that client is predicted to measure in its head. `served`: the server's name of the model
    where it is another."""
    command = _sglang(spec) if tool == "sglang" else _vllm(spec, served, whole=whole)
    rate, _ = _load(spec)
    harness = CLIENTS[tool][rate is not None]
    notes = [f"this client ({name}) should measure: {figures}" for name, figures in spec.measured if name == harness]
    if tool == "vllm" and not spec.runtime.startswith(("vllm", "neuronx")):
        version = get_tool("vllm").version
        notes.append(f"the benchmark is vLLM's, a client of any server: pip install vllm=={version}")
    return LaunchFile("verify.sh", script(spec, get_tool(tool), command, notes=notes), script=True)


def _vllm(spec: ServeSpec, served: str, *, whole: bool) -> Command:
    """`vllm bench serve` against one replica, or against the `whole` deployment behind one address."""
    prompt, output = (_width(cv) for cv in spec.spread)
    own = {
        "served": served if served != spec.model else "",
        "fresh_tokens": max(1, spec.prompt_tokens - spec.cached_tokens),
        "uneven": prompt > 0 or output > 0,
        "widths": f"{prompt:.3g}" if prompt == output else json.dumps({"input": prompt, "output": output}),
    }
    return told(Command.of("vllm", "vllm bench serve"), _facts(spec, whole=whole) | own, part="bench")


def _sglang(spec: ServeSpec) -> Command:
    """SGLang's own, against one replica. Its lengths are uniform between a share of the longest and the longest."""
    width = sum(_width(cv) for cv in spec.spread) / 2.0
    own = {
        "longest_prompt": round(spec.prompt_tokens * (1.0 + width)),
        "longest_output": round(spec.output_tokens * (1.0 + width)),
        "shortest": (1.0 - width) / (1.0 + width),
    }
    return told(Command.of("sglang", "python -m sglang.benchmark.serving"), _facts(spec) | own, part="bench")


def _facts(spec: ServeSpec, *, whole: bool = False) -> dict[str, Any]:
    """What clients are told of the load of one replica, or of the `whole` deployment."""
    rate, flying = _load(spec, whole=whole)
    load = {"rate": rate or 0.0, "open": rate is not None, "flying": flying, "requests": _requests(spec, flying)}
    return facts_of(spec) | load | {"url": f"http://127.0.0.1:{PORT + spec.servers_before}"}


def _requests(spec: ServeSpec, flying: int) -> int:
    """Requests of a benchmark with so many in flight; of a lone user, whose requests follow each other, no more than
    make `ALONE_S` at the predicted speed, and one at least."""
    most = max(REQUESTS * flying, 100)
    each = spec.passes.prefill_s + spec.output_tokens * spec.passes.decode_s
    if flying > 1 or spec.rate_per_s is not None or each <= 0.0:
        return most
    return max(1, min(most, round(ALONE_S / each)))


def _load(spec: ServeSpec, *, whole: bool = False) -> tuple[float | None, int]:
    """Requests per second (None: as many as run) and in flight of one replica that carries its part of the load."""
    carrying = max(1, spec.replicas - spec.spare)
    count = spec.replicas if whole else 1
    rate = None if spec.rate_per_s is None else spec.rate_per_s / carrying * count
    return rate, spec.concurrency * count


def _width(cv: float) -> float:
    """Half the width over the mean of the uniform lengths that have this coefficient of variation, sqrt(3) cv."""
    return round(min(math.sqrt(3.0) * cv, WIDEST), 3)
