"""Charts: every field that is drawn is in the data, in words as in numbers, and figures are those of the records."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from chipwise.api.requests.verbs import VERBS
from chipwise.report.charts.breakdown import elasticities, operator_bars, tornado
from chipwise.report.charts.chips import landscape
from chipwise.report.charts.frontier import AXES, frontier_curves
from chipwise.report.charts.kernel import level_bars, time_bars
from chipwise.report.charts.load import CURVES, day_curve, load_curve
from chipwise.report.charts.memory import memory_bars, parts_of
from chipwise.report.charts.plans import METRICS, bars, pareto, without_price
from chipwise.report.charts.roofline import kernel_roofline, roofline
from chipwise.report.charts.spec import Spec
from chipwise.report.charts.timeline import pipeline_step, request_timeline, stage_timeline
from chipwise.report.charts.training import scaling, step_bars, turnaround

MODEL = "meta-llama/Llama-3.1-8B"
ONE = {"model": MODEL, "chip": "h100-sxm5-80gb", "tp": 2, "concurrency": 32}


@cache
def answer(verb: str, **given: Any) -> Any:
    return VERBS[verb](**given).run()


LOAD, FULL = {"rate": "10/s"}, {"task": "serve"}


def plans(**given: str) -> Any:
    return answer("plan", model=MODEL, chips="l4,h100-sxm5-80gb,tpu-v6e,mi300x,rtx-4090", **given or LOAD)


def product() -> Any:
    return answer("kernel", op="gemm", chips="h100-sxm5-80gb,tpu-v6e", m=512, n=4096, k=4096)


def training() -> Any:
    return answer("train", model=MODEL, counts="64,128", tokens="100B", curves=True)


def staged() -> Any:
    report = answer(
        "train", model=MODEL, chips="h100-sxm5-80gb", counts="64", tokens="100B", layout="pp=4,schedule=1f1b"
    )
    return report.plans[0]


def curves() -> Any:
    formats = "h100-sxm5-80gb=fp8/vllm@40"
    return answer("frontier", model="meta-llama/Llama-3.1-70B", chips="h100-sxm5-80gb,mi300x", formats=formats)


def day() -> Any:
    return answer("plan", model=MODEL, day="2,2,1,4,9,30", chips="l4").plans[0]


def image() -> Any:
    return answer("explain", model="flux-dev", chip="h100-sxm5-80gb").plans[0]


def inside() -> Any:
    return answer("operators", **ONE)


def load(name: str) -> Callable[[], Spec]:
    return lambda: load_curve(answer("load", **ONE, ttft="1s", tpot="20ms"), name)


def bar(name: str) -> Callable[[], Spec]:
    """What a chip makes is drawn of plans at full load alone."""
    return lambda: bars(plans(**FULL if name == "rate" else LOAD).plans, name)


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
    "frontier": lambda: frontier_curves(curves()),
    "frontier power": lambda: frontier_curves(curves(), "power"),
    "tornado": lambda: tornado(answer("sensitivity", **ONE)),
    "request": lambda: request_timeline(answer("explain", **ONE)),
    "pipeline": lambda: pipeline_step(staged()),
    "stages": lambda: stage_timeline(image()),
    "day": lambda: day_curve(day()),
    "chips": lambda: landscape(answer("chips")),
    **{f"bars {name}": bar(name) for name in METRICS},
    **{f"load {name}": load(name) for name in CURVES},
}


def layers(spec: Spec, rows: list[dict[str, Any]], shared: Spec) -> Iterator[tuple[Spec, list[dict[str, Any]]]]:
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
    assert {r["rank"] for r in rows if r["on_front"]} == {p.rank for p in report.plans if p.on_front and p.price}
    for row in rows:
        plan = by_rank[row["rank"]]
        assert row["speed"] == pytest.approx(1 / plan.tpot_s.mid)
        assert row["slow"] <= row["speed"] <= row["fast"]
        assert row["usd"] == plan.price.mid
        assert row["usd_low"] <= row["usd"] <= row["usd_high"]


def test_plans_without_a_price_are_counted_and_not_drawn() -> None:
    report = plans()
    first, *others = report.plans
    unpriced = replace(report, plans=(replace(first, price=None), *others))
    spec = pareto(unpriced)
    assert {r["rank"] for r in spec["data"]["values"]} == {p.rank for p in others}
    assert without_price(report) == ""
    assert without_price(unpriced).startswith("1 plan has no known price and is not drawn")
    assert f"{first.chips}x {first.chip}" in without_price(unpriced)
    assert without_price(unpriced) in spec["description"]


def test_a_curve_falls_from_the_fastest_user_to_the_fullest_chip() -> None:
    report = curves()
    for chip in ("h100-sxm5-80gb", "mi300x"):
        mine = [p for p in report.points if p.chip == chip]
        users = [p.tokens_per_s_per_user.mid for p in mine]
        chips = [p.tokens_per_s_per_chip.mid for p in mine]
        assert len(mine) >= 6
        assert users == sorted(users, reverse=True)
        assert chips == sorted(chips)
    one = next(p for p in report.points if p.chip == "h100-sxm5-80gb" and p.concurrency > 8)
    degrees = {name[:2]: int(name[2:]) for name in one.layout.split()}
    plan = answer(
        "estimate",
        model="meta-llama/Llama-3.1-70B",
        chip=one.chip,
        precision="fp8",
        concurrency=one.concurrency,
        **degrees,
    ).plans[0]
    assert plan.tokens_per_s_per_chip.mid == pytest.approx(one.tokens_per_s_per_chip.mid, rel=0.02)
    measured = {m.result for m in report.measured}
    assert measured
    assert all(m.chip in ("h100-sxm5-80gb", "mi300x") for m in report.measured)
    assert {(p.chip, p.precision) for p in report.points} == {("h100-sxm5-80gb", "fp8"), ("mi300x", "bf16")}


def test_a_measurement_lies_as_far_from_the_curve_as_from_what_is_predicted_for_it() -> None:
    report = curves()
    for key, power in (("rate", 1), ("usd", -1)):
        spec = frontier_curves(report, key)
        rows, crosses, (star,) = (part["data"]["values"] for part in (spec, *spec["layer"][-2:]))
        assert (star["chip"], star["user"]) == ("h100-sxm5-80gb", pytest.approx(40.0))
        near = sorted((r for r in rows if r["chip"] == star["chip"]), key=lambda r: abs(r["user"] - 40.0))[:2]
        assert min(r["y"] for r in near) <= star["y"] <= max(r["y"] for r in near)
        known = [m for m in report.measured if m.ratio]
        assert len(crosses) == len(known) > 3
        for cross, m in zip(crosses, known, strict=True):
            mine = [r for r in rows if r["chip"] == m.chip]
            slowest = min(mine, key=lambda r: r["user"])
            if m.tokens_per_s_per_user <= slowest["user"]:
                assert cross["y"] == pytest.approx(slowest["y"] * m.ratio**power)
    assert not any("cross" in str(part["mark"]) for part in frontier_curves(report, "users")["layer"])


@pytest.mark.parametrize("key", AXES)
def test_curves_are_cut_beyond_what_decides_and_say_so(key: str) -> None:
    spec = frontier_curves(curves(), key)
    rows = spec["data"]["values"]
    (scale,) = {json.dumps(layer["encoding"]["y"]["scale"]) for layer in spec["layer"]}
    ends = json.loads(scale)
    low, high = ends.get("domainMin", 0.0), ends.get("domainMax", math.inf)
    beyond = [r for r in rows if not low <= r["y"] <= high]
    assert bool(beyond) == ("title" in spec)
    if beyond:
        assert spec["title"]["text"].startswith(f"{len(beyond)} of {len(rows)} points lie ")
    best = max if AXES[key].power >= 0 else min
    for chip in {r["chip"] for r in rows}:
        assert low < best(r["y"] for r in rows if r["chip"] == chip) < high
    for layer in spec["layer"]:
        for row in layer.get("data", {}).get("values", ()):
            assert low < row["y"] < high, "stars and measured points are in the picture"


def test_curves_are_zoomed_picked_and_pinned() -> None:
    params = [param for layer in frontier_curves(curves())["layer"] for param in layer.get("params", ())]
    assert {p["name"]: p.get("bind") for p in params} == {"zoom": "scales", "shown": "legend", "pin": None}


def test_an_input_is_changed_alone() -> None:
    report = answer("sensitivity", **ONE)
    inputs = {i.name: i for i in report.inputs}
    prompts = inputs["prompt tokens"]
    longer = answer("estimate", **ONE, in_=4000).plans[0]
    assert prompts.at_greater == pytest.approx(1000 / longer.requests_per_s / 3600 * longer.price.mid)
    assert prompts.at_lesser < report.base < prompts.at_greater
    price = report.plan.price
    assert inputs["price"].at_greater == pytest.approx(report.base * price.high / price.mid)
    swings = [i.swing(report.base) for i in report.inputs]
    assert swings == sorted(swings, reverse=True)


def test_a_request_ends_with_its_last_token() -> None:
    report = answer("explain", **ONE)
    plan, spec = report.plans[0], request_timeline(report)
    rows = spec["data"]["values"]
    end = plan.ttft_s.mid + (report.workload.output_tokens - 1) * plan.tpot_s.mid
    assert rows[-1]["end"] == pytest.approx(end)
    assert all(a["end"] == pytest.approx(b["start"]) for a, b in itertools.pairwise(rows))


def test_a_stage_works_on_one_pass_at_a_time_and_after_its_neighbours() -> None:
    plan = staged()
    rows = pipeline_step(plan)["data"]["values"]
    ends = {(r["row"], r["part"]): r["end"] for r in rows}
    for stage in range(1, plan.layout.pp + 1):
        mine = sorted((r for r in rows if r["row"] == f"stage {stage}"), key=lambda r: r["start"])
        assert all(a["end"] <= b["start"] for a, b in itertools.pairwise(mine))
        for r in mine:
            before = stage - 1 if r["name"] == "forward" else stage + 1
            assert r["start"] >= ends.get((f"stage {before}", r["part"]), 0.0)
    busy = sum(r["seconds"] for r in rows if r["row"] == "stage 1")
    drawn = len([r for r in rows if r["row"] == "stage 1"]) / 2
    assert max(r["end"] for r in rows) == pytest.approx(busy * (1 + (plan.layout.pp - 1) / drawn))


def test_a_day_is_drawn_slice_by_slice() -> None:
    plan = day()
    rows = day_curve(plan)["data"]["values"]
    assert [r["rate"] for r in rows] == [2, 2, 1, 4, 9, 30]
    assert rows[-1]["to"] == 24.0
    assert all(r["room"] >= r["rate"] for r in rows)
    with pytest.raises(ValueError, match="day"):
        day_curve(plans().plans[0])


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
    report = answer("kernel", op="collective", chips="h100-sxm5-80gb", kind="all_reduce", bytes_="64MB", ranks=8)
    with pytest.raises(ValueError, match="no FLOPs"):
        kernel_roofline(report)
