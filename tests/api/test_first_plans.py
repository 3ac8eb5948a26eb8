"""First plans of questions at random: what nobody would sign is not first while something better keeps the targets."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from docs.generate.console import on_the_day

import chipwise as cw
from chipwise.api.requests.doors import read_request
from chipwise.errors import InfeasibleError, UsageError
from chipwise.report.plans import PlanReport
from command_line import Run
from whole import some

MODELS = (
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B",
    "meta-llama/Llama-3.1-405B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-235B-A22B",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "mistralai/Mixtral-8x7B-v0.1",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
)
CHIPS = ("h100", "h200", "b200", "mi300x", "l40s", "rtx-4090", "a100-sxm4-80gb", "l4", "tpu-v6e", "trainium2")
MOST_LOADED = 0.8
QUESTIONS = some(range(40), 4)


def question(seed: int) -> dict[str, Any]:
    """A load, its lengths and targets, and at times chips, a provider, a format or how chips are paid."""
    draw = random.Random(seed)
    asked: dict[str, Any] = {
        "model": draw.choice(MODELS),
        "in": draw.choice([200, 1000, 2000, 8000, 32000]),
        "out": draw.choice([50, 200, 500, 1500]),
        "rate": f"{10 ** draw.uniform(-1, 2):.2f}/s",
    }
    for field, share, values in (
        ("tpot", 0.8, ("10ms", "20ms", "30ms", "50ms", "80ms")),
        ("ttft", 0.7, ("200ms", "500ms", "1s", "5s")),
        ("percentile", 0.2, ("p95", "p99")),
        ("chips", 0.15, (",".join(draw.sample(CHIPS, 3)),)),
        ("price", 0.1, ("spot", "own")),
        ("spare", 0.1, (1,)),
        ("provider", 0.1, ("aws", "gcp", "aws,gcp", "lambda")),
        ("precision", 0.1, ("fp8", "nvfp4", "bf16")),
        ("prefix_hit", 0.1, ("50%",)),
    ):
        if draw.random() < share:
            asked[field] = draw.choice(values)
    return asked


def unsigned(report: PlanReport) -> list[str]:
    """What speaks against the first plan while another, with a price, keeps the targets."""
    first, w = report.plans[0], report.workload
    kept = [p for p in report.plans if p.price and p.keeps_targets(w.confidence)]
    tied = [p for p in kept if p.rank in first.ties]
    found = []
    if first.load > MOST_LOADED:
        found.append("load")
    if kept and not (first.price and first.keeps_targets(w.confidence)):
        found.append("targets or price")
    if first.price and first.price.stale and any(p.price and not p.price.stale for p in tied):
        found.append("stale")
    if first.pace.basis == "modelled" and any(p.pace.basis != "modelled" for p in tied):
        found.append("modelled")
    return found


def test_no_first_plan_is_one_that_nobody_would_sign() -> None:
    answered = 0
    with on_the_day():
        for seed in QUESTIONS:
            try:
                report = read_request("plan", {**question(seed), "evidence": "none"}).run()
            except InfeasibleError:
                continue
            answered += 1
            assert unsigned(report) == [], question(seed)
    assert answered > 0.8 * len(QUESTIONS)


def test_what_is_billed_whole_is_used_whole() -> None:
    """AWS rents eight H100 or one: two replicas of two in fp8 cost as much as two of four in the stored format."""
    asked = {"rate": "5/s", "provider": "aws", "region": "us-east-1", "chips": "h100", "evidence": "none"}
    with on_the_day():
        first = cw.plan("meta-llama/Llama-3.1-70B", **asked).plans[0]
    assert first.price is not None
    assert (first.chips, first.price.billed, first.converted) == (8, 8, False)


def test_what_is_billed_is_used() -> None:
    """AWS rents eight H200: two of them would do the work, more of them for the same dollars do it faster."""
    asked = {"rate": "1/s", "tpot": "30ms", "provider": "aws", "chips": "h200", "precision": "fp8"}
    with on_the_day():
        first = cw.plan("meta-llama/Llama-3.1-70B", evidence="none", **asked).plans[0]
    assert first.price is not None
    assert first.price.billed == 8
    assert first.chips > 2


def test_idle_certainty_has_its_price_named() -> None:
    """A target that only a lightly loaded layout keeps surely: what even odds would cost stands beside it."""
    asked = {"rate": "10/s", "tpot": "8ms", "precision": "fp8", "chips": "b300", "evidence": "none"}
    with on_the_day():
        report = cw.plan("meta-llama/Llama-3.1-70B", **asked)
    (lever,) = (one for one in report.levers if one.options == "--confidence 50%")
    assert lever.chips <= 0.75 * report.plans[0].chips


@pytest.mark.parametrize(("field", "value"), [("tpot", 40), ("ttft", 500), ("tpot", "40")])
def test_a_bare_latency_is_refused_with_both_readings(field: str, value: Any, run: Run) -> None:
    both = f"{value}ms or {value}s"
    with pytest.raises(UsageError, match=both):
        cw.plan("meta-llama/Llama-3.1-8B", rate=1, **{field: value})
    with pytest.raises(UsageError, match=both):
        read_request("plan", {"model": "meta-llama/Llama-3.1-8B", "rate": 1, field: value}).run()
    done = run("plan", "meta-llama/Llama-3.1-8B", "--rate", "1/s", f"--{field}", str(value))
    assert done.code == 2
    assert both in done.err
    assert f"--{field} {value}ms" in done.err


@pytest.mark.parametrize(
    "asked",
    [
        {"rate": "2/s", "provider": "azure", "chips": "h200,mi300x,gb200"},
        {"rate": "9/s", "provider": "aws", "chips": "h200,b200", "spare": 1},
        {"task": "batch", "tokens": "100M", "deadline": "12h", "price": "spot", "chips": "b300,b200"},
    ],
)
def test_chips_that_are_billed_are_not_left_idle(asked: dict[str, Any]) -> None:
    """Of a machine of eight that is paid whole two cards worked and six stood by."""
    with on_the_day():
        plans = cw.plan("Qwen/Qwen3-32B", evidence="none", **asked).plans
    for plan in plans:
        assert plan.price is not None
        assert plan.price.billed - plan.chips < plan.chips / plan.replicas, plan
        if plan.job is not None:
            assert plan.job.usd is not None
            assert plan.job.usd.mid == pytest.approx(plan.price.mid * plan.job.hours.mid)
            assert plans[0].job.usd.mid <= 1.1 * plan.job.usd.mid


def test_a_limit_of_chips_leaves_billed_ones_idle() -> None:
    with on_the_day():
        plan = cw.plan(
            "Qwen/Qwen3-32B", evidence="none", rate="1/s", provider="azure", chips="h200", max_chips=2
        ).plans[0]
    assert plan.chips <= 2


def test_an_api_that_costs_less_stands_in_the_first_words() -> None:
    with on_the_day():
        seldom, dear = (
            cw.plan(model, rate=rate, evidence="none", **chips).verdict()
            for model, rate, chips in (
                ("openai/gpt-oss-120b", "0.05/s", {}),
                ("Qwen/Qwen3-14B", "100/s", {"chips": "h100"}),
            )
        )
    assert seldom[0].startswith("Call an API: $14.6 a month at this load, openai/gpt-oss-120b at wandb")
    assert re.match(r"To run it yourself: rent \d+x ", seldom[2])
    assert re.match(r"Rent, or buy if the load lasts, 1\dx h100-sxm5-80gb", dear[0])
    assert re.search(r": \$[\d,]+ a month at this load, about \$[\d.]+/h at ", dear[0])


def test_software_that_its_makers_do_not_vouch_for_is_not_first_for_a_fifth_of_the_cost() -> None:
    """32 TPU v5p are cheaper than 16 H200, under a plugin that lists no such model and calls the chip experimental."""
    with on_the_day():
        found = cw.plan("zai-org/GLM-4.6", provider="gcp", rate="5/s", in_=4000, out=800)
        alone = cw.plan("zai-org/GLM-4.6", provider="gcp", rate="5/s", in_=4000, out=800, chips="tpu-v5p")
    first, said = found.plans[0], " ".join(alone.verdict())
    untested = next(p for p in found.plans if p.chip == "tpu-v5p").untested
    assert not first.untested
    assert len(untested) == 2
    assert f"Its makers do not vouch for {untested[0]} and {untested[1]}." in said
