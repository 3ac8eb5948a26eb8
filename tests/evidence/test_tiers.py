"""Nearness of deployments: what the serving fit has seen of chip and runtime."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.evidence.tiers import tier_of

ONE = Parameter(1.0, 1.1, 0.02, "factor", "toy", "")
SEEN = Parameters(
    {
        f"serving.{tail}": ONE
        for tail in (
            "pass.whole.runtime=vllm",
            "seen.chip=h100-sxm5-80gb",
            "pass.whole.generation=hopper",
            "pass.whole.family+harness=llama+vllm",
        )
    }
)


@pytest.mark.parametrize(
    ("chip", "runtime", "tier"),
    [
        ("h100-sxm5-80gb", "vllm", "chip"),
        ("h200-sxm-141gb", "vllm", "vendor"),
        ("h100-sxm5-80gb", "sglang", "runtime"),
        ("b200-sxm", "vllm", "generation"),
        ("b200-sxm", "sglang", "kind"),
        ("mi300x", "vllm", "kind"),
        ("tpu-v5e", "vllm-tpu", "kind"),
    ],
)
def test_what_was_seen(chip: str, runtime: str, tier: str) -> None:
    assert tier_of(get_chip(chip), runtime, SEEN) == tier


def test_an_anchor_is_nearest_and_nothing_fitted_is_far() -> None:
    chip = get_chip("h100-sxm5-80gb")
    assert tier_of(chip, "vllm", Parameters({})) == "kind"


def test_a_chip_of_ones_own_is_as_near_as_what_it_is_like() -> None:
    mine = replace(get_chip("h100-sxm5-80gb"), id="my-h100", like="h100-sxm5-80gb")
    assert tier_of(mine, "vllm", SEEN) == "chip"
    assert tier_of(replace(mine, like="", base_generation="my-h100"), "vllm", SEEN) == "generation"


def test_shipped_numbers_know_the_chips_that_were_measured() -> None:
    numbers = shipped_parameters()
    assert tier_of(get_chip("h100-sxm5-80gb"), "vllm", numbers) == "chip"
    assert tier_of(get_chip("mi300x"), "vllm", numbers) == "stack"
    assert tier_of(get_chip("mi355x"), "vllm", numbers) == "kernels", "operators of AMD's chips were timed alone"


@pytest.mark.parametrize(
    ("chip", "runtime", "tier"),
    [
        ("rtx-4090", "llama.cpp", "chip"),
        ("rtx-5080", "llama.cpp", "vendor"),
        ("m4-pro", "mlx", "chip"),
        ("rk3588", "llama.cpp", "vendor"),
        ("snapdragon-x-elite", "llama.cpp", "kind"),
    ],
)
def test_local_runtimes_are_as_near_as_the_chips_that_their_kernels_were_timed_on(
    chip: str, runtime: str, tier: str
) -> None:
    assert tier_of(get_chip(chip), runtime, shipped_parameters()) == tier
    assert tier_of(get_chip(chip), runtime, SEEN) == "kind"


def test_numbers_chosen_from_benchmarks_are_a_tier_of_their_own() -> None:
    chosen = replace(ONE, source="chosen: published benchmarks of the runtime")
    names = ("runtime.sglang-jax.operator.block_s", "runtime.vllm.stock.simt.gemm.compute_share.fp8.cdna3")
    numbers = Parameters({**SEEN.table, **dict.fromkeys(names, chosen)})
    assert tier_of(get_chip("tpu-v6e"), "sglang-jax", numbers) == "stack"
    assert tier_of(get_chip("mi300x"), "vllm", numbers) == "stack"
    assert tier_of(get_chip("mi355x"), "vllm", numbers) == "kind", "chosen for another generation"
    assert tier_of(get_chip("tpu-v6e"), "sglang-jax", numbers, experts=True) == "kind", "chosen on dense models"
    assert tier_of(get_chip("mi300x"), "vllm", numbers, experts=True) == "stack", "whose experts a fit saw"
    assert tier_of(get_chip("tpu-v6e"), "sglang-jax", SEEN) == "kind", "never measured on such chips"


def test_operators_that_were_timed_alone_are_a_tier_before_the_last() -> None:
    numbers = shipped_parameters()
    assert tier_of(get_chip("tpu-v6e"), "vllm-tpu", numbers) == "kernels"
    assert tier_of(get_chip("tpu-v5e"), "vllm-tpu", numbers) == "kernels", "another chip of the vendor's family"
    assert tier_of(get_chip("groq-lpu1"), "groq-cloud", numbers) == "kind"
