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
from chipwise.workload.workload import Workload

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
    asked = [_question(table) for table in tables]
    curves = [_curve(question) for question in asked]
    day = _added(curves)
    works = [question.workload_of("serve") for question in asked]
    called = [str(table["name"]) for table in tables]
    return {
        **{k: v for k, v in tables[0].items() if k not in OWN},
        "name": " + ".join(called) if len(called) < 4 else f"{called[0]} + {len(called) - 1} more",
        "adapters": called,
        "lora": _all([question.values["lora"] for question in asked]),
        **({"day": day} if len(day) > 1 else {"rate": f"{day[0]:.10g}/s"}),
        **_lengths(works, [sum(curve) / len(curve) for curve in curves]),
        **_targets(works),
    }


def _lengths(works: Sequence[Workload], rates: Sequence[float]) -> dict[str, str]:
    """The mean lengths of requests at these rates."""
    prompts = sum(rate * work.prompt_tokens for rate, work in zip(rates, works, strict=True))
    outputs = sum(rate * work.output_tokens for rate, work in zip(rates, works, strict=True))
    return {"in": f"{round(prompts / sum(rates))}", "out": f"{round(outputs / sum(rates))}"}


def _targets(works: Sequence[Workload]) -> dict[str, str]:
    """The strictest targets."""
    said = {name: [getattr(work, f"{name}_s") for work in works] for name in ("ttft", "tpot", "e2e")}
    given = {name: [s for s in times if s is not None] for name, times in said.items()}
    return {name: f"{min(times):.10g}s" for name, times in given.items() if times}


def _question(table: Mapping[str, Any]) -> PlanRequest:
    names = {outer(f): f.name for f in fields(PlanRequest)}
    return PlanRequest(**{names[k]: v for k, v in table.items() if k in names and k != "name"})


def _added(curves: Sequence[Sequence[float]]) -> list[float]:
    """The sum of curves of a day, in slices that all of them can be cut into."""
    slices = lcm(*map(len, curves))
    return [sum(curve[i * len(curve) // slices] for curve in curves) for i in range(slices)]


def _curve(question: PlanRequest) -> tuple[float, ...]:
    curve = question.curve()
    return curve.rates_per_s if curve else (question.values["rate"] or 0.0,)


def _all(adapters: Sequence[tuple[int, Adapter]]) -> str:
    """All of them as one option: so many, of the highest rank, on all matrices that one of them changes."""
    count, rank = sum(n for n, _ in adapters), max(a.rank for _, a in adapters)
    targets = dict.fromkeys(target for _, a in adapters for target in a.targets)
    said = "all-linear" if "all-linear" in targets else "+".join(targets)
    return f"rank={rank},count={count},targets={said}"
