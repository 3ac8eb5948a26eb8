"""Evidence: the published results nearest to a plan, and whether the lead of a result carries over."""

from __future__ import annotations

from typing import Any

from .asking import commands
from .net import Answer, Kind

LINES = """
evidence match meta-llama/Llama-2-70b-hf --chip h200 --count 8
evidence match meta-llama/Llama-2-70b-hf --chip b200-sxm --count 8 --in 221 --out 288 --precision fp8 --task batch
evidence match meta-llama/Llama-2-70b-hf --chip mi300x --count 8 --runtime vllm --precision fp8
evidence match meta-llama/Llama-3.1-405B --chip gb200-nvl72 --count 8
evidence match meta-llama/Llama-3.1-8B --chip h100 --count 1
evidence match meta-llama/Llama-3.1-70B --chip b300-sxm --count 8 --ttft 1s --tpot 40ms
evidence match mistralai/Mixtral-8x7B-v0.1 --chip h100 --count 8
evidence match deepseek-ai/DeepSeek-V3 --chip b200-sxm --count 8
evidence match openai/gpt-oss-120b --chip mi355x --count 8
evidence match Qwen/Qwen3-32B --chip l40s --count 4 --concurrency 16
evidence match meta-llama/Llama-3.1-8B --chip rtx-4090 --task local
evidence match EleutherAI/gpt-j-6b --chip tpu-v5e --count 4
evidence claim --for meta-llama/Llama-3.1-8B --result v5.1-05440
evidence claim --for meta-llama/Llama-3.1-70B --result v5.1-05440 --against mi300x,mi325x
evidence claim --for meta-llama/Llama-2-70b-hf --result v4.0-03001 --in 221 --out 288 --precision fp8
evidence claim --for meta-llama/Llama-3.1-405B --result v5.1-05440 --task batch
evidence claim --for Qwen/Qwen3-30B-A3B --result v4.0-03001 --count 2 --against h200,mi300x
evidence claim --for meta-llama/Llama-3.1-70B --result v5.1-05868 --ttft 500ms --tpot 20ms --against b200-sxm,mi355x
evidence search h200 llama2-70b server
evidence list --benchmark llama2-70b --scenario Server --best
"""


def judged(report: Any) -> Answer:
    """What was found: marks of all axes and what follows from them."""
    if "claim" in report:
        return _claim(report)
    if "items" in report:
        return {"found": len(report["items"]), "first": [_item(i) for i in report["items"][:10]]}
    anchored = report["anchored"]
    return {
        "target": report["target"],
        "layout": report["layout"],
        "interval": report["interval"],
        "anchored": anchored and {k: v for k, v in anchored.items() if isinstance(v, float | int)},
        "matches": [_match(m) for m in report["matches"]],
    }


def _claim(report: Any) -> Answer:
    claim = report["claim"]
    return {
        "goal": report["goal"],
        "supported": claim["supported"],
        "match": _match(claim["match"]),
        "cautions": len(claim["cautions"]),
        "rivals": [
            {
                "result": rival["item"]["id"],
                **{name: rival[name] for name in ("measured", "predicted", "carried")},
                "steps": [[s["axis"], s["ratio"], s["reverses"]] for s in rival["steps"]],
                "turners": [[s["axis"], s["ratio"]] for s in rival["turners"]],
            }
            for rival in claim["rivals"]
        ],
    }


def _match(match: Any) -> Answer:
    marks = {axis["name"]: axis["mark"] for axis in match["axes"]}
    return {"result": match["item"]["id"], "chip": match["chip"], "distance": match["distance"], "axes": marks}


def _item(item: Any) -> list[Any]:
    return [item[name] for name in ("id", "chip", "chips", "result", "unit", "tokens_per_s")]


KIND = Kind("evidence", commands(LINES.strip().splitlines, judged))
