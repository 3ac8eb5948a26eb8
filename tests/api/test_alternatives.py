"""What stands beside the first plan: each change says what the question with its options answers."""

from __future__ import annotations

import shlex

import pytest

import chipwise as cw
from chipwise.catalog.checkpoints import published_as
from chipwise.catalog.preferences import preferences
from chipwise.errors import ChipwiseError
from chipwise.report.plans import PlanReport

ASKED = {"rate": "10/s", "tpot": "20ms", "chips": "h100-sxm5-80gb", "evidence": "none"}
LLAMA = "meta-llama/Llama-3.1-70B"


@pytest.fixture(scope="module")
def report() -> PlanReport:
    return cw.plan(LLAMA, **ASKED)  # type: ignore[no-any-return]


def options(text: str) -> dict[str, str]:
    """`--a-b c --d` as keywords."""
    words = shlex.split(text)
    found: dict[str, str] = {}
    for word in words:
        if word.startswith("--"):
            name = word[2:].replace("-", "_")
            found[name] = "true"
        else:
            found[name] = word
    return found


def test_a_lever_is_the_answer_to_the_question_with_its_options(report: PlanReport) -> None:
    assert len(report.levers) >= 2
    first = report.plans[0]
    for lever in report.levers:
        given = {"precision": first.precision, **ASKED, **options(lever.options)}
        plan = cw.plan(LLAMA, **given).plans[0]
        assert (plan.chips, plan.spread) == (lever.chips, lever.spread), lever.options
        assert plan.price == lever.price
        assert lever.saves == pytest.approx(1.0 - plan.price.mid / first.price.mid)


def test_levers_save_enough_and_stand_by_what_they_save(report: PlanReport) -> None:
    saves = [lever.saves for lever in report.levers]
    assert saves == sorted(saves, reverse=True)
    assert min(saves) >= preferences().worth


def test_what_was_asked_already_is_no_lever() -> None:
    told = cw.plan(LLAMA, **ASKED, prefix_hit="50%", speculate="accept=0.7,draft=3", kv="fp8", precision="fp8")
    said = " ".join(lever.options for lever in told.levers)
    assert not any(name in said for name in ("prefix-hit", "speculate", "kv"))


def test_chips_without_a_price_have_no_levers() -> None:
    assert cw.plan(LLAMA, rate="1/s", have="8xh100", evidence="none").levers == ()


@pytest.mark.parametrize(
    ("model", "number_format", "name"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "nvfp4", "nvidia/Llama-3.1-70B-Instruct-NVFP4"),
        ("meta-llama/Llama-3.1-70B", "nvfp4", ""),  # the base model is not the one tuned to answer
        ("Qwen/Qwen3-32B", "fp8", "Qwen/Qwen3-32B-FP8"),  # of those who made it, not RedHatAI's
        ("Qwen/Qwen3-235B-A22B", "fp8", "Qwen/Qwen3-235B-A22B-FP8"),  # not that of its successor
        ("Qwen/Qwen3-32B", "int4", "Qwen/Qwen3-32B-AWQ"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "fp8", "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic"),
        ("Qwen/Qwen3-32B-Thinking", "fp8", ""),  # other weights
        ("Qwen/Qwen3-235B-A22B", "int4", "Qwen/Qwen3-235B-A22B-GPTQ-Int4"),  # by the table of checkpoints
        ("deepseek-ai/DeepSeek-V3.2", "nvfp4", "nvidia/DeepSeek-V3.2-NVFP4"),
        ("openai-community/gpt2", "fp8", ""),
    ],
)
def test_a_checkpoint_in_another_format_is_known_by_name(model: str, number_format: str, name: str) -> None:
    assert published_as(model, number_format) == name


def test_what_no_format_fits_is_tried_in_fewer_bits() -> None:
    """64 GB of 16-bit weights on two cards of 24 GB: in 8 bits they fit."""
    mine = cw.plan("Qwen/Qwen3-32B", task="local", have="2xrtx-4090", evidence="none")
    assert mine.plans[0].precision == "fp8"
    assert mine.plans[0].converted
    assert "keeps 98.9% of the score" in mine.plans[0].note
    # what runs as it is runs faster in 8 bits that keep its quality
    small = cw.plan("Qwen/Qwen3-8B", task="local", have="2xrtx-4090", evidence="none")
    assert (small.plans[0].precision, small.plans[0].converted) == ("fp8", True)


def test_a_named_format_is_kept_where_it_does_not_fit() -> None:
    with pytest.raises(ChipwiseError, match="does not fit"):
        cw.plan("Qwen/Qwen3-32B", task="local", have="2xrtx-4090", precision="bf16")


def test_chips_that_one_has_are_said_to_cost_nothing() -> None:
    said = str(cw.plan("Qwen/Qwen3-8B", have="2xh100", evidence="none"))
    assert "Use 2x h100-sxm5-80gb" in said
    assert "$" not in said.split("not shown")[0]


def test_a_model_that_guesses_by_itself_is_asked_for_one_token() -> None:
    asked = {"rate": "5/s", "in_": "500", "out": "8000", "tpot": "30ms", "evidence": "none"}
    report = cw.plan("deepseek-ai/DeepSeek-V3.2", chips="gb300-nvl72", **asked)
    lever = next(one for one in report.levers if one.options == "--speculate accept=0.87,draft=1")
    assert "the model's own module" in lever.words


def test_two_changes_that_keep_the_targets_are_asked_together() -> None:
    asked = {"rate": "5/s", "in_": "500", "out": "8000", "tpot": "30ms", "evidence": "none"}
    model, chips = "deepseek-ai/DeepSeek-R1", "b200-sxm"
    report = cw.plan(model, chips=chips, **asked)
    both, *alone = report.levers
    assert both.options == "--precision nvfp4 --speculate accept=0.82,draft=1"
    assert "nvidia/DeepSeek-R1-NVFP4" in both.words  # in the format of the chip, and who has published it
    assert both.saves > max(one.saves for one in alone)
    asked["runtime"] = report.plans[0].runtime
    changed = cw.plan(model, chips=chips, **asked, precision="nvfp4", speculate="accept=0.82,draft=1").plans[0]
    assert (changed.chips, changed.spread) == (both.chips, both.spread)
