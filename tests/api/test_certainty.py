"""How surely targets are to hold is bought while it is worth its price, and within limits the nearest plan is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from docs.generate.console import on_the_day

from chipwise.api.planning import PlansAsked
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.preferences import preferences
from chipwise.report.plans import PlanRecord, PlanReport

DEAR = {"model": "zai-org/GLM-4.6", "rate": "5/s", "in_": 4000, "out": 800, "provider": "gcp", "chips": "h200"}
"""Targets that nobody named, of which the last points of certainty cost half as much again."""


def asking(**asked: Any) -> PlanRequest:
    question = read_request("plan", {"evidence": "none", **{name.rstrip("_"): value for name, value in asked.items()}})
    assert isinstance(question, PlanRequest)
    return question


def ask(**asked: Any) -> PlanReport:
    with on_the_day():
        report = asking(**asked).ranked(None, published=False).report
    assert isinstance(report, PlanReport)
    return report


def usd(plan: PlanRecord) -> float:
    assert plan.price is not None
    return plan.price.mid


def same(plan: PlanRecord, other: PlanRecord) -> bool:
    """Whether two plans are one deployment at one price."""
    return (plan.chip, plan.chips, plan.layout, plan.runtime, usd(plan)) == (
        other.chip,
        other.chips,
        other.layout,
        other.runtime,
        usd(other),
    )


@pytest.fixture(scope="module")
def likely() -> PlanReport:
    return ask(**DEAR)


def test_certainty_that_nobody_named_is_bought_while_it_is_worth_its_price(likely: PlanReport) -> None:
    p, first, surer = preferences(), likely.plans[0], likely.surer
    assert surer is not None
    assert first.chance is not None
    assert surer.chance is not None
    assert p.likely <= first.chance < p.confidence <= surer.chance
    assert usd(first) * p.sure <= usd(surer)
    assert any(f"--confidence {p.confidence:.0%}" in line for line in likely.verdict())


@pytest.mark.parametrize("confidence", ["likely", "confidence"])
def test_both_are_what_one_gets_who_names_them(likely: PlanReport, confidence: str) -> None:
    named = ask(**DEAR, confidence=f"{getattr(preferences(), confidence):.0%}")
    of_it = likely.plans[0] if confidence == "likely" else likely.surer
    assert of_it is not None
    assert same(named.plans[0], of_it)
    assert named.surer is None


def test_named_targets_are_kept_as_surely_as_usual() -> None:
    tight = {"model": "Qwen/Qwen3-32B", "rate": "3/s", "in_": 800, "out": 120, "chips": "gh200-96gb"}
    report = ask(**tight, ttft="150ms", tpot="20ms")
    assert report.surer is None
    assert (report.plans[0].chance or 0.0) >= preferences().confidence - 0.002


def test_tight_targets_near_their_reach_ask_for_no_absurd_fleets() -> None:
    report = ask(model="meta-llama/Llama-3.1-8B-Instruct", rate="20/s", ttft="150ms", chips="l40s")
    assert report.plans[0].chips < 30
    assert (report.plans[0].chance or 0.0) >= preferences().likely - 0.002
    assert report.surer is None or usd(report.surer) > preferences().sure_named * usd(report.plans[0])
    assert report.surer is not None or any("--ttft" in way for way in report.ways)


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "google/gemma-3-27b-it", "images": "896x896", "have": "4xl40s", "rate": "1.9/s"},
        {"model": "Qwen/Qwen3-235B-A22B", "rate": "2.2/s", "max_usd_per_h": 5, "chips": "mi300x", "precision": "fp8"},
    ],
)
def test_who_owns_chips_or_has_a_budget_gets_the_nearest_plan(asked: dict[str, Any]) -> None:
    report = ask(**asked)
    first = report.plans[0]
    assert not report.kept
    assert first.chance is not None
    assert first.chance < preferences().confidence
    assert f"{first.requests_per_s:.1f}/s" == asked["rate"]
    assert first.load <= report.workload.utilisation + 0.005
    assert first.chips <= 4
    assert first.price is None or first.price.mid <= 5.0
    assert any(way.startswith("--rate") for way in report.ways)
    assert "Nearest: " in report.verdict()[0]


def test_a_limit_of_dollars_says_which_would_do() -> None:
    asked = {"model": "Qwen/Qwen3-235B-A22B", "rate": "2/s", "chips": "mi300x,gb300-nvl72"}
    report = ask(**asked, max_usd_per_h=5)
    most = next(way.split()[1] for way in report.ways if way.startswith("--max-usd-per-h"))
    assert ask(**asked, max_usd_per_h=float(most)).kept


def test_nothing_is_priced_again_and_nothing_else_is_found() -> None:
    question = asking(**DEAR)
    likely = preferences().likely
    with on_the_day():
        asked = question.asking(published=False)
        assert isinstance(asked, PlansAsked)
        space = asked._found().space
        workload = replace(asked.workload, confidence=likely)
        anew = space.anew(workload, asked.market.limits)
        fresh = replace(asked, context=replace(asked.context, workload=workload))._found()
    assert [p.chips for p in anew.plans()] == [p.chips for p in fresh.plans]
    assert [p.chance for p in anew.plans()] == [p.chance for p in fresh.plans]


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "meta-llama/Llama-3.3-70B-Instruct", "rate": "5/s", "tpot": "30ms", "chips": "h200-sxm-141gb"},
        {"model": "zai-org/GLM-4.6", "rate": "5/s", "in_": 4000, "out": 800, "chips": "b200-sxm"},
    ],
)
def test_no_plan_is_dearer_than_one_that_says_to_be_as_sure(asked: dict[str, Any]) -> None:
    """The chance that sizes a plan is the one that is told of it."""
    found = {c: ask(**asked, ttft="500ms", confidence=f"{c}%").plans[0] for c in (60, 80, 88, 90, 95)}
    for plan in found.values():
        for confidence, other in found.items():
            assert (plan.chance or 0.0) < confidence / 100 or usd(other) <= usd(plan) * 1.001, (confidence, usd(other))
