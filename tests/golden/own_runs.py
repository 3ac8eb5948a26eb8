"""Runs that the user measured: what they make of the estimate of that deployment, of neighbours and of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from .asking import printed
from .estimates import plan_of
from .net import Answer, Kind

RUNS = {
    "slow-tokens.json": "--chip h100-sxm5-80gb --count 1 --precision bf16 --runtime vllm",
    "slow-first.json": "--chip h100-sxm5-80gb --count 1 --precision bf16 --runtime vllm",
}
"""Results of a benchmark client with what it does not say: 1.3 times the TPOT predicted, and 2 times the TTFT."""
LINES = """
estimate meta-llama/Llama-3.1-8B-Instruct --chip h100 --in 1024 --out 256 --concurrency 32 --runtime vllm
estimate meta-llama/Llama-3.1-8B-Instruct --chip h100 --in 1024 --out 256 --concurrency 64 --runtime vllm
estimate meta-llama/Llama-3.1-8B-Instruct --chip h100 --in 4096 --out 256 --concurrency 16 --runtime vllm
estimate meta-llama/Llama-3.1-8B-Instruct --chip h200 --in 1024 --out 256 --concurrency 32 --runtime vllm
plan meta-llama/Llama-3.1-8B-Instruct --chips h100,l40s --rate 10/s --in 1024 --out 256 --ttft 500ms --tpot 30ms
"""


def runs() -> Iterator[tuple[str, Answer]]:
    """Each question without a run and with each."""
    for question in LINES.strip().splitlines():
        yield question, _answer(question, None)
    for file, said in RUNS.items():
        with TemporaryDirectory() as own:
            printed(f"evidence import {file} {said}", own)
            for question in LINES.strip().splitlines():
                yield f"{question} after {file}", _answer(question, own)


def _answer(question: str, own: str | None) -> Answer:
    plan = json.loads(printed(f"{question} --format json", own))["plans"][0]
    return plan_of(plan) | {"note": plan["note"], "chance": plan["chance"]}


KIND = Kind("own_runs", runs)
