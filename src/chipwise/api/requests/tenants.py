"""Demands of a fleet that are low-rank adapters of one model: one demand for all that the same replicas can serve."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import lcm
from typing import Any

from chipwise.api.requests.field import outer
from chipwise.api.requests.planning import PlanRequest
from chipwise.errors import ChipwiseError
from chipwise.workload.lora import Adapter

OWN = ("name", "lora", "rate", "day", "in", "out", "ttft", "tpot", "e2e")
"""What adapters of one model may say each for itself; in all else they are alike."""


def together(tables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tables of demands with one in place of all adapters that the same replicas can serve: rates added, the mean
    of lengths, the strictest targets. What cannot be read is left as it is, for the reader of demands to refuse."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for i, table in enumerate(tables):
        alike = {k: v for k, v in table.items() if k not in OWN}
        apart = "lora" not in table or "log" in table or "tokens" in table or not table.get("name")
        key = str(i) if apart else json.dumps(alike, sort_keys=True, default=str)
        groups.setdefault(key, []).append(table)
    found = []
    for mine in groups.values():
        try:
            found += [_merged(mine)] if len(mine) > 1 else mine
        except ChipwiseError:
            found += mine
    return found


def _merged(tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    names = {outer(f): f.name for f in fields(PlanRequest)}
    asked = [
        PlanRequest(**{names[k]: v for k, v in table.items() if k in names and k != "name"})
        for table in tables
    ]
    curves = [_curve(question) for question in asked]
    slices = lcm(*map(len, curves))
    day = [sum(curve[i * len(curve) // slices] for curve in curves) for i in range(slices)]
    weight = [sum(curve) / len(curve) for curve in curves]
    works = [question.workload_of("serve") for question in asked]
    mean = {
        "in": sum(w * work.prompt_tokens for w, work in zip(weight, works, strict=True)) / sum(weight),
        "out": sum(w * work.output_tokens for w, work in zip(weight, works, strict=True)) / sum(weight),
    }
    least = {
        name: min((s for work in works if (s := getattr(work, f"{name}_s")) is not None), default=None)
        for name in ("ttft", "tpot", "e2e")
    }
    called = [str(table["name"]) for table in tables]
    return {
        **{k: v for k, v in tables[0].items() if k not in OWN},
        "name": " + ".join(called) if len(called) < 4 else f"{called[0]} + {len(called) - 1} more",
        "adapters": called,
        "lora": _all([question.values["lora"] for question in asked]),
        **({"day": day} if slices > 1 else {"rate": f"{day[0]:.10g}/s"}),
        **{name: f"{round(n)}" for name, n in mean.items()},
        **{name: f"{s:.10g}s" for name, s in least.items() if s is not None},
    }


def _curve(question: PlanRequest) -> tuple[float, ...]:
    curve = question.curve()
    return curve.rates_per_s if curve else (question.values["rate"] or 0.0,)


def _all(adapters: Sequence[tuple[int, Adapter]]) -> str:
    """All of them as one option: so many, of the highest rank, on all matrices that one of them changes."""
    count, rank = sum(n for n, _ in adapters), max(a.rank for _, a in adapters)
    targets = dict.fromkeys(target for _, a in adapters for target in a.targets)
    said = "all-linear" if "all-linear" in targets else "+".join(targets)
    return f"rank={rank},count={count},targets={said}"
