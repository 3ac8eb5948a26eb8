"""Random questions through all verbs, as words of the command line where a verb has a command, else as a record.

Values are mostly such as people give, sometimes what nobody should send. Each ends in an answer or a refusal with a
designed exit code, in sentences, and leaves no file that is not whole. `python -m bench.fuzz questions`.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from chipwise.api.requests.doors import read_request
from chipwise.api.requests.field import outer
from chipwise.api.requests.verbs import VERBS
from chipwise.catalog.chips import load_chips
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.catalog.trainer import Trainer
from chipwise.cli import main
from chipwise.errors import ChipwiseError
from chipwise.report.table import to_json

__all__ = ["CODES", "asked", "drawn"]

CODES = (0, 2, 3, 4)
"""Exit codes of an answer and of refusals."""
WEIGHTS = {
    "plan": 4, "fit": 24, "estimate": 40, "explain": 16, "compare": 2, "local": 8, "operators": 6, "load": 6,
    "sensitivity": 4, "frontier": 1, "simulate": 14, "train": 10, "rl": 1, "kernel": 24, "evidence": 2, "match": 4,
    "fleet": 1, "claim": 4, "check_statement": 6, "launch": 3, "replay": 2, "diff": 2, "chips": 5, "models": 5,
    "systems": 3, "runtimes": 3, "offers": 3,
}  # fmt: skip
"""How often a verb is asked: a plan takes as long as ten estimates."""
COMMANDS = ("plan", "fit", "estimate", "explain", "compare", "local", "simulate", "train", "rl", "fleet")
"""Verbs whose options on the command line are their fields."""
POSITIONAL = ("model", "saved", "fleet")
STRANGE = 0.06
"""How often a value is one that nobody should send."""
MODELS = (
    "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "openai/gpt-oss-20b", "gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-3-27b-it", "Qwen3-0.6B", "resnet50",
    "whisper-large-v3", "sdxl", "dlrm-v2", "bge-m3", "yolov8n", "Qwen3 8B", "lama 70b", "gpt-2",
    "transformer:layers=4,hidden=512,heads=8,kv_heads=2,ffn=2048,vocab=32000",
)  # fmt: skip
WORDS: Mapping[str, tuple[str, ...]] = {
    "models": MODELS,
    "rate": ("0.1/s", "2/s", "30/min", "500/s", "1e5/s", "5"),
    "in": ("1", "128", "2k", "100k", "uniform:10-900"),
    "out": ("1", "2", "200", "8k"),
    "ttft": ("10ms", "300ms", "2s", "40"),
    "tpot": ("1ms", "20ms", "100ms", "1s"),
    "e2e": ("30ms", "1s", "2min"),
    "deadline": ("1h", "2d", "30d", "12"),
    "tokens": ("10M", "1B", "100B", "15T"),
    "samples": ("1", "1000", "1M"),
    "precision": ("bf16", "fp8", "int4", "q4_k_m", "mxfp4", "best", "fp16", "nvfp4", "fp32"),
    "rollout_precision": ("bf16", "fp8"),
    "kv": ("fp8", "bf16", "q8_0"),
    "dtype": ("bf16", "fp8", "int8", "fp32"),
    "confidence": ("50%", "80%", "99%", "0.9"),
    "utilisation": ("10%", "70%", "100%"),
    "percentile": ("p50", "p95", "p99", "p99.9"),
    "prefix_hit": ("0%", "50%", "95%"),
    "host_memory": ("8GB", "64GB", "1TB"),
    "max_watts": ("300W", "10kW", "1MW"),
    "provider": ("aws", "azure", "lambda", "gcp"),
    "region": ("us-east-1", "eu-central-1", "westeurope"),
    "speculate": ("mtp", "accept=0.7,draft=3", "eagle"),
    "harness": ("vllm-bench", "none"),
    "policy": ("chunk=2048", "graphs=off", "max_num_seqs=64"),
    "layout": ("tp=2", "tp=2,pp=4", "ep=8", "zero=3", "micro_batch=4"),
    "spread": ("cfg=2", "ulysses=4", "dp=2"),
    "resolution": ("512x512", "1280x720", "64"),
    "offload": ("none", "model", "sequential"),
    "counts": ("8", "64,128", "3", "1024"),
    "method": ("full", "lora", "qlora"),
    "memory": ("offload", "recompute=full"),
    "owning": ("capex_usd=30000", "years=3", "usd_per_kwh=0.2"),
    "price_of": ("h100=2.5", "l4=0.7,b200=5"),
    "set": ("hbm=2TB/s", "memory=96GB", "bf16=500TFLOPS", "link=1TB/s"),
    "context": ("1k", "32k", "1M"),
    "shape": ("512",),
    "text": (
        "An H100 decodes Llama-3.1-70B at 40 tokens/s", "B200 is twice as fast as H100", "8x H200 train Llama-3.1-8B "
        "at 50% MFU", "a 4090 runs Qwen3-8B at 100 tokens/s in 4 bits", "nothing of the kind",
    ),
    "result": ("tpot=20ms", "throughput=3000", "ttft=1s,tpot=30ms"),
    "day": ("1,2,3,4", "10/s,20/s"),
    "cv": ("0", "1", "in=1.2,out=0.6"),
    "seq": ("2048", "8k", "128k"),
    "share": ("50%", "1g.10gb"),
    "software": ("2025-10", "2024-06"),
    "algorithm": ("ring", "tree", "grpo"),
    "for": ("vllm", "sglang", "kubernetes", "llama.cpp", "diffusers"),
    "use": ("chat", "code"),
    "sharers": ("1", "4"),
    "images": ("1", "2x1280x720"),
    "common_prefix": ("0", "500"),
    "train_share": ("50%", "25%"),
    "longest": ("8k", "1000"),
    "fleet": (
        '{"demand": [{"model": "Qwen/Qwen3-8B", "rate": "5/s"}], "supply": [{"chip": "h100"}]}',
        '{"demand": [{"model": "gpt-oss-120b", "tokens": "1B"}], "supply": [{"chip": "h200"}, {"price": "api"}]}',
        '{"demand": [{"model": "Qwen3 8B", "day": [1, 9]}], "supply": [{"chip": "l4", "count": 3, "price": "own"}]}',
        "fleet.toml", "x = 1",
    ),
}  # fmt: skip
"""What is given for fields of text, by name."""


def drawn(dice: random.Random, strange: tuple[Any, ...], saved: str) -> tuple[str, dict[str, Any]]:
    """A verb and the fields of a question; `saved` is a file that --save wrote."""
    verb = dice.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
    hints, given = typing.get_type_hints(VERBS[verb]), {}
    for f in fields(VERBS[verb]):  # type: ignore[arg-type]
        name, needed = outer(f), f.default is MISSING
        often = needed or name in ("model", "chip", "chips", "rate", "op", "models", "have")
        if dice.random() < (0.97 if needed else 0.6 if often else 0.04):
            given[name] = dice.choice(strange) if dice.random() < STRANGE else _value(name, hints[f.name], dice, saved)
    if verb in ("plan", "compare", "frontier", "rl") and "have" not in given:
        given.setdefault("chips", _chips(dice))  # all chips of the market take seconds
    return verb, given


def _value(name: str, hint: Any, dice: random.Random, saved: str) -> Any:
    options = [o for o in (typing.get_args(hint) or (hint,)) if o is not type(None)]
    if typing.get_origin(hint) is typing.Literal:
        return dice.choice(typing.get_args(hint))
    if typing.get_origin(options[0]) is typing.Literal:
        return dice.choice(typing.get_args(options[0]))
    if options[0] is bool:
        return dice.random() < 0.5
    if name == "requests":  # each takes its time
        return dice.choice((0, 1, 30, 500, -1))
    if options[0] is int:
        return dice.choice((0, 1, 2, 3, 4, 8, 8, 64, 500, 4096, -1, 10**6))
    if options[0] is float:
        return dice.choice((0.0, 0.5, 1.0, 3.0, 20.0, 500.0, -2.0, 1e9))
    named: Mapping[str, typing.Callable[[], str]] = {
        "model": lambda: dice.choice(MODELS),
        "chip": lambda: _chips(dice, 1),
        "chips": lambda: _chips(dice),
        "have": lambda: f"{dice.choice(('', '2x', '8x'))}{_chips(dice, 1)}",
        "runtime": lambda: dice.choice([*all_software(Runtime)]),
        "trainer": lambda: dice.choice([*all_software(Trainer)]),
        "saved": lambda: saved,
        "before": lambda: saved,
        "after": lambda: saved,
    }
    if name in named:
        return named[name]()
    return dice.choice(WORDS.get(name, ("1", "8", "50%", "fp8", "x")))


def _chips(dice: random.Random, most: int = 2) -> str:
    usual = ("h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm", "mi300x", "l4", "rtx-4090", "h100", "8xh100", "4090")
    every = [*load_chips()]
    return ",".join(dice.choice(usual if dice.random() < 0.5 else every) for _ in range(dice.randint(1, most)))


def asked(verb: str, given: Mapping[str, Any], folder: Path, dice: random.Random) -> tuple[str, list[str]]:
    """What became of a question, "answered" or the exit code, and what was wrong with how it was told."""
    faults: list[str] = []
    if verb not in COMMANDS or any(not isinstance(v, str | int | float) for v in given.values()):
        try:
            to_json(read_request(verb, given).run())
        except ChipwiseError as error:
            return f"refused {error.exit_code}", [*_told(str(error)), *_code(error.exit_code)]
        return "answered", faults
    words = [verb, *(str(given[name]) for name in POSITIONAL if name in given)]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if name not in POSITIONAL and value is not False:
            words += [option] if value is True else [f"{option}={value}"]
    keeps = dice.random() < 0.05
    kept = folder / "kept.json"
    words += [*(["--format", dice.choice(("json", "csv", "md"))] if dice.random() < 0.3 else [])]
    words += [f"--save={kept}"] if keeps else []
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    if keeps:
        left = [p.name for p in folder.iterdir()]
        if left != ["kept.json"] * (code == 0):
            faults.append(f"files left after exit {code}: {left}")
        for path in folder.iterdir():
            json.loads(path.read_text("utf-8"))
            path.unlink()
    if code:
        faults += _told(err.getvalue())
    return ("answered" if code == 0 else f"refused {code}"), [*faults, *_code(code)]


def _code(code: int) -> Iterator[str]:
    if code not in (*CODES, 5):  # 5: an extra that is not installed here
        yield f"exit code {code}"


def _told(said: str) -> Iterator[str]:
    if "Traceback" in said or not said.strip():
        yield f"a refusal that says nothing: {said[-200:]}"
    if len(said) > 5_000 or any(not (c.isprintable() or c == "\n") for c in said):
        yield "a refusal that cannot be printed"
