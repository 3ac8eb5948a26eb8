"""Demands of a fleet that the same replicas can serve: low-rank adapters of one model become one demand, of others with
one model it is said what all of them are together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from math import lcm
from typing import Any

from chipwise.api.requests.field import outer
from chipwise.api.requests.planning import PlanRequest
from chipwise.errors import ChipwiseError
from chipwise.workload.lora import Adapter
from chipwise.workload.workload import Workload

OWN = ("name", "lora", "rate", "day", "in", "out", "ttft", "tpot", "e2e")
"""What demands that the same replicas serve may say each for itself; in all else they are alike."""
MOST_POOLED = 8
"""Demands that are asked about together."""


def together(tables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The tables of demands with one in place of all adapters that the same replicas can serve: rates added, the mean
    of lengths, the strictest targets. What cannot be read is left as it is, for the reader of demands to refuse."""
    found = []
    for at in _alike(tables, adapters=True):
        mine = [tables[i] for i in at]
        try:
            found += [_merged(mine)] if len(mine) > 1 else mine
        except ChipwiseError:
            found += mine
    return found


def pooled(tables: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[int, ...], Mapping[str, Any]]]:
    """Which demands without adapters differ in nothing but name, load, lengths and targets, and the table of what they
    are together."""
    for at in _alike(tables, adapters=False):
        if 1 < len(at) <= MOST_POOLED:
            yield at, _merged([{"name": f"{i}", **tables[i]} for i in at])


def _alike(tables: Sequence[Mapping[str, Any]], *, adapters: bool) -> Iterable[tuple[int, ...]]:
    """The numbers of demands that are alike, in their order."""
    groups: dict[str, tuple[int, ...]] = {}
    for i, table in enumerate(tables):
        alike = {k: v for k, v in table.items() if k not in OWN}
        apart = ("lora" in table) != adapters or any(key in table for key in ("log", "tokens", "step", "samples"))
        apart |= (adapters and not table.get("name")) or table.get("task", "serve") != "serve"
        key = str(i) if apart else json.dumps(alike, sort_keys=True, default=str)
        groups[key] = (*groups.get(key, ()), i)
    return groups.values()


def _merged(tables: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    asked = [_question(table) for table in tables]
    curves = [_curve(question) for question in asked]
    day = _added(curves)
    works = [question.workload_of("serve") for question in asked]
    called = [str(table["name"]) for table in tables]
    adapters = [question.values["lora"] for question in asked if question.lora]
    return {
        **{k: v for k, v in tables[0].items() if k not in OWN},
        "name": " + ".join(called) if len(called) < 4 else f"{called[0]} + {len(called) - 1} more",
        **({"adapters": called, "lora": _all(adapters)} if adapters else {}),
        **({"day": day} if len(day) > 1 else {"rate": f"{day[0]:.10g}/s"}),
        **_asked(works, [sum(curve) / len(curve) for curve in curves]),
    }


def _asked(works: Sequence[Workload], rates: Sequence[float]) -> dict[str, str]:
    """The mean lengths of requests at these rates, and the strictest targets of them: those of requests that are longer
    than the mean are as much shorter."""
    prompts, outputs = (
        sum(rate * getattr(work, name) for rate, work in zip(rates, works, strict=True)) / sum(rates)
        for name in ("prompt_tokens", "output_tokens")
    )
    longer = [max(work.prompt_tokens / prompts, 1.0) for work in works]
    whole = [max(by, work.output_tokens / outputs) for by, work in zip(longer, works, strict=True)]
    said = {"ttft": longer, "tpot": [1.0] * len(works), "e2e": whole}
    found = {"in": f"{round(prompts)}", "out": f"{round(outputs)}"}
    for name, by in said.items():
        targets = [(getattr(work, f"{name}_s"), more) for work, more in zip(works, by, strict=True)]
        if given := [s / more for s, more in targets if s is not None]:
            found[name] = f"{min(given):.10g}s"
    return found


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
