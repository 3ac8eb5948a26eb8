"""Files that start a saved plan: by target a digest of each file and the lines that a user would look for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from .asking import printed, ran
from .net import Answer, Kind

LINES = """
plan meta-llama/Llama-3.1-8B --chips h100-sxm5-80gb --rate 5/s => vllm, sglang, kubernetes, skypilot, terraform
plan meta-llama/Llama-3.1-70B --chips h200 --rate 3/s --precision fp8 --runtime trtllm => trtllm
plan Qwen/Qwen3-235B-A22B --chips h200 --rate 2/s --disaggregate => dynamo
local --have rtx-4090 --models Qwen/Qwen3-8B => llama.cpp
plan meta-llama/Llama-3.1-8B --chips trainium2 --rate 2/s => neuronx
plan meta-llama/Llama-3.1-8B --task train --chips h100 --counts 64 => megatron, torchtitan, deepspeed, llama-factory
plan meta-llama/Llama-3.1-8B --task train --chips tpu-v5p --counts 64 => maxtext
plan meta-llama/Llama-3.1-70B --task finetune --chips h100 --counts 8 => trl, axolotl
plan Qwen/Qwen3-32B --chips mi300x --rate 2/s --runtime sglang => sglang
plan meta-llama/Llama-3.1-8B --task finetune --method qlora --chips rtx-4090 --counts 1 => unsloth, llama-factory
estimate resnet50 --chip h100 --batch 64 => torch
estimate sdxl --chip l40s => diffusers
rl Qwen/Qwen3-8B --chips h100 --counts 16 => verl
estimate flux-dev --chip m3-ultra --runtime mlx => mlx
estimate Qwen/Qwen3-8B --chip m3-ultra --runtime mlx --precision mlx_4bit => mlx
estimate bert-large --chip tpu-v5e => jax, vllm
plan BAAI/bge-reranker-v2-m3 --chips l4 --rate 100/s --settings tokens=512 => tei
plan Qwen/Qwen3-Embedding-8B --chips mi300x --rate 100/s --settings tokens=256 => vllm
"""
SHOWN = 40
DIGEST = 12  # hexadecimal digits: two texts alike by chance are not to be feared
HEAD = re.compile(r"^# ---- (.+) ----\n", re.MULTILINE)
KEY = re.compile(r"\s*(# (predicted|this client)|--?[a-z][a-z-]*|[\w.]+ ?[:=] ?\S)")
"""Lines that set something, or say what is predicted."""


def launches() -> Iterator[tuple[str, Answer]]:
    """Each target of each plan."""
    with TemporaryDirectory() as folder:
        for line in LINES.strip().splitlines():
            question, targets = line.split(" => ")
            saved = Path(folder) / "saved.json"
            saved.unlink(missing_ok=True)
            printed(f"{question} --save {saved}")
            for target in targets.split(", "):
                yield f"{question} => {target}", _files(saved, target)


def _files(saved: Path, target: str) -> Answer:
    code, out, complaints = ran(f"launch {saved} --for {target}")
    if code:
        return {"exit": code, "said": " ".join(complaints.split())}
    head, *parts = HEAD.split(out)
    assert not head, f"launch --for {target} begins with {head[:80]!r}"
    return {name: _file(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _file(text: str) -> Answer:
    lines = text.strip().splitlines()
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGEST]
    return {"digest": digest, "lines": len(lines), "key": [x.strip() for x in lines if KEY.match(x)][:SHOWN]}


KIND = Kind("launch", launches)
