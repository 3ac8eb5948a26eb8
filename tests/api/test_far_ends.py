"""Ends of intervals where a rate falls by thousands of per cent as passes take one longer: they stop at the peak."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.errors import ChipwiseError


@pytest.mark.parametrize("ttft", [None, "1.5s", "3s"])
@pytest.mark.parametrize("percentile", [None, "p99"])
def test_prompts_alone_at_a_high_utilisation(ttft: str | None, percentile: str | None) -> None:
    try:
        plans = cw.plan(
            "mistralai/Mistral-Small-24B-Instruct-2501",
            chips="rtx-4090",
            rate="0.115/s",
            in_=6166,
            out=1,
            ttft=ttft,
            tpot="92.4ms",
            percentile=percentile,
            utilisation="90%",
            precision="mxfp4",
        ).plans
    except ChipwiseError:
        return
    for plan in plans:
        assert plan.tokens_per_s.low <= plan.tokens_per_s.mid <= plan.tokens_per_s.high < float("inf")


def test_a_log_of_single_tokens(tmp_path: object) -> None:
    log = f"{tmp_path}/log.csv"
    with open(log, "w", encoding="utf-8") as file:
        file.write("prompt_tokens,output_tokens\n1000,1\n6000,1\n300,1\n")
    plan = cw.plan("Qwen/Qwen3-8B", chips="l4", rate="1/s", log=log, percentile="p99").plans[0]
    assert plan.tpot_s is None
    assert plan.tails["p99"].ttft_s is not None
