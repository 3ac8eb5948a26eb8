"""Charts: every field that is drawn is in the data, in words as in numbers, and figures are those of the records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from chipwise.api.requests.verbs import VERBS
from chipwise.report.charts.breakdown import elasticities, operator_bars
from chipwise.report.charts.chips import landscape
from chipwise.report.charts.kernel import level_bars, time_bars
from chipwise.report.charts.load import CURVES, load_curve
from chipwise.report.charts.memory import memory_bars, parts_of
from chipwise.report.charts.plans import METRICS, bars, pareto
from chipwise.report.charts.roofline import kernel_roofline, roofline
from chipwise.report.charts.spec import Spec
from chipwise.report.charts.training import scaling, step_bars, turnaround

MODEL = "meta-llama/Llama-3.1-8B"
ONE = {"model": MODEL, "chip": "h100-sxm5-80gb", "tp": 2, "concurrency": 32}


@cache
def answer(verb: str, **given: Any) -> Any:
    return VERBS[verb](**given).run()


def plans() -> Any:
    return answer("plan", model=MODEL, rate="10/s", chips="l4,h100-sxm5-80gb,tpu-v6e,mi300x,rtx-4090")


def product() -> Any:
    return answer("kernel", op="gemm", chips="h100-sxm5-80gb,tpu-v6e", m=512, n=4096, k=4096)


def training() -> Any:
    return answer("train", model=MODEL, counts="64,128", tokens="100B", curves=True)


def inside() -> Any:
    return answer("operators", **ONE)


def load(name: str) -> Callable[[], Spec]:
    return lambda: load_curve(answer("load", **ONE, ttft="1s", tpot="20ms"), name)


def bar(name: str) -> Callable[[], Spec]:
    return lambda: bars(plans().plans, name)


CHARTS: dict[str, Callable[[], Spec]] = {
    "pareto": lambda: pareto(plans()),
    "memory": lambda: memory_bars([(p.chip, p.memory) for p in plans().plans]),
    "elasticities": lambda: elasticities(answer("explain", **ONE).plans[0]),
    "roofline": lambda: roofline(inside()),
    "decode": lambda: operator_bars(inside(), "decode"),
    "prefill": lambda: operator_bars(inside(), "prefill"),
    "kernel time": lambda: time_bars(product()),
    "kernel roofline": lambda: kernel_roofline(product()),
    "kernel levels": lambda: level_bars(product()),
    "turnaround": lambda: turnaround(training()),
    "step": lambda: step_bars(training()),
    "strong": lambda: scaling(training(), "strong"),
    "weak": lambda: scaling(training(), "weak"),
    "chips": lambda: landscape(answer("chips")),
    **{f"bars {name}": bar(name) for name in METRICS},
    **{f"load {name}": load(name) for name in CURVES},
}


def layers(
    spec: Spec, rows: list[dict[str, Any]], shared: Spec
) -> Iterator[tuple[Spec, list[dict[str, Any]]]]:
    rows = spec.get("data", {}).get("values", rows)
    shared = {**shared, **spec.get("encoding", {})}
    if "layer" in spec:
        for layer in spec["layer"]:
            yield from layers(layer, rows, shared)
    else:
        yield shared, rows


def fields_of(encoding: Any) -> Iterator[str]:
    if isinstance(encoding, dict):
        for name, value in encoding.items():
            if name == "field":
                yield value
            else:
                yield from fields_of(value)
    elif isinstance(encoding, list):
        for value in encoding:
            yield from fields_of(value)


@pytest.mark.parametrize("name", CHARTS)
def test_drawn_fields_are_in_the_data(name: str) -> None:
    spec = CHARTS[name]()
    json.dumps(spec, allow_nan=False)
    assert len(spec["description"]) > 30
    drawn = 0
    for encoding, rows in layers(spec, [], {}):
        wanted = set(fields_of(encoding))
        assert rows
        for row in rows:
            assert wanted <= set(row), f"{name}: {wanted - set(row)} not in {row}"
        drawn += len(rows)
    assert drawn


def test_the_front_of_the_chart_is_that_of_the_plans() -> None:
    report = plans()
    rows = next(rows for _, rows in layers(pareto(report), [], {}))
    by_rank = {p.rank: p for p in report.plans}
    assert {r["rank"] for r in rows if r["on_front"]} == {
        p.rank for p in report.plans if p.on_front and p.price
    }
    for row in rows:
        plan = by_rank[row["rank"]]
        assert row["speed"] == pytest.approx(1 / plan.tpot_s.mid)
        assert row["slow"] <= row["speed"] <= row["fast"]
        assert row["usd"] == plan.price.mid


def test_memory_adds_up_to_the_capacity() -> None:
    for plan in plans().plans:
        parts = parts_of(plan.memory)
        assert sum(parts.values()) == pytest.approx(plan.memory.capacity_bytes)
    short = next(f for f in answer("fit", model="meta-llama/Llama-3.1-70B", chips="l4", count=1).fits)
    parts = parts_of(short.memory)
    assert sum(parts.values()) - 2 * parts["missing"] == pytest.approx(short.memory.capacity_bytes)


def test_no_operator_lies_above_the_roof() -> None:
    report = answer("operators", **ONE)
    for o in report.operators:
        if o.peak_flops_per_s and o.kind == "gemm":
            roof = min(o.peak_flops_per_s, o.intensity * report.memory_bytes_per_s)
            # weights that stay in L2 between operators may be read faster than memory allows
            assert o.flops_per_s <= roof * 1.05


def test_a_roof_bends_at_the_ridge() -> None:
    kernel = product().kernels[0]
    rows = next(r for _, r in layers(kernel_roofline(product()), [], {}))
    roof = [r for r in rows if r["roof"] == kernel.chip]
    at = next(r for r in roof if math.isclose(r["intensity"], kernel.ridge))
    assert at["flops"] == pytest.approx(kernel.peak_flops_per_s)
    assert max(r["flops"] for r in roof) == pytest.approx(kernel.peak_flops_per_s)


def test_a_collective_has_no_roofline() -> None:
    report = answer(
        "kernel", op="collective", chips="h100-sxm5-80gb", kind="all_reduce", bytes_="64MB", ranks=8
    )
    with pytest.raises(ValueError, match="no FLOPs"):
        kernel_roofline(report)
