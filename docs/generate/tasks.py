"""A hundred tasks for agents, each with the call that answers it, how the answer is read, and what is right.

What is right is computed from whole records of the library, or is data of the catalogue; an agent has the short answers
of tools alone. A task whose first call is refused is answered by following the error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from chipwise.api.requests.verbs import question
from chipwise.catalog.chips import load_chips
from chipwise.catalog.statements import load_statements

__all__ = ["TASKS", "Task", "tasks_table"]

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A task: its kind, what a person writes, the first call, how the answer is read, and what is right. `then` is the
    call after the first: of the first answer, or of the text of its refusal."""

    kind: str
    text: str
    tool: str
    given: Mapping[str, Any]
    read: Callable[[Answer], Any]
    right: Callable[[], Any]
    then: Callable[[Any], tuple[str, dict[str, Any]]] | None = None
    refused: bool = False


SMALL, MIDDLE, LARGE = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-70B"
EXPERTS = "Qwen/Qwen3-30B-A3B"


def _record(verb: str, given: Mapping[str, Any]) -> Any:
    return _answered(verb, json.dumps(given, sort_keys=True))


@cache
def _answered(verb: str, given: str) -> Any:
    """The answer to a question written as JSON; asked once."""
    return question(verb, json.loads(given)).run()


def _choose() -> list[Task]:
    found = []
    for model in (SMALL, MIDDLE, EXPERTS):
        for chips in (["h100", "l40s"], ["h200", "mi300x"], ["b200-sxm", "h100"]):
            for rate, tpot in ((2, "50ms"), (10, "40ms")):
                given = {"model": model, "chips": chips, "rate": rate, "tpot": tpot}
                which = " or ".join(chips)
                text = f"Serve {model} at {rate} requests/s within {tpot} per token: {which}, and how many?"
                found.append(
                    Task(
                        "choose",
                        text,
                        "plan",
                        given,
                        lambda a: (a["plans"][0]["chip"], a["plans"][0]["chips"]),
                        lambda given=given: (_first(given).chip, _first(given).chips),
                    )
                )
    return found


def _first(given: Mapping[str, Any]) -> Any:
    return _record("plan", given).plans[0]


def _size() -> list[Task]:
    found = []
    for model in (SMALL, MIDDLE, LARGE, EXPERTS):
        for chip in ("h100", "l4", "rtx-4090", "mi300x"):
            given = {"model": model, "chips": chip}
            found.append(
                Task(
                    "size",
                    f"How many {chip} hold {model}, if any number does?",
                    "fit",
                    given,
                    lambda a: (a["fits"][0]["verdict"] != "no", a["fits"][0]["chips"]),
                    lambda given=given: _fit(given),
                )
            )
        given = {"model": model}
        found.append(
            Task(
                "size",
                f"How many billions of parameters has {model}, and how many GB are its weights?",
                "models",
                given,
                lambda a: (a["models"][0]["params_billion"], a["models"][0]["weights_gb"]),
                lambda model=model: _weights(model),
            )
        )
    return found


def _fit(given: Mapping[str, Any]) -> tuple[bool, int]:
    first = _record("fit", given).fits[0]
    return first.verdict != "no", first.chips


def _weights(model: str) -> tuple[float, float]:
    m = _record("models", {"model": model}).models[0]
    return _three(m.params / 1e9), _three(m.weight_bytes / 1e9)


def _three(value: float) -> float:
    return float(f"{value:.3g}")


SAYINGS = (
    ("Aren't TPU pods a four-dimensional torus?", "torus-4d"),
    ("A CUDA core does one operation per clock cycle.", "one-op-per-cycle"),
    ("Moving our training to TPUs saves millions over some months.", "tpu-saves-millions"),
    ("Trainium is cheaper than A100s.", "trainium-cheaper"),
    ("The whole model goes onto a single wafer of Cerebras.", "wafer-entire-model"),
    ("Groq guarantees deterministic latency.", "groq-deterministic"),
    ("Groq is quick because of its high clock.", "groq-clock"),
    ("Use autocast: it is faster and takes less memory.", "autocast"),
    ("Our H100s do 1,979 TFLOPS in bf16.", "sparse-peaks"),
    ("The H100 is 3x an A100.", "h100-3x-a100"),
    ("FP8 halves latency.", "fp8-halves-latency"),
    ("FP8 doubles throughput.", "fp8-doubles-throughput"),
    ("4-bit makes it four times as fast.", "int4-four-times"),
    ("MoE models keep only the active experts in memory.", "moe-active-memory"),
    ("NVLink gives 900 GB/s between two H100.", "nvlink-900"),
    ("Blackwell is 30x Hopper.", "b200-30x"),
    ("Eight GPUs make it eight times faster for one user.", "eight-gpus-eight-times"),
    ("Batching is free.", "batching-free"),
    ("The KV cache is negligible.", "cache-negligible"),
    ("nvidia-smi says 100 %, so the GPU is fully used.", "gpu-utilisation"),
)


def _refute() -> list[Task]:
    return [
        Task(
            "refute",
            f"Somebody says: “{text}” True?",
            "check_statement",
            {"text": text},
            lambda a: a["statements"][0]["verdict"],
            lambda name=name: load_statements()[name].verdict,
        )
        for text, name in SAYINGS
    ]


def _launch() -> list[Task]:
    found = []
    for model, chip, tp in ((SMALL, "h100", 1), (LARGE, "h100", 4), (MIDDLE, "h200", 2), (LARGE, "mi300x", 2)):
        for tool, flag in (("vllm", "--tensor-parallel-size"), ("sglang", "--tp-size")):
            given = {"model": model, "chip": chip, "tp": tp, "runtime": tool}
            found.append(
                Task(
                    "launch",
                    f"Write what starts {model} with {tool} on {tp}x {chip}.",
                    "estimate",
                    given,
                    lambda a, flag=flag: _parallel(a["files"]["serve.sh"], flag),
                    lambda model=model, tp=tp: (model, tp),
                    lambda a, tool=tool: ("launch", {"saved": a["whole_answer"], "for": tool}),
                )
            )
    found.append(
        Task(
            "launch",
            f"Kubernetes files for {SMALL} on one H100.",
            "estimate",
            {"model": SMALL, "chip": "h100"},
            lambda a: any(text.lstrip().startswith(("apiVersion", "#")) for text in a["files"].values()),
            lambda: True,
            lambda a: ("launch", {"saved": a["whole_answer"], "for": "kubernetes"}),
        )
    )
    return found


def _parallel(script: str, flag: str) -> tuple[str, int]:
    """The model that a script serves, and over how many devices each replica is spread."""
    words = script.replace("\\\n", " ").split()
    model = next(w for w in words if "/" in w and not w.startswith(("#", "-")) and words[words.index(w) - 1] in STARTS)
    return model, int(words[words.index(flag) + 1]) if flag in words else 1


STARTS = ("serve", "--model-path", "--model")


def _debug() -> list[Task]:
    found = []
    for model, chip, tp, load in (
        (SMALL, "h100", 1, 1),
        (SMALL, "h100", 1, 128),
        (SMALL, "l4", 1, 8),
        (LARGE, "h100", 8, 1),
        (LARGE, "h100", 4, 64),
        (MIDDLE, "mi300x", 1, 32),
        (EXPERTS, "h200", 1, 64),
    ):
        given = {"model": model, "chip": chip, "tp": tp, "concurrency": load}
        found.append(
            Task(
                "debug",
                f"{model} on {tp}x {chip} with {load} requests at once: what bounds it?",
                "explain",
                given,
                lambda a: max(a["plans"][0]["shares_of_time"].items(), key=lambda kv: kv[1])[0],
                lambda given=given: _bound(given),
            )
        )
    found += [
        Task(
            "debug",
            f"Plan {SMALL} with 40 milliseconds a token, written as a bare number.",
            "plan",
            {"model": SMALL, "chips": "h100", "tpot": 40},
            lambda a: a["plans"][0]["chip"],
            lambda: _first({"model": SMALL, "chips": "h100", "tpot": "40ms"}).chip,
            lambda refusal: ("plan", {"model": SMALL, "chips": "h100", "tpot": _quoted(refusal)}),
            refused=True,
        ),
        Task(
            "debug",
            "The size of llama-3.1-8 B, with a slip in its name.",
            "fit",
            {"model": "llama-3.1-8bb", "chips": "l4"},
            lambda a: a["fits"][0]["chips"],
            lambda: _fit({"model": SMALL, "chips": "l4"})[1],
            lambda refusal: ("fit", {"model": _nearest(refusal), "chips": "l4"}),
            refused=True,
        ),
        Task(
            "debug",
            "Plan with a field that is called otherwise here.",
            "fit",
            {"model": SMALL, "chip": "l4"},
            lambda a: a["fits"][0]["chips"],
            lambda: _fit({"model": SMALL, "chips": "l4"})[1],
            lambda refusal: ("fit", {"model": SMALL, "chips": "l4"}) if "chips" in refusal else ("chips", {}),
            refused=True,
        ),
    ]
    return found


def _bound(given: Mapping[str, Any]) -> str:
    shares: dict[str, float] = _record("explain", given).plans[0].shares
    return max(shares, key=lambda name: shares[name])


def _quoted(refusal: str) -> str:
    """The first value in quotes that an error offers."""
    return refusal.split('"')[1]


def _nearest(refusal: str) -> str:
    """The first name that an error says is near."""
    (line,) = (line for line in refusal.splitlines() if line.startswith("nearest: "))
    return line.removeprefix("nearest: ").split(", ")[0]


def _compare() -> list[Task]:
    found = []
    for a, b in (
        ("h100", "a100-sxm4-80gb"),
        ("h200", "h100"),
        ("b200-sxm", "h200"),
        ("mi300x", "h100"),
        ("l40s", "l4"),
    ):
        for model in (SMALL, EXPERTS):
            given = {"model": model, "chips": [a, b], "task": "batch"}
            found.append(
                Task(
                    "compare",
                    f"Which of {a} and {b} makes more tokens per second and chip of {model} in a batch job?",
                    "compare",
                    given,
                    lambda x: max(x["plans"], key=lambda p: p["tokens_per_s_per_chip"])["chip"],
                    lambda given=given: _fastest(given),
                )
            )
    for a, b, figure, key in (
        ("h200-sxm-141gb", "mi300x", "bandwidth", "memory_bytes_per_s"),
        ("h100-sxm5-80gb", "a100-sxm4-80gb", "bandwidth", "memory_bytes_per_s"),
        ("b200-sxm", "mi325x", "memory", "memory_bytes"),
        ("l4", "l40s", "memory", "memory_bytes"),
        ("tpu-v5p", "tpu-v6e", "memory", "memory_bytes"),
    ):
        short = {"memory_bytes": "memory_gb", "memory_bytes_per_s": "memory_gb_per_s"}[key]
        found.append(
            Task(
                "compare",
                f"Which has more {figure}, {a} or {b}?",
                "chips",
                {"chips": [a, b]},
                lambda x, short=short: max(x["chips"], key=lambda c: c[short])["id"],
                lambda a=a, b=b, key=key: max((a, b), key=lambda c: _memory(c, key)),
            )
        )
    for network in ("resnet50", "whisper", "sdxl", "bert", "retinanet", "3d-unet", "dlrm-v2", "wan2.2", "rnnt"):
        given = {"model": network}
        found.append(
            Task(
                "compare",
                f"Which chip was measured fastest on {network} Offline?",
                "match",
                given,
                lambda x: next(line for line in x["measured"] if "Offline" in line).partition(":")[0],
                lambda given=given: _measured_best(given),
            )
        )
    return found


def _fastest(given: Mapping[str, Any]) -> str:
    return str(max(_record("compare", given).plans, key=lambda p: p.tokens_per_s_per_chip.mid).chip)


def _memory(chip: str, key: str) -> float:
    tier = load_chips()[chip].memory
    return (tier.bytes_per_s if key.endswith("per_s") else tier.usable_bytes) or 0.0


def _measured_best(given: Mapping[str, Any]) -> str:
    rows = [i for i in _record("match", given).measured if i.scenario == "Offline"]
    best = max(rows, key=lambda i: i.speed or 0.0)
    return best.chip or best.part


TASKS: Sequence[Task] = (*_choose(), *_size(), *_refute(), *_launch(), *_debug(), *_compare())


def tasks_table() -> str:
    """The tasks with their first call and what is right."""
    lines = ["| # | kind | task | first call | right |", "|---:|---|---|---|---|"]
    for number, task in enumerate(TASKS, 1):
        given = ", ".join(f"{n}={_said(v)}" for n, v in task.given.items())
        lines.append(f"| {number} | {task.kind} | {task.text} | `{task.tool}` {given} | {_said(task.right())} |")
    return "\n".join(lines)


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
