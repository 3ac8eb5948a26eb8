"""A question without a plan is told the smallest changes that give it one; each does."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from docs.generate.console import on_the_day

import chipwise as cw
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.planning import PlanRequest
from chipwise.errors import InfeasibleError

MODEL = "Qwen/Qwen3-32B"
WORKS = "what works: "


def ask(**asked: Any) -> Any:
    question = read_request("plan", {"model": MODEL, "evidence": "none", **asked})
    assert isinstance(question, PlanRequest)
    with on_the_day():
        return question.ranked(None, published=False).report


def changed(way: str) -> dict[str, str]:
    """The options of a way out as a question has them."""
    words = shlex.split(way)
    return {
        name.removeprefix("--").replace("-", "_"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"have": "2xl40s", "rate": "4/s"}, ("--rate", "--have")),
        ({"chips": "h100,l40s", "rate": "20/s", "max_chips": 1}, ("--rate", "--max-chips")),
        ({"chips": "h100", "rate": "2/s", "tpot": "3ms"}, ("--tpot",)),
        ({"chips": "h100,l4", "rate": "1/s", "tpot": "3ms", "ttft": "20ms"}, ("--ttft --tpot",)),
        ({"chips": "l40s", "rate": "1/s", "e2e": "1s"}, ("--e2e",)),
        ({"chips": "h100", "rate": "40/s", "max_usd_per_h": 4}, ("--rate", "--max-usd-per-h")),
        ({"chips": "8xh100", "rate": "400/s"}, ("--rate", "--chips")),
        ({"model": "flux", "have": "2xh100", "rate": "50/s"}, ("--rate", "--have")),
        ({"model": "flux", "chips": "2xh100", "rate": "1/s"}, ("--rate", "--chips")),
        (
            {"model": "flux", "chips": "h100", "rate": "5/s", "max_chips": 1, "max_usd_per_h": 2},
            ("--max-chips --max-usd-per-h",),
        ),
        ({"model": "resnet50", "chips": "l4", "rate": "100/s", "e2e": "1us"}, ("--e2e",)),
        ({"have": "8xh100", "task": "batch", "tokens": "10B", "deadline": "1h"}, ("--deadline",)),
    ],
)
def test_what_works_was_tried(asked: dict[str, Any], named: tuple[str, ...]) -> None:
    with pytest.raises(InfeasibleError, match=WORKS) as refused:
        ask(**asked)
    ways = refused.value.hint.removeprefix(WORKS).split(", or ")
    assert tuple(" ".join(way.split()[::2]) for way in ways) == named
    for way in ways:
        assert ask(**{**asked, **changed(way)}).kept, way


def test_an_api_within_the_limit_of_dollars_is_a_way_out() -> None:
    asked = {"model": "Qwen/Qwen3-235B-A22B", "rate": "2.2/s", "chips": "mi300x,h100", "precision": "fp8"}
    near = ask(**asked, max_usd_per_h=5)
    assert not near.kept
    assert any(re.search(r"the API of \w+ at \$4\.\d+/h", way) for way in near.ways)
    with pytest.raises(InfeasibleError) as refused:
        ask(**asked, max_usd_per_h=1)
    assert "the API of" not in refused.value.hint


def test_wide_weights_are_a_way_out_where_software_reads_those_alone() -> None:
    with pytest.raises(InfeasibleError, match="does not run mxfp4") as refused:
        cw.plan("openai/gpt-oss-120b", rate="1/s", chips="trainium2", evidence="none")
    assert refused.value.hint.endswith("what works: precision bf16")
    assert cw.plan("openai/gpt-oss-120b", rate="1/s", chips="trainium2", precision="bf16", evidence="none").kept


def test_the_likeliest_says_what_would_keep_the_targets() -> None:
    asked = {"chips": "h100", "rate": "10/s", "tpot": "4ms"}
    report = ask(**asked)
    assert not report.kept
    assert {way.split()[0] for way in report.ways} == {"--tpot"}
    assert f"with 90% probability; what works: {report.ways[0]}" in " ".join(str(report).split())
    for way in report.ways:
        assert ask(**{**asked, **changed(way)}).kept, way


def test_a_deployment_says_which_load_and_how_many_replicas_do() -> None:
    asked = {"model": MODEL, "chip": "h100", "evidence": "none"}
    with pytest.raises(InfeasibleError, match=WORKS) as refused:
        read_request("estimate", {**asked, "rate": "50/s"}).run()
    less, more = refused.value.hint.removeprefix(WORKS).split(", or ")
    assert read_request("estimate", {**asked, **changed(less)}).run().plans
    ((name, count),) = changed(more).items()
    assert name == "replicas"
    assert read_request("estimate", {**asked, "rate": "50/s", "replicas": int(count)}).run().plans


def test_the_watts_that_a_refusal_names_feed_a_chip() -> None:
    asked = {"model": "Qwen/Qwen3-8B", "rate": "1/s", "chips": ["h100-sxm5-80gb"]}
    with pytest.raises(InfeasibleError) as refused:
        ask(**asked, max_watts="500")
    found = re.search(r"--max-watts (\d+) feeds one h100-sxm5-80gb", str(refused.value))
    assert found is not None
    watts = int(found[1])
    assert ask(**asked, max_watts=str(watts)).plans[0].chips == 1
    with pytest.raises(InfeasibleError, match="feed not one"):
        ask(**asked, max_watts=str(watts - 2))
