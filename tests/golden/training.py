"""Training plans: dense models, mixtures of experts, adapters, pinned layouts, on chips of several makers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .asking import commands, figure
from .net import Answer, Kind

SHOWN = 2
LINES = """
plan meta-llama/Llama-3.1-8B --task train
plan meta-llama/Llama-3.1-8B --task train --tokens 1T --chips h100,tpu-v5p --counts 64
plan meta-llama/Llama-3.1-8B --task train --chips trainium2,mi300x,gaudi3 --counts 64,256
plan meta-llama/Llama-3.1-8B --task train --chips a100-sxm4-80gb --counts 8
plan meta-llama/Llama-3.1-8B --task train --chips h100 --counts 16 --layout tp=2,zero=1
plan meta-llama/Llama-3.1-8B --task train --chips h100 --counts 8 --layout recompute=full,zero=3
plan meta-llama/Llama-3.1-8B --task train --chips h100 --counts 64 --seq 32k --global-batch 128
plan meta-llama/Llama-3.1-8B --task train --chips h100,b200-sxm --counts 64 --precision fp8
plan meta-llama/Llama-3.1-8B --task train --chips b200-sxm,gb200-nvl72 --counts 128 --precision nvfp4
plan meta-llama/Llama-3.1-8B --task train --chips tpu-v5e,tpu-v6e --counts 256
plan meta-llama/Llama-3.1-8B --task train --chips h100 --counts 8,64 --curves
plan meta-llama/Llama-3.1-70B --task train --chips h100,h200 --counts 256
plan meta-llama/Llama-3.1-70B --task train --chips tpu-v5p,tpu-v6e,tpu-v7x --counts 512
plan meta-llama/Llama-3.1-70B --task train --chips trainium2 --counts 256
plan meta-llama/Llama-3.1-70B --task train --chips mi300x,mi355x --counts 64
plan meta-llama/Llama-3.1-70B --task train --chips h100 --counts 128 --layout tp=8,pp=4,schedule=interleaved
plan meta-llama/Llama-3.1-70B --task train --chips h100 --counts 512 --network nic=200Gb/s,oversubscription=3,leaf=16
plan Qwen/Qwen2.5-72B --task train --chips h100 --counts 256 --failures mtbf=20000h,save=120s,block=60s,restart=20min
plan meta-llama/Llama-3.1-70B --task train --tokens 100B --chips h100,b200-sxm --deadline 7d
plan meta-llama/Llama-3.1-70B --task train --tokens 10B --chips h100,mi300x --counts 64,128 --max-usd 50000
plan meta-llama/Llama-3.1-405B --task train --tokens 15T --chips h100 --counts 16384
plan meta-llama/Llama-3.1-405B --task train --chips gb200-nvl72,gb300-nvl72 --counts 576
plan meta-llama/Llama-3.1-405B --task train --chips h100 --counts 1024 --layout tp=8,pp=16,recompute=selective
plan openai/gpt-3-175b --task train --tokens 300B --seq 2048 --chips a100-sxm4-80gb,h100 --counts 512
plan mistralai/Mixtral-8x7B-v0.1 --task train --chips h100 --counts 64
plan mistralai/Mixtral-8x22B-v0.1 --task train --chips h100,mi300x --counts 128
plan Qwen/Qwen3-30B-A3B --task train --chips h100,mi300x --counts 64 --layout ep=8
plan Qwen/Qwen3-235B-A22B --task train --chips h100,mi355x --counts 256
plan deepseek-ai/DeepSeek-V3 --task train --tokens 14.8T --chips h100,b200-sxm --counts 2048
plan deepseek-ai/DeepSeek-V2-Lite --task train --chips a100-sxm4-80gb --counts 32
plan Qwen/Qwen3-14B --task train --have 64xh100,32xa100-sxm4-80gb --tokens 100B
plan Qwen/Qwen2.5-7B --task train --tokens 100B --chips h100 --counts 32 --price own
plan google-bert/bert-large-uncased --task train --tokens 10B --chips v100-sxm2-32gb,a100-sxm4-40gb --counts 8
plan openai-community/gpt2-xl --task train --tokens 10B --chips a100-sxm4-40gb,l40s --counts 8
plan meta-llama/Llama-3.1-8B --task finetune
plan meta-llama/Llama-3.1-8B --task finetune --method full --chips h100 --counts 8
plan meta-llama/Llama-3.1-8B --task finetune --method qlora --chips rtx-4090,l4 --counts 1
plan meta-llama/Llama-3.1-70B --task finetune --method lora --chips h100,mi300x --counts 8
plan meta-llama/Llama-3.1-70B --task finetune --method qlora --chips h200,a100-sxm4-80gb --counts 1,2
plan Qwen/Qwen3-32B --task finetune --chips h100 --counts 8 --layout offload=1,recompute=full --method full
plan Qwen/Qwen3-30B-A3B --task finetune --chips h100,h200 --counts 8
plan meta-llama/Llama-3.1-405B --task train --chips h100 --counts 8
"""


def ranked(report: Any) -> Answer:
    """The first plans in full, the order of all, scaling, what was refused and why."""
    plans = report["plans"]
    reasons = Counter(r["reason"] for r in report["refused"])
    found: Answer = {
        "order": " ".join(f"{p['chips']}x{p['chip']}" for p in plans),
        "refused": dict(sorted(reasons.items())),
        "considered": report["considered"],
        "rejected": dict(sorted(report["rejected"].items())),
        "first": [_plan_of(p) for p in plans[:SHOWN]],
    }
    if report["scaling"]:
        found["scaling"] = {f"{s['kind']} {s['chip']} {s['chips']}": s["step_s"] for s in report["scaling"]}
        found["takes_over"] = {chip: [t["chips"], t["cause"]] for chip, t in report["takes_over"].items()}
    return found


def _plan_of(plan: Any) -> Answer:
    names = (
        "chip", "chips", "system", "precision", "stack", "global_batch", "seq", "mfu", "hfu", "goodput",
        "checkpoint_s", "energy_kwh", "memory_bytes", "capacity_bytes", "verdict", "bound", "on_front", "ties",
        "memory", "shares",
    )  # fmt: skip
    found: Answer = {name: plan[name] for name in names}
    for name in ("step_s", "tokens_per_s", "days", "usd"):
        found[name] = figure(plan[name])
    found["usd_per_h"] = plan["price"] and plan["price"]["mid"]
    return {"layout": plan["layout"]["label"], **found}


KIND = Kind("training", commands(LINES.strip().splitlines, ranked))
