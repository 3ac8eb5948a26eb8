"""What is said about hardware: known statements and sentences with figures; true, false, and not to be settled."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from .asking import commands
from .net import Answer, Kind

SENTENCES = """
An H100 has 3.35 TB/s and 989 TFLOPS
An H100 is three times as fast as an A100
An H200 is 1.9 times an H100 on Llama 70B
Blackwell is 30 times as fast as Hopper at inference
TPUs are joined in a 4-D torus
FP8 doubles throughput
4-bit weights make a model four times as fast
A 70B model needs 140 GB, so two A100 suffice
A mixture of experts needs only its active parameters in memory
Eight GPUs answer one user eight times faster
A 70B model cannot run on RTX 4090s
Tensor parallelism over two GPUs doubles the speed
Bigger batches are always better
An MFU of 60 % is normal
An H100 gives 120 tokens/s to a single user on Llama 3 8B
An H100 gives 3000 tokens/s on Llama 3 8B
8xH100 serves Llama 3.1 70B at 24,000 tokens/s
8xH100 serves Llama 3.1 70B at 15,000 tokens/s
an H100 does 40,000 tokens/s on Llama 3.1 8B
An H100 gives each user 500 tokens/s on Llama 3.1 70B
Apple M3 Ultra can run DeepSeek R1 at 20 tokens/s
a 4090 does 800 tokens/s on Llama 3 8B
an H100 is 30x an A100
a 4090 is faster than an A100
an A100 is not faster than an H100
MI300X beats H100 in Llama 70B
B200 is 4x faster than H100 for training
the MI300X has 2.4x the memory of an H100
MI300X has 192 GB and 5.3 TB/s
A100 80GB has 3 TB/s
GB200 NVL72 delivers 1.4 exaflops
An H100 costs $0.50 per hour
Llama 70B needs 140GB of VRAM
A 4-bit 70B model fits on a single 48GB card
DeepSeek V3 fits on 8 H200
Llama 3.1 405B fits on 8 H100
Llama 3.1 405B cannot run on two H100
Groq needs 576 chips for Llama 70B
The KV cache of Llama 70B takes 2.5 MB per token
Fine-tuning a 7B model needs 112 GB
Stable Diffusion XL takes 2 seconds on a 4090
flux takes 3 seconds for 10 images on an H100
SDXL with 50 steps takes 0.1 seconds on an RTX 4090
Groq runs Llama 3 8B at over 600 tokens per second
Cerebras runs gpt-oss-120b at 3,000 tokens per second
8 Groq chips run Llama 2 70B at 300 tokens per second
8x B200 runs DeepSeek R1 at 250 tokens/s per user
One H100 serves Llama 3.1 8B at 1 million tokens per second
An H100 does not have 80 GB of memory
Gaudi 3 has 1,835 TFLOPS in FP8
An MI300X needs 4x the power of an RTX 4090
A pair of RTX 3090s can run Llama 3.3 70B in 4-bit
Two RTX 3090s are faster than one RTX 4090 for Llama 70B
Llama 3.1 70B in 8-bit needs 70 GB of memory
A single H200 can hold Llama 3.1 70B in bf16
A GB200 NVL72 has 130 TB/s of NVLink bandwidth
Cerebras is 20x faster than GPUs
A TPU v5e is cheaper than an H100 and just as fast
TPU v5e has 16 GB of HBM and 197 TFLOPS in fp32
Gaudi 3 has 1.5x H100 inference performance at half the price
Trainium2 is half the cost of H100
Whisper runs at 70x real time on an A100
Llama 3 405B took 30.84M GPU hours on H100
the moon is made of cheese
"""


def lines() -> Iterator[str]:
    """Every sentence, in order."""
    for sentence in SENTENCES.strip().splitlines():
        yield shlex.join(("claim", "check", sentence))


def checked(report: Any) -> Answer:
    """The verdict with its reason, the figures behind it, and the commands that show them."""
    return {
        "note": report["note"],
        "commands": report["commands"],
        "statements": [
            {name: s[name] for name in ("name", "verdict", "confidence", "because", "basis", "commands")}
            | {"figures": {f["what"]: [f["value"], f["unit"], f["shown"]] for f in s["figures"]}}
            for s in report["statements"]
        ],
    }


KIND = Kind("claims", commands(lines, checked))
