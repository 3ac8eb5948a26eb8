"""Requests through time: a deployment request by request, plans for a log, seconds of single passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import chipwise as cw
from chipwise.catalog.snapshot import use

from .asking import TODAY, commands, figure
from .net import Answer, Kind

LINES = """
simulate llama-3.1-8b --chip h100 --rate 10/s --in 1000 --out 200 --cv 1 --requests 300
simulate llama-3.1-8b --chip h100 --requests 200 --in 500 --out 100 --seed 2
simulate Qwen/Qwen3-32B --chip h200 --tp 2 --runtime sglang --concurrency 16 --requests 100 --in 2000 --out 100
simulate Qwen/Qwen3-32B --chip rtx-pro-6000-server --tp 2 --set staged=12GB/s --log requests.csv
simulate llama-3.1-8b --chip h100 --replicas 2 --rate 30/s --burstiness 3 --requests 300 --in 1000 --out 50
simulate llama-3.1-8b --chip h100 --disaggregate --rate 5/s --requests 100 --in 3000 --out 100
simulate resnet50 --chip h100 --rate 10/s --requests 10
plan llama-3.1-8b --log requests.csv --ttft 500ms --chips h100,l40s
"""
"""Command lines; `requests.csv` lies with the questions' files."""
STEPS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "chip": "h100"},
    {"model": "Qwen/Qwen3-32B", "chip": "h200", "tp": 2, "runtime": "sglang"},
    {"model": "deepseek-ai/DeepSeek-V3", "chip": "b200-sxm", "tp": 8, "runtime": "trtllm"},
)
DECODE, CONTEXT, PROMPT = (np.array(v) for v in ([1.0, 64.0, 0.0, 64.0], [500.0, 2e3, 0.0, 2e3], [0, 0, 900, 900]))


def _told(report: Any) -> Answer:
    if "simulation" in report:
        found = report["simulation"]
        names = ("requests", "lost", "duration_s", "hit_rate", "ttft_s", "tpot_s", "e2e_s")
        return {name: found[name] for name in names}
    plans = [
        {name: p[name] for name in ("chip", "chips", "replicas", "runtime", "chance", "note")}
        | {"ttft_s": figure(p["ttft_s"]), "p99": p["tails"]["p99"]}
        for p in report["plans"]
    ]
    return {"plans": plans}


def _steps() -> Iterator[tuple[str, Answer]]:
    for asked in STEPS:
        with use(TODAY):
            step = cw.step(**asked)
        yield (
            f"step {json.dumps(asked)}",
            {
                end: np.asarray(table.seconds(DECODE, CONTEXT, PROMPT)).tolist()
                for end, table in (("low", step.low), ("mid", step.mid), ("high", step.high))
            },
        )


def _ask() -> Iterator[tuple[str, Answer]]:
    yield from commands(LINES.strip().splitlines, _told)()
    yield from _steps()


KIND = Kind("time", _ask)
