"""MFU is of the peak of the type that computes: products in fp32, the attention core in 16 bit."""

from __future__ import annotations

import pytest

import chipwise as cw


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("chip", ["h100", "a100-sxm4-80gb", "mi300x", "tpu-v5p"])
@pytest.mark.parametrize("model", ["Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B"])
def test_no_share_of_a_peak_is_above_one(model: str, chip: str, precision: str) -> None:
    if precision == "fp8" and chip in ("a100-sxm4-80gb", "tpu-v5p"):
        pytest.skip("no products in 8 bit there")
    plan = cw.train(model, chips=chip, counts=256, precision=precision, tokens="1T").plans[0]
    assert 0.0 < plan.mfu < 1.0
    assert plan.mfu <= plan.hfu * (1.0 + 1e-9) < 1.0
