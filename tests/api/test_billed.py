"""Chips that are billed count wherever the load is given: what the tokens cost is what the machine costs."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.report.plans import PlanRecord

MODEL = "Qwen/Qwen3-32B"


def hour_of(plan: PlanRecord) -> float:
    """Dollars an hour that the tokens of a plan are charged with."""
    into, out = plan.usd_per_million_in, plan.usd_per_million_out
    assert into is not None
    assert out is not None
    return 3600.0 * plan.requests_per_s * (2000.0 * into.mid + 300.0 * out.mid) / 1e6


@pytest.mark.parametrize("chip", ["gb200-nvl72", "mi355x", "b200-sxm", "h200-sxm-141gb"])
@pytest.mark.parametrize("load", [{"rate": "1/s"}, {"concurrency": 4}])
def test_tokens_of_a_given_load_pay_for_the_whole_machine(chip: str, load: dict[str, object]) -> None:
    plan = cw.estimate(MODEL, chip=chip, evidence="none", **load).plans[0]  # type: ignore[arg-type]
    if plan.price is not None:
        assert hour_of(plan) == pytest.approx(plan.price.mid, rel=1e-6)


def test_replicas_that_run_full_pay_for_their_chips() -> None:
    plan = cw.estimate(MODEL, chip="gb200-nvl72", evidence="none").plans[0]
    assert plan.price is not None
    assert plan.price.billed > plan.chips
    assert hour_of(plan) == pytest.approx(plan.price.mid * plan.chips / plan.price.billed, rel=1e-6)


def test_estimate_and_plan_of_one_fleet_cost_the_same() -> None:
    planned = cw.plan(MODEL, chips="gb200-nvl72", rate="2/s").plans[0]
    said = cw.estimate(
        MODEL,
        chip="gb200-nvl72",
        rate="2/s",
        tp=planned.layout.tp,
        replicas=planned.replicas,
        runtime=planned.runtime,
        precision=planned.precision,
    ).plans[0]
    assert said.price == planned.price
    for name in ("usd_per_million_in", "usd_per_million_out"):
        assert getattr(said, name).mid == pytest.approx(getattr(planned, name).mid, rel=1e-9)


@pytest.mark.parametrize(
    "load",
    [
        {"rate": "100/s"},
        {"rate": "20000/s", "e2e": "100ms"},
        {"rate": "20000/s", "spare": 1},
        {"task": "batch", "samples": "100M", "deadline": "1h"},
    ],
)
def test_a_network_uses_the_machines_that_it_pays_for(load: dict[str, object]) -> None:
    plan = cw.plan("resnet50", chips="mi355x", **load).plans[0]  # type: ignore[arg-type]
    assert plan.price is not None
    assert plan.price.billed == plan.chips
    least = cw.plan("resnet50", chips="mi355x", max_chips=plan.chips, **load).plans[0]  # type: ignore[arg-type]
    assert plan.price.mid <= least.price.mid


def test_a_job_of_a_network_takes_no_more_replicas_than_find_a_sample() -> None:
    plan = cw.plan("resnet50", chips="mi355x", task="batch", samples=3, batch=1).plans[0]
    assert (plan.replicas, plan.price.billed) == (3, 8)


def test_training_uses_the_machines_that_it_pays_for() -> None:
    found = cw.train("Qwen/Qwen3-8B", chips="trainium1", tokens="10M", task="finetune", method="lora").plans
    assert max(p.chips for p in found) == max(p.price.billed for p in found if p.price)
    few = cw.train("Qwen/Qwen3-0.6B", chips="trainium1", tokens="10M", task="finetune", method="lora", max_chips=4)
    assert all(p.chips <= 4 for p in few.plans)
