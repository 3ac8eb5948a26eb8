"""The desk: what a machine of one's own runs, in which format and how fast; and what to buy."""

from __future__ import annotations

from typing import Any

from .asking import commands, figure
from .net import Answer, Kind

SHOWN = 4
LINES = """
local --have rtx-4090
local --have rtx-4090 --models Qwen/Qwen3-8B,openai/gpt-oss-20b,Qwen/Qwen3-32B
local --have 2xrtx-3090 --models meta-llama/Llama-3.3-70B-Instruct --context 32k
local --have m4-max:64gb --use code
local --have m3-ultra --use reasoning --min-tps 20
local --have rtx-4090+epyc-9654 --host-memory 128GB
local --have rtx-3060-12gb --host-memory 64GB --models Qwen/Qwen3-30B-A3B,openai/gpt-oss-20b
local --have epyc-9654 --host-memory 384GB
local --have gb10-dgx-spark --context 64k
local --have rx-7900-xtx --use vision --most 6
local --have rtx-5090 --precision q4_k_m --kv q8_0
local --have rtx-4090 --share gpu=60%,memory=16GB --environment headless
local --max-usd 2000
local --max-usd 1000 --min-tps 30 --use chat
local --max-usd 8000 --models meta-llama/Llama-3.3-70B-Instruct --context 32k
local --max-usd 50
local --have rtx-4090 --models meta-llama/Llama-3.1-405B
"""


def desks(report: Any) -> Answer:
    """The first models in full, the order of all with their formats, and what does not run and why."""
    models = report["models"]
    names = ("machine", "context", "prompt_tokens", "min_tokens_per_s", "benchmark", "buy", "sparing", "instead")
    return {
        **{name: report[name] for name in names},
        "order": " ".join(f"{m['model']}:{m['precision']}{_bought(m)}" for m in models),
        "refused": {r["chip"]: [r["reason"], r["detail"]] for r in report["refused"]},
        "first": [_model(m) for m in models[:SHOWN]],
    }


def _bought(model: Any) -> str:
    return f"@{model['machine']}" if model["usd"] else ""


def _model(model: Any) -> Answer:
    names = (
        "model", "precision", "kv", "context", "largest_context", "memory_bytes", "capacity_bytes", "host_bytes",
        "download_bytes", "placement", "runtime", "score", "machine", "item", "usd", "covers", "commands",
    )  # fmt: skip
    found: Answer = {name: model[name] for name in names}
    for name in ("tokens_per_s", "ttft_s"):
        found[name] = figure(model[name])
    return found


KIND = Kind("local", commands(LINES.strip().splitlines, desks))
