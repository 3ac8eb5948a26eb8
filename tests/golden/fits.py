"""Fits: memory by kind, smallest counts, largest batches and contexts, of many architectures on many chips."""

from __future__ import annotations

from typing import Any

from .asking import commands
from .net import Answer, Kind

LINES = """
fit meta-llama/Llama-3.1-8B
fit meta-llama/Llama-3.1-70B
fit meta-llama/Llama-3.1-405B --chips h100,h200,b200-sxm,mi300x,mi355x,gb200-nvl72
fit meta-llama/Llama-3.1-70B --chips rtx-4090,rtx-5090,m4-max,m3-ultra --precision int4
fit meta-llama/Llama-3.1-70B --chips h100,a100-sxm4-80gb --count 2 --context 32k
fit meta-llama/Llama-3.1-70B --chips h100,mi300x --batch 64 --context 8k --kv fp8
fit meta-llama/Llama-3.1-8B --chips l4,t4,a10g --lora rank=16,count=8,targets=q_proj+v_proj
fit meta-llama/Llama-3.1-8B --chips h100 --lora rank=64,count=100
fit meta-llama/Llama-3.1-8B --chips h100,l40s --policy memory_share=0.95,max_sequences=64
fit meta-llama/Llama-3.1-8B --chips h100 --set memory=96GB
fit meta-llama/Llama-4-Scout-17B-16E-Instruct --chips h100,b200-sxm,tpu-v6e,trainium2
fit mistralai/Mixtral-8x22B-v0.1 --chips h100,mi300x,gaudi3,tpu-v5e
fit Qwen/Qwen3-32B-FP8 --chips l40s,rtx-6000-ada,rtx-pro-6000-ws,h100
fit Qwen/Qwen3-235B-A22B --chips h200,mi325x,tpu-v7x,trainium2 --count 8
fit Qwen/Qwen3-30B-A3B --chips rtx-3090,rtx-4090,rx-7900-xtx,arc-b580 --context 32k
fit Qwen/Qwen3-Next-80B-A3B-Instruct --chips h100,b200-sxm --context 128k --batch 16
fit Qwen/Qwen3.5-397B-A17B --chips h200,b300-sxm,mi355x
fit deepseek-ai/DeepSeek-V3 --chips h100,h200,b200-sxm,mi300x
fit deepseek-ai/DeepSeek-V3.2 --chips h200,b200-sxm --context 64k --batch 32
fit deepseek-ai/DeepSeek-V4-Pro --chips b200-sxm,b300-sxm,gb300-nvl72
fit moonshotai/Kimi-K2-Instruct --chips h200,b200-sxm,mi355x --runtime sglang
fit openai/gpt-oss-120b --chips h100,rtx-pro-6000-ws,gb10-dgx-spark,igpu-radeon-8060s
fit openai/gpt-oss-20b --chips rtx-4080,m4,m2-max,jetson-thor-t5000 --runtime llama.cpp
fit google/gemma-3-27b-it --chips rtx-4090,l40s,tpu-v5e --context 128k
fit google/gemma-4-31b-it --chips h100,m5-max
fit nvidia/Nemotron-H-56B-Base-8K --chips h100,mi300x
fit zai-org/GLM-4.5 --chips h200,b200-sxm --runtime trtllm
fit microsoft/phi-4 --chips xeon-8480plus,epyc-9654,graviton4
fit meta-llama/Llama-3.1-8B --chips groq-lpu1,sn40l,wse3-cs3,ipu-mk2-gc200,tt-wormhole-n300,qaic100-ultra
fit nvidia/Llama-3.1-70B-Instruct-NVFP4 --chips b200-sxm,rtx-5090
"""


def fitted(report: Any) -> Answer:
    """By chip: whether it fits, on what, the memory by kind, the room that is left and what would mend a no."""
    found: Answer = {}
    for f in report["fits"]:
        memory = f["memory"]
        found[f["chip"]] = {
            "verdict": f["verdict"],
            "chips": f["chips"],
            "layout": f["layout"]["label"],
            "runtime": f["runtime"],
            "largest_batch": f["largest_batch"],
            "largest_context": f["largest_context"],
            "missing": f["missing_bytes"],
            "capacity": memory["capacity_bytes"],
            "withheld": memory["withheld_bytes"],
            "cache": memory["cache_bytes"],
            "cache_tokens": memory["cache_tokens"],
            "mends": len(f["mend"]),
            **memory["items"],
        }
    model = report["model"]
    counted = {name: model[name] for name in ("params", "active_params", "weight_bytes", "kv_bytes_per_token")}
    return {"model": counted, **found, **{r["chip"]: r["reason"] for r in report["refused"]}}


KIND = Kind("fits", commands(LINES.strip().splitlines, fitted))
