"""Single deployments: four models on ten chips in layouts and loads that differ, and machines of one user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .asking import commands, figure
from .net import Answer, Kind

MODELS = {
    "meta-llama/Llama-3.1-8B": ("", "--tp 2", "--tp 4 --pp 2"),
    "nvidia/Llama-3.1-70B-Instruct-FP8": ("--tp 2", "--tp 8", "--tp 4 --pp 5"),
    "Qwen/Qwen3-30B-A3B": ("--tp 2", "--tp 4 --ep 4", "--dp 4 --ep 4"),
    "openai/gpt-oss-120b": ("--tp 2", "--tp 4 --dp 2 --ep 8", "--tp 2 --pp 2"),
}
CHIPS = (
    "h100-sxm5-80gb",
    "b200-sxm",
    "a100-sxm4-80gb",
    "mi300x",
    "rtx-4090",
    "l4",
    "tpu-v5e",
    "tpu-v6e",
    "trainium2",
    "gaudi3",
)
LOADS = ("--in 2000 --out 300 --concurrency 8", "--task batch --in 20000 --out 100")
LONE = {
    "meta-llama/Llama-3.1-8B": ("", ("rtx-4090", "rtx-5090", "m3-ultra", "epyc-9654", "rx-7900-xtx")),
    "openai/gpt-oss-20b": ("", ("rtx-4090", "rtx-5090", "m3-ultra", "m4-max")),
    "Qwen/Qwen3-32B-FP8": ("--pp 2", ("rtx-5090", "rtx-6000-ada", "rtx-pro-6000-ws")),
}
"""Machines of a single user."""


def lines() -> Iterator[str]:
    """Every question, in order."""
    for model, layouts in MODELS.items():
        for chip in CHIPS:
            for layout in layouts:
                for load in LOADS:
                    yield " ".join(f"estimate {model} --chip {chip} {layout} {load}".split())
    for model, (layout, chips) in LONE.items():
        for chip in chips:
            place = f"--chip {chip} {layout}"
            yield " ".join(f"estimate {model} {place} --task local --in 1000 --out 300".split())


def plan_of(plan: Any) -> Answer:
    """The plan and its figures: what it is, times, throughput, price, what bounds it."""
    names = ("chip", "chips", "replicas", "precision", "kv", "runtime", "bound", "batch", "concurrency")
    found: Answer = {name: plan[name] for name in names} | {"layout": plan["layout"]["label"]}
    for name in ("ttft_s", "tpot_s", "tokens_per_s"):
        found[name] = figure(plan[name])
    for name in ("usd_per_million_out", "kwh_per_million_out"):
        found[name] = plan[name] and plan[name]["mid"]
    found["usd_per_h"] = plan["price"] and plan["price"]["mid"]
    return found


def whole(report: Any) -> Answer:
    """The one plan, with the parts of its time and its memory."""
    (plan,) = report["plans"]
    memory = plan["memory"]
    return plan_of(plan) | {
        "decode_s": plan["decode_s"],
        "prefill_s": plan["prefill_s"],
        "shares": dict(sorted(plan["shares"].items())),
        "memory": memory["items"] | {"cache": memory["cache_bytes"]},
    }


KIND = Kind("estimates", commands(lines, whole))
