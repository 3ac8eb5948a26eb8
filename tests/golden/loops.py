"""Reinforcement learning on one fleet: steps, days and dollars, together and apart."""

from __future__ import annotations

from typing import Any

from .asking import commands, figure
from .net import Answer, Kind

LINES = """
rl Qwen/Qwen3-1.7B --chips h100 --counts 8
rl Qwen/Qwen3-8B --chips h100,h200,mi300x --counts 16,64
rl Qwen/Qwen3-8B --chips h100 --counts 16 --algorithm ppo --placement together --prompts 128 --out 8k
rl meta-llama/Llama-3.1-8B --chips b200-sxm --counts 8 --method lora --rollout-precision fp8
rl Qwen/Qwen3-30B-A3B --chips h200 --counts 32 --placement apart --train-share 50% --cv 1.2
rl Qwen/Qwen3-14B --price own --steps 1000 --longest 8k
rl meta-llama/Llama-3.1-70B --chips h100 --counts 2
"""


def loops(report: Any) -> Answer:
    """All plans: who trains and who samples, the parts of a step, days, dollars, what bounds it."""
    return {
        "answers": report["answers"],
        "refused": {r["chip"]: r["reason"] for r in report["refused"]},
        "plans": [_plan(p) for p in report["plans"]],
    }


def _plan(plan: Any) -> Answer:
    names = (
        "chip", "chips", "placement", "train_chips", "rollout_chips", "layout", "tp", "replicas", "concurrency",
        "trainer", "runtime", "precision", "rollout_precision", "parts", "idle", "drained", "host_bytes", "bound",
    )  # fmt: skip
    found: Answer = {name: plan[name] for name in names}
    for name in ("step_s", "tokens_per_s", "days", "usd"):
        found[name] = figure(plan[name])
    found["usd_per_h"] = plan["price"] and plan["price"]["mid"]
    return found


KIND = Kind("rl", commands(LINES.strip().splitlines, loops))
