"""Networks without tokens: images, video, vision, speech, encoders, recommenders; each verb, market and owned."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .asking import commands, figure
from .net import Answer, Kind

SHOWN = 3
LINES = """
plan resnet50 --rate 1000/s --e2e 100ms
plan resnet50 --task batch --chips h100-sxm5-80gb
plan resnet50 --task batch --have 1xh100-sxm5-80gb
plan resnet50 --rate 100000/s --e2e 1s --chips h100-sxm5-80gb
plan resnet50 --rate 100000/s --e2e 1s --chips h100-sxm5-80gb --batch 256
plan resnet50 --rate 100/s --e2e 1us --chips l4
plan mobilenet_v2 --task batch --chips l4,a10g,t4 --runtime compile
plan efficientnet_b0 --task batch --samples 1000000000 --deadline 24h --chips h100,l4
plan sdxl --rate 2/s --e2e 10s
plan sdxl --rate 2/s --e2e 10s --chips h100,l40s,mi300x --resolution 768x768 --steps 30 --guidance 7.5
plan sdxl --task batch --have 2xrtx-4090
plan flux.1-dev --task batch --samples 1000 --deadline 24h --chips h100,b200-sxm
plan wan2.2 --rate 100/h --e2e 5min --resolution 832x480 --frames 81 --chips h100,h200
plan hunyuanvideo --task batch --samples 100 --max-usd 500 --chips h100,b200-sxm
plan whisper-large-v3 --day 1,1,4,9,6,2 --e2e 2s --chips l4,h100
plan whisper-large-v3 --rate 5/s --e2e 5s --have 2xl4
plan bert-large --rate 500/s --e2e 50ms --percentile p99 --chips l4,t4,a10g
plan qwen3-embedding-0.6b --rate 200/s --e2e 200ms --chips l4,h100 --confidence 50% --spare 1
plan dlrm-v2 --rate 10000/s --e2e 50ms
plan dlrm-v2 --task batch --chips h100-sxm5-80gb
plan yolov8n --rate 300/s --e2e 30ms --have 4xt4
plan unet3d --task batch --samples 10000 --chips a100-sxm4-80gb,h100 --price own
plan f5-tts --rate 3/s --e2e 3s --chips l4,rtx-4090 --price spot
plan t5-xxl --rate 50/s --e2e 500ms --max-usd-per-h 20 --chips h100,l40s
compare sdxl --chips h100,l40s,mi300x
compare bert-large --chips l4,tpu-v5e,inferentia2 --rate 100/s --e2e 100ms
estimate resnet50 --chip h100 --batch 64
estimate resnet50 --chip h100 --batch 256 --training
estimate wan2.2 --chip h100 --spread ulysses=4,cfg=2 --resolution 832x480 --frames 81
estimate wan2.2 --chip h100 --spread ring=2,cfg=2 --resolution 832x480 --frames 81
estimate flux.1-dev --chip rtx-4090 --offload model
estimate flux.1-dev --chip rtx-4090 --offload sequential --precision fp8
estimate bert-large --chip l4 --settings tokens=384 --batch 8
estimate kokoro-82m --chip l4 --runtime compile
estimate alphafold3 --chip a100-sxm4-80gb
estimate sd3.5-large --chip l40s --spread tp=2
estimate t5-xxl --chip rtx-4060 --precision fp32
explain yolov8n --chip l4 --batch 16
explain dlrm-v2 --chip h100 --batch 1024 --spread tables=1
explain whisper-large-v3 --chip rtx-4090
fit hunyuanvideo --chips h100,rtx-4090,l4
fit sam_vit_h --chips t4,l4 --batch 32
"""


def networks(report: Any) -> Answer:
    """The first plans in full, the order of all, what was refused and why, and what would change the first."""
    plans = report["plans"]
    reasons = Counter(r["reason"] for r in report["refused"])
    names = ("unit", "parameters", "flops", "settings", "owned", "together", "nearest")
    return {
        **{name: report[name] for name in names},
        "order": " ".join(f"{p['chips']}x{p['chip']}" for p in plans),
        "refused": dict(sorted(reasons.items())),
        "first": [plan_of(p) for p in plans[:SHOWN]],
        "changes": {c["options"]: [c["more_per_chip"], c["chips"], c["batch"]] for c in report["changes"]},
    }


def plan_of(plan: Any) -> Answer:
    """The plan and its figures: what runs where and how, times, throughput, memory, price, chance."""
    names = (
        "chip", "chips", "replicas", "spare", "hosts", "runtime", "precision", "spread", "offload", "batch",
        "bound", "verdict", "shares", "stages", "memory", "capacity_bytes", "host_bytes", "share_of_peak",
        "chance", "load", "wait_s", "wait_p99_s", "answered_s", "answered_p99_s", "ties", "note", "job", "day",
    )  # fmt: skip
    found: Answer = {name: plan[name] for name in names}
    for name in ("latency_s", "step_s", "samples_per_s", "memory_range", "usd_per_1000"):
        found[name] = figure(plan[name])
    found["usd_per_h"] = plan["price"] and plan["price"]["mid"]
    found["joules_per_request"] = plan["energy"] and plan["energy"]["joules_per_request"]
    return found


KIND = Kind("networks", commands(LINES.strip().splitlines, networks))
