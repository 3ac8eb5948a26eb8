"""Chips of which a plan takes a few: what nobody has many of for rent."""

from __future__ import annotations

import pytest
from docs.generate.console import DAY, on_the_day

import chipwise as cw
from chipwise.catalog.chips import get_chip
from chipwise.catalog.price import Pricing
from chipwise.errors import ChipwiseError
from chipwise.report.plans import PlanRecord
from chipwise.search.deployments import few_of

PLENTY = ("h100-sxm5-80gb", "mi300x", "a10g", "tpu-v5e", "trainium2", "epyc-9654", "gb300-nvl72")
FEW = ("gh200-96gb", "rtx-4090", "h200-nvl")


def few(pricing: Pricing) -> set[str]:
    with on_the_day():
        return set(few_of(map(get_chip, (*PLENTY, *FEW)), lambda chip: pricing.basis(chip, DAY)))


def test_what_one_small_provider_or_marketplaces_alone_rent_out() -> None:
    """65 hosts of a chip that a single provider has were once the first plan; clouds are no small providers."""
    assert few(Pricing()) == set(FEW)


def test_a_price_of_ones_own_says_nothing_of_others() -> None:
    assert "gh200-96gb" not in few(Pricing(given={"gh200-96gb": 2.0}))
    assert "gh200-96gb" not in few(Pricing(kind="own"))


def test_fp8_on_a_chip_without_such_units_says_that_it_saves_memory_alone() -> None:
    def note(chip: str) -> str:
        return cw.estimate("Qwen/Qwen3-32B", chip=chip, precision="fp8", evidence="none").plans[0].note

    assert note("a100-sxm4-80gb") == "fp8 runs as weight-only on a100-sxm4-80gb: multiplied in bf16"
    assert "weight-only" not in note("h100-sxm5-80gb")


def test_a_format_without_a_kernel_for_experts_is_refused_on_that_chip() -> None:
    """SGLang's fp8 experts stop on Ampere, its dense fp8 layers do not; vLLM's run by Marlin."""
    with pytest.raises(ChipwiseError, match="SGLang has no kernel that multiplies experts in fp8"):
        _estimated("Qwen/Qwen3-30B-A3B", "a100-sxm4-80gb", "sglang")
    assert _estimated("Qwen/Qwen3-30B-A3B", "a100-sxm4-80gb", "vllm").runtime == "vllm"
    assert _estimated("Qwen/Qwen3-30B-A3B", "h100-sxm5-80gb", "sglang").runtime == "sglang"
    assert _estimated("Qwen/Qwen3-8B", "a100-sxm4-80gb", "sglang").runtime == "sglang"


def _estimated(model: str, chip: str, runtime: str) -> PlanRecord:
    return cw.estimate(model, chip=chip, precision="fp8", runtime=runtime, evidence="none").plans[0]
