"""About 200 plans whose figures stay put: a refactor leaves them alone, a change of the model shows here.

Regenerate, from the root of the checkout, after a change that is meant:  python -m tests.golden
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from chipwise.api import estimate
from chipwise.errors import ChipwiseError
from chipwise.parallel.layout import Layout
from chipwise.report.records import Figure, PlanRecord
from chipwise.workload.workload import Workload

TODAY = date(2026, 11, 1)
DIGITS = 9
FILE = Path(__file__).with_name("plans.jsonl")

MODELS = {
    "meta-llama/Llama-3.1-8B": ("whole", "tp2", "tp4 pp2"),
    "nvidia/Llama-3.1-70B-Instruct-FP8": ("tp2", "tp8", "tp4 pp5"),
    "Qwen/Qwen3-30B-A3B": ("tp2", "tp4 ep4", "dp4 ep4"),
    "openai/gpt-oss-120b": ("tp2", "tp4 dp2 ep8", "tp2 pp2"),
}
CHIPS = (
    "h100-sxm5-80gb",
    "b200-sxm",
    "a100-sxm4-80gb",
    "mi300x",
    "rtx-4090",
    "l4",
    "tpu-v5e",
    "tpu-v6e",
    "trainium2",
    "gaudi3",
)
LOADS = {
    "chat": Workload(prompt_tokens=2000, output_tokens=300),
    "document": Workload(task="batch", prompt_tokens=20_000, output_tokens=100),
}
LONE = {
    ("meta-llama/Llama-3.1-8B", "whole"): ("rtx-4090", "rtx-5090", "m3-ultra", "epyc-9654", "rx-7900-xtx"),
    ("openai/gpt-oss-20b", "whole"): ("rtx-4090", "rtx-5090", "m3-ultra", "m4-max"),
    ("Qwen/Qwen3-32B-FP8", "pp2"): ("rtx-5090", "rtx-6000-ada", "rtx-pro-6000-ws"),
}
"""Machines of a single user."""

Figures = dict[str, float | str]


@dataclass(frozen=True)
class Case:
    """One question: a model on a layout of a chip under a load."""

    model: str
    chip: str
    layout: str
    load: str

    @property
    def key(self) -> str:
        return " | ".join((self.model, self.chip, self.layout, self.load))


def cases() -> Iterator[Case]:
    """Every question, in order."""
    for model, layouts in MODELS.items():
        for chip in CHIPS:
            for layout in layouts:
                for load in LOADS:
                    yield Case(model, chip, layout, load)
    for (model, layout), chips in LONE.items():
        for chip in chips:
            yield Case(model, chip, layout, "alone")


def answer(case: Case) -> Figures:
    """The figures of the plan, or why there is none."""
    degrees = {"tp": 1.0, "pp": 1.0, "dp": 1.0, "ep": 1.0}
    if case.layout != "whole":
        degrees |= {part[:2]: float(part[2:]) for part in case.layout.split()}
    workload = LOADS.get(case.load) or Workload(task="local", prompt_tokens=1000, output_tokens=300)
    concurrency = 8.0 if case.load == "chat" else None
    try:
        report = estimate(
            case.model, workload, case.chip, Layout(**degrees), concurrency=concurrency, today=TODAY
        )
    except ChipwiseError as error:
        return {"refused": type(error).__name__}
    return figures(report.plans[0])


def figures(plan: PlanRecord) -> Figures:
    """What is compared: times, throughput, shares, memory, price."""
    found: Figures = {"runtime": plan.runtime, "precision": plan.precision, "bound": plan.bound}

    def put(name: str, value: object) -> None:
        if isinstance(value, Figure):
            value = value.mid
        if isinstance(value, int | float):
            found[name] = rounded(float(value))

    for name in ("batch", "concurrency", "ttft_s", "tpot_s", "decode_s", "prefill_s", "tokens_per_s"):
        put(name, getattr(plan, name))
    put("usd_per_million_out", plan.usd_per_million_out)
    for name, share in plan.shares.items():
        put(f"share.{name}", share)
    for name, size in plan.memory.items.items():
        put(f"memory.{name}", size)
    put("memory.cache", plan.memory.cache_bytes)
    return found


def rounded(value: float) -> float:
    """To `DIGITS` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def regenerate() -> None:
    """Write the answers of today, one line per plan."""
    lines = (json.dumps({"plan": case.key, **answer(case)}) for case in cases())
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stored() -> dict[str, Figures]:
    """The answers of the last regeneration by plan."""
    rows = (json.loads(line) for line in FILE.read_text("utf-8").splitlines())
    return {row.pop("plan"): row for row in rows}


def changes(before: Figures, now: Figures) -> dict[str, str]:
    """By figure what is different: `-3.2 %`, or the two words."""
    found: dict[str, str] = {}
    for name in before.keys() | now.keys():
        old, new = before.get(name), now.get(name)
        if isinstance(old, float) and isinstance(new, float):
            # one unit of the last digit is no change: it may be rounded either way
            if not math.isclose(old, new, rel_tol=1.1 * 10.0 ** (1 - DIGITS), abs_tol=1e-30):
                found[name] = f"{new / old - 1:+.3%}" if old else f"{old:g} -> {new:g}"
        elif old != new:
            found[name] = f"{old} -> {new}"
    return dict(sorted(found.items()))
