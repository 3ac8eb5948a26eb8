"""Searches: the whole market or some of it, by task, target, load, spread, tactics and price."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .asking import commands, figure
from .estimates import plan_of
from .net import Answer, Kind

SHOWN = 3
LINES = """
plan meta-llama/Llama-3.1-70B --rate 10/s --ttft 1s --tpot 40ms
plan meta-llama/Llama-3.1-8B --rate 30/s
plan meta-llama/Llama-3.1-405B --rate 2/s --tpot 60ms
plan Qwen/Qwen3-32B --rate 5/s --in 4k --out 1k
plan Qwen/Qwen3-235B-A22B --rate 4/s
plan openai/gpt-oss-120b --rate 20/s --ttft 500ms --tpot 20ms
plan deepseek-ai/DeepSeek-V3 --rate 10/s --max-chips 64
plan mistralai/Mixtral-8x7B-v0.1
plan google/gemma-3-27b-it --rate 3/s --in 8k --out 200
plan meta-llama/Llama-3.1-8B --tpot 1ms
plan meta-llama/Llama-3.1-70B --task batch
plan Qwen/Qwen3-30B-A3B --task batch --in 20k --out 100
plan moonshotai/Kimi-K2-Instruct --task batch --chips h200,b200-sxm,mi355x
plan meta-llama/Llama-3.1-8B --task local
plan openai/gpt-oss-20b --task local --tpot 20ms
plan Qwen/Qwen3-32B --task local --precision int4
plan meta-llama/Llama-3.1-70B --task local --have 2xrtx-4090 --precision int4
plan meta-llama/Llama-3.1-70B --have 8xh100-sxm5-80gb --rate 2/s
plan Qwen/Qwen3-32B-FP8 --have 4xl40s,2xrtx-6000-ada --rate 1/s
plan meta-llama/Llama-3.1-405B --have 8xh200
plan openai/gpt-oss-120b --chips h100,h200,b200-sxm --rate 10/s --disaggregate
plan meta-llama/Llama-3.1-70B --chips h100,mi300x --rate 5/s --disaggregate --in 8k --out 300
plan meta-llama/Llama-3.1-70B --chips h100,h200 --rate 5/s --speculate accept=0.7,draft=3
plan Qwen/Qwen3-8B --chips l4,l40s,a10g --rate 5/s --speculate accept=60%,draft=4,with=lookup
plan meta-llama/Llama-3.1-70B --chips h100,b200-sxm,tpu-v6e --rate 10/s --prefix-hit 50%
plan Qwen/Qwen3-32B --chips h100,mi300x --rate 8/s --prefix-hit 30% --common-prefix 1k
plan meta-llama/Llama-3.1-8B --chips h100,l4,a100-sxm4-80gb --rate 20/s --cv 0.8
plan openai/gpt-oss-120b --chips h100,mi300x,gaudi3 --rate 10/s --cv in=1.2,out=0.6
plan meta-llama/Llama-3.1-8B --chips h100,l40s --rate 10/s --price own
plan meta-llama/Llama-3.1-70B --chips h100 --price own --owning capex_usd=30000,years=4,usd_per_kwh=0.12,pue=1.3
plan meta-llama/Llama-3.1-8B --rate 10/s --price spot
plan meta-llama/Llama-3.1-70B --chips h100,h200,a100-sxm4-80gb --day 2,2,1,4,9,6
plan meta-llama/Llama-3.1-8B --chips h100,l4 --rate 50/s --spare 1
plan meta-llama/Llama-3.1-70B --chips h100,b200-sxm --rate 5/s --precision fp8 --kv fp8
plan meta-llama/Llama-3.1-8B --chips h100,h200,b200-sxm --runtime best --rate 20/s
plan meta-llama/Llama-3.1-70B --chips h100 --runtime trtllm --software v5.0 --rate 5/s
plan Qwen/Qwen3-235B-A22B --chips h200,mi355x,tpu-v7x,trainium2 --rate 4/s --max-usd-per-h 200
plan meta-llama/Llama-3.1-8B --chips h100 --set hbm=4TB/s,bf16=1.2PFLOPS --policy memory_share=0.95,max_sequences=64
compare deepseek-ai/DeepSeek-V3 --chips h200,b200-sxm,b300-sxm,mi355x --rate 5/s
compare openai/gpt-oss-20b --chips groq-lpu1,sn40l,wse3-cs3,tpu-v5e,trainium2,gaudi3
plan meta-llama/Llama-3.1-405B --chips rtx-4090
"""


def ranked(report: Any) -> Answer:
    """The first plans with what distinguishes them, the order of all, what was refused and why."""
    plans = report["plans"]
    reasons = Counter(r["reason"] for r in report["refused"])
    return {
        "order": " ".join(f"{p['chips']}x{p['chip']}" for p in plans),
        "refused": dict(sorted(reasons.items())),
        "considered": report["considered"],
        "rejected": dict(sorted(report["rejected"].items())),
        "first": [plan_of(p) | _searched(p) for p in plans[:SHOWN]],
    }


def _searched(plan: Any) -> Answer:
    """What a search adds to a plan: load, tails, ties, the nearest published result."""
    nearest, day = plan["nearest"], plan["day"]
    return {
        "largest_requests_per_s": plan["largest_requests_per_s"],
        "usd_per_million_in": figure(plan["usd_per_million_in"]),
        "system": plan["system"],
        "spare": plan["spare"],
        "prompt_workers": plan["prompt_workers"],
        "on_front": plan["on_front"],
        "ties": plan["ties"],
        "tails": {q: [t["ttft_s"], t["tpot_s"]] for q, t in plan["tails"].items()},
        "nearest": nearest and [nearest["result"], nearest["distance"], nearest["anchored_tokens_per_s"]],
        "day": day,
    }


KIND = Kind("search", commands(LINES.strip().splitlines, ranked))
