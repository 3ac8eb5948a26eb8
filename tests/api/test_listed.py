"""Software that does not list a chip is refused there, whether or not other software is known for it."""

from __future__ import annotations

import random

import pytest

import chipwise as cw
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.runtime import runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.errors import ChipwiseError, InfeasibleError
from command_line import Run

MODEL = "Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    ("chip", "runtime"),
    [("mlu590", "openvino"), ("mlu590", "trtllm"), ("enflame-s60", "vllm"), ("maia-200", "mlx"), ("h100", "mlx")],
)
def test_a_runtime_that_does_not_list_the_chip(chip: str, runtime: str) -> None:
    with pytest.raises(InfeasibleError, match="does not list") as plan:
        cw.plan(MODEL, chips=chip, runtime=runtime)
    with pytest.raises(InfeasibleError, match="does not list"):
        cw.estimate(MODEL, chip=chip, runtime=runtime, concurrency=3)
    for other in runtimes_for(get_chip(chip)):
        assert other.id in str(plan.value)


@pytest.mark.parametrize(
    ("chip", "runtime", "own"),
    [
        ("tpu-v6e", "vllm", "vllm-tpu"),
        ("tpu-v6e", "sglang", "sglang-jax"),
        ("gaudi3", "vllm", "vllm-gaudi"),
        ("h100", "vllm", "vllm"),
    ],
)
def test_a_name_means_what_users_of_the_chip_call_by_it(chip: str, runtime: str, own: str) -> None:
    assert cw.estimate(MODEL, chip=chip, runtime=runtime, concurrency=3).plans[0].runtime == own


def test_on_the_command_line_a_chip_that_one_can_have_is_named(run: Run) -> None:
    for command in (("estimate", MODEL, "--chip", "maia-200"), ("plan", MODEL, "--chips", "maia-200")):
        said = run(*command, "--runtime", "mlx").refused(4)
        assert "MLX (mlx-lm) does not list Azure Maia 200" in said
        assert "the nearest chip that you can have is b200-sxm" in said


def test_a_trainer_that_does_not_list_the_chip() -> None:
    with pytest.raises(InfeasibleError, match=r"torchtune does not list Trainium2.*neuronx"):
        cw.train("meta-llama/Llama-3.1-8B", chips="trainium2", trainer="torchtune", tokens="1B")


def test_every_chip_and_runtime_has_an_answer_or_a_refusal() -> None:
    pairs = [(chip, runtime, None) for chip in load_chips() for runtime in all_software(Runtime)]
    asked = random.Random(3).sample(pairs, 300) + [(chip, None, "256GB") for chip in load_chips()]
    for chip, runtime, host in asked:
        try:
            plan = cw.estimate(
                MODEL, chip=chip, runtime=runtime, host_memory=host, concurrency=3, evidence="none"
            ).plans[0]
        except ChipwiseError:
            continue
        assert plan.chips >= 1, chip
        assert plan.shares, chip
        used = get_chip(chip)
        assert any(runtime_.id == plan.runtime for runtime_ in all_software(Runtime).values() if runtime_.rule(used)), (
            chip
        )
